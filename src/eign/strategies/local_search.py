r"""A local search on the function itself: steps in a trust region, on a model of the points around the best one.

It is a state of plain data and pure functions: `begin` makes one, `advance` looks at what was told and says which point
it needs next, or that it has ended. Points of others nearby are used as its own. While its point is pending it waits.

| symbol | meaning |
|---|---|
| c | the center: the best point of the search so far |
| u | coordinates around c in which the function is round, see `eign.models.local.metric` |
| R | radius of the trust region in u: half of its square is a decrease of the function |
| rho | the last decrease as a share of what the model promised |

The model is that of `eign.models.local.model`. Near the optimum its promises fall below its own numerical error; then
BFGS's parabola alone, which has no such limit, makes the steps. Coordinates at a bound that the gradient pushes against
are held there.

It takes values and gradients to be exact. It ends at a point whose gradient is not complete; a trial without a gradient
counts by its value, and a failed trial as one that is worse than expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.models.local.metric import Metric, bfgs_metric
from eign.models.local.model import LocalModel, local_model
from eign.numerics import lbfgs
from eign.space import SAME_POINT, contains, nearest

FIRST_STEP: Final = 0.25
"""Length of the first step in the unit cube, as of `l-bfgs`."""
TOLERANCE: Final = 1e-11
"""A search ends when its next step promises less than this share of what it has gained."""
_FEWEST_POINTS: Final = 20
_MOST_POINTS: Final = 40
_MEMORY: Final = 40
# After a step with rho below the first number the next radius is so many times the step's length.
_RADIUS_AFTER: Final = ((-1.0, 0.1), (0.1, 0.3), (0.25, 0.5), (0.7, 1.0), (np.inf, 2.5))
_ROUNDS: Final = 6
_SHRINKS: Final = 4
_MODEL_EVALUATIONS: Final = 150


@final
@dataclass(frozen=True)
class LocalSearch:
    """A search, as plain data.

    Attributes:
        point: What it needs next, or needed last if it has ended, `d`.
        step: Length of the first step.
        rows: Of the data: its points that were told, in their order.
        radius: R when `point` was proposed; None before there was a step.
        promise: The decrease that was promised of `point`; 0 for the start.
        ended: Whether it has ended.
    """

    point: list[float]
    step: float = FIRST_STEP
    rows: tuple[int, ...] = ()
    radius: float | None = None
    promise: float = 0.0
    ended: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal search."""
        return {**asdict(self), "rows": list(self.rows)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> LocalSearch:
        """The search that `to_json` described."""
        return cls(**{**stored, "rows": tuple(stored["rows"])})


def begin(start: Array, *, step: float = FIRST_STEP) -> LocalSearch:
    """A search from here, whose first step is about so long in the unit cube."""
    return LocalSearch(np.clip(start, 0.0, 1.0).tolist(), step)


def advance(search: LocalSearch, data: Observations) -> LocalSearch:
    """The search with the next point it needs; as it was if that is not told yet, or if it has ended."""
    while not search.ended and (row := _told_row(data, np.array(search.point))) is not None:
        search = _advanced(replace(search, rows=(*search.rows, row)), data)
    return search


def best_row(search: LocalSearch, data: Observations) -> int | None:
    """Where the best point of the search is in the data; None if none has a value."""
    rows = _valued(search.rows, data)
    return int(rows[data.y[rows].argmax()]) if len(rows) else None


class _Path(NamedTuple):
    """What a search has seen: its best row, the one before the last point was told, and secant pairs `m x d`."""

    center: int
    before: int
    steps: Array
    changes: Array


class _Region(NamedTuple):
    """Around the center: the metric, the radius, and the coordinates that are free, `d`."""

    metric: Metric
    radius: float
    free: lbfgs.Mask


class _Step(NamedTuple):
    """A step from the center, its promise, and the radius it was taken with."""

    x: Array
    promise: float
    radius: float


def _told_row(data: Observations, point: Array) -> int | None:
    """The row of a point; one that failed at first and then did not is the one that did not."""
    for rows in (np.flatnonzero(data.has_y), np.arange(len(data))):
        found, distance = nearest(data.x[rows], point)
        if distance <= SAME_POINT:
            return int(rows[found])
    return None


def _valued(rows: tuple[int, ...], data: Observations) -> lbfgs.Index:
    chosen = np.array(rows, dtype=np.intp)
    return chosen[data.has_y[chosen]]


def _advanced(search: LocalSearch, data: Observations) -> LocalSearch:
    """After the last of its rows was told."""
    rows = _valued(search.rows, data)
    if not len(rows) or not data.has_grad[rows[data.y[rows].argmax()]].all():
        return replace(search, ended=True)
    path = _path(rows, data)
    step = _next_step(search, path, data)
    gained = float(data.y[path.center] - data.y[rows[0]])
    if step is None or step.promise <= TOLERANCE * gained or contains(data.x, step.x):
        return replace(search, ended=True)
    return replace(search, point=step.x.tolist(), radius=step.radius, promise=step.promise)


def _path(rows: lbfgs.Index, data: Observations) -> _Path:
    """From rows with a value, in their order."""
    center = before = int(rows[0])
    steps, changes = [], []
    for row in rows[1:].tolist():
        steps.append(data.x[row] - data.x[center])
        changes.append(data.grad[center] - data.grad[row])
        before = center
        if data.y[row] > data.y[center]:
            center = row
    known = [number for number, change in enumerate(changes) if np.isfinite(change).all()][-_MEMORY:]
    shape = (len(known), data.dim)
    return _Path(
        center,
        before,
        np.array([steps[number] for number in known]).reshape(shape),
        np.array([changes[number] for number in known]).reshape(shape),
    )


def _next_step(search: LocalSearch, path: _Path, data: Observations) -> _Step | None:
    """The best step of the model; of the parabola if the model's promise is below its error; None without one."""
    x, gradient = data.x[path.center], -data.grad[path.center]
    free = ~(((x <= 0.0) & (gradient > 0.0)) | ((x >= 1.0) & (gradient < 0.0)))
    if not (gradient[free] != 0.0).any():
        return None
    shrink, with_rest = 1.0, True
    for _ in range(_SHRINKS):
        step, error = _bounded_step(search, path, data, free, shrink, with_rest=with_rest)
        if with_rest and step.promise <= error:
            with_rest = False
            step, _ = _bounded_step(search, path, data, free, shrink, with_rest=False)
        if step.promise > 0.0:
            return step
        # Rounding, or the bounds, have turned it into a step up.
        shrink, with_rest = 0.25 * shrink, False
    return None


def _bounded_step(
    search: LocalSearch, path: _Path, data: Observations, free: lbfgs.Mask, shrink: float, *, with_rest: bool
) -> tuple[_Step, float]:
    """A step within the bounds, and the model's error: coordinates that it would take out of the box stay at a bound."""
    x, held = data.x[path.center], data.x[path.center].copy()
    for _ in range(_ROUNDS):
        region = _region(search, path, data, free, shrink)
        model = _model(region.metric, path, data) if with_rest else None
        if model is None:
            model = LocalModel(region.metric.gradients(-data.grad[path.center]))
        u = _minimizer(model, region, region.metric.coordinates(held - x))
        end = x + region.metric.differences(u)
        outside = free & ((end < 0.0) | (end > 1.0))
        end = np.clip(np.where(free, end, held), 0.0, 1.0)
        if not outside.any() or not (free & ~outside).any():
            break
        held, free = end, free & ~outside
    promise = -model(region.metric.coordinates(end - x))[0]
    return _Step(end, promise, region.radius), model.error


def _region(search: LocalSearch, path: _Path, data: Observations, free: lbfgs.Mask, shrink: float) -> _Region:
    """The metric of the free coordinates and the radius, which follows from how well the last step went."""
    gradient = np.where(free, data.grad[path.center], 0.0)
    steepness = float(np.linalg.norm(gradient))
    metric = bfgs_metric(path.steps * free, path.changes * free, steepness / search.step)
    if search.radius is None:
        return _Region(metric, shrink * float(np.sqrt(steepness * search.step)), free)
    last = search.rows[-1]
    length = float(np.linalg.norm(metric.coordinates((data.x[last] - data.x[path.before]) * free)))
    gain = float(data.y[last] - data.y[path.before])
    rho = gain / search.promise if np.isfinite(gain) else -np.inf
    factor = next(factor for limit, factor in _RADIUS_AFTER if rho < limit)
    radius = factor * length if factor < 1.0 else max(search.radius, factor * length if factor > 1.0 else 0.0)
    return _Region(metric, shrink * radius, free)


def _model(metric: Metric, path: _Path, data: Observations) -> LocalModel | None:
    """Of the points around the center that are nearest in the metric; None if there are no others."""
    rows = np.flatnonzero(data.has_y)
    u = metric.coordinates(data.x[rows] - data.x[path.center])
    count = int(np.clip(2 * data.dim, _FEWEST_POINTS, _MOST_POINTS))
    order = np.argsort(np.vecdot(u, u), kind="stable")[:count]
    whole = data.has_grad[rows[order]].all(axis=1)
    order = np.concatenate([order[whole], order[~whole]])
    if len(order) < 2:
        return None
    values = data.y[path.center] - data.y[rows[order]]
    gradients = metric.gradients(-data.grad[rows[order[: int(whole.sum())]]])
    return local_model(u[order], values, gradients, metric.gradients(-data.grad[path.center]))


def _minimizer(model: LocalModel, region: _Region, start: Array) -> Array:
    """The best point of the model in the trust region, as far as a descent finds it; other coordinates as in `start`."""
    free, radius = region.free, region.radius
    unit = max(radius * float(np.linalg.norm(model.slope)), np.finfo(np.float64).tiny)

    def objective(t: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = model(np.where(free, radius * t[0], start))
        return lbfgs.ObjectiveValues(np.array([value / unit]), (gradient * free * (radius / unit))[None])

    end = lbfgs.minimize(
        objective,
        np.zeros((1, len(start))),
        lower=np.where(free, -1.0, 0.0),
        upper=np.where(free, 1.0, 0.0),
        stopping=lbfgs.Stopping(decrease=1e-10, gradient=1e-10, evaluations=_MODEL_EVALUATIONS),
    ).x[0]
    return np.where(free, radius * end / max(1.0, float(np.linalg.norm(end))), start)
