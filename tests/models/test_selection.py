"""The model of `auto`: what it chooses, when it chooses again, and that it answers in the units of y."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from auto_cases import additive, coupled, design, observe, on_hartmann, options
from cases import cube
from eign.data import Observations
from eign.models import JointGradientGP
from eign.models.derivative_kernels import SELECTABLE
from eign.models.selection import Choice, ModelSettings, SelectedModel, Selection, choice, fitted
from eign.strategies import strategy
from eign.strategies.auto.settings import SETTINGS
from eign.strategies.constrained.outputs import SETTINGS as OUTPUT_SETTINGS

NO_DECADES: list[float] = []


def chosen(
    data: Observations, last: Selection | None = None, settings: ModelSettings = SETTINGS.model, **given: object
) -> SelectedModel:
    return fitted(data, last, NO_DECADES, options(**given), settings)


@pytest.mark.parametrize("seed", [0, 1])
def test_an_additive_function_gets_additive_terms(seed):
    # It is a sum of sines, too.
    assert chosen(observe(additive, design(24, 6, seed))).fit.choice.kernel == "two-additive+full-rbf"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_coupled_function_gets_the_full_kernel(seed):
    assert chosen(observe(coupled, design(24, 4, seed))).fit.choice.kernel in ("matern52", "rbf")


def test_only_a_smooth_function_gets_a_smooth_kernel():
    points = design(24, 3)
    assert "rbf" in chosen(observe(lambda x: torch.sin(3 * x.sum(-1)), points)).fit.choice.kernel
    kinked = observe(lambda x: (x - 0.4).abs().sum(-1) ** 1.5, points)
    assert "rbf" not in chosen(kinked).fit.choice.kernel


def test_a_kernel_that_was_given_is_taken():
    fit = chosen(observe(coupled, design(8, 2)), kernel="two-additive+full").fit
    assert {choice.kernel for choice in fit.hyperparameters} == {"two-additive+full"} == {fit.choice.kernel}


@pytest.mark.parametrize(("sign", "shape"), [(1, "bottom"), (-1, "top")])
def test_exponentials_are_compressed_from_their_long_end(sign, shape):
    data = observe(lambda x: sign * torch.exp(4 * coupled(x)), design(20, 3))
    assert chosen(data).fit.output.shape == shape
    assert chosen(data, compress=False).fit.output.shape == "linear"


def test_a_sample_of_the_model_itself_is_not_compressed():
    assert chosen(observe(coupled, design(20, 3))).fit.output.shape == "linear"


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_is_believed_where_there_is_some(seed):
    clean, noisy = on_hartmann(seed=seed), on_hartmann(noise=0.1, seed=seed)
    assert not chosen(clean).noisy
    model = chosen(noisy)
    assert model.noisy
    assert model.fit.choice.noisy
    # The same data as a user who knows the noise tells them: nothing is left to learn.
    told = Observations(noisy.x, noisy.y, noisy.grad, 0.01 * noisy.y.var(), 0.01 * noisy.grad.var(axis=0) + 0 * noisy.x)
    known = chosen(told)
    assert known.noisy
    assert not known.fit.choice.noisy


@pytest.mark.parametrize(("count", "dim"), [(30, 3), (40, 4)])
def test_a_kink_is_not_taken_for_noise(count, dim):
    # No kernel here fits it, so that noise makes it more likely.
    data = observe(lambda x: -torch.maximum(x.sum(-1), 1 + 2 * x[:, 0]), design(count, dim))
    assert not chosen(data).noisy


def steps_with_ripples(x: torch.Tensor) -> torch.Tensor:
    """A bowl whose gradients are those of ripples that hardly change it."""
    return -((x - 0.4) ** 2).sum(-1) + 1e-3 * torch.sin(2e4 * x).sum(-1)


def test_gradients_that_say_nothing_about_the_values_are_not_believed():
    data = observe(steps_with_ripples, design(16, 3))
    model = chosen(data)
    assert not model.fit.choice.slopes
    assert not model.model.observations.has_grad.any()
    smooth = observe(lambda x: -((x - 0.4) ** 2).sum(-1), design(16, 3))
    assert chosen(smooth).fit.choice.slopes
    flat = Observations(smooth.x, np.round(4 * smooth.y), np.zeros_like(smooth.x))
    assert not chosen(flat).fit.choice.slopes


def test_gradients_are_believed_where_local_steps_need_them():
    data = observe(steps_with_ripples, design(16, 3))
    doubted = chosen(data[np.arange(12)]).fit
    assert not doubted.choice.slopes
    for last in (None, doubted):
        believed = chosen(data, last, replace(SETTINGS.model, doubts_slopes=False))
        assert believed.model.observations.has_grad.all()
    assert not OUTPUT_SETTINGS.doubts_slopes


def test_evidence_is_laplaces_and_close_to_the_integral_over_one_hyperparameter():
    """Of values alone in one dimension, with everything but the lengthscale far from mattering."""
    x = np.linspace(0, 1, 7)[:, None]
    y = np.sin(5 * x)
    model = JointGradientGP(torch.tensor(x), torch.tensor(y))
    model.fit_hyperparameters()
    best = model.hyperparameters
    grid = np.linspace(-3.0, 3.0, 61)
    J = [[_density(model, best.theta + np.array([a, b])) for b in grid] for a in grid]
    integral = np.log(np.exp(np.array(J) - np.max(J)).sum() * (grid[1] - grid[0]) ** 2) + np.max(J)
    # The posterior density of the logarithms is not normal: half a nat is what one finds.
    assert abs(choice.log_evidence(model) - integral) < 0.5


def _density(model: JointGradientGP, theta: np.ndarray) -> float:
    """Of data and logarithms of the hyperparameters."""
    moved = model.with_hyperparameters(model.hyperparameters.at(theta))
    return theta.sum() - moved.negative_log_posterior().value


def test_points_that_a_local_search_left_are_seen_as_one_unless_values_scatter():
    x = np.concatenate([design(8, 2), 0.3 + 1e-3 * design(6, 2)])
    data = observe(coupled, x)
    model = chosen(data)
    assert len(model.model.observations) == 9
    best = data[8:].x[data[8:].y.argmax()]
    assert (np.abs(model.model.observations.x - best).max(axis=1) == 0).any()
    told = Observations(data.x, data.y, data.grad, 1e-4 + 0 * data.y, 1e-4 + 0 * data.grad)
    assert len(chosen(told).model.observations) == 14
    assert len(chosen(data, settings=replace(SETTINGS.model, thinned=False)).model.observations) == 14


def test_rows_beyond_the_budget_are_gradients_and_then_values_left_out():
    data, few = observe(coupled, design(40, 3)), replace(SETTINGS.model, rows=60)
    model = chosen(data[:20], settings=few).model
    assert len(model.observations) == 20
    assert model.conditioned().factored.lower.shape[0] <= 60
    model = chosen(data, settings=few).model
    assert len(model.observations) == 30
    assert model.observations.y.max() == pytest.approx(chosen(data).model.observations.y.max(), abs=0.5)
    assert model.observations.has_grad.all(axis=1).sum() == 10


def test_few_points_choose_nothing_and_then_one_alternative_challenges_at_each_refit(monkeypatch):
    data, tried = observe(coupled, design(40, 2)), []
    fit_of = choice._Candidates._fit

    def watched(self, one, known):
        tried.append(one)
        return fit_of(self, one, known)

    monkeypatch.setattr(choice._Candidates, "_fit", watched)
    first = chosen(data[:4]).fit
    assert tried == [Choice()] == [first.choice]
    tried.clear()
    # Then every property is varied once.
    second = chosen(data[:20]).fit
    assert {one.kernel for one in tried} == set(SELECTABLE)
    assert len(tried) == 6
    tried.clear()
    assert chosen(data[:21], second).fit is second
    assert tried == []
    challengers = set()
    for turn in range(5):
        challenged = chosen(data[:22], replace(second, turn=turn)).fit
        assert (challenged.count, challenged.turn) == (22, turn + 1)
        assert tried[0] == second.choice
        assert len(tried) == 2
        challengers.add(tried[1])
        tried.clear()
    assert len(challengers) == 5


def test_fit_survives_json():
    fit = chosen(observe(additive, design(10, 2))).fit
    restored = Selection.from_json(json.loads(json.dumps(fit.to_json(), allow_nan=False)))
    assert restored.to_json() == fit.to_json()
    assert restored.output == fit.output


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e12])
@pytest.mark.parametrize("steep", [False, True])
def test_belief_is_in_the_units_of_y(scale, steep):
    def function(x):
        return 1e-3 * torch.exp(3 * coupled(x)) if steep else coupled(x)

    raw = observe(function, design(16, 2))
    data = Observations(raw.x, scale * raw.y, scale * raw.grad)
    method = strategy("auto")
    state = method.start(cube(2), {}, 0).after(data)
    belief = method.belief(state, data, np.empty((0, 2)))
    mean, variance = belief.model.moments(torch.tensor(data.x))
    # The model interpolates up to its nugget.
    np.testing.assert_allclose(mean.numpy() / scale, raw.y, atol=1e-4 * raw.y.std())
    assert (np.sqrt(variance.numpy()) <= 1e-3 * scale * raw.y.std()).all()
    far = observe(function, np.random.default_rng(1).random((50, 2)))
    predicted = belief.model.moments(torch.tensor(far.x))[0].numpy()
    assert np.abs(predicted / scale - far.y).mean() < 0.2 * raw.y.std()


def test_estimates_are_values_without_noise_and_smoother_with_it():
    method = strategy("auto")
    for noise in (0.0, 0.1):
        data = on_hartmann(noise)
        # Without the local search, which needs no model.
        state = method.start(cube(6), {"local": False}, 0).after(data)
        _, after = method.propose(state, data, np.empty((0, 6)), 1)
        estimates = method.estimates(after, data)
        exact = on_hartmann().y
        assert np.abs(estimates - exact).mean() <= (0.9 if noise else 1.0) * np.abs(data.y - exact).mean()


def _ripples(x: torch.Tensor) -> torch.Tensor:
    """A bowl with ripples that are finer than the points lie."""
    return -((x - 0.4) ** 2).sum(dim=-1) + 0.3 * torch.sin(150 * x).sum(dim=-1)


def test_ripples_are_no_noise_where_neighbours_agree():
    near = design(14, 2)[3] + 1e-3 * np.array([[1, 0], [0, 1], [1, 1], [2, 1]])
    data = observe(_ripples, np.concatenate([design(14, 2), near]))
    noise = chosen(data[np.arange(14)], noise="learn").fit
    assert noise.choice.noisy
    kept = replace(SETTINGS.model, growth=np.inf)
    assert chosen(data[np.arange(14)], noise, kept).noisy
    assert not chosen(data, noise, kept).noisy
    assert not chosen(data, noise, replace(OUTPUT_SETTINGS, growth=np.inf)).noisy  # under constraints, too
    rng = np.random.default_rng(0)
    scattered = Observations(data.x, data.y + 0.3 * rng.normal(size=18), data.grad + 30 * rng.normal(size=(18, 2)))
    assert chosen(scattered, noise, kept).noisy
    assert chosen(data, noise, kept, noise="learn").noisy  # who asks for noise gets it


def test_the_best_point_is_always_seen():
    """Of hundreds of values without gradients, which are taken evenly through time."""
    x = np.random.default_rng(0).random((450, 2))
    for best in range(200, 204):
        y = np.where(np.arange(450) == best, 1.0, 0.0)
        assert choice.sample(Observations(x, y), 300).y.max() == 1.0
