"""What a model says about one black-box constraint: how probable it is that it holds."""

from typing import final

import torch
from botorch.models.model import Model
from torch import Tensor

from eign import formulas
from eign.acquisition.value import ValueAcquisition
from eign.arrays import Array
from eign.formulas import feasibility_numpy
from eign.formulas.improvement_numpy import ByMoments


@final
class LogFeasibility(ValueAcquisition):
    r"""Log of the probability that a constraint is within its limits.

    .. math:: \log P(l \le c(x) \le u)
    """

    def __init__(self, model: Model, lower: float, upper: float) -> None:
        """On a model of the constraint, with limits in its units; infinite where open."""
        super().__init__(model)
        self._lower, self._upper = (lower - self.y_shift) / self.y_scale, (upper - self.y_shift) / self.y_scale

    def _formula(self, mean: Tensor, sigma: Tensor) -> Tensor:
        limits = (torch.tensor([limit], dtype=torch.float64) for limit in (self._lower, self._upper))
        return formulas.log_probability_of_feasibility(mean[..., None], sigma[..., None], *limits)

    def _closed_form(self, mean: Array, variance: Array) -> ByMoments:
        return feasibility_numpy.log_probability_of_feasibility(mean, variance, self._lower, self._upper)

    def _shift_and_scale(self) -> tuple[float, float]:
        return 0.0, 1.0
