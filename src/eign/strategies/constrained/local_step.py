r"""A step of sequential optimization in a trust region: the constrained problem on the models, solved by SLSQP.

.. math:: \max_{x,\, s \ge 0}\; \tilde f(x) - \rho \sum_j s_j \quad\text{with}\quad
    l_j - s_j \le \tilde c_j(x) \le u_j + s_j, \quad \|x - x_0\|_\infty \le r, \quad x \text{ in the region}

The slacks make it solvable where no point nearby is feasible: then it restores feasibility first. Its value is the
model of the merit :math:`f - \rho \sum_j \max(l_j - c_j, c_j - u_j, 0)`, by which steps are judged. The models are
posterior means, shifted and tilted so that values and gradients at the center :math:`x_0` are exactly those observed:
what a nugget lets pass would else be the end of the digits.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import minimize

from eign.arrays import Array
from eign.constraints import FEASIBILITY_TOL
from eign.numerics.threads import single_threaded_blas
from eign.strategies.constrained.descent import rows_of_region
from eign.strategies.constrained.outputs import Outputs

_ITERATIONS: Final = 60
_ACCURACY: Final = 1e-11
# Steps aim at limits that are narrower by this share of the tolerance, so that rounding leaves them feasible.
_MARGIN: Final = 0.1


class LocalStep(NamedTuple):
    """Where the models see the best merit nearby.

    Attributes:
        x: `d`.
        gain: By how much the merit is to be better than at the center, in the units of the models.
        value: The mean of f there, in the units of its model.
        violation: The sum of violations there, in the units of the models.
    """

    x: Array
    gain: float
    value: float
    violation: float


def local_step(outputs: Outputs, row: int, radius: float, penalty: float) -> LocalStep:
    """The best step from a point told within `radius` in each reduced coordinate."""
    standing = outputs.standing
    region, center = standing.region, np.array(standing.data.x[row])
    start = region.reduced(center)
    corrected = _Corrected(outputs, row)
    lower, upper = _aimed(outputs)
    low, high = np.maximum(start - radius, region.lower), np.minimum(start + radius, region.upper)
    count, slacks = len(start), len(lower)

    def objective(z: Array) -> tuple[float, Array]:
        value, slope = corrected.at(z[:count])
        return -value[0] + penalty * z[count:].sum(), np.concatenate([-slope[0], np.full(slacks, penalty)])

    constraints = _elastic(corrected, lower, upper, count)
    rows = rows_of_region(np.hstack([region.matrix, np.zeros((len(region.matrix), slacks))]), region.limit)
    value, _ = corrected.at(start)
    slack = _violations(value[1:], lower, upper)
    bounds = np.column_stack([np.append(low, np.zeros(slacks)), np.append(high, np.full(slacks, np.inf))])
    with single_threaded_blas():
        end = minimize(  # type: ignore[call-overload]  # the stubs want one-dimensional arrays by type
            objective,
            np.append(np.clip(start, low, high), slack),
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints=[*constraints, *rows],
            options={"ftol": _ACCURACY, "maxiter": _ITERATIONS},
        )
    w = np.clip(end.x[:count], low, high) if np.isfinite(end.x).all() else start
    x = region.project(region.restored(w))
    found, _ = corrected.at(region.reduced(x))
    missed = float(_violations(found[1:], lower, upper).sum())
    gain = float(found[0] - value[0]) - penalty * (missed - float(slack.sum()))
    return LocalStep(x, gain, float(found[0]), missed)


class _Corrected:
    """The means of all outputs in reduced coordinates, exact to first order at the center."""

    def __init__(self, outputs: Outputs, row: int) -> None:
        self._outputs, self._region = outputs, outputs.standing.region
        self._center = np.array(outputs.standing.data.x[row])
        value, slope = outputs.means(self._center)
        # What was not observed, or scatters, is the model's own.
        self._shift = np.nan_to_num(outputs.told[row] - value, nan=0.0)
        self._tilt = np.nan_to_num(outputs.slopes[row] - slope, nan=0.0)
        self._last: tuple[bytes, Array, Array] | None = None

    def at(self, w: Array) -> tuple[Array, Array]:
        """Values `m+1` and gradients `(m+1) x q`."""
        if self._last is None or self._last[0] != w.tobytes():
            x = self._region.restored(w)
            value, slope = self._outputs.means(x)
            value = value + self._shift + self._tilt @ (x - self._center)
            self._last = (w.tobytes(), value, (slope + self._tilt) @ self._region.basis)
        return self._last[1:]


def _aimed(outputs: Outputs) -> tuple[Array, Array]:
    """The limits, narrower by a share of the tolerance where there is room."""
    lower, upper = outputs.limits
    margin = _MARGIN * FEASIBILITY_TOL * outputs.tolerances
    room = np.minimum(margin, 0.5 * (upper - lower))
    return lower + room, upper - room


def _violations(values: Array, lower: Array, upper: Array) -> Array:
    return np.maximum(np.maximum(lower - values, values - upper), 0.0)


def _elastic(corrected: _Corrected, lower: Array, upper: Array, count: int) -> list[dict[str, Any]]:
    """Limits with slacks, as SLSQP takes them."""
    found = []
    for sign, limit in ((-1.0, upper), (1.0, lower)):
        rows = np.flatnonzero(np.isfinite(limit))
        if not len(rows):
            continue
        slack = np.eye(len(limit))[rows]

        def values(z: Array, sign: float = sign, rows: Any = rows, limit: Array = limit) -> Array:
            return np.asarray(sign * (corrected.at(z[:count])[0][1:][rows] - limit[rows]) + z[count:][rows])

        def slopes(z: Array, sign: float = sign, rows: Any = rows, slack: Array = slack) -> Array:
            return np.hstack([sign * corrected.at(z[:count])[1][1:][rows], slack])

        found.append({"type": "ineq", "fun": values, "jac": slopes})
    return found
