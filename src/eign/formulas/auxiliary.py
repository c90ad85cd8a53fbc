r"""The stationarity-aware objective g and the improvements built on it: EI_g exactly, its lower bound, and EI-GN.

| symbol | in code | meaning |
|---|---|---|
| :math:`g = f - \alpha\|\nabla f\|^2` | `auxiliary_objective` | value and stationarity in one number (`eq: g`) |
| :math:`\alpha` | `alpha` | weight of the stationarity term; 0 recovers EI exactly |
| :math:`g(x^+)` | `best_g` | the largest g over the data (EI_g's own incumbent) |
| :math:`c = \mathrm{cov}(f, \nabla f)` | `cross_cov` | `... x d`; zero for independent models |
"""

import torch
from torch import Tensor

from eign.formulas.characteristic import expected_positive_part, expected_positive_part_full
from eign.formulas.gradient_norm import gradient_increase, orthant_gradient_increase
from eign.formulas.improvement import expected_improvement


def auxiliary_objective(y: Tensor, grad: Tensor, alpha: Tensor | float) -> Tensor:
    r"""The auxiliary objective (`eq: g`).

    .. math:: g(x) = f(x) - \alpha\,\|\nabla f(x)\|_2^2

    Shapes: `..., ... x d -> ...`.
    """
    return y - alpha * grad.square().sum(-1)


def auxiliary_improvement(
    mean: Tensor,
    sigma: Tensor,
    grad_mean: Tensor,
    grad_sigma: Tensor,
    best_g: Tensor | float,
    alpha: Tensor | float,
) -> Tensor:
    r"""EI_g (`eq: EI-GN`, which is its label in the paper) exactly, for f independent of its gradient.

    .. math:: E\bigl[\max(f - \alpha\|G\|^2 - g^+, 0)\bigr], \qquad
        f \sim N(\mu, \sigma^2),\; G \sim N(m, \mathrm{diag}(s^2))

    See :func:`eign.formulas.expected_positive_part` for the method and its accuracy. Shapes: `..., ... x d -> ...`.
    """
    if not isinstance(alpha, Tensor) and alpha == 0:
        return _improvement_of_f(mean, sigma, best_g, grad_mean)
    alpha = torch.as_tensor(alpha, dtype=mean.dtype)
    grad_mean, grad_sigma = torch.broadcast_tensors(grad_mean, grad_sigma)
    variance = grad_sigma**2
    pull = -2 * alpha.unsqueeze(-1) * grad_mean
    exact = expected_positive_part(
        auxiliary_objective(mean, grad_mean, alpha) - best_g,
        sigma**2 + (pull**2 * variance).sum(-1),
        -alpha,
        variance,
        pull * variance,
    )
    return _with_limit(exact, alpha, mean, sigma, best_g)


def auxiliary_improvement_full(
    mean: Tensor,
    sigma: Tensor,
    grad_mean: Tensor,
    grad_cov: Tensor,
    best_g: Tensor | float,
    alpha: Tensor | float,
    *,
    cross_cov: Tensor | None = None,
) -> Tensor:
    r"""EI_g (`eq: EI-GN`) exactly, for any joint Gaussian of f and its gradient.

    .. math:: E\bigl[\max(f - \alpha\|G\|^2 - g^+, 0)\bigr], \qquad
        \begin{pmatrix} f \\ G \end{pmatrix} \sim N\left( \begin{pmatrix} \mu \\ m \end{pmatrix},
        \begin{pmatrix} \sigma^2 & c^\top \\ c & \Sigma \end{pmatrix} \right)

    `cross_cov` is c; without it f and its gradient are independent. Shapes: `..., ... x d, ... x d x d -> ...`.
    """
    if not isinstance(alpha, Tensor) and alpha == 0:
        return _improvement_of_f(mean, sigma, best_g, grad_mean)
    alpha = torch.as_tensor(alpha, dtype=mean.dtype)
    grad_mean = grad_mean.expand(*grad_mean.shape[:-1], grad_cov.shape[-1])
    cross = torch.zeros_like(grad_mean) if cross_cov is None else cross_cov
    pull = -2 * alpha.unsqueeze(-1) * grad_mean
    moved = (grad_cov @ pull.unsqueeze(-1)).squeeze(-1)
    exact = expected_positive_part_full(
        auxiliary_objective(mean, grad_mean, alpha) - best_g,
        sigma**2 + (pull * (2 * cross + moved)).sum(-1),
        -alpha,
        grad_cov,
        cross + moved,
    )
    return _with_limit(exact, alpha, mean, sigma, best_g)


def _improvement_of_f(mean: Tensor, sigma: Tensor, best_g: Tensor | float, grad_mean: Tensor) -> Tensor:
    """EI in the batch shape of EI_g: without a weight, the gradient's moments do not even have to be known."""
    value = expected_improvement(mean, sigma, best_g)
    return value.expand(torch.broadcast_shapes(value.shape, grad_mean.shape[:-1]))


def _with_limit(exact: Tensor, alpha: Tensor, mean: Tensor, sigma: Tensor, best_g: Tensor | float) -> Tensor:
    """The value of EI, to the last bit, where alpha is zero; the derivatives of EI_g everywhere."""
    plain = expected_improvement(mean, sigma, best_g).detach() + (exact - exact.detach())
    return torch.where(alpha == 0, plain, exact)


def auxiliary_improvement_bound(
    mean: Tensor,
    sigma: Tensor,
    grad_mean: Tensor,
    grad_sigma: Tensor,
    best: Tensor | float,
    best_grad: Tensor,
    alpha: Tensor | float,
) -> Tensor:
    r"""The paper's lower bound of EI_g (`eq: EI-GN lower bound`), with EI_s taken exactly.

    .. math:: EI_g(x) \ge EI_f(x) - \alpha\, EI_s(x)

    The two sides refer to one common incumbent, with value `best` and gradient `best_grad`.
    The paper estimates EI_s by Monte Carlo: :func:`eign.formulas.gradient_increase_mc`.
    """
    return expected_improvement(mean, sigma, best) - alpha * gradient_increase(grad_mean, grad_sigma, best_grad)


def ei_gn(
    mean: Tensor,
    sigma: Tensor,
    grad_mean: Tensor,
    grad_sigma: Tensor,
    best: Tensor | float,
    best_grad: Tensor,
    alpha: Tensor | float,
) -> Tensor:
    r"""EI-GN (`eq: EI-GN final`), the paper's acquisition function.

    .. math:: EI_f(x) - \alpha\,\overline{EI}_s(x)

    Shapes: `..., ... x d -> ...`.
    """
    return expected_improvement(mean, sigma, best) - alpha * orthant_gradient_increase(grad_mean, grad_sigma, best_grad)


def stationarity_event(
    y: Tensor,
    grad: Tensor,
    best: Tensor | float,
    best_grad: Tensor,
    alpha: float,
    *,
    delta: float,
    c: float,
) -> Tensor:
    r"""The event on which lower gradient norm pays for lower value (`eq:event_def`).

    .. math:: \{\|\nabla f\|^2 \le \|g^+\|^2 - \delta\} \cap \{f \ge f^+ - \alpha c \delta\}

    On it g improves by at least :math:`\alpha(1-c)\delta` (`eq:g_decomposition`), so
    :math:`EI_g \ge \alpha(1-c)\delta\,P(\text{event})`. Shapes: `..., ... x d -> ...` (boolean).
    """
    calmer = grad.square().sum(-1) <= best_grad.square().sum(-1) - delta
    return calmer & (y >= best - alpha * c * delta)
