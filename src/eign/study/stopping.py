r"""When a search may stop: nothing is left to gain near the best point, and nothing is expected elsewhere.

| symbol | meaning |
|---|---|
| s | what values differ by: from the best to the fourth worst of five, so that a few huge values do not count |
| g | norm of the projected gradient at the best point, in the unit cube; with constraints its KKT residual |
| e | the largest improvement that the method expected of any of its last d + 1 points |
| k | evaluations since the best value improved by more than tol s |

A search has converged if :math:`g \le \mathrm{tol}\,s`, :math:`e \le \mathrm{tol}\,s` and :math:`k \ge 5 (d + 1)`. The
first is about the basin, the others about the rest of the box, as far as the method has looked: a basin that it knows
nothing of is no reason to go on. With constraints all values are those of feasible points, and an infeasible best point
has not converged.
"""

from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign.data import Observations

_WORST_SHARE: Final = 0.2
_PATIENCE: Final = 5


class Convergence(NamedTuple):
    """How near a study is to an optimum, in units of s; None where it is not known.

    Attributes:
        projected_gradient: g / s.
        expected_improvement: e / s.
    """

    projected_gradient: float | None
    expected_improvement: float | None


def convergence(data: Observations, norm: float, gains: list[float]) -> Convergence:
    """Of observations in the unit cube that are maximised.

    Args:
        data: All that was told; infeasible points without a value.
        norm: g, NaN if it is not known.
        gains: What the method expected of the points that it proposed, where it did.
    """
    scale = spread(data)
    if scale is None:
        return Convergence(None, None)
    expected = max(gains[-(data.dim + 1) :]) / scale if len(gains) > data.dim else None
    return Convergence(norm / scale if np.isfinite(norm) else None, expected)


def spread(data: Observations) -> float | None:
    """The scale s; None if there is none.

    >>> spread(Observations(np.linspace(0, 1, 5)[:, None], [-1e9, -3.0, -2.0, 0.0, -1.0]))
    3.0
    """
    values: Array = np.sort(data.y[data.has_y])
    if not len(values):
        return None
    scale = float(values[-1] - values[int(_WORST_SHARE * len(values))])
    return scale if scale > 0.0 else None


def is_stalled(data: Observations, tol: float) -> bool:
    """Whether the last evaluations have improved the best value by no more than tol s."""
    patience, scale = _PATIENCE * (data.dim + 1), spread(data)
    if scale is None or len(data) <= patience:
        return False
    best = np.fmax.accumulate(np.where(data.has_y, data.y, -np.inf))
    return bool(best[-1] - best[-1 - patience] <= tol * scale)
