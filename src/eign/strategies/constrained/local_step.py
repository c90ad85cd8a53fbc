r"""A step of sequential optimization in a trust region: the constrained problem on the models, solved by SLSQP.

.. math:: \max_x\; \tilde f(x) \quad\text{with}\quad l_j \le \tilde c_j(x) \le u_j, \quad \|x - x_0\|_\infty \le r,
    \quad x \text{ in the region}

Where nothing nearby is feasible the limits give way at a price, with slacks :math:`s_j \ge 0`: then
:math:`\tilde f - \rho \sum_j s_j` is maximised with :math:`l_j - s_j \le \tilde c_j \le u_j + s_j`, which leads back.
The models are posterior means, shifted and tilted so that values and gradients at the center :math:`x_0` are exactly
those observed: what a nugget lets pass would else be the end of the digits.
"""

from collections.abc import Callable
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
# Violations below this, in standard deviations of what was told, are none.
_HOLDS: Final = 1e-8
# Steps aim at limits that are narrower by this share of the tolerance, so that rounding leaves them feasible.
_MARGIN: Final = 1e-3


class LocalStep(NamedTuple):
    """Where the models see the best point nearby.

    Attributes:
        x: `d`.
        value: The mean of f there, in the units of its model.
        violation: The sum of violations there, in the units of the models.
        rise: By how much the value is larger than at the center.
        relief: By how much the violation is smaller.
    """

    x: Array
    value: float
    violation: float
    rise: float
    relief: float

    def gain(self, penalty: float) -> float:
        """By how much the merit f - penalty * violations is to be better than at the center."""
        return self.rise + penalty * self.relief


def local_step(outputs: Outputs, row: int, radius: float, penalty: float) -> LocalStep:
    """The best step from a point told within `radius` in each reduced coordinate; `penalty` is for slacks."""
    problem = _Subproblem(outputs, row, radius)
    with single_threaded_blas():
        step = problem.solved(None)
        if step.violation <= _HOLDS:
            return step
        return max(step, problem.solved(penalty), key=lambda one: one.gain(penalty))


class _Subproblem:
    """The problem on the models around one point told, in reduced coordinates."""

    def __init__(self, outputs: Outputs, row: int, radius: float) -> None:
        self._region = region = outputs.standing.region
        self._start = region.reduced(np.array(outputs.standing.data.x[row]))
        self._low = np.maximum(self._start - radius, region.lower)
        self._high = np.minimum(self._start + radius, region.upper)
        self._corrected = _Corrected(outputs, row)
        self._lower, self._upper = _aimed(outputs)

    def solved(self, penalty: float | None) -> LocalStep:
        """Its solution; with a penalty for slacks, or with none of them."""
        region, count = self._region, len(self._start)
        slacks = 0 if penalty is None else len(self._lower)
        price = 0.0 if penalty is None else penalty

        def objective(z: Array) -> tuple[float, Array]:
            value, slope = self._corrected.at(z[:count])
            return -value[0] + price * z[count:].sum(), np.concatenate([-slope[0], np.full(slacks, price)])

        before, _ = self._corrected.at(self._start)
        slack = _violations(before[1:], self._lower, self._upper)
        w = self._start
        if count:  # in a region of a single point there is nothing to search
            w = self._searched(objective, np.append(np.clip(w, self._low, self._high), slack[:slacks]), slacks)
        x = region.project(region.restored(w))
        found, _ = self._corrected.at(region.reduced(x))
        missed = float(_violations(found[1:], self._lower, self._upper).sum())
        return LocalStep(x, float(found[0]), missed, float(found[0] - before[0]), float(slack.sum()) - missed)

    def _searched(self, objective: Callable[[Array], tuple[float, Array]], start: Array, slacks: int) -> Array:
        """Where SLSQP ends, without the slacks."""
        region, count = self._region, len(self._start)
        rows = rows_of_region(np.hstack([region.matrix, np.zeros((len(region.matrix), slacks))]), region.limit)
        low, high = np.append(self._low, np.zeros(slacks)), np.append(self._high, np.full(slacks, np.inf))
        end = minimize(  # type: ignore[call-overload]  # the stubs want one-dimensional arrays by type
            objective,
            start,
            jac=True,
            method="SLSQP",
            bounds=np.column_stack([low, high]),
            constraints=[*_limits(self._corrected, self._lower, self._upper, count, slacks=slacks), *rows],
            options={"ftol": _ACCURACY, "maxiter": _ITERATIONS},
        )
        return np.clip(end.x[:count], self._low, self._high) if np.isfinite(end.x).all() else self._start


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


def _limits(corrected: _Corrected, lower: Array, upper: Array, count: int, *, slacks: int) -> list[dict[str, Any]]:
    """Limits, with slacks or without, as SLSQP takes them."""
    found = []
    is_equal = (lower == upper) & (slacks == 0)
    kinds = (("eq", is_equal, 1.0, lower), ("ineq", ~is_equal, -1.0, upper), ("ineq", ~is_equal, 1.0, lower))
    for kind, mask, sign, limit in kinds:
        rows = np.flatnonzero(mask & np.isfinite(limit))
        if not len(rows):
            continue
        give = np.eye(len(limit))[rows][:, :slacks]

        def values(z: Array, sign: float = sign, rows: Any = rows, limit: Array = limit, give: Array = give) -> Array:
            return np.asarray(sign * (corrected.at(z[:count])[0][1:][rows] - limit[rows]) + give @ z[count:])

        def slopes(z: Array, sign: float = sign, rows: Any = rows, give: Array = give) -> Array:
            return np.hstack([sign * corrected.at(z[:count])[1][1:][rows], give])

        found.append({"type": kind, "fun": values, "jac": slopes})
    return found
