import warnings

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from eign.models import Hyperparameters, IndependentGradientGP, fit
from eign.models.independent.processes import condition, moments_and_jacobians
from eign.standardization import Standardization

DIM = 2


def observed(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    x = torch.rand(n, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x, *values(x)


def values(at: Tensor) -> tuple[Tensor, Tensor]:
    x = at.clone().requires_grad_()
    y = (6 * x[:, 0]).sin() + (x[:, 1] - 0.3) ** 2
    (grad,) = torch.autograd.grad(y.sum(), x)
    return y.detach().unsqueeze(-1), grad


def points(*shape: int, seed: int = 9) -> Tensor:
    return torch.rand(*shape, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def gp() -> IndependentGradientGP:
    return fit(IndependentGradientGP(*observed(20)))


def test_it_interpolates_values_and_gradients(gp: IndependentGradientGP) -> None:
    x, y, grad = observed(20)
    # The jitter of 1e-9 allows residuals of about 3e-5 prior standard deviations.
    torch.testing.assert_close(gp.posterior(x).mean, y, rtol=0, atol=2e-5)
    torch.testing.assert_close(gp.gradient_posterior(x).mean, grad, rtol=0, atol=3e-4)
    assert (gp.jitter == 1e-9).all()


def test_append_equals_a_fresh_factorisation(gp: IndependentGradientGP) -> None:
    x, y, grad = observed(26, seed=5)
    grown = gp.append(x[:3], y[:3], grad[:3]).append(x[3:], y[3:], grad[3:])
    extended = grown._conditioned()
    fresh = condition(extended.kernel, grown.hyperparameters, extended.data)
    test = points(30).numpy()
    for mine, other in zip(moments_and_jacobians(extended, test), moments_and_jacobians(fresh, test), strict=True):
        for part, expected in zip(mine, other, strict=True):
            np.testing.assert_allclose(part, expected, rtol=1e-8, atol=1e-8)
    assert len(gp.observations) == 20
    assert len(grown.observations) == 46
    assert grown.standardization is gp.standardization


def test_missing_components_are_as_if_they_had_not_been_given() -> None:
    x, y, grad = observed(15)
    units = Standardization(0.1, 0.8, np.array([0.2, -0.1]), np.array([2.0, 0.5]))
    holes = grad.clone()
    holes[3:7, 1] = torch.nan
    gappy = IndependentGradientGP(x, y, holes, standardization=units)
    hyper = Hyperparameters.shared(DIM, lengthscale=[0.3, 0.6], outputscale=1.3, mean=0.2)
    gappy = gappy.with_hyperparameters(hyper)
    kept = torch.ones(15, dtype=torch.bool)
    kept[3:7] = False
    dropped = IndependentGradientGP(x[kept], y[kept], grad[kept], standardization=units).with_hyperparameters(hyper)
    complete = IndependentGradientGP(x, y, grad, standardization=units).with_hyperparameters(hyper)
    test = points(12)
    mine, jacobians = gappy.moments_and_jacobians(test)
    without, without_jacobians = dropped.moments_and_jacobians(test)
    whole, _ = complete.moments_and_jacobians(test)
    torch.testing.assert_close(mine.grad_mean[:, 1], without.grad_mean[:, 1], rtol=0, atol=1e-9)
    torch.testing.assert_close(mine.grad_variance[:, 1], without.grad_variance[:, 1], rtol=0, atol=1e-9)
    torch.testing.assert_close(jacobians.grad_variance[:, 1], without_jacobians.grad_variance[:, 1], rtol=0, atol=1e-8)
    torch.testing.assert_close(mine.mean, whole.mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(mine.grad_mean[:, 0], whole.grad_mean[:, 0], rtol=0, atol=1e-12)
    assert not torch.allclose(mine.grad_mean[:, 1], whole.grad_mean[:, 1], atol=1e-3)


def test_without_any_gradient_the_partial_derivatives_keep_their_prior() -> None:
    x, y, _ = observed(10)
    gp = fit(IndependentGradientGP(x, y))
    result = gp.moments(points(5))
    assert torch.isfinite(result.mean).all()
    expected = torch.from_numpy(gp.hyperparameters.outputscale[1:] * gp.standardization.grad_scale**2)
    torch.testing.assert_close(result.grad_variance, expected.expand(5, DIM))


def test_known_noise_keeps_the_mean_away_from_what_it_makes_doubtful() -> None:
    x, y, grad = observed(12)
    y_off = y.clone()
    y_off[4] += 2.0
    variances = torch.full_like(y, torch.nan)
    variances[4] = 100.0
    hyper = Hyperparameters.shared(DIM, lengthscale=0.4)
    trusting = IndependentGradientGP(x, y_off, grad).with_hyperparameters(hyper)
    doubting = IndependentGradientGP(x, y_off, grad, Yvar=variances).with_hyperparameters(hyper)
    assert abs(trusting.posterior(x[4:5]).mean - y_off[4]).item() < 0.01
    assert abs(doubting.posterior(x[4:5]).mean - y_off[4]).item() > 0.5


def test_units_of_y_change_nothing_but_units(gp: IndependentGradientGP) -> None:
    x, y, grad = observed(20)
    scale, shift = 1e-7, 3.0
    other = fit(IndependentGradientGP(x, scale * y + shift, scale * grad))
    test = points(6, 1)
    np.testing.assert_allclose(other.hyperparameters.lengthscale, gp.hyperparameters.lengthscale, rtol=1e-4)
    torch.testing.assert_close((other.posterior(test).mean - shift) / scale, gp.posterior(test).mean, rtol=0, atol=1e-5)
    ratio = other.posterior(test).variance / gp.posterior(test).variance
    torch.testing.assert_close(ratio, torch.full_like(ratio, scale**2), rtol=1e-3, atol=0)


def test_a_fit_starts_from_the_last_one(gp: IndependentGradientGP) -> None:
    x, y, grad = observed(21, seed=3)
    grown = gp.append(x[20:], y[20:], grad[20:])
    result = grown.fit_hyperparameters()
    assert result.evaluations < 10 * (DIM + 1)
    stored = Hyperparameters.from_json(gp.hyperparameters.to_json())
    np.testing.assert_array_equal(stored.lengthscale, gp.hyperparameters.lengthscale)
    rebuilt = IndependentGradientGP(*observed(20)).with_hyperparameters(stored)
    for mine, other in zip(rebuilt.moments(points(3)), gp.moments(points(3)), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("q", [1, 3])
def test_conditioning_equals_appending_values(gp: IndependentGradientGP, q: int) -> None:
    new_x, new_y = points(q, seed=2), torch.randn(q, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    appended = gp.append(new_x, new_y).posterior(points(4, 2))
    conditioned = gp.condition_on_observations(new_x, new_y).posterior(points(4, 2))
    torch.testing.assert_close(conditioned.mean, appended.mean, rtol=0, atol=1e-7)
    torch.testing.assert_close(conditioned.variance, appended.variance, rtol=0, atol=1e-7)
    if q > 1:
        in_turn = gp.condition_on_observations(new_x[:1], new_y[:1]).condition_on_observations(new_x[1:], new_y[1:])
        torch.testing.assert_close(in_turn.posterior(points(4, 2)).mean, appended.mean, rtol=0, atol=1e-7)


def test_fantasies_broadcast_over_samples_and_batches(gp: IndependentGradientGP) -> None:
    x = points(3, 2)
    model = gp.fantasize(x, SobolQMCNormalSampler(torch.Size([5]), seed=0))
    assert model.batch_shape == torch.Size([5, 3])
    posterior = model.posterior(points(3, 4, seed=4))
    assert posterior.mean.shape == torch.Size([5, 3, 4, 1])
    at_fantasies = model.posterior(x)
    torch.testing.assert_close(
        at_fantasies.mean,
        model._y[..., None],
        rtol=0,
        atol=2e-2,
    )
    assert (at_fantasies.variance < gp.posterior(x).variance).all()


@pytest.mark.parametrize("name", ["ei", "log-ei", "ucb", "q-log-ei", "q-log-nei", "kg"])
def test_botorch_acquisitions_are_optimised_unchanged(gp: IndependentGradientGP, name: str) -> None:
    x, y, _ = observed(20)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="ExpectedImprovement has known numerical issues")
        acquisition, q = {
            "ei": lambda: (ExpectedImprovement(gp, best_f=y.max()), 1),
            "log-ei": lambda: (LogExpectedImprovement(gp, best_f=y.max()), 1),
            "ucb": lambda: (UpperConfidenceBound(gp, beta=4.0), 1),
            "q-log-ei": lambda: (qLogExpectedImprovement(gp, best_f=y.max()), 3),
            "q-log-nei": lambda: (qLogNoisyExpectedImprovement(gp, X_baseline=x), 2),
            "kg": lambda: (qKnowledgeGradient(gp, num_fantasies=4), 1),
        }[name]()
    bounds = torch.tensor([[0.0] * DIM, [1.0] * DIM], dtype=torch.float64)
    torch.manual_seed(0)
    raw = points(64, q + (4 if name == "kg" else 0), seed=7)
    starts = raw[acquisition(raw).topk(2).indices]
    found, value = optimize_acqf(
        acquisition, bounds, q=q, num_restarts=2, batch_initial_conditions=starts, options={"maxiter": 30}
    )
    assert found.shape == (q, DIM)
    assert ((found >= 0) & (found <= 1)).all()
    assert value > acquisition(starts).max()


def test_samples_have_the_posteriors_moments(gp: IndependentGradientGP) -> None:
    posterior = gp.posterior(points(3))
    torch.manual_seed(0)
    drawn = posterior.rsample(torch.Size([20000]))
    sigma = posterior.variance.sqrt()
    # Standard errors: sigma / sqrt(20000) for the mean; five of them.
    assert ((drawn.mean(0) - posterior.mean).abs() < 5 * sigma / 20000**0.5).all()
    torch.testing.assert_close(drawn.std(0), sigma, rtol=0.03, atol=0)


def test_observation_noise_is_added(gp: IndependentGradientGP) -> None:
    x = points(2, 3)
    plain, own = gp.posterior(x).variance, gp.posterior(x, observation_noise=True).variance
    jitter = 1e-9 * gp.standardization.y_scale**2
    torch.testing.assert_close(own - plain, torch.full_like(plain, jitter), rtol=1e-3, atol=0)
    given = gp.posterior(x, observation_noise=torch.full((1, 1), 0.5, dtype=torch.float64)).variance
    torch.testing.assert_close(given - plain, torch.full_like(plain, 0.5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": torch.zeros(4).double()}, "expected \\(n, d\\) and \\(n, 1\\)"),
        ({"G": torch.zeros(4, DIM + 1).double()}, "grad has shape"),
        ({"kernel": "periodic"}, "'periodic' is unknown"),
        ({"noise": -1.0}, "expected a variance"),
        ({"noise": "learned"}, "expected a variance"),
        ({"X": torch.full((4, DIM), torch.nan).double()}, "x must be finite"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    X, Y, G = observed(4)
    given = {"X": X, "Y": Y, "G": G} | arguments
    with pytest.raises(ValueError, match=message):
        IndependentGradientGP(**given)


def test_bad_hyperparameters_and_outputs(gp: IndependentGradientGP) -> None:
    with pytest.raises(ValueError, match=r"lengthscales have shape \(6, 5\), expected \(3, 2\)"):
        gp.with_hyperparameters(Hyperparameters.default(5))
    with pytest.raises(ValueError, match="positive"):
        Hyperparameters(np.array([[0.0]]), np.ones(1), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="one output"):
        gp.posterior(points(1), output_indices=[1])


def test_half_of_the_points_nearly_coincide() -> None:
    x, y, grad = observed(60)
    close = x + 1e-6 * torch.randn(60, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y_close, grad_close = values(close)
    gp = fit(IndependentGradientGP(torch.cat([x, close]), torch.cat([y, y_close]), torch.cat([grad, grad_close])))
    result, alone = gp.moments(points(50)), fit(IndependentGradientGP(x, y, grad)).moments(points(50))
    assert all(torch.isfinite(part).all() for part in result)
    truth, slopes = values(points(50))
    for name, exact in (("mean", truth[:, 0]), ("grad_mean", slopes)):
        errors = [float((getattr(found, name) - exact).abs().max()) for found in (result, alone)]
        assert errors[0] < 1.1 * errors[1]


@pytest.mark.parametrize("noise", [None, "learn"])
def test_constant_function(noise: str | None) -> None:
    x, y, grad = observed(15)
    gp = fit(IndependentGradientGP(x, torch.full_like(y, 7.0), torch.zeros_like(grad), noise=noise))
    result, jacobians = gp.moments_and_jacobians(points(10))
    assert all(torch.isfinite(part).all() for part in (*result, *jacobians))
    torch.testing.assert_close(result.mean, torch.full((10,), 7.0, dtype=torch.float64))


def test_extreme_lengthscales_have_a_finite_posterior() -> None:
    x, y, grad = observed(40)
    for length in (1e-2, 1e2):
        hyper = Hyperparameters.shared(DIM, lengthscale=length, outputscale=1e3)
        result, jacobians = (
            IndependentGradientGP(x, y, grad).with_hyperparameters(hyper).moments_and_jacobians(points(20))
        )
        assert all(torch.isfinite(part).all() for part in (*result, *jacobians))
        assert (result.variance > 0).all()


def test_without_a_nugget_a_failed_factorisation_is_repaired_and_recorded() -> None:
    x, y, grad = observed(10)
    twice = IndependentGradientGP(
        torch.cat([x, x]), torch.cat([y, y]), torch.cat([grad, grad]), kernel="rbf", noise=0.0
    )
    assert 0 < twice.jitter.max() <= 1e-2
    assert torch.isfinite(twice.posterior(points(4)).mean).all()


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_samples_at_points_that_nearly_coincide(scale: float) -> None:
    X, Y, G = observed(12)
    model = IndependentGradientGP(X, scale * Y, scale * G)
    near = 0.4 + 1e-7 * torch.rand(2, 30, X.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    apart = torch.rand(1, 30, X.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    posterior = model.posterior(torch.cat([near, apart]))
    assert torch.isfinite(posterior.rsample(torch.Size([4]))).all()
    # Nothing is added where nothing has to be.
    covariance = posterior.distribution.covariance_matrix[2]
    alone = model.posterior(apart[0]).distribution.covariance_matrix
    # A batch rounds differently, by 1e-16 of the variances; the smallest jitter would be 1e-9 of them.
    torch.testing.assert_close(covariance, alone, rtol=0, atol=1e-13 * alone.diagonal().mean().item())
