"""JointGradientGP: units, missing rows, known noise, append, the two paths, fits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eign.models.derivative_kernels import KERNELS
from eign.models.independent.fitting import fit
from eign.models.joint.hyperparameters import JointHyperparameters, negative_log_prior
from eign.models.joint.model import JointGradientGP
from joint_cases import observe, random_points, smooth

# The nugget bounds the condition number by 1e8, so two orders of summation may differ by 1e-8; 1e-9 leaves room for
# another BLAS and still is far below what any use of a posterior would notice.
PATHS = 1e-9


def assert_close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_fast_path_equals_botorch_path(kernel: str, missing: float) -> None:
    gp = JointGradientGP(*observe(12, 3, missing=missing), kernel=kernel)
    points = random_points(6, 3)
    posterior = gp.posterior(points.unsqueeze(-2))
    mean, variance = gp.moments(points)
    assert_close(mean, posterior.mean[:, 0, 0], PATHS)
    assert_close(variance, posterior.variance[:, 0, 0], PATHS)
    joint, fast = gp.joint_posterior(points), gp.joint_moments(points)
    assert_close(fast.mean, joint.mean, PATHS)
    assert_close(fast.covariance, joint.covariance, PATHS)
    assert_close(joint.mean[:, 0], mean, PATHS)
    assert_close(joint.variance[:, 0], variance, PATHS)
    value, slope = gp.mean_and_gradient(points)
    assert_close(value, mean, PATHS)
    assert_close(slope, joint.mean[:, 1:], PATHS)
    gradient = gp.gradient_posterior(points)
    assert_close(gradient.mean, joint.mean[:, 1:], 0.0)
    assert_close(gradient.covariance, joint.covariance[:, 1:, 1:], 0.0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_closed_form_gradients_of_the_moments(kernel: str, missing: float) -> None:
    gp = JointGradientGP(*observe(12, 3, missing=missing), kernel=kernel)
    points = random_points(6, 3).requires_grad_()
    moments = gp.moments_and_gradients(points)
    posterior = gp.posterior(points.unsqueeze(-2))
    (mean_gradient,) = torch.autograd.grad(posterior.mean.sum(), points, retain_graph=True)
    (variance_gradient,) = torch.autograd.grad(posterior.variance.sum(), points)
    assert_close(moments.mean_gradient, mean_gradient, 1e-9)
    assert_close(moments.variance_gradient, variance_gradient, 1e-9)
    # The gradient's posterior mean is the gradient of the posterior mean, without and with automatic differentiation.
    assert_close(gp.gradient_posterior(points.detach()).mean, mean_gradient, 1e-9)
    h = 1e-5
    for k in range(3):
        step = h * torch.eye(3, dtype=torch.float64)[k]
        ahead, behind = (gp.moments(points.detach() + sign * step) for sign in (1, -1))
        assert_close((ahead[0] - behind[0]) / (2 * h), moments.mean_gradient[:, k], 1e-6)
        assert_close((ahead[1] - behind[1]) / (2 * h), moments.variance_gradient[:, k], 1e-6)


def test_gradients_of_the_joint_moments() -> None:
    gp = JointGradientGP(*observe(8, 2, missing=0.2), kernel="additive+full")
    points = random_points(2, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(gp.joint_posterior(x)), (points,), eps=1e-6, atol=1e-5)


def test_gradients_of_a_joint_posterior_of_several_points() -> None:
    gp = JointGradientGP(*observe(8, 2), kernel="matern52")

    def moments(x: Tensor) -> tuple[Tensor, Tensor]:
        posterior = gp.posterior(x)
        return posterior.mean, posterior.distribution.covariance_matrix

    assert torch.autograd.gradcheck(moments, (random_points(2, 3, 2).requires_grad_(),), eps=1e-6, atol=1e-5)


def test_posterior_shapes() -> None:
    gp = JointGradientGP(*observe(8, 2))
    posterior = gp.posterior(random_points(4, 5, 3, 2))
    assert posterior.mean.shape == posterior.variance.shape == (4, 5, 3, 1)
    assert posterior.rsample(torch.Size([7])).shape == (7, 4, 5, 3, 1)
    assert gp.posterior(random_points(3, 2)).mean.shape == (3, 1)
    joint = gp.joint_posterior(random_points(4, 5, 2))
    assert joint.mean.shape == joint.variance.shape == (4, 5, 3)
    assert joint.covariance.shape == (4, 5, 3, 3)
    assert gp.num_outputs == 1
    assert gp.batch_shape == torch.Size()


@pytest.mark.parametrize("kernel", KERNELS)
def test_interpolates_values_and_gradients(kernel: str) -> None:
    x, y, g = observe(10, 3)
    gp = JointGradientGP(x, y, g, kernel=kernel)
    gp.fit_hyperparameters()
    joint = gp.joint_posterior(x)
    # A relative nugget of 1e-8 lets an observation be missed by 1e-4 prior deviations or less.
    scales = torch.from_numpy(gp._conditioned().factored.scales)
    missed = (joint.mean - torch.cat([y, g], dim=1)).abs() * scales / gp.standardization.y_scale
    assert missed.max() < 1e-4


def test_prediction_improves_with_gradients() -> None:
    x, y, g = observe(20, 3)
    points = random_points(50, 3)
    errors = []
    for gradients in (None, g):
        gp = JointGradientGP(x, y, gradients)
        gp.fit_hyperparameters()
        errors.append((gp.moments(points)[0] - smooth(points)).square().mean().sqrt().item())
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("count", [1, 4])
def test_append_equals_a_fresh_factorisation(kernel: str, missing: float, count: int) -> None:
    x, y, g = observe(14, 3, missing=missing)
    whole = JointGradientGP(x, y, g, kernel=kernel)
    part = JointGradientGP(x[:-count], y[:-count], g[:-count], kernel=kernel, standardization=whole.standardization)
    part.moments(x)  # factors
    grown = part.append(x[-count:], y[-count:], g[-count:])
    points = random_points(5, 3)
    actual, expected = grown.joint_moments(points), whole.joint_moments(points)
    assert_close(actual.mean, expected.mean, 1e-8)
    assert_close(actual.covariance, expected.covariance, 1e-8)
    assert grown.mean == pytest.approx(whole.mean, abs=1e-8)
    assert len(part.observations) == 14 - count  # the old model is as it was


def test_append_many_times_and_predict_by_both_paths() -> None:
    x, y, g = observe(12, 2, missing=0.3)
    grown = JointGradientGP(x[:4], y[:4], g[:4])
    whole = JointGradientGP(x, y, g, standardization=grown.standardization)
    points = random_points(5, 2)
    for i in range(4, 12):
        if i != 7:  # two at once
            grown.moments(points)
        grown = grown.append(x[i : i + 1], y[i : i + 1], g[i : i + 1])
    assert_close(grown.posterior(points).mean[:, 0], whole.moments(points)[0], 1e-8)
    assert_close(grown.posterior(points).variance[:, 0], whole.moments(points)[1], 1e-8)
    assert_close(
        grown.moments_and_gradients(points).variance_gradient,
        whole.moments_and_gradients(points).variance_gradient,
        1e-8,
    )


def test_append_extends_the_factor_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, g = observe(12, 2)
    gp = JointGradientGP(x[:10], y[:10], g[:10])
    gp.moments(x)
    monkeypatch.setattr("eign.models.joint.model.condition", None)  # a fresh factorisation would fail
    grown = gp.append(x[10:11], y[10:11], g[10:11]).append(x[11:], y[11:], g[11:])
    assert grown.moments(x)[0].isfinite().all()
    assert len(grown._conditioned().factored.weights) == 36


def test_append_to_values_alone() -> None:
    """Rows of a kind that the old model had none of."""
    x, y, g = observe(8, 2)
    values = JointGradientGP(x[:5], y[:5])
    values.moments(x)
    grown = values.append(x[5:], y[5:], g[5:])
    g = torch.where(torch.arange(8)[:, None] < 5, torch.nan, g)
    whole = JointGradientGP(x, y, g, standardization=grown.standardization)
    points = random_points(5, 2)
    assert_close(grown.joint_moments(points).mean, whole.joint_moments(points).mean, 1e-8)


def test_answers_in_the_units_given() -> None:
    x, y, g = observe(12, 3)
    points = random_points(5, 3)
    plain, other = JointGradientGP(x, y, g), JointGradientGP(x, 1e4 * y - 7e5, 1e4 * g)
    for gp in (plain, other):
        gp.fit_hyperparameters()
    a, b = plain.joint_posterior(points), other.joint_posterior(points)
    shift = torch.zeros(4, dtype=torch.float64)
    shift[0] = -7e5
    torch.testing.assert_close(b.mean, 1e4 * a.mean + shift, rtol=1e-5, atol=1e-2)
    torch.testing.assert_close(b.covariance, 1e8 * a.covariance, rtol=1e-4, atol=1.0)


def test_known_noise_is_used_row_by_row() -> None:
    """A row with enormous noise counts as missing; one with none is met."""
    x, y, g = observe(10, 2)
    points = random_points(5, 2)
    y_noise, g_noise = torch.zeros_like(y), torch.zeros_like(g)
    y_noise[3], g_noise[4, 1] = 1e12, 1e12
    noisy = JointGradientGP(x, y, g, Yvar=y_noise, Gvar=g_noise)
    y_missing, g_missing = y.clone(), g.clone()
    y_missing[3], g_missing[4, 1] = torch.nan, torch.nan
    missing = JointGradientGP(x, y_missing, g_missing, standardization=noisy.standardization)
    assert_close(noisy.joint_moments(points).mean, missing.joint_moments(points).mean, 1e-6)
    assert_close(noisy.joint_moments(points).covariance, missing.joint_moments(points).covariance, 1e-6)


def test_fixed_noise_is_kept_and_learned_noise_is_not() -> None:
    x, y, g = observe(12, 2)
    fixed, learned = JointGradientGP(x, y, g, noise=1e-3), JointGradientGP(x, y, g, noise="learn")
    start = learned.hyperparameters.noise
    fixed.fit_hyperparameters()
    learned.fit_hyperparameters()
    assert fixed.hyperparameters.noise == (1e-3, 1e-3)
    assert learned.hyperparameters.noise[0] < start[0]  # the data are exact


def test_refit_after_append_is_warm_and_as_good_as_a_cold_fit() -> None:
    x, y, g = observe(20, 3)
    gp = JointGradientGP(x[:18], y[:18], g[:18])
    gp.fit_hyperparameters()
    grown = gp.append(x[18:], y[18:], g[18:])
    assert np.array_equal(grown.hyperparameters.theta, gp.hyperparameters.theta)
    warm = grown.fit_hyperparameters()
    cold = JointGradientGP(x, y, g).fit_hyperparameters()
    assert warm.evaluations[0] < 8
    assert warm.value[0] <= cold.value[0] + 1e-4 * 80


def test_hyperparameters_travel_as_json() -> None:
    gp = JointGradientGP(*observe(10, 2), kernel="additive+full", noise="learn")
    gp.fit_hyperparameters()
    stored = gp.hyperparameters.to_json()
    read = JointHyperparameters.from_json(stored)
    assert read.to_json() == stored
    copy = JointGradientGP(*observe(10, 2), kernel="additive+full", noise="learn").with_hyperparameters(read)
    points = random_points(4, 2)
    assert torch.equal(copy.moments(points)[0], gp.moments(points)[0])


def test_failed_observations_are_left_out() -> None:
    x, y, g = observe(10, 2)
    y[2] = -torch.inf
    keep = torch.arange(10) != 2
    points = random_points(4, 2)
    expected = JointGradientGP(x[keep], y[keep], g[keep]).moments(points)
    assert_close(JointGradientGP(x, y, g).moments(points)[0], expected[0], 1e-10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "cubic"}, "choose one of"),
        ({"noise": -1.0}, "noise=-1.0"),
        ({"noise": "some"}, "noise='some'"),
        ({"Y": torch.zeros(5, dtype=torch.float64)}, "expected .n, d. and .n, 1."),
        ({"Yvar": torch.full((5, 1), -1.0, dtype=torch.float64)}, "y_var"),
    ],
)
def test_bad_input(changes: dict[str, object], message: str) -> None:
    x, y, g = observe(5, 2)
    arguments: dict[str, object] = {"X": x, "Y": y, "G": g} | changes
    with pytest.raises(ValueError, match=message):
        JointGradientGP(**arguments)  # type: ignore[arg-type]


def test_output_indices_and_dimension_are_checked() -> None:
    gp = JointGradientGP(*observe(5, 2))
    with pytest.raises(ValueError, match="one output"):
        gp.posterior(random_points(1, 2), output_indices=[1])
    with pytest.raises(ValueError, match="3 coordinates"):
        gp.with_hyperparameters(JointGradientGP(*observe(5, 3)).hyperparameters)


def test_the_public_fit() -> None:
    gp = JointGradientGP(*observe(10, 2))
    assert fit(gp) is gp
    assert not np.array_equal(gp.hyperparameters.theta, JointGradientGP(*observe(10, 2)).hyperparameters.theta)


def test_restart_leaves_a_bad_optimum() -> None:
    """Lengthscales at their lower bound explain nothing, and the likelihood is flat there."""
    gp = JointGradientGP(*observe(15, 2), kernel="additive+full")
    far = gp.hyperparameters.at(np.log([0.01, 0.01, 1.0, 0.01, 0.01, 1.0]))
    stuck, moved = gp.with_hyperparameters(far), gp.with_hyperparameters(far)
    value, restarted = stuck.fit_hyperparameters().value[0], moved.fit_hyperparameters(restart=True).value[0]
    assert restarted <= value
    assert restarted == pytest.approx(gp.fit_hyperparameters().value[0], abs=1e-3)


def test_log_likelihood_is_a_density_in_the_units_given() -> None:
    x, y, g = observe(10, 2, missing=0.2)
    gp, scaled = JointGradientGP(x, y, g), JointGradientGP(x, 100.0 * y, 100.0 * g)
    rows = int(torch.isfinite(y).sum() + torch.isfinite(g).sum())
    assert scaled.log_likelihood() == pytest.approx(gp.log_likelihood() - rows * np.log(100.0), rel=1e-8)
    end = gp.fit_hyperparameters()
    prior = negative_log_prior(gp.hyperparameters.theta, gp.hyperparameters)[0]
    expected = -(end.value[0] - prior) - rows * np.log(gp.standardization.y_scale)
    assert gp.log_likelihood() == pytest.approx(expected, rel=1e-8)
    grown = gp.append(x[:0], y[:0], g[:0])
    assert grown.log_likelihood() == pytest.approx(gp.log_likelihood(), rel=1e-8)


def test_sampling_repeated_and_observed_points_needs_no_jitter() -> None:
    """GPyTorch warns when it adds jitter, and a warning is an error here."""
    x, y, g = observe(12, 3)
    gp = JointGradientGP(x, y, g)
    gp.fit_hyperparameters()
    new = random_points(2, 3)
    samples = gp.posterior(torch.cat([new, new, x[:4], x[:2] + 1e-7])).rsample(torch.Size([3]))
    assert torch.isfinite(samples).all()
