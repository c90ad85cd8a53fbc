"""The paper's mathematics as pure functions: tensors in, tensors out, broadcasting, differentiable, float64.

Files that end in `_numpy` have the forms that our own search calls: arrays in, arrays and derivatives out. Functions
are loaded on first use, so that those forms need no torch.
"""

from typing import TYPE_CHECKING

from eign.lazy_names import lazy_names

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
    from eign.formulas.feasibility import (
        constrained_log_expected_improvement,
        log_probability_of_feasibility,
    )
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
    "constrained_log_expected_improvement",
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
    "log_probability_of_feasibility",
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
    "auxiliary_improvement": "eign.formulas.auxiliary",
    "auxiliary_improvement_bound": "eign.formulas.auxiliary",
    "auxiliary_improvement_full": "eign.formulas.auxiliary",
    "auxiliary_improvement_mc": "eign.formulas.monte_carlo",
    "auxiliary_improvement_mc_full": "eign.formulas.monte_carlo",
    "auxiliary_objective": "eign.formulas.auxiliary",
    "constrained_log_expected_improvement": "eign.formulas.feasibility",
    "ei_gn": "eign.formulas.auxiliary",
    "expected_improvement": "eign.formulas.improvement",
    "expected_positive_part": "eign.formulas.characteristic",
    "expected_positive_part_full": "eign.formulas.characteristic",
    "gradient_increase": "eign.formulas.gradient_norm",
    "gradient_increase_full": "eign.formulas.gradient_norm",
    "gradient_increase_mc": "eign.formulas.monte_carlo",
    "gradient_increase_mc_full": "eign.formulas.monte_carlo",
    "log_expected_improvement": "eign.formulas.improvement",
    "log_probability_of_feasibility": "eign.formulas.feasibility",
    "log_h": "eign.formulas.improvement",
    "normal_base_samples": "eign.formulas.monte_carlo",
    "normal_tail": "eign.formulas.normal",
    "orthant_gradient_increase": "eign.formulas.gradient_norm",
    "orthant_gradient_increase_full": "eign.formulas.gradient_norm",
    "probability_of_improvement": "eign.formulas.improvement",
    "projected_gradient": "eign.formulas.optimality",
    "stationarity": "eign.formulas.optimality",
    "stationarity_event": "eign.formulas.auxiliary",
    "upper_confidence_bound": "eign.formulas.improvement",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
