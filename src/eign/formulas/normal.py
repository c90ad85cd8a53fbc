r"""The upper tail of the standard normal, without cancellation.

Everything built on expected improvement needs three numbers of a standard normal Z cut off below at z:

| symbol | in code | meaning |
|---|---|---|
| :math:`\log\Phi(-z)` | `torch.special.log_ndtr(-z)` | log-probability of the tail |
| :math:`w = \varphi(z)/\Phi(-z)` | `z + excess` | inverse Mills ratio, E[Z given Z > z] |
| :math:`e = w - z` | `excess` | E[Z - z given Z > z], positive and decreasing |
| :math:`v = 1 - w e` | `variance` | Var[Z given Z > z], between 0 and 1 |

The pair (e, v) is closed under differentiation, :math:`e' = -v` and :math:`v' = w (v - e^2)`.
"""

import math

import torch
from torch import Tensor

# Left of the switch the definition is safe (it loses z^4 units in the last place, 50 fewer than float64 has);
# right of it Laplace's continued fraction converges to float64 in this many levels.
_SWITCH = 4.0
_LEVELS = 26


def tail_moments(z: Tensor) -> tuple[Tensor, Tensor]:
    r"""Mean excess and variance of a standard normal beyond z: E[Z - z given Z > z] and Var[Z given Z > z].

    .. math:: e = \frac{\varphi(z)}{\Phi(-z)} - z, \qquad v = 1 - (z + e)\,e

    Both keep their relative accuracy for any z, where the textbook form loses all digits beyond z = 1e4.
    Twice differentiable. Shapes: `... -> ..., ...`.
    """
    excess, variance = _TailMoments.apply(z)  # type: ignore[no-untyped-call]
    return excess, variance


class _TailMoments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, z: Tensor) -> tuple[Tensor, Tensor]:
        near = z.clamp(max=_SWITCH)
        mills = math.sqrt(2 / math.pi) / torch.special.erfcx(near * math.sqrt(0.5))
        near_excess = mills - near
        # w = z + 1/(z + 2/(z + 3/(z + ...))): with t_k = z + k/t_{k+1}, e = 1/t_2 and 1 - z e = 2/(t_2 t_3).
        far = z.clamp(min=_SWITCH)
        t3 = far
        for level in range(_LEVELS, 2, -1):
            t3 = far + level / t3
        t2 = far + 2 / t3
        is_near = z < _SWITCH
        excess = torch.where(is_near, near_excess, 1 / t2)
        variance = torch.where(is_near, 1 - mills * near_excess, (2 - t3 / t2) / (t2 * t3))
        ctx.save_for_backward(z, excess, variance)
        return excess, variance

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: torch.autograd.function.FunctionCtx, excess_bar: Tensor, variance_bar: Tensor
    ) -> Tensor:
        z, excess, variance = ctx.saved_tensors  # type: ignore[attr-defined]
        return variance_bar * (z + excess) * (variance - excess**2) - excess_bar * variance
