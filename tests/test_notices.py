"""Warnings point at the line of the user, not at one of ours."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest

import eign
from eign.integrations.optuna import GradientSampler
from eign.strategies.sampling import UniformRandom

SQUARE = [(-1.0, 1.0)] * 2


def wrong(x):
    return float(x @ x), -2 * x


def fails(*_):
    raise ZeroDivisionError


def a_wrong_gradient(_):
    eign.minimize(wrong, SQUARE, method="sobol", budget=14, seed=0)


def a_wrong_gradient_told(_):
    opt = eign.Optimizer(SQUARE, method="sobol", seed=0)
    for _ in range(14):
        x = opt.ask()
        opt.tell(x, *wrong(x))


def a_method_that_fails(monkeypatch):
    monkeypatch.setattr(UniformRandom, "propose_one", fails)
    eign.minimize(wrong, SQUARE, method="random", budget=1)


def values_beyond_the_optimum(_):
    eign.plot.convergence([3.0, 1.0], optimum=2.0, regret=True)


def values_beyond_the_optimum_compared(_):
    eign.plot.compare({"a": np.array([[3.0, 1.0]])}, optimum=2.0, regret=True)


def parameters_that_are_no_floats(_):
    def objective(trial):
        return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_int("k", 0, 3)

    optuna.create_study(sampler=GradientSampler("sobol", seed=0)).optimize(objective, n_trials=2)


@pytest.mark.parametrize(
    "case",
    [
        a_wrong_gradient,
        a_wrong_gradient_told,
        a_method_that_fails,
        values_beyond_the_optimum,
        values_beyond_the_optimum_compared,
        parameters_that_are_no_floats,
    ],
)
def test_a_warning_points_here(case, monkeypatch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        case(monkeypatch)
    plt.close("all")
    [warning] = caught  # and is given once
    assert warning.filename == __file__
