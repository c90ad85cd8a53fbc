r"""How much the squared gradient norm grows beyond the incumbent's: EI_s exactly, and the paper's EI_s-bar.

| symbol | in code | meaning |
|---|---|---|
| :math:`m = \mu^\nabla` | `grad_mean` | posterior mean of the gradient at x, `... x d` |
| :math:`s` | `grad_sigma` | its standard deviations, for independent partial derivatives |
| :math:`\Sigma^\nabla = L L^\top` | `grad_cov`, `grad_chol` | its covariance and Cholesky factor, for correlated ones |
| :math:`g^+ = \nabla f(x^+)` | `best_grad` | the incumbent's gradient |
| :math:`z = L^{-1}(g^+ - m)` | `z` | whitened incumbent gradient |
| :math:`w = \varphi(z)/\Phi(-z)` | `z + e` | inverse Mills ratio |
| :math:`e = w - z,\; v = 1 - w e` | `e`, `v` | see :func:`eign.formulas.normal_tail` |

EI_s and EI_s-bar share their integrand but not their region, and are not close in value: EI_s-bar can be negative
and changes when a coordinate is mirrored, EI_s is non-negative and invariant. Neither estimates the other.
"""

import torch
from torch import Tensor

from eign.formulas.characteristic import expected_positive_part, expected_positive_part_full
from eign.formulas.normal import normal_tail

# A smaller standard deviation is zero: at a known point the formulas take their limits, without 0/0 on the way.
_KNOWN = 1e-140


def orthant_gradient_increase(grad_mean: Tensor, grad_sigma: Tensor, best_grad: Tensor) -> Tensor:
    r"""EI_s-bar (`eq: EI_s overline`) for independent partial derivatives, in O(d).

    .. math:: \prod_i \Phi(-z_i) \sum_i \bigl( 2 g^+_i s_i e_i + s_i^2 (e_i^2 + v_i) \bigr)

    Equal to the paper's :math:`\prod\Phi(-z_i)\,(|m|^2 - |g^+|^2 + 2\sum m_i s_i w_i + \sum s_i^2(1 + z_i w_i))`, with
    m = g+ - s z put in so that nothing cancels, and the product taken in log space. Shapes: `... x d -> ...`.
    """
    grad_sigma = grad_sigma.clamp(min=_KNOWN)
    z = (best_grad - grad_mean) / grad_sigma
    log_probability, e, v = normal_tail(z)
    bracket = 2 * best_grad * (grad_sigma * e) + (grad_sigma * e) ** 2 + grad_sigma**2 * v
    return log_probability.sum(-1).exp() * bracket.sum(-1)


def orthant_gradient_increase_full(grad_mean: Tensor, grad_chol: Tensor, best_grad: Tensor) -> Tensor:
    r"""EI_s-bar (`eq: EI_s overline`) for correlated partial derivatives, in O(d^2).

    .. math:: \prod_i \Phi(-z_i) \Bigl( 2\,g^{+\top} L e + \|L e\|^2 + \sum_i (L^\top L)_{ii}\, v_i \Bigr)

    The paper prints :math:`\mathrm{tr}(\Sigma(\cdot))` in `eq: three_terms_simplified_2`; with z white,
    :math:`\|m + Lz\|^2` holds :math:`z^\top L^\top L z`, so it must be :math:`L^\top L`. For diagonal L they agree.
    Shapes: `... x d, ... x d x d -> ...`.
    """
    z = torch.linalg.solve_triangular(grad_chol, (best_grad - grad_mean).unsqueeze(-1), upper=False).squeeze(-1)
    log_probability, e, v = normal_tail(z)
    step = (grad_chol @ e.unsqueeze(-1)).squeeze(-1)
    bracket = (2 * best_grad * step + step**2).sum(-1) + (grad_chol.square().sum(-2) * v).sum(-1)
    return log_probability.sum(-1).exp() * bracket


def gradient_increase(grad_mean: Tensor, grad_sigma: Tensor, best_grad: Tensor) -> Tensor:
    r"""EI_s (`eq: EI_s`) exactly, for independent partial derivatives.

    .. math:: E\bigl[\max(\|G\|^2 - \|g^+\|^2, 0)\bigr], \qquad G \sim N(m, \mathrm{diag}(s^2))

    The generalized noncentral chi-square tail of `eq: EI_s chi square`, by
    :func:`eign.formulas.expected_positive_part`; in one dimension by its closed form. Shapes: `... x d -> ...`.
    """
    grad_mean, grad_sigma, best_grad = torch.broadcast_tensors(grad_mean, grad_sigma, best_grad)
    if grad_mean.shape[-1] == 1:
        # In one dimension the region |G| > |g+| is two orthants.
        radius = best_grad.abs()
        return orthant_gradient_increase(grad_mean, grad_sigma, radius) + orthant_gradient_increase(
            -grad_mean, grad_sigma, radius
        )
    unit = _magnitude(grad_mean, grad_sigma, best_grad)
    grad_mean, variance, best_grad = grad_mean / unit, (grad_sigma / unit) ** 2, best_grad / unit
    offset = ((grad_mean - best_grad) * (grad_mean + best_grad)).sum(-1)
    increase = expected_positive_part(
        offset, 4 * (grad_mean**2 * variance).sum(-1), 1.0, variance, 2 * variance * grad_mean
    )
    return unit.squeeze(-1) ** 2 * increase


def gradient_increase_full(grad_mean: Tensor, grad_cov: Tensor, best_grad: Tensor) -> Tensor:
    r"""EI_s (`eq: EI_s`) exactly, for correlated partial derivatives: G ~ N(m, grad_cov).

    .. math:: E\bigl[\max(\|G\|^2 - \|g^+\|^2, 0)\bigr]

    Shapes: `... x d, ... x d x d -> ...`.
    """
    if grad_cov.shape[-1] == 1:
        return gradient_increase(grad_mean, grad_cov.squeeze(-1).clamp(min=_KNOWN**2).sqrt(), best_grad)
    grad_mean, best_grad = torch.broadcast_tensors(grad_mean, best_grad)
    unit = _magnitude(grad_mean, grad_cov.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt(), best_grad)
    grad_mean, grad_cov, best_grad = grad_mean / unit, grad_cov / unit.unsqueeze(-1) ** 2, best_grad / unit
    offset = ((grad_mean - best_grad) * (grad_mean + best_grad)).sum(-1)
    moved = (grad_cov @ grad_mean.unsqueeze(-1)).squeeze(-1)
    increase = expected_positive_part_full(offset, 4 * (grad_mean * moved).sum(-1), 1.0, grad_cov, 2 * moved)
    return unit.squeeze(-1) ** 2 * increase


def _magnitude(*parts: Tensor) -> Tensor:
    """The largest entry, `... x 1`, to measure everything in: fourth powers of 1e100 overflow."""
    largest = torch.stack([part.detach().abs().amax(-1, keepdim=True) for part in torch.broadcast_tensors(*parts)])
    return largest.amax(0).clamp(min=_KNOWN)
