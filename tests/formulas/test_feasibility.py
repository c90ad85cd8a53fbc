"""Probability of feasibility against 60-digit arithmetic, constrained LogEI against quadrature."""

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from eign import formulas
from eign.formulas import feasibility_numpy


def _exact(mean: float, variance: float, lower: float, upper: float) -> tuple[float, float, float]:
    """Log-probability and its derivatives by mean and variance."""
    with mpmath.workdps(400):
        mu, var = mpmath.mpf(mean), mpmath.mpf(variance)
        sigma = mpmath.sqrt(var)
        a, b = (mpmath.mpf(lower) - mu) / sigma, (mpmath.mpf(upper) - mu) / sigma
        probability = mpmath.ncdf(b) - mpmath.ncdf(a) if a + b < 0 else mpmath.ncdf(-a) - mpmath.ncdf(-b)
        left, right = (mpmath.npdf(z) if mpmath.isfinite(z) else mpmath.mpf(0) for z in (a, b))
        by_mean = (left - right) / (sigma * probability)
        moments = sum(sign * z * d for sign, z, d in ((1, a, left), (-1, b, right)) if mpmath.isfinite(z))
        return float(mpmath.log(probability)), float(by_mean), float(moments / (2 * var * probability))


@st.composite
def intervals(draw: st.DrawFn) -> tuple[float, float, float, float]:
    """Limits from inside to 25 standard deviations away, of a width from 1e-12 to 100 of them, or open."""
    mean, sigma = draw(st.floats(-10, 10)), 10.0 ** draw(st.floats(-3, 3))
    lower = mean + sigma * draw(st.floats(-25, 25))
    upper = lower + sigma * 10.0 ** draw(st.floats(-12, 2))
    side = draw(st.sampled_from(["both", "both", "both", "lower", "upper"]))
    return mean, sigma**2, -np.inf if side == "upper" else lower, np.inf if side == "lower" else upper


@given(intervals())
def test_the_probability_and_its_derivatives_keep_their_digits(interval: tuple[float, float, float, float]) -> None:
    """The limits, in floats, have 16 digits: of a narrow interval the width has as many fewer, 25 sigmas away."""
    mean, variance, lower, upper = interval
    if not upper > lower:
        return
    found = feasibility_numpy.log_probability_of_feasibility(np.array([mean]), np.array([variance]), lower, upper)
    value, by_mean, by_variance = _exact(mean, variance, lower, upper)
    sigma = variance**0.5
    away = max(abs(lower - mean) if np.isfinite(lower) else 0.0, abs(upper - mean) if np.isfinite(upper) else 0.0)
    away = 1.0 + min(away, min(abs(lower - mean), abs(upper - mean)) + 10 * sigma) / sigma
    # The standardised limits are rounded, by 1e-16 of the limit in sigmas; logarithms change by that times the slope.
    rounding = 4e-16 * (abs(mean) / sigma + away)
    width = min(1.0, (upper - lower) / sigma)
    assert found.value[0] == pytest.approx(value, rel=1e-13, abs=1e-13 + rounding * away + 2 * rounding / width)
    assert found.by_mean[0] * sigma == pytest.approx(by_mean * sigma, rel=1e-9, abs=1e-9 + 10 * rounding / width * away)
    slope = by_variance * variance
    assert found.by_variance[0] * variance == pytest.approx(slope, rel=1e-9, abs=1e-9 + 10 * rounding / width * away**2)


def test_far_tails_are_finite() -> None:
    """A million standard deviations away, to either side, wide, narrow and open."""
    mean, variance = np.array([-1e6, 1e6]), np.ones(2)
    for lower, upper in ((0.0, 1.0), (0.0, 1e-9), (0.0, np.inf), (-np.inf, 0.0)):
        found = feasibility_numpy.log_probability_of_feasibility(mean, variance, lower, upper)
        assert all(np.isfinite(part).all() for part in found)
        # A gradient points to the interval.
        assert (found.by_mean * -mean >= 0.0).all()


def test_torch_and_numpy_are_the_same_function() -> None:
    """Values, and derivatives by autograd against finite differences."""
    mean = torch.tensor([[0.3, -1.0, 2.0], [0.0, 4.0, -3.0]], dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor([[1.0, 0.5, 2.0], [0.1, 1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    lower, upper = torch.tensor([-torch.inf, -1e-3, 1.0]), torch.tensor([0.5, 1e-3, torch.inf])
    found = formulas.log_probability_of_feasibility(mean, sigma, lower, upper)
    peer = [
        sum(
            np.log(stats.norm.cdf(u, m, s) - stats.norm.cdf(low, m, s))
            for m, s, low, u in zip(*rows, lower.tolist(), upper.tolist(), strict=True)
        )
        for rows in zip(mean.tolist(), sigma.tolist(), strict=True)
    ]
    assert found.tolist() == pytest.approx(peer, rel=1e-9)
    assert torch.autograd.gradcheck(
        lambda m, s: formulas.log_probability_of_feasibility(m, s, lower, upper), (mean, sigma), atol=1e-4, rtol=1e-4
    )


def test_constrained_improvement_is_the_integral() -> None:
    """E[max(f - best, 0) 1(l <= c <= u)] by quadrature over f and c."""
    best, low, high = 0.4, -0.5, 1.2
    inner = stats.norm.cdf(high, 0.9, 0.7) - stats.norm.cdf(low, 0.9, 0.7)
    gain, _ = integrate.quad(lambda f: (f - best) * stats.norm.pdf(f, 0.1, 0.6), best, 8.0)
    found = formulas.constrained_log_expected_improvement(
        torch.tensor(0.1, dtype=torch.float64),
        torch.tensor(0.6, dtype=torch.float64),
        best,
        constraint_mean=torch.tensor([0.9], dtype=torch.float64),
        constraint_sigma=torch.tensor([0.7], dtype=torch.float64),
        lower=torch.tensor([low]),
        upper=torch.tensor([high]),
    )
    # float32 limits: seven digits.
    assert float(found) == pytest.approx(np.log(gain * inner), abs=1e-6)
