"""The search for an acquisition's maximum: what it promises about every suggestion."""

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import PosteriorMean

from acquisition_cases import ACQUISITIONS, MODELS, surrogate
from eign.acquisition import EI, EIGN, UCB, LogEI, incumbent
from eign.acquisition.with_gradients import Terms
from eign.models import Hyperparameters, IndependentGradientGP, JointGradientGP
from eign.search import Effort, default_effort, maximize
from eign.search.candidates import best_along_coordinates, boltzmann_starts, global_candidates, local_candidates
from eign.search.maximize import CLOSEST
from eign.search.rescaling import rescaled
from joint_cases import observe, random_points

D = 3


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return surrogate(request.param, d=D)


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_suggestion_is_a_local_maximum_above_all_candidates(model, name):
    acquisition = ACQUISITIONS[name](model)
    found = maximize(acquisition, seed=1, rescale=False)
    assert not found.is_fallback
    assert found.x.shape == (D,)
    assert found.x.dtype == torch.float64
    assert (found.x >= 0).all()
    assert (found.x <= 1).all()
    assert found.value == pytest.approx(acquisition(found.x[None, None]).item(), rel=1e-9)
    pool = acquisition.evaluate(random_points(256, D).numpy())
    assert found.value >= pool.max()
    (_, gradient) = acquisition.value_and_gradient(found.x.numpy()[None])
    inside = ((found.x > 0) | torch.tensor(gradient[0] > 0)) & ((found.x < 1) | torch.tensor(gradient[0] < 0))
    # One unit of the gradient is one spread of the pool in the width of the cube.
    assert np.abs(gradient[0][inside.numpy()]).max(initial=0.0) < 0.05 * np.ptp(pool)


@pytest.mark.parametrize("name", ["EIGN", "LogEI"])
def test_same_seed_same_suggestion(model, name):
    acquisition = ACQUISITIONS[name](model)
    torch.manual_seed(0)
    first = maximize(acquisition, seed=5)
    torch.manual_seed(1)
    np.random.default_rng(3).random()
    again = maximize(acquisition, seed=5)
    assert torch.equal(first.x, again.x)
    assert first.value == again.value


def test_seeds_draw_other_candidates():
    first, second = (global_candidates(8, D, np.random.default_rng(seed)) for seed in (1, 2))
    assert not np.array_equal(first, second)


def test_finds_the_maximum_of_a_smooth_posterior():
    """UCB with weight 0 is the posterior mean; a grid finds its maximum over the square to 1e-4."""
    model = surrogate("joint", n=25, d=2)
    axis = torch.linspace(0, 1, 201, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    highest = PosteriorMean(model)(grid.unsqueeze(-2)).max().item()
    assert maximize(UCB(model, weight=0.0), seed=0).value >= highest - 1e-9


class TestPointsEvaluatedBefore:
    """At the observed maximum of a concave function the posterior mean is largest, so that it would be suggested."""

    X = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
    Y = -((X - 0.5) ** 2)

    def acquisition(self) -> UCB:
        return UCB(JointGradientGP(self.X, self.Y, -2 * (self.X - 0.5)), weight=0.0)

    def test_are_not_suggested_again(self):
        found = maximize(self.acquisition(), seed=0, incumbents=self.X[1:2])
        assert (found.x - self.X).abs().min() > CLOSEST

    def test_are_if_evaluations_are_noisy(self):
        again = maximize(self.acquisition(), seed=0, incumbents=self.X[1:2], is_noisy=True)
        assert abs(again.x.item() - 0.5) < 1e-6

    def test_include_those_to_avoid(self):
        model = surrogate("independent", d=D)
        acquisition = LogEI(model, incumbent(model).best_f)
        first = maximize(acquisition, seed=4)
        second = maximize(acquisition, seed=4, avoid=first.x[None])
        assert (first.x - second.x).abs().max() > CLOSEST
        assert torch.equal(maximize(acquisition, seed=4, avoid=first.x[None], is_noisy=True).x, first.x)

    def test_even_when_every_candidate_is_one(self):
        acquisition = self.acquisition()
        rng = np.random.default_rng(0)
        raw = torch.from_numpy(global_candidates(2, 1, rng))
        local = torch.from_numpy(local_candidates(self.X[1:2].numpy(), 1, rng))
        flat = EI(acquisition.model, best_f=1e9)  # zero everywhere in float64
        avoid = torch.cat([raw, local])
        found = maximize(flat, seed=0, raw_samples=2, restarts=1, avoid=avoid)
        assert found.is_fallback
        assert (found.x - torch.cat([avoid, self.X])).abs().min() > CLOSEST


class TestFlatAcquisition:
    def test_explores_where_f_is_least_known(self):
        model = surrogate("independent", d=D)
        found = maximize(EI(model, best_f=1e9), seed=2)
        assert found.is_fallback
        assert found.value == 0.0
        raw = torch.from_numpy(global_candidates(256, D, np.random.default_rng(2)))
        sigma = model.posterior(raw.unsqueeze(-2)).variance.sqrt()
        assert model.posterior(found.x[None]).variance.sqrt().item() == pytest.approx(sigma.max().item(), rel=1e-6)

    def test_or_far_from_the_data_if_that_is_the_same_everywhere(self):
        X, Y, G = observe(6, 2)
        short = Hyperparameters.shared(2, lengthscale=1e-4)
        model = IndependentGradientGP(X, Y, G).with_hyperparameters(short)
        found = maximize(EI(model, best_f=1e9), seed=0)
        raw = torch.from_numpy(global_candidates(256, 2, np.random.default_rng(0)))
        assert found.is_fallback
        assert torch.cdist(found.x[None], X).min() >= torch.cdist(raw, X).min(dim=1).values.max() - 1e-12


class TestRescaling:
    @pytest.fixture
    def acquisition(self):
        model = surrogate("independent", d=D)
        best = incumbent(model)
        return EIGN(model, best.best_f, best.best_grad, alpha=0.6)

    def test_alpha_in_units_of_the_spreads(self, acquisition):
        terms = Terms(np.array([0.0, 2.0]), np.array([0.0, 10.0]))
        assert rescaled(acquisition, terms).weights == (1.0, pytest.approx(0.6 * 0.2))

    def test_flat_increase_leaves_expected_improvement(self, acquisition):
        assert rescaled(acquisition, Terms(np.array([0.0, 2.0]), np.zeros(2))).weights == (1.0, 0.0)

    def test_flat_improvement_leaves_the_increase(self, acquisition):
        assert rescaled(acquisition, Terms(np.zeros(2), np.array([0.0, 2.0]))).weights == (0.0, 1.0)

    def test_both_flat_is_the_fallback(self, monkeypatch, acquisition):
        monkeypatch.setattr(EIGN, "terms", lambda self, X: Terms(np.zeros(len(X)), np.zeros(len(X))))
        assert maximize(acquisition, seed=0).is_fallback

    def test_alpha_zero_is_left_alone(self, acquisition):
        best = incumbent(acquisition.model)
        plain = EIGN(acquisition.model, best.best_f, best.best_grad, alpha=0.0)
        assert rescaled(plain, Terms(np.zeros(2), np.array([0.0, 2.0]))).weights == (1.0, 0.0)

    def test_changes_what_is_maximised_but_not_what_is_reported(self, acquisition):
        with_it, without = (maximize(acquisition, seed=3, rescale=rescale) for rescale in (True, False))
        for found in (with_it, without):
            assert found.value == pytest.approx(acquisition(found.x[None, None]).item(), rel=1e-9)
        assert without.value > with_it.value

    def test_suggestion_does_not_depend_on_the_units_of_y(self):
        suggestions = []
        for scale in (1.0, 1e4):
            model = surrogate("joint", d=2, scale=scale)
            best = incumbent(model)
            suggestions.append(maximize(EIGN(model, best.best_f, best.best_grad), seed=0).x)
        torch.testing.assert_close(*suggestions, rtol=0, atol=1e-4)


class TestCandidates:
    def test_global_ones_fill_the_cube(self):
        points = global_candidates(256, 4, np.random.default_rng(0))
        assert points.shape == (256, 4)
        counts = [np.histogram(column, bins=8, range=(0, 1))[0] for column in points.T]
        assert (np.abs(np.array(counts) - 32) <= 1).all()

    @pytest.mark.parametrize("dim", [1, 3, 40])
    def test_local_ones_change_few_coordinates_and_stay_inside(self, dim):
        incumbents = np.array([np.zeros(dim), np.full(dim, 0.5)])
        points = local_candidates(incumbents, 400, np.random.default_rng(0))
        changed = (points != incumbents[np.arange(400) % 2]).sum(axis=1)
        assert points.min() >= 0
        assert points.max() <= 1
        assert changed.min() >= 1
        assert changed.mean() < 7

    def test_starts_contain_the_best_and_prefer_the_good(self):
        values = np.linspace(-1, 1, 100)
        chosen = np.concatenate([boltzmann_starts(values, 5, np.random.default_rng(seed)) for seed in range(300)])
        draws = chosen.reshape(300, 5)
        assert (draws[:, 0] == 99).all()
        assert all(len(set(row)) == 5 for row in draws)
        others = chosen[chosen != 99]
        # The lower half counts as zero, the upper one is uniform on [0, 1], and the deviation of both is 0.32: the mean
        # of exp(z) is 6.8 in the upper half and 1 in the lower.
        assert (others >= 50).mean() == pytest.approx(0.87, abs=0.04)

    def test_starts_do_not_depend_on_how_low_the_lower_half_is(self):
        values = np.linspace(-1, 1, 100)
        deep = np.where(values < -0.1, 1e3 * values, values)
        for seed in range(20):
            shallow, other = (boltzmann_starts(v, 5, np.random.default_rng(seed)) for v in (values, deep))
            np.testing.assert_array_equal(shallow, other)


@pytest.mark.parametrize(
    ("dim", "effort"),
    [(2, (8, 256)), (4, (8, 256)), (6, (10, 512)), (7, (10, 512)), (8, (20, 1024)), (14, (20, 1024))],
)
def test_effort_is_the_paper_s(dim, effort):
    assert default_effort(dim) == Effort(*effort)


class TestBadInput:
    def test_more_restarts_than_candidates(self):
        with pytest.raises(ValueError, match="1 <= restarts <= raw_samples"):
            maximize(UCB(surrogate("joint")), seed=0, restarts=9, raw_samples=8)

    def test_points_of_another_dimension(self):
        with pytest.raises(ValueError, match="must be n x 3"):
            maximize(UCB(surrogate("joint")), seed=0, avoid=torch.zeros(1, 2))

    def test_model_that_hides_its_points(self):
        model = surrogate("joint")
        conditioned = model.condition_on_observations(random_points(1, D), torch.ones(1, 1, dtype=torch.float64))
        with pytest.raises(ValueError, match="pass avoid or incumbents"):
            maximize(UCB(conditioned), seed=0)
        assert maximize(UCB(conditioned), seed=0, avoid=random_points(1, D)).x.shape == (D,)


def test_along_coordinates_the_highest_of_many_waves_is_found():
    def waves(x):  # of each coordinate eight, the highest at the sixth of 41 places
        return (np.cos(16 * np.pi * (x - 0.125)) - 4 * (x - 0.125) ** 2).sum(axis=1)

    found = best_along_coordinates(waves, np.full(6, 0.9), places=41)
    np.testing.assert_allclose(found, 0.125)
    assert waves(found[None])[0] == pytest.approx(6.0)
    never_defined = best_along_coordinates(lambda x: np.full(len(x), np.nan), np.full(2, 0.3), places=5)
    np.testing.assert_array_equal(never_defined, [0.3, 0.3])


def test_a_guess_on_a_peak_that_no_candidate_sees_is_taken_up():
    X, Y = (
        torch.tensor([[0.1, 0.1], [0.9, 0.2]], dtype=torch.float64),
        torch.tensor([[0.0], [0.1]], dtype=torch.float64),
    )

    class Peak(LogEI):
        """A needle at (0.3, 0.7) in a plain."""

        def evaluate(self, X):
            return np.exp(-1e6 * ((X - [0.3, 0.7]) ** 2).sum(axis=1)) + 1e-3 * X[:, 0]

        def value_and_gradient(self, X):
            away = X - [0.3, 0.7]
            needle = np.exp(-1e6 * (away**2).sum(axis=1))
            return needle + 1e-3 * X[:, 0], -2e6 * away * needle[:, None] + [1e-3, 0.0]

    peak = Peak(JointGradientGP(X, Y, torch.zeros_like(X)), 0.1)
    guess = np.array([[0.3005, 0.7]])
    near = maximize(peak, seed=0, guesses=guess).x.numpy()
    np.testing.assert_allclose(near, [0.3, 0.7], atol=1e-4)
    assert np.abs(maximize(peak, seed=0).x.numpy() - [0.3, 0.7]).max() > 0.1


@pytest.mark.parametrize("apart", [0.01, 0.2])
def test_a_suggestion_is_as_far_apart_from_all_points_as_it_is_asked_to_be(apart):
    model = surrogate("joint")
    seen = model.observations.x
    found = maximize(LogEI(model, float(model.observations.y.max())), seed=1, apart=apart).x.numpy()
    assert np.abs(seen - found).max(axis=1).min() > apart


def test_of_searches_and_candidates_the_one_that_was_not_given_follows_the_other(model):
    acquisition = ACQUISITIONS["EI"](model)
    assert maximize(acquisition, seed=1, raw_samples=2).x.shape == (D,)
    assert maximize(acquisition, seed=1, restarts=300).x.shape == (D,)
    with pytest.raises(ValueError, match="restarts <= raw_samples"):
        maximize(acquisition, seed=1, restarts=3, raw_samples=2)
