"""The point of a region where a function is largest, as far as ascents from some of its candidates find it."""

from typing import Final, Protocol

import numpy as np

from eign.arrays import Array
from eign.numerics import lbfgs
from eign.numerics.threads import single_threaded_blas
from eign.region import Region
from eign.search.candidates import boltzmann_starts, local_candidates
from eign.space import contains

_STOPPING: Final = lbfgs.Stopping(decrease=1e-3, gradient=1e-5, evaluations=25)
# A point at a distance of 0.01 beyond a row loses 1, in units of the search. What is found is then moved inside.
_WALL: Final = 1e4
_LEAST: Final = -1e300


class Target(Protocol):
    """What is maximised."""

    def evaluate(self, X: Array, /) -> Array:
        """Values, `n x d -> n`."""

    def value_and_gradient(self, X: Array, /) -> tuple[Array, Array]:
        """Values and derivatives by the point, `n x d -> n, n x d`."""


def candidates(region: Region, incumbents: Array, count: int, rng: np.random.Generator) -> Array:
    """Points all over the region, and one around the incumbents for eight of them, `n x d`."""
    raw = region.samples(count, rng)
    if not len(incumbents):
        return raw
    return np.concatenate([raw, region.project(local_candidates(incumbents, max(1, count // 8), rng))])


def best_new(
    target: Target,
    region: Region,
    raw: Array,
    seen: Array,
    rng: np.random.Generator,
    *,
    restarts: int,
    unit: float | None = None,
) -> Array:
    """The best point found that is not among those seen, `d`.

    Args:
        target: What is maximised.
        region: Where.
        raw: Candidates, `n x d`.
        seen: Points not to be found again, `k x d`.
        rng: For the starts of ascents.
        restarts: Ascents.
        unit: Differences below a thousandth of it do not matter; None takes the spread of the candidates' values.
    """
    with single_threaded_blas(), np.errstate(all="ignore"):
        values = target.evaluate(raw)
        values = np.where(np.isfinite(values), values, _LEAST)
        usable = values[values > _LEAST]
        if unit is None:
            unit = float(usable.max() - np.median(usable)) if len(usable) else 1.0
        starts = raw[boltzmann_starts(values, min(restarts, len(raw)), rng)]
        ends = _climb(target, region, starts, unit or 1.0)
        heights = target.evaluate(ends)
    points, heights = np.concatenate([ends, raw]), np.concatenate([heights, values])
    for index in np.argsort(-np.where(np.isfinite(heights), heights, -np.inf), kind="stable"):
        if not contains(seen, points[index]):
            return np.array(points[index])
    return np.array(raw[0])


def _climb(target: Target, region: Region, starts: Array, unit: float) -> Array:
    """Local maxima from the starts, `k x d`, in reduced coordinates; rows are walls that give way a little."""
    if not region.basis.shape[1]:
        return starts

    def objective(w: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = target.value_and_gradient(region.restored(w))
        beyond = np.maximum(w @ region.matrix.T - region.limit, 0.0)
        slope = -(gradient @ region.basis) / unit + 2.0 * _WALL * beyond @ region.matrix
        return lbfgs.ObjectiveValues(-value / unit + _WALL * (beyond**2).sum(axis=1), slope)

    end = lbfgs.minimize(
        objective,
        region.reduced(starts),
        lower=region.lower,
        upper=region.upper,
        stopping=_STOPPING,
        memory=min(8, region.basis.shape[1] + 1),
        longest_step=0.1,
    )
    return region.project(region.restored(end.x))
