r"""A sum of functions of one coordinate each, learned from values and gradients at a cost that is linear in d.

One gradient of a separable function is d observations of functions of one variable: given the gradients, the d
processes are independent. What is left to the values are their n sums, which couple the processes by one matrix
`n x n`. So this is the exact posterior of an additive process, without any matrix of n (d + 1) rows.

| symbol | meaning |
|---|---|
| f | :math:`\sum_i h_i(x_i) + \beta |c|^2 / 2`, up to a constant; c = x - 1/2 |
| beta | curvature that all coordinates share, a bowl: no coordinate alone would see it under its ripples |
| k | covariance of :math:`h_i / s_i`: a ripple of slope 1, and a parabola :math:`a c_i + b c_i^2` |
| l, s_i | length of the ripples, common to all; size of the slopes along coordinate i |
| eta | what is not separable: the variance that the slopes scatter by, in :math:`s_i^2` |
| b | the best point, from which values are counted: gradients say nothing about the constant |
| V_i, z_i | :math:`L_i^{-1}` times covariances with the slopes, and times the slopes; :math:`L_i L_i^\top` is theirs |
| P_i | covariance of :math:`h_i(x_a) - h_i(x_b)` given the slopes |

.. math:: k(t, t') = l^2 e^{-(t - t')^2 / 2 l^2} + \tau_a^2 c c' + \tau_b^2 c^2 c'^2
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from scipy import linalg

from eign.arrays import Array

LENGTHS: Final = tuple((0.8 / 2**k) for k in range(6))
"""Lengths that are tried, from most of the cube down to ripples of a fortieth of it."""
SCATTERS: Final = (1e-6, 1e-4, 1e-2, 1.0)
"""Values of eta that are tried. Where the last one is likeliest the function is not separable, and hardly with 1e-2."""
_SLOPE: Final = 9.0
"""tau_a^2: a coordinate may be three times as steep as its ripples, so that the data decide about both."""
_CURVATURE: Final = 0.25
"""tau_b^2: its curvature differs from that of all by less than its ripples."""
_SAMPLE: Final = 24
"""Coordinates that length and scatter are learned from; they are common to all."""
_BLOCK: Final = 100
"""Coordinates at a time: memory does not grow with the dimension."""
_NUGGET: Final = 1e-9


class Separable(NamedTuple):
    """The processes given all data. Attributes as in this module's docstring, coordinates first.

    Attributes:
        x: Points, `d x n`.
        best: The column of the best point.
        curvature: beta.
        length, scatter: l and eta.
        size: The squares of s, `d`.
        whitening: The inverse of L, `d x n x n`: with many right-hand sides products are faster than solves.
        white: z, `d x n`.
        weights: Of the values' sums beyond what the slopes say, `n`.
    """

    x: Array
    best: int
    curvature: float
    length: float
    scatter: float
    size: Array
    whitening: Array
    white: Array
    weights: Array

    @property
    def is_close(self) -> bool:
        """Whether the function is separable but for a hundredth of its slopes."""
        return self.scatter <= SCATTERS[1]


class Differences(NamedTuple):
    """What f gains along each coordinate from the best point, `d x m` each."""

    mean: Array
    variance: Array


def separable_model(x: Array, y: Array, gradients: Array, rng: np.random.Generator) -> Separable | None:
    """The likeliest model of points `n x d` in the unit cube; None if the function is not separable.

    Length and scatter are those under which the slopes along a few coordinates, drawn by `rng`, are likeliest. One
    slope a coordinate is as likely under all of them, as its size is learned from it: it says nothing, also about
    whether the function is separable.
    """
    if len(x) < 2 or not gradients.any():
        return None
    points = np.ascontiguousarray(x.T)
    moved = x - x.mean(axis=0)
    curvature = float((gradients * moved).sum() / max((moved**2).sum(), np.finfo(np.float64).tiny))
    slopes = np.ascontiguousarray(gradients.T) - curvature * (points - 0.5)
    some = rng.permutation(len(points))[:_SAMPLE]
    choices = [(length, scatter) for scatter in SCATTERS for length in LENGTHS]
    likelihoods = [slopes_log_likelihood(points[some], slopes[some], *choice) for choice in choices]
    length, scatter = choices[int(np.argmax(likelihoods))]
    if scatter == SCATTERS[-1]:
        return None
    return conditioned(points, y, slopes, curvature=curvature, length=length, scatter=scatter)


def conditioned(
    points: Array, y: Array, slopes: Array, *, length: float, scatter: float, curvature: float = 0.0
) -> Separable:
    """The model of points and slopes beyond the bowl's `d x n`, values `n`, with this length and scatter.

    The sizes s are the likeliest, :math:`s_i^2 = |z_i|^2 / n`.
    """
    factor, white, size = _factored(points, slopes, length, scatter)
    whitening = np.asarray(np.linalg.inv(factor), dtype=np.float64)
    best, n = int(y.argmax()), len(y)
    model = Separable(points, best, curvature, length, scatter, size, whitening, white, np.zeros(n))
    bowl = 0.5 * curvature * ((points - 0.5) ** 2).sum(axis=0)
    residual, spread = (y - bowl) - (y - bowl)[best], np.zeros((n, n))
    for block in _blocks(len(points)):
        V, covariance = _given_slopes(model, block, points[block])
        residual = residual - np.einsum("dat,da->t", V, white[block])
        spread += np.tensordot(size[block], covariance, axes=1)
    # Sums scatter as the slopes do, in units of what ripples add up to.
    spread[np.diag_indices(n)] += max(scatter, _NUGGET) * length**2 * size.sum()
    # The best point has the value 0 by definition, and its row is 0 but for the scatter.
    return model._replace(weights=linalg.solve(spread, residual, assume_a="pos"))


def gains(model: Separable, t: Array) -> Differences:
    r"""Mean and variance of what f gains along each coordinate from the best point to t, `d x m`.

    .. math:: V_i(t)^\top z_i + s_i^2 P_i(t, \cdot)\, w + \tfrac\beta2 (c^2 - c_b^2),
        \qquad s_i^2\, (k_b(t, t) - |V_i(t)|^2)

    Here w are the weights and :math:`k_b` is the prior of differences. The variance is that given the slopes alone: the
    values tell of sums, not of one coordinate.
    """
    means, variances = np.empty_like(t), np.empty_like(t)
    for block in _blocks(len(t)):
        V, covariance = _given_slopes(model, block, t[block])
        size, base = model.size[block, None], model.x[block, model.best : model.best + 1]
        means[block] = np.einsum("dat,da->dt", V, model.white[block]) + size * (covariance @ model.weights)
        means[block] += 0.5 * model.curvature * ((t[block] - 0.5) ** 2 - (base - 0.5) ** 2)
        prior = _at_itself(t[block], base, model.length)
        variances[block] = size * np.maximum(prior - (V**2).sum(axis=1), 0.0)
    return Differences(means, variances)


def slopes_log_likelihood(points: Array, slopes: Array, length: float, scatter: float) -> float:
    r"""Of slopes `d x n` at points `d x n` under the likeliest sizes, without constants.

    .. math:: -\sum_i \Bigl(\tfrac n2 \log s_i^2 + \log |L_i|\Bigr)
    """
    factor, _, size = _factored(points, slopes, length, scatter)
    logs = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum()
    return float(-0.5 * points.shape[1] * np.log(size).sum() - logs)


class _Factored(NamedTuple):
    factor: Array
    white: Array
    size: Array


def _factored(points: Array, slopes: Array, length: float, scatter: float) -> _Factored:
    r"""L and z for s = 1, and the likeliest :math:`s^2`.

    The slopes are the last row of the matrix that is factored, so that the last row of its factor is z:

    .. math:: \begin{pmatrix} C & g \\ g^\top & c \end{pmatrix}
        = \begin{pmatrix} L & 0 \\ z^\top & \cdot \end{pmatrix}
          \begin{pmatrix} L^\top & z \\ 0 & \cdot \end{pmatrix}
    """
    d, n = points.shape
    matrix = np.empty((d, n + 1, n + 1))
    matrix[:, :n, :n] = _slope_slope(points, points, length)
    matrix[:, range(n), range(n)] += scatter + _NUGGET
    # Slopes of at most unit length, so that any number above 1 / nugget will do for c.
    norm = np.maximum(np.abs(slopes).max(axis=1, keepdims=True), np.finfo(np.float64).tiny) * np.sqrt(n)
    matrix[:, n, :n] = slopes / norm
    matrix[:, n, n] = 2.0 / (scatter + _NUGGET)
    factor = np.linalg.cholesky(matrix)
    white = factor[:, n, :n] * norm
    return _Factored(factor[:, :n, :n], white, np.maximum((white**2).mean(axis=1), np.finfo(np.float64).tiny))


def _given_slopes(model: Separable, block: slice, t: Array) -> tuple[Array, Array]:
    """V of h(t) - h(x_b), `d x n x m`, and its covariance with the points given the slopes, `d x m x n`, for s = 1."""
    x, length = model.x[block], model.length
    base = x[:, model.best : model.best + 1]

    def white(s: Array) -> Array:
        cross = _value_slope(s, x, length) - _value_slope(base, x, length)
        return model.whitening[block] @ cross.transpose(0, 2, 1)

    prior = _value_value(t, x, length) - _value_value(base, x, length)
    prior = prior - _value_value(t, base, length) + _value_value(base, base, length)
    V = white(t)
    return V, prior - V.transpose(0, 2, 1) @ white(x)


def _blocks(d: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, d, _BLOCK))


def _value_value(s: Array, t: Array, length: float) -> Array:
    """k, `d x m, d x n -> d x m x n`."""
    r, a, b = s[:, :, None] - t[:, None, :], s[:, :, None] - 0.5, t[:, None, :] - 0.5
    return np.asarray(length**2 * np.exp(-0.5 * (r / length) ** 2) + _SLOPE * a * b + _CURVATURE * (a * b) ** 2)


def _value_slope(s: Array, t: Array, length: float) -> Array:
    """Of k by its second argument, `d x m, d x n -> d x m x n`."""
    r, a, b = s[:, :, None] - t[:, None, :], s[:, :, None] - 0.5, t[:, None, :] - 0.5
    return np.asarray(r * np.exp(-0.5 * (r / length) ** 2) + _SLOPE * a + 2.0 * _CURVATURE * a**2 * b)


def _slope_slope(s: Array, t: Array, length: float) -> Array:
    """Of k by both arguments, `d x m, d x n -> d x m x n`."""
    q, a, b = ((s[:, :, None] - t[:, None, :]) / length) ** 2, s[:, :, None] - 0.5, t[:, None, :] - 0.5
    return np.asarray((1.0 - q) * np.exp(-0.5 * q) + _SLOPE + 4.0 * _CURVATURE * a * b)


def _at_itself(t: Array, base: Array, length: float) -> Array:
    """Prior variance of h(t) - h(x_b) for s = 1, `d x m`."""
    c, b = t - 0.5, base - 0.5
    ripple = -2.0 * length**2 * np.expm1(-0.5 * ((t - base) / length) ** 2)
    return np.asarray(ripple + _SLOPE * (c - b) ** 2 + _CURVATURE * (c**2 - b**2) ** 2)
