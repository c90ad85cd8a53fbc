"""The steps that `auto` chooses from: where the model says f is best nearby, and where a new descent could begin."""

from typing import Final, NamedTuple

import numpy as np

from eign.acquisition import UCB, SurrogateAcquisition
from eign.arrays import Array
from eign.data import Observations
from eign.models import JointGradientGP, lbfgs
from eign.models.threads import single_threaded_blas
from eign.search.candidates import global_candidates
from eign.strategies.strategy import nearest

# An optimum that was reached once is not worth another descent that ends this close to it.
_SAME_BASIN: Final = 0.1
_SAME_OPTIMUM: Final = 0.03
_CANDIDATES: Final = 512
_CLIMBERS: Final = 24
# A descent that begins where the model expects much, or knows little: drawn anew for each.
_OPTIMISM: Final = (0.5, 1.0, 2.0, 4.0)
_BLIND_SHARE: Final = 1 / 3
# Evaluations over which the gain of a descent is compared with the gain before.
_WINDOW: Final = 3
_HOPE: Final = 2.0


class LocalStep(NamedTuple):
    """The best point nearby as the model sees it, `d`, and its mean in the model's units."""

    x: Array
    mean: float


def local_step(model: JointGradientGP, center: Array, radius: float) -> LocalStep:
    """The largest posterior mean within `radius` of the center in each coordinate, as far as an ascent finds it."""
    low, high = np.maximum(center - radius, 0.0), np.minimum(center + radius, 1.0)
    end = _ascend(UCB(model, weight=0.0), center[None], low, high, evaluations=60, decrease=1e-10)
    return LocalStep(np.clip(end.x[0], low, high), -float(end.value[0]))


def new_start(model: JointGradientGP, seen: Array, optima: Array, rng: np.random.Generator) -> Array:
    """Where the next descent begins, `d`: a third of them as far from everything as possible, the others at a peak.

    A peak is a local maximum of mean + k sigma, k drawn from 1/2 to 4, that is not in the basin of a known optimum.
    """
    candidates = global_candidates(_CANDIDATES, seen.shape[1], rng)
    weight = float(rng.choice(_OPTIMISM))
    if rng.random() >= _BLIND_SHARE:
        bound = UCB(model, weight=weight)
        with single_threaded_blas():
            best = np.argsort(-bound.evaluate(candidates), kind="stable")[:_CLIMBERS]
        zero, one = np.zeros(seen.shape[1]), np.ones(seen.shape[1])
        peaks = _ascend(bound, candidates[best], zero, one, evaluations=20, decrease=1e-3)
        for index in np.argsort(peaks.value, kind="stable"):
            x = np.clip(peaks.x[index], 0.0, 1.0)
            if nearest(optima, x)[1] > _SAME_BASIN and nearest(seen, x)[1] > 1e-3:
                return np.asarray(x)
    distances = np.abs(candidates[:, None] - seen[None]).max(axis=-1).min(axis=1)
    return np.asarray(candidates[distances.argmax()])


def is_hopeless(data: Observations, rows: lbfgs.Index, best: float, optima: Array) -> bool:
    r"""Whether a descent, the `rows` of the data in their order, will not get above `best`.

    It has come to a known optimum, or its gains shrink so fast that their sum stays below: if the last three
    evaluations gained b and the three before a > b, a geometric series has :math:`b^2 / (a - b)` left, and twice that
    is granted.
    """
    y = np.where(data.has_y[rows], data.y[rows], -np.inf)
    if not len(rows) or y.max() >= best:
        return False
    if nearest(optima, data.x[rows[y.argmax()]])[1] < _SAME_OPTIMUM:
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

    def objective(x: Array, _: lbfgs.Index) -> lbfgs.Evaluation:
        value, gradient = target.value_and_gradient(x)
        return lbfgs.Evaluation(-value, -gradient)

    stopping = lbfgs.Stopping(decrease=decrease, gradient=1e-9, evaluations=evaluations)
    with single_threaded_blas():
        return lbfgs.minimize(objective, starts, lower=low, upper=high, stopping=stopping, memory=8, longest_step=0.1)
