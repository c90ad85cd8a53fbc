"""The bowl that points may show."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from auto_cases import design
from eign.data import Observations
from eign.models.bowl import _best_fit, bowl_top
from eign.problems import Problem, get, shifted


def _bowl(x: np.ndarray, center: np.ndarray, curvature: float = 3.0) -> Observations:
    away = x - center
    return Observations(x, -0.5 * curvature * (away**2).sum(axis=1), -curvature * away)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_the_top_of_a_bowl_is_found_whatever_its_units(size):
    center = np.array([0.3, 0.8, 0.55])
    data = _bowl(design(6, 3), center)
    scaled = Observations(data.x, size * data.y, size * data.grad)
    np.testing.assert_allclose(bowl_top(scaled), center, atol=1e-9)


def test_a_top_outside_of_the_cube_is_clipped():
    np.testing.assert_allclose(bowl_top(_bowl(design(6, 2), np.array([1.4, 0.5]))), [1.0, 0.5], atol=1e-9)


def test_a_few_steep_ripples_do_not_move_the_top():
    center = np.array([0.3, 0.8, 0.55])
    data = _bowl(design(12, 3), center)
    spoiled = data.grad.copy()
    spoiled[[2, 7, 9]] += 3.0 * np.array([[1, -1, 0.5], [-1, 0.3, 1], [0.2, 1, -1]])
    np.testing.assert_allclose(bowl_top(Observations(data.x, data.y, spoiled)), center, atol=1e-6)


def test_it_turns_with_the_cube():
    """But for the clipping, which is why the top is well inside."""
    data = _bowl(design(12, 3), np.array([0.45, 0.5, 0.55]))
    rough = data.grad + 0.3 * np.sin(20 * data.x)
    turn = ortho_group.rvs(3, random_state=0)
    middle = np.full(3, 0.5)
    turned = Observations((data.x - middle) @ turn.T + middle, data.y, rough @ turn.T)
    top = bowl_top(Observations(data.x, data.y, rough))
    np.testing.assert_allclose(bowl_top(turned), (top - middle) @ turn.T + middle, atol=1e-9)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize(("n", "dim"), [(5, 12), (20, 60)])
def test_in_what_the_points_span_the_fit_is_that_in_all_dimensions(n, dim, curved):
    rng = np.random.default_rng(n)
    x, y, gradients = rng.random((n, dim)) - 0.5, rng.standard_normal(n), rng.standard_normal((n, dim))
    spanned = _best_fit(x, y, gradients, np.linalg.qr(x.T)[0].T, curved=curved)
    whole = _best_fit(x, y, gradients, np.eye(dim), curved=curved)
    # The same equations in other coordinates; their condition, and so their rounding, is that of the ridge of 1e-12.
    np.testing.assert_allclose(spanned.slope, whole.slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(spanned[1:], whole[1:], rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_griewank_shows_one_and_a_sample_of_a_process_does_not(seed):
    box = shifted(get("griewank-10"), seed=7)
    x = design(13, 10, seed)
    top = bowl_top(_seen(box, x))
    assert top is not None
    # The optimum of the ripples is the bowl's; designs differ in how well they see it.
    assert np.abs(top - box.bounds.to_unit(box.optimizers)[0]).mean() < 0.2
    sample = get("gp-sample", 4, seed=3)
    assert bowl_top(Observations(x[:7, :4], *sample.evaluate(x[:7, :4]))) is None


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_noisy_copies_of_one_point_are_no_bowl(dim, seed):
    noise = np.random.default_rng(seed).normal(size=(dim + 3, dim))
    data = Observations(np.full((dim + 3, dim), 0.7), noise[:, 0], -1.0 + 0.3 * noise)
    assert bowl_top(data) is None


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_one_bad_value_does_not_hide_what_gradients_show(size):
    center = np.array([0.3, 0.8, 0.55])
    data = _bowl(design(6, 3), center)
    values = data.y - size * (np.arange(6) == 2)
    assert np.abs(bowl_top(Observations(data.x, values, data.grad)) - center).max() < 0.01


def _seen(problem: Problem, x: np.ndarray) -> Observations:
    values, gradients = problem.evaluate(problem.bounds.from_unit(x))
    return Observations(x, values, gradients * (problem.bounds.upper - problem.bounds.lower))


@pytest.mark.parametrize("seed", range(5))
def test_values_tell_where_ripples_hide_the_bowl_from_the_gradients(seed):
    """Ripples so short that gradients are theirs, by a factor of five, while values hardly know of them."""
    x, center = design(14, 3, seed), np.array([0.3, 0.8, 0.55])
    bowl = _bowl(x, center)
    size, wave = 0.02, np.array([500.0, 600.0, 700.0])
    data = Observations(x, bowl.y + size * np.sin(x * wave).sum(axis=1), bowl.grad + size * wave * np.cos(x * wave))
    assert np.abs(bowl_top(data) - center).max() < 0.1
    # Values that belong to other points tell nothing: the gradients alone are not enough.
    mixed = bowl_top(Observations(x, np.roll(data.y, 5), data.grad))
    assert mixed is None or np.abs(mixed - center).max() > 0.1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_bowl(design(3, 2), np.array([0.5, 0.5])), id="too few"),
        pytest.param(_bowl(design(9, 2), np.array([0.5, 0.5]), curvature=-3.0), id="a pit"),
        pytest.param(Observations(design(9, 2), np.ones(9), np.zeros((9, 2))), id="constant"),
        pytest.param(Observations(design(9, 2), np.ones(9), np.ones((9, 2))), id="a slope"),
        pytest.param(Observations(design(9, 2), np.ones(9)), id="no gradients"),
        pytest.param(Observations(np.full((9, 2), 0.5), np.ones(9), np.ones((9, 2))), id="one point"),
        pytest.param(Observations(design(9, 2), np.full(9, 1e300 / 3), design(9, 2) - 0.5), id="a large constant"),
        pytest.param(
            Observations(design(9, 2), np.where(np.arange(9) % 2, 1.7e308, -1.7e308), design(9, 2)), id="huge"
        ),
        pytest.param(Observations(design(9, 2), np.arange(9.0), 5e-324 * (design(9, 2) > 0.5)), id="hardly a slope"),
    ],
)
def test_no_bowl(data):
    assert bowl_top(data) is None


def test_incomplete_gradients_are_left_out():
    data = _bowl(design(9, 2), np.array([0.4, 0.7]))
    spoiled = data.grad.copy()
    spoiled[3, 1], spoiled[5] = np.nan, np.nan
    np.testing.assert_allclose(bowl_top(Observations(data.x, data.y, spoiled)), [0.4, 0.7], atol=1e-9)
