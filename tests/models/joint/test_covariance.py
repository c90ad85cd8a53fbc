"""The training matrix and its contracted derivatives against the plain blocks and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from eign.models.derivative_kernels import (
    KERNELS,
    Array,
    Term,
    covariance_blocks,
    default_terms,
    prior_variances,
    with_hyperparameters,
)
from eign.models.joint.covariance import covariance_matrix, derivative_products, trace_derivatives
from eign.models.joint.rows import TrainingPairs, training_pairs
from eign.models.joint.terms import term_pairs

N, D = 6, 3


def full_covariance(terms: tuple[Term, ...], x: Array, pairs: TrainingPairs) -> Array:
    """The covariance of the observed rows by the plain formula, one entry at a time."""
    delta = (x[:, None] - x[None]).transpose(2, 0, 1)
    blocks = covariance_blocks(terms, delta, left=True, right=True)
    c, p = pairs.row_component, pairs.row_point
    return blocks[c[:, None], c[None], p[:, None], p[None]]


def lower_to_symmetric(matrix: Array) -> Array:
    return np.tril(matrix) + np.tril(matrix, -1).T


def some_terms(kernel: str, seed: int = 0) -> tuple[Term, ...]:
    rng = np.random.default_rng(seed)
    terms = default_terms(kernel, D)
    return with_hyperparameters(terms, rng.uniform(0.3, 1.5, (len(terms), D)), rng.uniform(0.3, 2.0, len(terms)))


def some_rows(which: str) -> NDArray[np.bool_]:
    present = np.ones((N, D + 1), bool)
    if which == "scattered":
        present = np.random.default_rng(3).random((N, D + 1)) < 0.6
    elif which == "values and some gradients":
        present[1::2, 1:] = False
    elif which == "one partial derivative":
        present[:, [1, 3]] = False
    elif which == "values":
        present[:, 1:] = False
    elif which == "gradients":
        present[:, 0] = False
    return present


ROWS = ["all", "scattered", "values and some gradients", "one partial derivative", "values", "gradients"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rows", ROWS)
def test_matrix_is_made_of_the_plain_blocks(kernel: str, rows: str) -> None:
    x = np.random.default_rng(1).random((N, D))
    terms, present = some_terms(kernel), some_rows(rows)
    pairs = training_pairs(x, present)
    assert sorted(zip(pairs.row_point, pairs.row_component, strict=True)) == sorted(
        zip(*np.nonzero(present), strict=True)
    )
    scales = prior_variances(terms) ** -0.5
    matrix = covariance_matrix(term_pairs(terms, pairs, scales, order=2), pairs)
    s = scales[pairs.row_component]
    expected = full_covariance(terms, x, pairs) * np.outer(s, s)
    np.testing.assert_allclose(np.tril(matrix), np.tril(expected), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(np.diag(matrix), 1.0, rtol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rows", ROWS)
def test_derivatives_of_the_matrix(kernel: str, rows: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.random((N, D))
    x[4] = x[1]  # a repeated point: r = 0 off the diagonal
    terms, pairs = some_terms(kernel), training_pairs(x, some_rows(rows))
    scales = prior_variances(terms) ** -0.5
    s = scales[pairs.row_component]
    half = rng.normal(size=(pairs.rows, pairs.rows))
    weights, vector = half + half.T, rng.normal(size=pairs.rows)
    at = term_pairs(terms, pairs, scales, order=3)
    traces = trace_derivatives(at, pairs, np.tril(weights))
    products = derivative_products(at, pairs, vector)
    lengthscales = np.stack([term.lengthscale for term in terms])
    outputscales = np.array([term.outputscale for term in terms])

    def derivative(t: int, k: int) -> Array:
        """Central difference of C, the scaling held fixed, by log lengthscale k (or the log outputscale) of term t."""
        h, ends = 1e-5, []
        for step in (h, -h):
            moved, weight = lengthscales.copy(), outputscales.copy()
            if k < D:
                moved[t, k] *= np.exp(step)
            else:
                weight[t] *= np.exp(step)
            ends.append(full_covariance(with_hyperparameters(terms, moved, weight), x, pairs) * np.outer(s, s))
        return np.asarray((ends[0] - ends[1]) / (2 * h))

    for t in range(len(terms)):
        for k in range(D + 1):
            expected = derivative(t, k)
            # The second-order error of central differences at h = 1e-5 is 1e-10 times third derivatives of order 10.
            np.testing.assert_allclose(traces[t][k], (weights * expected).sum(), rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(products[t][:, k], expected @ vector, rtol=1e-7, atol=1e-7)
