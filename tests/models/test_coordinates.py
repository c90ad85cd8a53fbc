"""Logarithms of positive coordinates: the map, when `auto` takes it, and what users see of it."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auto_cases import coupled, design, observe
from eign.data import Observations
from eign.models.transforms.coordinates import Coordinates
from eign.space import SAME_POINT, Box
from eign.strategies import State
from eign.strategies.auto.memory import Memory
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


def sees_logarithms(opt: Optimizer) -> bool:
    fit = Memory.from_json(handle(opt).state.memory).fit
    assert fit is not None
    return fit.choice.logs


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


def test_magnitudes_are_searched_in_logarithms():
    # Without local searches, which find the optimum in any coordinates. Six seeds: at most 2e-12 with logarithms, at
    # least 0.1 without.
    found = run(in_logarithms, 20, local=False, elsewhere=False)
    assert sees_logarithms(found)
    assert found.best.y < 1e-9
    linear = run(in_logarithms, 20, local=False, elsewhere=False, logs=False)
    assert not sees_logarithms(linear)
    assert linear.best.y > 1e-3


def test_what_is_smooth_as_it_is_stays_as_it_is():
    assert not sees_logarithms(run(along_x, 12))


def test_pictures_show_the_users_coordinates():
    opt = run(in_logarithms, 14, local=False)  # the model leaves out points that local searches put side by side
    assert sees_logarithms(opt)
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
    assert sees_logarithms(opt)
    exact = np.array([in_logarithms(x)[0] for x in opt.history.x])
    estimates = -handle(opt).strategy.estimates(handle(opt).state, handle(opt).data)
    # Five deviations of the noise; estimates of other points would be off by their spread, which is 2.5.
    assert np.abs(estimates - exact).max() < 0.25


def test_batches_and_failures_in_logarithms():
    opt = Optimizer(MAGNITUDES, seed=3, check_gradients=False)
    for index in range(8):
        points = opt.ask(3)
        assert opt.box.contains(points).all()
        assert len(np.unique(points.round(12), axis=0)) == 3
        for one, x in enumerate(points):
            opt.tell(x, *((np.nan, None) if index and one == 2 else in_logarithms(x)))
    assert sees_logarithms(opt)
    # The last decade of the first coordinate is a thousandth of the box.
    assert opt.best.x[0] < 0.02


def test_slopes_go_back_to_the_cube():
    logs = Coordinates([4.0, 0.0], logs=True)
    x = np.array([[0.003, 0.2], [0.7, 0.9]])
    by_own = np.array([[1.5, -2.0], [0.5, 3.0]])
    by_cube = logs.slopes(by_own, x)
    for i in range(2):
        step = 1e-7 * np.eye(2)[i]
        along = (logs.points(x + step) - logs.points(x - step)) / 2e-7
        # Third order over 1e-14, rounding over 1e-7.
        np.testing.assert_allclose(by_cube[:, i], (by_own * along).sum(axis=1), rtol=1e-6)
    assert (Coordinates([4.0, 0.0], logs=False).slopes(by_own, x) == by_own).all()
