"""The model as strategies and researchers use it: fits, units, incomplete data, acquisitions, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from eign.acquisition import EIGN, LogEI
from eign.data import Observations
from eign.models import JointGradientGP, SpannedGradientGP, fit
from eign.models.incumbent import incumbent
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.surrogates import Kind, with_stand_ins
from joint_cases import observe, random_points


def many(n: int, d: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """A function of d coordinates of which the first ten matter most."""
    weights = torch.linspace(0.0, 5.0, d, dtype=torch.float64).neg().exp()
    x = torch.rand(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    y = -((x - 0.4) ** 2) @ weights + torch.sin(3.0 * x[:, 0] * x[:, 1])
    (g,) = torch.autograd.grad(y.sum(), x)
    return x.detach(), y.detach()[:, None], g


def test_a_fit_improves_the_posterior_and_finds_the_lengths_that_matter() -> None:
    x, y, g = many(12, 60)
    one, each = (fit(SpannedGradientGP(x, y, g, lengthscales=kind)) for kind in ("one", "each"))  # type: ignore[arg-type]
    start = SpannedGradientGP(x, y, g).negative_log_posterior().value
    assert one.negative_log_posterior().value < start
    assert each.negative_log_posterior().value < one.negative_log_posterior().value
    assert len(set(one.hyperparameters.terms[0].lengthscale)) == 1
    lengths = each.hyperparameters.terms[0].lengthscale
    assert lengths[:5].mean() < lengths[-5:].mean()


def test_a_fit_ends_where_the_gradient_is_zero() -> None:
    x, y, g = many(8, 20)
    model = SpannedGradientGP(x, y, g, lengthscales="one", noise="learn")
    end = model.fit_hyperparameters(evaluations=100)
    assert end.converged[0]
    gradient = model.negative_log_posterior().gradient
    assert abs(gradient[:20].sum()) < 1.0
    assert np.abs(gradient[20:]).max() < 1.0


def test_predictions_of_held_out_points_are_better_than_those_without_gradients() -> None:
    x, y, g = many(30, 40)
    points, values, _ = many(20, 40, seed=1)
    errors = []
    for gradients in (g, None):
        model = fit(SpannedGradientGP(x, y, gradients))
        errors.append(float((model.moments(points)[0] - values[:, 0]).square().mean()))
    assert errors[0] < 0.2 * errors[1]


def test_units_do_not_matter() -> None:
    x, y, g = many(6, 15)
    plain, scaled = SpannedGradientGP(x, y, g), SpannedGradientGP(x, 3.0 + 100.0 * y, 100.0 * g)
    points = random_points(4, 15)
    torch.testing.assert_close(scaled.moments(points)[0], 3.0 + 100.0 * plain.moments(points)[0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(scaled.moments(points)[1], 1e4 * plain.moments(points)[1], rtol=1e-8, atol=1e-9)
    expected = 1e4 * plain.gradient_posterior(points).variance
    torch.testing.assert_close(scaled.gradient_posterior(points).variance, expected, rtol=1e-8, atol=1e-8)


def test_a_gradient_with_a_missing_component_counts_as_missing() -> None:
    x, y, g = observe(5, 8)
    holed, without = g.clone(), g.clone()
    holed[2, 3], without[2] = torch.nan, torch.nan
    y[4] = torch.nan
    points = random_points(3, 8)
    actual = SpannedGradientGP(x, y, holed).moments(points)
    expected = SpannedGradientGP(x[:4], y[:4], without[:4], standardization=None).moments(points)
    for left, right in zip(actual, expected, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_data(count: int) -> None:
    x, y, g = observe(2, 5)
    model = SpannedGradientGP(x[:count], y[:count], g[:count])
    points = random_points(3, 5)
    assert model.moments(points)[1].min() > 0
    grown = model.append(x[count:], y[count:], g[count:])
    whole = SpannedGradientGP(x, y, g, standardization=model.standardization)
    torch.testing.assert_close(grown.moments(points)[0], whole.moments(points)[0], rtol=1e-7, atol=1e-7)


def test_repeated_points_add_no_direction() -> None:
    x, y, g = observe(4, 9)
    model = SpannedGradientGP(*(torch.cat([part, part]) for part in (x, y, g)))
    assert model.conditioned().span.rank == 3
    torch.testing.assert_close(model.moments(x)[0], y[:, 0], rtol=1e-5, atol=1e-5)


def test_acquisitions_use_the_closed_form_and_agree_with_autograd() -> None:
    x, y, g = many(8, 20)
    model = fit(SpannedGradientGP(x, y, g))
    acquisition = LogEI(model, incumbent(model).best_f)
    points = random_points(5, 20)
    value, gradient = acquisition.value_and_gradient(points.numpy())
    leaf = points.clone().requires_grad_()
    expected = acquisition(leaf.unsqueeze(-2))
    (slope,) = torch.autograd.grad(expected.sum(), leaf)
    np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-7)
    np.testing.assert_allclose(gradient, slope.numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(acquisition.evaluate(points.numpy()), value, rtol=1e-10)


def test_acquisitions_with_the_gradient_are_refused() -> None:
    model = SpannedGradientGP(*many(4, 6))
    best = incumbent(model)
    with pytest.raises(TypeError, match="without derivatives by the point"):
        EIGN(model, best.best_f, best.best_grad)


def test_stand_ins_for_failed_and_pending_points() -> None:
    x, y, g = many(6, 12)
    data = Observations(x.numpy(), y.numpy()[:, 0], g.numpy()).append(np.full(12, 0.5), np.inf)
    model = fit(SpannedGradientGP(x, y, g))
    pending = random_points(2, 12).numpy()
    grown = with_stand_ins(Kind(joint=True, with_gradient=True), model, data, pending)
    assert isinstance(grown, SpannedGradientGP)
    assert len(grown.observations) == 9
    before, after = (one.moments(torch.from_numpy(pending))[1] for one in (model, grown))
    assert (after < 1e-3 * before).all()


def test_hyperparameters_survive_storage() -> None:
    x, y, g = many(5, 10)
    model = fit(SpannedGradientGP(x, y, g))
    stored = JointHyperparameters.from_json(model.hyperparameters.to_json())
    points = random_points(3, 10)
    again = SpannedGradientGP(x, y, g).with_hyperparameters(stored)
    torch.testing.assert_close(again.moments(points)[0], model.moments(points)[0])


def test_bad_input() -> None:
    x, y, g = observe(4, 3)
    with pytest.raises(ValueError, match='expected "matern52" or "rbf"'):
        SpannedGradientGP(x, y, g, kernel="additive")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='expected "one" or "each"'):
        SpannedGradientGP(x, y, g, lengthscales="groups")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="noise=-1"):
        SpannedGradientGP(x, y, g, noise=-1.0)
    with pytest.raises(ValueError, match="expected one term in 3"):
        SpannedGradientGP(x, y, g).with_hyperparameters(JointGradientGP(*observe(4, 2)).hyperparameters)
