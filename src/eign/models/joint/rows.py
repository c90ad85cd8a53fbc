"""The observed rows of (f, grad f) at training points, and how a matrix over them falls into blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array

Index = NDArray[np.intp]


@dataclass(frozen=True)
class TrainingPairs:
    """What does not depend on hyperparameters: differences of the points, and which rows are observed.

    The scheme of rows: n values, points with a gradient component first; then for each i in J, the partial derivatives
    observed anywhere, those at the m points that have one. Rows of the scheme may be missing.

    Attributes:
        delta: |J| x m x n differences in the observed coordinates.
        squared: d x n x n squared differences in all coordinates.
        components: J, counted from 0; a slice of everything if all are.
        observed: Observed rows of the scheme, increasing; None if all are.
        row_point: Index of the point of each observed row, in the caller's order.
        row_component: Component of each observed row, 0 for a value.
    """

    delta: Array
    squared: Array
    components: Index | slice
    observed: Index | None
    row_point: Index
    row_component: Index

    @property
    def rows(self) -> int:
        """Number of observed rows."""
        return len(self.row_point)

    @property
    def scheme_rows(self) -> int:
        """Number of rows of the scheme, observed or not."""
        count, m, n = self.shape
        return n + count * m

    @property
    def shape(self) -> tuple[int, int, int]:
        """|J|, m, n."""
        count, m, n = self.delta.shape
        return count, m, n


def training_pairs(x: Array, present: NDArray[np.bool_]) -> TrainingPairs:
    """Pairs of the points x (n x d), of which the components marked in `present` (n x (d+1)) are observed."""
    with_gradient = present[:, 1:].any(1)
    order = np.argsort(~with_gradient, kind="stable")
    components = np.flatnonzero(present[:, 1:].any(0))
    m = int(with_gradient.sum())
    delta = x[order].T[:, :, None] - x[order].T[:, None, :]
    scheme = np.concatenate([present[order, 0], present[order[:m]][:, 1 + components].T.ravel()])
    row_point = np.concatenate([order, np.tile(order[:m], len(components))])
    row_component = np.concatenate([np.zeros(len(x), np.intp), np.repeat(1 + components, m)])
    observed = np.flatnonzero(scheme)
    whole = len(components) == x.shape[1]
    return TrainingPairs(
        delta=delta if whole and m == len(x) else np.ascontiguousarray(delta[components, :m]),
        squared=delta**2,
        components=slice(None) if whole else components,
        observed=None if scheme.all() else observed,
        row_point=row_point[observed],
        row_component=row_component[observed],
    )


@dataclass(frozen=True)
class Blocks:
    """Views into a matrix over all rows of the scheme."""

    values: Array  # n x n
    mixed: Array  # |J| x m x n
    slopes: Array  # |J| x m x |J| x m

    @classmethod
    def of(cls, matrix: Array, pairs: TrainingPairs) -> Blocks:
        """Views into the matrix, over all rows of the scheme."""
        count, m, n = pairs.shape
        return cls(matrix[:n, :n], matrix[n:, :n].reshape(count, m, n), matrix[n:, n:].reshape(count, m, count, m))


@dataclass(frozen=True)
class FoldedWeights:
    """The blocks of a symmetric W whose lower triangle is known, ready for sums over pairs.

    Every pair of points is summed with a symmetric factor, so a diagonal block may stand in its folded form: twice the
    strictly lower triangle, plus the diagonal.
    """

    values: Array
    mixed: Array
    slopes: Array
    diagonal: Array  # |J| x m x m, folded

    @classmethod
    def of(cls, blocks: Blocks) -> FoldedWeights:
        """Fold the diagonal blocks; the others are views."""
        _, m, n = blocks.mixed.shape
        fold = np.tri(n, k=-1) * 2.0 + np.eye(n)
        diagonal = np.einsum("iaib->iab", blocks.slopes) * fold[:m, :m]
        return cls(blocks.values * fold, blocks.mixed, blocks.slopes, diagonal)
