"""Values, gradients and optima agree with BoTorch's test functions."""

import numpy as np
import pytest
import torch
from botorch.test_functions import synthetic as botorch_functions

from eign import problems

PEERS = {
    "ackley": (botorch_functions.Ackley, [1, 2, 14]),
    "branin": (botorch_functions.Branin, [2]),
    "cosine": (botorch_functions.Cosine8, [8]),
    "dixon-price": (botorch_functions.DixonPrice, [2, 4, 7]),
    "griewank": (botorch_functions.Griewank, [1, 2, 10]),
    "hartmann": (botorch_functions.Hartmann, [3, 6]),
    "holder-table": (botorch_functions.HolderTable, [2]),
    "levy": (botorch_functions.Levy, [1, 2, 6]),
    "michalewicz": (botorch_functions.Michalewicz, [2, 5, 10]),
    "powell": (botorch_functions.Powell, [4, 8]),
    "rastrigin": (botorch_functions.Rastrigin, [1, 6]),
    "rosenbrock": (botorch_functions.Rosenbrock, [2, 4, 9]),
    "shekel": (botorch_functions.Shekel, [4]),
    "six-hump-camel": (botorch_functions.SixHumpCamel, [2]),
    "styblinski-tang": (botorch_functions.StyblinskiTang, [1, 6]),
}
CASES = [(family, d) for family, (_, dims) in PEERS.items() for d in dims]


@pytest.fixture
def double_tables():
    """BoTorch keeps the tables of Shekel and Hartmann in the default dtype, where 3.6 is off by 1e-7."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def peer(family, d):
    """BoTorch's function, to be maximised."""
    function, dims = PEERS[family]
    by_dim = {} if len(dims) == 1 else {"dim": d}
    return function(**by_dim, negate=not isinstance(function(), botorch_functions.Cosine8))


def random_points_and_corners(box, n=200):
    rng = np.random.default_rng(0)
    unit = np.concatenate([rng.random((n, box.dim)), rng.integers(0, 2, (64, box.dim))])
    return box.from_unit(unit)


def test_every_family_but_the_papers_own_has_a_peer():
    """GP samples and policy search have tests of their own; tests/lab/test_published_runs.py has others' values."""
    drawn = {"gp-sample", "acrobot", "acrobot-ending", "cartpole", "cartpole-fixed"}
    published = {"branin-forrester", "cosine-waves", "g-sobol", "goldstein-price", "wang-freitas"}
    assert {name.rpartition("-")[0] for name in problems.names()} - set(PEERS) - drawn - published == {"mixture"}


@pytest.mark.parametrize(("family", "d"), CASES)
@pytest.mark.usefixtures("double_tables")
def test_values_and_gradients_agree(family, d):
    problem, function = problems.get(family, d), peer(family, d)
    X = random_points_and_corners(problem.bounds)
    values, gradients = problem.evaluate(X)
    points = torch.tensor(X, requires_grad=True)
    expected = function(points, noise=False)
    (expected_gradients,) = torch.autograd.grad(expected.sum(), points)
    np.testing.assert_allclose(values, expected.detach().numpy(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradients, expected_gradients.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("family", "d"), CASES)
def test_the_optimum_agrees_to_the_digits_they_print(family, d):
    expected = peer(family, d).optimal_value
    assert problems.get(family, d).optimum == pytest.approx(expected, rel=5e-5, abs=1e-12)
