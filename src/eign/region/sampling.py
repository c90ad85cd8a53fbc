"""Points all over a polytope matrix w <= limit, between bounds: for designs and for candidates of a search.

Where a fair share of its bounding box is inside, they are the Sobol points that are. Where it is not, as in a simplex
of many dimensions, they come from hit and run: from a point inside a random direction, and a uniform point of the chord
that it cuts out, in coordinates in which the polytope is about as wide in all directions.
"""

from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from eign.arrays import Array

# Sobol points are filtered if at least this share of so many is inside.
_FAIR_SHARE: Final = 0.02
_TRIAL: Final = 1024
# Chains of hit and run in parallel; steps for each coordinate before their points are used, in two rounds: the first
# finds how wide the polytope is in which direction. Later points start from those.
_CHAINS: Final = 512
_STEPS: Final = (10, 10)
_LATER_STEPS: Final = 10
# Of so many random points the design takes the one that is farthest from those before.
_CHOICE: Final = 24


class Sampler:
    """Points of one polytope that has an interior; `middle` is one of them, not at the border."""

    def __init__(self, matrix: Array, limit: Array, lower: Array, upper: Array, middle: Array) -> None:
        """With finite bounds, `p x q, p, q, q, q`."""
        self._matrix, self._limit = matrix, limit
        self._lower, self._upper, self._middle = lower, upper, middle
        identity = np.eye(len(lower))
        self._walls = np.concatenate([matrix, identity, -identity])
        self._distances = np.concatenate([limit, upper, -lower])
        self._designs: dict[int, Array] = {}

    def samples(self, count: int, rng: np.random.Generator) -> Array:
        """`count x q`, about uniform."""
        dim = len(self._middle)
        if not dim:
            return np.zeros((count, 0))
        if self._share >= _FAIR_SHARE:
            drawn = 1 << int(np.ceil(np.log2(count / self._share))) + 1
            points = self._inside(_shifted_sobol(dim, drawn, rng))
            if len(points) >= count:
                return points[:count]
        start = self._pool[rng.integers(len(self._pool), size=count)]
        return self._walked(start, self._widths, _LATER_STEPS + dim, rng)

    def design_point(self, seed: int, index: int) -> Array:
        """Point `index` of the sequence of this seed, `q`: each far from those before it."""
        if not len(self._middle):
            return np.zeros(0)
        known = self._designs.get(seed)
        if known is None or index >= len(known):
            known = self._design(seed, max(16, 1 << int(index).bit_length()))
            self._designs = {**dict(list(self._designs.items())[-15:]), seed: known}
        return np.array(known[index])

    def _design(self, seed: int, count: int) -> Array:
        dim = len(self._middle)
        drawn = 2 * count
        while self._share >= _FAIR_SHARE and drawn <= 256 * count:
            points = self._inside(_sobol(seed, dim, int(np.ceil(np.log2(drawn)))))
            if len(points) >= count:
                return points[:count]
            drawn *= 2
        rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        chosen = np.empty((0, dim))
        for _ in range(count):
            candidates = self.samples(_CHOICE, rng)
            far = [
                np.abs((chosen - one) @ np.linalg.inv(self._widths).T).max(axis=1).min(initial=np.inf)
                for one in candidates
            ]
            chosen = np.concatenate([chosen, candidates[int(np.argmax(far))][None]])
        return chosen

    def _inside(self, unit: Array) -> Array:
        """Points of the unit cube scaled to the bounding box, those that are inside."""
        points = self._lower + unit * (self._upper - self._lower)
        return np.asarray(points[(points @ self._matrix.T <= self._limit).all(axis=1)])

    @cached_property
    def _share(self) -> float:
        """Of the bounding box that is inside."""
        if not len(self._matrix):
            return 1.0
        trial = _shifted_sobol(len(self._middle), _TRIAL, np.random.default_rng(0))
        return len(self._inside(trial)) / _TRIAL

    @cached_property
    def _pool(self) -> Array:
        """Points after many steps, from where others begin."""
        rng = np.random.default_rng(1)
        start = np.repeat(self._middle[None], _CHAINS, axis=0)
        steps = _STEPS[0] * (len(self._middle) + 10)
        first = self._walked(start, np.diag(self._upper - self._lower), steps, rng)
        return self._walked(first, _shape(first, self._upper - self._lower), steps, rng)

    @cached_property
    def _widths(self) -> Array:
        return _shape(self._pool, self._upper - self._lower)

    def _walked(self, points: Array, widths: Array, steps: int, rng: np.random.Generator) -> Array:
        """Each point after so many steps, directions N(0, widths widths')."""
        points = points.copy()
        slack = self._distances - points @ self._walls.T
        rate_of = self._walls @ widths
        for _ in range(steps):
            normal = rng.standard_normal(points.shape)
            rate = normal @ rate_of.T
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.maximum(slack, 0.0) / rate
            ahead = np.where(rate > 0.0, reach, np.inf).min(axis=1)
            behind = np.where(rate < 0.0, reach, -np.inf).max(axis=1)
            length = behind + rng.random(len(points)) * (ahead - behind)
            length = np.where(np.isfinite(length), length, 0.0)[:, None]
            points += length * (normal @ widths.T)
            slack -= length * rate
        return points


def _shape(points: Array, spans: Array) -> Array:
    """A root of the covariance of the points, with a share of the spans against degeneracy."""
    covariance = (
        np.cov(points.T).reshape(len(spans), len(spans)) + np.diag((1e-6 * spans) ** 2) + 1e-300 * np.eye(len(spans))
    )
    return np.asarray(np.linalg.cholesky(covariance))


def _shifted_sobol(dim: int, count: int, rng: np.random.Generator) -> Array:
    """Sobol points modulo a random shift, drawn from one table."""
    points = _sobol(0, dim, int(np.ceil(np.log2(count))))[:count]
    return np.asarray((points + rng.random(dim)) % 1.0)


@lru_cache(maxsize=32)
def _sobol(seed: int, dim: int, log_count: int) -> Array:
    from scipy.stats import qmc  # half a second

    rng = np.random.default_rng(np.random.SeedSequence(seed))
    return np.asarray(qmc.Sobol(dim, scramble=True, rng=rng).random_base2(log_count))
