"""The steps that `auto` chooses from."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from auto_cases import coupled, design, observe
from eign.data import Observations
from eign.models import JointGradientGP
from eign.strategies.auto.steps import is_hopeless, local_step, new_start

DIM = 2


def _model() -> JointGradientGP:
    data = observe(coupled, design(14, DIM))
    model = JointGradientGP(*(torch.tensor(part) for part in (data.x, data.y[:, None], data.grad)))
    model.fit_hyperparameters()
    return model


MODEL = _model()


def mean_at(x: np.ndarray) -> float:
    return float(MODEL.moments(torch.tensor(x[None]))[0][0])


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=DIM, max_size=DIM), st.floats(-6, 0).map(lambda e: 10.0**e))
def test_local_step_stays_near_and_does_not_descend(center, radius):
    start = np.array(center)
    step = local_step(MODEL, start, radius)
    assert ((step.x >= 0) & (step.x <= 1)).all()
    # A rounding of the bound.
    assert np.abs(step.x - start).max() <= radius + 1e-15
    # A rounding of a mean of order one that is a sum of forty terms.
    assert step.mean >= mean_at(start) - 1e-9
    assert step.mean == pytest.approx(mean_at(step.x), abs=1e-9)


def test_local_step_finds_the_best_mean_nearby():
    center, radius = np.array([0.5, 0.5]), 0.1
    grid = np.stack(np.meshgrid(*[np.linspace(0.4, 0.6, 41)] * 2), axis=-1).reshape(-1, 2)
    best = float(MODEL.moments(torch.tensor(grid))[0].max())
    # A grid is half a step of 1/400 away from the maximum at most.
    assert local_step(MODEL, center, radius).mean >= best - 1e-6


OPTIMA = np.array([[0.2, 0.2], [0.8, 0.5]])
BEST = OPTIMA[1]


def _starts(optima: np.ndarray) -> list[np.ndarray]:
    seen = MODEL.observations.x
    return [new_start(MODEL, seen, optima, BEST, np.random.default_rng(seed)) for seed in range(60)]


def test_new_starts_are_hops_peaks_and_anywhere():
    starts = _starts(OPTIMA)
    assert all(((start >= 0) & (start <= 1)).all() for start in starts)
    assert len({tuple(start) for start in starts}) > 30
    near_the_best = sum(np.abs(start - BEST).max() <= 0.4 for start in starts)
    # A third are hops, and the square covers half of the others: 40 of 60, give or take 4.
    assert 25 < near_the_best < 55
    # The peaks of four bounds are few points, found again and again.
    rounded = [tuple(np.round(start, 2)) for start in starts]
    again = {start for start in rounded if rounded.count(start) > 2}
    assert again
    for peak in again:
        assert np.abs(OPTIMA - peak).max(axis=1).min() > 0.09


def test_a_new_start_needs_no_peak():
    everywhere = np.stack(np.meshgrid(*[np.linspace(0, 1, 11)] * 2), axis=-1).reshape(-1, 2)
    rounded = [tuple(np.round(start, 2)) for start in _starts(everywhere)]
    assert max(rounded.count(start) for start in rounded) <= 2


def _descent(y: list[float], slopes: list[float] | None = None) -> tuple[Observations, np.ndarray]:
    x = np.linspace(0.1, 0.9, len(y))[:, None]
    grad = np.array(2.0 ** -np.arange(len(y)) if slopes is None else slopes)[:, None]
    return Observations(x, y, grad), np.arange(len(y))


NOWHERE = np.empty((0, 1))


@pytest.mark.parametrize(
    ("y", "best", "hopeless"),
    [
        pytest.param([], 1.0, False, id="not begun"),
        pytest.param([0, 1, 2], 1.0, False, id="above the best"),
        pytest.param([0, 4, 6, 7, 7.5, 7.75, 7.875], 100.0, True, id="gains shrink by eight: one more at most"),
        pytest.param([0, 4, 6, 7, 7.5, 7.75, 7.875], 8.0, False, id="enough is left"),
        pytest.param([0, 1, 2, 3, 4, 5, 6], 100.0, False, id="gains do not shrink"),
        pytest.param([0, 4, 6, 7, 7.5, 7.75], 100.0, False, id="too early to tell"),
        pytest.param([np.nan, 4, 6, 7, 7.5, 7.75, 7.875], 100.0, False, id="the start failed"),
        pytest.param([0, 4, 6, 7, np.nan, 7.75, 7.875], 100.0, True, id="a failure on the way gains nothing"),
    ],
)
def test_hopeless(y, best, hopeless):
    data, rows = _descent(y) if y else (Observations(np.full((1, 1), 0.5), [0.0]), np.empty(0, dtype=np.intp))
    assert is_hopeless(data, rows, best, NOWHERE) is hopeless


def test_small_gains_on_a_plain_are_not_hopeless():
    y = [0, 4, 6, 7, 7.5, 7.75, 7.875]
    for slopes, hopeless in [
        ([4, 3, 2, 2, 2, 2, 2], False),
        ([1, 1, 1, 1, 2, 3, 4], False),
        ([9, 8, 7, 6, 5, 4, 0.5], True),
    ]:
        data, rows = _descent(y, slopes)
        assert is_hopeless(data, rows, 100.0, NOWHERE) is hopeless


def test_hopeless_at_an_optimum_that_is_known():
    data, rows = _descent([0.0, 1.0, 2.0])
    end = data.x[2:]
    assert is_hopeless(data, rows, 3.0, end + 0.02)
    assert not is_hopeless(data, rows, 3.0, end - 0.05)
    assert not is_hopeless(data, rows, 1.5, end)
