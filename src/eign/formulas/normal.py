r"""The upper tail of the standard normal, without cancellation.

Everything built on expected improvement needs the tail of a standard normal Z beyond a point z:

| symbol | in code | meaning |
|---|---|---|
| :math:`\log\Phi(-z)` | `log_probability` | P(Z > z) |
| :math:`w = \varphi(z)/\Phi(-z)` | `z + excess` | inverse Mills ratio, E[Z given Z > z] |
| :math:`e = w - z` | `excess` | E[Z - z given Z > z], positive and decreasing |
| :math:`v = 1 - w e` | `variance` | Var[Z given Z > z], between 0 and 1 |

They are closed under differentiation: :math:`(\log\Phi(-z))' = -w`, :math:`e' = -v` and :math:`v' = w (v - e^2)`.
"""

import math
from typing import Any

import torch
from torch import Tensor

# Left of the switch the definition is safe (it loses z^4 units in the last place, 50 fewer than float64 has);
# right of it Laplace's continued fraction converges to float64 in this many levels.
_SWITCH = 4.0
_LEVELS = 26


def normal_tail(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Log-probability, mean excess and variance of a standard normal beyond z.

    .. math:: \log\Phi(-z), \qquad e = \frac{\varphi(z)}{\Phi(-z)} - z, \qquad v = 1 - (z + e)\,e

    All keep their relative accuracy, and so do their derivatives, for z from -1e150 to 1e150; the textbook forms of e
    and v have lost all digits at z = 1e4, and so has torch's derivative of the logarithm at 1e8. Twice differentiable.
    Shapes: `... -> ..., ..., ...`.
    """
    log_probability, excess, variance = _NormalTail.apply(z)  # type: ignore[no-untyped-call]
    return log_probability, excess, variance


class _NormalTail(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
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
        return torch.special.log_ndtr(-z), excess, variance

    @staticmethod
    def backward(ctx: Any, log_probability_bar: Tensor, excess_bar: Tensor, variance_bar: Tensor) -> Tensor:
        z, excess, variance = ctx.saved_tensors
        mills = z + excess
        by_z: Tensor = (variance_bar * (variance - excess**2) - log_probability_bar) * mills - excess_bar * variance
        return by_z
