"""The MAP objective of the joint model: gradient, mean, curvature, and what a fit finds."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from eign.data import Observations
from eign.models import JointGradientGP
from eign.models.derivative_kernels import KERNELS, Array, default_terms
from eign.models.joint.fitting import (
    JointData,
    _best_starts,
    factor_rows,
    fit_hyperparameters,
    negative_log_likelihood,
    negative_log_posterior,
    profile_log_likelihoods,
)
from eign.models.joint.hyperparameters import JointHyperparameters, starts


def wavy(n: int = 12, d: int = 3, seed: int = 0, missing: float = 0.0) -> tuple[Array, Array, Array]:
    """Points, values and gradients of a smooth function, and variances (all unknown)."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    w = np.arange(1, d + 1)
    phase = x @ w
    observed = np.column_stack([np.sin(phase) + x[:, 0] ** 2, np.cos(phase)[:, None] * w])
    observed[:, 1] += 2 * x[:, 0]
    observed[rng.random(observed.shape) < missing] = np.nan
    return x, observed, np.full(observed.shape, np.nan)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("missing", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("learned", [False, True])
def test_gradient_of_the_objective(kernel: str, missing: float, learned: bool) -> None:
    data = JointData.of(*wavy(missing=missing))
    hyper = JointHyperparameters(default_terms(kernel, 3), (1e-3, 1e-2), learned)
    theta = hyper.theta + np.random.default_rng(1).normal(0.0, 0.3, len(hyper.theta))
    gradient = negative_log_posterior(theta, data, hyper).gradient
    h = 1e-5
    for j in range(len(theta)):
        step = h * np.eye(len(theta))[j]
        ahead = negative_log_posterior(theta + step, data, hyper).value
        behind = negative_log_posterior(theta - step, data, hyper).value
        # Values of order 1e2 with relative error 1e-14 or better, over 2h; plus the h^2 error.
        np.testing.assert_allclose(gradient[j], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-6)


def test_gradient_includes_the_nugget() -> None:
    """A nugget as large as 0.1 would show a missing derivative of the diagonal."""
    data = JointData.of(*wavy())
    hyper = JointHyperparameters(default_terms("additive+full", 3))
    theta, h = hyper.theta, 1e-5
    gradient = negative_log_posterior(theta, data, hyper, eta=0.1).gradient
    for j in range(len(theta)):
        step = h * np.eye(len(theta))[j]
        ahead = negative_log_posterior(theta + step, data, hyper, eta=0.1).value
        behind = negative_log_posterior(theta - step, data, hyper, eta=0.1).value
        np.testing.assert_allclose(gradient[j], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-6)


def test_mean_is_the_optimal_one() -> None:
    """Shifting all values shifts the mean and leaves the objective as it is."""
    x, observed, variance = wavy()
    hyper = JointHyperparameters(default_terms("matern52", 3))
    plain = JointData.of(x, observed, variance)
    observed[:, 0] += 7.0
    shifted = JointData.of(x, observed, variance)
    assert factor_rows(shifted, hyper).mean == pytest.approx(factor_rows(plain, hyper).mean + 7.0, abs=1e-8)
    values = [negative_log_posterior(hyper.theta, data, hyper).value for data in (plain, shifted)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_without_values_the_mean_is_zero() -> None:
    x, observed, variance = wavy()
    observed[:, 0] = np.nan
    rows = factor_rows(JointData.of(x, observed, variance), JointHyperparameters(default_terms("matern52", 3)))
    assert rows.mean == 0.0
    assert np.isfinite(rows.weights).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_fit_ends_at_a_stationary_point_and_stays_there(kernel: str) -> None:
    data = JointData.of(*wavy(n=20))
    cold, end = fit_hyperparameters(data, JointHyperparameters(default_terms(kernel, 3)), warm=False)
    assert end.converged.all()
    again, second = fit_hyperparameters(data, cold, warm=True)
    assert second.evaluations[0] <= 3
    # 5e-6 per row is what the search may leave on the table, twice that is the bar.
    assert abs(second.value[0] - end.value[0]) <= 1e-5 * data.pairs.rows
    assert np.isfinite(again.theta).all()


def test_learned_noise_is_found() -> None:
    rng = np.random.default_rng(5)
    x, observed, variance = wavy(n=60)
    observed[:, 0] += rng.normal(0.0, 0.1, 60)
    observed[:, 1:] += rng.normal(0.0, 0.5, (60, 3))
    hyper = JointHyperparameters(default_terms("matern52", 3), (1e-2, 1e-2), learned=True)
    fitted, _ = fit_hyperparameters(JointData.of(x, observed, variance), hyper, warm=False)
    # Sample variances of 60 and 180 numbers: relative standard errors of 0.18 and 0.11, four of them allowed.
    assert fitted.noise[0] == pytest.approx(0.1**2, rel=0.75)
    assert fitted.noise[1] == pytest.approx(0.5**2, rel=0.45)


def test_starts_are_judged_by_their_posterior() -> None:
    """The closed-form effect of a common factor on all outputscales is what evaluating there gives."""
    data = JointData.of(*wavy(n=15))
    hyper = JointHyperparameters(default_terms("additive+full", 3))
    best = _best_starts(data, hyper)
    assert len(best) == 9
    values = [negative_log_posterior(theta, data, hyper).value for theta in best]
    np.testing.assert_allclose(values, np.sort(values), rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_a_cold_fit_of_a_sum_finds_the_best_of_many_descents(seed: int) -> None:
    """Ripples on a bowl: the lengthscale of each coordinate may settle on either, and few of the optima are good."""
    x = np.random.default_rng(seed).random((40, 3))
    z = 8.0 * (x - 0.4)
    observed = np.column_stack([(np.cos(6.0 * z) - 0.5 * z**2).sum(1), 8.0 * (-6.0 * np.sin(6.0 * z) - z)])
    observed /= observed[:, 0].std()
    observed[:, 0] -= observed[:, 0].mean()
    data, hyper = JointData.of(x, observed, np.full(observed.shape, np.nan)), default_terms("additive+full", 3)
    kernel = JointHyperparameters(hyper)
    found = fit_hyperparameters(data, kernel, warm=False)[1].value[0]
    others = [fit_hyperparameters(data, kernel.at(start), warm=True)[1].value[0] for start in starts(kernel)]
    assert found <= min(others) + 1e-5 * data.pairs.rows


@pytest.mark.parametrize("kernel", ["matern52", "additive+full"])
def test_memory_is_one_matrix(kernel: str) -> None:
    """At 7,500 rows a matrix takes 450 MB: a factorisation holds one, and an evaluation of the objective no second."""
    data = JointData.of(*wavy(n=100, d=8))
    hyper = JointHyperparameters(default_terms(kernel, 8))
    workspace = np.empty((900, 900))
    tracemalloc.start()
    try:
        negative_log_posterior(hyper.theta, data, hyper, out=workspace)
        beside = tracemalloc.get_traced_memory()[1] / workspace.nbytes
        tracemalloc.reset_peak()
        factor_rows(data, hyper)
        factored = tracemalloc.get_traced_memory()[1] / workspace.nbytes
    finally:
        tracemalloc.stop()
    # What is left is of size n^2 d, a ninth of the matrix for each array at d = 8; two terms hold more of them.
    assert beside < (0.9 if kernel == "matern52" else 2.0)
    assert factored < (1.5 if kernel == "matern52" else 2.0)


def _best_over_outputscale(data: JointData, hyper: JointHyperparameters) -> float:
    """The largest likelihood over a common factor of outputscales and noise, by a search in one variable."""

    def cost(log_factor: float) -> float:
        terms = tuple(replace(term, outputscale=term.outputscale * np.exp(log_factor)) for term in hyper.terms)
        noise = tuple(level * np.exp(log_factor) for level in hyper.noise)
        scaled = replace(data, noise=data.noise * np.exp(log_factor))
        rows = factor_rows(scaled, replace(hyper, terms=terms, noise=noise))
        return negative_log_likelihood(rows, data.pairs.row_component)

    return -float(minimize_scalar(cost, bounds=(-15.0, 15.0), method="bounded", options={"xatol": 1e-7}).fun)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("missing", "level"), [(0.0, 0.0), (0.4, 0.0), (0.2, 1e-2)])
def test_profile_is_the_likelihood_at_the_best_outputscale(kernel: str, missing: float, level: float) -> None:
    x, observed, variance = wavy(missing=missing)
    hyper = JointHyperparameters(default_terms(kernel, 3), (level, level))
    data = JointData.of(x, observed, variance)
    others = [data.targets, 40.0 * data.targets, np.tanh(data.targets), data.targets**3]
    found = profile_log_likelihoods(data, np.stack(others), hyper, warm=True)
    expected = [_best_over_outputscale(replace(data, targets=targets), hyper) for targets in others]
    # The search ends within 1e-7 of a smooth optimum, and the likelihood has rounding errors of 1e-12 times 1e2.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
    # Forty times the same numbers are less dense by a factor of forty each.
    assert found[1] == pytest.approx(found[0] - data.pairs.rows * np.log(40.0), abs=1e-8)


def test_profile_of_a_model_that_was_never_fitted_is_the_best_over_the_starts() -> None:
    data = JointData.of(*wavy())
    hyper = JointHyperparameters(default_terms("matern52", 3))
    each = [profile_log_likelihoods(data, data.targets[None], hyper.at(theta), warm=True)[0] for theta in starts(hyper)]
    assert len(set(each)) > 1
    assert profile_log_likelihoods(data, data.targets[None], hyper, warm=False)[0] == max(each)


def test_profile_of_a_model_is_that_of_its_own_data_in_the_units_given() -> None:
    x, observed, _ = wavy(missing=0.2)
    model = JointGradientGP(*(torch.from_numpy(part) for part in (x, observed[:, :1], observed[:, 1:])))
    model.fit_hyperparameters()
    own = Observations(x, observed[:, 0], observed[:, 1:])
    profile = model.profile_log_likelihoods([own, own])
    assert profile[0] == profile[1]
    # The fit has a prior on the outputscale, so that a little likelihood is left.
    assert model.log_likelihood() <= profile[0] <= model.log_likelihood() + 1.0
    tenfold = Observations(x, 10 * observed[:, 0], 10 * observed[:, 1:])
    numbers = np.isfinite(observed).sum()
    assert model.profile_log_likelihoods([tenfold])[0] == pytest.approx(profile[0] - numbers * np.log(10), abs=1e-7)
