r"""Samples of a Gaussian process as problems, as in the paper's comparisons within and out of the model.

A function is drawn in two steps: values y at n = 200 d scrambled Sobol points c_j of the unit cube, jointly from the
prior, and then the mean of the same process given these values:

.. math:: f(x) = \sum_j a_j\, k(x, c_j), \qquad K a = y, \quad y \sim N(0, K), \qquad
          k(x, c) = \exp\bigl(-\tfrac12 \|x - c\|^2 / \ell^2\bigr), \quad \ell = 0.4 / \sqrt d

With y = L z and K = L L' the weights are L'^{-1} z. The length is short: in seven dimensions and more, neighbouring
points are nearly independent, and f is a field of some hundred hills around the points with the largest values.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from eign.arrays import Array, Mask, read_only
from eign.numerics import lbfgs
from eign.problems.problem import Family, Problem
from eign.space import Box

POINTS_PER_DIMENSION = 200
# Below it, in few dimensions, K is singular in float64. From seven on it changes f by parts in a million.
_NUGGET = 1e-6
_CLIMBS = 256
_BLOCK = 256
_SUMMARY = "Gaussian process sample: hills of one width, at random"


def lengthscale(d: int) -> float:
    """The lengthscale of the prior in every coordinate, 0.4 / sqrt(d).

    >>> lengthscale(4)
    0.2
    """
    return 0.4 / math.sqrt(d)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PosteriorMean:
    """The function f(x) = sum_j a_j k(x, c_j) with the squared exponential kernel; a problem's formula.

    Attributes:
        centres: The points c_j, `m x d`.
        weights: The weights a_j, `m`.
        lengthscale: Of the kernel.
    """

    centres: Array
    weights: Array
    lengthscale: float

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Values and gradients, `n x d -> n, n x d`, in blocks that stay in the cache."""
        values, gradients = np.empty(len(X)), np.empty(X.shape)
        for first in range(0, len(X), _BLOCK):
            rows = slice(first, first + _BLOCK)
            terms = self._terms(X[rows])
            values[rows] = terms.sum(axis=1)
            gradients[rows] = (terms @ self.centres - values[rows, np.newaxis] * X[rows]) / self.lengthscale**2
        return values, gradients

    def hessian(self, x: Array) -> Array:
        r"""The second derivatives at one point, `d -> d x d`.

        .. math:: \sum_j a_j k(x, c_j)\, \bigl((x - c_j)(x - c_j)^\top / \ell^4 - I / \ell^2\bigr)
        """
        terms = self._terms(x[np.newaxis])[0]
        away = (x - self.centres) / self.lengthscale**2
        return np.asarray((terms[:, np.newaxis] * away).T @ away - terms.sum() / self.lengthscale**2 * np.eye(len(x)))

    def _terms(self, X: Array) -> Array:
        """Each a_j k(x, c_j), `n x d -> n x m`."""
        return covariance(X, self.centres, self.lengthscale) * self.weights


def covariance(X: Array, C: Array, length: float) -> Array:
    r"""The kernel :math:`\exp(-\tfrac12 \|x - c\|^2 / \ell^2)`, `n x d, m x d -> n x m`."""
    from scipy.spatial.distance import cdist

    squares = cdist(X, C, "sqeuclidean")  # from differences: expanded squares would cancel
    squares /= -2 * length**2
    return np.exp(squares, out=squares)


def sample(d: int, *, seed: int = 0) -> PosteriorMean:
    """The function of dimension d that belongs to a seed."""
    from scipy.linalg import solve_triangular
    from scipy.stats import qmc

    count = POINTS_PER_DIMENSION * d
    rng = np.random.default_rng([seed, d])
    centres = qmc.Sobol(d, scramble=True, rng=rng).random_base2((count - 1).bit_length())[:count]
    white = rng.standard_normal(count)
    prior = covariance(centres, centres, lengthscale(d))
    prior[np.diag_indices(count)] += _NUGGET
    weights = solve_triangular(np.linalg.cholesky(prior), white, lower=True, trans="T")
    return PosteriorMean(read_only(centres), read_only(weights), lengthscale(d))


def locate_maximum(f: PosteriorMean, *, climbs: int = _CLIMBS) -> Array:
    """The highest point of the unit cube that climbs find, `d`: from the best of the centres, then Newton's steps.

    How sure is it? In 7, 8 and 9 dimensions, with four seeds each, climbs from all 200 d centres, 5000 random points
    and 2000 points halfway between two centres found nothing higher, and the best 16 centres would have been enough:
    the highest hill was always that of the highest centre.
    """
    values, _ = f(f.centres)
    starts = f.centres[np.argsort(-values, kind="stable")[:climbs]]

    def descent(x: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = f(x)
        return lbfgs.ObjectiveValues(-value, -gradient)

    low, high = np.array(0.0), np.array(1.0)
    ends = lbfgs.minimize(descent, starts, lower=low, upper=high, longest_step=f.lengthscale)
    return _polished(f, ends.x[ends.value.argmin()])


def _polished(f: PosteriorMean, x: Array) -> Array:
    """Three Newton steps on the coordinates that no bound holds: from 1e-8 to rounding."""
    for _ in range(3):
        gradient = f(x[np.newaxis])[1][0]
        free = _free(x, gradient)
        x = x.copy()
        x[free] -= np.linalg.solve(f.hessian(x)[np.ix_(free, free)], gradient[free])
        x = np.clip(x, 0.0, 1.0)
    return x


def _free(x: Array, gradient: Array) -> Mask:
    return ~(((x <= 0.0) & (gradient < 0.0)) | ((x >= 1.0) & (gradient > 0.0)))


@lru_cache(maxsize=8)
def _build(d: int, *, seed: int) -> Problem:
    f = sample(d, seed=seed)
    top = locate_maximum(f)
    return Problem(
        f"gp-sample-{d}",
        Box([(0.0, 1.0)] * d),
        formula=f,
        optimum=float(f(top[np.newaxis])[0][0]),
        optimizers=top[np.newaxis],
        summary=_SUMMARY,
    )


GP_SAMPLES = Family(
    "gp-sample",
    build=_build,
    dims=range(1, 21),  # 4000 points are a covariance of 128 MB
    standard=(7, 8, 9),
    summary=_SUMMARY,
    seeded=True,
)
