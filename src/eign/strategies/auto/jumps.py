"""Global steps in many dimensions: to the best place along every coordinate at once, if the function is separable.

No model of a few dozen points knows a cube of hundreds of dimensions, but many functions are nearly sums of functions
of one coordinate, or ripples on a bowl. Of such a sum a few points tell much, see `eign.models.separable`.
"""

from typing import NamedTuple

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.formulas.improvement_numpy import expected_improvement
from eign.models.separable import gains, separable_model
from eign.space import contains
from eign.strategies.auto.settings import SETTINGS


class Step(NamedTuple):
    """A point that could be next, why, the gain that it promises, and the unit of such gains; both as y."""

    x: Array
    reason: str
    gain: float
    unit: float


def jump(data: Observations, pending: Array, rng: np.random.Generator) -> Step:
    """From the best point along every coordinate to where the model's mean is best; anywhere if that promises nothing.

    The model is of the rows with a value and their whole gradient.
    """
    told = data[data.has_y & data.has_grad.all(axis=1)]
    order = np.argsort(-told.y, kind="stable")
    latest = np.arange(len(told))[-SETTINGS.kept :]
    seen = told[np.unique(np.concatenate([order[: SETTINGS.kept], latest]))]
    best, unit = told.x[order[0]], float(told.y.std()) or 1.0
    model = separable_model(seen.x, seen.y / unit, seen.grad / unit, rng)
    if model is None:
        return Step(rng.random(data.dim), "global", 0.0, unit)
    along = np.broadcast_to(np.linspace(0.0, 1.0, SETTINGS.places), (data.dim, SETTINGS.places))
    places = np.column_stack([along, best])
    found = gains(model, places)
    chosen = np.arange(data.dim), found.mean.argmax(axis=1)
    x, mean, variance = places[chosen], found.mean[chosen].sum(), found.variance[chosen].sum()
    if contains(data.x, x) or contains(pending, x) or not variance > 0.0:
        return Step(rng.random(data.dim), "global", 0.0, unit)
    gain = float(expected_improvement(np.array([mean]), np.array([variance]), 0.0).value[0])
    return Step(x, "global", gain * unit, unit)


def is_worth_drawing(data: Observations, rng: np.random.Generator) -> bool:
    """Whether a point from anywhere tells more than another search: too few lie apart, and f looks like a sum.

    Points of a search lie so close together that they say nothing about the rest of a coordinate. Sixteen that lie
    apart show a ripple or two of it, and half as many whether the function is separable at all.
    """
    told = data[data.has_y & data.has_grad.all(axis=1)]
    apart: list[int] = []
    for row, x in enumerate(told.x):
        if (np.linalg.norm(told.x[apart] - x, axis=1) > SETTINGS.apart * np.sqrt(data.dim)).all():
            apart.append(row)
    if not SETTINGS.drawn / 2 <= len(apart) < SETTINGS.drawn:
        return len(apart) < SETTINGS.drawn
    seen = told[np.array(apart)]
    unit = float(seen.y.std()) or 1.0
    model = separable_model(seen.x, seen.y / unit, seen.grad / unit, rng)
    return model is not None and model.is_close
