"""Given hyperparameters: the surrogate has exactly these, f is left in its own units, and nothing is fitted."""

import json

import numpy as np
import pytest
import torch

from cases import cube
from eign import problems
from eign.data import Observations
from eign.problems.gp_samples import covariance, lengthscale
from eign.strategies import State, strategy
from eign.strategies.surrogate_fit import fitted_surrogate
from eign.study import Optimizer, maximize
from eign.study.handle import handle

GIVEN = {"kernel": "rbf", "hyperparameters": {"lengthscale": 0.3, "outputscale": 2.0}, "n_init": 0}


def data(dim=3, count=12, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((count, dim))
    return Observations(x, 5.0 + 7.0 * np.sin(3 * x).sum(axis=1), 21.0 * np.cos(3 * x))


def surrogate(method, observed, **options):
    chosen = strategy(method)
    state = chosen.start(cube(observed.dim), {**GIVEN, **options}, 0).after(observed)
    return fitted_surrogate(chosen._steps._kind(observed), state, observed)


@pytest.mark.parametrize("method", ["ei", "ei-gn"])
def test_the_posterior_of_f_is_the_textbooks(method):
    """With mean 0, the given kernel in the units of y, and the jitter: 1e-12 of its variance."""
    observed = data()
    model, state = surrogate(method, observed)
    X = np.random.default_rng(1).random((5, 3))
    prior = 2.0 * covariance(observed.x, observed.x, 0.3) + 2e-12 * np.eye(12)
    cross = 2.0 * covariance(X, observed.x, 0.3)
    mean, variance = model.moments(torch.tensor(X))[:2]
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(prior, observed.y), rtol=1e-9)
    np.testing.assert_allclose(variance, 2.0 - np.sum(cross * np.linalg.solve(prior, cross.T).T, axis=1), rtol=1e-7)
    assert state.memory == {}


def test_each_partial_derivative_is_standardised_and_has_the_same_hyperparameters():
    observed = data()
    model, _ = surrogate("ei-gn", observed)
    units = model.standardization
    assert (units.y_shift, units.y_scale) == (0.0, 1.0)
    np.testing.assert_allclose(units.grad_shift, observed.grad.mean(axis=0))
    np.testing.assert_allclose(units.grad_scale, observed.grad.std(axis=0, ddof=1))
    X = np.random.default_rng(1).random((5, 3))
    prior = 2.0 * covariance(observed.x, observed.x, 0.3) + 2e-12 * np.eye(12)
    standardized = (observed.grad[:, 1] - units.grad_shift[1]) / units.grad_scale[1]
    mean = 2.0 * covariance(X, observed.x, 0.3) @ np.linalg.solve(prior, standardized)
    found = model.gradient_posterior(torch.tensor(X)).mean[:, 1]
    np.testing.assert_allclose(found, units.grad_shift[1] + units.grad_scale[1] * mean, rtol=1e-9)


def test_the_joint_process_has_them_in_the_units_of_y():
    model, _ = surrogate("d-ei", data(), hyperparameters={"lengthscale": [0.2, 0.3, 0.4], "outputscale": 50.0})
    (term,) = model.hyperparameters.terms
    np.testing.assert_array_equal(term.lengthscale, [0.2, 0.3, 0.4])
    assert term.outputscale == 50.0
    assert (model.standardization.y_scale, *model.standardization.grad_scale) == (1.0,) * 4


@pytest.mark.parametrize("method", ["ei", "ei-gn", "ei-g", "thompson", "d-log-ei"])
def test_methods_run_and_resume_with_them(method):
    small = {"restarts": 2, "raw_samples": 32}
    options = {**GIVEN, "n_init": 4, **{k: v for k, v in small.items() if k in strategy(method).options}}
    opt = Optimizer([(0, 1)] * 2, method=method, seed=0, options=options)
    for _ in range(7):
        x = opt.ask()
        opt.tell(x, float(np.sin(5 * x[0]) + x[1] ** 2), [5 * np.cos(5 * x[0]), 2 * x[1]])
    assert State.from_json(json.loads(json.dumps(handle(opt).state.to_json()))) == handle(opt).state
    assert "hyperparameters" not in handle(opt).state.memory


def test_with_noise_the_best_point_is_the_surrogates():
    opt = Optimizer([(0, 1)], method="ei", seed=0, options={**GIVEN, "n_init": 5})
    x = np.linspace(0, 1, 9)[:, None]
    y = (x[:, 0] - 0.5) ** 2
    y[0] = -0.3  # an outlier, told with a large variance
    opt.tell(x, y, y_var=np.where(np.arange(9) == 0, 1.0, 1e-4))
    assert opt.best.x[0] == pytest.approx(0.5, abs=0.13)


def test_the_within_model_study_runs():
    """The paper's setting in few evaluations: the problem's own lengthscale, outputscale 1, f as it is."""
    problem = problems.get("gp-sample-4")
    options = {
        "kernel": "rbf",
        "hyperparameters": {"lengthscale": lengthscale(4), "outputscale": 1.0},
        "restarts": 2,
        "raw_samples": 64,
    }
    result = maximize(problem, problem.bounds, method="ei-gn", budget=30, seed=0, options=options)
    assert result.fun > result.history.y[:12].max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hyperparameters": 0.3}, "a dict with lengthscale, a positive number"),
        ({"hyperparameters": {"outputscale": 1.0}}, "a dict with lengthscale"),
        ({"hyperparameters": {"lengthscale": 0.1, "mean": 0.0}}, "a dict with lengthscale"),
        ({"hyperparameters": {"lengthscale": 0.0}}, "a dict with lengthscale"),
        ({"hyperparameters": {"lengthscale": [0.1, "a"]}}, "a dict with lengthscale"),
        (
            {"hyperparameters": {"lengthscale": [0.1] * 3}},
            "'d-ei': hyperparameters have 3 lengthscales.*or 2",
        ),
        ({"hyperparameters": {"lengthscale": 0.1}, "noise": "learn"}, 'noise="learn" needs fitting'),
        ({"restarts": 9, "raw_samples": 4}, "restarts=9 and raw_samples=4, expected restarts <= raw_samples"),
        (
            {"hyperparameters": {"lengthscale": 0.1}, "kernel": "additive"},
            "kernels matern52, rbf, got 'additive'",
        ),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Optimizer([(0, 1)] * 2, method="d-ei", options=options)
