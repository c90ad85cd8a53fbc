import itertools
import json

import numpy as np
import pytest
from scipy.stats import gamma, lognorm

from eign.models.independent.fitting import WarmStart, bounds, fit_problems
from eign.models.independent.map_objective import FitProblem, negative_log_posterior, negative_log_prior
from eign.models.kernels import correlation, correlation_matrix

DIM = 3


def problem(n: int, seed: int = 0) -> FitProblem:
    rng = np.random.default_rng(seed)
    x = rng.random((n, DIM))
    y = np.sin(5 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    return FitProblem(x, (y - y.mean()) / y.std(ddof=1), rng.uniform(1e-3, 1e-2, n))


def direct(theta: np.ndarray, data: FitProblem, kernel: str, mean: float) -> float:
    """J written down from its definition, without any of the shortcuts."""
    covariance = np.exp(theta[DIM]) * correlation_matrix(correlation(kernel), data.x / np.exp(theta[:DIM]))[0]
    covariance += np.diag(data.noise + np.exp(theta[DIM + 1 :]).sum())
    residual = data.y - mean
    log_likelihood = -0.5 * residual @ np.linalg.solve(covariance, residual)
    log_likelihood -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    log_prior = lognorm(0.7, scale=0.4).logpdf(np.exp(theta[:DIM])).sum()
    log_prior += gamma(2.0, scale=2.0).logpdf(np.exp(theta[DIM]))
    log_prior += lognorm(1.0, scale=np.exp(-4.0)).logpdf(np.exp(theta[DIM + 1 :])).sum()
    return float(-log_likelihood - log_prior)


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("learned", [[], [-3.0]])
def test_value_mean_and_gradient(kernel: str, learned: list[float]) -> None:
    data = problem(15)
    theta = np.array([-0.5, 0.1, 0.4, 0.3, *learned])
    result = negative_log_posterior(theta, data, correlation(kernel))
    assert result.value == pytest.approx(direct(theta, data, kernel, result.mean), rel=1e-11)
    for shift in (-1e-3, 1e-3):
        assert direct(theta, data, kernel, result.mean + shift) > result.value
    for j in range(len(theta)):
        step = np.zeros(len(theta))
        step[j] = 1e-5
        high, low = (negative_log_posterior(theta + sign * step, data, correlation(kernel)).value for sign in (1, -1))
        assert result.gradient[j] == pytest.approx((high - low) / 2e-5, rel=1e-6, abs=1e-6)


def test_curvature_is_the_mean_of_observed_and_expected_hessian_for_a_linear_parameter() -> None:
    # K is linear in s, so the average information of log s can be written down from its definition.
    data = problem(15)
    theta = np.array([-0.5, 0.1, 0.4, 0.3])
    s = np.exp(theta[DIM])
    correlations = correlation_matrix(correlation("rbf"), data.x / np.exp(theta[:DIM]))[0]
    inverse = np.linalg.inv(s * correlations + np.diag(data.noise))
    ones = np.ones(len(data.y))
    projected = inverse - np.outer(inverse @ ones, inverse @ ones) / (ones @ inverse @ ones)
    observed = data.y @ projected @ correlations @ projected @ correlations @ projected @ data.y * s**2
    result = negative_log_posterior(theta, data, correlation("rbf"))
    assert result.curvature[DIM, DIM] == pytest.approx(0.5 * observed + 0.5 * s, rel=1e-9)
    assert np.linalg.eigvalsh(result.curvature).min() > 0


def test_prior_derivatives() -> None:
    theta = np.array([-0.5, 0.1, 0.4, 0.3, -3.0])
    _, slopes, bends = negative_log_prior(theta, DIM)
    for j, step in enumerate(1e-5 * np.eye(5)):
        (high, up, _), (low, down, _) = (negative_log_prior(theta + sign * step, DIM) for sign in (1, -1))
        assert slopes[j] == pytest.approx((high - low) / 2e-5, rel=1e-8)
        assert bends[j] == pytest.approx((up[j] - down[j]) / 2e-5, rel=1e-8)


def test_stacked_and_single_evaluations_agree() -> None:
    problems = [problem(12, seed) for seed in range(4)]
    theta = np.random.default_rng(0).normal(-0.5, 0.3, (4, DIM + 1))
    together = FitProblem(*(np.stack(part) for part in zip(*problems, strict=True)))
    stacked = negative_log_posterior(theta, together, correlation("matern52"))
    for c in range(4):
        single = negative_log_posterior(theta[c], problems[c], correlation("matern52"))
        assert stacked.value[c] == pytest.approx(single.value, rel=1e-13)
        np.testing.assert_allclose(stacked.gradient[c], single.gradient, rtol=1e-10, atol=1e-11)


def test_fit_finds_stationary_points_and_beats_every_start() -> None:
    problems = [problem(20, seed) for seed in range(DIM + 1)]
    result = fit_problems(problems, correlation("matern52"))
    assert result.converged.all()
    for theta, mean, value, data in zip(result.theta, result.mean, result.value, problems, strict=True):
        at_end = negative_log_posterior(theta, data, correlation("matern52"))
        assert at_end.value == pytest.approx(value, rel=1e-12)
        assert at_end.mean == pytest.approx(mean, rel=1e-9)
        promise = 0.5 * at_end.gradient @ np.linalg.solve(at_end.curvature, at_end.gradient)
        assert promise < 1e-3
        for length in (0.1, 0.4, 1.5):
            start = np.append(np.full(DIM, np.log(length)), 0.0)
            assert value < negative_log_posterior(start, data, correlation("matern52")).value


def test_warm_fit_needs_few_evaluations_and_survives_storage() -> None:
    before = [problem(41, seed) for seed in range(DIM + 1)]
    first = fit_problems([FitProblem(*(part[:40] for part in data)) for data in before], correlation("matern52"))
    stored = WarmStart.from_json(json.loads(json.dumps(first.warm_start.to_json())))
    again = fit_problems(before, correlation("matern52"), warm=first.warm_start)
    np.testing.assert_array_equal(again.theta, fit_problems(before, correlation("matern52"), warm=stored).theta)
    assert again.evaluations < 8 * (DIM + 1) < first.evaluations
    fresh = fit_problems(before, correlation("matern52"))
    assert (again.value <= fresh.value + 1e-4 * 41).all()


def test_a_fresh_start_is_followed_over_four_fits_and_then_has_to_be_close() -> None:
    data, kernel = [problem(44, seed) for seed in range(DIM + 1)], correlation("matern52")
    warm = fit_problems([FitProblem(*(part[:39] for part in one)) for one in data], kernel).warm_start
    challenged = (40 // 4) % len(data)
    # What an earlier size left is no part of this.
    warm = WarmStart(warm.theta, warm.steps, warm.changes, np.zeros(0, dtype=np.intp), np.zeros((0, DIM + 1)))
    heights = []
    for n in (40, 41, 42, 43):
        seen = [FitProblem(*(part[:n] for part in one)) for one in data]
        result = fit_problems(seen, kernel, warm=warm)
        warm = result.warm_start
        rivals = warm.rival_theta[warm.rival_owner == challenged]
        heights += [float(negative_log_posterior(theta, seen[challenged], kernel).value) for theta in rivals]
        assert (warm.rival_owner == challenged).all()
        # Three evaluations for the fresh one, a handful for each that is warm.
        assert result.evaluations <= 3 + 6 * len(data)
    # It came down from fit to fit, was still far above the optimum at the last of them, and was dropped.
    assert len(heights) == 3
    assert all(after < before for before, after in itertools.pairwise(heights))
    assert heights[-1] > result.value[challenged] + 5.0


def test_problems_of_different_sizes_and_without_observations() -> None:
    empty = FitProblem(np.empty((0, DIM)), np.empty(0), np.empty(0))
    result = fit_problems([problem(20), problem(7, 1), empty, problem(20, 3)], correlation("matern52"))
    alone = fit_problems([problem(20)], correlation("matern52"))
    assert result.value[0] <= alone.value[0] + 1e-3
    # Without observations: the mode of the priors, exp(mu - sigma^2) and (a - 1) / rate.
    np.testing.assert_allclose(np.exp(result.theta[2]), [*[0.4 * np.exp(-0.49)] * DIM, 2.0], rtol=1e-2)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_targets_stay_within_bounds(value: float) -> None:
    rng = np.random.default_rng(0)
    data = FitProblem(rng.random((30, DIM)), np.full(30, value), np.full(30, 1e-6))
    result = fit_problems([data], correlation("matern52"), learn_noise=True)
    low, high = bounds(DIM, learn_noise=True)
    assert np.isfinite(result.value).all()
    assert ((low <= result.theta) & (result.theta <= high)).all()
    assert result.mean[0] == pytest.approx(value)


def test_learned_noise_is_found() -> None:
    rng = np.random.default_rng(1)
    x = rng.random((120, DIM))
    y = np.sin(4 * x[:, 0]) + rng.normal(size=120) * 0.3
    data = FitProblem(x, y, np.full(120, 1e-6))
    result = fit_problems([data], correlation("matern52"), learn_noise=True)
    assert np.exp(result.theta[0, -1]) == pytest.approx(0.09, rel=0.35)  # the estimate's own error is 15 per cent
