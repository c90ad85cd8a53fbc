"""The steps that `auto` chooses from: where the model says f is best nearby, and descents on the function itself."""

from typing import Final, NamedTuple

import numpy as np

from eign.acquisition import UCB, SurrogateAcquisition
from eign.arrays import Array
from eign.data import Observations
from eign.models import JointGradientGP
from eign.numerics import lbfgs
from eign.numerics.threads import single_threaded_blas
from eign.space import nearest
from eign.strategies.auto.bowl import bowl_top

# An optimum that was reached once is not worth another descent that ends this close to it.
_SAME_BASIN: Final = 0.1
SAME_OPTIMUM: Final = 0.03
_KNOWN_SHARE: Final = 0.5
_DRAWS: Final = 64
# Evaluations over which the gain of a descent is compared with the gain before.
_WINDOW: Final = 3
_HOPE: Final = 2.0


class LocalStep(NamedTuple):
    """The best point nearby as the model sees it, `d`, and how far its mean is above the center's, in its units."""

    x: Array
    gain: float


def local_step(model: JointGradientGP, center: Array, radius: float) -> LocalStep:
    """The largest posterior mean within `radius` of the center in each coordinate, as far as an ascent finds it.

    The gain is counted from the mean at the center, not from the value there: they differ by what the nugget lets
    pass, 1e-6 standard deviations, and steps to the same place again would seem to be worth that.
    """
    low, high = np.maximum(center - radius, 0.0), np.minimum(center + radius, 1.0)
    mean = UCB(model, weight=0.0)
    end = _ascend(mean, center[None], low, high, evaluations=60, decrease=1e-10)
    return LocalStep(np.clip(end.x[0], low, high), -float(end.value[0]) - float(mean.evaluate(center[None])[0]))


def new_start(data: Observations, optima: Array, rng: np.random.Generator) -> Array:
    """Where the next climb begins, `d`: at the top of a bowl; if it is known, at a good point, or by chance anywhere.

    The model is not asked: climbs from elsewhere are for the case that it is wrong.
    """
    top = bowl_top(data)
    if top is not None and nearest(optima, top)[1] > _SAME_BASIN:
        return top
    known = _best_alone(data, optima) if rng.random() < _KNOWN_SHARE else None
    if known is not None:
        return known
    draws = rng.random((_DRAWS, data.dim))
    return next((x for x in draws if nearest(optima, x)[1] > _SAME_BASIN), draws[0])


def unexplored(points: Array, rng: np.random.Generator) -> Array:
    """Of some points anywhere the one that is farthest from those given, `k x d -> d`."""
    draws = rng.random((_DRAWS, points.shape[1]))
    return np.array(max(draws, key=lambda x: nearest(points, x)[1]))


def _best_alone(data: Observations, optima: Array) -> Array | None:
    """The best point with neither a better one nor a known optimum nearby, as a peak would be that nobody climbed."""
    y = np.where(data.has_y, data.y, -np.inf)
    for row in np.argsort(-y, kind="stable")[: data.has_y.sum()]:
        x = data.x[row]
        is_near = np.abs(data.x - x).max(axis=1) <= _SAME_BASIN
        if not (is_near & (y > y[row])).any() and nearest(optima, x)[1] > _SAME_BASIN:
            return np.array(x)
    return None


def is_hopeless(data: Observations, rows: lbfgs.Index, best: float, optima: Array) -> bool:
    r"""Whether a descent, the `rows` of the data in their order, will not get above `best`.

    It has come to a known optimum, or its gains shrink so fast that their sum stays below: if the last three
    evaluations gained b and the three before a > b, a geometric series has :math:`b^2 / (a - b)` left, and twice that
    is granted.
    """
    y = np.where(data.has_y[rows], data.y[rows], -np.inf)
    if not len(rows) or y.max() >= best:
        return False
    if nearest(optima, data.x[rows[y.argmax()]])[1] < SAME_OPTIMUM:
        return True
    if len(rows) <= 2 * _WINDOW or not np.isfinite(y[0]):
        return False
    reached = np.maximum.accumulate(y)
    late, early = reached[-1] - reached[-1 - _WINDOW], reached[-1 - _WINDOW] - reached[-1 - 2 * _WINDOW]
    return bool(late < early and reached[-1] + _HOPE * late * late / (early - late) < best)


def _ascend(
    target: SurrogateAcquisition, starts: Array, low: Array, high: Array, *, evaluations: int, decrease: float
) -> lbfgs.Minimum:
    """Local maxima from the starts `k x d` as minima of the negative; the model's units are about 1."""

    def objective(x: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = target.value_and_gradient(x)
        return lbfgs.ObjectiveValues(-value, -gradient)

    stopping = lbfgs.Stopping(decrease=decrease, gradient=1e-9, evaluations=evaluations)
    with single_threaded_blas():
        return lbfgs.minimize(objective, starts, lower=low, upper=high, stopping=stopping, memory=8, longest_step=0.1)
