r"""A bowl under the ripples: where the values and gradients of all points say that f rises to.

| symbol | meaning |
|---|---|
| x, y, g | points, their values and gradients |
| a, c | curvature of a bowl :math:`b - \tfrac a2 \|x - c\|^2` and its top, where f has the value b |
| e, r | what it leaves of values and gradients |
| s, l | how large residuals of gradients are, and how long ripples: those of values are l s |

Residuals of values are Gaussian, those of gradients have a Cauchy distribution in d dimensions: ripples are steep at a
few points and hardly there at the others, and these tell. Nothing of it depends on rotations of the cube. Of n points
in more dimensions the fit is made in the directions that they span, at a cost of n^3; in all others the bowl's slope is
the mean of the gradients.
"""

from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign.data import Observations

# So much more likely, in nats, the data must be with a bowl than with a slope. Rough samples of Gaussian processes gain
# less than nothing, as they have to pay for the curvature, smooth ones may be bowls; Griewank's and Rosenbrock's
# function gain 20 to 150.
_CLEAR: Final = 7.0
_FEWEST: Final = 4
# The last are for values that tell nothing, such as with an outlier among them.
_LENGTHS: Final = np.concatenate([np.geomspace(0.003, 3.0, 13), np.geomspace(10.0, 1e7, 7)])
_ITERATIONS: Final = 15
# Values that differ by more than this, in times the largest gradient, have nothing to do with the gradients.
_STEEPEST: Final = 1e6
# Residuals below this share of the largest gradient are rounding.
_EXACT: Final = 1e-13
# Of each diagonal element, and beside it: points that are all the same leave directions without any number.
_RIDGE: Final = 1e-12
_TINY: Final = 1e-30


class _Fit(NamedTuple):
    """The slope at the middle of the cube, `d`, the curvature a, and their log evidence."""

    slope: Array
    curvature: float
    evidence: float


def bowl_top(data: Observations) -> Array | None:
    """The top of the bowl in the cube, `d`, or None if the data show none."""
    complete = data.has_y & data.has_grad.all(axis=1)
    x, gradients = data.x[complete] - 0.5, data.grad[complete]
    largest = np.abs(gradients).max(initial=0.0)
    if len(x) < _FEWEST or largest == 0.0:
        return None
    # Halves, as the difference of two values may be larger than any number.
    halves = 0.5 * data.y[complete]
    y = halves - halves.min()
    if y.max() > 0.5 * _STEEPEST * largest:
        return None
    y = 2.0 * (y / largest)
    axes = np.eye(data.dim) if len(x) >= data.dim else np.linalg.qr(x.T)[0].T
    plane, bowl = (_best_fit(x, y - y.mean(), gradients / largest, axes, curved=curved) for curved in (False, True))
    if not (bowl.curvature > 0.0 and bowl.evidence >= plane.evidence + _CLEAR):
        return None
    return np.asarray(np.clip(0.5 + bowl.slope / bowl.curvature, 0.0, 1.0))


def _best_fit(x: Array, y: Array, gradients: Array, axes: Array, *, curved: bool) -> _Fit:
    r"""The most likely coefficients, and about how likely the data are under all of them.

    The points lie in what the axes span, orthonormal rows `r x d`.

    Expectation maximisation: the Cauchy distribution is a Gaussian one with an unknown precision, whose mean given the
    residual is :math:`w = (1 + d) / (1 + \|r\|^2 / s^2)`; with these the fit is one of least squares, and
    :math:`s^2 = (\sum w \|r\|^2 + \sum e^2 / l^2) / (n (d + 1) - p)`. All lengths l are fitted at once, `k`.
    The evidence is Laplace's approximation, with the precisions w as if they were known, and without the constants that
    are the same for all data; the curvature, in units of the largest gradient, has a standard normal prior.
    """
    n, dim = x.shape
    along, slopes_along = x @ axes.T, gradients @ axes.T
    across = gradients - slopes_along @ axes
    products = across @ across.T
    squares = (x**2).sum(axis=1)
    columns = np.column_stack([np.ones(n), along, -0.5 * squares] if curved else [np.ones(n), along])
    freedom = max(n * (dim + 1) - (columns.shape[1] + dim - len(axes)), 1)
    precision = _LENGTHS[:, None] ** -2.0
    normal_of_values, right_of_values = precision[:, :, None] * (columns.T @ columns), precision * (columns.T @ y)
    slopes, identity = np.arange(1, len(axes) + 1), np.eye(columns.shape[1])
    weights = np.ones((len(_LENGTHS), n))
    for _ in range(_ITERATIONS):
        total = weights.sum(axis=1)
        normal, right = normal_of_values.copy(), right_of_values.copy()
        normal[:, slopes, slopes] += total[:, None]
        right[:, slopes] += weights @ slopes_along
        if curved:
            normal[:, slopes, -1] -= weights @ along
            normal[:, -1, slopes] -= weights @ along
            normal[:, -1, -1] += weights @ squares
            right[:, -1] -= weights @ (along * slopes_along).sum(axis=1)
        found = np.linalg.solve(normal * (1.0 + _RIDGE * identity) + _TINY * identity, right[..., None])[..., 0]
        share = weights / (total * (1.0 + _RIDGE) + _TINY)[:, None]
        fitted = found[:, None, slopes] - (found[:, -1, None, None] * along if curved else 0.0)
        steep = ((slopes_along - fitted) ** 2).sum(axis=2) + _squared_distances_from_mean(products, share)
        flat = ((y - found @ columns.T) ** 2).sum(axis=1) * precision[:, 0]
        variance = np.maximum(((weights * steep).sum(axis=1) + flat) / freedom, _EXACT**2)
        weights = (1.0 + dim) / (1.0 + steep / variance[:, None])
    likelihood = -0.5 * flat / variance - 0.5 * (1 + dim) * np.log1p(steep / variance[:, None]).sum(axis=1)
    scale = -0.5 * freedom * np.log(variance) - n * np.log(_LENGTHS)
    if curved:
        normal[:, -1, -1] += variance
    evidence = likelihood + scale - 0.5 * (np.linalg.slogdet(normal)[1] + (dim - len(axes)) * np.log(total))
    best = int(evidence.argmax())
    slope = found[best, slopes] @ axes + share[best] @ across
    return _Fit(slope, float(found[best, -1]) if curved else 0.0, float(evidence[best]))


def _squared_distances_from_mean(products: Array, shares: Array) -> Array:
    """Of vectors with these products, `n x n`, from their means with these weights, `k x n -> k x n`."""
    mixed = shares @ products
    return np.asarray(np.maximum(np.diag(products) - 2.0 * mixed + (mixed * shares).sum(axis=1, keepdims=True), 0.0))
