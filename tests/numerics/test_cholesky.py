import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import eign
from eign.numerics import cholesky_torch
from eign.numerics.cholesky import (
    JITTERS,
    FactorizationError,
    cholesky,
    cholesky_of_each,
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


def test_jitter_only_on_failure_smallest_that_works_and_recorded() -> None:
    singular = np.ones((6, 6)) - 2e-6 * np.eye(6)  # five eigenvalues of -2e-6
    copy = singular.copy()
    lower, jitter = cholesky(copy)
    assert jitter == 1e-5
    lower = np.tril(lower)
    np.testing.assert_allclose(lower @ lower.T, singular + jitter * np.diag(np.diag(singular)), atol=1e-12)
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


def test_a_pivot_that_is_rounding_error_is_a_failure() -> None:
    """Two equal rows: LAPACK finds a pivot of the order of rounding, and everything behind it would be noise."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(40, 3))
    singular = root @ root.T + 1e-16 * np.diag(rng.random(40))
    singular = singular / np.sqrt(np.outer(np.diag(singular), np.diag(singular)))
    lower, jitter = cholesky(singular)
    assert jitter >= JITTERS[0]
    assert np.diagonal(lower).min() ** 2 > 40 * 2.0**-53


def test_jitter_is_relative_to_the_diagonal_so_that_units_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    root, units = rng.normal(size=(8, 3)), 10.0 ** rng.uniform(-9, 9, size=8)
    lower, jitter = cholesky(root @ root.T)
    scaled, other = cholesky(root @ root.T * np.outer(units, units))
    assert jitter == other > 0
    # The last five pivots are 1e-12 of the diagonal, with rounding errors of some 1e-15.
    np.testing.assert_allclose(np.tril(scaled), units[:, None] * np.tril(lower), rtol=1e-2, atol=0)


def test_the_same_policy_in_torch_and_for_many_small_matrices() -> None:
    """Plain, singular and slightly indefinite ones in one batch: only those that need it are changed."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(5, 2))
    batch = np.stack([positive(5), root @ root.T, np.ones((5, 5)) - 2e-6 * np.eye(5)])
    lower, lifted = cholesky_torch.cholesky(torch.from_numpy(batch))
    np.testing.assert_allclose(lower @ lower.mT, lifted, atol=1e-12)
    np.testing.assert_allclose(cholesky_of_each(batch), lower, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(lifted[0], batch[0])
    for index in range(3):
        jitter = cholesky(batch[index])[1]
        diagonal = np.diag(batch[index])
        np.testing.assert_allclose(np.diag(lifted[index]), diagonal + jitter * diagonal, rtol=1e-15)
    with pytest.raises(FactorizationError, match="size 3 has no Cholesky factor"):
        cholesky_torch.cholesky(torch.full((2, 3, 3), torch.nan, dtype=torch.float64))


def test_the_scale_says_what_is_rounding() -> None:
    """A difference of large numbers: its own diagonal says nothing of its errors."""
    small = 1e-14 * np.eye(3)
    assert cholesky(small)[1] == 0.0
    assert cholesky(small, scale=1.0 * np.ones(3))[1] == 0.0
    assert cholesky(1e-17 * np.eye(3), scale=np.ones(3))[1] == JITTERS[0]
    lifted = cholesky_torch.cholesky(torch.from_numpy(1e-17 * np.eye(3)), scale=torch.ones(1))[1]
    # Beside the 1e-17 that was there.
    np.testing.assert_allclose(lifted, JITTERS[0] * np.eye(3), rtol=2e-5)


def test_only_one_module_decides_about_jitter() -> None:
    """All others take it from there: no list of jitters, and no plain `cholesky_ex`, elsewhere."""
    source = Path(eign.__file__).parent
    owners = {"numerics/cholesky.py", "numerics/cholesky_torch.py"}
    for file in source.rglob("*.py"):
        text = file.read_text()
        if file.relative_to(source).as_posix() not in owners:
            assert "torch.linalg.cholesky" not in text, file
