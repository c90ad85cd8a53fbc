r"""One model for each output of an evaluation: f first, then the constraints, all in the units of their models.

| symbol | in code | meaning |
|---|---|---|
| k = 0 .. m | | outputs: f, then the constraints |
| :math:`\mu_k` | `means` | posterior means, in units in which what was told has mean 0 and deviation 1 |
| l, u | `lower`, `upper` | limits of the constraints in these units |

Each is a process of value and gradient, fitted on its own, of logarithms of the values where these are more likely: see
`eign.models.selection`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import torch

from eign.arrays import Array
from eign.data import Observations
from eign.formulas.kkt_numpy import Limited, kkt
from eign.models.selection import ModelSettings, SelectedModel, Selection, fitted
from eign.strategies.auto import settings as auto
from eign.strategies.constrained.standing import Standing

SETTINGS: Final = replace(auto.SETTINGS.model, growth=0.3, thinned=False, doubts_slopes=False)
"""Of the models.

Points are not thinned, as the best of those that are close to each other is another one for each output; and slopes
are believed, as the models make the local steps.
"""
# A limit is active for multipliers within this share of the constraint's scale.
_ACTIVE: Final = 1e-3


class Moments(NamedTuple):
    """Means and variances of all outputs at k points, `k x (m+1)`, and their gradients, `k x (m+1) x d`."""

    mean: Array
    variance: Array
    mean_gradient: Array
    variance_gradient: Array


@final
@dataclass(frozen=True)
class Outputs:
    """The models of f and the constraints, and what was told in their units.

    Attributes:
        models: f first; None for a constraint of which nothing is known yet.
        standing: What was told.
    """

    models: tuple[SelectedModel | None, ...]
    standing: Standing

    @property
    def objective(self) -> SelectedModel:
        """The model of f."""
        assert self.models[0] is not None, "without a value the design goes on"
        return self.models[0]

    @property
    def is_noisy(self) -> bool:
        """Whether values of an output scatter."""
        return any(model is not None and model.noisy for model in self.models)

    @property
    def seen(self) -> Array:
        """The points of the cube that the model of f knows, `n x d`, pending ones and those that failed among them."""
        return self.objective.coordinates.undo(self.objective.model.observations.x)

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of the constraints in the units of their models, `m` each."""
        return self._in_units(self.standing.lower), self._in_units(self.standing.upper)

    @cached_property
    def tolerances(self) -> Array:
        """What 1 scale of each constraint is in the units of its model at the limit, `m`."""
        standing = self.standing
        limits = np.where(np.isfinite(standing.upper), standing.upper, standing.lower)
        pairs = zip(self.models[1:], limits, strict=True)
        slopes = [1.0 if one is None else float(one.fit.output.slope(np.array(limit))) for one, limit in pairs]
        return np.array(slopes) * standing.scales

    @cached_property
    def told(self) -> Array:
        """Values in the units of the models, `n x (m+1)`; NaN where there is none, or posterior means with noise."""
        columns = [self._told(k, data) for k, data in enumerate(self._data)]
        return np.column_stack(columns)

    @cached_property
    def slopes(self) -> Array:
        """Gradients in the units of the models, `n x (m+1) x d`; NaN where there is none, or with noise."""
        parts = []
        for model, data in zip(self.models, self._data, strict=True):
            is_exact = model is not None and not model.noisy
            parts.append(model.fit.output.apply(data).grad if is_exact and model else np.full(data.x.shape, np.nan))
        return np.stack(parts, axis=1)

    def merit(self, penalty: float) -> Array:
        r"""Of the points told, `n`: value less the penalty times all violations; minus infinity where one is missing.

        .. math:: f - \rho \sum_j \max(l_j - c_j, c_j - u_j, 0)
        """
        lower, upper = self.limits
        constraints = self.told[:, 1:]
        violation = np.maximum(np.maximum(lower - constraints, constraints - upper), 0.0).sum(axis=1)
        merit = self.told[:, 0] - penalty * violation
        return np.asarray(np.where(np.isfinite(merit), merit, -np.inf))

    def multipliers(self) -> Array:
        """Of the constraints at the best point, in the units of the models, `m`; 0 where gradients are missing."""
        row, none = self.standing.best, np.zeros(len(self.models) - 1)
        if row is None or not (np.isfinite(self.slopes[row]).all() and np.isfinite(self.told[row]).all()):
            return none
        limited = Limited(self.told[row, 1:], self.slopes[row, 1:], *self.limits, self.tolerances)
        return kkt(np.array(self.standing.data.x[row]), self.slopes[row, 0], limited, active=_ACTIVE).constraints

    def means(self, x: Array) -> tuple[Array, Array]:
        """Of all outputs at one point, `d -> m+1`, and their gradients, `(m+1) x d`."""
        value, slope = np.zeros(len(self.models)), np.zeros((len(self.models), len(x)))
        for k, model in enumerate(self.models):
            if model is not None:
                mean, gradient = model.model.mean_and_gradient(_own(model, x[None]))
                value[k], slope[k] = float(mean[0]), model.coordinates.slopes(gradient[0].numpy(), x)
        return value, slope

    def moments(self, X: Array, *, gradients: bool) -> Moments:
        """At k points; without gradients these are empty. An unknown constraint is in the middle of its limits."""
        count, size = len(X), len(self.models)
        shape = (count, size, X.shape[1]) if gradients else (0, size, X.shape[1])
        found = Moments(np.zeros((count, size)), np.ones((count, size)), np.zeros(shape), np.zeros(shape))
        for k, model in enumerate(self.models):
            if model is None:
                continue
            points = _own(model, X)
            if not gradients:
                found.mean[:, k], found.variance[:, k] = (part.numpy() for part in model.model.moments(points))
                continue
            parts = model.model.moments_and_gradients(points)
            found.mean[:, k], found.variance[:, k] = (part.numpy() for part in parts[:2])
            found.mean_gradient[:, k] = model.coordinates.slopes(parts[2].numpy(), X)
            found.variance_gradient[:, k] = model.coordinates.slopes(parts[3].numpy(), X)
        return found

    def given(self, pending: Array) -> "Outputs":
        """With stand-ins for the points that failed, where f is the worst seen, and those that are pending."""
        models = []
        for k, (model, data) in enumerate(zip(self.models, self._data, strict=True)):
            known = data if k == 0 else data[~data.failed]
            models.append(None if model is None else model.given(known, pending))
        return Outputs(tuple(models), self.standing)

    @property
    def _data(self) -> tuple[Observations, ...]:
        return (self.standing.data.objective, *self.standing.data.constraints)

    def _told(self, k: int, data: Observations) -> Array:
        model = self.models[k]
        if model is None:
            return np.full(len(data), np.nan if k == 0 else 0.0)
        if model.noisy:
            return np.where(data.has_y, model.model.moments(_own(model, data.x))[0].numpy(), np.nan)
        return np.where(data.has_y, model.fit.output.values(np.where(data.has_y, data.y, 0.0)), np.nan)

    def _in_units(self, limits: Array) -> Array:
        models = self.models[1:]
        return np.array(
            [
                np.sign(limit) * np.inf
                if model is None or not np.isfinite(limit)
                else float(model.fit.output.values(np.array([limit]))[0])
                for limit, model in zip(limits, models, strict=True)
            ]
        )


def fit_outputs(
    standing: Standing,
    stored: Sequence[Mapping[str, Any] | None],
    options: Mapping[str, Any],
    *,
    settings: ModelSettings = SETTINGS,
) -> tuple[Outputs, list[dict[str, Any] | None]]:
    """The models of what was told, refitted after growth, and the fits as plain data."""
    data = _affordable(standing, settings.rows)
    outputs = (data.objective, *data.constraints)
    last = [None if one is None else Selection.from_json(one) for one in (*stored, *[None] * len(outputs))]
    models: list[SelectedModel | None] = []
    for k, (output, before) in enumerate(zip(outputs, last, strict=False)):
        if not output.has_y.any():
            models.append(None)
            continue
        seen = output if k == 0 else _without_failures(output)
        models.append(fitted(seen, before, standing.decades, options, settings))
    fits = [None if model is None else model.fit.to_json() for model in models]
    return Outputs(tuple(models), standing), fits


def fit_as_before(
    standing: Standing, stored: Sequence[Mapping[str, Any] | None], options: Mapping[str, Any]
) -> Outputs:
    """The models of what was told, with the hyperparameters there are."""
    return fit_outputs(standing, stored, options, settings=replace(SETTINGS, growth=np.inf))[0]


def _own(model: SelectedModel, X: Array) -> torch.Tensor:
    """Points of the cube in the coordinates of a model."""
    return torch.from_numpy(np.array(model.coordinates.points(X)))


def _without_failures(data: Observations) -> Observations:
    """With infinite values as missing: for one output that is no failure of the evaluation."""
    return Observations(data.x, np.where(data.has_y, data.y, np.nan), data.grad, data.y_var, data.grad_var)


def _affordable(standing: Standing, rows: int) -> Observations:
    """All values, and the gradients of the best and of the latest points, as many as rows leave room for."""
    data = standing.data
    room = max(0, rows - len(data)) // data.dim
    if len(data) <= room:
        return data
    kept = np.zeros(len(data), dtype=np.bool_)
    kept[standing.order[: (room + 1) // 2]] = True
    latest = np.flatnonzero(~kept)[::-1]
    kept[latest[: max(room - int(kept.sum()), 0)]] = True

    def thinned(one: Observations) -> Observations:
        return Observations(one.x, one.y, np.where(kept[:, None], one.grad, np.nan), one.y_var, one.grad_var)

    return thinned(data.objective).with_constraints([thinned(one) for one in data.constraints])
