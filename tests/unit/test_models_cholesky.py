import numpy as np
import pytest

from eign.models.cholesky import (
    JITTERS,
    FactorizationError,
    cholesky,
    extend,
    factorize,
    gram_triangle,
    triangular_inverse,
)


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
