"""Gaussian process surrogates of functions that also give a gradient, as BoTorch models.

`IndependentGradientGP` has one process for f and one for each partial derivative, `JointGradientGP` one process for
all of them, and `SpannedGradientGP` the same one for fewer points than dimensions; `fit` finds the hyperparameters of
any. They are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eign.models.independent.fitting import fit
    from eign.models.independent.hyperparameters import Hyperparameters
    from eign.models.independent.model import IndependentGradientGP
    from eign.models.joint.model import JointGradientGP
    from eign.models.spanned.model import SpannedGradientGP

__all__ = ["Hyperparameters", "IndependentGradientGP", "JointGradientGP", "SpannedGradientGP", "fit"]

_HOMES = {
    "Hyperparameters": "eign.models.independent.hyperparameters",
    "IndependentGradientGP": "eign.models.independent.model",
    "JointGradientGP": "eign.models.joint.model",
    "SpannedGradientGP": "eign.models.spanned.model",
    "fit": "eign.models.independent.fitting",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'eign.models' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
