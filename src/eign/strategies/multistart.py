"""Multi-start L-BFGS-B on the function itself: what a user with gradients would run without a surrogate.

How SciPy's program, which calls the function, becomes a method that is asked and told: see `runs`.
"""

import math
from collections.abc import Mapping
from typing import Final, final

import numpy as np
from scipy.optimize import minimize

from eign.arrays import LARGEST, Array
from eign.data import Observations
from eign.space import SAME_POINT, nearest
from eign.strategies.design import N_INIT
from eign.strategies.local_runs import Replay, next_point
from eign.strategies.options import Option, more_than
from eign.strategies.strategy import Proposal, State, Strategy

# Values and slopes of a descent, in units of its first step, are at most so large: SciPy takes no infinite ones.
_STEEPEST: Final = 1e100


class _Needed(Exception):  # noqa: N818  # no error: this is how the replay leaves SciPy's loop
    def __init__(self, point: Array) -> None:
        self.point = point


@final
class MultistartLBFGS(Strategy):
    """Runs of L-BFGS-B from the points of the initial design, best first, and then from uniform random points.

    `n_init=0` leaves out the design. A run ends when it has converged. A partial derivative that is missing counts as
    zero, so that a run does not move along it, and without any gradient this is a random search. A failed point is
    treated as a bowl above the best point of its run, which sends the line search back.

    Memory: see `runs`.
    """

    @property
    def options(self) -> Mapping[str, Option]:
        """The design, the first step and when a run has converged."""
        return {
            **N_INIT,
            "first_step": Option(0.25, more_than(0.0), "length of the first step of a run, in the unit cube"),
            "ftol": Option(1e-9, more_than(0.0), "a run ends when f gains less than this, relative to its first step"),
            "gtol": Option(1e-6, more_than(0.0), "a run ends when the gradient is smaller, relative to its start"),
        }

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The point that the first run which is not waiting for a pending one needs."""
        return next_point(state, data, pending, lambda start: replay(start, data, state.options))


def replay(start: Array, data: Observations, options: Mapping[str, float]) -> Replay:
    r"""Run L-BFGS-B from `start` over the evaluations in `data` until it ends or needs another one.

    It minimises :math:`-(f(u) - f(u_0)) \cdot s / \|\nabla f(u_0)\|` with s the length of the first step, so that
    neither the units nor the offset of f matter.
    """
    used: list[int] = []
    # A point that failed at first and then did not is the one that did not.
    rows = np.argsort(~data.has_y, kind="stable")
    points = data.x[rows]
    offset, scale = 0.0, 1.0
    best = (0.0, start)

    def objective(point: Array) -> tuple[float, Array]:
        nonlocal offset, scale, best
        index, distance = nearest(points, point)
        if distance > SAME_POINT:
            raise _Needed(point.copy())
        row = int(rows[index])
        is_start, value = not used, float(data.y[row])
        used.append(row)
        if not np.isfinite(value):
            away = point - best[1]
            return best[0] + 1.0 + float(away @ away), 2.0 * away
        gradient = np.where(data.has_grad[row], data.grad[row], 0.0)
        # A point that is the same only up to `SAME_POINT` gets the value it would have to first order: a line search
        # near convergence would take the difference for a jump.
        value += float(gradient @ (point - data.x[row]))
        if is_start:
            # A slope of 1e-310 would make the scale infinite, and infinite times a slope of 0 is no number.
            offset, scale = value, min(options["first_step"] / (math.hypot(*gradient) or 1.0), LARGEST)
        descent = float(np.clip(-scale * (value - offset), -_STEEPEST, _STEEPEST))
        if descent <= best[0]:
            best = (descent, point.copy())
        with np.errstate(over="ignore"):
            return descent, np.clip(-scale * gradient, -_STEEPEST, _STEEPEST)

    bounds = [(0.0, 1.0)] * len(start)
    settings = {"ftol": options["ftol"], "gtol": options["gtol"] * options["first_step"]}
    try:
        minimize(  # type: ignore[call-overload]  # the stubs want one-dimensional arrays by type
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=settings
        )
    except _Needed as needed:
        return Replay(needed.point, frozenset(used))
    return Replay(None, frozenset(used))
