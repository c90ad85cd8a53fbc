r"""Posterior moments of f and grad f given the split rows, in standardised units.

A point u = o + Q R + t e outside of the span adds the direction e (notation of `span` and `split`). Its covariances
with the values and the derivatives along Q are those of a joint process in r + 1 coordinates, in which the data have
the last coordinate 0 and the point has t; its covariance with the derivatives along e is -phi' t, and with the others
it has none. With k the covariances with the inside, L L' the factored inside, w = S_1 phi' and B B' the factored
outside

.. math::
    \mu &= \text{mean} + \sum_a \bigl( \phi_a \alpha_a - \phi'_a\, (u - u_a)\cdot A_a \bigr), \\
    \sigma^2 &= \phi(0) - |L^{-1} k|^2 - t^2\, |B^{-1} w|^2, \\
    \nabla_u \mu &= \sum_a \bigl( (\phi'_a \alpha_a - \phi''_a\, (u - u_a)\cdot A_a)\,(u - u_a) - \phi'_a A_a \bigr) .

The gradient by u has a full covariance in the r + 1 directions [Q, e], and in each of the others independently

.. math:: -\phi'(0) - |B^{-1} w|^2 .

Two paths with the same numbers: NumPy without a graph, and torch, differentiable in the points.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.models.derivative_kernels import (
    Profile,
    Term,
    covariance_blocks,
    covariance_blocks_vjp,
    profile_derivatives,
    slope_at_zero,
)
from eign.models.first_derivatives import first_derivatives_only
from eign.models.joint.moments import SMALLEST_VARIANCE, ValueRows
from eign.models.spanned.span import Position
from eign.models.spanned.split import SplitRows, unit_term
from eign.numerics.large_cholesky import unwhiten, whiten

# Numbers of a covariance of what is asked with the rows that are worked on at once.
_CHUNK: Final = 1 << 18


class _Cross(NamedTuple):
    """Covariances of components at m points with the rows, correlation form: `m x c x N`, `m x c x (gradients)`."""

    inside: Array
    outside: Array


def value_mean(rows: SplitRows, x: Array) -> tuple[Array, Array]:
    """The posterior mean of f at m points and its gradient by x, `m x d -> m, m x d`, in O(m n d)."""
    where = rows.span.locate(x / rows.lengthscale)
    delta = _differences(where, rows.inside.x)
    r2 = np.einsum("kab,kab->ab", delta, delta)
    v = x / rows.lengthscale - rows.span.origin
    weights = (rows.value_weights, rows.slope_weights)
    mean, gradient = weighted_mean(rows.hyper.terms[0], v, rows.scaled_points, weights, r2)
    return rows.mean + mean, gradient / rows.lengthscale


def weighted_mean(term: Term, v: Array, u: Array, weights: tuple[Array, Array], r2: Array) -> tuple[Array, Array]:
    """The mean mu and its gradient by u of this module's docstring, without the constant mean.

    Args:
        term: The kernel.
        v: Where, in scaled coordinates, m x d.
        u: The points with their weights, those with a gradient first, n x d.
        weights: alpha, n, and A, (gradients) x d.
        r2: Squared distances of both, m x n.
    """
    alpha, A = weights
    phi, phi1, phi2 = (term.outputscale * p for p in profile_derivatives(term.profile, r2, order=2))
    sloped = slice(len(A))
    along = v @ A.T - np.einsum("ak,ak->a", A, u[sloped])  # (u - u_a) . A_a
    mean = phi @ alpha - np.einsum("ma,ma->m", phi1[:, sloped], along)
    pull = phi1 * alpha
    pull[:, sloped] -= phi2[:, sloped] * along
    return mean, pull.sum(axis=1)[:, None] * v - pull @ u - phi1[:, sloped] @ A


def value_moments(rows: SplitRows, x: Array) -> tuple[Array, Array]:
    """Mean and variance of f at m points."""
    prior = rows.hyper.terms[0].outputscale
    mean, variance = np.empty(len(x)), np.empty(len(x))
    for part in _chunks(rows, len(x), 1):
        where = rows.span.locate(x[part] / rows.lengthscale)
        inside, outside = _cross(rows, where, slopes=False)
        white = whiten(rows.inside.factored.lower, inside[:, 0])
        whiter = whiten(rows.outside, outside[:, 0])
        mean[part] = value_mean(rows, x[part])[0]
        variance[part] = prior - np.einsum("mr,mr->m", white, white) - np.einsum("mr,mr->m", whiter, whiter)
    return mean, np.maximum(variance, 0.0) + SMALLEST_VARIANCE * prior


def value_moments_and_gradients(rows: SplitRows, x: Array) -> ValueRows:
    r"""Mean and variance of f with their gradients by x.

    .. math:: \nabla\sigma^2 = -2\,(\nabla k)\, C^{-1} k^\top

    with both parts in C; the gradient by (R, t) is taken back to x by Q and e. By t it is zero at t = 0.
    """
    prior, lengths = rows.hyper.terms[0].outputscale, rows.lengthscale
    mean, mean_gradient = value_mean(rows, x)
    variance, variance_gradient = np.empty(len(x)), np.empty(x.shape)
    for part in _chunks(rows, len(x), 1):
        where = rows.span.locate(x[part] / lengths)
        inside, outside = _cross(rows, where, slopes=False)
        white = whiten(rows.inside.factored.lower, inside[:, 0])
        whiter = whiten(rows.outside, outside[:, 0])
        variance[part] = prior - np.einsum("mr,mr->m", white, white) - np.einsum("mr,mr->m", whiter, whiter)
        solved = unwhiten(rows.inside.factored.lower, white)
        solved_outside = unwhiten(rows.outside, whiter)
        by_place = _pull_back(rows, where, -2.0 * solved, -2.0 * solved_outside)
        by_u = by_place[:, :-1] @ rows.span.basis.T + by_place[:, -1:] * where.outward
        variance_gradient[part] = by_u / lengths
    variance = np.maximum(variance, 0.0) + SMALLEST_VARIANCE * prior
    return ValueRows(mean, variance, mean_gradient, variance_gradient)


def gradient_moments(rows: SplitRows, x: Array) -> tuple[Array, Array]:
    r"""Mean and variance of each partial derivative by x at m points, `m x d -> m x d, m x d`.

    With Sigma the covariance along B = [Q, e] and sigma_0^2 the variance in every other direction,

    .. math:: l_i^2 \operatorname{var}(\partial_i f) = (B \Sigma B^\top)_{ii} + (1 - (B B^\top)_{ii})\, \sigma_0^2 .
    """
    term, lengths, scale = rows.hyper.terms[0], rows.lengthscale, rows.slope_scale
    prior = term.outputscale * slope_at_zero(term.profile)
    basis = rows.span.basis
    known = np.einsum("kr,kr->k", basis, basis)
    variance = np.empty(x.shape)
    for part in _chunks(rows, len(x), rows.span.rank + 1):
        where = rows.span.locate(x[part] / lengths)
        inside, outside = _cross(rows, where, slopes=True)
        covariance = prior * np.eye(rows.span.rank + 1) - np.zeros((len(inside), 1, 1))
        for lower, cross in ((rows.inside.factored.lower, inside), (rows.outside, outside)):
            points, components, size = (derivatives := cross[:, 1:]).shape
            white = whiten(lower, derivatives.reshape(points * components, size)).reshape(derivatives.shape)
            covariance -= white @ white.transpose(0, 2, 1)
        white = whiten(rows.outside, np.ascontiguousarray(_slopes(rows, where) * scale))
        elsewhere = prior - np.einsum("mr,mr->m", white, white)
        turned = np.einsum("kr,mrs->mks", basis, covariance[:, :-1])
        by_u = np.einsum("mks,ks->mk", turned[:, :, :-1], basis)
        by_u += 2.0 * turned[:, :, -1] * where.outward + covariance[:, -1:, -1] * where.outward**2
        by_u += (1.0 - known - where.outward**2) * elsewhere[:, None]
        variance[part] = (np.maximum(by_u, 0.0) + SMALLEST_VARIANCE * prior) / lengths**2
    return value_mean(rows, x)[1], variance


def differentiable_values(rows: SplitRows, x: Tensor) -> tuple[Tensor, Tensor]:
    r"""Mean and covariance of f at q points together, differentiable, `... x q x d -> ... x q, ... x q x q`.

    With v the part of u - o outside of the span, which is t e, points i and j have the covariance

    .. math:: \phi(s_{ij}) - (L^{-1} k_i)\cdot(L^{-1} k_j) - (v_i \cdot v_j)\,(B^{-1} w_i)\cdot(B^{-1} w_j) .
    """
    term, m = rows.hyper.terms[0], rows.data.gradients
    basis = torch.from_numpy(rows.span.basis)
    centred = x / torch.from_numpy(np.array(rows.lengthscale)) - torch.from_numpy(np.array(rows.span.origin))
    inside = centred @ basis
    outside = centred - inside @ basis.mT
    delta = inside.unsqueeze(-2) - torch.from_numpy(rows.inside.x)  # ... x q x n x r
    r2 = delta.square().sum(-1) + outside.square().sum(-1, keepdim=True)
    phi, slope = _profile(r2, term.profile, 0), _profile(r2, term.profile, 1)
    blocks = torch.cat([phi.unsqueeze(-2), (-slope.unsqueeze(-1) * delta).mT], dim=-2).flatten(-2)
    cross = term.outputscale * blocks[..., torch.from_numpy(rows.columns)] * torch.from_numpy(rows.inside.row_scales)
    white = _Whiten.apply(cross, rows.inside.factored.lower)  # type: ignore[no-untyped-call]
    steep = _Whiten.apply(  # type: ignore[no-untyped-call]
        (term.outputscale * rows.slope_scale) * slope[..., :m], rows.outside
    )
    alpha, A = torch.from_numpy(rows.value_weights), torch.from_numpy(rows.slope_weights)
    along = centred @ A.mT - (torch.from_numpy(rows.scaled_points[:m]) * A).sum(-1)
    mean = rows.mean + term.outputscale * (phi @ alpha - (slope[..., :m] * along).sum(-1))
    among = (x / torch.from_numpy(np.array(rows.lengthscale))).unsqueeze(-2)
    prior = term.outputscale * _profile((among - among.transpose(-2, -3)).square().sum(-1), term.profile, 0)
    covariance = prior - white @ white.mT - (outside @ outside.mT) * (steep @ steep.mT)
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    floor = SMALLEST_VARIANCE * term.outputscale + (-variance.detach()).clamp_min(0.0)
    return mean, covariance + torch.diag_embed(floor)


def _chunks(rows: SplitRows, points: int, components: int) -> list[slice]:
    """Slices of the points, each with few enough covariances in all."""
    step = max(1, _CHUNK // max(1, components * len(rows.inside.row_point)))
    return [slice(start, start + step) for start in range(0, points, step)]


def _differences(where: Position, points: Array) -> Array:
    """The differences of (R, t) and (R_a, 0), (r+1) x m x n."""
    shape = (points.shape[1] + 1, len(where.inside), len(points))
    delta = np.empty(shape)
    np.subtract(where.inside.T[:, :, None], points.T[:, None, :], out=delta[:-1])
    delta[-1] = where.distance[:, None]
    return delta


def _cross(rows: SplitRows, where: Position, *, slopes: bool) -> _Cross:
    """Of f, and if `slopes` of its derivatives along [Q, e], with the rows."""
    term = unit_term(rows.hyper.terms[0], rows.span.rank + 1)
    blocks = covariance_blocks((term,), _differences(where, rows.inside.x), left=slopes, right=True)
    flat = blocks[:, :-1].transpose(2, 0, 1, 3).reshape(len(where.inside), len(blocks), -1)
    outside = blocks[:, -1, :, : rows.data.gradients].transpose(1, 0, 2) * rows.slope_scale
    return _Cross(flat[:, :, rows.columns] * rows.inside.row_scales, np.ascontiguousarray(outside))


def _pull_back(rows: SplitRows, where: Position, by_inside: Array, by_outside: Array) -> Array:
    """Derivatives by the covariances of f with the rows, to those by (R, t): `m x N, m x (gradients) -> m x (r+1)`."""
    points, n, r = len(where.inside), len(rows.inside.x), rows.span.rank
    cotangent = np.zeros((points, (r + 2) * n))
    cotangent[:, rows.columns] = by_inside * rows.inside.row_scales
    last = cotangent[:, (r + 1) * n :]
    last[:, : rows.data.gradients] = by_outside * rows.slope_scale
    blocks = cotangent.reshape(points, 1, r + 2, n).transpose(1, 2, 0, 3)
    term = unit_term(rows.hyper.terms[0], r + 1)
    return np.asarray(covariance_blocks_vjp((term,), _differences(where, rows.inside.x), blocks).sum(-1).T)


def _slopes(rows: SplitRows, where: Position) -> Array:
    """-phi' between m points and those with a gradient."""
    term = rows.hyper.terms[0]
    delta = _differences(where, rows.inside.x[: rows.data.gradients])
    r2 = np.einsum("kab,kab->ab", delta, delta)
    return -term.outputscale * profile_derivatives(term.profile, r2, order=1)[1]


def _profile(r2: Tensor, profile: Profile, order: int) -> Tensor:
    result: Tensor = _Profile.apply(r2, profile, order)  # type: ignore[no-untyped-call]
    return result


class _Profile(torch.autograd.Function):
    """The derivative of phi of an order by s = r^2 / 2, of r^2: autograd through the root would give NaN at r = 0."""

    @staticmethod
    def forward(ctx: Any, r2: Tensor, profile: Profile, order: int) -> Tensor:
        """Element by element."""
        value, slope = profile_derivatives(profile, r2.detach().numpy(), order=order + 1)[order : order + 2]
        ctx.save_for_backward(torch.from_numpy(np.asarray(slope)))
        return torch.from_numpy(np.asarray(value))

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None]:
        """Half of the next derivative."""
        (slope,) = ctx.saved_tensors
        return 0.5 * cotangent * slope, None, None


class _Whiten(torch.autograd.Function):
    """L^{-1} applied to vectors `... x N`, for a fixed L."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, lower: Array) -> Tensor:
        """Vectors v with L v = the given ones."""
        ctx.lower = lower
        flat = np.array(vectors.detach().numpy().reshape(math.prod(vectors.shape[:-1]), -1 if vectors.numel() else 0))
        return torch.from_numpy(whiten(lower, flat)).reshape(vectors.shape)

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        """L^{-T} applied to the cotangent."""
        flat = np.array(cotangent.numpy().reshape(math.prod(cotangent.shape[:-1]), -1 if cotangent.numel() else 0))
        return torch.from_numpy(unwhiten(ctx.lower, flat)).reshape(cotangent.shape), None
