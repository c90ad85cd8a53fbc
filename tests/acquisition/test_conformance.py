"""What every acquisition must do, on either surrogate, with and without missing observations."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim import optimize_acqf

from acquisition_cases import ACQUISITIONS, MODELS, WITH_ALPHA, surrogate
from eign.acquisition import EI, incumbent
from eign.acquisition.with_gradients import TwoTermAcquisition
from joint_cases import random_points

D = 3


@pytest.fixture(scope="module", params=MODELS)
def model_name(request):
    return request.param


@pytest.fixture(scope="module", params=[0.0, 0.15], ids=["complete", "missing"])
def model(request, model_name):
    return surrogate(model_name, d=D, missing=request.param)


@pytest.fixture(params=ACQUISITIONS)
def acquisition(request, model):
    return ACQUISITIONS[request.param](model)


def relative(found, expected) -> float:
    """Largest difference in units of the largest magnitude."""
    found, expected = (np.asarray(part) for part in (found, expected))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_batch_shapes(acquisition):
    X = random_points(2, 4, 1, D)
    together = acquisition(X)
    assert together.shape == (2, 4)
    assert together.dtype == torch.float64
    # A product of matrices of another size rounds otherwise, and the variance near the data amplifies it.
    assert acquisition(X[1, 2]).item() == pytest.approx(together[1, 2].item(), rel=1e-8)
    assert acquisition(X[1]).shape == (4,)


def test_more_than_one_point_is_refused(acquisition):
    with pytest.raises(AssertionError, match="q=1"):
        acquisition(random_points(4, 2, D))


def test_gradient_agrees_with_finite_differences(acquisition):
    X = random_points(6, D)
    _, gradient = acquisition.value_and_gradient(X.numpy())
    step = 1e-5
    shifts = step * np.eye(D)
    ahead, behind = (
        np.stack([acquisition.evaluate(X.numpy() + sign * shift) for shift in shifts], axis=1) for sign in (1, -1)
    )
    # Central differences lose step^2 to curvature, and rounding / step to the variance next to the data.
    assert relative(gradient, (ahead - behind) / (2 * step)) < 1e-5


def test_path_without_graph_gives_the_same_numbers(acquisition):
    X = random_points(30, D)
    x = X.clone().requires_grad_()
    value = acquisition(x.unsqueeze(-2))
    (gradient,) = torch.autograd.grad(value.sum(), x)
    fast = acquisition.value_and_gradient(X.numpy())
    assert relative(fast.value, value.detach()) < 1e-9
    assert relative(acquisition.evaluate(X.numpy()), value.detach()) < 1e-9
    assert relative(fast.gradient, gradient) < 1e-9


def test_optimize_acqf(acquisition):
    bounds = torch.stack([torch.zeros(D), torch.ones(D)]).to(torch.float64)
    starts = random_points(64, 1, D)
    starts = starts[acquisition(starts).topk(4).indices]
    x, value = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=4, batch_initial_conditions=starts, options={"maxiter": 30}
    )
    assert x.shape == (1, D)
    assert value > acquisition(starts).max()


@pytest.mark.parametrize("name", WITH_ALPHA)
def test_without_stationarity_it_is_expected_improvement(model, name):
    X = random_points(20, 1, D)
    plain = EI(model, incumbent(model).best_f)(X)
    assert relative(WITH_ALPHA[name](model, alpha=0.0)(X).detach(), plain.detach()) < 1e-9


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_units_of_y_change_nothing_but_the_units_of_the_answer(model_name, name):
    shift, scale = 40.0, 1e3
    X = random_points(20, D).numpy()
    plain, other = (
        ACQUISITIONS[name](surrogate(model_name, d=D, **units)).evaluate(X)
        for units in ({}, {"shift": shift, "scale": scale})
    )
    expected = {"LogEI": plain + np.log(scale), "UCB": shift + scale * plain}.get(name, scale * plain)
    # The fits stop at slightly different hyperparameters, because the data round differently.
    assert relative(other, expected) < 1e-5


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_botorch_can_construct_it(model, name):
    acquisition = ACQUISITIONS[name](model)
    options = {"xi": 0.3} if name == "EI-xi" else {}
    arguments = get_acqf_input_constructor(type(acquisition))(model=model, training_data=None, **options)
    X = random_points(5, 1, D)
    assert torch.equal(type(acquisition)(**arguments)(X), acquisition(X))


@pytest.mark.parametrize("name", ["EIGN", "EIgBound"])
def test_terms_add_up(model, name):
    acquisition = ACQUISITIONS[name](model)
    assert isinstance(acquisition, TwoTermAcquisition)
    X = random_points(10, D).numpy()
    improvement, increase = acquisition.terms(X)
    scale = model.standardization.y_scale
    assert relative(scale * (improvement - acquisition.alpha * increase), acquisition.evaluate(X)) < 1e-14
    other = acquisition.weighted(0.0, 2.0)
    assert relative(-2.0 * scale * increase, other.value_and_gradient(X).value) < 1e-9
    assert acquisition.weights == (1.0, acquisition.alpha)


@pytest.mark.parametrize("order", [("eign.acquisition", "registry"), ("registry", "eign.acquisition")])
def test_botorch_knows_our_acquisitions_whoever_is_imported_first(order):
    registry = "botorch.acquisition.input_constructors"
    imports = "; ".join(f"import {registry if name == 'registry' else name}" for name in order)
    program = f"{imports}; {registry}.get_acqf_input_constructor(eign.acquisition.EIGN); print('known')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout == "known\n"


def test_our_search_does_not_load_the_registry_nor_jax():
    program = (
        "import sys, eign; eign.Optimizer([(0, 1)] * 2, seed=0).ask(); "
        "print([name for name in ('jax', 'botorch.acquisition.input_constructors') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout == "[]\n"
