"""What single acquisitions do, beside what all must."""

import numpy as np
import pytest
import torch
from botorch.exceptions import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf

from acquisition_cases import ALPHA, MODELS, surrogate
from eign import formulas
from eign.acquisition import EI, EIGN, UCB, EIg, EIgBound, LogEI, incumbent, stationary_incumbent
from eign.acquisition.standardized_moments import gradient_moments
from eign.models import IndependentGradientGP, JointGradientGP, SpannedGradientGP, fit
from eign.models.incumbent import best_observed
from joint_cases import observe, random_points

D = 3


@pytest.mark.parametrize("name", MODELS)
def test_ei_gn_is_the_paper_s_formula_in_common_units(name):
    model = surrogate(name)
    best, X, scale = incumbent(model), random_points(9, D), model.standardization.y_scale
    posterior, gradient = model.posterior(X.unsqueeze(-2)), model.gradient_posterior(X)
    improvement = formulas.expected_improvement(
        posterior.mean.reshape(-1), posterior.variance.reshape(-1).sqrt(), best.best_f
    )
    mean, best_grad = gradient.mean / scale, best.best_grad / scale
    if name == "joint":
        chol = torch.linalg.cholesky(gradient.covariance) / scale
        increase = formulas.orthant_gradient_increase_full(mean, chol, best_grad)
    else:
        increase = formulas.orthant_gradient_increase(mean, gradient.variance.sqrt() / scale, best_grad)
    found = EIGN(model, best_f=best.best_f, best_grad=best.best_grad, alpha=ALPHA)(X.unsqueeze(-2))
    torch.testing.assert_close(found, improvement - ALPHA * scale * increase, rtol=1e-9, atol=1e-12)


def test_joint_ei_gn_uses_the_off_diagonal_covariance():
    model, X = surrogate("joint"), random_points(9, D)
    best = incumbent(model)
    moments = gradient_moments(model, X)
    best_grad = best.best_grad / model.standardization.y_scale
    diagonal = moments.grad_cov.diagonal(dim1=-2, dim2=-1).sqrt()
    full = moments.orthant_increase(best_grad)
    without = formulas.orthant_gradient_increase(moments.grad_mean, diagonal, best_grad)
    relevant = full.abs() > 1e-12
    assert ((full - without).abs()[relevant] / full.abs()[relevant]).max() > 0.5


@pytest.mark.parametrize("name", MODELS)
def test_exact_ei_g_agrees_with_draws_from_the_posterior(name):
    model, X = surrogate(name, n=8), random_points(5, D)
    best = stationary_incumbent(model, ALPHA)
    units, draws = model.standardization, 1 << 15
    base = formulas.normal_base_samples(draws, D + 1, seed=1)
    moments = gradient_moments(model, X)
    if name == "joint":
        mean, covariance = model.joint_posterior(X)
        sample = mean.unsqueeze(-2) + base @ torch.linalg.cholesky(covariance).mT
    else:
        mean = torch.cat([moments.mean[:, None], moments.grad_mean], dim=1) * units.y_scale
        mean[:, 0] += units.y_shift
        sigma = torch.cat([moments.sigma[:, None], moments.grad_sigma], dim=1) * units.y_scale
        sample = mean.unsqueeze(-2) + sigma.unsqueeze(-2) * base
    g = sample[..., 0] - ALPHA / units.y_scale * sample[..., 1:].square().sum(-1)
    best_g = best.best_f - ALPHA / units.y_scale * best.best_grad.square().sum()
    gain = (g - best_g).clamp(min=0)
    exact = EIg(model, best.best_f, best.best_grad, alpha=ALPHA)(X.unsqueeze(-2))
    # Five standard errors of independent draws; rare gains are measured by the largest, their own error is unreliable.
    assert ((gain.mean(-1) - exact).abs() <= 5 * gain.std(-1) / draws**0.5 + 5e-3 * exact.max()).all()


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_is_a_bound(name):
    model, X = surrogate(name, n=8), random_points(50, 1, D)
    best = incumbent(model)
    bound = EIgBound(model, best.best_f, best.best_grad, alpha=ALPHA, samples=4096)(X)
    exact = EIg(model, best.best_f, best.best_grad, alpha=ALPHA)(X)
    # EI_s comes from samples, hence the small allowance.
    assert (bound <= exact + 0.02 * bound.abs()).all()


def test_the_bound_s_base_samples_are_fixed_by_the_seed():
    model, X = surrogate("independent"), random_points(5, 1, D)
    best = incumbent(model)
    first, again, other = (EIgBound(model, best.best_f, best.best_grad, seed=seed)(X) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("build", [lambda m: EI(m, 4.0), lambda m: LogEI(m, 4.0), UCB], ids=["EI", "LogEI", "UCB"])
def test_value_acquisitions_run_on_any_botorch_model(build):
    X, Y, _ = observe(12, D)
    acquisition = build(SingleTaskGP(X, Y))
    points = random_points(6, D)
    fast = acquisition.value_and_gradient(points.numpy())
    x = points.clone().requires_grad_()
    value = acquisition(x.unsqueeze(-2))
    (gradient,) = torch.autograd.grad(value.sum(), x)
    np.testing.assert_allclose(fast.value, value.detach(), rtol=1e-9)
    np.testing.assert_allclose(fast.gradient, gradient, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(acquisition.evaluate(points.numpy()), value.detach(), rtol=1e-9)


def test_a_refit_in_place_is_seen():
    X, Y, G = observe(15, D)
    model = IndependentGradientGP(X, Y, G)
    best = incumbent(model)
    acquisition = EIGN(model, best.best_f, best.best_grad)
    points = random_points(5, D)
    acquisition.evaluate(points.numpy())
    fit(model)
    np.testing.assert_allclose(
        acquisition.evaluate(points.numpy()), acquisition(points.unsqueeze(-2)).detach(), rtol=1e-9
    )


# A test of its own has this warning.
@pytest.mark.filterwarnings("ignore:EIgBound is largest at a pending point:UserWarning")
class TestPending:
    @pytest.mark.parametrize("name", ["independent", "joint"])
    @pytest.mark.parametrize(
        "build", [EIGN, EIg, EIgBound, lambda model, f, _: EI(model, f), lambda model, *_: UCB(model)]
    )
    def test_points_are_avoided_as_long_as_they_are_pending(self, name, build):
        model = surrogate(name, d=D)
        acquisition = build(model, *incumbent(model)[1:])
        points, pending = random_points(6, D), random_points(2, D, seed=3)
        before = acquisition.evaluate(points.numpy())
        acquisition.set_X_pending(pending)
        assert_close = torch.testing.assert_close
        assert_close(acquisition.X_pending, pending)
        # They are as well known as what was told, and expected to be what they were expected to be.
        there = acquisition.model.posterior(pending)
        assert_close(there.mean, model.posterior(pending).mean, rtol=1e-3, atol=1e-3)
        assert (there.variance < 1e-3 * model.posterior(pending).variance).all()
        assert_close(
            acquisition(points[:, None]).detach().numpy(), acquisition.evaluate(points.numpy()), rtol=1e-6, atol=1e-9
        )
        assert not np.allclose(acquisition.evaluate(points.numpy()), before, rtol=1e-6, atol=0)
        acquisition.set_X_pending(None)
        np.testing.assert_array_equal(acquisition.evaluate(points.numpy()), before)

    @pytest.mark.parametrize("name", ["independent", "joint"])
    def test_optimize_acqf_finds_points_in_turn(self, name):
        model = surrogate(name, d=D)
        best = incumbent(model)
        acquisition = EIGN(model, best.best_f, best.best_grad)
        cube = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
        torch.manual_seed(0)
        found, _ = optimize_acqf(acquisition, cube, q=2, num_restarts=2, raw_samples=16, sequential=True)
        assert found.shape == (2, D)
        assert torch.linalg.vector_norm(found[0] - found[1]) > 0.01
        assert acquisition.model is model
        assert acquisition.X_pending is None

    @pytest.mark.parametrize("name", ["independent", "joint"])
    @pytest.mark.parametrize("build", [EIGN, EIg, EIgBound, lambda model, f, _: EI(model, f)])
    def test_nothing_is_gained_where_a_good_point_is_pending(self, name, build):
        """A pending point that is expected to be the best is the incumbent: there is no improvement over it there."""
        model = surrogate(name, d=D)
        x, best_f, best_grad = incumbent(model)
        # An incumbent so bad that every point is expected to be better.
        acquisition = build(model, best_f - 100.0, torch.full_like(best_grad, 100.0))
        pending = x[None] + 0.0
        before = acquisition.evaluate(pending.numpy())
        assert before > 10.0
        acquisition.set_X_pending(pending)
        assert acquisition.evaluate(pending.numpy()) < 1e-3 * before
        acquisition.set_X_pending(None)
        np.testing.assert_array_equal(acquisition.evaluate(pending.numpy()), before)

    @pytest.mark.parametrize("name", ["independent", "joint"])
    @pytest.mark.parametrize("build", [EIGN, EIg])
    def test_no_point_is_found_twice(self, name, build):
        """Also where nothing more is promised: three points, the best place among those told already."""
        model = surrogate(name, d=D)
        acquisition = build(model, *incumbent(model)[1:])
        cube = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
        torch.manual_seed(0)
        found, _ = optimize_acqf(acquisition, cube, q=3, num_restarts=2, raw_samples=16, sequential=True)
        assert torch.pdist(found).min() > 1e-4

    def test_the_bound_says_that_it_may_repeat_a_pending_point(self):
        model = surrogate("joint", d=D)
        acquisition = EIgBound(model, *incumbent(model)[1:])
        with pytest.warns(UserWarning, match="take EIg or EIGN for several points in turn"):
            acquisition.set_X_pending(random_points(1, D))

    def test_the_model_for_many_parameters_takes_them_too(self):
        model, pending = fit(SpannedGradientGP(*observe(8, D))), random_points(1, D)
        acquisition = UCB(model)
        acquisition.set_X_pending(pending)
        assert acquisition.model.posterior(pending).variance < 1e-3 * model.posterior(pending).variance

    def test_other_models_are_refused(self):
        X, Y, _ = observe(8, D)
        with pytest.raises(
            UnsupportedError, match="UCB takes X_pending on the models of eign, and this is a SingleTaskGP"
        ):
            UCB(SingleTaskGP(X, Y)).set_X_pending(random_points(1, D))


class TestIncumbent:
    def test_is_the_best_value_with_its_gradient(self):
        X, Y, G = observe(15, D)
        best = incumbent(IndependentGradientGP(X, Y, G))
        row = int(Y.argmax())
        assert best.best_f == Y[row].item()
        assert torch.equal(best.x, X[row])
        assert torch.equal(best.best_grad, G[row])

    @pytest.mark.parametrize("name", MODELS)
    def test_fills_in_what_is_missing_of_its_gradient(self, name):
        X, Y, G = observe(15, D)
        row = int(Y.argmax())
        G[row, 1] = torch.nan
        model = fit(MODELS[name](X, Y, G))
        best = incumbent(model)
        assert torch.equal(best.best_grad[[0, 2]], G[row, [0, 2]])
        assert best.best_grad[1].item() == pytest.approx(model.gradient_posterior(X[row]).mean[1].item(), rel=1e-9)

    def test_of_noisy_values_is_the_best_posterior_mean(self):
        X, Y, G = observe(15, D)
        row = int(Y.argmin())
        Y[row] = Y.max() + 1.0
        model = JointGradientGP(X, Y, G, Yvar=torch.full_like(Y, 4.0))
        best = incumbent(model, is_noisy=True)
        means = model.posterior(X.unsqueeze(-2)).mean.reshape(-1)
        assert incumbent(model).best_f == Y[row].item()
        assert best.best_f == pytest.approx(means.max().item())
        assert torch.equal(best.x, X[means.argmax()])

    def test_stationary_one_has_the_best_g(self):
        X = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
        Y = torch.tensor([[1.0], [0.9], [-2.0]], dtype=torch.float64)
        G = torch.tensor([[5.0], [0.0], [0.0]], dtype=torch.float64)
        model = JointGradientGP(X, Y, G)
        assert stationary_incumbent(model, 0.0).x.item() == 0.1
        assert stationary_incumbent(model, 0.6).x.item() == 0.5

    def test_needs_a_value(self):
        X, Y, G = observe(4, D)
        with pytest.raises(ValueError, match="none of the observations has a value"):
            incumbent(JointGradientGP(X, torch.full_like(Y, torch.nan), G))

    @pytest.mark.parametrize("is_noisy", [False, True])
    @pytest.mark.parametrize("name", MODELS)
    def test_without_its_gradient_it_is_the_same_point(self, name, is_noisy):
        X, Y, G = observe(15, D)
        Y[int(Y.argmin())] = Y.max() + 1.0  # so that the best value is not the best posterior mean
        model = MODELS[name](X, Y, G, Yvar=torch.full_like(Y, 4.0))
        x, best_f = best_observed(model, is_noisy=is_noisy)
        whole = incumbent(model, is_noisy=is_noisy)
        assert torch.equal(x, whole.x)
        assert best_f == whole.best_f


class TestBadInput:
    def test_gradient_with_gaps(self):
        model = surrogate("joint")
        with pytest.raises(ValueError, match="puts the posterior mean"):
            EIGN(model, 1.0, torch.tensor([1.0, float("nan"), 0.0]))

    def test_negative_alpha(self):
        with pytest.raises(ValueError, match="alpha=-1"):
            EIGN(surrogate("joint"), 1.0, torch.zeros(D), alpha=-1.0)

    def test_model_without_gradients(self):
        X, Y, _ = observe(12, D)
        with pytest.raises(TypeError, match="SingleTaskGP has no posterior of the gradient"):
            EIGN(SingleTaskGP(X, Y), 1.0, torch.zeros(D))


@pytest.mark.parametrize("kind", [EI, UCB, EIGN, EIgBound, EIg])
def test_a_call_without_arguments_is_answered_with_the_name(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}.__init__\(\) missing"):
        kind()
