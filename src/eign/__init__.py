"""Bayesian optimization for expensive functions that also give a gradient.

The public names are listed below and loaded on first use, so that `import eign` itself costs next to nothing:
torch is imported when something needs it, matplotlib when `eign.plot` does, integrations never.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from eign._version import __version__

if TYPE_CHECKING:
    from eign import acquisition, formulas, models, plot, problems, search
    from eign.data import Observations
    from eign.evaluation import Evaluation
    from eign.exchange import read_table, write_table
    from eign.integrations.scipy import scipy_method
    from eign.space import Box
    from eign.strategies import methods
    from eign.study import Optimizer, StorageError, maximize, minimize

__all__ = [
    "Box",
    "Evaluation",
    "Observations",
    "Optimizer",
    "StorageError",
    "__version__",
    "acquisition",
    "formulas",
    "maximize",
    "methods",
    "minimize",
    "models",
    "plot",
    "problems",
    "read_table",
    "scipy_method",
    "search",
    "write_table",
]

_MODULES = {"acquisition", "formulas", "models", "plot", "problems", "search"}
_HOMES = {
    "Box": "eign.space",
    "Evaluation": "eign.evaluation",
    "Observations": "eign.data",
    "Optimizer": "eign.study",
    "StorageError": "eign.study",
    "maximize": "eign.study",
    "methods": "eign.strategies",
    "minimize": "eign.study",
    "read_table": "eign.exchange",
    "scipy_method": "eign.integrations.scipy",
    "write_table": "eign.exchange",
}
# What users look for here that is elsewhere, or has another name.
_ELSEWHERE = {
    "GradientSampler": "from eign.integrations.optuna import GradientSampler",
    "Command": "from eign.integrations.command import Command",
    "create_study": "eign.Optimizer(bounds), or eign.minimize(fun, bounds)",
    "Study": "eign.Optimizer(bounds)",
    "view": "eign.Optimizer.view(file)",
    "resume": "eign.Optimizer.resume(file)",
    "load_study": "eign.Optimizer.resume(file)",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name in _MODULES:
        return import_module(f"eign.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ELSEWHERE:
        raise AttributeError(f"module 'eign' has no attribute {name!r}; write {_ELSEWHERE[name]}")
    raise AttributeError(f"module 'eign' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
