"""What one model learned another can begin with: `state_dict` and `load_state_dict`."""

import io

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.model import ModelList

from eign.models import IndependentGradientGP, JointGradientGP, SpannedGradientGP, fit
from eign.standardization import Standardization
from joint_cases import observe, random_points

DIM = 2
POINTS = random_points(7, DIM)
KINDS = pytest.mark.parametrize("kind", [IndependentGradientGP, JointGradientGP, SpannedGradientGP])
NOISES = pytest.mark.parametrize("noise", [None, "learn"])


def through_a_file(state):
    """As users store it, read without running code."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def assert_same_posterior(model, other):
    for posterior in ("posterior", "gradient_posterior"):
        mine, others = (getattr(each, posterior)(POINTS) for each in (model, other))
        torch.testing.assert_close(mine.mean, others.mean, rtol=0, atol=0)
        torch.testing.assert_close(mine.variance, others.variance, rtol=0, atol=0)


@KINDS
@NOISES
def test_a_state_brings_the_posterior_and_where_the_next_fit_starts(kind, noise):
    model = fit(kind(*observe(12, DIM), noise=noise))
    other = kind(*observe(12, DIM), noise=noise)
    assert other.load_state_dict(through_a_file(model.state_dict())).missing_keys == []
    assert other.is_fitted
    assert_same_posterior(model, other)
    fit(model)
    fit(other)
    assert_same_posterior(model, other)


@KINDS
def test_with_more_data_it_is_what_append_gives(kind):
    X, Y, G = observe(14, DIM)
    model = fit(kind(X[:12], Y[:12], G[:12]))
    appended, other = model.append(X[12:], Y[12:], G[12:]), kind(X, Y, G)
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(appended.posterior(POINTS).mean, other.posterior(POINTS).mean, rtol=1e-6, atol=1e-6)
    fit(appended)
    fit(other)
    assert_same_posterior(appended, other)


@KINDS
def test_a_warm_start_takes_fewer_evaluations_than_a_first_fit(kind):
    model = fit(kind(*observe(12, DIM)))
    other, first = kind(*observe(12, DIM)), kind(*observe(12, DIM))
    other.load_state_dict(model.state_dict())
    warm, cold = (np.sum(each.fit_hyperparameters().evaluations) for each in (other, first))
    assert warm < cold


@KINDS
def test_what_was_computed_before_is_forgotten(kind):
    model, other = fit(kind(*observe(12, DIM))), kind(*observe(12, DIM))
    other.posterior(POINTS)
    other.load_state_dict(model.state_dict())
    assert_same_posterior(model, other)


@KINDS
def test_a_state_of_the_prior_is_not_fitted(kind):
    model, other = kind(*observe(12, DIM)), fit(kind(*observe(12, DIM)))
    other.load_state_dict(model.state_dict())
    assert not other.is_fitted
    assert_same_posterior(model, other)


@KINDS
def test_the_state_is_a_copy(kind):
    model = fit(kind(*observe(12, DIM)))
    before = model.posterior(POINTS).mean
    state = model.state_dict()
    for value in state.values():
        if isinstance(value, torch.Tensor):
            value.zero_()
    other = kind(*observe(12, DIM))
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other.posterior(POINTS).mean, before, rtol=0, atol=0)


@KINDS
def test_a_list_of_models_has_the_states_of_all(kind):
    X, Y, G = observe(12, DIM)
    models = ModelList(fit(kind(X, Y, G)), fit(kind(X, -(Y**2), -2 * Y * G)))
    others = ModelList(kind(X, Y, G), kind(X, -(Y**2), -2 * Y * G))
    others.load_state_dict(through_a_file(models.state_dict()))
    for model, other in zip(models.models, others.models, strict=True):
        assert_same_posterior(model, other)


@KINDS
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (lambda kind: kind(*observe(12, 3)), "dimension 3, and this model has dimension 2"),
        (lambda kind: kind(*observe(12, DIM), kernel="rbf"), "kernel 'rbf', and this model has kernel 'matern52'"),
        (lambda kind: kind(*observe(12, DIM), noise="learn"), "noise 'learned', and this model has noise 'given'"),
        (
            lambda kind: (JointGradientGP if kind is IndependentGradientGP else IndependentGradientGP)(
                *observe(12, DIM)
            ),
            "has model '.*GradientGP', and this model has model '.*GradientGP'",
        ),
        (lambda _: SingleTaskGP(*observe(12, DIM)[:2]), "no state of a model of eign"),
        (lambda _: torch.nn.Module(), "no state of a model of eign"),
    ],
)
def test_a_state_of_something_else_is_refused(kind, strict, foreign, message):
    model = fit(kind(*observe(12, DIM)))
    before = model.posterior(POINTS).mean
    with pytest.raises(RuntimeError, match=message):
        model.load_state_dict(foreign(kind).state_dict(), strict=strict)
    torch.testing.assert_close(model.posterior(POINTS).mean, before, rtol=0, atol=0)


@KINDS
@pytest.mark.parametrize(
    ("key", "spoil", "message"),
    [
        ("lengthscale", lambda value: -value, "must be positive"),
        ("lengthscale", lambda value: value[:0], "lengthscale has shape"),
        ("outputscale", lambda value: value * torch.nan, "outputscale is not finite"),
        ("standardization.y_scale", lambda value: -value, "scales must be positive"),
        ("standardization.y_shift", lambda _: None, "lacks standardization.y_shift"),
    ],
)
def test_a_spoilt_state_is_refused(kind, key, spoil, message):
    model = fit(kind(*observe(12, DIM)))
    before, state = model.posterior(POINTS).mean, model.state_dict()
    state[key] = spoil(state[key])
    with pytest.raises(RuntimeError, match=message):
        model.load_state_dict(state)
    torch.testing.assert_close(model.posterior(POINTS).mean, before, rtol=0, atol=0)


def test_one_lengthscale_is_no_state_for_many():
    X, Y, G = observe(12, DIM)
    with pytest.raises(RuntimeError, match="lengthscales 'one', and this model has lengthscales 'each'"):
        SpannedGradientGP(X, Y, G).load_state_dict(SpannedGradientGP(X, Y, G, lengthscales="one").state_dict())


def test_a_spoilt_warm_start_is_refused():
    model = fit(IndependentGradientGP(*observe(12, DIM)))
    state = model.state_dict()
    state["warm_start.theta"] = state["warm_start.theta"][:1]
    with pytest.raises(RuntimeError, match="warm start"):
        model.load_state_dict(state)


@KINDS
def test_a_model_with_units_of_its_own_keeps_them(kind):
    X, Y, G = observe(12, DIM)
    units = Standardization(0.0, 2.0, [0.0, 0.0], [2.0, 2.0])
    with pytest.raises(RuntimeError, match="other units"):
        kind(X, Y, G, standardization=units).load_state_dict(kind(X, Y, G).state_dict())
    kind(X, Y, G, standardization=units).load_state_dict(kind(X, Y, G, standardization=units).state_dict())


@KINDS
def test_a_state_reaches_what_was_conditioned_on_the_model_before(kind):
    X, Y, G = observe(12, DIM)
    fitted, model = fit(kind(X, Y, G)), kind(X[:6], Y[:6], G[:6]).append(X[6:], Y[6:], G[6:])
    assert model.standardization.y_scale != fitted.standardization.y_scale
    new = POINTS[:2], torch.full((2, 1), 3.0, dtype=torch.float64)
    conditioned = model.condition_on_observations(*new)
    model.load_state_dict(fitted.state_dict())
    assert_close = torch.testing.assert_close
    assert_close(conditioned.posterior(POINTS).mean, fitted.condition_on_observations(*new).posterior(POINTS).mean)
