import threading

import numpy as np
import pytest

from eign.numerics.cholesky import (
    JITTERS,
    FactorizationError,
    cholesky,
    extend,
    factorize,
    gram_triangle,
    triangular_inverse,
)
from eign.numerics.lapack import cholesky_in_place, gram_in_place, invert_in_place, multiply_in_place, rows_times


def positive(size: int, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T + size * np.eye(size)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 150, 301])
def test_whitener_and_inverse(size: int) -> None:
    matrix = positive(size)
    factor = factorize(matrix[None])
    np.testing.assert_allclose(factor.whitener[0] @ matrix @ factor.whitener[0].T, np.eye(size), atol=1e-12)
    assert (np.triu(factor.whitener[0], 1) == 0).all()
    assert factor.jitter[0] == 0.0
    triangle = gram_triangle(np.asfortranarray(factor.whitener[0]))
    np.testing.assert_allclose(triangle, np.tril(np.linalg.inv(matrix)), atol=1e-13)


def test_no_rows() -> None:
    assert factorize(np.empty((2, 0, 0))).whitener.shape == (2, 0, 0)


@pytest.mark.parametrize("overwrite", [False, True])
def test_jitter_only_on_failure_smallest_that_works_and_recorded(overwrite: bool) -> None:
    singular = np.ones((6, 6)) - 2e-6 * np.eye(6)  # five eigenvalues of -2e-6
    copy = singular.copy()
    lower, jitter = cholesky(copy, overwrite=overwrite)
    assert jitter == pytest.approx(1e-5 * np.mean(np.diag(singular)))
    lower = np.tril(lower)
    np.testing.assert_allclose(lower @ lower.T, singular + jitter * np.eye(6), atol=1e-12)
    if not overwrite:
        np.testing.assert_array_equal(copy, singular)


@pytest.mark.parametrize("matrix", [-np.eye(3), np.full((3, 3), np.nan)])
def test_hopeless_matrices_raise(matrix: np.ndarray) -> None:
    with pytest.raises(FactorizationError, match=f"even with jitter {JITTERS[-1]:g}"):
        cholesky(matrix)


def test_extension_equals_a_fresh_factor() -> None:
    full = np.stack([positive(40, seed) for seed in range(3)])
    old = factorize(full[:, :37, :37])
    extended = extend(old, full[:, :37, 37:], full[:, 37:, 37:])
    np.testing.assert_allclose(extended.whitener, factorize(full).whitener, atol=1e-12)


def test_triangular_inverse_ignores_what_is_above_the_diagonal() -> None:
    lower = np.tril(positive(100))
    dirty = np.asfortranarray(lower + np.triu(np.full((100, 100), np.nan), 1))
    np.testing.assert_allclose(triangular_inverse(dirty) @ lower, np.eye(100), atol=1e-12)


@pytest.mark.parametrize("size", [1, 30, 130])
@pytest.mark.parametrize("is_block", [False, True])
def test_lapack_in_place_on_matrices_and_blocks(size: int, is_block: bool) -> None:
    """Everything else in the memory around a block stays as it is."""
    rng, padding = np.random.default_rng(size), 7 if is_block else 0
    whole = np.asfortranarray(rng.normal(size=(size + padding, size + 2 * padding)))
    block = whole[padding:, padding : padding + size]
    block[...] = positive(size)
    before = whole.copy()
    lower = np.linalg.cholesky(block)
    assert cholesky_in_place(block) == 0
    np.testing.assert_allclose(np.tril(block), lower, rtol=0, atol=1e-12)
    invert_in_place(block)
    inverse = np.linalg.inv(lower)
    np.testing.assert_allclose(np.tril(block), inverse, rtol=0, atol=1e-12)
    other = np.asfortranarray(rng.normal(size=(size, 3)))
    left, right = other.copy(order="F"), other.T.copy(order="F")
    multiply_in_place(block, left, negative=True)
    multiply_in_place(block, right, right=True)
    np.testing.assert_allclose(left, -inverse @ other, rtol=0, atol=1e-12)
    np.testing.assert_allclose(right, other.T @ inverse, rtol=0, atol=1e-12)
    gram_in_place(block)
    np.testing.assert_allclose(np.tril(block), np.tril(inverse.T @ inverse), rtol=0, atol=1e-12)
    inside = np.zeros(whole.shape, dtype=bool)
    inside[padding:, padding : padding + size] = np.tri(size, dtype=bool)
    np.testing.assert_array_equal(whole[~inside], before[~inside])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (4, 30), (200, 17)])
def test_rows_times_a_triangle(shape: tuple[int, int], precision: type, transposed: bool) -> None:
    rng = np.random.default_rng(0)
    rows, square = rng.normal(size=shape).astype(precision), rng.normal(size=(shape[1], shape[1])).astype(precision)
    product = rows.copy()
    rows_times(product, square, transposed=transposed)
    lower = np.tril(square)
    # Sums of up to 30 products of numbers up to 4.
    rounding = 500 * np.finfo(precision).eps
    np.testing.assert_allclose(product, rows @ (lower.T if transposed else lower), rtol=0, atol=rounding)


def test_rows_and_triangle_have_one_precision() -> None:
    with pytest.raises(ValueError, match="expected float32 with contiguous columns"):
        rows_times(np.ones((2, 3)), np.eye(3, dtype=np.float32))


def test_lapack_tells_where_it_failed_and_what_it_cannot_take() -> None:
    for size in (5, 200):
        matrix = np.asfortranarray(np.eye(size))
        matrix[3, 3] = -1.0
        assert cholesky_in_place(matrix) == 4
    with pytest.raises(ValueError, match="expected float64 with contiguous columns"):
        cholesky_in_place(positive(4)[:, ::2].T)


def test_other_threads_run_while_a_matrix_is_factored() -> None:
    matrix, counted = np.asfortranarray(positive(2500)), 0
    worker = threading.Thread(target=cholesky_in_place, args=(matrix,))
    worker.start()
    while worker.is_alive():
        counted += 1
    # With the lock held this thread could not look once in all that time.
    assert counted > 100
