r"""Maximum a posteriori hyperparameters of many independent Gaussian processes at once.

| symbol | meaning |
|---|---|
| theta | log l_1 .. log l_d, log s, and log nu if the noise is learned |
| K = s C + D | covariance of the observations; D is diagonal: known noise, nugget and nu |
| m | constant mean, at its optimum (1'K^{-1}y) / (1'K^{-1}1) for each theta, so that it adds no variable |
| alpha | K^{-1} (y - m) |
| K_j | dK / d theta_j |
| P | K^{-1} - K^{-1} 1 1' K^{-1} / (1' K^{-1} 1) |

The negative log posterior, its gradient, and a curvature that costs O(n^2 d) once K is inverted:

.. math::
    J &= \tfrac12 (y-m)^\top\alpha + \tfrac12\log|K| + \tfrac n2\log 2\pi - \log p(\theta) \\
    J_j &= \tfrac12\operatorname{tr}(K^{-1}K_j) - \tfrac12\alpha^\top K_j\alpha - \partial_j\log p \\
    J_{ij} &\approx \tfrac12\,\alpha^\top K_i P K_j\alpha - \partial_{ij}\log p

The last line is the average information of restricted maximum likelihood: the mean of the observed and the expected
Hessian without the terms whose expectation is zero. It is positive definite, tells L-BFGS the shape of the problem from
the first step on, and makes the promised decrease an honest measure of how far the optimum is.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from eign.models import lbfgs
from eign.models.cholesky import FactorizationError, cholesky, gram_triangle, triangular_inverse
from eign.models.kernels import (
    Correlation,
    correlation_matrix,
    squared_differences_product,
    weighted_squared_differences,
)
from eign.models.threads import map_threads

Array = NDArray[np.float64]

LENGTHSCALE_PRIOR: Final = (float(np.log(0.4)), 0.7)
"""Location and scale of the log-normal prior of each lengthscale, unit cube."""
OUTPUTSCALE_PRIOR: Final = (2.0, 0.5)
"""Concentration and rate of the gamma prior of the outputscale, standardised units."""
NOISE_PRIOR: Final = (-4.0, 1.0)
"""Location and scale of the log-normal prior of a learned noise variance; BoTorch's."""

_LENGTHSCALE_BOUNDS: Final = (1e-2, 1e2)
_OUTPUTSCALE_BOUNDS: Final = (1e-4, 1e3)
_NOISE_BOUNDS: Final = (1e-8, 1e1)
# Stop when less than this is left to gain per datum: at n = 500 that is 0.07 posterior standard deviations in theta.
_DECREASE_PER_DATUM: Final = 5e-6
_START_LENGTHSCALES: Final = (0.4, 1.5, 0.15)


class Fittable(Protocol):
    """A model whose hyperparameters can be fitted in place."""

    def fit_hyperparameters(self) -> object:
        """Start from the last fit if there was one."""


ModelT = TypeVar("ModelT", bound=Fittable)


def fit(model: ModelT) -> ModelT:
    """Maximum a posteriori hyperparameters, in place; returns the model.

    The first fit has several starts; later ones, also of a model that `append` made, start from the previous optimum.
    """
    model.fit_hyperparameters()
    return model


@dataclass(frozen=True, slots=True)
class Problem:
    """The observations of one process, standardised: inputs `n x d`, targets `n`, known noise variances `n`."""

    x: Array
    y: Array
    noise: Array


class Posterior(NamedTuple):
    """The negative log posterior J at one theta, with gradient `p`, curvature `p x p` and the optimal mean."""

    value: float
    gradient: Array
    curvature: Array
    mean: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The result for B problems: theta `B x p`, means `B`, values of J `B`, evaluations in all and convergence `B`."""

    theta: Array
    mean: Array
    value: Array
    evaluations: int
    converged: NDArray[np.bool_]


def negative_log_posterior(theta: Array, problem: Problem, kernel: Correlation) -> Posterior:
    """J of this module's docstring at `theta`, of length d + 1, or d + 2 if the noise is learned."""
    x, y = problem.x, problem.y
    size, dim = x.shape
    buffers = _BUFFERS.resize(size)
    scale, learned = np.exp(theta[dim]), np.exp(theta[dim + 1 :])
    a = (x - 0.5) * np.exp(-theta[:dim])
    covariance, slope = correlation_matrix(kernel, a, out=(buffers.covariance, buffers.slope))
    covariance *= scale
    diagonal = problem.noise + learned.sum()
    covariance.flat[:: size + 1] += diagonal
    lower, jitter = cholesky(covariance, overwrite=True)
    diagonal = diagonal + jitter
    log_determinant = np.log(np.diagonal(lower)).sum()
    solved, _ = lapack.dpotrs(lower, np.stack([y, np.ones(size)], axis=1), lower=1)
    information = solved[:, 1].sum()
    mean = float(solved[:, 0].sum() / information)
    alpha, residual = solved[:, 0] - mean * solved[:, 1], y - mean

    products = np.empty((size, len(theta)))  # K_j alpha
    products[:, :dim] = scale * squared_differences_product(slope, a, alpha)
    products[:, dim] = residual - diagonal * alpha
    products[:, dim + 1 :] = learned * alpha[:, None]
    whitened, _ = lapack.dtrtrs(lower, products, lower=1)
    shifts = solved[:, 1] @ products
    curvature = 0.5 * (whitened.T @ whitened - np.outer(shifts, shifts) / information)

    inverse = gram_triangle(triangular_inverse(lower, out=buffers.whitener))
    inverse_diagonal = np.diagonal(inverse)
    gradient = -0.5 * (alpha @ products)
    gradient[dim] += 0.5 * (size - inverse_diagonal @ diagonal)
    gradient[dim + 1 :] += 0.5 * learned * inverse_diagonal.sum()
    weights = np.multiply(inverse.T, slope, out=slope)  # one triangle: each pair once, hence no factor 1/2
    gradient[:dim] += scale * weighted_squared_differences(weights, a)

    penalty, slopes, bends = negative_log_prior(theta, dim)
    curvature.flat[:: len(theta) + 1] += bends
    value = 0.5 * residual @ alpha + log_determinant + 0.5 * size * np.log(2 * np.pi) + penalty
    return Posterior(float(value), gradient + slopes, curvature, mean)


class _Buffers(threading.local):
    """Three matrices a thread, kept between evaluations: fresh memory costs more than the arithmetic on it."""

    def __init__(self) -> None:
        self.covariance = self.slope = np.empty((0, 0))
        self.whitener = np.empty((0, 0), order="F")

    def resize(self, size: int) -> Self:
        """Matrices of `size` rows; the whitener is zero above its diagonal and must be kept so."""
        if len(self.covariance) != size:
            self.covariance, self.slope = np.empty((size, size)), np.empty((size, size))
            self.whitener = np.zeros((size, size), order="F")
        return self


_BUFFERS: Final = _Buffers()


def negative_log_prior(theta: Array, dim: int) -> tuple[float, Array, Array]:
    r"""The penalty -log p(l, s, nu) with its first and second derivatives with respect to theta, element by element.

    .. math::
        -\log p(l_k) = \log l_k + \tfrac12 z_k^2 + \log(\sigma\sqrt{2\pi}), \quad z_k = (\log l_k - \mu)/\sigma, \qquad
        -\log p(s) = \beta s - (a-1)\log s - a\log\beta + \log\Gamma(a)

    These are densities of l, s and nu themselves, as in GPyTorch: no Jacobian for the logarithm.
    """
    slopes, bends = np.empty(len(theta)), np.empty(len(theta))
    value = 0.0
    for part, (location, width) in ((slice(0, dim), LENGTHSCALE_PRIOR), (slice(dim + 1, None), NOISE_PRIOR)):
        z = (theta[part] - location) / width
        value += float(np.sum(theta[part] + 0.5 * z * z + np.log(width * np.sqrt(2 * np.pi))))
        slopes[part] = 1.0 + z / width
        bends[part] = 1.0 / width**2
    concentration, rate = OUTPUTSCALE_PRIOR
    scale = np.exp(theta[dim])
    # log Gamma(2) = 0
    value += float(rate * scale - (concentration - 1) * theta[dim] - concentration * np.log(rate))
    slopes[dim] = rate * scale - (concentration - 1)
    bends[dim] = rate * scale
    return value, slopes, bends


def bounds(dim: int, *, learn_noise: bool) -> tuple[Array, Array]:
    """Lower and upper bounds of theta: wide enough that the priors, not they, decide."""
    noise = [_NOISE_BOUNDS] if learn_noise else []
    pairs = np.log([_LENGTHSCALE_BOUNDS] * dim + [_OUTPUTSCALE_BOUNDS, *noise])
    return pairs[:, 0], pairs[:, 1]


def fit_problems(
    problems: Sequence[Problem], kernel: Correlation, *, learn_noise: bool = False, warm: Array | None = None
) -> Fit:
    """The best theta found for each problem.

    Args:
        problems: One per Gaussian process; they may have different numbers of observations.
        kernel: The correlation they share.
        learn_noise: Whether a noise variance is fitted for each.
        warm: The previous optimum `B x p`, then the only start; without it there are several.
    """
    dim = problems[0].x.shape[1]
    if warm is not None:
        return _descend(problems, kernel, warm, np.arange(len(problems)))
    level = [0.0, *([NOISE_PRIOR[0]] if learn_noise else [])]
    starts = np.array([[*np.full(dim, np.log(length)), *level] for length in _START_LENGTHSCALES])
    owner = np.repeat(np.arange(len(problems)), len(starts))
    all_fits = _descend(problems, kernel, np.tile(starts, (len(problems), 1)), owner)
    best = np.argmin(np.where(np.isfinite(all_fits.value), all_fits.value, np.inf).reshape(-1, len(starts)), axis=1)
    chosen = np.arange(len(problems)) * len(starts) + best
    return Fit(
        all_fits.theta[chosen],
        all_fits.mean[chosen],
        all_fits.value[chosen],
        all_fits.evaluations,
        all_fits.converged[chosen],
    )


def _descend(problems: Sequence[Problem], kernel: Correlation, starts: Array, owner: NDArray[np.intp]) -> Fit:
    """Minimise J from every start; `owner` says whose start it is."""
    dim = problems[0].x.shape[1]
    low, high = bounds(dim, learn_noise=starts.shape[1] > dim + 1)
    sizes = np.array([len(problems[b].y) for b in owner])
    means = np.zeros(len(starts))

    def one(item: tuple[Array, int]) -> Posterior:
        theta, problem = item[0], problems[owner[item[1]]]
        if not len(problem.y):
            value, slopes, bends = negative_log_prior(theta, dim)
            return Posterior(value, slopes, np.diag(bends), 0.0)
        try:
            return negative_log_posterior(theta, problem, kernel)
        except FactorizationError:
            return Posterior(np.inf, np.zeros_like(theta), np.eye(len(theta)), 0.0)

    def objective(thetas: Array, index: NDArray[np.intp]) -> lbfgs.Evaluation:
        results = map_threads(one, list(zip(thetas, index, strict=True)), size=int(sizes.max()))
        means[index] = [result.mean for result in results]
        return lbfgs.Evaluation(
            np.array([result.value for result in results]),
            np.array([result.gradient for result in results]),
            np.array([result.curvature for result in results]),
        )

    stopping = lbfgs.Stopping(decrease=_DECREASE_PER_DATUM * np.maximum(sizes, 1), gradient=1e-9)
    end = lbfgs.minimize(objective, starts, lower=low, upper=high, stopping=stopping, longest_step=2.0)
    return Fit(end.x, means, end.value, int(end.evaluations.sum()), end.converged)
