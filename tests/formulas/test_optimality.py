import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from eign.formulas import optimality_numpy, projected_gradient, stationarity

from .posteriors import tensor


def test_only_components_that_point_out_of_the_box_are_dropped():
    x = tensor([[0.0, 0.0, 1.0, 1.0, 0.5]])
    grad = tensor([[-1.0, 2.0, 3.0, -4.0, 5.0]])
    assert projected_gradient(x, grad).tolist() == [[0.0, 2.0, 0.0, -4.0, 5.0]]
    assert stationarity(x, grad).tolist() == [4.0 + 16.0 + 25.0]


def test_a_corner_maximum_is_stationary_and_a_corner_minimum_is_not():
    corner, downhill = tensor([1.0, 0.0]), tensor([2.0, -3.0])
    assert stationarity(corner, downhill) == 0
    assert stationarity(corner, -downhill) == 13


def test_bounds_and_border_can_be_given():
    lower, upper = tensor([-2.0, 0.0]), tensor([3.0, 10.0])
    x, grad = tensor([3.0 - 1e-10, 5.0]), tensor([1.0, 1.0])
    assert projected_gradient(x, grad, lower=lower, upper=upper).tolist() == [1.0, 1.0]
    assert projected_gradient(x, grad, lower=lower, upper=upper, border=1e-9).tolist() == [0.0, 1.0]


def test_missing_components_stay_missing():
    grad = tensor([float("nan"), 1.0])
    assert projected_gradient(tensor([0.0, 0.5]), grad)[0].isnan()


def test_derivative_passes_through_free_components_only():
    grad = torch.tensor([3.0, 2.0], dtype=torch.float64, requires_grad=True)
    (by_grad,) = torch.autograd.grad(stationarity(tensor([1.0, 0.5]), grad), grad)
    assert by_grad.tolist() == [0.0, 4.0]


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_form_in_numpy_has_the_same_numbers(dim, seed):
    rng = np.random.default_rng(seed)
    x, grad = rng.choice([0.0, 0.3, 1.0], (5, dim)), rng.choice([-2.0, 0.0, 0.5], (5, dim))
    expected = projected_gradient(torch.tensor(x), torch.tensor(grad)).numpy()
    np.testing.assert_array_equal(optimality_numpy.projected_gradient(x, grad), expected)
