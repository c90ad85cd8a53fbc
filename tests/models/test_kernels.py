import numpy as np
import pytest
import torch

from eign.models.kernels import (
    CORRELATIONS,
    correlation,
    correlation_matrix,
    cross_correlation,
    squared_differences_product,
    torch_correlation,
    weighted_squared_differences,
)

KERNELS = sorted(CORRELATIONS)


def in_autograd(name: str, r2: torch.Tensor) -> torch.Tensor:
    if name == "rbf":
        return (-0.5 * r2).exp()
    u = (5.0 * r2).sqrt()
    return (1 + u + u**2 / 3) * (-u).exp()


@pytest.mark.parametrize("name", KERNELS)
def test_value_and_slope_against_autograd(name: str) -> None:
    r2 = torch.linspace(1e-3, 40.0, 400, dtype=torch.float64).requires_grad_()
    expected = in_autograd(name, r2)
    (derivative,) = torch.autograd.grad(expected.sum(), r2)
    value, slope = np.empty(400), np.empty(400)
    correlation(name)(r2.detach().numpy().copy(), value, slope)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(slope, -2 * derivative.numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
def test_derivative_by_log_lengthscale(name: str) -> None:
    rng = np.random.default_rng(0)
    x, length = rng.random((7, 3)), np.array([0.3, 0.8, 2.0])
    vector = rng.normal(size=7)
    _, slope = correlation_matrix(correlation(name), x / length)
    products = squared_differences_product(slope, x / length, vector)
    weights = rng.normal(size=(7, 7))
    sums = weighted_squared_differences(weights * slope, x / length)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-6
        high, low = (correlation_matrix(correlation(name), x / (length * np.exp(sign * step)))[0] for sign in (1, -1))
        numeric = (high - low) / 2e-6
        # Central differences of values of order 1 with this step are good to about 1e-10.
        np.testing.assert_allclose(products[:, k], numeric @ vector, atol=2e-9)
        assert sums[k] == pytest.approx(np.sum(weights * numeric), abs=5e-9)


def test_blocks_and_stacks_do_not_change_the_numbers() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((3, 70, 4)), rng.random((3, 900, 4))
    value, slope = cross_correlation(correlation("matern52"), a, b)
    for c in range(3):
        for i in (0, 1, 68, 69):
            r2 = ((a[c, i] - b[c]) ** 2).sum(axis=1)
            expected, expected_slope = np.empty(900), np.empty(900)
            correlation("matern52")(r2, expected, expected_slope)
            np.testing.assert_allclose(value[c, i], expected, atol=1e-14)
            np.testing.assert_allclose(slope[c, i], expected_slope, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_differentiable_correlation_has_the_right_gradient_also_where_points_coincide(name: str) -> None:
    rng = torch.Generator().manual_seed(0)
    a = torch.rand(4, 3, dtype=torch.float64, generator=rng).requires_grad_()
    b = torch.rand(5, 3, dtype=torch.float64, generator=rng)
    assert torch.autograd.gradcheck(lambda x: torch_correlation(correlation(name), x, b), (a,), atol=1e-8)
    same = b.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(torch_correlation(correlation(name), same, b).diagonal().sum(), same)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)


def test_unknown_kernel() -> None:
    with pytest.raises(ValueError, match="'matern32' is unknown; choose one of 'matern52', 'rbf'"):
        correlation("matern32")
