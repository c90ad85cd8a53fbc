r"""Posterior moments of (f, grad f) with what carries derivatives by them back to the point, without a graph.

With k the covariances of the components at x with the rows, V = k L^{-T}, a the weights of the rows, and c, E the
derivatives of some function by mean and covariance (notation of `eign.models.joint.moments`), the derivative of that
function by k is :math:`c a^\top - 2 E V L^{-1}`, and the closed-form derivative of the kernel takes it to x.

A search asks for thousands of moments of one model, so that here, other than in `joint_moments`, L is inverted: a
product with a triangular matrix takes half the time of a solution. The scales of the rows are in L^{-1} and a, and
never multiply k.

At the raw candidates of a search these products are nearly all of the work, and single precision halves it. With a unit
diagonal of C it leaves an error of about :math:`2^{-24} \|L^{-1}\|_F` of the prior variance. So it is used if this is
small, and for points whose variances are much larger: the others, near the data, are evaluated in double precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.models.derivative_kernels import covariance_blocks_vjp, prior_variances
from eign.models.joint.moments import SMALLEST_VARIANCE, ConditionedRows, unscaled_cross_covariance
from eign.numerics.lapack import rows_times
from eign.numerics.large_cholesky import invert_triangle
from eign.numerics.threads import map_threads

Floats = NDArray[np.floating[Any]]
JointPullback = Callable[[Array, Array], Array]
"""Derivatives by mean, `m x (d+1)`, and symmetric ones by covariance, `m x (d+1) x (d+1)`, to those by x, `m x d`."""

# Single precision is used up to this error, in prior variances, for points whose variances are so many times larger.
_LARGEST_ERROR: Final = 1e-5
_TRUSTED: Final = 3000.0
# Elements of the covariances of a block of points with the rows, which stay in the cache.
_BLOCK: Final = 1 << 17


class JointNormals(NamedTuple):
    """Mean `m x (d+1)` and covariance `m x (d+1) x (d+1)` of (f, grad f) at m points, in standardised units."""

    mean: Array
    covariance: Array


@dataclass(frozen=True, slots=True, eq=False)
class JointEvaluator:
    """Conditioned rows, ready for many evaluations.

    Attributes:
        rows: The rows.
        whitener: L^{-1} S with the scales of the rows S, `N x N` and lower triangular.
        weights: S a, `N`.
        prior: The prior variances, `d+1`.
        single_error: Of a variance in single precision, in prior variances.
    """

    rows: ConditionedRows
    whitener: Array
    weights: Array
    prior: Array
    single_error: float

    @classmethod
    def of(cls, rows: ConditionedRows) -> "JointEvaluator":
        """Invert the factor."""
        # What is above the diagonal is undefined, and might not even fit into single precision.
        whitener = np.tril(invert_triangle(rows.factored.lower))
        error = 2.0**-24 * float(np.linalg.norm(whitener))
        whitener *= rows.row_scales
        weights = rows.factored.weights * rows.row_scales
        return cls(rows, whitener, weights, prior_variances(rows.hyper.terms), error)

    def moments(self, x: Array) -> JointNormals:
        """At m points, `m x d`."""
        return self._by_blocks(lambda block: self._evaluate(block, self.whitener)[0], x)

    def pool_moments(self, x: Array) -> JointNormals:
        """The same to three digits of each variance or more, in half the time."""
        if self.single_error > _LARGEST_ERROR:
            return self.moments(x)
        single = self.whitener.astype(np.float32)
        mean, covariance = self._by_blocks(lambda block: self._evaluate(block, single)[0], x)
        relative = np.einsum("mii->mi", covariance) / self.prior
        known = np.flatnonzero(relative.min(axis=-1) < _TRUSTED * self.single_error)
        if known.size:
            mean[known], covariance[known] = self.moments(x[known])
        return JointNormals(mean, covariance)

    def moments_and_pullback(self, x: Array) -> tuple[JointNormals, JointPullback]:
        """The same and the pullback."""
        rows = self.rows
        normals, whitened = self._evaluate(x, self.whitener)
        shape = whitened.shape

        def pullback(by_mean: Array, by_covariance: Array) -> Array:
            by_cross = _product(-2.0 * (by_covariance @ whitened), self.whitener, transposed=False)
            by_cross += by_mean[..., None] * self.weights
            cotangent = by_cross
            if not isinstance(rows.columns, slice):
                cotangent = np.zeros((*shape[:2], rows.column_count))
                cotangent[:, :, rows.columns] = by_cross
            blocks = cotangent.reshape(*shape[:2], -1, len(rows.x)).transpose(1, 2, 0, 3)
            differences = x.T[:, :, None] - rows.x.T[:, None, :]
            return np.asarray(covariance_blocks_vjp(rows.hyper.terms, differences, blocks).sum(-1).T)

        return normals, pullback

    def _by_blocks(self, evaluate: Callable[[Array], JointNormals], x: Array) -> JointNormals:
        step = max(1, _BLOCK // max(1, len(self.prior) * len(self.whitener)))
        blocks = [x[first : first + step] for first in range(0, len(x), step)]
        parts = map_threads(evaluate, blocks, size=len(self.whitener))
        return JointNormals(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _evaluate(self, x: Array, whitener: Floats) -> tuple[JointNormals, Array]:
        """Moments, and V, `m x (d+1) x N`, in the precision of the whitener."""
        cross = unscaled_cross_covariance(self.rows, x, slopes=True)
        mean = cross @ self.weights
        mean[:, 0] += self.rows.factored.mean
        whitened = _product(cross.astype(whitener.dtype, copy=False), whitener, transposed=True)
        covariance = -(whitened @ whitened.swapaxes(-1, -2)).astype(np.float64, copy=False)
        diagonal = np.einsum("mii->mi", covariance)
        diagonal += self.prior
        diagonal += SMALLEST_VARIANCE * self.prior + np.maximum(-diagonal, 0.0)
        return JointNormals(mean, covariance), whitened


def _product(vectors: Floats, whitener: Floats, *, transposed: bool) -> Any:
    """Rows times A', or A, `m x (d+1) x N`, in their precision; may take the memory of the rows."""
    product = np.ascontiguousarray(vectors)
    if product.size:
        rows_times(product.reshape(-1, product.shape[-1]), whitener, transposed=transposed)
    return product
