r"""Acquisitions that also look at the gradient: EI-GN, the lower bound of EI_g it comes from, and EI_g itself.

In common standardised units, values and gradients over std(y), they improve on :math:`g = f - \alpha\|\nabla f\|^2`,
and the result is multiplied by std(y): alpha has no units, and alpha = 0 gives EI in the units of y. On
`JointGradientGP` they use the full covariance of f and its gradient; EI-GN is then the paper's dEI-GN.
"""

from abc import abstractmethod
from typing import Final, NamedTuple, Self, final

import numpy as np
import torch
from torch import Tensor

from eign import formulas
from eign.acquisition.standardized_moments import (
    IndependentMoments,
    JointMoments,
    as_joint_moments,
    gradient_moments,
)
from eign.acquisition.surrogate_acquisition import SurrogateAcquisition, ValueAndGradient, checked_best
from eign.arrays import Array
from eign.formulas import gradient_norm_numpy, improvement_numpy
from eign.formulas.improvement_numpy import ByMoments
from eign.models import JointGradientGP, SpannedGradientGP
from eign.models.independent.processes import Processes
from eign.models.independent.pullback import ProcessStack
from eign.models.joint.pullback import JointEvaluator
from eign.models.surrogates import Surrogate
from eign.models.tensors import as_array
from eign.notices import warn_user
from eign.numerics.cholesky import cholesky_of_each

SAMPLES: Final = 256
"""Base samples of the Monte Carlo bound."""


class Terms(NamedTuple):
    """EI_f and how much the squared gradient norm grows, at m points, in standardised units, `m` each."""

    improvement: Array
    increase: Array


class StationarityAcquisition(SurrogateAcquisition):
    """A function of the moments of f and its gradient, and of an incumbent's."""

    model: Surrogate

    def __init__(self, model: Surrogate, best_f: float | Tensor, best_grad: Tensor, *, alpha: float = 0.6) -> None:
        """Take the incumbent.

        Args:
            model: A fitted model of f and its gradient.
            best_f: The incumbent's value, in the units of y.
            best_grad: Its gradient with respect to the unit cube, `d`. Nothing may be missing: `incumbent` fills in.
            alpha: Weight of the stationarity term; 0 is EI.
        """
        super().__init__(model)
        if not hasattr(model, "gradient_posterior"):
            raise TypeError(
                f"{type(model).__name__} has no posterior of the gradient; "
                "use eign.models.IndependentGradientGP or JointGradientGP"
            )
        if isinstance(model, SpannedGradientGP):
            raise TypeError(
                "SpannedGradientGP gives the posterior of the gradient without derivatives by the point, which this "
                "acquisition needs; use EI, LogEI or UCB, or eign.models.JointGradientGP"
            )
        gradient = as_array(torch.as_tensor(best_grad, dtype=torch.float64), "best_grad").reshape(-1)
        if len(gradient) != model.dim:
            raise ValueError(f"best_grad has {len(gradient)} entries, expected one for each of d = {model.dim}")
        if not np.isfinite(gradient).all():
            raise ValueError(
                f"best_grad={gradient.tolist()} must be finite; eign.models.incumbent(model) "
                "puts the posterior mean where the gradient is missing"
            )
        if not alpha >= 0:
            raise ValueError(f"alpha={alpha!r}, expected a number that is not negative")
        self.alpha = float(alpha)
        best = (checked_best(best_f) - self.y_shift) / self.y_scale
        self._best_all = self._given_best = np.append(best, gradient / self.y_scale)  # value and gradient
        self._evaluator: JointEvaluator | None = None

    @property
    def _best(self) -> float:
        return float(self._best_all[0])

    def _merits(self, values_and_gradients: Array) -> Array:
        """What makes one of `n x (d+1)` values and gradients, standardised, an incumbent: the value, `n`."""
        return values_and_gradients[:, 0]

    def _expect(self, pending: Tensor | None) -> None:
        known = self._given_best[None]
        if pending is not None:
            told: Surrogate = vars(self)["_without_pending"]
            with torch.no_grad():
                slopes = told.gradient_posterior(pending).mean.numpy() / self.y_scale
            known = np.concatenate([known, np.column_stack([self._predicted(pending), slopes])])
        self._best_all = known[self._merits(known).argmax()]

    @property
    def _best_grad(self) -> Tensor:
        return torch.from_numpy(self._best_all[1:])

    def _new_stack(self, processes: Processes) -> ProcessStack:
        units = self.model.standardization
        shift, scale = np.append(0.0, units.common_grad_shift), np.append(1.0, units.common_grad_scale)
        return ProcessStack.of(processes).in_units(shift, scale)

    def _joint_moments(self, X: Array) -> JointMoments:
        """Of a joint model, whose own units are the common ones, without a graph."""
        return as_joint_moments(*(torch.from_numpy(part) for part in self._joint_evaluator().moments(X)))

    def _joint_evaluator(self) -> JointEvaluator:
        assert isinstance(self.model, JointGradientGP)
        rows = self.model.conditioned()
        if self._evaluator is None or self._evaluator.rows is not rows:
            self._evaluator = JointEvaluator.of(rows)
        return self._evaluator


class TwoTermAcquisition(StationarityAcquisition):
    """EI_f minus alpha times an increase of the squared gradient norm; the search may weigh the terms anew."""

    def __init__(self, model: Surrogate, best_f: float | Tensor, best_grad: Tensor, *, alpha: float = 0.6) -> None:
        """See `StationarityAcquisition`."""
        super().__init__(model, best_f, best_grad, alpha=alpha)
        self.weights = (1.0, self.alpha)

    @abstractmethod
    def _increase(self, moments: IndependentMoments | JointMoments) -> Tensor:
        """How much the squared gradient norm grows, `...`, differentiable."""

    def _increase_by_moments(self, mean: Array, variance: Array) -> ByMoments:
        """The same for independent partial derivatives `m x d`, with its derivatives; here by autograd."""
        grad_mean = torch.tensor(mean, requires_grad=True)
        grad_variance = torch.tensor(variance, requires_grad=True)
        unused = torch.empty(0)
        value = self._increase(IndependentMoments(unused, unused, grad_mean, grad_variance.sqrt()))
        parts = torch.autograd.grad(value.sum(), (grad_mean, grad_variance))
        return ByMoments(value.detach().numpy(), *(part.numpy() for part in parts))

    def _joint_increase(self, mean: Array, covariance: Array) -> Array:
        """The same for correlated ones, `m x d, m x d x d -> m`, without derivatives."""
        unused = torch.empty(0)
        grad_mean, grad_cov = torch.from_numpy(mean), torch.from_numpy(covariance)
        with torch.no_grad():
            return np.asarray(self._increase(JointMoments(unused, unused, grad_mean, grad_cov, unused)).numpy())

    def _increase_by_joint_moments(self, mean: Array, covariance: Array) -> ByMoments:
        """With derivatives; here by autograd."""
        grad_mean, grad_cov = (torch.tensor(part, requires_grad=True) for part in (mean, covariance))
        unused = torch.empty(0)
        value = self._increase(JointMoments(unused, unused, grad_mean, grad_cov, unused))
        by_mean, by_cov = torch.autograd.grad(value.sum(), (grad_mean, grad_cov))
        return ByMoments(value.detach().numpy(), by_mean.numpy(), 0.5 * (by_cov + by_cov.mT).numpy())

    @final
    def weighted(self, improvement: float, increase: float) -> Self:
        """The same with `improvement * EI_f - increase * the other term`, in standardised units, times std(y)."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), weights=(improvement, increase))
        return other

    def _at(self, X: Tensor) -> Tensor:
        moments = gradient_moments(self.model, X)
        improvement = formulas.expected_improvement(moments.mean, moments.sigma, self._best)
        return self.y_scale * (self.weights[0] * improvement - self.weights[1] * self._increase(moments))

    @final
    def terms(self, X: Array) -> Terms:
        """Both terms without their weights, `m x d -> m, m`."""
        if (stack := self._processes()) is None:
            return self._joint_terms(*self._joint_evaluator().moments(X))
        mean, variance = stack.moments(X)
        increase = self._increase_by_moments(mean[:, 1:], variance[:, 1:]).value
        return Terms(improvement_numpy.expected_improvement(mean[:, 0], variance[:, 0], self._best).value, increase)

    @final
    def pool_terms(self, X: Array) -> Terms:
        """`terms` to three digits or more: enough to choose where a search begins, and cheaper on a joint model."""
        if self._processes() is not None:
            return self.terms(X)
        return self._joint_terms(*self._joint_evaluator().pool_moments(X))

    def _joint_terms(self, mean: Array, covariance: Array) -> Terms:
        improvement = improvement_numpy.expected_improvement(mean[:, 0], covariance[:, 0, 0], self._best).value
        return Terms(improvement, self._joint_increase(mean[:, 1:], covariance[:, 1:, 1:]))

    @final
    def combine(self, terms: Terms) -> Array:
        """The acquisition from its terms, `m`."""
        return np.asarray(self.y_scale * (self.weights[0] * terms.improvement - self.weights[1] * terms.increase))

    @final
    def evaluate(self, X: Array) -> Array:
        """Values, `m x d -> m`."""
        return self.combine(self.terms(X))

    @final
    def value_and_gradient(self, X: Array) -> ValueAndGradient:
        """Values and derivatives by the point, `m x d -> m, m x d`."""
        if (stack := self._processes()) is None:
            return self._joint_value_and_gradient(X)
        (mean, variance), pullback = stack.moments_and_pullback(X)
        value, by_mean, by_variance = self._by_moments(mean, variance)
        return ValueAndGradient(self.y_scale * value, self.y_scale * pullback(by_mean, by_variance))

    def _by_moments(self, mean: Array, variance: Array) -> ByMoments:
        """Both terms with their weights, of f and its partial derivatives `m x (d+1)`, and the derivatives."""
        first, second = self.weights
        improvement = improvement_numpy.expected_improvement(mean[:, 0], variance[:, 0], self._best)
        increase = self._increase_by_moments(mean[:, 1:], variance[:, 1:])
        return ByMoments(
            first * improvement.value - second * increase.value,
            np.concatenate([first * improvement.by_mean[:, None], -second * increase.by_mean], axis=1),
            np.concatenate([first * improvement.by_variance[:, None], -second * increase.by_variance], axis=1),
        )

    def _joint_value_and_gradient(self, X: Array) -> ValueAndGradient:
        (mean, covariance), pullback = self._joint_evaluator().moments_and_pullback(X)
        first, second = self.weights
        improvement = improvement_numpy.expected_improvement(mean[:, 0], covariance[:, 0, 0], self._best)
        increase = self._increase_by_joint_moments(mean[:, 1:], covariance[:, 1:, 1:])
        by_mean = np.concatenate([first * improvement.by_mean[:, None], -second * increase.by_mean], axis=1)
        by_covariance = np.zeros_like(covariance)
        by_covariance[:, 0, 0] = first * improvement.by_variance
        by_covariance[:, 1:, 1:] = -second * increase.by_variance
        value = self.combine(Terms(improvement.value, increase.value))
        return ValueAndGradient(value, self.y_scale * pullback(by_mean, by_covariance))


@final
class EIGN(TwoTermAcquisition):
    r"""EI-GN, the paper's acquisition (`eq: EI-GN final`).

    .. math:: EI_f(x) - \alpha\,\overline{EI}_s(x)

    The incumbent is the best value. This is the plain sum; the paper's rescaling of the terms over a pool of candidates
    is done by `eign.search.maximize`.
    """

    # With a signature of its own, so that errors of a call name this class.
    def __init__(self, model: Surrogate, best_f: float | Tensor, best_grad: Tensor, *, alpha: float = 0.6) -> None:
        """See `StationarityAcquisition`."""
        super().__init__(model, best_f, best_grad, alpha=alpha)

    def _increase(self, moments: IndependentMoments | JointMoments) -> Tensor:
        return moments.orthant_increase(self._best_grad)

    def _increase_by_moments(self, mean: Array, variance: Array) -> ByMoments:
        return gradient_norm_numpy.orthant_gradient_increase(mean, variance, self._best_all[1:])

    def _by_moments(self, mean: Array, variance: Array) -> ByMoments:
        return gradient_norm_numpy.ei_gn(mean, variance, self._best_all, self.weights)

    def _joint_increase(self, mean: Array, covariance: Array) -> Array:
        return self._increase_by_joint_moments(mean, covariance).value

    def _increase_by_joint_moments(self, mean: Array, covariance: Array) -> ByMoments:
        return gradient_norm_numpy.orthant_gradient_increase_full(
            mean, cholesky_of_each(covariance), self._best_all[1:]
        )


@final
class EIgBound(TwoTermAcquisition):
    r"""The paper's lower bound of EI_g (`eq: EI-GN lower bound`), EI_s by Monte Carlo with fixed base samples.

    .. math:: EI_f(x) - \alpha\, EI_s(x)

    The incumbent is the best value. Where little is to be gained the bound is negative, and its maximum is a point that
    is known or pending, where it is 0: for several points in turn take `EIg`, which it bounds, or `EIGN`. The method
    `ei-g-bound` leaves such points out of its search.
    """

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802  # the name is BoTorch's
        """As for all acquisitions, with a word of warning: the maximum may be a pending point."""
        super().set_X_pending(X_pending)
        if X_pending is not None:
            warn_user(
                "EIgBound is largest at a pending point where it promises no gain, so that the next point may repeat "
                "it; take EIg or EIGN for several points in turn"
            )

    def __init__(
        self,
        model: Surrogate,
        best_f: float | Tensor,
        best_grad: Tensor,
        *,
        alpha: float = 0.6,
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> None:
        """See `StationarityAcquisition`; `samples` scrambled-Sobol base samples are drawn from `seed`."""
        super().__init__(model, best_f, best_grad, alpha=alpha)
        base = formulas.normal_base_samples(samples, len(self._best_all) - 1, seed=seed)
        self.register_buffer("_base_samples", base)
        self._base_samples: Tensor

    def _increase(self, moments: IndependentMoments | JointMoments) -> Tensor:
        return moments.sampled_increase(self._best_grad, self._base_samples)


@final
class EIg(StationarityAcquisition):
    r"""EI_g exactly, which the paper calls intractable.

    .. math:: E\bigl[\max(g(x) - g(x^+), 0)\bigr], \qquad g = f - \alpha\|\nabla f\|^2

    The incumbent is the best g, not the best value: `stationary_incumbent` finds it.
    """

    # With a signature of its own, so that errors of a call name this class.
    def __init__(self, model: Surrogate, best_f: float | Tensor, best_grad: Tensor, *, alpha: float = 0.6) -> None:
        """See `StationarityAcquisition`."""
        super().__init__(model, best_f, best_grad, alpha=alpha)

    def _merits(self, values_and_gradients: Array) -> Array:
        return np.asarray(values_and_gradients[:, 0] - self.alpha * (values_and_gradients[:, 1:] ** 2).sum(axis=1))

    def _at(self, X: Tensor) -> Tensor:
        return self.y_scale * self._improvement(gradient_moments(self.model, X))

    def evaluate(self, X: Array) -> Array:
        """Values, `m x d -> m`."""
        stack = self._processes()
        with torch.no_grad():
            if stack is None:
                return np.asarray(self.y_scale * self._improvement(self._joint_moments(X)).numpy())
            mean, variance = (torch.from_numpy(part) for part in stack.moments(X))
            return np.asarray(self.y_scale * self._improvement(_as_tensors(mean, variance)).numpy())

    def value_and_gradient(self, X: Array) -> ValueAndGradient:
        """Values and derivatives by the point, `m x d -> m, m x d`."""
        if (stack := self._processes()) is None:
            return self._joint_value_and_gradient(X)
        moments, pullback = stack.moments_and_pullback(X)
        mean, variance = (torch.tensor(part, requires_grad=True) for part in moments)
        value = self._improvement(_as_tensors(mean, variance))
        by_mean, by_variance = torch.autograd.grad(value.sum(), (mean, variance))
        gradient = pullback(by_mean.numpy(), by_variance.numpy())
        return ValueAndGradient(self.y_scale * value.detach().numpy(), self.y_scale * gradient)

    def _joint_value_and_gradient(self, X: Array) -> ValueAndGradient:
        moments, pullback = self._joint_evaluator().moments_and_pullback(X)
        mean, covariance = (torch.tensor(part, requires_grad=True) for part in moments)
        value = self._improvement(as_joint_moments(mean, covariance))
        by_mean, by_covariance = torch.autograd.grad(value.sum(), (mean, covariance))
        gradient = pullback(by_mean.numpy(), 0.5 * (by_covariance + by_covariance.mT).numpy())
        return ValueAndGradient(self.y_scale * value.detach().numpy(), self.y_scale * gradient)

    def _improvement(self, moments: IndependentMoments | JointMoments) -> Tensor:
        best = torch.tensor(self._best, dtype=torch.float64)
        best_g = formulas.auxiliary_objective(best, self._best_grad, self.alpha)
        return moments.auxiliary_improvement(best_g, self.alpha)


def _as_tensors(mean: Tensor, variance: Tensor) -> IndependentMoments:
    """Of d + 1 processes, f first, `m x (d + 1)`."""
    return IndependentMoments(mean[:, 0], variance[:, 0].sqrt(), mean[:, 1:], variance[:, 1:].sqrt())
