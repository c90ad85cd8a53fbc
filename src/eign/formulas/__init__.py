"""The paper's mathematics as pure torch functions: tensors in, tensors out, broadcasting, differentiable, float64."""

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
from eign.formulas.stationarity import projected_gradient, stationarity

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
