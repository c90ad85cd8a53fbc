"""A climb: steps to the best posterior mean nearby, from a start of its own, to see how high its peak is.

The model needs about half of the evaluations of L-BFGS-B for it, as it knows the curvature before the first step.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import torch

from eign.arrays import Array
from eign.data import Observations
from eign.formulas import projected_gradient
from eign.models.selection import SelectedModel
from eign.numerics import lbfgs
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.auto.memory import SMALL, Climb, next_radius
from eign.strategies.auto.steps import SAME_OPTIMUM, LocalStep, is_hopeless, local_step

_SMALLEST_RADIUS: Final = 3e-3
# A climb that is so much below the best point, and is to gain less than this share of it, will not get there.
_WORTHWHILE: Final = 0.02


def told_rows(climb: Climb, data: Observations) -> lbfgs.Index:
    """Rows of the points on its path that have a value, in their order."""
    known = np.flatnonzero(data.has_y)  # a point that failed at first and then did not is the one that did not
    found = (nearest(data.x[known], np.array(x)) for x in climb.path)
    return known[[row for row, distance in found if distance <= SAME_POINT]]


def is_above(rows: lbfgs.Index, data: Observations) -> bool:
    """Whether the best of these rows is the best of all."""
    return bool(len(rows)) and float(data.y[rows].max()) >= float(data.y[data.has_y].max())


def advance(climb: Climb, model: SelectedModel, data: Observations, optima: Array) -> Climb | None:
    """The climb with its next point at the end of its path; None if it has ended.

    It ends above everything else, where there is nothing to gain, or when it will not get there: it leads to an optimum
    that is known, or its gains are too small and do not grow. The model sees no gain on the plain around a narrow peak:
    there it goes along the gradient.
    """
    if not climb.path:
        climb = replace(climb, path=(climb.start,))
        if not contains(data.x, np.array(climb.start)):
            return climb
    rows = told_rows(climb, data)
    if not len(rows) or is_above(rows, data):
        return None
    values = model.fit.output.values(data.y)
    reached = values[rows]
    radius = climb.radius
    if climb.gain > 0.0 and len(rows) > 1:
        radius = next_radius(radius, float(reached[-1] - reached[:-1].max()) / climb.gain)
    others = np.delete(data.y, rows)
    best = data.y[data.has_y].argmax()
    if radius < _SMALLEST_RADIUS or is_hopeless(data, rows, float(others[np.isfinite(others)].max()), optima):
        return None
    behind = float(values[data.has_y][best] - reached.max())
    tops = np.concatenate([optima, data.x[data.has_y][best : best + 1]])
    near = local_step(model.model, data.x[rows[reached.argmax()]].copy(), radius)
    if nearest(tops, near.x)[1] < SAME_OPTIMUM:
        return None
    # Gains that grow from step to step are on their way to a peak, however small they are.
    is_worth_it = near.gain >= max(SMALL, _WORTHWHILE * behind) or 0.0 < climb.gain < near.gain
    step = near if is_worth_it and not contains(data.x, near.x) else uphill(data[rows], radius)
    if step is None or contains(data.x, step.x) or nearest(tops, step.x)[1] < SAME_OPTIMUM:
        return None
    return replace(climb, radius=radius, gain=step.gain, path=(*climb.path, step.x.tolist()))


def uphill(path: Observations, radius: float) -> LocalStep | None:
    """As far as `radius` along the last gradient of a path, as long as values rise and gradients grow; else None.

    For the plain around a peak: slopes are below what the model resolves there, but they point to it.
    """
    X, slopes = torch.tensor(path.x), torch.tensor(path.grad)
    steepness = projected_gradient(X, slopes).abs().amax(-1).numpy()
    rises = len(path) == 1 or (steepness[-1] > steepness[:-1].max() and path.y[-1] > path.y[:-1].max())
    if not rises or not steepness[-1] > 0.0:
        return None
    ahead = projected_gradient(X[-1], slopes[-1]).numpy() / steepness[-1]
    return LocalStep(np.clip(path.x[-1] + radius * ahead, 0.0, 1.0), 0.0)
