"""The normal tail against 60-digit arithmetic."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from eign.formulas import normal_tail

from .reference import mp_tail_moments


@given(st.floats(-1e3, 1e3))
@example(4.0)
@example(3.9999999)
@example(-40.0)
@example(1e3)
def test_normal_tail_keep_their_digits(z):
    _, excess, variance = normal_tail(torch.tensor(z, dtype=torch.float64))
    exact_excess, exact_variance = mp_tail_moments(z)
    # left of the switch at z = 4 the definition loses z^4 = 256 units in the last place
    assert float(excess) == pytest.approx(float(exact_excess), rel=1e-12)
    assert float(variance) == pytest.approx(float(exact_variance), rel=3e-12)


@pytest.mark.parametrize("z", [-1e12, -1e6, 1e6, 1e12, 1e100])
def test_normal_tail_far_out(z):
    _, excess, variance = normal_tail(torch.tensor(z, dtype=torch.float64))
    assert float(excess) == pytest.approx(-z if z < 0 else 1 / z, rel=1e-11)
    assert float(variance) == pytest.approx(1.0 if z < 0 else z**-2, rel=1e-11)


def test_normal_tail_have_two_derivatives():
    z = torch.tensor([-30.0, -3.0, 0.0, 2.0, 3.5, 4.5, 9.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(normal_tail, z)
    assert torch.autograd.gradgradcheck(normal_tail, z)
