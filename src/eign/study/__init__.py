"""The user's side: ask and tell, one-call search, the log of a study. The only room that flips signs."""

from eign.study.gradient_check.check import GradientWarning
from eign.study.minimize import maximize, minimize
from eign.study.optimizer import Best, Optimizer
from eign.study.run import LostWorkerWarning, Status
from eign.study.storage.study_file import StorageError
from eign.study.study import MethodFailedWarning

__all__ = [
    "Best",
    "GradientWarning",
    "LostWorkerWarning",
    "MethodFailedWarning",
    "Optimizer",
    "Status",
    "StorageError",
    "maximize",
    "minimize",
]
