r"""Maximum a posteriori hyperparameters of the joint Gaussian process of f and its gradient.

| symbol | meaning |
|---|---|
| theta | for each term of the kernel log l_1 .. log l_d, log s; then, if learned, log noise of values, derivatives |
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

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import prior_variances
from eign.models.joint.covariance import covariance_matrix, derivative_products, trace_derivatives
from eign.models.joint.hyperparameters import JointHyperparameters, bounds, negative_log_prior, starts
from eign.models.joint.rows import TrainingPairs, training_pairs
from eign.models.joint.terms import term_pairs
from eign.numerics import lbfgs
from eign.numerics.cholesky import with_jitter
from eign.numerics.large_cholesky import factorize, invert, nugget, unwhiten, whiten

# Stop when less than this is left to gain per row, as for the independent processes.
_DECREASE_PER_ROW: Final = 5e-6
_RUNNERS: Final = 4
_RACE_EVALUATIONS: Final = 4


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

    @property
    def residual(self) -> Array:
        """L^{-1} S (z - m h), N."""
        return np.asarray(self.effects[0] - self.mean * self.effects[1])


def factor_rows(data: JointData, hyper: JointHyperparameters, *, eta: float | None = None) -> FactoredRows:
    """Factor the covariance of the rows with as small a nugget as it takes.

    Args:
        data: The observations.
        hyper: The hyperparameters.
        eta: The nugget to begin with, by default what the number of rows asks for.
    """
    scales = prior_variances(hyper.terms) ** -0.5

    def factored(eta: float) -> FactoredRows:
        matrix = covariance_matrix(term_pairs(hyper.terms, data.pairs, scales, order=2), data.pairs)
        return solve_rows(add_diagonal(matrix, data, hyper, scales, eta), data, scales, eta)

    return with_jitter(factored, nugget(data.pairs.rows) if eta is None else eta)


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


class LogPosterior(NamedTuple):
    """The negative log posterior J at one theta, with gradient `p` and curvature `p x p`."""

    value: float
    gradient: Array
    curvature: Array


def negative_log_posterior(
    theta: Array, data: JointData, hyper: JointHyperparameters, *, eta: float | None = None, out: Array | None = None
) -> LogPosterior:
    """J of this module's docstring with gradient and curvature.

    Args:
        theta: Where.
        data: The observations.
        hyper: Which kernel, and what is learned; its values do not matter.
        eta: The nugget, by default what the number of rows asks for.
        out: N x N to work in; a search that evaluates often saves the time to get fresh memory.
    """
    hyper, pairs = hyper.at(theta), data.pairs
    eta = nugget(pairs.rows) if eta is None else eta
    scales = prior_variances(hyper.terms) ** -0.5
    terms = term_pairs(hyper.terms, pairs, scales, order=3)
    matrix = add_diagonal(covariance_matrix(terms, pairs, out=out), data, hyper, scales, eta)
    rows = solve_rows(matrix, data, scales, eta)
    value = negative_log_likelihood(rows, pairs.row_component)

    diagonal = _diagonal_derivatives(hyper, pairs, scales, eta)
    products = diagonal * rows.weights[:, None]  # C_j a
    kernel = np.concatenate(derivative_products(terms, pairs, rows.weights), axis=1)
    products[:, : kernel.shape[1]] += kernel
    curvature = _average_information(rows, products)
    gradient = -0.5 * (rows.weights @ products)
    inverse = invert(rows.lower)
    gradient += 0.5 * (np.diagonal(inverse) @ diagonal)
    gradient[: kernel.shape[1]] += 0.5 * np.concatenate(trace_derivatives(terms, pairs, inverse))

    penalty, slopes, bends = negative_log_prior(theta, hyper)
    curvature.flat[:: len(theta) + 1] += bends
    return LogPosterior(value + penalty, gradient + slopes, curvature)


def fit_hyperparameters(
    data: JointData, hyper: JointHyperparameters, *, warm: bool, evaluations: int = 60
) -> tuple[JointHyperparameters, lbfgs.Minimum]:
    """The best hyperparameters found, and how the search ended.

    Args:
        data: The observations.
        hyper: Where to start if `warm`; otherwise only its kernel and kind of noise count.
        warm: Start from `hyper`. If not, look at several starts, let the best race, and descend from the winner.
        evaluations: Limit on the evaluations of the descent.
    """
    # One nugget for all of a fit: with another the objective is another function.
    return with_jitter(
        lambda eta: _fit_at(data, hyper, eta, warm=warm, evaluations=evaluations), nugget(data.pairs.rows)
    )


def _fit_at(
    data: JointData, hyper: JointHyperparameters, eta: float, *, warm: bool, evaluations: int
) -> tuple[JointHyperparameters, lbfgs.Minimum]:
    """`fit_hyperparameters` with this nugget.

    Raises:
        FactorizationError: If it is too small for a matrix on the way.
    """
    low, high = bounds(hyper)
    workspace = np.empty((data.pairs.scheme_rows,) * 2)

    def objective(thetas: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        results = [negative_log_posterior(theta, data, hyper, eta=eta, out=workspace) for theta in thetas]
        values, gradients, curvatures = zip(*results, strict=True)
        return lbfgs.ObjectiveValues(np.array(values), np.stack(gradients), np.stack(curvatures))

    def descend(start: Array, limit: int) -> lbfgs.Minimum:
        left = _DECREASE_PER_ROW * max(data.pairs.rows, 1)
        stopping = lbfgs.Stopping(decrease=left, gradient=1e-9, evaluations=limit)
        return lbfgs.minimize(objective, start, lower=low, upper=high, stopping=stopping, longest_step=2.0)

    best = [hyper.theta] if warm else _best_starts(data, hyper)
    # One term has had one optimum wherever we looked; a sum of terms has several, which early values tell apart.
    if not warm and len(hyper.terms) > 1:
        race = descend(np.stack(best[:_RUNNERS]), _RACE_EVALUATIONS)
        best = [race.x[np.argmin(race.value)]]
    end = descend(best[0][None], evaluations)
    return hyper.at(end.x[0]), end


def _best_starts(data: JointData, hyper: JointHyperparameters) -> list[Array]:
    r"""The starts, each with its outputscales times the best common factor c, the most likely first.

    Without noise that factor is r'a / N, and changes J by (N - r'a + N log c) / 2: one factorisation a start. Without
    it a start would be judged by its outputscale, which the first step corrects anyway.
    """
    low, high = bounds(hyper)
    size = data.pairs.rows
    judged: list[tuple[float, int, Array]] = []
    for number, start in enumerate(starts(hyper)):
        rows = factor_rows(data, hyper.at(start))
        explained = max(float(rows.residual @ rows.residual), np.finfo(np.float64).tiny)
        theta = start.copy()
        theta[hyper.outputscale_entries] += np.log(explained / max(size, 1))
        theta = np.clip(theta, low, high)
        step = theta[hyper.dimension] - start[hyper.dimension]
        change = 0.5 * (explained * np.expm1(-step) + size * step)
        value = negative_log_likelihood(rows, data.pairs.row_component) + change + negative_log_prior(theta, hyper)[0]
        judged.append((value, number, theta))
    return [theta for _, _, theta in sorted(judged, key=lambda entry: entry[:2])]


def profile_log_likelihoods(data: JointData, targets: Array, hyper: JointHyperparameters, *, warm: bool) -> Array:
    r"""Log density of other targets in the same rows, `k x N -> k`, each at its best mean and outputscale.

    With residuals r and their covariance c C, the best c is q / N for q = r'C^{-1} r, which leaves

    .. math:: -\tfrac N2 \log(q / N) - \tfrac12 \log|C| + \sum \log S - \tfrac N2 (1 + \log 2\pi)

    so that all targets share one factorisation. Noise is scaled along. If not `warm`, the best over the starts of a
    first fit.
    """
    component, size = data.pairs.row_component, max(data.pairs.rows, 1)
    likelihoods = []
    for theta in [hyper.theta] if warm else starts(hyper):
        rows = factor_rows(data, hyper.at(theta))
        whitened = whiten(rows.lower, np.ascontiguousarray(rows.scales[component] * targets))
        information = float(rows.effects[1] @ rows.effects[1])
        if information > 0.0:
            whitened -= np.outer(whitened @ rows.effects[1] / information, rows.effects[1])
        unexplained = np.maximum((whitened * whitened).sum(axis=1), np.finfo(np.float64).tiny)
        constant = np.log(np.diagonal(rows.lower)).sum() - np.log(rows.scales[component]).sum()
        likelihoods.append(-0.5 * size * (np.log(unexplained / size) + 1.0 + np.log(2.0 * np.pi)) - constant)
    return np.asarray(np.max(likelihoods, axis=0))


def negative_log_likelihood(rows: FactoredRows, row_component: lbfgs.Index) -> float:
    """J without the prior; the order of `row_component` does not matter."""
    log_determinant = np.log(np.diagonal(rows.lower)).sum() - np.log(rows.scales[row_component]).sum()
    return float(0.5 * rows.residual @ rows.residual + log_determinant + 0.5 * len(row_component) * np.log(2.0 * np.pi))


def _average_information(rows: FactoredRows, products: Array) -> Array:
    """a'C_i P C_j a / 2 from the products C_j a, N x p."""
    whitened = whiten(rows.lower, np.array(products.T, order="C"))
    curvature = 0.5 * (whitened @ whitened.T)
    information = float(rows.effects[1] @ rows.effects[1])
    if information > 0.0:
        shift = whitened @ rows.effects[1]
        curvature -= np.outer(shift, shift) * (0.5 / information)
    return np.asarray(curvature)


def add_diagonal(matrix: Array, data: JointData, hyper: JointHyperparameters, scales: Array, eta: float) -> Array:
    """Nugget and noise on the diagonal of a scaled covariance, in place."""
    component = data.pairs.row_component
    matrix.flat[:: len(matrix) + 1] += eta + (data.noise + hyper.row_noise(component)) * scales[component] ** 2
    return matrix


def _diagonal_derivatives(hyper: JointHyperparameters, pairs: TrainingPairs, scales: Array, eta: float) -> Array:
    """The diagonals of eta S dK S and, if learned, of S dD S for each entry of theta: N x p."""
    component = pairs.row_component
    columns: list[Array] = []
    for term in hyper.terms:
        variances = eta * scales**2 * prior_variances((term,))
        # The variance of a value does not depend on lengthscales, that of derivative k goes with l_k^{-2} only.
        stretched = -2.0 * np.diag(variances)[:, 1:]
        columns += [stretched[component], variances[component, None]]
    if hyper.learned:
        noise = hyper.row_noise(component) * scales[component] ** 2
        columns += [np.where(component == 0, noise, 0.0)[:, None], np.where(component == 0, 0.0, noise)[:, None]]
    return np.concatenate(columns, axis=1)
