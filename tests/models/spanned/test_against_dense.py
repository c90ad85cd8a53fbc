"""The split model has the numbers of the dense one: likelihood, its gradient, moments, their gradients, append."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from eign.models.derivative_kernels import Term
from eign.models.joint import fitting as dense_fitting
from eign.models.joint.hyperparameters import JointHyperparameters, negative_log_prior
from eign.models.joint.model import JointGradientGP
from eign.models.spanned.map_objective import negative_log_likelihood_and_gradient
from eign.models.spanned.model import SpannedGradientGP
from joint_cases import random_points, smooth


@dataclass(frozen=True)
class Case:
    """Observations, hyperparameters, and points to look at: in the span and out of it."""

    x: Tensor
    y: Tensor
    g: Tensor
    variances: tuple[Tensor | None, Tensor | None]
    hyper: JointHyperparameters
    points: Tensor

    def models(self) -> tuple[SpannedGradientGP, JointGradientGP]:
        kernel = self.hyper.terms[0].profile
        y_var, g_var = self.variances
        split = SpannedGradientGP(self.x, self.y, self.g, Yvar=y_var, Gvar=g_var, kernel=kernel)
        dense = JointGradientGP(self.x, self.y, self.g, Yvar=y_var, Gvar=g_var, kernel=kernel)
        return split.with_hyperparameters(self.hyper), dense.with_hyperparameters(self.hyper)


@st.composite
def cases(draw: st.DrawFn, *, noisy: bool = False) -> Case:
    """From 2 to d points and a few more; some without a gradient; lengthscales of their own unless there is noise."""
    d = draw(st.integers(2, 9))
    n = draw(st.integers(2, d + 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = torch.from_numpy(rng.random((n, d)))
    if draw(st.booleans()):
        # Half of the points close to the first, as the end of a run is.
        x[n // 2 :] = x[0] + 1e-2 * (x[n // 2 :] - x[0])
    x.requires_grad_()
    y = smooth(x) * 10.0 ** draw(st.integers(-3, 3))
    (g,) = torch.autograd.grad(y.sum(), x)
    x, y = x.detach(), y.detach()[:, None]
    without = torch.from_numpy(rng.random(n) < draw(st.sampled_from([0.0, 0.4])))
    g = torch.where(without[:, None], torch.nan, g)
    lengths = np.full(d, rng.uniform(0.5, 3.0)) if noisy else rng.uniform(0.3, 3.0, d)
    term = Term("full", draw(st.sampled_from(["matern52", "rbf"])), lengths, rng.uniform(0.3, 3.0))
    level = (1e-3, 1e-2) if noisy else (0.0, 0.0)
    scale = float(y.std()) ** 2
    y_var = torch.from_numpy(1e-3 * scale * rng.random((n, 1))) if noisy else None
    g_var = torch.from_numpy(1e-2 * scale * np.repeat(rng.random((n, 1)), d, axis=1)) if noisy else None
    inside = x[:2].mean(dim=0, keepdim=True)
    points = torch.cat([random_points(3, d, seed=n), inside, x[:1]])
    return Case(x, y, g, (y_var, g_var), JointHyperparameters((term,), level, noisy), points)


def assert_close(actual: Tensor | np.ndarray, expected: Tensor | np.ndarray, scale: float = 1.0) -> None:
    np.testing.assert_allclose(np.asarray(actual) / scale, np.asarray(expected) / scale, rtol=1e-8, atol=1e-8)


@given(st.booleans().flatmap(lambda noisy: cases(noisy=noisy)))
@settings(max_examples=60, deadline=None)
def test_moments_and_their_gradients(case: Case) -> None:
    split, dense = case.models()
    scale = dense.standardization.y_scale
    assert_close(split.mean, dense.mean, scale)
    for actual, expected, power in zip(
        split.moments_and_gradients(case.points), dense.moments_and_gradients(case.points), (1, 2, 1, 2), strict=True
    ):
        assert_close(actual, expected, scale**power)
    assert_close(split.moments(case.points)[1], dense.moments(case.points)[1], scale**2)
    gradient, expected_gradient = split.gradient_posterior(case.points), dense.gradient_posterior(case.points)
    assert_close(gradient.mean, expected_gradient.mean, scale)
    assert_close(gradient.variance, expected_gradient.variance, scale**2)
    mean, slope = split.mean_and_gradient(case.points)
    assert_close(mean, dense.moments(case.points)[0], scale)
    assert_close(slope, expected_gradient.mean, scale)


@given(st.booleans().flatmap(lambda noisy: cases(noisy=noisy)))
@settings(max_examples=40, deadline=None)
def test_posterior_of_several_points_and_its_derivative(case: Case) -> None:
    split, dense = case.models()
    scale = dense.standardization.y_scale
    results = []
    for model in (split, dense):
        x = case.points.clone().requires_grad_()
        mean, covariance = model.standardized_normal(x)
        weights = torch.linspace(-1.0, 1.0, covariance.numel(), dtype=torch.float64).reshape(covariance.shape)
        (slope,) = torch.autograd.grad(mean.sum() + (weights * covariance).sum(), x)
        results.append((mean.detach(), covariance.detach(), slope))
    for actual, expected in zip(*results, strict=True):
        assert_close(actual, expected)
    posterior = split.posterior(case.points)
    assert_close(posterior.mean.detach()[:, 0], split.moments(case.points)[0], scale)


@given(st.booleans().flatmap(lambda noisy: cases(noisy=noisy)))
@settings(max_examples=60, deadline=None)
def test_likelihood_and_its_gradient(case: Case) -> None:
    split, dense = case.models()
    assert split.log_likelihood() == pytest.approx(dense.log_likelihood(), rel=1e-8, abs=1e-8)
    hyper, d = case.hyper, case.hyper.dimension
    data = dense._data(dense.observations)[1]
    expected = dense_fitting.negative_log_posterior(hyper.theta, data, hyper)
    prior, slopes, _ = negative_log_prior(hyper.theta, hyper)
    value, gradient = negative_log_likelihood_and_gradient(split._data(split.observations), hyper)
    target = expected.gradient - slopes
    assert value == pytest.approx(expected.value - prior, rel=1e-8, abs=1e-8)
    if hyper.learned:
        # Noise of gradients goes with the lengthscales in another way, so that only their common change is the same.
        gradient, target = (np.append(g[:d].sum(), g[d:]) for g in (gradient, target))
    np.testing.assert_allclose(gradient, target, rtol=1e-8, atol=1e-8 * np.abs(target).max())


@pytest.mark.parametrize("profile", ["matern52", "rbf"])
@pytest.mark.parametrize("n", [3, 7, 20])
def test_gradient_of_the_likelihood_by_differences(profile: str, n: int) -> None:
    """With noise that is told for each component, lengthscales of their own, and noise that is learned."""
    rng, d = np.random.default_rng(n), 12
    x = torch.from_numpy(rng.random((n, d))).requires_grad_()
    y = smooth(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    model = SpannedGradientGP(x.detach(), y.detach()[:, None], g, Gvar=torch.from_numpy(rng.random((n, d))))
    data = model._data(model.observations)
    term = Term("full", profile, rng.uniform(0.5, 2.0, d), 1.7)  # type: ignore[arg-type]
    hyper = JointHyperparameters((term,), (1e-2, 3e-2), True)
    theta, step = hyper.theta, 1e-5
    gradient = negative_log_likelihood_and_gradient(data, hyper).gradient
    for k in range(len(theta)):
        shift = step * np.eye(len(theta))[k]
        up, down = (negative_log_likelihood_and_gradient(data, hyper.at(theta + s)).value for s in (shift, -shift))
        assert gradient[k] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-6)


@given(cases(), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_append_equals_a_fresh_factorisation(case: Case, count: int) -> None:
    whole, _ = case.models()
    part = SpannedGradientGP(
        case.x[:count],
        case.y[:count],
        case.g[:count],
        kernel=case.hyper.terms[0].profile,
        standardization=whole.standardization,
    ).with_hyperparameters(case.hyper)
    part.moments(case.points)  # factors, so that there is something to extend
    grown = part.append(case.x[count:], case.y[count:], case.g[count:])
    scale = whole.standardization.y_scale
    for actual, expected, power in zip(
        grown.moments_and_gradients(case.points), whole.moments_and_gradients(case.points), (1, 2, 1, 2), strict=True
    ):
        assert_close(actual, expected, scale**power)
    assert grown.log_likelihood() == pytest.approx(whole.log_likelihood(), rel=1e-8, abs=1e-8)
    variance = grown.gradient_posterior(case.points).variance
    assert_close(variance, whole.gradient_posterior(case.points).variance, scale**2)
