r"""One term of the kernel at the training pairs: its part of the covariance matrix and of the derivatives.

| symbol | meaning |
|---|---|
| n, m | points; those among them with a gradient component, which come first |
| J | the partial derivatives observed anywhere |
| S_c | scale of component c: 1 / sqrt(prior variance), so that C has a unit diagonal (the correlation form) |
| E_i | S_i D_i, m x n |
| c_i | S_i^2 / l_i^2 |
| G, M | the rows of W that pair derivatives with values, and derivatives with derivatives |
| a_0, a_i | the entries of a vector a that belong to values and to derivatives |

Sums without an index run over pairs of points, sums over b over the second of a pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import Term, profile_derivatives
from eign.models.joint.rows import Blocks, FoldedWeights, TrainingPairs

# Numbers that stay in the second-level cache while they are worked on.
_CACHED = 1 << 15
# Derivatives of the profiles that the covariance matrix itself needs.
_MATRIX_ORDER = 2


class TermPairs(ABC):
    """One term of the kernel evaluated at the training pairs: its profiles, already times the term's weight."""

    def __init__(self, term: Term, pairs: TrainingPairs, scales: Array, *, order: int) -> None:
        self.pairs, self.precision, self.value_scale = pairs, term.precision, float(scales[0])
        slope_scales, precision = scales[1:][pairs.components], term.precision[pairs.components]
        self.scaled = (slope_scales * precision)[:, None, None] * pairs.delta  # E
        self.corner = (slope_scales**2 * precision)[:, None, None]  # c
        # The same at all points and those with a gradient, n x m: E is antisymmetric in the points.
        self.across = self.scaled if pairs.delta.shape[1] == pairs.delta.shape[2] else -self.scaled.transpose(0, 2, 1)
        self._evaluate(term, order)

    @abstractmethod
    def _evaluate(self, term: Term, order: int) -> None:
        """Keep the profiles."""

    @abstractmethod
    def add_covariance(self, blocks: Blocks, *, first: bool) -> None:
        """Add this term to the lower blocks of C, or set them if it is the first."""

    @abstractmethod
    def traces(self, weights: FoldedWeights) -> Array:
        """The traces tr(W dC) for the d log lengthscales and the log outputscale."""

    @abstractmethod
    def products(self, values: Array, slopes: Array) -> Array:
        """The products dC a by the d log lengthscales and the log outputscale, a as n and |J| x m: rows x (d+1)."""


class FullTermPairs(TermPairs):
    """A term in all coordinates: phi is n x n."""

    def _evaluate(self, term: Term, order: int) -> None:
        squared = self.pairs.squared
        r2 = (self.precision @ squared.reshape(len(squared), squared[0].size)).reshape(squared.shape[1:])
        self.phi = tuple(term.weight * profile for profile in profile_derivatives(term.profile, r2, order=order))

    def add_covariance(self, blocks: Blocks, *, first: bool) -> None:
        """In one pass over the lower blocks, with no temporary if it is the first."""
        count, m, _ = self.pairs.shape
        phi0, phi1, phi2 = self.phi[:3]
        values = self.value_scale**2 * phi0
        mixed = (self.value_scale * phi1[:m]) * self.scaled
        if first:
            blocks.values[...], blocks.mixed[...] = values, mixed
        else:
            blocks.values[...] += values
            blocks.mixed[...] += mixed
        among = self.scaled[:, :, :m]
        bend, corner = -phi2[:m, :m], self.corner * phi1[:m, :m]
        for j in range(count):
            column, target = bend * among[j], blocks.slopes[j:, :, j, :]
            if first:
                np.multiply(among[j:], column, out=target)
            else:
                target += among[j:] * column
            target[0] -= corner[j]

    def traces(self, weights: FoldedWeights) -> Array:
        r"""One pass over the blocks of W. With P_kj = sum phi'' E_k E_j M_kj and, for each pair, Z = E'ME.

        .. math::
            \frac{\partial}{\partial \log l_k} &= -l_k^{-2} \sum Q\,\delta_k^2 - 4 S_0 \sum \phi' G_k E_k
                + 4 \sum_j P_{kj} + 2 c_k \sum \phi' M_{kk} \\
            Q &= S_0^2 \phi' W_{00} + 2 S_0 \phi'' \, G \cdot E - \phi''' Z - \phi'' \sum_i c_i M_{ii}
        """
        count, m, n = self.pairs.shape
        phi0, phi1, phi2, phi3 = self.phi
        scale, among, inner = self.value_scale, self.scaled[:, :, :m], (slice(m), slice(m))
        along = weights.mixed * self.scaled
        corner = np.tensordot(self.corner[:, 0, 0], weights.diagonal, 1)
        pairwise, quadratic = np.zeros((count, count)), np.zeros((m, m))
        bent = phi2[inner] * among
        for k in range(count):
            row = weights.slopes[k].transpose(1, 0, 2)[:k] * among[:k]
            pairwise[k, :k] = row.reshape(k, m * m) @ bent[k].ravel()
            own = weights.diagonal[k] * among[k]
            pairwise[k, k] = np.vdot(own, bent[k])
            quadratic += among[k] * (2.0 * row.sum(0) + own)
        bending = pairwise.sum(1) + np.tril(pairwise, -1).sum(0)
        change = (scale**2 * phi1) * weights.values
        total_along = along.sum(0)
        change[:m] += (2.0 * scale * phi2[:m]) * total_along
        change[inner] -= phi3[inner] * quadratic + phi2[inner] * corner
        result = np.empty(len(self.precision) + 1)
        result[:-1] = -self.precision * (self.pairs.squared.reshape(len(self.precision), n * n) @ change.ravel())
        result[:-1][self.pairs.components] += (
            -4.0 * scale * (along.reshape(count, m * n) @ phi1[:m].ravel())
            + 4.0 * bending
            + 2.0 * self.corner[:, 0, 0] * (weights.diagonal.reshape(count, m * m) @ phi1[inner].ravel())
        )
        result[-1] = (
            scale**2 * np.vdot(weights.values, phi0)
            + 2.0 * scale * np.vdot(phi1[:m], total_along)
            - pairwise.sum()
            - np.tril(pairwise, -1).sum()
            - np.vdot(phi1[inner], corner)
        )
        return result

    def products(self, values: Array, slopes: Array) -> Array:
        r"""Rows of values and of derivatives i, with q = E . a for each pair.

        .. math::
            (C a)_0 &= \sum_b S_0^2 \phi a_0 - S_0 \phi' q, \qquad
            (C a)_i = \sum_b S_0 \phi' E_i a_0 - \phi'' E_i q - c_i \phi' a_i \\
            (\partial_k C a)_0 &= \sum_b -l_k^{-2} \delta_k^2 (S_0^2 \phi' a_0 - S_0 \phi'' q) + 2 S_0 \phi' E_k a_k \\
            (\partial_k C a)_i &= \sum_b -l_k^{-2} \delta_k^2 \bigl( E_i (S_0 \phi'' a_0 - \phi''' q)
                - c_i \phi'' a_i \bigr) + 2 \phi'' E_i E_k a_k - 2 \delta_{ik} (C a)_i
        """
        count, m, n = self.pairs.shape
        phi0, phi1, phi2, phi3 = self.phi
        scale, dimension, inner = self.value_scale, len(self.precision), (slice(m), slice(m))
        squared, among = self.pairs.squared, self.scaled[:, :, :m]
        weighted = self.across * slopes[:, None, :]
        q = weighted.sum(0)
        result = np.empty((n + count * m, dimension + 1))
        result[:n, -1] = scale**2 * (phi0 @ values) - scale * (phi1[:, :m] * q).sum(1)
        stretch = scale**2 * phi1 * values
        stretch[:, :m] -= scale * phi2[:, :m] * q
        result[:n, :-1] = -self.precision * np.einsum("kab,ab->ak", squared, stretch)
        result[:n, :-1][:, self.pairs.components] += 2.0 * scale * np.einsum("kab,ab->ak", weighted, phi1[:, :m])
        own = scale * np.einsum("iab,ab->ia", self.scaled, phi1[:m] * values)
        own -= np.einsum("iab,ab->ia", among, phi2[inner] * q[:m])
        own -= self.corner[:, 0] * (slopes @ phi1[inner])
        twist = scale * phi2[:m] * values
        twist[:, :m] -= phi3[inner] * q[:m]
        # The remaining sums over b are, for each a, products of |J| x n with n x d matrices.
        by_coordinate = squared[:, :m].transpose(1, 2, 0)
        moved = np.matmul((self.scaled * twist).transpose(1, 0, 2), by_coordinate)
        moved -= np.matmul((self.corner * slopes[:, None, :] * phi2[inner]).transpose(1, 0, 2), by_coordinate[:, :m])
        moved *= -self.precision
        bent = 2.0 * np.matmul((among * phi2[inner]).transpose(1, 0, 2), weighted[:, :m].transpose(1, 2, 0))
        moved[:, :, self.pairs.components] += bent
        moved[:, np.arange(count), np.arange(dimension)[self.pairs.components]] -= 2.0 * own.T
        result[n:, :-1] = moved.transpose(1, 0, 2).reshape(count * m, dimension)
        result[n:, -1] = own.ravel()
        return result


class AdditiveTermPairs(TermPairs):
    """A mean of terms in one coordinate each, where derivatives in two coordinates are independent.

    Of the d x n x n profiles only two contractions are kept: most points may have no gradient, and passes over that
    many numbers are what an evaluation costs. What pairs derivatives is |J| x m x n.

    Attributes:
        values: The sum of phi over the coordinates, n x n.
        stretch: r^2 times the first derivative of phi in each coordinate, d x n x n; only for derivatives of C.
        phi: The derivatives of phi in the observed coordinates, |J| x m x n; the third only for derivatives of C.
        squared: r^2 in the observed coordinates, |J| x m x n.
    """

    def _evaluate(self, term: Term, order: int) -> None:
        _, m, n = self.pairs.shape
        dimension, observed = len(self.precision), self.pairs.components
        few = 2 * m < n
        self.values = np.zeros((n, n))
        self.stretch = np.empty((dimension, n, n) if order > _MATRIX_ORDER else (0, n, n))
        inner = [np.empty((dimension, m, n)) for _ in range(order)]
        step = max(1, _CACHED // max(n * n, 1))
        for first in range(0, dimension, step):
            block = slice(first, first + step)
            r2 = self.precision[block, None, None] * self.pairs.squared[block]
            phi = profile_derivatives(term.profile, r2, order=1 if few else order)
            self.values += phi[0].sum(0)
            if order > _MATRIX_ORDER:
                np.multiply(r2, phi[1], out=self.stretch[block])
            if few:
                phi = profile_derivatives(term.profile, r2[:, :m], order=order)
            for target, profile in zip(inner, phi[1:], strict=True):
                np.multiply(profile[:, :m], term.weight, out=target[block])
        self.values *= term.weight
        self.stretch *= term.weight
        self.phi = tuple(profile[observed] for profile in inner)
        self.squared = self.precision[observed][:, None, None] * self.pairs.squared[observed, :m]

    def add_covariance(self, blocks: Blocks, *, first: bool) -> None:
        """Among derivatives only the diagonal blocks."""
        _, m, _ = self.pairs.shape
        phi1, phi2 = self.phi[:2]
        if first:
            blocks.values[...], blocks.mixed[...], blocks.slopes[...] = 0.0, 0.0, 0.0
        blocks.values[...] += self.value_scale**2 * self.values
        blocks.mixed[...] += (self.value_scale * phi1) * self.scaled
        diagonal = np.einsum("iaib->iab", blocks.slopes)
        diagonal -= phi2[:, :, :m] * self.scaled[:, :, :m] ** 2 + self.corner * phi1[:, :, :m]

    def traces(self, weights: FoldedWeights) -> Array:
        """The formula of a full term for each coordinate on its own, with W_00 shared."""
        _, m, n = self.pairs.shape
        scale, dimension = self.value_scale, len(self.precision)
        phi1, phi2, _ = self.phi
        inner = tuple(profile[:, :, :m] for profile in self.phi)
        along = weights.mixed * self.scaled
        bent = weights.diagonal * self.scaled[:, :, :m] ** 2
        mixed = 2.0 * scale * np.einsum("iab,iab->i", along, phi1)
        curved = np.einsum("iab,iab->i", bent, inner[1])
        corner = self.corner[:, 0, 0] * np.einsum("iab,iab->i", weights.diagonal, inner[0])
        change = (2.0 * scale * phi2) * along
        change[:, :, :m] -= inner[2] * bent + self.corner * inner[1] * weights.diagonal
        result = np.empty(dimension + 1)
        result[:-1] = -(scale**2) * (self.stretch.reshape(dimension, n * n) @ weights.values.ravel())
        result[:-1][self.pairs.components] += (
            4.0 * curved + 2.0 * corner - 2.0 * mixed - np.einsum("kab,kab->k", self.squared, change)
        )
        result[-1] = scale**2 * np.vdot(weights.values, self.values) + (mixed - curved - corner).sum()
        return result

    def products(self, values: Array, slopes: Array) -> Array:
        """The formula of a full term for each coordinate on its own; a_0 acts on all, a_k on coordinate k."""
        count, m, n = self.pairs.shape
        observed, scale = self.pairs.components, self.value_scale
        phi1, phi2, phi3 = self.phi
        q = self.across * slopes[:, None, :]
        # All points by those with a gradient: symmetric if these are the same, and in order in memory as they are.
        squared, bend, slope = (a if m == n else a.transpose(0, 2, 1) for a in (self.squared, phi2, phi1))
        bent = bend * q
        result = np.zeros((n + count * m, len(self.precision) + 1))
        mixed = scale * np.einsum("iab,iab->ai", slope, q)
        result[:n, -1] = scale**2 * (self.values @ values) - mixed.sum(1)
        result[:n, :-1] = -(scale**2) * (self.stretch @ values).T
        result[:n, :-1][:, observed] += scale * np.einsum("iab,iab->ai", squared, bent) + 2.0 * mixed
        curved = np.einsum("iab,iab->ia", self.scaled[:, :, :m], bent[:, :m])
        pushed = scale * self.scaled * values
        own = np.einsum("iab,iab->ia", phi1, pushed) - curved
        own -= self.corner[:, 0] * np.matmul(phi1[:, :, :m], slopes[:, :, None])[:, :, 0]
        twist = phi2 * pushed
        twist[:, :, :m] -= phi3[:, :, :m] * self.scaled[:, :, :m] * q[:, :m]
        twist[:, :, :m] -= self.corner * phi2[:, :, :m] * slopes[:, None, :]
        moved = 2.0 * (curved - own) - np.einsum("iab,iab->ia", self.squared, twist)
        for k, component in enumerate(np.arange(len(self.precision))[observed]):
            result[n + k * m : n + (k + 1) * m, component] = moved[k]
        result[n:, -1] = own.ravel()
        return result


def term_pairs(terms: Sequence[Term], pairs: TrainingPairs, scales: Array, *, order: int) -> list[TermPairs]:
    """Every term at the training pairs; derivatives of the matrix need order 3, the matrix alone order 2."""
    kinds: dict[str, type[TermPairs]] = {"full": FullTermPairs, "additive": AdditiveTermPairs}
    return [kinds[term.structure](term, pairs, scales, order=order) for term in terms]
