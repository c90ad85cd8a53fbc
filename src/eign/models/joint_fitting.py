r"""Maximum a posteriori hyperparameters of the joint Gaussian process of f and its gradient.

| symbol | meaning |
|---|---|
| theta | for each term of the kernel log l_1 .. log l_d, log s; then, if learned, log noise of values and of gradients |
| K + eta diag(K) + D | covariance of the rows: kernel, relative nugget, noise |
| S | diag(K)^{-1/2}; C = S (K + eta diag(K) + D) S is what is factored |
| h | 1 for rows of values, 0 for rows of derivatives: the effect of the constant mean |
| m | the mean, at its optimum (h'A h)^{-1} h'A z for each theta, A the inverse covariance: generalised least squares |
| a | C^{-1} S (z - m h) |

The mean has no prior, so maximising over it in closed form leaves the optimum where it is, takes a variable from the
search, and (by the envelope theorem) leaves the gradient as if the mean were fixed.

.. math::
    J &= \tfrac12 (z - m h)^\top S a + \tfrac12 \log|C| - \sum \log S + \tfrac N2 \log 2\pi - \log p(\theta) \\
    J_j &= \tfrac12 \operatorname{tr}(C^{-1} C_j) - \tfrac12 a^\top C_j a - \partial_j \log p \\
    J_{ij} &\approx \tfrac12 a^\top C_i P C_j a - \partial_{ij} \log p, \qquad
    P = C^{-1} - C^{-1} S h h^\top S C^{-1} / (h^\top S C^{-1} S h)

with C_j = S (dK/d theta_j) S, the scaling held fixed. The curvature is the average information, see `fitting`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eign.models import lbfgs
from eign.models.derivative_kernels import Array, Term, prior_variances, with_hyperparameters
from eign.models.fitting import LENGTHSCALE_PRIOR, NOISE_PRIOR, OUTPUTSCALE_PRIOR, Posterior
from eign.models.joint_covariance import (
    TrainingPairs,
    covariance_matrix,
    derivative_products,
    term_pairs,
    trace_derivatives,
    training_pairs,
)
from eign.models.joint_factor import factorize, invert, nugget, unwhiten, whiten

LENGTHSCALE_BOUNDS: Final = (1e-2, 2e1)
OUTPUTSCALE_BOUNDS: Final = (1e-4, 1e3)
NOISE_BOUNDS: Final = (1e-8, 1e1)
# Multiples of the prior median at which a fit without a previous one looks before it descends from the best.
_START_FACTORS: Final = (1.0, 0.35, 2.5)
# Stop when less than this is left to gain per row, as for the independent processes.
_DECREASE_PER_ROW: Final = 5e-6


@dataclass(frozen=True)
class JointHyperparameters:
    """What a fit decides, in standardised units.

    Attributes:
        terms: The kernel with its lengthscales and outputscales.
        noise: Variance of the noise on values and on partial derivatives, beside what is known of each observation.
        learned: Whether `noise` is fitted too.
    """

    terms: tuple[Term, ...]
    noise: tuple[float, float] = (0.0, 0.0)
    learned: bool = False

    @property
    def theta(self) -> Array:
        """The logarithms, in the order of this module's docstring."""
        parts = [np.append(term.lengthscale, term.outputscale) for term in self.terms]
        return np.log(np.concatenate([*parts, self.noise if self.learned else ()]))

    def at(self, theta: Array) -> JointHyperparameters:
        """The same kernel and kind of noise at other values."""
        count, dimension = len(self.terms), len(self.terms[0].lengthscale)
        values = np.exp(theta)
        parts = values[: count * (dimension + 1)].reshape(count, dimension + 1)
        terms = with_hyperparameters(self.terms, parts[:, :-1], parts[:, -1])
        noise = (float(values[-2]), float(values[-1])) if self.learned else self.noise
        return JointHyperparameters(terms, noise, self.learned)

    def rescaled(self, old: float, new: float) -> JointHyperparameters:
        """The same prior in the units given, when values are divided by `new` instead of `old`."""
        factor = (old / new) ** 2
        terms = tuple(replace(term, outputscale=term.outputscale * factor) for term in self.terms)
        noise = (self.noise[0] * factor, self.noise[1] * factor) if self.learned else self.noise
        return JointHyperparameters(terms, noise, self.learned)

    def to_json(self) -> dict[str, Any]:
        """Plain lists, from which `from_json` builds an equal object."""
        terms = [asdict(term) | {"lengthscale": term.lengthscale.tolist()} for term in self.terms]
        return {"terms": terms, "noise": list(self.noise), "learned": self.learned}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> JointHyperparameters:
        """The hyperparameters that `to_json` described."""
        terms = tuple(Term(**term | {"lengthscale": np.array(term["lengthscale"])}) for term in stored["terms"])
        values, slopes = stored["noise"]
        return cls(terms, (values, slopes), stored["learned"])

    def row_noise(self, row_component: NDArray[np.intp]) -> Array:
        """The noise of each row."""
        return np.where(row_component == 0, *self.noise)


@dataclass(frozen=True)
class JointData:
    """Standardised observations as rows: the pairs of points, targets N and known noise variances N."""

    pairs: TrainingPairs
    targets: Array
    noise: Array

    @classmethod
    def of(cls, x: Array, observed: Array, variance: Array) -> JointData:
        """From points n x d, and values and gradients n x (d+1) with NaN where missing, and the variances of both."""
        pairs = training_pairs(x, np.isfinite(observed))
        rows = (pairs.row_point, pairs.row_component)
        return cls(pairs, observed[rows], np.nan_to_num(variance[rows]))


@dataclass(frozen=True)
class FactoredRows:
    """Everything about the observed rows that a posterior needs.

    Attributes:
        lower: Cholesky factor of C, N x N, lower triangle.
        scales: S of each component, d+1.
        effects: L^{-1} S z and L^{-1} S h, 2 x N.
        mean: The constant mean m.
        weights: a, N.
        nugget: eta.
    """

    lower: Array
    scales: Array
    effects: Array
    mean: float
    weights: Array
    nugget: float


def factor_rows(data: JointData, hyper: JointHyperparameters, *, eta: float | None = None) -> FactoredRows:
    """Factor the covariance of the rows; `eta` is the nugget, by default what the number of rows asks for."""
    eta = nugget(data.pairs.rows) if eta is None else eta
    scales = prior_variances(hyper.terms) ** -0.5
    matrix = covariance_matrix(term_pairs(hyper.terms, data.pairs, scales, order=2), data.pairs)
    return solve_rows(add_diagonal(matrix, data, hyper, scales, eta), data, scales, eta)


def solve_rows(matrix: Array, data: JointData, scales: Array, eta: float) -> FactoredRows:
    """Factor C in place and solve for mean and weights."""
    lower = factorize(matrix)
    component = data.pairs.row_component
    scaled = scales[component] * np.stack([data.targets, np.where(component == 0, 1.0, 0.0)])
    effects = whiten(lower, scaled)
    mean, weights = solve_mean(lower, effects)
    return FactoredRows(lower, scales, effects, mean, weights, eta)


def solve_mean(lower: Array, effects: Array) -> tuple[float, Array]:
    """The mean m and the weights a from L^{-1} S z and L^{-1} S h; without a single value the mean is 0."""
    information = float(effects[1] @ effects[1])
    mean = float(effects[0] @ effects[1]) / information if information > 0.0 else 0.0
    return mean, unwhiten(lower, (effects[0] - mean * effects[1])[None])[0]


def negative_log_posterior(
    theta: Array, data: JointData, hyper: JointHyperparameters, *, eta: float | None = None
) -> Posterior:
    """J of this module's docstring, its gradient and its curvature; `hyper` says which kernel and what is learned."""
    hyper, pairs = hyper.at(theta), data.pairs
    eta = nugget(pairs.rows) if eta is None else eta
    scales = prior_variances(hyper.terms) ** -0.5
    terms = term_pairs(hyper.terms, pairs, scales, order=3)
    matrix = add_diagonal(covariance_matrix(terms, pairs), data, hyper, scales, eta)
    rows = solve_rows(matrix, data, scales, eta)
    residual = rows.effects[0] - rows.mean * rows.effects[1]
    log_determinant = np.log(np.diagonal(rows.lower)).sum() - np.log(scales[pairs.row_component]).sum()
    value = 0.5 * residual @ residual + log_determinant + 0.5 * pairs.rows * np.log(2.0 * np.pi)

    diagonal = _diagonal_derivatives(hyper, pairs, scales)
    products = np.concatenate([*derivative_products(terms, pairs, rows.weights)], axis=1)
    kernel = products.shape[1]
    products = np.concatenate(
        [products + eta * diagonal[:, :kernel] * rows.weights[:, None], diagonal[:, kernel:] * rows.weights[:, None]],
        axis=1,
    )
    whitened = whiten(rows.lower, np.ascontiguousarray(products.T))
    shift = whitened @ rows.effects[1]
    curvature = 0.5 * whitened @ whitened.T
    information = float(rows.effects[1] @ rows.effects[1])
    if information > 0.0:
        curvature -= 0.5 * np.outer(shift, shift) / information

    gradient = -0.5 * (rows.weights @ products)
    inverse = invert(rows.lower)
    inverse_diagonal = np.diagonal(inverse)
    gradient[:kernel] += 0.5 * np.concatenate(trace_derivatives(terms, pairs, inverse))
    gradient[:kernel] += 0.5 * eta * (inverse_diagonal @ diagonal[:, :kernel])
    gradient[kernel:] += 0.5 * (inverse_diagonal @ diagonal[:, kernel:])

    penalty, slopes, bends = negative_log_prior(theta, hyper)
    curvature.flat[:: len(theta) + 1] += bends
    return Posterior(float(value + penalty), gradient + slopes, curvature, rows.mean)


def negative_log_prior(theta: Array, hyper: JointHyperparameters) -> tuple[float, Array, Array]:
    """-log p(l, s, noise) of all terms, densities as in `fitting`, with first and second derivatives by theta."""
    count, dimension = len(hyper.terms), len(hyper.terms[0].lengthscale)
    is_scale = np.zeros(len(theta), bool)
    is_scale[dimension : count * (dimension + 1) : dimension + 1] = True
    medians = [np.full(dimension + 1, np.log(term.median)) for term in hyper.terms]
    location = np.concatenate([*medians, np.full(2 * hyper.learned, NOISE_PRIOR[0])])
    width = np.full(len(theta), LENGTHSCALE_PRIOR[1])
    width[count * (dimension + 1) :] = NOISE_PRIOR[1]
    z = (theta - location) / width
    concentration, rate = OUTPUTSCALE_PRIOR
    scale = np.exp(theta)
    log_normal = theta + 0.5 * z * z + np.log(width * np.sqrt(2.0 * np.pi))
    # log Gamma(2) = 0
    gamma = rate * scale - (concentration - 1.0) * theta - concentration * np.log(rate)
    value = float(np.where(is_scale, gamma, log_normal).sum())
    slopes = np.where(is_scale, rate * scale - (concentration - 1.0), 1.0 + z / width)
    return value, slopes, np.where(is_scale, rate * scale, width**-2.0)


def fit_hyperparameters(
    data: JointData, hyper: JointHyperparameters, *, warm: bool, evaluations: int = 60
) -> tuple[JointHyperparameters, lbfgs.Minimum]:
    """The best hyperparameters found, and how the search ended.

    Args:
        data: The observations.
        hyper: Where to start if `warm`; otherwise only its kernel and kind of noise count.
        warm: Start from `hyper`. If not, look at the prior medians and at multiples of them first.
        evaluations: Limit on the evaluations of the descent.
    """
    low, high = _bounds(hyper)
    start = np.clip(hyper.theta, low, high)
    if not warm:
        starts = [np.clip(_default_theta(hyper, factor), low, high) for factor in _START_FACTORS]
        start = min(starts, key=lambda theta: negative_log_posterior(theta, data, hyper).value)

    def objective(thetas: Array, _: NDArray[np.intp]) -> lbfgs.Evaluation:
        posterior = negative_log_posterior(thetas[0], data, hyper)
        return lbfgs.Evaluation(np.array([posterior.value]), posterior.gradient[None], posterior.curvature[None])

    stopping = lbfgs.Stopping(
        decrease=_DECREASE_PER_ROW * max(data.pairs.rows, 1), gradient=1e-9, evaluations=evaluations
    )
    end = lbfgs.minimize(objective, start[None], lower=low, upper=high, stopping=stopping, longest_step=2.0)
    return hyper.at(end.x[0]), end


def _default_theta(hyper: JointHyperparameters, factor: float) -> Array:
    """Lengthscales at `factor` times their medians, outputscales that add up to 1, noise at its prior median."""
    parts = [
        np.append(np.full(len(term.lengthscale), factor * term.median), 1.0 / len(hyper.terms)) for term in hyper.terms
    ]
    return np.append(np.log(np.concatenate(parts)), np.full(2 * hyper.learned, NOISE_PRIOR[0]))


def _bounds(hyper: JointHyperparameters) -> tuple[Array, Array]:
    """Lower and upper bounds of theta: wide enough that the priors, not they, decide."""
    term = [LENGTHSCALE_BOUNDS] * len(hyper.terms[0].lengthscale) + [OUTPUTSCALE_BOUNDS]
    pairs = np.log(term * len(hyper.terms) + [NOISE_BOUNDS] * (2 * hyper.learned))
    return pairs[:, 0], pairs[:, 1]


def add_diagonal(matrix: Array, data: JointData, hyper: JointHyperparameters, scales: Array, eta: float) -> Array:
    """Nugget and noise on the diagonal of a scaled covariance, in place."""
    component = data.pairs.row_component
    matrix.flat[:: len(matrix) + 1] += eta + (data.noise + hyper.row_noise(component)) * scales[component] ** 2
    return matrix


def _diagonal_derivatives(hyper: JointHyperparameters, pairs: TrainingPairs, scales: Array) -> Array:
    """The diagonals of S dK S and, if learned, of S dD S for each entry of theta: N x p."""
    component = pairs.row_component
    columns: list[Array] = []
    for term in hyper.terms:
        variances = scales**2 * prior_variances((term,))
        # The variance of a value does not depend on lengthscales, that of derivative k goes with l_k^{-2} only.
        stretched = -2.0 * np.diag(variances)[:, 1:]
        columns += [stretched[component], variances[component, None]]
    if hyper.learned:
        noise = hyper.row_noise(component) * scales[component] ** 2
        columns += [np.where(component == 0, noise, 0.0)[:, None], np.where(component == 0, 0.0, noise)[:, None]]
    return np.concatenate(columns, axis=1)
