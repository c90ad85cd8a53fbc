"""Climbs of `auto`: steps on the model from a start of their own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from auto_cases import design, observe, options
from eign.data import Observations
from eign.models.selection import fitted
from eign.strategies.auto.climb import advance, is_above, told_rows, uphill
from eign.strategies.auto.memory import Climb

LOW, HIGH = np.array([0.25, 0.3]), np.array([0.8, 0.7])
NONE = np.empty((0, 2))


def _peaks(x: torch.Tensor, low: float = 1.0) -> torch.Tensor:
    """Two peaks of width 0.15, the second of height 2."""

    def squared(top: np.ndarray) -> torch.Tensor:
        return ((x - torch.tensor(top)) ** 2).sum(-1)

    return low * torch.exp(-squared(LOW) / 0.045) + 2.0 * torch.exp(-squared(HIGH) / 0.045)


def _seen(*points: np.ndarray) -> Observations:
    return observe(_peaks, np.vstack([design(12, 2), *points]))


def _climb(data: Observations, start: np.ndarray, optima: np.ndarray = NONE) -> tuple[list[np.ndarray], Observations]:
    """The whole path, evaluated, and all data at its end."""
    climb: Climb | None = Climb(start.tolist(), 0.2)
    model = fitted(data, None, options())
    while (climb := advance(climb, model, data, optima)) is not None:
        path = climb.path
        data = observe(_peaks, np.vstack([data.x, path[-1]]))
        model = fitted(data, model.fit, options())
        assert len(path) < 20
    return [np.array(x) for x in path], data


def test_it_leads_up_a_peak_and_ends_above_everything_else():
    path, data = _climb(_seen(LOW), np.array([0.65, 0.6]))
    values = observe(_peaks, np.array(path)).y
    assert values[-1] > 1.0
    assert values[-1] == data.y.max()
    # The first that is above the best of the others is the last: from there on it is the best point.
    assert (values[:-1] < 1.0).all()
    assert is_above(told_rows(Climb(path[0].tolist(), 0.2, path=tuple(x.tolist() for x in path)), data), data)


def test_it_is_given_up_before_it_comes_to_an_optimum_that_is_known():
    start = np.array([0.45, 0.5])
    unknowing, _ = _climb(_seen(HIGH), start)
    assert np.abs(unknowing[-1] - LOW).max() < 0.01
    path, _ = _climb(_seen(LOW, HIGH), start, np.array([LOW, HIGH]))
    assert len(path) < len(unknowing)
    assert np.abs(np.array(path) - LOW).max(axis=1).min() > 0.03


def test_a_peak_that_is_lower_than_the_best_point_is_left_before_its_last_digits():
    path, _ = _climb(_seen(HIGH), np.array([0.35, 0.4]))
    reached = observe(_peaks, np.array(path)).y.max()
    assert 0.9 < reached <= 1.01
    assert len(path) < 8


def test_it_begins_with_its_start_unless_that_is_known():
    data = _seen(HIGH)
    model = fitted(data, None, options())
    fresh = advance(Climb([0.35, 0.4], 0.2), model, data, NONE)
    assert fresh.path == ([0.35, 0.4],)
    known = advance(Climb(data.x[0].tolist(), 0.2), model, data, NONE)
    assert len(known.path) == 2
    assert known.path[0] == data.x[0].tolist()
    assert np.abs(data.x - known.path[1]).max(axis=1).min() > 1e-3


@pytest.mark.parametrize("answer", [np.nan, np.inf, None])
def test_a_start_without_a_value_ends_it(answer):
    data = _seen(HIGH)
    model = fitted(data, None, options())
    climb = advance(Climb([0.35, 0.4], 0.2), model, data, NONE)
    if answer is not None:
        data = Observations(np.vstack([data.x, climb.path[0]]), np.append(data.y, answer))
    assert advance(climb, model, data, NONE) is None


def test_a_step_that_failed_shrinks_its_trust_region():
    data = _seen(HIGH, np.array([0.35, 0.4]))
    model = fitted(data, None, options())
    first = advance(Climb([0.35, 0.4], 0.2), model, data, NONE)
    values = np.append(data.y, data.y[-1] - 0.1)
    grown = Observations(np.vstack([data.x, first.path[-1]]), values, np.vstack([data.grad, [0.0, 0.0]]))
    second = advance(first, fitted(grown, model.fit, options()), grown, NONE)
    assert second.radius == pytest.approx(first.radius / 3)
    # A point that was given up is not waited for.
    again = advance(replace(first, path=(*first.path, [0.9, 0.9])), model, data, NONE)
    assert again is not None


def _narrow(x: torch.Tensor) -> torch.Tensor:
    """Two peaks of width 0.1 in a plain of many dimensions, the second of height 2."""
    return sum(top * torch.exp(-((x - at) ** 2).sum(-1) / 0.02) for top, at in ((1.0, 0.3), (2.0, 0.7)))


def test_on_a_plain_where_the_model_sees_nothing_it_follows_the_gradient_to_a_peak():
    dim, away = 6, np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    start = 0.7 + 0.22 * away  # five widths from the peak, where the value is 1e-6
    plain = options(kernel="matern52", compress=False)
    data = observe(_narrow, np.vstack([design(dim + 3, dim), np.full((1, dim), 0.3), start]))
    model = fitted(data, None, plain)
    climb = advance(Climb(start.tolist(), 0.2), model, data, np.empty((0, dim)))
    assert climb.path[1] == pytest.approx(start - 0.2 * away)
    assert climb.gain == 0.0
    assert observe(_narrow, np.array(climb.path)).y[1] > 1.0


def test_along_the_gradient_it_goes_as_far_as_the_trust_region_and_the_box():
    path = Observations([[0.5, 0.9, 0.0]], [0.0], [[1e-12, 2e-12, -8e-12]])
    assert uphill(path, 0.2).x == pytest.approx([0.6, 1.0, 0.0])


@pytest.mark.parametrize(
    ("values", "slopes"),
    [([0.0], [0.0]), ([0.0, 1.0], [1.0, 1.0]), ([0.0, 1.0], [2.0, 1.0]), ([1.0, 0.5], [1.0, 2.0]), ([0.0], [np.nan])],
)
def test_it_does_not_follow_gradients_that_do_not_grow_nor_down(values, slopes):
    points = np.array([[0.3, 0.5], [0.4, 0.5]])[: len(values)]
    assert uphill(Observations(points, values, [[slope, 0.0] for slope in slopes]), 0.2) is None
