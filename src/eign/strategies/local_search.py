r"""A local search on the function itself: steps in a trust region, on a model of the points around the best one.

It is a state of plain data and pure functions: `begin` makes one, `advance` looks at what was told and says which point
it needs next, or that it has ended. Points of others nearby are used as its own. While its point is pending it waits.

| symbol | meaning |
|---|---|
| c | the center: the best point of the search so far |
| u | coordinates around c in which the function is round, see `eign.models.local.metric` |
| R | radius of the trust region in u: half of its square is a decrease of the function |
| rho | the last decrease as a share of what the model promised |

The model is that of `eign.models.local.model`: BFGS's parabola and a process of what it misses. The parabola alone
makes the steps where it has foretold the last values better, and near the optimum, where promises are below the
process's numerical error: a parabola has no such limit. Coordinates at a bound that the gradient pushes against are
held there.

It takes values and gradients to be exact. It ends at a point whose gradient is not complete; a trial without a gradient
counts by its value, and a failed trial as one that is worse than expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final

import numpy as np

from eign.arrays import LARGEST, Array
from eign.data import Observations
from eign.models.local.metric import Metric, bfgs_metric
from eign.models.local.model import LocalModel, local_model
from eign.numerics import lbfgs
from eign.space import SAME_POINT, contains, nearest

FIRST_STEP: Final = 0.25
"""Length of the first step in the unit cube in a few dimensions, as of `l-bfgs`."""
_FIRST_STEP_PER_COORDINATE: Final = 0.1
_MANY: Final = 25
TOLERANCE: Final = 1e-24
"""A search ends when its last step gained, and its next one promises, less than this share of what it has gained.

So small, as a promise is too small by the condition of the function where the metric has not seen a soft direction yet.
"""
_ROUNDING: Final = 1e-16
"""The same for a step that gained nothing at all."""
POINTS: Final = 20
"""Of the model, those nearest to the center; 40 are not better and take five times as long."""
PAIRS: Final = 100
"""Of the metric, the last ones; with 40 a quadratic function of condition 1e4 in 100 dimensions takes twice as long."""
# After a step with rho below the first number the next radius is so many times the step's length; from 1 on it does not
# shrink.
_RADIUS_AFTER: Final = ((-1.0, 0.1), (0.1, 0.3), (0.25, 0.5), (0.7, 1.0), (np.inf, 2.5))
# The radius is at most so many times the parabola's own step. Beyond, the process only extrapolates.
_REACH: Final = 10.0
# How fast older forecasts are forgotten, and the most that one counts, in natural logarithms of the errors' ratio.
_FORGETTING: Final = 0.7
_LOUDEST: Final = 1.5
_ROUNDS: Final = 6
# Share of a step within which a coordinate that meets a bound may as well stay where it is.
_NEAR: Final = 0.1
_SHRINKS: Final = 4
# Halvings and doublings of a step that further workers take.
_LINE: Final = 4
# Changes so many times as large as both slopes foretell, so many in a row, are scatter if they are more than this share
# of all that was gained: what is less may be rounding.
_STEEPEST: Final = 10.0
_SCATTER: Final = 1e-6
_IN_A_ROW: Final = 2
# Share of what both tangents of a secant miss that each has to miss at least.
_SYMMETRY: Final = 0.1
_MODEL_EVALUATIONS: Final = 150


class Forecast(NamedTuple):
    """The gain at a point by the model, by the parabola alone, and by the one of them that proposed it; in `unit`s."""

    model: float
    parabola: float
    promise: float
    unit: float = 1.0


@final
@dataclass(frozen=True)
class LocalSearch:
    """A search, as plain data.

    Attributes:
        point: What it needs next, or needed last if it has ended, `d`.
        step: Length of the first step.
        rows: Of the data: its points that were told, in their order.
        radius: R when `point` was proposed; None before there was a step.
        forecast: Of `point`; None for the start.
        lead: How much better the model has foretold values than the parabola, in natural logarithms of their errors.
        ended: Whether it has ended.
    """

    point: list[float]
    step: float
    rows: tuple[int, ...] = ()
    radius: float | None = None
    forecast: Forecast | None = None
    lead: float = 0.0
    ended: bool = False

    @property
    def promise(self) -> float:
        """How much better than the best so far `point` is to be, in the units of y; 0 for the start."""
        return 0.0 if self.forecast is None else self.forecast.promise * self.forecast.unit

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal search."""
        stored = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**stored, "rows": list(self.rows), "forecast": self.forecast and list(self.forecast)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> LocalSearch:
        """The search that `to_json` described."""
        forecast = None if stored["forecast"] is None else Forecast(*stored["forecast"])
        return cls(**{**stored, "rows": tuple(stored["rows"]), "forecast": forecast})


def first_step(dim: int) -> float:
    """Length of the first step in the unit cube: a quarter, and in many dimensions a tenth for each coordinate.

    Optima are sqrt(d / 12) away from the centre in the mean: with a quarter in 200 dimensions, a search that makes its
    steps 2.5 times as long at best has four evaluations behind it before they are as long as the way. In a few
    dimensions longer steps gain nothing, see notes/auto_trials.md.

    >>> [round(first_step(dim), 2) for dim in (2, 20, 30, 200)]
    [0.25, 0.25, 0.55, 1.41]
    """
    return FIRST_STEP if dim < _MANY else _FIRST_STEP_PER_COORDINATE * math.sqrt(dim)


def begin(start: Array, *, step: float | None = None) -> LocalSearch:
    """A search from here, whose first step is about so long in the unit cube."""
    return LocalSearch(np.clip(start, 0.0, 1.0).tolist(), first_step(len(start)) if step is None else step)


def advance(search: LocalSearch, data: Observations, *, tolerance: float = TOLERANCE) -> LocalSearch:
    """The search with the next point it needs; as it was if that is not told yet, or if it has ended."""
    while not search.ended and (row := _told_row(data, np.array(search.point))) is not None:
        search = replace(search, rows=(*search.rows, row))
        with np.errstate(over="ignore", invalid="ignore"):
            search = _advanced(search, *_in_units_of_its_start(search, data), tolerance)
    return search


def best_row(search: LocalSearch, data: Observations) -> int | None:
    """Where the best point of the search is in the data; None if none has a value."""
    rows = _valued(search.rows, data)
    return int(rows[data.y[rows].argmax()]) if len(rows) else None


def beside(search: LocalSearch, data: Observations, pending: Array) -> Array | None:
    """Another point on its way, while its own is pending: half as far, twice as far, a quarter; None if all are known.

    For further workers where no model knows better: what they tell is the start of the next search if it is best.
    """
    row = best_row(search, data)
    if row is None:
        return None
    way = np.array(search.point) - data.x[row]
    for power in range(1, _LINE + 1):
        for share in (0.5**power, 2.0**power):
            x = np.asarray(np.clip(data.x[row] + share * way, 0.0, 1.0))
            if not contains(data.x, x) and not contains(pending, x):
                return x
    return None


class _Path(NamedTuple):
    """What a search has seen.

    Attributes:
        center: Row of its best point.
        before: Row of the best one before the last was told.
        gain: Of the last one over `before`; -inf if it failed.
        steps: Of the secant pairs, `m x d`.
        changes: Of the gradient of -f along them, `m x d`.
    """

    center: int
    before: int
    gain: float
    steps: Array
    changes: Array


class _Region(NamedTuple):
    """Around the center: the metric, the radius, and the coordinates that are free, `d`."""

    metric: Metric
    radius: float
    free: lbfgs.Mask


class _Step(NamedTuple):
    """The end of a step from the center, its forecast, the radius it was taken with, and the model's error."""

    x: Array
    forecast: Forecast
    radius: float
    error: float


def _told_row(data: Observations, point: Array) -> int | None:
    """The row of a point; one that failed at first and then did not is the one that did not."""
    for rows in (np.flatnonzero(data.has_y), np.arange(len(data))):
        found, distance = nearest(data.x[rows], point)
        if distance <= SAME_POINT:
            return int(rows[found])
    return None


def _in_units_of_its_start(search: LocalSearch, data: Observations) -> tuple[Observations, float]:
    """Values from that of the search's first point on, in units of the slope there, and this unit."""
    rows = _valued(search.rows, data)
    if not len(rows):
        return data, 1.0
    steepest = float(np.abs(data.grad[rows[0]]).max())
    if not 0.0 < steepest < np.inf:
        return data, 1.0
    unit = steepest * float(np.linalg.norm(data.grad[rows[0]] / steepest))
    y, grad = data.y / unit - data.y[rows[0]] / unit, data.grad / unit
    return Observations(data.x, np.clip(y, -LARGEST, LARGEST), np.clip(grad, -LARGEST, LARGEST)), unit


def _valued(rows: tuple[int, ...], data: Observations) -> lbfgs.Index:
    chosen = np.array(rows, dtype=np.intp)
    return chosen[data.has_y[chosen]]


def _advanced(search: LocalSearch, data: Observations, unit: float, tolerance: float) -> LocalSearch:
    """After the last of its rows was told; `unit` is that of the values."""
    rows = _valued(search.rows, data)
    if not len(rows) or not data.has_grad[rows[data.y[rows].argmax()]].all():
        return replace(search, ended=True)
    path = _path(search.rows, rows, data)
    search = replace(search, lead=_lead(search, path.gain))
    step = _next_step(search, path, data)
    if step is None:
        return replace(search, ended=True)
    gained, promise = float(data.y[path.center] - data.y[rows[0]]), step.forecast.promise
    is_small = max(promise, path.gain) <= tolerance * gained or (path.gain <= 0.0 and promise <= _ROUNDING * gained)
    if search.forecast is not None and (is_small or _is_scattered(rows, path.gain, data, gained)):
        return replace(search, ended=True)
    return replace(search, point=step.x.tolist(), radius=step.radius, forecast=step.forecast._replace(unit=unit))


def _is_scattered(rows: lbfgs.Index, gain: float, data: Observations, gained: float) -> bool:
    """Whether the last two steps changed the value by what no slope on their way explains: there are no digits to gain.

    Of a smooth function the change over a short step lies about between those that the slopes at its ends foretell. One
    step may lead across a wall; the next one is shorter then.
    """
    if len(rows) <= _IN_A_ROW or not np.isfinite(gain):
        return False
    for end in range(len(rows) - _IN_A_ROW, len(rows)):
        before, last = int(rows[data.y[rows[:end]].argmax()]), int(rows[end])
        change = abs(data.y[last] - data.y[before])
        foretold = np.abs(data.grad[[before, last]] @ (data.x[last] - data.x[before])).max()
        if not (change > _STEEPEST * foretold and change > _SCATTER * gained):
            return False
    return True


def _path(told: tuple[int, ...], rows: lbfgs.Index, data: Observations) -> _Path:
    """From the rows told, and those of them that have a value, in their order."""
    center = before = int(rows[0])
    pairs: list[tuple[int, int]] = []
    for row in rows[1:].tolist():
        pairs.append((row, center))
        before = center
        if data.y[row] > data.y[center]:
            center = row
    failed = not data.has_y[told[-1]]
    gain = -np.inf if failed else float(data.y[told[-1]] - data.y[before])
    pairs = [(row, int(rows[0])) for row in _neighbours(rows, data)] + pairs
    ends, starts = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    known = _is_bowl(ends, starts, data)
    ends, starts = ends[known][-PAIRS:], starts[known][-PAIRS:]
    return _Path(
        center,
        center if failed else before,
        gain,
        data.x[ends] - data.x[starts],
        data.grad[starts] - data.grad[ends],
    )


def _neighbours(rows: lbfgs.Index, data: Observations) -> list[int]:
    """Rows of others' points around the start, the nearest last: what the gradients there say about the curvature."""
    known = data.has_y & data.has_grad.all(axis=1)
    known[rows] = False
    others = np.flatnonzero(known)
    away = data.x[others] - data.x[rows[0]]
    order = np.argsort(np.vecdot(away, away), kind="stable")[: 2 * data.x.shape[1]]
    return [int(row) for row in others[order[::-1]]]


def _is_bowl(ends: lbfgs.Index, starts: lbfgs.Index, data: Observations) -> lbfgs.Mask:
    r"""Whether -f between these rows is about a parabola, so that a secant is a curvature, `n`.

    Of a parabola the tangents at both ends of a step s miss the other end by the same, :math:`s^\top H s / 2`. Where
    one misses by less than a tenth of both there is a wall or a ridge on the way.
    """
    away = data.x[ends] - data.x[starts]
    rise = data.y[starts] - data.y[ends]
    first, last = rise + np.vecdot(away, data.grad[starts]), -np.vecdot(away, data.grad[ends]) - rise
    return np.asarray(np.minimum(first, last) > _SYMMETRY * (first + last))


def _lead(search: LocalSearch, gain: float) -> float:
    """How much better the model foretells values than the parabola, after a forecast came true or did not."""
    if search.forecast is None or search.forecast.model == search.forecast.parabola or not np.isfinite(gain):
        return search.lead
    errors = np.abs(gain - np.array(search.forecast[:2])) + np.finfo(np.float64).tiny
    return _FORGETTING * search.lead + float(np.clip(np.log(errors[1] / errors[0]), -_LOUDEST, _LOUDEST))


def _next_step(search: LocalSearch, path: _Path, data: Observations) -> _Step | None:
    """The best step of the model; of the parabola if the model's promise is below its error; None without one."""
    x, gradient = data.x[path.center], -data.grad[path.center]
    free = ~(((x <= 0.0) & (gradient > 0.0)) | ((x >= 1.0) & (gradient < 0.0)))
    if not _has_slope(gradient, free):
        return None
    for shrinks in range(_SHRINKS):
        step = _bounded_step(search, path, data, free, shrink=0.25**shrinks, is_plain=shrinks > 0)
        if step.forecast.promise <= step.error:
            step = _bounded_step(search, path, data, free, shrink=0.25**shrinks, is_plain=True)
        # If not, rounding or the bounds have turned it into a step up; and a known point tells nothing new.
        if step.forecast.promise > 0.0 and not contains(data.x, step.x):
            return step
    if len(path.steps):  # What was learned of the curvature leads nowhere: it is forgotten.
        return _next_step(search, path._replace(steps=path.steps[:0], changes=path.changes[:0]), data)
    return None


def _has_slope(gradient: Array, free: lbfgs.Mask) -> bool:
    """Whether a step along the free coordinates can be told from none: the square of their slopes exists."""
    return bool(np.vecdot(gradient[free], gradient[free]) > 0.0)


def _bounded_step(
    search: LocalSearch, path: _Path, data: Observations, free: lbfgs.Mask, *, shrink: float, is_plain: bool
) -> _Step:
    """The best of three steps within the bounds, if the first one leads out of the box.

    It ends at the first bound it meets, or coordinates that it would take out of the box go to a bound, or those that
    are near to one stay where they are.
    """
    x = data.x[path.center]
    metric, radius, _ = region = _region(search, path, data, free, shrink)
    parabola = LocalModel(metric.gradients(-data.grad[path.center]))
    model = parabola if is_plain else _model(metric, path, data)
    chosen = parabola if search.lead < 0.0 else model
    end = x + metric.differences(_minimizer(chosen, region))
    ends = [end]
    if not _is_inside(end):
        along = [_along_bounds(metric, -data.grad[path.center], x, end, region, stay=stay) for stay in (True, False)]
        ends = [_until_bound(x, end), *along]
    steps = [metric.coordinates(end - x) for end in ends]
    promises = [-chosen(u)[0] for u in steps]
    best = int(np.argmax(np.nan_to_num(promises, nan=-np.inf)))
    forecast = Forecast(-model(steps[best])[0], -parabola(steps[best])[0], promises[best])
    return _Step(ends[best], forecast, radius, chosen.error)


def _is_inside(x: Array) -> bool:
    return bool(((x >= 0.0) & (x <= 1.0)).all())


def _until_bound(x: Array, end: Array) -> Array:
    """The point where the way from x to the end leaves the box; coordinates at a bound that lead out of it stay."""
    step = end - x
    step[((x <= 0.0) & (step < 0.0)) | ((x >= 1.0) & (step > 0.0))] = 0.0
    room = np.where(step > 0.0, 1.0 - x, x)
    moved = step != 0.0
    share = min(1.0, float((room[moved] / np.abs(step[moved])).min(initial=1.0)))
    return np.clip(x + share * step, 0.0, 1.0)


def _along_bounds(metric: Metric, gradient: Array, x: Array, end: Array, region: _Region, *, stay: bool) -> Array:
    r"""Newton's step s of the parabola from x, in which coordinates H that would leave the box have a given step.

    .. math:: B_{FF}\, s_F = -(g_F + B_{FH}\, s_H)

    They go to the bound, or stay where they are if they would meet it early on the way; the others are free. The step
    is shortened to the radius. `end` is that of the step without bounds.
    """
    curvature, free = metric.curvature(), region.free
    step, held = end - x, np.zeros(len(x))
    for _ in range(_ROUNDS):
        room = np.where(step > 0.0, 1.0 - x, x)
        met = free & (room < (_NEAR if stay else 1.0) * np.abs(step))
        if not met.any() or not _has_slope(gradient, others := free & ~met):
            break
        if not stay:
            held[met] = np.sign(step[met]) * room[met]
        free, step = others, held.copy()
        try:
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], -(gradient + curvature @ held)[free])
        except np.linalg.LinAlgError:  # curvatures over hundreds of decades
            break
    length = float(np.linalg.norm(metric.coordinates(step)))
    return _until_bound(x, x + step * min(1.0, region.radius / length) if length > 0.0 else x)


def _region(search: LocalSearch, path: _Path, data: Observations, free: lbfgs.Mask, shrink: float) -> _Region:
    """The metric of the free coordinates and the radius, which follows from how well the last step went."""
    gradient = data.grad[path.center] * free
    steepness = float(np.linalg.norm(gradient))
    metric = bfgs_metric(path.steps * free, path.changes * free, steepness / search.step)
    newton = metric.gradients(gradient)
    radius = float(np.linalg.norm(newton))
    if search.radius is None:
        # What others' points say about the curvature is a guess: not farther than a search goes that knows nothing.
        length = float(np.linalg.norm(metric.differences(newton)))
        radius *= min(1.0, first_step(data.dim) / length) if length > 0.0 else 1.0
    if search.radius is not None and search.forecast is not None:
        last = metric.coordinates((data.x[search.rows[-1]] - data.x[path.before]) * free)
        rho = path.gain / search.forecast.promise
        factor = next(factor for limit, factor in _RADIUS_AFTER if rho < limit)
        length = factor * float(np.linalg.norm(last))
        trusted = length if factor < 1.0 else search.radius if factor == 1.0 else max(search.radius, length)
        radius = min(trusted, _REACH * radius)
    return _Region(metric, shrink * radius, free)


def _model(metric: Metric, path: _Path, data: Observations) -> LocalModel:
    """Of the points that are nearest to the center in the metric."""
    rows = np.flatnonzero(data.has_y)
    u = metric.coordinates(data.x[rows] - data.x[path.center])
    order = np.argsort(np.vecdot(u, u), kind="stable")[:POINTS]
    whole = data.has_grad[rows[order]].all(axis=1)
    order = np.concatenate([order[whole], order[~whole]])
    values = data.y[path.center] - data.y[rows[order]]
    gradients = metric.gradients(-data.grad[rows[order[: int(whole.sum())]]])
    return local_model(u[order], values, gradients, metric.gradients(-data.grad[path.center]))


def _minimizer(model: LocalModel, region: _Region) -> Array:
    """The best point of the model in the trust region, as far as a descent finds it; held coordinates are 0."""
    free, radius = region.free, region.radius
    unit = max(radius * float(np.linalg.norm(model.slope * free)), np.finfo(np.float64).tiny)

    def objective(t: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = model(np.where(free, radius * t[0], 0.0))
        return lbfgs.ObjectiveValues(np.array([value / unit]), (gradient * free * (radius / unit))[None])

    end = lbfgs.minimize(
        objective,
        np.zeros((1, len(free))),
        lower=np.where(free, -1.0, 0.0),
        upper=np.where(free, 1.0, 0.0),
        stopping=lbfgs.Stopping(decrease=1e-10, gradient=1e-10, evaluations=_MODEL_EVALUATIONS),
    ).x[0]
    return np.where(free, radius * end / max(1.0, float(np.linalg.norm(end))), 0.0)
