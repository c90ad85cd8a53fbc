r"""How probable it is that constraints hold, and improvement that counts only there.

| symbol | in code | meaning |
|---|---|---|
| :math:`\mu_j, \sigma_j` | `mean`, `sigma` | posterior of the constraint :math:`c_j` at x, `... x m` |
| :math:`l_j, u_j` | `lower`, `upper` | its limits, infinite where open, `m` |

The outputs are independent given the data, so that probabilities multiply.
"""

from typing import Any

import torch
from torch import Tensor

from eign.formulas.feasibility_numpy import log_probability_of_feasibility as _closed_form
from eign.formulas.improvement import log_expected_improvement


def log_probability_of_feasibility(mean: Tensor, sigma: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    r"""Log of the probability that all constraints hold, `... x m, ... x m, m, m -> ...`.

    .. math:: \sum_j \log\bigl(\Phi((u_j - \mu_j)/\sigma_j) - \Phi((l_j - \mu_j)/\sigma_j)\bigr)

    Accurate deep in both tails and for intervals of any width; differentiable once. An equality is given a tolerance
    on both sides.
    """
    parts = [
        _Interval.apply(mean[..., j], sigma[..., j] ** 2, float(lower[j]), float(upper[j]))  # type: ignore[no-untyped-call]
        for j in range(mean.shape[-1])
    ]
    return torch.stack(parts, dim=-1).sum(-1)


def constrained_log_expected_improvement(
    mean: Tensor,
    sigma: Tensor,
    best: Tensor | float,
    *,
    constraint_mean: Tensor,
    constraint_sigma: Tensor,
    lower: Tensor,
    upper: Tensor,
) -> Tensor:
    r"""Log of the expected improvement that is feasible, for f independent of the constraints.

    .. math:: \log E[\max(f - f^+, 0)] + \sum_j \log P(l_j \le c_j \le u_j)

    Shapes: `...` for f, `... x m` for the constraints, `m` for the limits.
    """
    feasible = log_probability_of_feasibility(constraint_mean, constraint_sigma, lower, upper)
    return log_expected_improvement(mean, sigma, best) + feasible


class _Interval(torch.autograd.Function):
    """The closed form of one constraint, with its derivatives by mean and variance."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, variance: Tensor, lower: float, upper: float) -> Tensor:
        first, second = (part.detach().double().reshape(-1).numpy() for part in (mean, variance))
        found = _closed_form(first, second, lower, upper)
        value, by_mean, by_variance = (torch.from_numpy(part).reshape(mean.shape) for part in found)
        ctx.save_for_backward(by_mean, by_variance)
        return value

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, Tensor, None, None]:
        by_mean, by_variance = ctx.saved_tensors
        return cotangent * by_mean, cotangent * by_variance, None, None
