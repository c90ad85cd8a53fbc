"""Warnings at the line of the user, however deep in our packages they arise."""

import sys
import warnings
from typing import Final

# Whose lines say nothing to a user: ours, and those of packages that call us on the user's behalf.
_LIBRARIES: Final = frozenset(
    {"eign", "eign_lab", "botorch", "gpytorch", "linear_operator", "torch", "optuna", "ax", "scipy", "contextlib"}
)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that points at the innermost line which belongs to none of these packages."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
