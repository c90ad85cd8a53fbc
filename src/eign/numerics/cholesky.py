r"""Triangular factors of batches of small dense matrices, by LAPACK, one matrix at a time; and the one jitter policy.

**Jitter.** A covariance matrix is factored as it is, or with the jitter that its model begins with. Only if that fails
its diagonal grows, by 1e-12 of itself and then ten times as much at each further attempt, up to 1e-2. A factor whose
pivot is no larger than rounding errors counts as a failure: everything computed from it would be noise. What is added
is relative to the matrix's own diagonal. A posterior covariance is a difference, and has the rounding errors of what it
is a difference of: there `scale` says what is large enough. Every factorisation follows these rules: here, in
`large_cholesky`, and in `cholesky_torch`, which has the same in torch.

Everything downstream needs A = L^{-1} rather than L: with it, whitening, solving and extending are matrix products,
and a posterior variance `s - |A k|^2` keeps the accuracy of a triangular solve. One factor is stored, not two.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array, Mask
from eign.numerics.lapack import cholesky_in_place, gram_in_place, invert_in_place, multiply_in_place

JITTERS: Final = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""What is added to a diagonal after failures, relative to it: twenty times the rounding error of 500 rows first."""

UNIT_ROUNDOFF: Final = 2.0**-53
_LEAF: Final = 64
Result = TypeVar("Result")


class FactorizationError(ValueError):
    """A matrix that is not positive definite even with the largest jitter, or not finite."""


class Factor(NamedTuple):
    """Inverse Cholesky factors and what it took to get them.

    Attributes:
        whitener: A = L^{-1} with L L' = K and what was added to it, lower triangular, `B x n x n`.
        jitter: What was added to each diagonal, relative to it or to the scale that was given, `B`.
    """

    whitener: Array
    jitter: Array


def jitters(first: float = 0.0) -> Iterator[float]:
    """What is tried one after the other: a first jitter, and after failures all larger ones.

    >>> list(jitters(1e-4))
    [0.0001, 0.001, 0.01]
    """
    yield first
    yield from (jitter for jitter in JITTERS if jitter > first)


def with_jitter(compute: Callable[[float], Result], first: float) -> Result:
    """What is computed with the first jitter that does not fail.

    Raises:
        FactorizationError: If the largest fails.
    """
    for jitter in jitters(first):
        try:
            return compute(jitter)
        except FactorizationError:
            if jitter >= JITTERS[-1]:
                raise
    raise FactorizationError(f"no jitter up to {JITTERS[-1]:g} is enough")


def larger_jitter(jitter: float) -> float:
    """The next one, after a failure with this; the largest stays."""
    return next((larger for larger in JITTERS if larger > jitter), JITTERS[-1])


def smaller_jitter(jitter: float) -> float:
    """The one before; the smallest is no jitter."""
    return next((smaller for smaller in reversed(JITTERS) if smaller < jitter), 0.0)


def are_sound(pivots: Array, scale: Array | float) -> Mask:
    """Whether the diagonals of factors, `... x n`, say more than rounding.

    The square of pivot j is what rows 1 to j - 1 leave unexplained of K_jj, and is computed to about n u K_jj. In place
    of K_jj there is `scale` where the matrix itself was computed to no more than that.
    """
    rounding = pivots.shape[-1] * UNIT_ROUNDOFF * scale
    # NaN is not larger than anything.
    return np.asarray((pivots * pivots > rounding).all(axis=-1) & np.isfinite(pivots).all(axis=-1))


def cholesky(matrix: Array, *, scale: Array | float | None = None, first: float = 0.0) -> tuple[Array, float]:
    """Lower factor of a symmetric matrix `n x n` in C order, and the jitter it took.

    Args:
        matrix: Symmetric and, up to rounding, positive definite.
        scale: What the jitter is relative to, and rounding errors if it is larger than the diagonal; None is that.
        first: The jitter to begin with.

    Returns:
        The factor in Fortran order, undefined above its diagonal, and the jitter.

    Raises:
        FactorizationError: If the largest jitter does not help.
    """
    if not len(matrix):
        return np.empty((0, 0), order="F"), 0.0
    diagonal = np.diagonal(matrix)
    scale = diagonal if scale is None else scale
    for jitter in jitters(first):
        work = matrix.copy()
        if jitter:
            np.fill_diagonal(work, diagonal + jitter * scale)
        if factor_in_place(work, np.maximum(diagonal, scale)):
            return work.T, jitter
    raise FactorizationError(no_factor(len(matrix)))


def factor_in_place(matrix: Array, scale: Array) -> bool:
    """Overwrite a symmetric matrix in C order by the transpose of its lower factor, and say whether that is sound."""
    factor = matrix.T
    return cholesky_in_place(factor) == 0 and bool(are_sound(np.diagonal(factor), scale))


def cholesky_of_each(matrices: Array) -> Array:
    """Lower factors of small symmetric matrices, `m x n x n`, zero above their diagonals.

    Raises:
        FactorizationError: If the largest jitter does not help one of them.
    """
    try:
        lower = np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
        failed = ~are_sound(np.einsum("mii->mi", lower), np.einsum("mii->mi", matrices))
    except np.linalg.LinAlgError:  # which does not say where
        lower, failed = np.empty(matrices.shape), np.ones(len(matrices), dtype=np.bool_)
    for index in np.flatnonzero(failed):
        lower[index] = np.tril(cholesky(matrices[index])[0])
    return lower


def no_factor(size: int) -> str:
    """The message for a matrix that has no factor."""
    return (
        f"a covariance matrix of size {size} has no Cholesky factor, even with jitter {JITTERS[-1]:g}: "
        "check the data for NaN and the hyperparameters for extreme values"
    )


def factorize(matrices: Array, *, scale: Array | None = None, first: Array | float = 0.0) -> Factor:
    """Factors of a batch of symmetric matrices, `B x n x n`.

    Args:
        matrices: Symmetric and, up to rounding, positive definite.
        scale: What jitters are relative to, `B x n`; None is the diagonals.
        first: The jitters to begin with, `B`.
    """
    whitener, jitter = np.zeros(matrices.shape), np.zeros(len(matrices))
    first = np.broadcast_to(first, len(matrices))
    for b, matrix in enumerate(matrices):
        lower, jitter[b] = cholesky(matrix, scale=None if scale is None else scale[b], first=float(first[b]))
        whitener[b] = triangular_inverse(lower)
    return Factor(whitener, jitter)


def triangular_inverse(lower: Array, out: Array | None = None) -> Array:
    r"""L^{-1} of a lower triangular matrix, Fortran ordered and zero above its diagonal.

    .. math:: L^{-1} = \begin{pmatrix} L_{11}^{-1} & \\ -L_{22}^{-1} L_{21} L_{11}^{-1} & L_{22}^{-1} \end{pmatrix}

    by halves, which is twice as fast as OpenBLAS's `dtrtri` from 200 rows on.

    Args:
        lower: The matrix; what is above its diagonal is not read.
        out: Where to write the result, Fortran ordered and zero above its diagonal.
    """
    inverse = np.zeros(lower.shape, order="F") if out is None else out
    _invert_block(lower, inverse, 0, len(lower))
    return inverse


def _invert_block(lower: Array, inverse: Array, first: int, last: int) -> None:
    if last - first <= _LEAF:
        if last > first:
            block = inverse[first:last, first:last]
            np.copyto(block, lower[first:last, first:last], where=_triangle(last - first))
            invert_in_place(block)
        return
    middle = (first + last) // 2
    _invert_block(lower, inverse, first, middle)
    _invert_block(lower, inverse, middle, last)
    below = inverse[middle:last, first:middle]
    below[...] = lower[middle:last, first:middle]
    multiply_in_place(inverse[middle:last, middle:last], below, negative=True)
    multiply_in_place(inverse[first:middle, first:middle], below, right=True)


@cache
def _triangle(size: int) -> NDArray[np.bool_]:
    return np.asfortranarray(np.tri(size, dtype=np.bool_))


def gram_triangle(whitener: Array) -> Array:
    """Lower triangle of K^{-1} = A'A, written over A; above the diagonal it stays zero."""
    if not len(whitener):
        return whitener
    gram_in_place(whitener)
    return whitener


def extend(factor: Factor, cross: Array, corner: Array, *, scale: Array | None = None) -> Factor:
    r"""The factor of K with k more rows, in O(n^2 k) instead of O(n^3).

    .. math::
        L = \begin{pmatrix} L_{11} & \\ L_{21} & L_{22} \end{pmatrix}, \quad
        L_{21} = (A_{11} K_{12})^\top, \quad L_{22} L_{22}^\top = K_{22} - L_{21} L_{21}^\top, \quad
        A = \begin{pmatrix} A_{11} & \\ -A_{22} L_{21} A_{11} & A_{22} \end{pmatrix}

    Args:
        factor: Of the old matrices, `B x n x n`.
        cross: Covariance of old and new rows, `B x n x k`.
        corner: Covariance of the new rows, `B x k x k`.
        scale: What jitters are relative to in the new rows, `B x k`; None is their diagonals.

    Raises:
        FactorizationError: If the old jitter is not enough for the new rows.
    """
    batch, size, new = cross.shape
    whitener = np.zeros((batch, size + new, size + new))
    for b in range(batch):
        old = factor.whitener[b]
        below = (old @ cross[b]).T
        diagonal = np.diagonal(corner[b])
        schur = corner[b] - below @ below.T
        schur.flat[:: new + 1] += factor.jitter[b] * (diagonal if scale is None else scale[b])
        if not factor_in_place(schur, diagonal):
            raise FactorizationError(no_factor(size + new))
        inverse = triangular_inverse(schur.T)
        whitener[b, :size, :size] = old
        whitener[b, size:, :size] = -inverse @ (below @ old)
        whitener[b, size:, size:] = inverse
    return Factor(whitener, factor.jitter)
