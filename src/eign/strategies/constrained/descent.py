"""SLSQP on the functions themselves, replayed over the evaluations that exist: see `local_runs` for how that works."""

import math
from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
from scipy.optimize import minimize

from eign.arrays import LARGEST, Array
from eign.data import Observations
from eign.space import SAME_POINT, nearest
from eign.strategies.constrained.standing import Standing
from eign.strategies.design import N_INIT
from eign.strategies.local_runs import Replay, next_point
from eign.strategies.options import Option, more_than
from eign.strategies.strategy import Proposal, State, Strategy

# Values and slopes in units of the first step are at most so large: SciPy takes no infinite ones.
_STEEPEST: Final = 1e100


class _Needed(Exception):  # noqa: N818  # no error: this is how the replay leaves SciPy's loop
    def __init__(self, point: Array) -> None:
        self.point = point


@final
class MultistartSLSQP(Strategy):
    """Runs of SLSQP from the points of the initial design, best first, and then from random points of the region.

    What a user with gradients of objective and constraints would run without a surrogate. A run ends when it has
    converged. What is missing of a gradient counts as zero. A failed point is a bowl above the best point of its run.

    Memory: see `local_runs`.
    """

    handles_constraints = handles_linear = True

    @property
    def options(self) -> Mapping[str, Option]:
        """The design, the first step and when a run has converged."""
        return {
            **N_INIT,
            "first_step": Option(0.25, more_than(0.0), "length of the first step of a run, in the unit cube"),
            "ftol": Option(1e-10, more_than(0.0), "a run ends when f gains less than this, relative to its first step"),
        }

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The point that the first run which is not waiting for a pending one needs."""
        standing = Standing.of(state, data)
        return next_point(
            state, data, pending, lambda start: replay(start, standing, state.options), order=standing.order.tolist()
        )


class _Evaluations:
    """Values and slopes of all outputs at the points that SLSQP asks for, from those that were told."""

    def __init__(self, standing: Standing, first_step: float) -> None:
        data = standing.data
        self._standing, self._step = standing, first_step
        # A point that failed at first and then did not is the one that did not.
        self._rows = np.argsort(~data.has_y, kind="stable")
        self._points = data.x[self._rows]
        self.used: list[int] = []
        self._scale, self._offset = 1.0, 0.0
        self._best: tuple[float, Array] | None = None
        self._last: tuple[bytes, float, Array, Array, Array] | None = None

    def at(self, u: Array) -> tuple[float, Array, Array, Array]:
        """Descent and its gradient, constraints in scales and their gradients, `d -> 1, d, m, m x d`."""
        if self._last is not None and self._last[0] == u.tobytes():
            return self._last[1:]
        inside = self._standing.region.project(u)
        index, distance = nearest(self._points, inside)
        if distance > SAME_POINT:
            raise _Needed(inside)
        row = int(self._rows[index])
        self.used.append(row)
        found = self._told(row, u)
        self._last = (u.tobytes(), *found)
        return found

    def _told(self, row: int, u: Array) -> tuple[float, Array, Array, Array]:
        data, standing = self._standing.data, self._standing
        away = u - data.x[row]
        values = standing.values[row]
        if not (data.has_y[row] and np.isfinite(values).all()):
            return self._failed(u)
        # To first order, as the point is the same only up to `SAME_POINT`.
        gradient = np.where(data.has_grad[row], data.grad[row], 0.0)
        slopes = [np.where(each.has_grad[row], each.grad[row], 0.0) for each in data.constraints]
        jacobian = _bounded(np.array(slopes).reshape(len(values), data.dim), standing.scales[:, None])
        if len(self.used) == 1:
            self._offset, self._scale = float(data.y[row]), min(self._step / (math.hypot(*gradient) or 1.0), LARGEST)
        descent = -self._scale * (float(data.y[row]) - self._offset + float(gradient @ away))
        descent = float(np.clip(descent, -_STEEPEST, _STEEPEST))
        if self._best is None or descent <= self._best[0]:
            self._best = (descent, u.copy())
        with np.errstate(over="ignore"):
            slope = np.clip(-self._scale * gradient, -_STEEPEST, _STEEPEST)
        return descent, slope, _bounded(values, standing.scales) + jacobian @ away, jacobian

    def _failed(self, u: Array) -> tuple[float, Array, Array, Array]:
        """A bowl above the best point, and constraints that hold: the line search turns back."""
        value, best = self._best or (0.0, u)
        away = u - best
        limits = np.where(np.isfinite(self._standing.lower), self._standing.lower, self._standing.upper)
        flat = np.zeros((len(limits), len(u)))
        return value + 1.0 + float(away @ away), 2.0 * away, _bounded(limits, self._standing.scales), flat


def _bounded(values: Array, scales: Array) -> Array:
    """Values in scales, at most as large as SciPy can take."""
    with np.errstate(over="ignore"):
        return np.clip(values / scales, -_STEEPEST, _STEEPEST)


def replay(start: Array, standing: Standing, options: Mapping[str, Any]) -> Replay:
    r"""Run SLSQP from `start` over the evaluations so far until it ends or needs another one.

    It minimises :math:`-(f(u) - f(u_0)) \cdot s / \|\nabla f(u_0)\|` with s the length of the first step, in reduced
    coordinates of the region, with constraints in their scales: units do not matter.
    """
    region, evaluations = standing.region, _Evaluations(standing, options["first_step"])

    def at(w: Array) -> tuple[float, Array, Array, Array]:
        value, slope, values, jacobian = evaluations.at(region.restored(w))
        return value, slope @ region.basis, values, jacobian @ region.basis

    lower, upper = (
        np.where(np.isinf(limits), limits, _bounded(limits, standing.scales))
        for limits in (standing.lower, standing.upper)
    )
    constraints = limited(at, lower, upper)
    constraints += rows_of_region(region.matrix, region.limit)
    bounds = np.column_stack([region.lower, region.upper])
    try:
        if not len(bounds):  # a single point, where SLSQP has nothing to search
            evaluations.at(region.center)
            return Replay(None, frozenset(evaluations.used))
        minimize(  # type: ignore[call-overload]  # the stubs want one-dimensional arrays by type
            lambda w: at(w)[:2],
            region.reduced(start),
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"ftol": options["ftol"], "maxiter": 200},
        )
    except _Needed as needed:
        return Replay(needed.point, frozenset(evaluations.used))
    return Replay(None, frozenset(evaluations.used))


def limited(at: Any, lower: Array, upper: Array) -> list[dict[str, Any]]:
    """The constraints lower <= c <= upper as SLSQP takes them; values and gradients are the last two parts of `at`."""
    found = []
    is_equal = lower == upper
    for kind, mask, sign, limit in (
        ("eq", is_equal, 1.0, lower),
        ("ineq", np.isfinite(lower) & ~is_equal, 1.0, lower),
        ("ineq", np.isfinite(upper) & ~is_equal, -1.0, upper),
    ):
        rows = np.flatnonzero(mask)
        if len(rows):
            found.append(
                {
                    "type": kind,
                    "fun": lambda w, rows=rows, sign=sign, limit=limit: sign * (at(w)[2][rows] - limit[rows]),
                    "jac": lambda w, rows=rows, sign=sign: sign * at(w)[3][rows],
                }
            )
    return found


def rows_of_region(matrix: Array, limit: Array) -> list[dict[str, Any]]:
    """The rows matrix w <= limit as SLSQP takes them."""
    if not len(matrix):
        return []
    return [{"type": "ineq", "fun": lambda w: limit - matrix @ w, "jac": lambda _: -matrix}]
