"""Logarithms of positive coordinates: the map, when `auto` takes it, and what users see of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auto_cases import coupled, design, observe, options
from eign.data import Observations
from eign.models.selection import evidence
from eign.models.transforms.coordinates import Coordinates
from eign.space import SAME_POINT, Box
from eign.strategies import State, strategy
from eign.strategies.auto.memory import Expectation, Memory
from eign.study import Optimizer
from eign.study.handle import handle

MAGNITUDES = [(1e-3, 10.0), (0.05, 50.0)]


def in_logarithms(x: np.ndarray) -> tuple[float, np.ndarray]:
    """To be minimised: smooth in the logarithms of x alone, over four and three decades, best at (0.01, 1)."""
    t = torch.tensor(x, requires_grad=True)
    off = torch.log10(t) - torch.tensor([-2.0, 0.0])
    y = torch.log1p((off**2).sum() + off[0] * off[1])
    y.backward()
    return y.item(), t.grad.numpy()


def along_x(x: np.ndarray) -> tuple[float, np.ndarray]:
    """To be minimised: smooth in x over the same box."""
    scale = np.array([10.0, 50.0])
    data = observe(coupled, x[None] / scale)
    return -float(data.y[0]), -data.grad[0] / scale


def run(function, count, **chosen) -> Optimizer:
    opt = Optimizer(MAGNITUDES, seed=3, options=chosen, check_gradients=False)
    for _ in range(count):
        x = opt.ask()
        assert (
            State.from_json(json.loads(json.dumps(handle(opt).state.to_json(), allow_nan=False))) == handle(opt).state
        )
        opt.tell(x, *function(x))
    return opt


@given(u=st.floats(0, 1), decades=st.floats(2, 9))
def test_there_and_back_is_the_same_point(u, decades):
    logs = Coordinates([decades, 0.0], logs=True)
    w = logs.points(np.array([[u, u]]))
    assert np.all((w >= 0) & (w <= 1))
    assert np.abs(logs.undo(w) - u).max() <= SAME_POINT / 10
    assert w[0, 1] == pytest.approx(u, rel=1e-15, abs=1e-300)
    assert logs.points(np.array([[0.0, 0.0], [1.0, 1.0]])).tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_it_is_the_logarithm_of_the_users_coordinate():
    box = Box([(0.02, 70.0), (-1.0, 1.0)])
    x = np.array([[0.02, 0.0], [0.3, -0.5], [8.0, 1.0], [70.0, -1.0]])
    logs = Coordinates(box.decades.tolist(), logs=True)
    np.testing.assert_allclose(logs.points(box.to_unit(x)), Box(box, log=[0]).to_unit(x), atol=1e-13)


@pytest.mark.parametrize("decades", [[], [0.0, 0.0], [1.9, 0.5]])
def test_without_two_decades_coordinates_are_those_of_the_cube(decades):
    coordinates = Coordinates(decades, logs=True)
    data = observe(coupled, design(3, 2))
    assert coordinates.are_own
    assert coordinates.seen(data) is data
    assert coordinates.points(data.x) is data.x
    assert coordinates.undo(data.x) is data.x
    assert coordinates.log_jacobian(data) == 0.0


def test_gradients_follow_the_chain_rule_and_so_does_their_density():
    logs = Coordinates([3.0, 0.0], logs=True)
    data = observe(coupled, design(5, 2))
    seen, step = logs.seen(data), 1e-6
    slopes = np.empty_like(data.grad)
    for i, shift in enumerate(step * np.eye(2)):
        above, below = (observe(coupled, logs.undo(seen.x + sign * shift)).y for sign in (1, -1))
        slopes[:, i] = (above - below) / (2 * step)
    np.testing.assert_allclose(seen.grad, slopes, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(seen.y, data.y)
    ratio = np.log(np.abs(seen.grad / data.grad)).sum()
    assert logs.log_jacobian(data) == pytest.approx(ratio, rel=1e-12)
    # A slope that is missing has no density.
    few = Observations(data.x, data.y, np.where([True, False], np.nan, data.grad))
    assert logs.log_jacobian(few) == 0.0


def test_a_memory_moves_with_its_points():
    here, there = (Coordinates([4.0, 0.0], logs=logs) for logs in (False, True))
    memory = Memory(open=(Expectation([0.1, 0.2], "local", 0.5),), optima=([0.001, 0.3],), radius=0.01)
    moved = memory.in_others(lambda x: there.points(here.undo(x)))
    assert moved.logs
    assert moved.radius == memory.radius
    np.testing.assert_array_equal(moved.optima, there.points(np.array(memory.optima)))
    back = moved.in_others(lambda x: here.points(there.undo(x)))
    np.testing.assert_allclose(back.optima, memory.optima, rtol=1e-12)
    np.testing.assert_allclose(back.open[0].x, memory.open[0].x, rtol=1e-12)
    assert replace(back, open=memory.open, optima=memory.optima) == memory


def test_magnitudes_are_searched_in_logarithms():
    found = run(in_logarithms, 20)
    assert handle(found).state.memory["logs"]
    # Uniform points of this box are below 1e-6 once in a million, and those of a linear model not often.
    assert found.best.y < 1e-6
    linear = run(in_logarithms, 20, logs=False)
    assert not handle(linear).state.memory["logs"]
    assert linear.best.y > 1e-3


def test_what_is_smooth_as_it_is_stays_as_it_is():
    opt = run(along_x, 12)
    assert not handle(opt).state.memory["logs"]
    own, logs = (Coordinates(handle(opt).state.decades, logs=logs) for logs in (False, True))
    likelier, others = (evidence(handle(opt).data, seen, options()) for seen in (own, logs))
    assert likelier > others + 10.0


def test_evidence_is_that_of_what_was_told():
    """Of one value and slope under any map: what the map does to the density is undone."""
    box = Box([(0.1, 10.0)])
    data = observe(lambda x: torch.log(box.lower[0] + (box.upper - box.lower)[0] * x[..., 0]), design(8, 1))
    own, logs = (Coordinates(box.decades.tolist(), logs=logs) for logs in (False, True))
    gain = evidence(data, logs, options()) - evidence(data, own, options())
    assert gain > 10.0
    # Other units of y change the density of values and slopes alike, whatever the coordinates.
    scaled = Observations(data.x, 1e3 * data.y, 1e3 * data.grad)
    assert evidence(scaled, logs, options()) - evidence(scaled, own, options()) == pytest.approx(gain, abs=1e-3)


def test_in_many_dimensions_the_choice_is_made_after_the_design():
    state = strategy("auto").start(Box([(1e-3, 1.0)] * 20), None, 0)
    logs = Coordinates(state.decades, logs=True)
    data = observe(lambda w: -((w - 0.4) ** 2).sum(-1), logs.points(design(23, 20)))
    slope = logs.seen(Observations(design(23, 20), data.y, np.ones((23, 20)))).grad
    told = Observations(design(23, 20), data.y, data.grad / slope)
    _, state = strategy("auto").propose_one(replace(state, told=23), told, np.empty((0, 20)))
    assert state.memory["logs"]


def test_pictures_show_the_users_coordinates():
    opt = run(in_logarithms, 14)
    assert handle(opt).state.memory["logs"]
    outlook = opt.outlook()
    seen = outlook.predict(opt.history.x)
    spread = np.ptp(opt.history.y)
    np.testing.assert_allclose(seen.mean, opt.history.y, atol=1e-4 * spread)
    assert opt.box.contains(outlook.x)
    best = outlook.acquisition(outlook.x[None])
    elsewhere = outlook.acquisition(opt.box.from_unit(design(64, 2, seed=1)))
    assert best[0] >= elsewhere.max()


def test_estimates_of_noisy_values_are_of_the_same_points():
    rng = np.random.default_rng(0)

    def noisy(x):
        y, grad = in_logarithms(x)
        return y + 0.05 * rng.standard_normal(), grad, 0.05**2, 0.0

    opt = run(noisy, 16)
    assert handle(opt).state.memory["logs"]
    exact = np.array([in_logarithms(x)[0] for x in opt.history.x])
    estimates = -handle(opt).strategy.estimates(handle(opt).state, handle(opt).data)
    assert np.abs(estimates - exact).mean() < np.abs(opt.history.y - exact).mean()


def test_batches_and_failures_in_logarithms():
    opt = Optimizer(MAGNITUDES, seed=3, check_gradients=False)
    for index in range(8):
        points = opt.ask(3)
        assert opt.box.contains(points).all()
        assert len(np.unique(points.round(12), axis=0)) == 3
        for one, x in enumerate(points):
            opt.tell(x, *((np.nan, None) if index and one == 2 else in_logarithms(x)))
    assert handle(opt).state.memory["logs"]
    # The last decade of the first coordinate is a thousandth of the box.
    assert opt.best.x[0] < 0.02
