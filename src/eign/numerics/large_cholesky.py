"""One large covariance matrix in correlation form: factored, extended and inverted in place.

At 14 dimensions and 500 points the matrix has 7,500 rows and takes 450 MB, so nothing here copies it. Arrays are
C-ordered with their lower triangle in use; LAPACK sees their transpose, an upper triangle in Fortran order, as it is.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from eign.arrays import Array
from eign.numerics.cholesky import UNIT_ROUNDOFF, FactorizationError, are_sound

_SMALLEST_NUGGET = 1e-8
_TRIANGLE_ROWS = 64
_RECURSIVE_ROWS = 2000
# With 22,000 rows and two threads OpenBLAS ended in a segmentation fault. Beyond this size the matrix is worked on in
# blocks of so many rows, nearly all of it by matrix products; a block at a time is copied.
_LAPACK_ROWS = 15000
_BLOCK_ROWS = 3000


def nugget(rows: int) -> float:
    r"""What is added to the unit diagonal of a correlation matrix so that its Cholesky factorisation cannot break down.

    With a unit diagonal it runs to completion if the smallest eigenvalue exceeds about N^2 u, u the unit roundoff
    (Demmel 1989; Higham, Accuracy and Stability, theorem 10.7). The covariance itself is positive semidefinite, so a
    nugget of twice that bound is enough whatever the points and lengthscales are. Up to 6,700 rows the bound is below
    1e-8, a noise of 1e-4 prior standard deviations, which then is the nugget. With 1e-10 and 1e-12 single runs
    ended with more digits on some functions and with fewer on others, see notes/surrogate.md.

    >>> nugget(1500), round(nugget(7500) * 1e8, 2)
    (1e-08, 1.25)
    """
    return max(_SMALLEST_NUGGET, 2.0 * rows**2 * UNIT_ROUNDOFF)


def factorize(matrix: Array) -> Array:
    """The lower Cholesky factor of a C-ordered matrix, which it replaces; what is above the diagonal is undefined.

    Raises:
        FactorizationError: If a pivot is not positive, or no more than rounding error.
    """
    if not len(matrix):
        return matrix
    if len(matrix) > _LAPACK_ROWS:
        return _factorize_by_blocks(matrix)
    diagonal = np.diagonal(matrix).copy()
    upper, info = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    if info != 0 or not are_sound(np.diagonal(upper), diagonal):
        raise FactorizationError(
            f"the covariance matrix of {len(matrix)} rows has no Cholesky factor: "
            f"{f'pivot {info} is not positive' if info else 'a pivot is rounding error'}; "
            "check points, values and variances for numbers that are not finite"
        )
    return np.asarray(upper.T)


def invert(lower: Array) -> Array:
    """(L L')^{-1} in the lower triangle of the array that held L."""
    if not len(lower):
        return lower
    if len(lower) > _LAPACK_ROWS:
        return _gram_by_blocks(_invert_by_blocks(lower))
    upper = lower.T
    if len(lower) > _RECURSIVE_ROWS:
        inverse, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)
    else:
        _invert_triangle(upper)
        inverse, _ = lapack.dlauum(upper, lower=0, overwrite_c=1)
    return np.asarray(inverse.T)


def invert_triangle(lower: Array) -> Array:
    """L^{-1} in the lower triangle of a new array; what is above the diagonal is undefined."""
    inverse = lower.copy()
    if len(lower):
        _invert_triangle(inverse.T)
    return inverse


def _invert_triangle(upper: Array) -> None:
    r"""U^{-1} in place of U, by halves; what is below the diagonal is left alone.

    .. math:: \begin{pmatrix} A & B \\ & D \end{pmatrix}^{-1}
        = \begin{pmatrix} A^{-1} & -A^{-1} B D^{-1} \\ & D^{-1} \end{pmatrix}

    Nearly all of the work is in products of large matrices, which takes half the time of OpenBLAS's own at 400 rows. It
    copies a quarter of the matrix, so that the largest are left to LAPACK.
    """
    half = len(upper) // 2
    if len(upper) <= _TRIANGLE_ROWS:
        upper[...] = lapack.dtrtri(upper, lower=0)[0]
        return
    first, last, corner = upper[:half, :half], upper[half:, half:], upper[:half, half:]
    _invert_triangle(first)
    _invert_triangle(last)
    product = blas.dtrmm(-1.0, first, corner, lower=0)
    corner[...] = blas.dtrmm(1.0, last, product, side=1, lower=0, overwrite_b=1)


def _factorize_by_blocks(matrix: Array) -> Array:
    r"""The factor in place of the lower triangle, block column by block column.

    .. math:: L_{jj} L_{jj}^\top = C_{jj} - \sum_{k<j} L_{jk} L_{jk}^\top, \qquad
        L_{ij} = \Bigl( C_{ij} - \sum_{k<j} L_{ik} L_{jk}^\top \Bigr) L_{jj}^{-\top}
    """
    for block, below in _blocks(len(matrix)):
        left = matrix[block, : block.start]
        diagonal = factorize(matrix[block, block] - left @ left.T)
        matrix[block, block] = diagonal
        for rows in below:
            rest = matrix[rows, block] - matrix[rows, : block.start] @ left.T
            matrix[rows, block] = whiten(diagonal, rest)
    return matrix


def _invert_by_blocks(lower: Array) -> Array:
    r"""L^{-1} in place of L, from the last block column to the first; diagonal blocks are zero above the diagonal.

    .. math:: (L^{-1})_{ij} = -\Bigl( \sum_{j<k\le i} (L^{-1})_{ik} L_{kj} \Bigr) L_{jj}^{-1}
    """
    for block, below in reversed(_blocks(len(lower))):
        diagonal = np.tril(invert_triangle(np.ascontiguousarray(lower[block, block])))
        column = lower[block.stop :, block] @ diagonal
        lower[block, block] = diagonal
        for rows in below:
            inverse = lower[rows, block.stop : rows.stop]
            lower[rows, block] = inverse @ column[: rows.stop - block.stop]
            lower[rows, block] *= -1.0
    return lower


def _gram_by_blocks(inverse: Array) -> Array:
    r"""The lower triangle of A'A in place of A = L^{-1}; a row of blocks is not needed once it has its result.

    .. math:: (C^{-1})_{ij} = \sum_{k\ge i} A_{ki}^\top A_{kj}
    """
    for block, _ in _blocks(len(inverse)):
        inverse[block, : block.stop] = inverse[block.start :, block].T @ inverse[block.start :, : block.stop]
    return inverse


def _blocks(size: int) -> list[tuple[slice, list[slice]]]:
    """Each block of rows, with those below it."""
    slices = [slice(first, min(first + _BLOCK_ROWS, size)) for first in range(0, size, _BLOCK_ROWS)]
    return [(block, slices[number + 1 :]) for number, block in enumerate(slices)]


def whiten(lower: Array, rows: Array) -> Array:
    """L^{-1} applied to each row of a C-ordered `m x N`, which it replaces."""
    if not rows.size:
        return rows
    return np.asarray(blas.dtrsm(1.0, lower.T, rows.T, lower=0, trans_a=1, overwrite_b=1).T)


def unwhiten(lower: Array, rows: Array) -> Array:
    """L^{-T} applied to each row of a C-ordered `m x N`, which it replaces."""
    if not rows.size:
        return rows
    return np.asarray(blas.dtrsm(1.0, lower.T, rows.T, lower=0, trans_a=0, overwrite_b=1).T)


def extend(lower: Array, cross: Array, corner: Array) -> Array:
    r"""The factor with k more rows, in O(N^2 k): a new array, of which the old factor is the leading block.

    .. math:: L_{21} = (L_{11}^{-1} C_{12})^\top, \qquad L_{22} L_{22}^\top = C_{22} - L_{21} L_{21}^\top

    Args:
        lower: The old factor, N x N.
        cross: Covariance of new and old rows, k x N.
        corner: Covariance of the new rows, k x k, nugget included.
    """
    size, new = len(lower), len(corner)
    extended = np.empty((size + new, size + new))
    extended[:size, :size] = lower
    below = whiten(lower, np.array(cross, order="C"))
    extended[size:, :size] = below
    extended[size:, size:] = factorize(corner - below @ below.T)
    return extended
