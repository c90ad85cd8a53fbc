"""Posteriors in the units of the data."""

from typing import NamedTuple

import torch
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal  # type: ignore[import-untyped]
from torch import Tensor

from eign.numerics.cholesky_torch import cholesky


class GradientPosterior(NamedTuple):
    """Independent normal distributions of the partial derivatives.

    Attributes:
        mean: `... x d`.
        variance: `... x d`, positive.
    """

    mean: Tensor
    variance: Tensor


class ValuePosterior(GPyTorchPosterior):
    """Normal distribution of f at q points, `... x q x 1`, with its own floor for the variance.

    GPyTorch's floor is absolute: 1e-10 whatever the units of y. Here it is applied before the units come in.
    """

    def __init__(self, mean: Tensor, covariance: Tensor, *, shift: float, scale: float) -> None:
        """From mean `... x q` and covariance `... x q x q` in standardised units, which are multiplied and shifted."""
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        self._variance = (variance * scale**2).unsqueeze(-1)
        mean = shift + scale * mean
        try:
            normal = MultivariateNormal(mean, covariance * scale**2)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # it is public, and not in the stubs
            normal = MultivariateNormal(mean, with_jitter(covariance) * scale**2)
        super().__init__(normal)

    @property
    def variance(self) -> Tensor:
        """`... x q x 1`."""
        return self._variance


def with_jitter(covariance: Tensor) -> Tensor:
    """Covariances `... x q x q` with a Cholesky factor, by the rule of `eign.numerics.cholesky` for those without one.

    Many points close together have a singular covariance: their values are the same up to rounding. Rounding is that of
    the largest variance, and so is the jitter.

    Raises:
        FactorizationError: If the largest jitter does not help.
    """
    return cholesky(covariance, scale=covariance.diagonal(dim1=-2, dim2=-1).amax(dim=-1, keepdim=True))[1]


def condition_normal(mean: Tensor, covariance: Tensor, *, observed: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    r"""The first q of q + k jointly normal variables given noisy observations of the last k.

    .. math::
        \mu_1 + \Sigma_{12} (\Sigma_{22} + N)^{-1} (y - \mu_2), \qquad
        \Sigma_{11} - \Sigma_{12} (\Sigma_{22} + N)^{-1} \Sigma_{21}

    Args:
        mean: `... x (q + k)`.
        covariance: `... x (q + k) x (q + k)`.
        observed: y, `... x k`.
        noise: The diagonal of N, broadcast to `... x k`.
    """
    count = observed.shape[-1]
    first, last = slice(None, -count), slice(-count, None)
    lower, _ = cholesky(covariance[..., last, last] + torch.diag_embed(noise.expand(mean[..., last].shape)))
    whitened = torch.linalg.solve_triangular(lower, covariance[..., last, first], upper=False)
    residual = torch.linalg.solve_triangular(lower, (observed - mean[..., last]).unsqueeze(-1), upper=False)
    shifted = mean[..., first] + (whitened.mT @ residual).squeeze(-1)
    return shifted, covariance[..., first, first] - whitened.mT @ whitened
