r"""What the acquisitions ask of a surrogate: its posterior at single points, in common standardised units.

Values are shifted and divided by the model's standardisation of y, gradients are divided by the same scale, so that
alpha weighs the same in every unit of y. A BoTorch model without a standardisation is taken as it is.

| moments | of | covariance |
|---|---|---|
| `ValueMoments` | f | |
| `IndependentMoments` | f and its gradient | diagonal |
| `JointMoments` | f and its gradient | full, cov(f, grad f) included |
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from botorch.models.model import Model
from torch import Tensor

from eign import formulas
from eign.models import JointGradientGP
from eign.models.surrogates import Surrogate
from eign.numerics.cholesky_torch import cholesky

# Keeps the derivative of the standard deviation finite for models without a floor of their own.
_SMALLEST_VARIANCE: Final = 1e-20


class ValueMoments(NamedTuple):
    """Mean and standard deviation of f, `...` each."""

    mean: Tensor
    sigma: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class IndependentMoments:
    """Of f and, independent of it and of each other, its partial derivatives: `...` and `... x d`."""

    mean: Tensor
    sigma: Tensor
    grad_mean: Tensor
    grad_sigma: Tensor

    def orthant_increase(self, best_grad: Tensor) -> Tensor:
        """EI_s-bar, `... x d -> ...`."""
        return formulas.orthant_gradient_increase(self.grad_mean, self.grad_sigma, best_grad)

    def sampled_increase(self, best_grad: Tensor, base_samples: Tensor) -> Tensor:
        """EI_s by Monte Carlo."""
        return formulas.gradient_increase_mc(self.grad_mean, self.grad_sigma, best_grad, base_samples)

    def auxiliary_improvement(self, best_g: Tensor, alpha: float) -> Tensor:
        """EI_g exactly."""
        return formulas.auxiliary_improvement(self.mean, self.sigma, self.grad_mean, self.grad_sigma, best_g, alpha)


@dataclass(frozen=True, slots=True, eq=False)
class JointMoments:
    """Of f and its gradient together: `...`, `... x d`, `... x d x d`, and cov(f, grad f), `... x d`."""

    mean: Tensor
    sigma: Tensor
    grad_mean: Tensor
    grad_cov: Tensor
    cross_cov: Tensor

    def orthant_increase(self, best_grad: Tensor) -> Tensor:
        """EI_s-bar, `... x d -> ...`."""
        return formulas.orthant_gradient_increase_full(self.grad_mean, cholesky(self.grad_cov)[0], best_grad)

    def sampled_increase(self, best_grad: Tensor, base_samples: Tensor) -> Tensor:
        """EI_s by Monte Carlo."""
        return formulas.gradient_increase_mc_full(self.grad_mean, cholesky(self.grad_cov)[0], best_grad, base_samples)

    def auxiliary_improvement(self, best_g: Tensor, alpha: float) -> Tensor:
        """EI_g exactly."""
        return formulas.auxiliary_improvement_full(
            self.mean, self.sigma, self.grad_mean, self.grad_cov, best_g, alpha, cross_cov=self.cross_cov
        )


def shift_and_scale(model: Model) -> tuple[float, float]:
    """Of the model's values; (0, 1) for a model that has none."""
    units = getattr(model, "standardization", None)
    return (0.0, 1.0) if units is None else (units.y_shift, units.y_scale)


def value_moments(model: Model, X: Tensor) -> ValueMoments:
    """Of f at each point, differentiable, `... x d -> ...`."""
    shift, scale = shift_and_scale(model)
    posterior: Any = model.posterior(X.unsqueeze(-2))
    mean, variance = (part.squeeze(-1).squeeze(-1) for part in (posterior.mean, posterior.variance))
    return ValueMoments((mean - shift) / scale, (variance / scale / scale).clamp_min(_SMALLEST_VARIANCE).sqrt())


def gradient_moments(model: Surrogate, X: Tensor) -> IndependentMoments | JointMoments:
    """Of f and its gradient at each point, differentiable, `... x d -> ...`."""
    shift, scale = shift_and_scale(model)
    if isinstance(model, JointGradientGP):
        mean, covariance = model.joint_posterior(X)
        offset = torch.zeros(mean.shape[-1], dtype=torch.float64)
        offset[0] = shift
        return as_joint_moments((mean - offset) / scale, covariance / scale**2)
    value, gradient = value_moments(model, X), model.gradient_posterior(X)
    return IndependentMoments(value.mean, value.sigma, gradient.mean / scale, gradient.variance.sqrt() / scale)


def as_joint_moments(mean: Tensor, covariance: Tensor) -> JointMoments:
    """From mean `... x (d+1)` and covariance `... x (d+1) x (d+1)` of (f, grad f) in common units."""
    return JointMoments(
        mean[..., 0],
        covariance[..., 0, 0].sqrt(),
        mean[..., 1:],
        covariance[..., 1:, 1:],
        covariance[..., 0, 1:],
    )
