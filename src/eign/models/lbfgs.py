r"""Projected L-BFGS for many small, independent, box-bounded problems at once.

Each problem has its own memory, line search and stopping test; only the evaluation is shared, and problems that are
done leave it. SciPy's L-BFGS-B costs about 0.1 ms of interpreter time per problem and iteration, more than evaluating
a Gaussian process with 50 points; here that cost is paid once for the whole batch.

| symbol | meaning | shape |
|---|---|---|
| x, f, g | iterate, value, gradient | `B x p`, `B`, `B x p` |
| s, y | last steps and the changes of the gradient along them | `B x m x p` |
| B0 | curvature of the model before the secant pairs, given with each evaluation or a multiple of 1 | `B x p x p` |
| F | free coordinates: not held at a bound by a gradient that points out of the box | `B x p` |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-10


class Evaluation(NamedTuple):
    """Values `A`, gradients `A x p` and, where it is cheap, positive definite curvatures `A x p x p` of A problems."""

    value: Array
    gradient: Array
    curvature: Array | None = None


Objective = Callable[[Array, Index], Evaluation]
"""Evaluates the problems with indices `A` at the points `A x p`; a value that is not finite rejects the step."""


class Memory(NamedTuple):
    """The newest steps and changes of the gradient of B problems, `B x m x p` each, zero where there is none yet."""

    steps: Array
    changes: Array


@dataclass(frozen=True)
class Minimum:
    """Where each of B problems ended.

    Attributes:
        x: The best points, `B x p`.
        value: Their values, `B`.
        gradient: Their gradients, `B x p`.
        evaluations: Evaluations spent on each problem, `B`.
        converged: Whether a stopping test was met, rather than the limit of iterations or a failed line search, `B`.
        memory: The secant pairs at the end, for a later search of a similar function.
    """

    x: Array
    value: Array
    gradient: Array
    evaluations: Index
    converged: Mask
    memory: Memory


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """When a problem is done.

    Attributes:
        decrease: The quadratic model promises no more than this, `-g'p/2 <= decrease`; a number, or one per problem.
        gradient: Largest component of the projected gradient.
        iterations: Limit on the iterations of each problem.
        evaluations: Limit on the evaluations of each problem; a number, or one per problem.
    """

    decrease: float | Array = 0.0
    gradient: float = 1e-8
    iterations: int = 200
    evaluations: int | Index = 400


class _State:
    """The batch, as columns; methods take the indices of the problems they touch."""

    def __init__(self, x: Array, start: Evaluation, memory: Memory) -> None:
        batch = len(x)
        self.x, self.value, self.gradient, self.curvature = x, start.value, start.gradient, start.curvature
        self.steps, self.changes = memory
        self.scale = np.zeros(batch)  # s'y / y'y of the newest pair of this search; 0 before there is one
        self.evaluations = np.ones(batch, dtype=np.intp)
        self.converged = np.zeros(batch, dtype=np.bool_)

    def accept(self, index: Index, x: Array, new: Evaluation) -> None:
        """Move the problems `index` to `x`, remembering the secant pair if the function curves upwards along it."""
        step, change = x - self.x[index], new.gradient - self.gradient[index]
        inner, square = _dot(step, change), _dot(change, change)
        curved = inner > 1e-10 * np.sqrt(square * _dot(step, step))
        kept = index[curved]
        for history, newest in ((self.steps, step), (self.changes, change)):
            history[kept, 1:] = history[kept, :-1]
            history[kept, 0] = newest[curved]
        self.scale[kept] = inner[curved] / square[curved]
        self.x[index], self.value[index], self.gradient[index] = x, new.value, new.gradient
        if self.curvature is not None and new.curvature is not None:
            self.curvature[index] = new.curvature


def minimize(
    objective: Objective,
    start: Array,
    *,
    lower: Array,
    upper: Array,
    stopping: Stopping | None = None,
    memory: int | Memory = 10,
    longest_step: float = np.inf,
) -> Minimum:
    r"""Minimise B independent functions of p variables over the box `lower <= x <= upper`.

    The direction solves the L-BFGS model on the free coordinates; the path `x + t p` is clipped to the box and
    backtracked by safeguarded quadratic interpolation until

    .. math:: f(x_t) \le f(x) + 10^{-4}\, g^\top (x_t - x).

    Args:
        objective: Evaluates the problems that are still running.
        start: Starting points, `B x p`; clipped to the box.
        lower: Lower bounds, broadcast to `B x p`.
        upper: Upper bounds, broadcast to `B x p`.
        stopping: Tolerances and limits.
        memory: How many secant pairs to keep for each problem, or those of an earlier search to begin with.
        longest_step: Largest change of a coordinate in one iteration.

    Returns:
        The end of each problem.

    >>> bowl = lambda x, index: Evaluation(0.5 * (x**2).sum(-1), x)
    >>> minimize(bowl, np.array([[3.0, -2.0]]), lower=np.array(1.0), upper=np.array(5.0)).x
    array([[1., 1.]])
    """
    stopping = stopping or Stopping()
    x = np.clip(start, lower, upper).astype(np.float64)
    low, high = np.broadcast_to(lower, x.shape), np.broadcast_to(upper, x.shape)
    promise = np.broadcast_to(np.asarray(stopping.decrease, dtype=np.float64), x.shape[:1])
    if isinstance(memory, int):
        pairs = Memory(*np.zeros((2, len(x), memory, x.shape[1])))
    else:
        pairs = Memory(memory.steps.copy(), memory.changes.copy())
    limit = np.broadcast_to(np.asarray(stopping.evaluations), x.shape[:1])
    state = _State(x, _copied(objective(x, np.arange(len(x)))), pairs)
    active = np.flatnonzero(np.isfinite(state.value))
    for _ in range(stopping.iterations):
        free = _free(state.x[active], state.gradient[active], low[active], high[active])
        gradient = np.where(free, state.gradient[active], 0.0)
        direction = _direction(state, active, free, gradient)
        slope = _dot(gradient, direction)
        done = (-0.5 * slope <= promise[active]) | (np.abs(gradient).max(axis=-1) <= stopping.gradient)
        state.converged[active[done]] = True
        running = ~done & (state.evaluations[active] < limit[active])
        active, direction = active[running], direction[running]
        if not active.size:
            break
        direction *= np.minimum(1.0, longest_step / np.abs(direction).max(axis=-1))[:, None]
        active = _search(objective, state, active, direction, low=low, high=high, limit=limit)
    kept = Memory(state.steps, state.changes)
    return Minimum(state.x, state.value, state.gradient, state.evaluations, state.converged, kept)


def _search(
    objective: Objective, state: _State, active: Index, direction: Array, *, low: Array, high: Array, limit: Index
) -> Index:
    """Backtrack along the clipped path; returns the problems that moved, the others have come to their end."""
    moved = np.zeros(active.size, dtype=np.bool_)
    step = np.ones(active.size)
    searching = np.arange(active.size)
    while searching.size:
        index = active[searching]
        path = state.x[index] + step[searching, None] * direction[searching]
        trial = np.clip(path, low[index], high[index])
        new = objective(trial, index)
        state.evaluations[index] += 1
        promised = _dot(state.gradient[index], trial - state.x[index])
        excess = new.value - state.value[index]
        # Below the rounding error of the value the test would only see noise: a step that keeps the value is accepted.
        noise = 4e-15 * np.abs(state.value[index])
        good = np.isfinite(excess) & (excess <= _SUFFICIENT_DECREASE * promised + noise)
        good &= np.isfinite(new.gradient).all(axis=-1)
        state.accept(index[good], trial[good], _rows(new, good))
        moved[searching[good]] = True
        with np.errstate(all="ignore"):
            shrink = -0.5 * promised / (excess - promised)
        shrink = np.clip(np.where(np.isfinite(shrink), shrink, 0.1), 0.1, 0.5)
        step[searching] *= shrink
        open_end = ~good & (step[searching] > _SMALLEST_STEP) & (state.evaluations[index] < limit[index])
        searching = searching[open_end]
    return active[moved]


def _free(x: Array, gradient: Array, low: Array, high: Array) -> Mask:
    """Coordinates that may move: neither fixed nor pressed against a bound."""
    return ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))


def _direction(state: _State, active: Index, free: Mask, gradient: Array) -> Array:
    """Two-loop recursion on the free coordinates; steepest descent where the result is no descent direction."""
    steps = np.where(free[:, None], state.steps[active], 0.0)
    changes = np.where(free[:, None], state.changes[active], 0.0)
    inner = _dot(steps, changes)
    usable = inner > 1e-10 * np.sqrt(_dot(steps, steps) * _dot(changes, changes))
    inverse = np.where(usable, 1.0, 0.0) / np.where(usable, inner, 1.0)
    weights = np.zeros(inner.shape)
    used = np.flatnonzero(usable.any(axis=0))
    q = gradient.copy()
    for j in used:
        weights[:, j] = inverse[:, j] * _dot(steps[:, j], q)
        q -= weights[:, j, None] * changes[:, j]
    q = _start_direction(state, active, free, q)
    for j in used[::-1]:
        correction = weights[:, j] - inverse[:, j] * _dot(changes[:, j], q)
        q += correction[:, None] * steps[:, j]
    q = np.where(free, q, 0.0)
    uphill = ~(_dot(q, gradient) > 0)
    q[uphill] = gradient[uphill]
    return -q


def _start_direction(state: _State, active: Index, free: Mask, q: Array) -> Array:
    """B0^{-1} q: the given curvature on the free coordinates, or the scale of the newest pair."""
    if state.curvature is not None:
        both = free[:, :, None] & free[:, None, :]
        matrix = np.where(both, state.curvature[active], np.eye(q.shape[-1]))
        return np.asarray(np.linalg.solve(matrix, q[..., None])[..., 0])
    # Before there is a pair, a first step of at most unit length.
    first = 1.0 / np.maximum(1.0, np.sqrt(_dot(q, q)))
    scale = state.scale[active]
    return np.where(scale > 0, scale, first)[:, None] * q


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("...i,...i->...", a, b))


def _rows(evaluation: Evaluation, rows: Mask) -> Evaluation:
    curvature = evaluation.curvature
    return Evaluation(evaluation.value[rows], evaluation.gradient[rows], None if curvature is None else curvature[rows])


def _copied(evaluation: Evaluation) -> Evaluation:
    curvature = evaluation.curvature
    return Evaluation(
        evaluation.value.copy(), evaluation.gradient.copy(), None if curvature is None else curvature.copy()
    )
