r"""The covariance of values and gradients, split into a part in the span of the points and copies of one outside.

For a kernel phi(s), s = |u - u'|^2 / 2 in scaled coordinates u = x / l, and delta = u_a - u_b,

.. math::
    \mathrm{cov}(f_a, f_b) = \phi, \quad \mathrm{cov}(\gamma_a, f_b) = \phi'\,\delta, \quad
    \mathrm{cov}(\gamma_a, \gamma_b) = -\phi''\,\delta\delta^\top - \phi'\, I .

delta lies in the span of the points. In a basis [Q, E] of all directions the derivatives along E therefore are
independent of the values, of the derivatives along Q and of each other, and each has the covariance -phi'. Noise that
is the same in all directions of u does not change that. So the density of n values and m gradients is

.. math::
    p(y, \Gamma) = p(y, \Gamma Q) \prod_{j=1}^{d-r} N\bigl((\Gamma E)_j;\, 0, K^\perp\bigr), \qquad
    K^\perp_{ab} = -\phi'(s_{ab}) + \text{noise} ,

a joint process in r coordinates, n + m r rows, and d - r copies of one of m rows. E is never formed: it enters by
:math:`\Gamma^\perp = \Gamma - \Gamma Q Q^\top` alone. (Notation of `span`; n, m points, those with a gradient; phi
includes the outputscale w.)

| symbol | meaning |
|---|---|
| S_0, S_1 | w^{-1/2} and (-w phi'(0))^{-1/2}: both parts are factored in correlation form |
| eta | the nugget, relative to the prior variances |
| nu, tau_a | noise variance of values; of the derivatives by u at point a, see `slope_noise` |
| alpha, A | K^{-1} (z - mean) in scaled coordinates: n weights of values, m x d of derivatives |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import Term, profile_derivatives, slope_at_zero
from eign.models.joint.fitting import JointData, factor_rows, negative_log_likelihood
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.moments import ConditionedRows
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.span import Span, span_of
from eign.numerics.large_cholesky import factorize, unwhiten, whiten


@dataclass(frozen=True)
class SplitRows:
    """Both parts, factored.

    Attributes:
        hyper: Kernel and noise.
        data: The observations, in the order they came in, the first ones with gradients first.
        span: Of the scaled points, or larger.
        inside: The rows of values and of derivatives along Q, in r coordinates with lengthscales 1.
        outside: Cholesky factor of S_1^2 K-perp, m x m.
        value_weights: alpha, n.
        slope_weights: A, m x d.
    """

    hyper: JointHyperparameters
    data: SpannedData
    span: Span
    inside: ConditionedRows
    outside: Array
    value_weights: Array
    slope_weights: Array

    @property
    def lengthscale(self) -> Array:
        """l, d."""
        return self.hyper.terms[0].lengthscale

    @property
    def mean(self) -> float:
        """The constant mean: generalised least squares of the values."""
        return self.inside.factored.mean

    @property
    def slope_scale(self) -> float:
        """S_1."""
        return slope_scale(self.hyper.terms[0])

    @cached_property
    def scaled_points(self) -> Array:
        """The points u - o, n x d."""
        return np.asarray(self.data.x / self.lengthscale - self.span.origin)

    @cached_property
    def columns(self) -> Array:
        """Where the rows of the inside are among all r + 1 components at all n points, component first."""
        return np.asarray(self.inside.row_component * len(self.inside.x) + self.inside.row_point)


def slope_scale(term: Term) -> float:
    """S_1 = (-w phi'(0))^{-1/2}."""
    return float((term.outputscale * slope_at_zero(term.profile)) ** -0.5)


def unit_term(term: Term, dimension: int) -> Term:
    """The same function of the distance in coordinates that are scaled already."""
    return Term("full", term.profile, np.ones(dimension), term.outputscale, term.median)


def slope_noise(hyper: JointHyperparameters, told: Array) -> Array:
    r"""Noise variance of the derivatives by u at each point, the same in every direction, `m x d -> m`.

    .. math:: \tau_a = \nu_g\,\bar l^2 + \frac1d \sum_i l_i^2\, v_{ai}, \qquad \log\bar l = \frac1d\sum_i\log l_i

    with nu_g the model's and v the known variances, both of derivatives by x. If all lengthscales are equal and the
    known variances of a point are, this is the noise of the dense model. Otherwise it is the noise with the same mean
    variance in scaled coordinates, for only noise without a direction splits.
    """
    lengthscale = hyper.terms[0].lengthscale
    common = hyper.noise[1] * float(np.exp(2.0 * np.log(lengthscale).mean()))
    return np.asarray(common + (told * lengthscale**2).mean(axis=1))


def inside_data(span: Span, hyper: JointHyperparameters, data: SpannedData) -> JointData:
    """Values and derivatives along Q at the coordinates R, as rows of a joint process in r coordinates."""
    lengthscale = hyper.terms[0].lengthscale
    n, m = len(data.x), data.gradients
    numbers, noise = np.full((2, n, span.rank + 1), np.nan)
    numbers[:, 0], numbers[:m, 1:] = data.y, (data.grad * lengthscale) @ span.basis
    noise[:, 0] = data.y_noise + hyper.noise[0]
    noise[:m, 1:] = slope_noise(hyper, data.grad_noise)[:, None]
    return JointData.of((data.x / lengthscale - span.origin) @ span.basis, numbers, noise)


def outside_gradients(span: Span, lengthscale: Array, grad: Array) -> Array:
    """Gradients by u less their part in the span, `m x d`, projected twice: a large part of nothing is rounding."""
    gamma = grad * lengthscale
    gamma = gamma - (gamma @ span.basis) @ span.basis.T
    return np.asarray(gamma - (gamma @ span.basis) @ span.basis.T)


def squared_distances(points: Array, others: Array) -> Array:
    """r^2 = 2 s by differences, m x r, n x r -> m x n."""
    delta = points[:, None, :] - others[None, :, :]
    return np.asarray(np.einsum("abk,abk->ab", delta, delta))


def outside_factor(term: Term, points: Array, noise: Array, eta: float) -> Array:
    """The Cholesky factor of S_1^2 K-perp at points `m x r` with noise tau, m x m."""
    scale = slope_scale(term) ** 2
    slope = profile_derivatives(term.profile, squared_distances(points, points), order=1)[1]
    matrix = (-scale * term.outputscale) * slope
    matrix.flat[:: len(matrix) + 1] += eta + scale * noise
    return factorize(matrix)


def split(data: SpannedData, hyper: JointHyperparameters, *, eta: float | None = None) -> SplitRows:
    """Factor both parts and solve for the weights; eta is the nugget to begin with, see `factor_rows`."""
    term = hyper.terms[0]
    span = span_of(data.x / term.lengthscale)
    rows = inside_data(span, hyper, data)
    inside_hyper = JointHyperparameters((unit_term(term, span.rank),))
    factored = factor_rows(rows, inside_hyper, eta=eta)
    points = (data.x / term.lengthscale - span.origin) @ span.basis
    inside = ConditionedRows(points, rows.pairs.row_point, rows.pairs.row_component, inside_hyper, factored)
    noise = slope_noise(hyper, data.grad_noise)
    outside = outside_factor(term, points[: data.gradients], noise, factored.nugget)
    return with_weights(hyper, data, span, inside, outside)


def with_weights(
    hyper: JointHyperparameters, data: SpannedData, span: Span, inside: ConditionedRows, outside: Array
) -> SplitRows:
    r"""The rows with their weights.

    .. math:: A = (\text{weights along } Q)\, Q^\top + (K^\perp)^{-1} \Gamma^\perp
    """
    lengthscale, scale = hyper.terms[0].lengthscale, slope_scale(hyper.terms[0])
    by_component = np.zeros((span.rank + 1, len(data.x)))
    by_component[inside.row_component, inside.row_point] = inside.factored.weights * inside.row_scales
    slopes = by_component[1:, : data.gradients].T @ span.basis.T
    if span.rank < len(lengthscale):
        gamma = np.ascontiguousarray(outside_gradients(span, lengthscale, data.grad).T)
        slopes = slopes + scale**2 * unwhiten(outside, whiten(outside, gamma)).T
    return SplitRows(hyper, data, span, inside, outside, by_component[0], np.ascontiguousarray(slopes))


def split_negative_log_likelihood(rows: SplitRows) -> float:
    r"""-log p(y, G) of values and of gradients by x, at the mean of generalised least squares.

    .. math::
        J = J_{\text{inside}} + \tfrac12 \operatorname{tr}(\Gamma^{\perp\top} (K^\perp)^{-1} \Gamma^\perp)
            + \tfrac{d-r}2 \bigl(\log|K^\perp| + m \log 2\pi\bigr) - m \sum_i \log l_i
    """
    inside = negative_log_likelihood(rows.inside.factored, rows.inside.row_component)
    m, copies = rows.data.gradients, len(rows.lengthscale) - rows.span.rank
    lengths = m * float(np.log(rows.lengthscale).sum())
    if copies == 0 or m == 0:
        return inside - lengths
    gamma = outside_gradients(rows.span, rows.lengthscale, rows.data.grad)
    whitened = rows.slope_scale * whiten(rows.outside, np.ascontiguousarray(gamma.T))
    log_determinant = float(np.log(np.diagonal(rows.outside)).sum()) - m * float(np.log(rows.slope_scale))
    outside = copies * (log_determinant + 0.5 * m * float(np.log(2.0 * np.pi)))
    return inside + 0.5 * float(np.vdot(whitened, whitened)) + outside - lengths
