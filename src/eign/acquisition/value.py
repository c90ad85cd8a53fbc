"""Acquisitions that look at f alone: EI, with a margin xi too, its logarithm, and the upper confidence bound.

On `JointGradientGP` they are the paper's dEI and dLogEI: there the gradients have informed the posterior of f.
"""

import math
from abc import abstractmethod
from typing import final

import numpy as np
import torch
from botorch.models.model import Model
from torch import Tensor

from eign import formulas
from eign.acquisition.standardized_moments import value_moments
from eign.acquisition.surrogate_acquisition import SurrogateAcquisition, ValueAndGradient, checked_best
from eign.arrays import Array
from eign.formulas import improvement_numpy
from eign.formulas.improvement_numpy import ByMoments
from eign.models import JointGradientGP, SpannedGradientGP
from eign.models.independent.processes import Processes
from eign.models.independent.pullback import ProcessStack, Pullback


class ValueAcquisition(SurrogateAcquisition):
    """A function of mean and standard deviation of f; works on every BoTorch model with one output."""

    @abstractmethod
    def _formula(self, mean: Tensor, sigma: Tensor) -> Tensor:
        """The acquisition in standardised units, differentiable."""

    @abstractmethod
    def _closed_form(self, mean: Array, variance: Array) -> ByMoments:
        """The same with its derivatives by the moments."""

    @abstractmethod
    def _shift_and_scale(self) -> tuple[float, float]:
        """The map from standardised units to those of y."""

    def _new_stack(self, processes: Processes) -> ProcessStack:
        return ProcessStack.of(processes, slice(1))

    def _at(self, X: Tensor) -> Tensor:
        shift, scale = self._shift_and_scale()
        return shift + scale * self._formula(*value_moments(self.model, X))

    @final
    def evaluate(self, X: Array) -> Array:
        """Values, `m x d -> m`."""
        shift, scale = self._shift_and_scale()
        if (stack := self._processes()) is not None:
            mean, variance = (part[:, 0] for part in stack.moments(X))
        elif isinstance(self.model, JointGradientGP | SpannedGradientGP):
            mean, variance = self._standardized(*self.model.moments(torch.from_numpy(X)))
        else:
            with torch.no_grad():
                return np.asarray(self._at(torch.from_numpy(X)).numpy())
        return np.asarray(shift + scale * self._closed_form(mean, variance).value)

    @final
    def value_and_gradient(self, X: Array) -> ValueAndGradient:
        """Values and derivatives by the point, `m x d -> m, m x d`."""
        if (stack := self._processes()) is not None:
            moments, pullback = stack.moments_and_pullback(X)
            mean, variance = moments.mean[:, 0], moments.variance[:, 0]
        elif isinstance(self.model, JointGradientGP | SpannedGradientGP):
            mean, variance, pullback = self._joint_moments(self.model, X)
        else:
            return super().value_and_gradient(X)
        shift, scale = self._shift_and_scale()
        result = self._closed_form(mean, variance)
        gradient = pullback(result.by_mean[:, None], result.by_variance[:, None])
        return ValueAndGradient(shift + scale * result.value, scale * gradient)

    def _joint_moments(self, model: JointGradientGP | SpannedGradientGP, X: Array) -> tuple[Array, Array, Pullback]:
        moments = model.moments_and_gradients(torch.from_numpy(X))
        mean_gradient = moments.mean_gradient.numpy() / self.y_scale
        variance_gradient = moments.variance_gradient.numpy() / self.y_scale**2

        def pullback(by_mean: Array, by_variance: Array) -> Array:
            return np.asarray(by_mean * mean_gradient + by_variance * variance_gradient)

        return *self._standardized(moments.mean, moments.variance), pullback

    def _standardized(self, mean: Tensor, variance: Tensor) -> tuple[Array, Array]:
        return (mean.numpy() - self.y_shift) / self.y_scale, variance.numpy() / self.y_scale**2


class ImprovementAcquisition(ValueAcquisition):
    """Improvement over an incumbent."""

    def __init__(self, model: Model, best_f: float | Tensor) -> None:
        """From the incumbent's value, in the units of y."""
        super().__init__(model)
        self._best = self._given_best = (checked_best(best_f) - self.y_shift) / self.y_scale

    def _expect(self, pending: Tensor | None) -> None:
        expected = [] if pending is None else self._predicted(pending).tolist()
        self._best = max([self._given_best, *expected])


@final
class EI(ImprovementAcquisition):
    r"""Expected improvement of f over the incumbent, and over a margin xi if there is one.

    .. math:: E[\max(f - f^+ - \xi\,\mathrm{std}(y), 0)]
    """

    def __init__(self, model: Model, best_f: float | Tensor, *, xi: float = 0.0) -> None:
        """From the incumbent's value, in the units of y, and the margin, in standard deviations of y."""
        super().__init__(model, best_f)
        self.xi = xi

    def _formula(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return formulas.expected_improvement(mean, sigma, self._best, xi=self.xi)

    def _closed_form(self, mean: Array, variance: Array) -> ByMoments:
        return improvement_numpy.expected_improvement(mean, variance, self._best + self.xi)

    def _shift_and_scale(self) -> tuple[float, float]:
        return 0.0, self.y_scale


@final
class LogEI(ImprovementAcquisition):
    r"""Logarithm of the expected improvement, with a gradient where EI itself is zero in float64.

    .. math:: \log E[\max(f - f^+, 0)]
    """

    def _formula(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return formulas.log_expected_improvement(mean, sigma, self._best)

    def _closed_form(self, mean: Array, variance: Array) -> ByMoments:
        return improvement_numpy.log_expected_improvement(mean, variance, self._best)

    def _shift_and_scale(self) -> tuple[float, float]:
        return math.log(self.y_scale), 1.0


@final
class UCB(ValueAcquisition):
    r"""Upper confidence bound.

    .. math:: \mu + 2\sigma
    """

    def __init__(self, model: Model, *, weight: float = 2.0) -> None:
        """With the weight of the standard deviation; the paper leaves it open."""
        super().__init__(model)
        self.weight = weight

    def _formula(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return formulas.upper_confidence_bound(mean, sigma, weight=self.weight)

    def _closed_form(self, mean: Array, variance: Array) -> ByMoments:
        return improvement_numpy.upper_confidence_bound(mean, variance, self.weight)

    def _shift_and_scale(self) -> tuple[float, float]:
        return self.y_shift, self.y_scale
