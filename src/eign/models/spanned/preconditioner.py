r"""Products with the covariance of values and gradients, and a preconditioner for conjugate gradients.

The covariance of n values and gradients in scaled coordinates u (notation of `split`; correlation form, outputscale 1)
is never formed: a product with it is three products of n x n with n x d matrices. What decides is the preconditioner,
for points of a run are clustered at many scales and plain conjugate gradients do not converge.

**Gradients.** The kernel of gradients is :math:`-\phi' I - \phi''\delta\delta^\top`. The preconditioner takes the first
part alone, K-perp for each coordinate: one n x n matrix, which gets every scale right. It takes each partial derivative
for a function of its own and does not know that a Hessian is symmetric. To add that, to first order around a centre,
saved none to half of the iterations, an eighth in the median of six cases, and took as many lines again.

**Values.** Given gradients nearby a value is known but for a constant, so that values and gradients must not be treated
apart. Each point but the first has a parent r, the nearest of those closer to the centre if it is near and the first
otherwise, and its value is replaced by what the trapezoidal rule leaves of it,

.. math:: e_a = f_a - f_r - \tfrac12 (\gamma_a + \gamma_r) \cdot (u_a - u_r) ,

a linear map T of the rows. The preconditioner is

.. math:: T^{-1} \operatorname{diag}(\operatorname{cov}(e),\, K^\perp \otimes I)\, T^{-\top} .
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.models.derivative_kernels import Term, profile_derivatives, slope_at_zero

# Points that are worked on at once.
_BLOCK: Final = 128
# A point nearer than this share of the distance from the centre takes its place as the parent.
_NEARER: Final = 0.5


@dataclass(frozen=True)
class CovarianceProducts:
    """Products with the covariance of n values and gradients in correlation form, rows n x (d+1).

    Attributes:
        u: Scaled points relative to the centre, n x d.
        profiles: phi, phi', phi'' of all pairs, n x n.
        slope: -phi'(0).
        noise: Nugget and noise of values and of derivatives, n x 2, in prior variances.
    """

    u: Array
    profiles: tuple[Array, Array, Array]
    slope: float
    noise: Array

    @classmethod
    def of(cls, u: Array, term: Term, noise: Array) -> CovarianceProducts:
        """At scaled points; noise in prior variances."""
        squares = np.einsum("ak,ak->a", u, u)
        r2 = np.maximum(squares[:, None] + squares - 2.0 * (u @ u.T), 0.0)
        np.fill_diagonal(r2, 0.0)
        phi, phi1, phi2 = profile_derivatives(term.profile, r2, order=2)
        return cls(u, (phi, phi1, phi2), slope_at_zero(term.profile), noise)

    def __call__(self, rows: Array) -> Array:
        """K v, n x (d+1), by blocks of points that stay in the cache."""
        slopes = rows[:, 1:] * self.slope**-0.5
        own = np.einsum("bk,bk->b", self.u, slopes)
        turned = np.ascontiguousarray(slopes.T)
        result = np.empty(rows.shape)
        for first in range(0, len(rows), _BLOCK):
            block = slice(first, first + _BLOCK)
            phi, phi1, phi2 = (profile[block] for profile in self.profiles)
            along = self.u[block] @ turned
            along -= own  # (u_a - u_b) . v_b
            result[block, 0] = phi @ rows[:, 0] - np.einsum("ab,ab->a", phi1, along)
            along *= phi2
            pull = phi1 * rows[:, 0]
            pull -= along
            result[block, 1:] = pull.sum(axis=1)[:, None] * self.u[block] - pull @ self.u - phi1 @ slopes
        result[:, 1:] *= self.slope**-0.5
        result[:, 0] += self.noise[:, 0] * rows[:, 0]
        result[:, 1:] += self.noise[:, 1:] * rows[:, 1:]
        return result


@dataclass(frozen=True)
class Preconditioner:
    """The preconditioner of this module's docstring.

    Attributes:
        parent: r of each point; the first is its own.
        half: -(u_a - u_r) / 2 in the units of the rows, n x d.
        values: cov(e)^{-1}, n x n.
        gradients: (S_1^2 K-perp)^{-1}, n x n.
    """

    parent: NDArray[np.intp]
    half: Array
    values: Array
    gradients: Array

    @classmethod
    def of(cls, products: CovarianceProducts) -> Preconditioner:
        """For points whose centre is the origin."""
        kernel = products.profiles[1] / -products.slope
        kernel.flat[:: len(kernel) + 1] += products.noise[:, 1]
        parent = _parents(products.u)
        return cls(
            parent=parent,
            half=-0.5 * products.slope**0.5 * (products.u - products.u[parent]),
            values=_inverse(_remainder_covariance(products, parent)),
            gradients=_inverse(kernel),
        )

    def __call__(self, rows: Array) -> Array:
        """The product with the inverse, n x (d+1)."""
        root = self.parent == np.arange(len(rows))
        above = np.where(root[:, None], 0.0, rows[self.parent])
        left = rows[:, 0] - above[:, 0] + np.einsum("ak,ak->a", self.half, rows[:, 1:] + above[:, 1:])
        result = np.empty(rows.shape)
        result[:, 0] = self.values @ left
        change = result[:, :1] * self.half
        result[:, 1:] = self.gradients @ rows[:, 1:] + change
        children = np.flatnonzero(~root)
        down = np.concatenate([-result[children, :1], change[children]], axis=1)
        np.add.at(result, self.parent[children], down)
        return result


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def densest_point(u: Array, term: Term) -> int:
    """The point that is most correlated with all."""
    squares = np.einsum("ak,ak->a", u, u)
    r2 = np.maximum(squares[:, None] + squares - 2.0 * (u @ u.T), 0.0)
    return int(np.argmax(profile_derivatives(term.profile, r2, order=0)[0].sum(axis=1)))


def _parents(u: Array) -> NDArray[np.intp]:
    """Of each point the nearest of those closer to the origin if that is near, else the first; of the first itself."""
    squares = np.einsum("ak,ak->a", u, u)
    order = np.argsort(squares, kind="stable")
    distances = squares[:, None] + squares - 2.0 * (u @ u.T)
    parent = np.full(len(u), order[0])
    for count in range(1, len(order)):
        point, earlier = order[count], order[:count]
        nearest = earlier[np.argmin(distances[point, earlier])]
        if distances[point, nearest] < _NEARER**2 * squares[point]:
            parent[point] = nearest
    return parent


def _remainder_covariance(products: CovarianceProducts, parent: NDArray[np.intp]) -> Array:
    """cov(e), n x n, with noise: the four pairs of a point or its parent with another or its parent."""
    own = np.arange(len(parent))
    is_child = (parent != own).astype(np.float64)
    half = -0.5 * (products.u - products.u[parent])
    ends = [(own, np.ones(len(own))), (parent, -is_child)]
    total = np.zeros((len(own), len(own)))
    for left, left_value in ends:
        for right, right_value in ends:
            total += _end_covariance(products, half, (left, left_value), (right, right_value))
    # Noise comes in where two remainders share a point.
    shares, slope_shares = np.eye(len(own)), np.eye(len(own))
    np.add.at(shares, (own, parent), -is_child)
    np.add.at(slope_shares, (own, parent), is_child)
    noise, slope_noise = products.noise.T
    total += (shares * noise) @ shares.T
    total += products.slope * ((slope_shares * slope_noise) @ slope_shares.T) * (half @ half.T)
    return total


def _end_covariance(
    products: CovarianceProducts,
    half: Array,
    left: tuple[NDArray[np.intp], Array],
    right: tuple[NDArray[np.intp], Array],
) -> Array:
    r"""Covariance of c f + h . gamma at the left points with the same at the right ones, n x n.

    .. math:: c c' \phi + c'\phi'\, h\cdot\delta - c\,\phi'\, h'\cdot\delta
        - \phi''\,(h\cdot\delta)(h'\cdot\delta) - \phi'\, h\cdot h'
    """
    (first, c), (second, c2) = left, right
    pairs = np.ix_(first, second)
    phi, phi1, phi2 = (profile[pairs] for profile in products.profiles)
    u, v = products.u[first], products.u[second]
    along = np.einsum("ak,ak->a", half, u)[:, None] - half @ v.T
    across = u @ half.T - np.einsum("ak,ak->a", half, v)
    result = c[:, None] * c2 * phi + phi1 * (c2 * along - c[:, None] * across)
    return np.asarray(result - phi2 * along * across - phi1 * (half @ half.T))
