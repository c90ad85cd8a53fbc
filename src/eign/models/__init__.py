"""Gaussian process surrogates of functions that also give a gradient, as BoTorch models.

`IndependentGradientGP` has one process for f and one for each partial derivative, `JointGradientGP` one process for
all of them, and `SpannedGradientGP` the same one for fewer points than dimensions; `fit` finds the hyperparameters of
any. They are loaded on first use.
"""

from typing import TYPE_CHECKING

from eign.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
