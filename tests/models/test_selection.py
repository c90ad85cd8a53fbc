"""The model of `auto`: what it chooses, when it chooses again, and that it answers in the units of y."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from auto_cases import additive, coupled, design, observe, on_hartmann, options
from cases import cube
from eign.data import Observations
from eign.models import selection
from eign.models.selection import Selection, fitted, row_budget, sample
from eign.models.surrogates import within_row_budget
from eign.strategies import strategy


@pytest.mark.parametrize("seed", [0, 1])
def test_an_additive_function_gets_additive_terms(seed):
    fit = fitted(observe(additive, design(24, 6, seed)), None, options()).fit
    # It is a sum of sines, too.
    assert fit.kernel == "two-additive+full-rbf"
    assert set(fit.hyperparameters) == set(selection.KERNELS)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_coupled_function_gets_the_full_kernel(seed):
    assert fitted(observe(coupled, design(24, 4, seed)), None, options()).fit.kernel in ("matern52", "rbf")


def test_only_a_smooth_function_gets_a_smooth_kernel():
    points = design(24, 3)
    assert "rbf" in fitted(observe(lambda x: torch.sin(3 * x.sum(-1)), points), None, options()).fit.kernel
    kinked = observe(lambda x: (x - 0.4).abs().sum(-1) ** 1.5, points)
    assert "rbf" not in fitted(kinked, None, options()).fit.kernel


def test_kernels_to_choose_from_are_fewer_where_the_design_fills_the_rows():
    assert selection._kernels(29) == selection.KERNELS
    assert selection._kernels(30) == ("matern52", "two-additive+full")


def test_kernels_that_were_not_the_last_choice_are_fitted_less_far_to_many_numbers(monkeypatch):
    data, limits = observe(coupled, design(40, 8)), []
    candidate = selection._candidate

    def watched(few, shapes, kernel, *arguments, evaluations, **options):
        limits.append((kernel, evaluations))
        return candidate(few, shapes, kernel, *arguments, evaluations=evaluations, **options)

    first = fitted(data[:10], None, options()).fit
    monkeypatch.setattr(selection, "_candidate", watched)
    fitted(data, first, options())
    # The last choice, three others, and the winner with noise.
    assert sorted(count for _, count in limits) == [4, 4, 4, 4, 7]
    assert (first.kernel, 7) in limits


def test_a_kernel_that_was_given_is_taken():
    data = observe(coupled, design(8, 2))
    fit = fitted(data, None, options(kernel="two-additive+full")).fit
    assert fit.kernel == "two-additive+full"
    assert set(fit.hyperparameters) == {"two-additive+full"}


@pytest.mark.parametrize(("sign", "shape"), [(1, "bottom"), (-1, "top")])
def test_exponentials_are_compressed_from_their_long_end(sign, shape):
    data = observe(lambda x: sign * torch.exp(4 * coupled(x)), design(20, 3))
    assert fitted(data, None, options()).fit.output.shape == shape
    assert fitted(data, None, options(compress=False)).fit.output.shape == "linear"


def test_a_sample_of_the_model_itself_is_not_compressed():
    assert fitted(observe(coupled, design(20, 3)), None, options()).fit.output.shape == "linear"


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_is_believed_where_there_is_some(seed):
    clean, noisy = on_hartmann(seed=seed), on_hartmann(noise=0.1, seed=seed)
    assert not fitted(clean, None, options()).noisy
    model = fitted(noisy, None, options())
    assert model.noisy
    assert model.fit.noisy
    # The same data as a user who knows the noise tells them: nothing is left to learn.
    told = Observations(noisy.x, noisy.y, noisy.grad, 0.01 * noisy.y.var(), 0.01 * noisy.grad.var(axis=0) + 0 * noisy.x)
    known = fitted(told, None, options())
    assert known.noisy
    assert not known.fit.noisy


@pytest.mark.parametrize(("count", "dim"), [(30, 3), (40, 4)])
def test_a_kink_is_not_taken_for_noise(count, dim):
    # No kernel here fits it, so that noise makes it more likely, by 12 to 13 natural logarithms.
    data = observe(lambda x: -torch.maximum(x.sum(-1), 1 + 2 * x[:, 0]), design(count, dim))
    assert not fitted(data, None, options()).noisy


def test_row_budget_grows_with_the_dimension():
    assert [row_budget(dim) for dim in (1, 6, 28, 29, 30, 100)] == [600, 600, 600, 600, 620, 2020]


def test_rows_beyond_the_budget_are_gradients_left_out():
    data = observe(coupled, design(20, 3))
    model = fitted(data, None, options(rows=40)).model
    assert model.conditioned().factored.lower.shape[0] <= 40
    np.testing.assert_array_equal(np.asarray(model.observations.has_y), True)


def test_hyperparameters_are_learned_from_a_sample_and_all_values_enter_the_model(monkeypatch):
    data, learned_from = observe(coupled, design(40, 2)), []
    candidate = selection._candidate

    def watched(few, *arguments, **options):
        learned_from.append(few)
        return candidate(few, *arguments, **options)

    monkeypatch.setattr(selection, "_SAMPLE", 15)
    monkeypatch.setattr(selection, "_candidate", watched)
    model = fitted(data, None, options(rows=60))
    assert len(model.model.observations) == 40
    few = sample(within_row_budget(data, 60), 15)
    assert len(few) == 15
    assert few.has_grad.any(axis=1).sum() == 10
    # Four kernels, and noise or not.
    assert learned_from == [few] * 5
    monkeypatch.setattr(selection, "_FEW_NUMBERS", 0)
    grown = fitted(data, replace(model.fit, count=30), options(rows=60))
    assert learned_from[5:] == [few]
    assert (grown.fit.count, grown.fit.chosen) == (40, 40)


def test_model_is_kept_refitted_and_chosen_anew_as_data_grow(monkeypatch):
    data = observe(coupled, design(40, 2))
    first = fitted(data[:20], None, options()).fit
    # So few numbers are cheap, and the choice is made with every refit.
    assert fitted(data[:22], first, options()).fit.chosen == 22
    monkeypatch.setattr(selection, "_FEW_NUMBERS", 0)
    assert (first.count, first.chosen) == (20, 20)
    assert fitted(data[:21], first, options()).fit is first
    refitted = fitted(data[:22], first, options()).fit
    assert (refitted.count, refitted.chosen) == (22, 20)
    chosen = fitted(data[:26], refitted, options()).fit
    assert (chosen.count, chosen.chosen) == (26, 26)


def test_fit_survives_json():
    fit = fitted(observe(additive, design(10, 2)), None, options()).fit
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
    chosen = strategy("auto")
    state = chosen.start(cube(2), {}, 0).after(data)
    belief = chosen.belief(state, data, np.empty((0, 2)))
    mean, variance = belief.model.moments(torch.tensor(data.x))
    # The model interpolates up to its nugget.
    np.testing.assert_allclose(mean.numpy() / scale, raw.y, atol=1e-4 * raw.y.std())
    assert (np.sqrt(variance.numpy()) <= 1e-3 * scale * raw.y.std()).all()
    far = observe(function, np.random.default_rng(1).random((50, 2)))
    predicted = belief.model.moments(torch.tensor(far.x))[0].numpy()
    assert np.abs(predicted / scale - far.y).mean() < 0.2 * raw.y.std()


def test_estimates_are_values_without_noise_and_smoother_with_it():
    chosen = strategy("auto")
    for noise in (0.0, 0.1):
        data = on_hartmann(noise)
        # Without the bowl, whose top would come before the first model.
        state = chosen.start(cube(6), {"bowl": False}, 0).after(data)
        _, after = chosen.propose(state, data, np.empty((0, 6)), 1)
        estimates = chosen.estimates(after, data)
        exact = on_hartmann().y
        assert np.abs(estimates - exact).mean() <= (0.9 if noise else 1.0) * np.abs(data.y - exact).mean()
