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
# Problems are evaluated together up to this many matrix elements: it saves interpreter time where that dominates.
_STACKED_ELEMENTS: Final = 25000
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


class Problem(NamedTuple):
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
    """The negative log posterior J, with gradient `... x p`, curvature `... x p x p` and the optimal mean."""

    value: Array | float
    gradient: Array
    curvature: Array
    mean: Array | float


@dataclass(frozen=True, slots=True)
class Fit:
    """The result for B problems: theta `B x p`, means `B`, values of J `B`, evaluations in all and convergence `B`.

    `memory` holds secant pairs, by which a refit after a few more observations saves a quarter of its evaluations.
    """

    theta: Array
    mean: Array
    value: Array
    evaluations: int
    converged: NDArray[np.bool_]
    memory: lbfgs.Memory


def negative_log_posterior(theta: Array, problem: Problem, kernel: Correlation) -> Posterior:
    """J of this module's docstring, `... x p -> ...`, p = d + 1, or d + 2 if the noise is learned.

    Raises:
        FactorizationError: If a covariance matrix is not positive definite even with jitter.
    """
    stacked = Problem(*(part.reshape((-1, *part.shape[theta.ndim - 1 :])) for part in problem))
    result = _stacked_posterior(theta.reshape(-1, theta.shape[-1]), stacked, kernel)
    arrays = (np.asarray(part) for part in result)
    return Posterior(*(part.reshape((*theta.shape[:-1], *part.shape[1:])) for part in arrays))


def _stacked_posterior(theta: Array, problem: Problem, kernel: Correlation) -> Posterior:
    """The same for exactly one leading dimension, `C x p -> C`."""
    x, y, noise = problem
    count, size, dim = x.shape
    buffers = _BUFFERS.resize(count, size)
    scale, learned = np.exp(theta[:, dim, None]), np.exp(theta[:, dim + 1 :])
    a = (x - 0.5) * np.exp(-theta[:, None, :dim])
    covariance, slope = correlation_matrix(kernel, a, out=(buffers.covariance, buffers.slope))
    covariance *= scale[..., None]
    diagonal = noise + learned.sum(axis=1, keepdims=True)
    whitener = buffers.whitener
    for c in range(count):
        covariance[c].flat[:: size + 1] += diagonal[c]
        lower, jitter = cholesky(covariance[c], overwrite=True)
        diagonal[c] += jitter
        triangular_inverse(lower, out=whitener[c].T)
    upper = whitener  # each is stored as A', which is upper triangular
    log_determinant = -np.log(np.einsum("cii->ci", upper)).sum(axis=1)

    both = np.stack([y, np.ones_like(y)], axis=-1)
    solved = upper @ (upper.swapaxes(-1, -2) @ both)
    information = solved[..., 1].sum(axis=-1)
    mean = solved[..., 0].sum(axis=-1) / information
    alpha, residual = solved[..., 0] - mean[:, None] * solved[..., 1], y - mean[:, None]

    products = np.empty((count, size, theta.shape[1]))  # K_j alpha
    products[..., :dim] = scale[..., None] * squared_differences_product(slope, a, alpha)
    products[..., dim] = residual - diagonal * alpha
    products[..., dim + 1 :] = learned[:, None] * alpha[..., None]
    whitened = upper.swapaxes(-1, -2) @ products
    shifts = (solved[:, None, :, 1] @ products) / np.sqrt(information)[:, None, None]
    curvature = 0.5 * (whitened.swapaxes(-1, -2) @ whitened - shifts.swapaxes(-1, -2) * shifts)

    for c in range(count):
        gram_triangle(whitener[c].T)
    inverse = whitener  # one triangle of K^{-1}, the other is zero
    inverse_diagonal = np.einsum("cii->ci", inverse)
    gradient = -0.5 * (alpha[:, None] @ products)[:, 0]
    gradient[:, dim] += 0.5 * (size - (inverse_diagonal * diagonal).sum(axis=-1))
    gradient[:, dim + 1 :] += 0.5 * learned * inverse_diagonal.sum(axis=-1, keepdims=True)
    weights = np.multiply(inverse, slope, out=slope)  # each pair once, hence no factor 1/2
    gradient[:, :dim] += scale * weighted_squared_differences(weights, a)

    penalty, slopes, bends = negative_log_prior(theta, dim)
    curvature[:, np.arange(len(bends.T)), np.arange(len(bends.T))] += bends
    value = 0.5 * (residual * alpha).sum(axis=-1) + log_determinant + 0.5 * size * np.log(2 * np.pi) + penalty
    return Posterior(value, gradient + slopes, curvature, mean)


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
    location, width = np.repeat([LENGTHSCALE_PRIOR, NOISE_PRIOR], [dim + 1, theta.shape[-1] - dim - 1], axis=0).T
    z = (theta - location) / width
    terms = theta + 0.5 * z * z + np.log(width * np.sqrt(2 * np.pi))
    slopes, bends = 1.0 + z / width, np.broadcast_to(width**-2.0, theta.shape).copy()
    concentration, rate = OUTPUTSCALE_PRIOR
    scaled = rate * np.exp(theta[..., dim])
    # log Gamma(2) = 0
    terms[..., dim] = scaled - (concentration - 1) * theta[..., dim] - concentration * np.log(rate)
    slopes[..., dim] = scaled - (concentration - 1)
    bends[..., dim] = scaled
    return terms.sum(axis=-1), slopes, bends


def bounds(dim: int, *, learn_noise: bool) -> tuple[Array, Array]:
    """Lower and upper bounds of theta: wide enough that the priors, not they, decide."""
    noise = [_NOISE_BOUNDS] if learn_noise else []
    pairs = np.log([_LENGTHSCALE_BOUNDS] * dim + [_OUTPUTSCALE_BOUNDS, *noise])
    return pairs[:, 0], pairs[:, 1]


def fit_problems(
    problems: Sequence[Problem],
    kernel: Correlation,
    *,
    learn_noise: bool = False,
    warm: Array | None = None,
    memory: lbfgs.Memory | None = None,
) -> Fit:
    """The best theta found for each problem.

    Args:
        problems: One per Gaussian process; they may have different numbers of observations.
        kernel: The correlation they share.
        learn_noise: Whether a noise variance is fitted for each.
        warm: The previous optimum `B x p`, then the only start; without it there are several.
        memory: What the previous fit remembered.
    """
    dim = problems[0].x.shape[1]
    if warm is not None:
        return _descend(problems, kernel, warm, np.arange(len(problems)), memory)
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
        lbfgs.Memory(*(part[chosen] for part in all_fits.memory)),
    )


def _descend(
    problems: Sequence[Problem],
    kernel: Correlation,
    starts: Array,
    owner: NDArray[np.intp],
    memory: lbfgs.Memory | None = None,
) -> Fit:
    """Minimise J from every start; `owner` says whose start it is."""
    dim = problems[0].x.shape[1]
    low, high = bounds(dim, learn_noise=starts.shape[1] > dim + 1)
    sizes = np.array([len(problem.y) for problem in problems])[owner]
    means = np.zeros(len(starts))

    def objective(thetas: Array, index: NDArray[np.intp]) -> lbfgs.Evaluation:
        stacks = _stacks(sizes[index])

        def evaluate(stack: NDArray[np.intp]) -> Posterior:
            members = [problems[b] for b in owner[index[stack]]]
            together = Problem(*(np.stack(part) for part in zip(*members, strict=True)))
            return _safe_posterior(thetas[stack], together, kernel)

        results = map_threads(evaluate, stacks, size=int(sizes.max()))
        order = np.argsort(np.concatenate(stacks))
        value, gradient, curvature, mean = (np.concatenate(part)[order] for part in zip(*results, strict=True))
        means[index] = mean
        return lbfgs.Evaluation(value, gradient, curvature)

    stopping = lbfgs.Stopping(decrease=_DECREASE_PER_DATUM * np.maximum(sizes, 1), gradient=1e-9)
    end = lbfgs.minimize(
        objective, starts, lower=low, upper=high, stopping=stopping, memory=memory or 10, longest_step=2.0
    )
    return Fit(end.x, means, end.value, int(end.evaluations.sum()), end.converged, end.memory)


def _stacks(sizes: NDArray[np.int_]) -> list[NDArray[np.intp]]:
    """Positions of problems to evaluate together: of equal size, and few enough to stay in the cache."""
    stacks = []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        length = max(1, _STACKED_ELEMENTS // max(1, int(size) ** 2))
        stacks += [members[first : first + length] for first in range(0, len(members), length)]
    return stacks


def _safe_posterior(theta: Array, problem: Problem, kernel: Correlation) -> Posterior:
    """J of a stack, infinite for members that cannot be factorised; without observations it is the prior's."""
    if not problem.y.shape[-1]:
        value, slopes, bends = negative_log_prior(theta, problem.x.shape[-1])
        return Posterior(value, slopes, bends[..., None] * np.eye(theta.shape[-1]), np.zeros_like(value))
    try:
        return _stacked_posterior(theta, problem, kernel)
    except FactorizationError:
        if len(theta) == 1:
            return Posterior(np.full(1, np.inf), np.zeros_like(theta), np.eye(theta.shape[1])[None], np.zeros(1))
    parts = [
        _safe_posterior(theta[c : c + 1], Problem(*(part[c : c + 1] for part in problem)), kernel)
        for c in range(len(theta))
    ]
    return Posterior(*(np.concatenate(part) for part in zip(*parts, strict=True)))
