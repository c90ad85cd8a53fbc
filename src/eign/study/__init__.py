"""The user's side: ask and tell, one-call search, the log of a study. The only room that flips signs."""

from eign.study.gradient_check import GradientWarning
from eign.study.minimize import maximize, minimize
from eign.study.optimizer import Best, Optimizer
from eign.study.run import LostWorkerWarning, Status
from eign.study.storage import StorageError
from eign.study.tables import read_table, write_table

__all__ = [
    "Best",
    "GradientWarning",
    "LostWorkerWarning",
    "Optimizer",
    "Status",
    "StorageError",
    "maximize",
    "minimize",
    "read_table",
    "write_table",
]
