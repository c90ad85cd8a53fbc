r"""Projected L-BFGS for many small, independent, box-bounded problems at once.

Each problem has its own memory, line search and stopping test; only the evaluation is shared, and problems that are
done leave it. SciPy's L-BFGS-B costs about 0.1 ms of interpreter time per problem and iteration, more than evaluating
a Gaussian process with 50 points; here that cost is paid once for the whole batch. Small models still spend a third of
their time on it, so the problems that run are stored without gaps, and a round makes few calls on whole arrays.

| symbol | meaning | shape |
|---|---|---|
| x, f, g | iterate, value, gradient | `B x p`, `B`, `B x p` |
| s, y | last steps and the changes of the gradient along them, scaled so that s'y = 1 | `B x m x 2 x p` |
| B0 | curvature of the model before the secant pairs, given with each evaluation or a multiple of 1 | `B x p x p` |
| F | free coordinates: not held at a bound by a gradient that points out of the box | `B x p` |
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]
"""Also for objectives inside of functions, whose annotations are made anew at each call: `NDArray[...]` takes 10 us."""

_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-10
# Where the function does not curve upwards along a step the model stays as it is, and the next step is so much longer.
_EXPANSION = 4.0
# Below this cosine of s and y the pair says nothing about the curvature.
_SMALLEST_COSINE = 1e-10


class ObjectiveValues(NamedTuple):
    """Values `A`, gradients `A x p` and, where it is cheap, positive definite curvatures `A x p x p` of A problems."""

    value: Array
    gradient: Array
    curvature: Array | None = None


Objective = Callable[[Array, Index], ObjectiveValues]
"""Evaluates the problems with indices `A` at the points `A x p`; a value that is not finite rejects the step."""


class CurvaturePairs(NamedTuple):
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
        converged: Whether a stopping test was met, rather than the limit of evaluations or a failed line search, `B`.
        memory: The secant pairs at the end, for a later search of a similar function.
    """

    x: Array
    value: Array
    gradient: Array
    evaluations: Index
    converged: Mask
    memory: CurvaturePairs


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """When a problem is done.

    Attributes:
        decrease: The quadratic model promises no more than this, `-g'p/2 <= decrease`; a number, or one per problem.
        gradient: Largest component of the projected gradient.
        evaluations: Limit on the evaluations of each problem; a number, or one per problem.
    """

    decrease: float | Array = 0.0
    gradient: float = 1e-8
    evaluations: int | Index = 400


class _Running:
    """The problems that are not done, A of them, as columns."""

    RESULTS: Final = ("x", "value", "gradient", "evaluations", "converged", "pairs")

    def __init__(
        self,
        x: Array,
        start: ObjectiveValues,
        memory: int | CurvaturePairs,
        stopping: Stopping,
        *,
        lower: Array,
        upper: Array,
    ) -> None:
        count, dim = x.shape
        self.index = np.arange(count)
        # np.full takes half the time of np.broadcast_to
        self.low, self.high = np.full(x.shape, lower), np.full(x.shape, upper)
        self.limit = np.full(count, stopping.evaluations)
        self.promise = np.full(count, stopping.decrease)  # a smaller one is not worth an evaluation
        self.x, self.value, self.gradient = x, start.value.copy(), start.gradient.copy()
        self.curvature = None if start.curvature is None else start.curvature.copy()
        if isinstance(memory, int):
            self.pairs = np.zeros((count, memory, 2, dim))
            self.used = 0  # of the newest pairs, which come first, so many may differ from zero
        else:
            self.pairs = _normalized(np.stack(memory, axis=2))
            self.used = self.pairs.shape[1]
        self.step = np.ones(count)  # of the next one along the direction; below 1 after one that was refused
        self.evaluations = np.ones(count, dtype=np.intp)
        self.converged = np.zeros(count, dtype=np.bool_)

    def keep(self, rows: Index) -> None:
        """Forget the other problems."""
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(self, name, column[rows])

    def move(self, rows: Index | slice, x: Array, new: ObjectiveValues) -> None:
        """Take the problems `rows` to x, remembering the secant pair if the function curves upwards along it."""
        newest = np.empty((len(x), 2, x.shape[1]))
        np.subtract(x, self.x[rows], out=newest[:, 0])
        np.subtract(new.gradient, self.gradient[rows], out=newest[:, 1])
        self.x[rows], self.value[rows], self.gradient[rows] = x, new.value, new.gradient
        if self.curvature is not None and new.curvature is not None:
            self.curvature[rows] = new.curvature
        factor = _factors(newest)
        if np.count_nonzero(factor) == len(factor):
            self.step[rows] = 1.0
        else:
            curved = factor > 0
            self.step[rows] = np.where(curved, 1.0, _EXPANSION * self.step[rows])
            rows, newest, factor = np.arange(len(self.x))[rows][curved], newest[curved], factor[curved]
        if self.used:
            self.pairs[rows, 1:] = self.pairs[rows, :-1]
        self.pairs[rows, 0] = newest * factor[:, None, None]
        self.used = min(self.used + 1, self.pairs.shape[1])


def minimize(
    objective: Objective,
    start: Array,
    *,
    lower: Array,
    upper: Array,
    stopping: Stopping | None = None,
    memory: int | CurvaturePairs = 10,
    longest_step: float = np.inf,
    known: ObjectiveValues | None = None,
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
        known: The evaluation at the starting points, where there is one already; it is counted all the same.

    Returns:
        The end of each problem.

    >>> bowl = lambda x, index: ObjectiveValues(0.5 * (x**2).sum(-1), x)
    >>> minimize(bowl, np.array([[3.0, -2.0]]), lower=np.array(1.0), upper=np.array(5.0)).x
    array([[1., 1.]])
    """
    stopping = stopping or Stopping()
    x = np.minimum(np.maximum(start, lower), upper)
    first = objective(x, np.arange(len(x))) if known is None else known
    run = _Running(x, first, memory, stopping, lower=lower, upper=upper)
    ends = {name: getattr(run, name).copy() for name in _Running.RESULTS}
    is_usable = np.isfinite(run.value) & np.isfinite(first.gradient).all(axis=-1)
    if np.count_nonzero(is_usable) < len(x):
        run.keep(np.flatnonzero(is_usable))
    while run.index.size:
        ascent, promise, steepness = _ascent(run)
        run.converged = (promise <= run.promise) | (steepness <= stopping.gradient)
        done = run.converged | (run.evaluations >= run.limit)
        if np.count_nonzero(done):
            finished, others = done.nonzero()[0], (~done).nonzero()[0]
            whose = run.index[finished]
            for name, end in ends.items():
                end[whose] = getattr(run, name)[finished]
            if not others.size:
                break
            run.keep(others)
            ascent = ascent[others]
        _descend(objective, run, ascent, longest_step)
    pairs = ends.pop("pairs")
    return Minimum(**ends, memory=CurvaturePairs(pairs[:, :, 0], pairs[:, :, 1]))


def _ascent(run: _Running) -> tuple[Array, Array, Array]:
    """H g on the free coordinates by the two-loop recursion, or g where that does not ascend.

    Also half of its product with g, which is the decrease that the model promises, and the largest |g_i|.
    """
    gradient, pairs = run.gradient, run.pairs[:, : run.used]
    at_low, at_high = run.x <= run.low, run.x >= run.high
    is_held = False
    if np.count_nonzero(at_low) or np.count_nonzero(at_high):
        free = ~((at_low & (gradient > 0)) | (at_high & (gradient < 0)))
        is_held = bool(np.count_nonzero(free) < free.size)
    if is_held:
        gradient, pairs = np.where(free, gradient, 0.0), _normalized(np.where(free[:, None, None], pairs, 0.0))
    q = gradient.copy()
    steps_and_changes = [(pair[:, 0], pair[:, 1]) for pair in pairs.swapaxes(0, 1)]  # newest first
    weights = []
    for step, change in steps_and_changes:
        weight = np.vecdot(step, q)[:, None]
        q -= weight * change
        weights.append(weight)
    if run.curvature is None:
        q *= _newest_scale(pairs, q)[:, None]
    elif is_held:
        both = free[:, :, None] & free[:, None, :]
        q = _solve(np.where(both, run.curvature, np.eye(q.shape[-1])), q)
    else:
        q = _solve(run.curvature, q)
    for step, change in reversed(steps_and_changes):
        q += (weights.pop() - np.vecdot(change, q)[:, None]) * step
    slope = np.vecdot(q, gradient)
    falls = ~(slope > 0)
    if np.count_nonzero(falls):
        q[falls] = gradient[falls]
        slope = np.vecdot(q, gradient)
    return q, 0.5 * slope, _largest(gradient)


def _descend(objective: Objective, run: _Running, ascent: Array, longest_step: float) -> None:
    """One evaluation along the clipped paths; problems whose step is refused, and cannot be shorter, get no more."""
    run.step = np.minimum(run.step, longest_step / _largest(ascent))
    trial = run.x - run.step[:, None] * ascent
    np.maximum(trial, run.low, out=trial)
    np.minimum(trial, run.high, out=trial)
    new = objective(trial, run.index)
    run.evaluations += 1
    promised = np.vecdot(run.gradient, trial - run.x)
    excess = new.value - run.value
    # Below the rounding error of the value the test would only see noise: a step that keeps the value is accepted.
    good = np.isfinite(excess) & (excess <= _SUFFICIENT_DECREASE * promised + 4e-15 * np.abs(run.value))
    good &= np.logical_and.reduce(np.isfinite(new.gradient), axis=-1)
    if np.count_nonzero(good) == len(good):
        run.move(slice(None), trial, new)
        return
    # A problem that backtracks does not keep the others waiting: they are evaluated together with it.
    with np.errstate(all="ignore"):
        shrink = -0.5 * promised / (excess - promised)
    shrink = np.clip(np.where(np.isfinite(shrink), shrink, 0.1), 0.1, 0.5)
    run.step = np.where(good, run.step, run.step * shrink)
    run.limit[run.step <= _SMALLEST_STEP] = 0
    curvature = None if new.curvature is None else new.curvature[good]
    run.move(np.flatnonzero(good), trial[good], ObjectiveValues(new.value[good], new.gradient[good], curvature))


def _largest(vectors: Array) -> Array:
    """The largest magnitude of each vector, `... x p -> ...`; the reduction itself takes half the time of `max`."""
    return np.asarray(np.maximum.reduce(np.abs(vectors), axis=-1))


def _factors(pairs: Array) -> Array:
    """What makes s'y = 1 of the pairs `... x 2 x p`: 1 / sqrt(s'y), or 0 where the function does not curve upwards."""
    steps, changes = pairs[..., 0, :], pairs[..., 1, :]
    # A change so large that its square is infinite says nothing: it then does not count as curved.
    with np.errstate(over="ignore", invalid="ignore"):
        inner = np.vecdot(steps, changes)
        curved = inner > _SMALLEST_COSINE * np.sqrt(np.vecdot(steps, steps) * np.vecdot(changes, changes))
    return np.asarray(curved / np.sqrt(np.where(curved, inner, 1.0)))


def _normalized(pairs: Array) -> Array:
    """Pairs `... x 2 x p` with s'y = 1, or zero."""
    return np.asarray(_factors(pairs)[..., None, None] * pairs)


def _newest_scale(pairs: Array, q: Array) -> Array:
    """H0 = s'y / y'y of the newest pair; without a pair what makes the first step at most of unit length."""
    square = np.vecdot(pairs[:, 0, 1], pairs[:, 0, 1]) if pairs.shape[1] else np.zeros(len(q))
    known = square > 0
    if np.count_nonzero(known) == len(q):
        return 1.0 / square
    with np.errstate(over="ignore"):
        squares = np.vecdot(q, q)
        # Where the square is infinite, the largest entry will do.
        length = np.where(np.isfinite(squares), np.sqrt(squares), _largest(q))
    first = 1.0 / np.maximum(1.0, length)
    return np.where(known, 1.0 / np.where(known, square, 1.0), first)


def _solve(matrices: Array, vectors: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        # Entries of very different size leave no pivot: where that is so, the gradient is not bent.
        solved, every = vectors.copy(), np.broadcast_to(matrices, (*vectors.shape, vectors.shape[-1]))
        for matrix, vector, place in zip(every, vectors, solved, strict=True):
            with contextlib.suppress(np.linalg.LinAlgError):
                place[:] = np.linalg.solve(matrix, vector)
        return solved
