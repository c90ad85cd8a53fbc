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

    def __init__(self, x: Array, start: Evaluation, memory: Memory, *, pairs: int) -> None:
        batch = len(x)
        self.x, self.value, self.gradient, self.curvature = x, start.value, start.gradient, start.curvature
        self.steps, self.changes = memory
        self.scale = np.zeros(batch)  # s'y / y'y of the newest pair of this search; 0 before there is one
        self.pairs = pairs  # how many of the newest pairs may differ from zero
        self.direction, self.step = np.zeros_like(x), np.ones(batch)
        self.iterations = np.zeros(batch, dtype=np.intp)
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
        self.pairs = min(self.pairs + 1, self.steps.shape[1])
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
    known = 0 if isinstance(memory, int) else pairs.steps.shape[1]
    state = _State(x, _copied(objective(x, np.arange(len(x)))), pairs, pairs=known)
    turning, backtracking = np.flatnonzero(np.isfinite(state.value)), np.empty(0, dtype=np.intp)
    # A problem that backtracks does not keep the others waiting: they are evaluated together with it.
    while True:
        going = _turn(state, turning, stopping, promise, low=low, high=high, longest_step=longest_step)
        if backtracking.size:
            going = np.sort(np.concatenate([backtracking, going]))
        going = going[state.evaluations[going] < limit[going]]
        if not going.size:
            break
        turning, backtracking = _try(objective, state, going, low=low, high=high)
    kept = Memory(state.steps, state.changes)
    return Minimum(state.x, state.value, state.gradient, state.evaluations, state.converged, kept)


def _turn(
    state: _State,
    index: Index,
    stopping: Stopping,
    promise: Array,
    *,
    low: Array,
    high: Array,
    longest_step: float,
) -> Index:
    """Give the problems `index` a new direction; returns those that are neither converged nor at their limit."""
    index = index[state.iterations[index] < stopping.iterations]
    if not index.size:
        return index
    state.iterations[index] += 1
    gradient = state.gradient[index]
    free = _free(state.x[index], gradient, low[index], high[index])
    gradient = np.where(free, gradient, 0.0)
    direction = _direction(state, index, free, gradient)
    done = (-0.5 * _dot(gradient, direction) <= promise[index]) | (np.abs(gradient).max(axis=-1) <= stopping.gradient)
    state.converged[index[done]] = True
    index, direction = index[~done], direction[~done]
    direction *= np.minimum(1.0, longest_step / np.abs(direction).max(axis=-1))[:, None]
    state.direction[index], state.step[index] = direction, 1.0
    return index


def _try(objective: Objective, state: _State, index: Index, *, low: Array, high: Array) -> tuple[Index, Index]:
    """One evaluation along the clipped paths; returns the problems that moved, and those that backtrack.

    The others have come to their end: no step is left that would change them.
    """
    x, value = state.x[index], state.value[index]
    trial = np.maximum(x + state.step[index, None] * state.direction[index], low[index])
    np.minimum(trial, high[index], out=trial)
    new = objective(trial, index)
    state.evaluations[index] += 1
    promised = _dot(state.gradient[index], trial - x)
    excess = new.value - value
    # Below the rounding error of the value the test would only see noise: a step that keeps the value is accepted.
    good = np.isfinite(excess) & (excess <= _SUFFICIENT_DECREASE * promised + 4e-15 * np.abs(value))
    good &= np.isfinite(new.gradient).all(axis=-1)
    if good.all():
        state.accept(index, trial, new)
        return index, index[:0]
    state.accept(index[good], trial[good], _rows(new, good))
    with np.errstate(all="ignore"):
        shrink = -0.5 * promised / (excess - promised)
    state.step[index] *= np.clip(np.where(np.isfinite(shrink), shrink, 0.1), 0.1, 0.5)
    return index[good], index[~good & (state.step[index] > _SMALLEST_STEP)]


def _free(x: Array, gradient: Array, low: Array, high: Array) -> Mask:
    """Coordinates that may move: neither fixed nor pressed against a bound."""
    return ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))


def _direction(state: _State, active: Index, free: Mask, gradient: Array) -> Array:
    """Two-loop recursion on the free coordinates; steepest descent where the result is no descent direction."""
    steps, changes = state.steps[active, : state.pairs], state.changes[active, : state.pairs]
    if not free.all():
        steps, changes = np.where(free[:, None], steps, 0.0), np.where(free[:, None], changes, 0.0)
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
