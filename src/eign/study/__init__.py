"""The user's side: ask and tell, one-call search, the log of a study. The only room that flips signs.

Names are loaded on first use: who looks at a study needs no search, and so neither torch nor SciPy.
"""

from typing import TYPE_CHECKING

from eign.lazy_names import lazy_names

if TYPE_CHECKING:
    from eign.study.gradient_check.faults import GradientWarning
    from eign.study.minimization import maximize, minimize
    from eign.study.optimizer import Best, Optimizer
    from eign.study.run import LostWorkerWarning, Status
    from eign.study.storage.file_format import StorageError
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

_HOMES = {
    "Best": "eign.study.optimizer",
    "GradientWarning": "eign.study.gradient_check.faults",
    "LostWorkerWarning": "eign.study.run",
    "MethodFailedWarning": "eign.study.study",
    "Optimizer": "eign.study.optimizer",
    "Status": "eign.study.run",
    "StorageError": "eign.study.storage.file_format",
    "maximize": "eign.study.minimization",
    "minimize": "eign.study.minimization",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
