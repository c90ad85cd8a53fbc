r"""EI_s and EI_g by reparameterised Monte Carlo with fixed base samples, as the paper estimates its lower bound.

With the base samples fixed, the estimate is a deterministic and differentiable function of the posterior's moments.
The functions mirror the exact ones: the plain name for independent partial derivatives, `_full` for correlated ones.
"""

import torch
from torch import Tensor


def normal_base_samples(n: int, d: int, *, seed: int) -> Tensor:
    """Scrambled-Sobol samples of a standard normal in d dimensions, `n x d`, float64, the same for the same seed."""
    uniform = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed).draw(n, dtype=torch.float64)
    # Sobol points may be exactly 0, which the quantile function would send to minus infinity.
    samples: Tensor = torch.special.ndtri(uniform.clamp(1e-15, 1 - 1e-15))
    return samples


def gradient_increase_mc(grad_mean: Tensor, grad_sigma: Tensor, best_grad: Tensor, base_samples: Tensor) -> Tensor:
    r"""EI_s (`eq: EI_s`) by Monte Carlo, with the whitening of `eq: whitening`.

    .. math:: \frac1M \sum_k \max\bigl(\|m + s \odot z_k\|^2 - \|g^+\|^2, 0\bigr)

    Shapes: `... x d`, base samples `M x d -> ...`.
    """
    return _mean_increase(grad_mean.unsqueeze(-2) + grad_sigma.unsqueeze(-2) * base_samples, best_grad)


def gradient_increase_mc_full(grad_mean: Tensor, grad_chol: Tensor, best_grad: Tensor, base_samples: Tensor) -> Tensor:
    r"""EI_s (`eq: EI_s`) by Monte Carlo for correlated partial derivatives.

    .. math:: \frac1M \sum_k \max\bigl(\|m + L z_k\|^2 - \|g^+\|^2, 0\bigr)

    Shapes: `... x d, ... x d x d`, base samples `M x d -> ...`.
    """
    return _mean_increase(grad_mean.unsqueeze(-2) + base_samples @ grad_chol.transpose(-1, -2), best_grad)


def auxiliary_improvement_mc(
    mean: Tensor,
    sigma: Tensor,
    grad_mean: Tensor,
    grad_sigma: Tensor,
    best_g: Tensor | float,
    alpha: Tensor | float,
    base_samples: Tensor,
) -> Tensor:
    r"""EI_g (`eq: EI-GN`) by Monte Carlo, for f independent of its gradient.

    .. math:: \frac1M \sum_k \max\bigl(\mu + \sigma z_{k0} - \alpha\|m + s \odot z_{k,1:}\|^2 - g^+, 0\bigr)

    Shapes: `..., ... x d`, base samples `M x (d+1) -> ...`.
    """
    y = mean.unsqueeze(-1) + sigma.unsqueeze(-1) * base_samples[:, 0]
    grad = grad_mean.unsqueeze(-2) + grad_sigma.unsqueeze(-2) * base_samples[:, 1:]
    return _mean_improvement(y, grad, best_g, alpha)


def auxiliary_improvement_mc_full(
    joint_mean: Tensor, joint_chol: Tensor, best_g: Tensor | float, alpha: Tensor | float, base_samples: Tensor
) -> Tensor:
    r"""EI_g (`eq: EI-GN`) by Monte Carlo, for any joint Gaussian of (f, grad f), f first.

    .. math:: \frac1M \sum_k \max\bigl(f_k - \alpha\|G_k\|^2 - g^+, 0\bigr), \qquad (f_k, G_k) = \mu + L z_k

    Shapes: `... x (d+1), ... x (d+1) x (d+1)`, base samples `M x (d+1) -> ...`.
    """
    sample = joint_mean.unsqueeze(-2) + base_samples @ joint_chol.transpose(-1, -2)
    return _mean_improvement(sample[..., 0], sample[..., 1:], best_g, alpha)


def _mean_increase(grad: Tensor, best_grad: Tensor) -> Tensor:
    increase = grad.square().sum(-1) - best_grad.square().sum(-1).unsqueeze(-1)
    return increase.clamp(min=0).mean(-1)


def _mean_improvement(y: Tensor, grad: Tensor, best_g: Tensor | float, alpha: Tensor | float) -> Tensor:
    best, weight = (torch.as_tensor(x, dtype=y.dtype).unsqueeze(-1) for x in (best_g, alpha))
    return (y - weight * grad.square().sum(-1) - best).clamp(min=0).mean(-1)
