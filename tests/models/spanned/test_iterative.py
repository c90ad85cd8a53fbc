"""The posterior by conjugate gradients against a factorisation, on points as a run leaves them."""

from __future__ import annotations

import numpy as np
import pytest

from eign.arrays import Array
from eign.models.derivative_kernels import Term
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.spanned.iterative import IterativePosterior
from eign.models.spanned.moments import value_moments
from eign.models.spanned.preconditioner import CovarianceProducts, Preconditioner
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.split import split
from eign.numerics.conjugate_gradients import solve


def clustered(n: int, d: int, *, seed: int = 0) -> Array:
    """Half of the points anywhere, the others closer and closer to one place."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    sizes = np.geomspace(1e-1, 1e-4, n - n // 2)[:, None]
    x[n // 2 :] = x[0] + sizes * rng.standard_normal((n - n // 2, d)) / np.sqrt(d)
    return np.clip(x, 0.0, 1.0)


def observed(x: Array, *, noise: float = 0.0) -> SpannedData:
    d = x.shape[1]
    w = np.linspace(-2.0, 2.0, d)
    y, grad = np.sin(x @ w), np.cos(x @ w)[:, None] * w
    return SpannedData(x, y, grad, np.full(len(x), noise), np.full(x.shape, noise))


def hyperparameters(d: int, *, length: float = 1.5) -> JointHyperparameters:
    return JointHyperparameters((Term("full", "matern52", length * np.linspace(0.8, 1.2, d), 1.7),))


@pytest.mark.parametrize("length", [0.5, 1.5, 5.0])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_moments_are_those_of_the_factorisation(length: float, noise: float) -> None:
    n, d = 60, 12
    data, hyper = observed(clustered(n, d), noise=noise), hyperparameters(d, length=length)
    rows = split(data, hyper)
    iterative = IterativePosterior.of(data, hyper, eta=rows.inside.factored.nugget)
    assert iterative.solution.converged
    points = np.concatenate([np.random.default_rng(1).random((3, d)), data.x[-2:] + 1e-3])
    mean, variance = value_moments(rows, points)
    prior = hyper.terms[0].outputscale ** 0.5
    np.testing.assert_allclose(iterative.mean, rows.mean, atol=1e-5 * prior)
    np.testing.assert_allclose(iterative.mean_and_gradient(points)[0], mean, atol=1e-5 * prior)
    np.testing.assert_allclose(np.sqrt(iterative.variance(points)), np.sqrt(variance), atol=1e-5 * prior)


def test_the_gradient_of_the_mean_by_differences() -> None:
    d = 6
    iterative = IterativePosterior.of(observed(clustered(20, d)), hyperparameters(d))
    x = np.random.default_rng(2).random((1, d))
    gradient = iterative.mean_and_gradient(x)[1][0]
    for k in range(d):
        step = 1e-5 * np.eye(d)[k]
        up, down = (iterative.mean_and_gradient(x + s)[0][0] for s in (step, -step))
        assert gradient[k] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("profile", ["matern52", "rbf"])
def test_products_are_those_of_the_covariance_matrix(profile: str) -> None:
    n, d, eta = 7, 4, 1e-3
    u = np.random.default_rng(0).random((n, d))
    term = Term("full", profile, np.ones(d))  # type: ignore[arg-type]
    products = CovarianceProducts.of(u, term, np.full((n, 2), eta))
    matrix = np.stack([products(row.reshape(n, d + 1)).ravel() for row in np.eye(n * (d + 1))])
    hyper = JointHyperparameters((term,))
    rows = split(SpannedData(u, np.zeros(n), np.zeros((n, d)), np.zeros(n), np.zeros((n, d))), hyper)
    lower = np.tril(rows.inside.factored.lower)
    # Component first in the factor, point first here.
    order = rows.inside.row_point * (d + 1) + rows.inside.row_component
    expected = lower @ lower.T + (eta - rows.inside.factored.nugget) * np.eye(len(lower))
    np.testing.assert_allclose(matrix[np.ix_(order, order)], expected, atol=1e-12)


@pytest.mark.parametrize("profile", ["matern52", "rbf"])
def test_the_preconditioner_is_symmetric_and_positive(profile: str) -> None:
    n, d = 12, 5
    term = Term("full", profile, np.ones(d))  # type: ignore[arg-type]
    products = CovarianceProducts.of(clustered(n, d) - 0.5, term, np.full((n, 2), 1e-6))
    precondition = Preconditioner.of(products)
    matrix = np.stack([precondition(row.reshape(n, d + 1)).ravel() for row in np.eye(n * (d + 1))])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > 0


def test_plain_conjugate_gradients_do_not_converge_where_these_do() -> None:
    n, d = 80, 20
    data, hyper = observed(clustered(n, d)), hyperparameters(d)
    iterative = IterativePosterior.of(data, hyper)
    assert iterative.solution.converged
    target = np.column_stack([data.y, data.grad])
    assert not solve(iterative.products, lambda rows: rows, target, tolerance=1e-2, iterations=2000).converged


def test_a_point_without_a_gradient_is_refused() -> None:
    data = observed(clustered(5, 3))
    with pytest.raises(ValueError, match="4 of 5 points have a whole gradient"):
        IterativePosterior.of(
            SpannedData(data.x, data.y, data.grad[:4], data.y_noise, data.grad_noise[:4]), hyperparameters(3)
        )


def test_the_expansion_around_a_point_is_right_to_first_order() -> None:
    d = 5
    iterative = IterativePosterior.of(observed(clustered(12, d)), hyperparameters(d))
    way = np.random.default_rng(3).standard_normal(d)

    def missed(step: float) -> float:
        v = iterative.products.u[3] + step * way
        return float(np.abs(iterative.products(iterative._expansion(v)) - iterative._covariances(v)).max())

    assert missed(0.0) < 1e-8  # the nugget
    assert missed(1e-2) / missed(1e-3) == pytest.approx(100.0, rel=0.1)
