"""Functions by name, so that a run is plain data and any process can do it."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def load_function(name: str) -> Callable[..., Any]:
    """The function that "package.module:function" names.

    >>> load_function("math:hypot")(3.0, 4.0)
    5.0

    Raises:
        ValueError: there is no such module or function.
    """
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"there is no function {name!r}, expected package.module:function: {error}") from error
    if not callable(found):
        raise ValueError(f"{name!r} is no function")
    return found  # type: ignore[no-any-return]
