"""What carries derivatives by moments back to the point, against Jacobians, autograd, and other sizes and threads."""

import numpy as np
import pytest
import torch

from eign.acquisition import EIGN, incumbent
from eign.models import IndependentGradientGP, JointGradientGP
from eign.models.independent.pullback import ProcessStack
from eign.models.joint.pullback import JointEvaluator
from eign.numerics import threads
from joint_cases import observe, random_points


def relative(found, expected) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


# Small stacks are one product for all processes, large ones triangular products, process by process.
@pytest.mark.parametrize(("n", "points"), [(10, 5), (120, 40), (120, 3), (700, 60)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_independent_processes(n, points, missing):
    model = IndependentGradientGP(*observe(n, 3, missing=missing))
    X, rng = random_points(points, 3), np.random.default_rng(0)
    units = model.standardization
    moments, jacobians = model.moments_and_jacobians(X)
    stack = ProcessStack.of(model.conditioned())
    found, pullback = stack.moments_and_pullback(X.numpy())
    scale = np.append(units.y_scale, units.grad_scale)
    mean = np.append(units.y_shift, units.grad_shift) + scale * found.mean
    assert relative(mean, torch.cat([moments.mean[:, None], moments.grad_mean], dim=1).numpy()) < 1e-12
    variance = torch.cat([moments.variance[:, None], moments.grad_variance], dim=1).numpy()
    assert relative(scale**2 * found.variance, variance) < 1e-9
    by_mean, by_variance = rng.normal(size=(2, points, 4))
    slopes = torch.cat([jacobians.mean[:, None], jacobians.grad_mean], dim=1).numpy()
    bends = torch.cat([jacobians.variance[:, None], jacobians.grad_variance], dim=1).numpy()
    expected = np.einsum("mb,mbk->mk", by_mean / scale, slopes) + np.einsum("mb,mbk->mk", by_variance / scale**2, bends)
    assert relative(pullback(by_mean, by_variance), expected) < 1e-9
    given = stack.in_units(np.append(units.y_shift, units.grad_shift), scale)
    there, back = given.moments_and_pullback(X.numpy())
    assert relative(there.mean, mean) < 1e-12
    assert relative(there.variance, scale**2 * found.variance) < 1e-9
    assert relative(back(by_mean / scale, by_variance / scale**2), expected) < 1e-9
    without = stack.moments(X.numpy())
    assert relative(without.mean, found.mean) < 1e-12
    assert relative(without.variance, found.variance) < 1e-9


def test_some_of_the_processes():
    model = IndependentGradientGP(*observe(30, 3))
    X = random_points(7, 3).numpy()
    everything, first = (ProcessStack.of(model.conditioned(), part).moments(X) for part in (slice(None), slice(1)))
    np.testing.assert_allclose(first.mean[:, 0], everything.mean[:, 0], rtol=1e-12)
    np.testing.assert_allclose(first.variance[:, 0], everything.variance[:, 0], rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("kernel", ["matern52", "additive+full"])
def test_joint_model(missing, kernel):
    model = JointGradientGP(*observe(15, 3, missing=missing), kernel=kernel)
    X, rng = random_points(20, 3), np.random.default_rng(0)
    units = model.standardization
    x = X.clone().requires_grad_()
    mean, covariance = model.joint_posterior(x)
    by_mean, by_covariance = rng.normal(size=(20, 4)), rng.normal(size=(20, 4, 4))
    by_covariance += by_covariance.transpose(0, 2, 1)
    total = (mean * torch.from_numpy(by_mean)).sum() / units.y_scale
    total = total + (covariance * torch.from_numpy(by_covariance)).sum() / units.y_scale**2
    (expected,) = torch.autograd.grad(total, x)
    evaluator = JointEvaluator.of(model.conditioned())
    found, pullback = evaluator.moments_and_pullback(X.numpy())
    assert relative(pullback(by_mean, by_covariance), expected.numpy()) < 1e-8
    given = units.y_scale * found.mean + np.append(units.y_shift, np.zeros(3))
    assert relative(given, mean.detach().numpy()) < 1e-10
    assert relative(units.y_scale**2 * found.covariance, covariance.detach().numpy()) < 1e-9


def test_threads_and_blocks_change_nothing(monkeypatch):
    model = JointGradientGP(*observe(60, 3))
    evaluator = JointEvaluator.of(model.conditioned())
    X = random_points(300, 3).numpy()
    alone = evaluator.moments(X)
    torch.set_num_threads(2)
    monkeypatch.setattr(threads, "_SMALLEST_SIZE", 0)
    try:
        together = evaluator.moments(X)
    finally:
        torch.set_num_threads(1)
    np.testing.assert_array_equal(together.mean, alone.mean)
    np.testing.assert_array_equal(together.covariance, alone.covariance)
    few = evaluator.moments(X[:2])
    assert relative(few.covariance, alone.covariance[:2]) < 1e-9


def observe_evenly(n, dim):
    """A smooth function and its gradient at points of which no two are close."""
    X = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0).draw(n, dtype=torch.float64)
    return X, (5.0 * X).sin().sum(-1, keepdim=True), 5.0 * (5.0 * X).cos()


class TestSinglePrecisionOfAPool:
    def test_variances_to_three_digits_and_those_near_data_in_double_precision(self):
        model = JointGradientGP(*observe_evenly(16, 3))
        evaluator = JointEvaluator.of(model.conditioned())
        assert evaluator.single_error < 1e-5
        near = model.observations.x[:3] + 1e-4
        X = np.concatenate([random_points(150, 3).numpy(), near])
        rough, exact = evaluator.pool_moments(X), evaluator.moments(X)
        np.testing.assert_allclose(rough.mean, exact.mean, rtol=1e-12, atol=1e-12)
        scales = np.sqrt(np.einsum("mii->mi", exact.covariance))
        error = np.abs(rough.covariance - exact.covariance) / scales[:, :, None] / scales[:, None, :]
        assert 0 < error.max() < 1e-3
        # In double precision, but in another batch: roundings of products of order one.
        np.testing.assert_allclose(rough.covariance[-3:], exact.covariance[-3:], rtol=0, atol=1e-14)

    def test_it_is_not_used_where_the_error_would_be_large(self):
        X = torch.rand(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        X[20:] = X[:20] + 1e-7
        model = JointGradientGP(X, X.sum(-1, keepdim=True), torch.ones_like(X))
        evaluator = JointEvaluator.of(model.conditioned())
        assert evaluator.single_error > 1e-5
        points = random_points(9, 2).numpy()
        for rough, exact in zip(evaluator.pool_moments(points), evaluator.moments(points), strict=True):
            np.testing.assert_array_equal(rough, exact)

    def test_terms_of_ei_gn(self):
        model = JointGradientGP(*observe_evenly(16, 3))
        best = incumbent(model)
        acquisition = EIGN(model, best.best_f, best.best_grad)
        X = random_points(200, 3).numpy()
        for rough, exact in zip(acquisition.pool_terms(X), acquisition.terms(X), strict=True):
            assert np.abs(rough - exact).max() < 1e-3 * exact.std()
            assert rough.std() == pytest.approx(exact.std(), rel=1e-4)

    def test_an_independent_model_has_no_need_of_it(self):
        model = IndependentGradientGP(*observe(30, 3))
        best = incumbent(model)
        acquisition = EIGN(model, best.best_f, best.best_grad)
        X = random_points(20, 3).numpy()
        for rough, exact in zip(acquisition.pool_terms(X), acquisition.terms(X), strict=True):
            np.testing.assert_array_equal(rough, exact)
