"""Functions of many coordinates that change along few directions."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from eign.data import Observations
from eign.models.transforms.directions import Directions, active_directions

RANK, DIM = 3, 40


@pytest.fixture
def axes() -> np.ndarray:
    return ortho_group.rvs(DIM, random_state=1)[:RANK]


def gradients(axes: np.ndarray, count: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, len(axes))) @ axes


def test_gradients_of_a_function_of_few_directions_span_them(axes):
    found = active_directions(gradients(axes, 8), rest=1e-3, most=DIM).axes
    assert found.shape == (RANK, DIM)
    np.testing.assert_allclose(found @ found.T, np.eye(RANK), atol=1e-14)
    np.testing.assert_allclose(found.T @ (found @ axes.T), axes.T, atol=1e-13)


def test_directions_stay_what_they_are_as_gradients_come(axes):
    many = gradients(axes, 12)
    assert np.array_equal(
        active_directions(many, rest=1e-3, most=DIM).axes, active_directions(many[:5], rest=1e-3, most=DIM).axes
    )


@pytest.mark.parametrize(("size", "rank"), [(1e-4, RANK), (1e-2, 8)])
def test_a_small_rest_is_left_out_and_a_larger_one_is_not(axes, size, rank):
    rough = gradients(axes, 8)
    noise = np.random.default_rng(1).normal(size=rough.shape)
    noise *= size * np.linalg.norm(rough, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
    assert len(active_directions(rough + noise, rest=1e-3, most=DIM).axes) == rank


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_units_do_not_matter_and_gradients_of_zero_say_nothing(axes, size):
    given = np.vstack([np.zeros(DIM), size * gradients(axes, 5)])
    found, plain = (active_directions(g, rest=1e-3, most=DIM).axes for g in (given, gradients(axes, 5)))
    np.testing.assert_allclose(found, plain, atol=1e-12)
    assert active_directions(np.zeros((4, DIM)), rest=1e-3, most=DIM).axes.shape == (0, DIM)


def test_observations_along_the_directions_have_the_derivatives_along_them(axes):
    few = Directions(axes)

    def value(u: np.ndarray) -> np.ndarray:
        return np.sin(3.0 * u).sum(axis=-1)

    x = np.random.default_rng(2).random((6, DIM))
    grad = (3.0 * np.cos(3.0 * few.coordinates(x)) / few.reach) @ axes
    seen = few.seen(Observations(x, value(few.coordinates(x)), grad))
    assert len(seen) > 0
    step = 1e-6 * np.eye(RANK)
    for row in range(len(seen)):
        slope = (value(seen.x[row] + step) - value(seen.x[row] - step)) / 2e-6
        np.testing.assert_allclose(seen.grad[row], slope, atol=1e-8)


def test_the_cube_of_directions_holds_the_best_point_and_no_more_than_the_box():
    """A diagonal of four coordinates reaches twice as far as one of them."""
    few = Directions(np.full((1, 4), 0.5))
    x = np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.8, 0.8, 0.8, 0.6], [1.0, 1.0, 1.0, 1.0]])
    told = Observations(x, np.arange(4.0), np.ones((4, 4)))
    assert few.seen(told).y.tolist() == [1.0, 2.0]
    for row, reach in ((1, 1.0), (2, 2.0), (3, 2.0)):
        wide = few.around(x[row])
        np.testing.assert_allclose(wide.reach, reach)
        assert row in wide.seen(told).y
    np.testing.assert_allclose(few.around(x[3]).coordinates(x)[:, 0], [0.0, 0.5, 0.75, 1.0], atol=1e-15)
    np.testing.assert_array_equal(Directions(np.eye(2, 4)).around(x[3]).coordinates(x[2]), x[2, :2])


def test_a_point_with_given_coordinates_lies_in_the_cube(axes):
    few, rng = Directions(axes), np.random.default_rng(3)
    for _ in range(20):
        start, u = rng.random(DIM), rng.uniform(0.2, 0.8, RANK)
        x = few.lifted(u, start)
        assert ((x >= 0.0) & (x <= 1.0)).all()
        np.testing.assert_allclose(few.coordinates(x), u, atol=1e-9)
    # It stays what it is where it has them already.
    assert np.array_equal(few.lifted(few.coordinates(start), start), start)


def test_coordinates_that_no_point_has_are_missed_by_as_little_as_can_be():
    few = Directions(np.array([[0.6, 0.8]]))
    assert few.lifted(np.array([2.0]), np.array([0.5, 0.5])).tolist() == [1.0, 1.0]
