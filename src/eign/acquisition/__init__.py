"""Acquisition functions on surrogates of functions that also give a gradient, as BoTorch classes.

All are maximised, answer in the units of y, and run on `IndependentGradientGP` and `JointGradientGP`; on the latter EI,
LogEI and EIGN are what the literature calls dEI, dLogEI and dEI-GN. They work with `botorch.optim.optimize_acqf`;
`eign.search.maximize` is faster.
"""

from eign.acquisition.registration import register_with_botorch
from eign.acquisition.surrogate_acquisition import SurrogateAcquisition, ValueAndGradient
from eign.acquisition.value import EI, UCB, LogEI
from eign.acquisition.with_gradients import EIGN, EIg, EIgBound
from eign.models.incumbent import Incumbent, incumbent, stationary_incumbent

__all__ = [
    "EI",
    "EIGN",
    "UCB",
    "EIg",
    "EIgBound",
    "Incumbent",
    "LogEI",
    "SurrogateAcquisition",
    "ValueAndGradient",
    "incumbent",
    "stationary_incumbent",
]

register_with_botorch()
