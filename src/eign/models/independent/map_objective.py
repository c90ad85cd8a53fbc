r"""The objective of a maximum a posteriori fit, with gradient and curvature in closed form.

| symbol | meaning |
|---|---|
| theta | log l_1 .. log l_d, log s, and log nu if the noise is learned |
| K = s C + D | covariance of the observations; D is diagonal: known noise, jitter and nu |
| m | constant mean, at its optimum (1'K^{-1}y) / (1'K^{-1}1) for each theta, so that it adds no variable |
| alpha | K^{-1} (y - m) |
| K_j | dK / d theta_j |
| P | K^{-1} - K^{-1} 1 1' K^{-1} / (1' K^{-1} 1) |

The negative log posterior, its gradient, and a curvature that costs O(n^2 d) once K is inverted:

.. math::
    J &= \tfrac12 (y-m)^\top\alpha + \tfrac12\log|K| + \tfrac n2\log 2\pi - \log p(\theta) \\
    J_j &= \tfrac12\operatorname{tr}(K^{-1}K_j) - \tfrac12\alpha^\top K_j\alpha - \partial_j\log p \\
    J_{ij} &\approx \tfrac12\,\alpha^\top K_i P K_j\alpha - \partial_{ij}\log p

Jitter is the same at every theta, so that J is one function. It is no share of s: points close together, which agree to
better than the jitter, would then make s small, for each of them by as much as a point of its own.

The last line is the average information of restricted maximum likelihood: the mean of the observed and the expected
Hessian without the terms whose expectation is zero. It is positive definite, tells L-BFGS the shape of the problem from
the first step on, and makes the promised decrease an honest measure of how far the optimum is.
"""

import threading
from functools import cache
from typing import Final, NamedTuple, Self

import numpy as np

from eign.arrays import Array
from eign.models.kernels import (
    Correlation,
    correlation_matrix,
    squared_differences_product,
    weighted_squared_differences,
)
from eign.numerics.cholesky import FactorizationError, factor_in_place, gram_triangle, no_factor, triangular_inverse

LENGTHSCALE_PRIOR: Final = (float(np.log(0.4)), 0.7)
"""Location and scale of the log-normal prior of each lengthscale, unit cube."""
OUTPUTSCALE_PRIOR: Final = (2.0, 0.5)
"""Concentration and rate of the gamma prior of the outputscale, standardised units."""
NOISE_PRIOR: Final = (-4.0, 1.0)
"""Location and scale of the log-normal prior of a learned noise variance; BoTorch's."""


class FitProblem(NamedTuple):
    """The standardised observations of one process, or of C of equal size.

    Attributes:
        x: Inputs, `... x n x d`.
        y: Targets, `... x n`.
        noise: Known noise variances, `... x n`.
    """

    x: Array
    y: Array
    noise: Array


class Posterior(NamedTuple):
    """The objective J at theta, and what comes with it.

    Attributes:
        value: J, `...`.
        gradient: `... x p`.
        mean: The optimal mean, `...`.
        precision: tr K^{-1}, `...`; with the next it says how J changes with a variance on the diagonal.
        misfit: |alpha|^2, `...`.
        curvature: `... x p x p`, if asked for.
    """

    value: Array
    gradient: Array
    mean: Array
    precision: Array
    misfit: Array
    curvature: Array | None


def negative_log_posterior(theta: Array, problem: FitProblem, kernel: Correlation, *, jitter: float = 0.0) -> Posterior:
    """J of this module's docstring, `... x p -> ...`, p = d + 1, or d + 2 if the noise is learned.

    Raises:
        FactorizationError: If a covariance matrix is not positive definite with this jitter.
    """
    stacked = FitProblem(*(part.reshape((-1, *part.shape[theta.ndim - 1 :])) for part in problem))
    flat = theta.reshape(-1, theta.shape[-1])
    result = stacked_posterior(flat, stacked, kernel, jitter=np.full(len(flat), jitter))
    arrays = (np.asarray(part) for part in result)
    return Posterior(*(part.reshape((*theta.shape[:-1], *part.shape[1:])) for part in arrays))


def stacked_posterior(
    theta: Array, problem: FitProblem, kernel: Correlation, *, jitter: Array, curvature: bool = True
) -> Posterior:
    """The same with exactly one leading dimension, `C x p -> C`; without curvature it takes an eighth less time."""
    x, y, noise = problem
    count, size, dim = x.shape
    buffers = _BUFFERS.resize(count, size)
    scale, learned = np.exp(theta[:, dim, None]), np.exp(theta[:, dim + 1 :])
    a = (x - 0.5) * np.exp(-theta[:, None, :dim])
    covariance, slope = correlation_matrix(kernel, a, out=(buffers.covariance, buffers.slope))
    covariance *= scale[..., None]
    diagonal = noise + jitter[:, None]
    if learned.size:
        diagonal += learned.sum(axis=1, keepdims=True)
    upper = buffers.whitener  # A', upper triangular
    for c in range(count):
        total = scale[c] + diagonal[c]
        covariance[c].flat[:: size + 1] = total
        if not factor_in_place(covariance[c], total):
            raise FactorizationError(no_factor(size))
        triangular_inverse(covariance[c].T, out=upper[c].T)
    log_determinant = -np.log(_diagonals(upper)).sum(axis=1)
    mean, alpha, ones = _centred_solution(upper, y)
    residual = y - mean[:, None]

    bend = None
    if curvature:
        products = np.empty((count, size, theta.shape[1]))  # K_j alpha
        products[..., :dim] = scale[..., None] * squared_differences_product(slope, a, alpha)
        products[..., dim] = residual - diagonal * alpha
        products[..., dim + 1 :] = learned[:, None] * alpha[..., None]
        bend = _average_information(upper, products, ones)

    for c in range(count):
        gram_triangle(upper[c].T)
    inverse = upper  # one triangle of K^{-1}, the other is zero
    precision, misfit = _diagonals(inverse).sum(axis=1), np.vecdot(alpha, alpha)
    spread = _diagonals(inverse) - alpha * alpha  # diagonal of K^{-1} - alpha alpha'
    gradient = np.empty(theta.shape)
    fit = np.vecdot(residual, alpha)
    gradient[:, dim] = 0.5 * (size - fit - np.vecdot(spread, diagonal))
    if learned.size:
        gradient[:, dim + 1 :] = 0.5 * learned * spread.sum(axis=-1, keepdims=True)
    # All pairs of alpha alpha' count half; of K^{-1}, of which there is one triangle, they count once.
    np.multiply(alpha[:, :, None], -0.5 * alpha[:, None], out=buffers.covariance)
    buffers.covariance += inverse
    weights = np.multiply(buffers.covariance, slope, out=slope)
    gradient[:, :dim] = scale * weighted_squared_differences(weights, a)

    penalty, slopes, bends = negative_log_prior(theta, dim)
    if bend is not None:
        _diagonals(bend)[...] += bends
    value = 0.5 * fit + log_determinant + 0.5 * size * np.log(2 * np.pi) + penalty
    return Posterior(value, gradient + slopes, mean, precision, misfit, bend)


def _diagonals(matrices: Array) -> Array:
    """A view of the diagonals of contiguous matrices, `C x n x n -> C x n`, in less time than einsum takes to parse."""
    count, size, _ = matrices.shape
    return matrices.reshape(count, size * size)[:, :: size + 1]


def _centred_solution(upper: Array, y: Array) -> tuple[Array, Array, Array]:
    """The optimal mean `C`, alpha `C x n`, and K^{-1} 1 over the root of 1'K^{-1}1, `C x n`."""
    both = np.ones((*y.shape, 2))
    both[..., 0] = y
    solved = upper @ (upper.swapaxes(-1, -2) @ both)
    total, information = solved[..., 0].sum(axis=-1), solved[..., 1].sum(axis=-1)
    mean = total / information
    alpha = solved[..., 0] - mean[:, None] * solved[..., 1]
    return mean, alpha, solved[..., 1] / np.sqrt(information)[:, None]


def _average_information(upper: Array, products: Array, ones: Array) -> Array:
    """The matrix alpha' K_i P K_j alpha / 2 from the columns K_j alpha, `C x n x p -> C x p x p`."""
    whitened = upper.swapaxes(-1, -2) @ products
    shifts = ones[:, None] @ products
    return np.asarray(0.5 * (whitened.swapaxes(-1, -2) @ whitened - shifts.swapaxes(-1, -2) * shifts))


class _Buffers(threading.local):
    """Stacks of matrices a thread, kept between evaluations: fresh memory costs more than the arithmetic on it."""

    def __init__(self) -> None:
        self.covariance = self.slope = self.whitener = np.empty((0, 0, 0))

    def resize(self, count: int, size: int) -> Self:
        """Stacks of `count x size x size`; the whiteners are zero below their diagonals and must be kept so."""
        if self.covariance.shape != (count, size, size):
            self.covariance, self.slope = np.empty((count, size, size)), np.empty((count, size, size))
            self.whitener = np.zeros((count, size, size))
        return self


_BUFFERS: Final = _Buffers()


def negative_log_prior(theta: Array, dim: int) -> tuple[Array, Array, Array]:
    r"""The penalty -log p(l, s, nu) with its first and second derivatives with respect to theta, `... x p -> ...`.

    .. math::
        -\log p(l_k) = \log l_k + \tfrac12 z_k^2 + \log(\sigma\sqrt{2\pi}), \quad z_k = (\log l_k - \mu)/\sigma, \qquad
        -\log p(s) = \beta s - (a-1)\log s - a\log\beta + \log\Gamma(a)

    These are densities of l, s and nu themselves, as in GPyTorch: no Jacobian for the logarithm.
    """
    location, width, constant = _log_normals(dim, theta.shape[-1])
    z = (theta - location) / width
    terms = theta + 0.5 * z * z + constant
    slopes, bends = 1.0 + z / width, np.empty(theta.shape)
    bends[...] = width**-2.0
    concentration, rate = OUTPUTSCALE_PRIOR
    scaled = rate * np.exp(theta[..., dim])
    # log Gamma(2) = 0
    terms[..., dim] = scaled - (concentration - 1) * theta[..., dim] - concentration * np.log(rate)
    slopes[..., dim] = scaled - (concentration - 1)
    bends[..., dim] = scaled
    return terms.sum(axis=-1), slopes, bends


@cache
def _log_normals(dim: int, count: int) -> tuple[Array, Array, Array]:
    """Location, scale and log(scale sqrt(2 pi)) for each entry of theta; that of the outputscale is not used."""
    location, width = np.repeat([LENGTHSCALE_PRIOR, NOISE_PRIOR], [dim + 1, count - dim - 1], axis=0).T
    return location, width, np.log(width * np.sqrt(2 * np.pi))
