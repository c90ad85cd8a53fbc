r"""The gradient of the likelihood of the split by all hyperparameters, without a matrix of n (d + 1) rows.

Whatever the lengthscales, the likelihood is the dense model's, :math:`J = \frac12 z^\top K^{-1} z + \frac12\log|K|`,
so that :math:`2\,dJ = \operatorname{tr}(W\,dK)` with :math:`W = K^{-1} - K^{-1} z z^\top K^{-1}` in all coordinates:
that the span turns with the lengthscales needs no thought. The split only says what K^{-1} is. In scaled coordinates
(notation of `split`), for the derivatives of a pair of points a, b and with Z the inverse of the inside,

.. math::
    W_{ab} &= Z^{00}_{ab} - \alpha_a\alpha_b, \qquad G_{ab} = Q Z^{10}_{ab} - A_a \alpha_b, \\
    M_{ab} &= Q Z^{11}_{ab} Q^\top + (I - QQ^\top)\, (K^\perp)^{-1}_{ab} - A_a A_b^\top

and the derivative by log l_k, summed over all pairs of points, is

.. math::
    2\,\partial_k J = \sum q\,\delta_k^2 - 4 \sum \phi'\delta_k G_k + 4 \sum \phi''\delta_k (M\delta)_k
        + 2 \sum \phi' M_{kk} - 2 \sum_a N_a M_{aa,kk} + \sum_a \partial_k\tau_a \operatorname{tr} M_{aa} \\
    q = -\phi' W - 2\phi''\, G\cdot\delta + \phi'''\,\delta^\top M\,\delta + \phi'' \operatorname{tr} M,
    \qquad N_a = \eta / S_1^2 + \tau_a

What lies in the span contributes the diagonal of Q X Q', X an r x r matrix; the rest is a few products of n x n with
n x d matrices: O(N^3) for the N = n + m r rows of the inside, and O(n^2 d + d r^2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import profile_derivatives
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.kernels import weighted_squared_differences
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.split import SplitRows, slope_noise, split, split_negative_log_likelihood, squared_distances
from eign.numerics.large_cholesky import invert


class Likelihood(NamedTuple):
    """-log p(y, G) with its gradient by theta: log l_1 .. log l_d, log w and, if learned, log nu and log nu_g."""

    value: float
    gradient: Array


class _Contracted(NamedTuple):
    """What the inverse of the inside contributes.

    Attributes:
        values: Z00, n x n.
        along: Z10 . delta, m x n.
        quadratic: delta' Z11 delta, m x m.
        trace: tr Z11, m x m.
        turned: The r x r sums of phi' Z10 delta', of phi'' (Z11 delta) delta', and of phi' Z11.
        own: The r x r sum over points a of N_a Z11_aa.
    """

    values: Array
    along: Array
    quadratic: Array
    trace: Array
    turned: tuple[Array, Array, Array]
    own: Array


def negative_log_likelihood_and_gradient(data: SpannedData, hyper: JointHyperparameters) -> Likelihood:
    """J and its gradient by theta."""
    rows = split(data, hyper)
    value = split_negative_log_likelihood(rows)
    n, m, term = len(data.x), data.gradients, hyper.terms[0]
    d, u, lengths = len(term.lengthscale), rows.scaled_points, rows.lengthscale
    alpha, A, Q = rows.value_weights, rows.slope_weights, rows.span.basis
    r2 = squared_distances(rows.inside.x, rows.inside.x)
    phi1, phi2, phi3 = (term.outputscale * p for p in profile_derivatives(term.profile, r2, order=3)[1:])
    np.fill_diagonal(phi3, 0.0)  # infinite for the Matern-5/2, times zero
    tau, eta = slope_noise(hyper, data.grad_noise), rows.inside.factored.nugget
    diagonal = eta / rows.slope_scale**2 + tau
    # What the weights of the rows contribute is read before the factors are overwritten by their inverses.
    explained = float(rows.inside.factored.residual @ rows.inside.factored.residual) + _explained_outside(rows)
    z = _contract_inverse(rows, phi1, phi2, diagonal)
    copies = d - rows.span.rank
    kappa = _symmetric(invert(rows.outside)) * rows.slope_scale**2 if copies else np.zeros((m, m))

    g = slice(m)
    ahead = np.einsum("ak,ak->a", A, u[g])[:, None] - A @ u.T  # A_a . (u_a - u_b), m x n
    behind = -ahead[:, g].T  # A_b . (u_a - u_b), m x m
    W = z.values - np.outer(alpha, alpha)
    trace = z.trace + copies * kappa - A @ A.T
    q = -phi1 * W
    q[g] -= 2.0 * phi2[g] * (z.along - ahead * alpha)
    q[g, g] += phi3[g, g] * (z.quadratic - ahead[:, g] * behind) + phi2[g, g] * trace

    inner1, inner2 = phi1[g, g], phi2[g, g]
    mixed = _turn(Q, z.turned[0]) - _weighted_differences(A, phi1[g] * alpha, u)
    bent = _turn(Q, z.turned[1]) - _weighted_differences(A, inner2 * behind, u[g])
    outside = 1.0 - np.einsum("kr,kr->k", Q, Q)
    level = _turn(Q, z.turned[2]) + outside * float(np.vdot(inner1, kappa)) - np.einsum("ak,ak->k", A, inner1 @ A)
    own = _turn(Q, z.own) + outside * float(diagonal @ np.diagonal(kappa)) - diagonal @ (A * A)
    total = np.diagonal(trace)
    grown = 2.0 / d * (hyper.noise[1] * np.exp(2.0 * np.log(lengths).mean()) * total.sum())
    grown = grown + 2.0 / d * lengths**2 * (total @ data.grad_noise)

    gradient = np.empty(d + 1 + 2 * hyper.learned)
    gradient[:d] = 0.5 * (weighted_squared_differences(q, u) - 4.0 * mixed + 4.0 * bent + 2.0 * level) - own
    gradient[:d] += 0.5 * grown
    noise = data.y_noise + hyper.noise[0]
    gradient[d] = 0.5 * (n + m * d - explained - np.diagonal(W) @ noise - total @ tau)
    if hyper.learned:
        gradient[d + 1] = 0.5 * hyper.noise[0] * float(np.trace(W))
        gradient[d + 2] = 0.5 * hyper.noise[1] * float(np.exp(2.0 * np.log(lengths).mean()) * total.sum())
    return Likelihood(value, gradient)


def _explained_outside(rows: SplitRows) -> float:
    """tr(Gamma-perp' K-perp^{-1} Gamma-perp)."""
    along = rows.slope_weights @ rows.span.basis
    outside = rows.slope_weights - along @ rows.span.basis.T
    return float(np.vdot(outside, rows.data.grad * rows.lengthscale))


def _turn(basis: Array, matrix: Array) -> Array:
    """The diagonal of Q X Q', `r x r -> d`."""
    return np.asarray(np.einsum("kr,kr->k", basis @ matrix, basis))


def _weighted_differences(A: Array, weights: Array, u: Array) -> Array:
    """Sum over a, b of A_ak w_ab (u_ak - u_bk) for each k, `m x d, m x n, n x d -> d`."""
    differences = weights.sum(axis=1)[:, None] * u[: len(A)] - weights @ u
    return np.asarray(np.einsum("ak,ak->k", A, differences))


def _symmetric(lower: Array) -> Array:
    """Both triangles from the lower one."""
    return np.tril(lower) + np.tril(lower, -1).T


def _contract_inverse(rows: SplitRows, phi1: Array, phi2: Array, diagonal: Array) -> _Contracted:
    """Pass over the inverse of the inside, one direction of the span at a time; it takes the place of the factor."""
    n, m, r = len(rows.data.x), rows.data.gradients, rows.span.rank
    scales = rows.inside.factored.scales
    inverse = invert(rows.inside.factored.lower)
    values = scales[0] ** 2 * _symmetric(inverse[:n, :n])
    R = rows.inside.x
    delta = R.T[:, :, None] - R.T[:, None, :]  # r x n x n
    inner = np.ascontiguousarray(delta[:, :m, :m])
    bend, slope, scale = phi2[:m, :m], phi1[:m, :m], rows.slope_scale**2
    along, trace, quadratic = np.zeros((m, n)), np.zeros((m, m)), np.zeros((m, m))
    sums = np.zeros((4, r, r))
    if r and m:
        below = inverse[n:, :n].reshape(r, m, n) * (scales[0] * rows.slope_scale)
        along = np.einsum("pab,pab->ab", below, delta[:, :m])
        sums[0] = (below * phi1[:m]).reshape(r, m * n) @ delta[:, :m].reshape(r, m * n).T
        slopes = inverse[n:, n:].reshape(r, m, r, m)
        turned = np.zeros((r, m, m))
        for p in range(r):
            # Of the row of blocks p those up to the diagonal are known; with a and b exchanged they are column p.
            blocks = slopes[p, :, :p].transpose(1, 0, 2) * scale
            own = _symmetric(slopes[p, :, p] * scale)
            turned[p] += np.einsum("sab,sab->ab", blocks, inner[:p]) + own * inner[p]
            turned[:p] += blocks.transpose(0, 2, 1) * inner[p]
            sums[2, p, :p] = blocks.reshape(p, m * m) @ slope.ravel()
            sums[2, p, p] = np.vdot(own, slope)
            sums[3, p, :p] = np.einsum("saa,a->s", blocks, diagonal)
            sums[3, p, p] = np.diagonal(own) @ diagonal
            trace += own
        quadratic = np.einsum("pab,pab->ab", turned, inner)
        sums[1] = (turned * bend).reshape(r, m * m) @ inner.reshape(r, m * m).T
        sums[2:] += np.tril(sums[2:], -1).transpose(0, 2, 1)
    return _Contracted(values, along, quadratic, trace, (sums[0], sums[1], sums[2]), sums[3])
