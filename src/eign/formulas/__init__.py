"""The paper's mathematics as pure functions: tensors in, tensors out, broadcasting, differentiable, float64.

Files that end in `_numpy` have the forms that our own search calls: arrays in, arrays and derivatives out. Functions
are loaded on first use, so that those forms need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eign.formulas.auxiliary import (
        auxiliary_improvement,
        auxiliary_improvement_bound,
        auxiliary_improvement_full,
        auxiliary_objective,
        ei_gn,
        stationarity_event,
    )
    from eign.formulas.characteristic import expected_positive_part, expected_positive_part_full
    from eign.formulas.gradient_norm import (
        gradient_increase,
        gradient_increase_full,
        orthant_gradient_increase,
        orthant_gradient_increase_full,
    )
    from eign.formulas.improvement import (
        expected_improvement,
        log_expected_improvement,
        log_h,
        probability_of_improvement,
        upper_confidence_bound,
    )
    from eign.formulas.monte_carlo import (
        auxiliary_improvement_mc,
        auxiliary_improvement_mc_full,
        gradient_increase_mc,
        gradient_increase_mc_full,
        normal_base_samples,
    )
    from eign.formulas.normal import normal_tail
    from eign.formulas.optimality import projected_gradient, stationarity

__all__ = [
    "auxiliary_improvement",
    "auxiliary_improvement_bound",
    "auxiliary_improvement_full",
    "auxiliary_improvement_mc",
    "auxiliary_improvement_mc_full",
    "auxiliary_objective",
    "ei_gn",
    "expected_improvement",
    "expected_positive_part",
    "expected_positive_part_full",
    "gradient_increase",
    "gradient_increase_full",
    "gradient_increase_mc",
    "gradient_increase_mc_full",
    "log_expected_improvement",
    "log_h",
    "normal_base_samples",
    "normal_tail",
    "orthant_gradient_increase",
    "orthant_gradient_increase_full",
    "probability_of_improvement",
    "projected_gradient",
    "stationarity",
    "stationarity_event",
    "upper_confidence_bound",
]

_HOMES = {
    "auxiliary_improvement": "auxiliary",
    "auxiliary_improvement_bound": "auxiliary",
    "auxiliary_improvement_full": "auxiliary",
    "auxiliary_improvement_mc": "monte_carlo",
    "auxiliary_improvement_mc_full": "monte_carlo",
    "auxiliary_objective": "auxiliary",
    "ei_gn": "auxiliary",
    "expected_improvement": "improvement",
    "expected_positive_part": "characteristic",
    "expected_positive_part_full": "characteristic",
    "gradient_increase": "gradient_norm",
    "gradient_increase_full": "gradient_norm",
    "gradient_increase_mc": "monte_carlo",
    "gradient_increase_mc_full": "monte_carlo",
    "log_expected_improvement": "improvement",
    "log_h": "improvement",
    "normal_base_samples": "monte_carlo",
    "normal_tail": "normal",
    "orthant_gradient_increase": "gradient_norm",
    "orthant_gradient_increase_full": "gradient_norm",
    "probability_of_improvement": "improvement",
    "projected_gradient": "optimality",
    "stationarity": "optimality",
    "stationarity_event": "auxiliary",
    "upper_confidence_bound": "improvement",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name in _HOMES:
        return getattr(import_module(f"eign.formulas.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'eign.formulas' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
