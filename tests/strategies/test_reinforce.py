"""REINFORCE: where it starts, how long its steps are, and what it does when something is missing."""

import numpy as np
import pytest

from cases import cube
from eign.data import Observations
from eign.strategies import strategy
from eign.strategies.reinforce import gradient_size, replay
from eign.study import Optimizer

CENTER = np.array([0.6, 0.3])


def bowl(x):
    """To be maximised, in the unit cube."""
    return -float(((x - CENTER) ** 2).sum()), -2 * (x - CENTER)


def run(count, function=bowl, **options):
    opt = Optimizer([(0, 1)] * 2, method="reinforce", seed=0, maximize=True, options=options, check_gradients=False)
    for _ in range(count):
        x = opt.ask()
        opt.tell(x, *function(x))
    return opt.history


def test_it_follows_the_gradient_from_the_best_point_of_the_design():
    history = run(12, step=0.05)
    size = np.sqrt((history.grad[:6] ** 2).sum(axis=1).mean())
    point = history.x[history.y[:6].argmax()]
    for following in history.x[6:]:
        point = point + 0.05 * -2 * (point - CENTER) / size
        np.testing.assert_allclose(following, point, atol=1e-12)
    assert (np.diff(history.y[6:]) > 0).all()


def test_it_stays_in_the_box_and_starts_anew_in_a_corner():
    history = run(30, lambda x: (float(x.sum()), np.ones(2)), step=0.3)
    assert (history.x <= 1).all()
    assert (history.x == 1).all(axis=1).sum() == 1
    # Other runs start at other points of the design, best first.
    starts = np.argsort(-history.y[:6])[:2]
    np.testing.assert_allclose(history.x[6], np.minimum(history.x[starts[0]] + 0.3 / np.sqrt(2), 1))
    corner = np.flatnonzero((history.x == 1).all(axis=1))[0]
    np.testing.assert_allclose(history.x[corner + 1], np.minimum(history.x[starts[1]] + 0.3 / np.sqrt(2), 1))


def test_a_failure_halves_the_step():
    x = np.array([[0.2, 0.2], [0.4, 0.2], [0.3, 0.2]])
    data = Observations(x, [1.0, np.nan, np.nan], [[1.0, 0.0], [np.nan] * 2, [np.nan] * 2])
    ahead = replay(x[0], data, step=0.2, size=1.0)
    np.testing.assert_allclose(ahead.needed, [0.25, 0.2])
    assert ahead.used == {0, 1, 2}


def test_failures_all_around_end_the_run():
    x = np.array([[0.2, 0.2], *([0.2 + 0.4 * 0.5**k, 0.2] for k in range(9))])
    data = Observations(x, [1.0, *[np.nan] * 9], [[1.0, 0.0], *[[np.nan] * 2] * 9])
    assert replay(x[0], data, step=0.4, size=1.0).needed is None


def test_a_missing_component_is_not_followed_and_a_missing_gradient_ends_the_run():
    data = Observations([[0.2, 0.2]], [1.0], [[np.nan, 1.0]])
    np.testing.assert_allclose(replay(data.x[0], data, step=0.1, size=2.0).needed, [0.2, 0.25])
    assert replay(data.x[0], Observations([[0.2, 0.2]], [1.0]), step=0.1, size=1.0).needed is None


def test_a_run_that_comes_back_to_a_point_has_ended():
    data = Observations([[0.2], [0.4]], [0.0, 0.0], [[1.0], [-1.0]])
    assert replay(data.x[0], data, step=0.2, size=1.0).needed is None


def test_the_usual_size_of_a_gradient():
    data = Observations(np.zeros((3, 2)), np.zeros(3), [[3, 4], [np.nan, 1], [np.nan, np.nan]])
    assert gradient_size(data) == pytest.approx(np.sqrt((25 + 1) / 2))
    assert gradient_size(Observations.empty(2)) == gradient_size(Observations([[0.0]], [1.0], [[0.0]])) == 1.0
    huge = Observations([[0.0]], [1.0], [[1e300]])
    assert gradient_size(huge) == 1e300
    tiny = replay(np.zeros(1), huge, step=0.1, size=1e-300)
    np.testing.assert_array_equal(tiny.needed, [1.0])


def test_the_size_is_measured_once():
    chosen = strategy("reinforce")
    data = Observations(np.random.default_rng(0).random((6, 2)), np.arange(6.0), np.ones((6, 2)))
    state = chosen.start(cube(2), {}, 0).after(data)
    _, state = chosen.propose(state, data, np.empty((0, 2)), 1)
    assert state.memory["gradient_size"] == pytest.approx(np.sqrt(2))
    more = data.append([[0.5, 0.5]], [1.0], [[100.0, 0.0]])
    _, later = chosen.propose(state.after(more[6:]), more, np.empty((0, 2)), 1)
    assert later.memory["gradient_size"] == state.memory["gradient_size"]
