"""Improvement formulas against BoTorch's."""

import pytest
import torch
from botorch.acquisition.analytic import _ei_helper, _log_ei_helper
from hypothesis import example, given
from hypothesis import strategies as st

from eign.formulas import expected_improvement, log_h


@given(st.floats(-1e6, 30))
@example(-1e6)
@example(-1.0)
@example(0.0)
def test_log_ei_agrees_with_botorch(u):
    u = torch.tensor(u, dtype=torch.float64)
    assert float(log_h(u)) == pytest.approx(float(_log_ei_helper(u)), rel=1e-10, abs=1e-10)


@given(st.floats(-5, 30))
def test_ei_agrees_with_botorch(u):
    u = torch.tensor(u, dtype=torch.float64)
    one = torch.tensor(1.0, dtype=torch.float64)
    # BoTorch's form cancels: phi(u) + u Phi(u) keeps 1e-16 absolute
    assert float(expected_improvement(u, one, 0.0)) == pytest.approx(float(_ei_helper(u)), rel=1e-12, abs=1e-15)
