"""In-place linear algebra on lower triangles against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from eign.models.derivative_kernels import Array
from eign.numerics import large_cholesky
from eign.numerics.cholesky import FactorizationError
from eign.numerics.large_cholesky import extend, factorize, invert, nugget, unwhiten, whiten

SIZES = [0, 1, 2, 63, 64, 65, 200, 301]


def positive_definite(size: int, seed: int = 0) -> Array:
    half = np.random.default_rng(seed).normal(size=(size, size))
    return half @ half.T + size * np.eye(size)


@pytest.mark.parametrize("size", SIZES)
def test_factorize_and_invert_in_place(size: int) -> None:
    matrix = positive_definite(size)
    work = np.tril(matrix)  # the upper triangle is never read
    lower = factorize(work)
    assert size == 0 or np.shares_memory(lower, work)
    np.testing.assert_allclose(np.tril(lower) @ np.tril(lower).T, matrix, rtol=1e-12, atol=1e-10)
    inverse = invert(lower)
    assert size == 0 or np.shares_memory(inverse, work)
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(matrix)), rtol=1e-9, atol=1e-12)


def test_invert_by_lapack_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = factorize(positive_definite(150))
    recursive = np.tril(invert(lower.copy()))
    monkeypatch.setattr("eign.numerics.large_cholesky._RECURSIVE_ROWS", 10)
    np.testing.assert_allclose(recursive, np.tril(invert(lower.copy())), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_whiten_and_unwhiten(size: int) -> None:
    lower = factorize(positive_definite(size))
    rows = np.random.default_rng(1).normal(size=(4, size))
    triangle = np.tril(lower)
    np.testing.assert_allclose(whiten(lower, rows.copy()) @ triangle.T, rows, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(unwhiten(lower, rows.copy()) @ triangle, rows, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("size", "new"), [(0, 3), (5, 1), (60, 7), (30, 0)])
def test_extend_equals_factorize(size: int, new: int) -> None:
    matrix = positive_definite(size + new)
    old = factorize(matrix[:size, :size].copy())
    lower = extend(old, matrix[size:, :size], matrix[size:, size:])
    np.testing.assert_allclose(np.tril(lower), np.tril(factorize(matrix.copy())), rtol=1e-11, atol=1e-12)


def test_what_is_not_positive_definite_is_said() -> None:
    with pytest.raises(FactorizationError, match="pivot 2 is not positive"):
        factorize(np.array([[1.0, 0.0], [2.0, 1.0]]))


def test_nugget_grows_with_the_rows_only_beyond_what_is_common() -> None:
    assert nugget(1) == nugget(6000) == 1e-8
    assert nugget(20_000) == pytest.approx(2 * 20_000**2 * 2.0**-53)


@pytest.mark.parametrize("size", [30, 31, 40])
def test_blocks_give_what_lapack_gives(monkeypatch, size):
    rows = np.random.default_rng(size).normal(size=(size, 2 * size))
    matrix = rows @ rows.T / size
    expected, inverse = np.linalg.cholesky(matrix), np.linalg.inv(matrix)
    monkeypatch.setattr(large_cholesky, "_LAPACK_ROWS", 20)
    monkeypatch.setattr(large_cholesky, "_BLOCK_ROWS", 10)
    stored = np.tril(matrix) + np.triu(np.full_like(matrix, np.nan), 1)
    lower = large_cholesky.factorize(stored)
    assert lower is stored
    # The blocks above the diagonal are never read; a condition number of about 30 leaves 1e-13 of rounding.
    np.testing.assert_allclose(np.tril(lower), expected, rtol=1e-12, atol=1e-13)
    found = large_cholesky.invert(lower)
    assert found is lower
    np.testing.assert_allclose(np.tril(found), np.tril(inverse), rtol=1e-10, atol=1e-12)


def test_blocks_say_what_is_not_positive_definite(monkeypatch):
    monkeypatch.setattr(large_cholesky, "_LAPACK_ROWS", 20)
    monkeypatch.setattr(large_cholesky, "_BLOCK_ROWS", 10)
    with pytest.raises(FactorizationError, match="no Cholesky factor"):
        large_cholesky.factorize(np.diag([*[1.0] * 25, -1.0]))
