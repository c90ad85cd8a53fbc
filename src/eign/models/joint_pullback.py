r"""Posterior moments of (f, grad f) with what carries derivatives by them back to the point, without a graph.

With k the covariances of the components at x with the rows, V = k L^{-T}, a the weights of the rows, and c, E the
derivatives of some function by mean and covariance (notation of `eign.models.joint_moments`), the derivative of that
function by k is :math:`c a^\top - 2 E V L^{-1}`, and the closed-form derivative of the kernel takes it to x.

A search asks for thousands of moments of one model, so that here, other than in `joint_moments`, L is inverted: a
product with a triangular matrix takes half the time of a solution.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import blas

from eign.models.derivative_kernels import Array, covariance_blocks_vjp, prior_variances
from eign.models.joint_factor import invert_triangle
from eign.models.joint_moments import SMALLEST_VARIANCE, ConditionedRows, cross_covariance
from eign.models.threads import map_threads

JointPullback = Callable[[Array, Array], Array]
"""Derivatives by mean, `m x (d+1)`, and symmetric ones by covariance, `m x (d+1) x (d+1)`, to those by x, `m x d`."""

# Elements of the covariances of a block of points with the rows, which stay in the cache.
_BLOCK: Final = 1 << 17


class JointNormals(NamedTuple):
    """Mean `m x (d+1)` and covariance `m x (d+1) x (d+1)` of (f, grad f) at m points, in standardised units."""

    mean: Array
    covariance: Array


@dataclass(frozen=True, slots=True, eq=False)
class JointEvaluator:
    """Conditioned rows with L^{-1}, `N x N` and lower triangular, and the prior variances, `d+1`."""

    rows: ConditionedRows
    whitener: Array
    prior: Array

    @classmethod
    def of(cls, rows: ConditionedRows) -> "JointEvaluator":
        """Invert the factor."""
        return cls(rows, invert_triangle(rows.factored.lower), prior_variances(rows.hyper.terms))

    def moments(self, x: Array) -> JointNormals:
        """At m points, `m x d`."""
        step = max(1, _BLOCK // max(1, len(self.prior) * len(self.whitener)))
        blocks = [x[first : first + step] for first in range(0, len(x), step)]
        parts = map_threads(lambda block: self._evaluate(block)[0], blocks, size=len(self.whitener))
        return JointNormals(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def moments_and_pullback(self, x: Array) -> tuple[JointNormals, JointPullback]:
        """The same and the pullback."""
        rows = self.rows
        normals, whitened = self._evaluate(x)
        shape = whitened.shape

        def pullback(by_mean: Array, by_covariance: Array) -> Array:
            by_cross = self._product(-2.0 * (by_covariance @ whitened), transposed=False)
            by_cross += by_mean[..., None] * rows.factored.weights
            by_cross *= rows.row_scales
            cotangent = np.zeros((*shape[:2], rows.column_count))
            cotangent[:, :, rows.columns] = by_cross
            blocks = cotangent.reshape(*shape[:2], -1, len(rows.x)).transpose(1, 2, 0, 3)
            differences = x.T[:, :, None] - rows.x.T[:, None, :]
            return np.asarray(covariance_blocks_vjp(rows.hyper.terms, differences, blocks).sum(-1).T)

        return normals, pullback

    def _evaluate(self, x: Array) -> tuple[JointNormals, Array]:
        """Moments, and V, `m x (d+1) x N`."""
        cross = cross_covariance(self.rows, x, slopes=True)
        mean = cross @ self.rows.factored.weights
        mean[:, 0] += self.rows.factored.mean
        whitened = self._product(cross, transposed=True)
        covariance = -(whitened @ whitened.swapaxes(-1, -2))
        diagonal = np.einsum("mii->mi", covariance)
        diagonal += self.prior
        diagonal += SMALLEST_VARIANCE * self.prior + np.maximum(-diagonal, 0.0)
        return JointNormals(mean, covariance), whitened

    def _product(self, vectors: Array, *, transposed: bool) -> Array:
        """Rows times L^{-T}, or L^{-1}, `m x (d+1) x N`; may take the memory of the rows."""
        if not vectors.size:
            return vectors
        flat = vectors.reshape(-1, vectors.shape[-1])
        product = blas.dtrmm(1.0, self.whitener.T, flat.T, lower=0, trans_a=int(transposed), overwrite_b=1)
        return np.asarray(product.T).reshape(vectors.shape)
