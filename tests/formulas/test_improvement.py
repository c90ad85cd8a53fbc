"""Improvements that look at f alone, against quadrature and 40-digit arithmetic."""

import mpmath as mp
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from eign.formulas import (
    expected_improvement,
    log_expected_improvement,
    log_h,
    probability_of_improvement,
    upper_confidence_bound,
)

from .posteriors import tensor


def mp_log_h(u: float) -> float:
    with mp.workdps(60):
        u = mp.mpf(u)
        return float(mp.log(mp.npdf(u) + u * mp.erfc(-u / mp.sqrt(2)) / 2))


@given(st.floats(-1e4, 1e4))
@example(-1e4)
def test_log_h_against_high_precision(u):
    exact = mp_log_h(u)
    assert float(log_h(tensor(u))) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("u", [-1e6, -1e9])
def test_log_h_in_the_far_tail(u):
    # phi(u) / u^2 to leading order; the next term is below the last place
    exact = -(u**2) / 2 - 0.5 * float(mp.log(2 * mp.pi)) - 2 * float(mp.log(-u))
    assert float(log_h(tensor(u))) == pytest.approx(exact, rel=1e-14)


@given(st.floats(-5, 5), st.floats(-12, 2), st.floats(-5, 5))
def test_expected_improvement_is_the_exponential_of_its_logarithm(mean, log_sigma, best):
    sigma = tensor(10.0**log_sigma)
    value = expected_improvement(tensor(mean), sigma, best)
    log_value = log_expected_improvement(tensor(mean), sigma, best)
    assert value >= 0
    assert float(value) == pytest.approx(float(log_value.exp()), rel=1e-9, abs=1e-300)


@given(st.floats(-8, 8), st.floats(0.01, 10), st.floats(0, 3))
def test_expected_improvement_against_quadrature(mean, sigma, xi):
    exact = mp.quad(lambda f: (f - xi) * mp.npdf(f, mean, sigma), [xi, xi + sigma, xi + 20 * sigma + abs(mean)])
    value = expected_improvement(tensor(mean), tensor(sigma), 0.0, xi=xi)
    assert float(value) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


def test_expected_improvement_without_uncertainty():
    value = expected_improvement(tensor([2.0, -1.0]), tensor([0.0, 0.0]), 0.5)
    assert value.tolist() == [1.5, 0.0]


def test_gradients():
    mean = torch.tensor([-8.0, -1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor([0.5, 1.0, 2.0, 0.1], dtype=torch.float64, requires_grad=True)
    best = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    for formula in (expected_improvement, log_expected_improvement, probability_of_improvement):
        assert torch.autograd.gradcheck(formula, (mean, sigma, best))


def test_log_expected_improvement_has_a_gradient_where_the_value_underflows():
    mean = torch.tensor(-1e3, dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor(1e-3, dtype=torch.float64, requires_grad=True)
    by_mean, by_sigma = torch.autograd.grad(log_expected_improvement(mean, sigma, 0.0), (mean, sigma))
    # log EI ~ -u^2/2 at u = -1e6, so its slope is -u / sigma and u^2 / sigma
    assert float(by_mean) == pytest.approx(1e9, rel=1e-6)
    assert float(by_sigma) == pytest.approx(1e15, rel=1e-6)


def test_probability_and_confidence_bound():
    assert float(probability_of_improvement(tensor(1.0), tensor(2.0), 1.0)) == pytest.approx(0.5, rel=1e-15)
    tail = probability_of_improvement(tensor(-30.0), tensor(1.0), 0.0)
    assert float(tail) == pytest.approx(float(mp.ncdf(-30)), rel=1e-12)
    assert float(upper_confidence_bound(tensor(1.0), tensor(3.0))) == 7.0
    assert float(upper_confidence_bound(tensor(1.0), tensor(3.0), weight=0.5)) == 2.5
