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
from scipy import sparse

from eign.arrays import Array
from eign.models.derivative_kernels import Term, profile_derivatives, slope_at_zero

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
        r"""K v, n x (d+1).

        With v's values c and slopes V, :math:`s_{ab} = (u_a - u_b) \cdot V_b` and C = phi'' s by elements:

        .. math:: (\phi c - (\phi' \circ s) 1)_a, \qquad
            u_a (\phi' c - C 1)_a - (\phi' (V + c u) - C u)_a
        """
        values, slopes = rows[:, 0], rows[:, 1:] * self.slope**-0.5
        phi, phi1, phi2 = self.profiles
        lifted = np.column_stack([self.u, np.ones(len(rows))])
        along = lifted @ np.column_stack([slopes, -np.einsum("bk,bk->b", self.u, slopes)]).T  # s
        result = np.empty(rows.shape)
        result[:, 0] = phi @ values - np.einsum("ab,ab->a", phi1, along)
        along *= phi2
        pull = phi1 @ np.column_stack([slopes + values[:, None] * self.u, values]) - along @ lifted
        result[:, 1:] = self.slope**-0.5 * (pull[:, -1:] * self.u - pull[:, :-1])
        result[:, 0] += self.noise[:, 0] * values
        result[:, 1:] += self.noise[:, 1:] * rows[:, 1:]
        return result


@dataclass(frozen=True)
class Preconditioner:
    """The preconditioner of this module's docstring.

    Attributes:
        parents: A one in row a at the parent of a, n x n; none in the row of the first point.
        half: -(u_a - u_r) / 2 in the units of the rows, n x d.
        values: cov(e)^{-1}, n x n.
        gradients: (S_1^2 K-perp)^{-1}, n x n.
    """

    parents: sparse.csr_array[np.float64]
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
            parents=_chosen(parent),
            half=-0.5 * products.slope**0.5 * (products.u - products.u[parent]),
            values=_inverse(_remainder_covariance(products, parent)),
            gradients=_inverse(kernel),
        )

    def __call__(self, rows: Array) -> Array:
        """The product with the inverse, n x (d+1)."""
        values, slopes = rows[:, 0], rows[:, 1:]
        left = values - self.parents @ values + np.einsum("ak,ak->a", self.half, slopes + self.parents @ slopes)
        solved = self.values @ left
        change = solved[:, None] * self.half
        result = np.empty(rows.shape)
        result[:, 0] = solved - self.parents.T @ solved
        result[:, 1:] = self.gradients @ slopes + change + self.parents.T @ change
        return result


def _chosen(parent: NDArray[np.intp]) -> sparse.csr_array[np.float64]:
    children = np.flatnonzero(parent != np.arange(len(parent)))
    ones = np.ones(len(children))
    return sparse.csr_array((ones, (children, parent[children])), shape=(len(parent), len(parent)))


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
