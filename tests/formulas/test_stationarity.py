import torch

from eign.formulas import projected_gradient, stationarity

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
