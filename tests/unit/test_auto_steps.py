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


def test_a_new_start_keeps_away_from_optima_and_points_seen():
    seen = MODEL.observations.x
    optima = np.array([[0.2, 0.2], [0.8, 0.5]])
    starts = [new_start(MODEL, seen, optima, np.random.default_rng(seed)) for seed in range(12)]
    gaps = [np.abs(points - start).max(axis=1).min() for start in starts for points in (seen,)]
    assert min(gaps) > 1e-3
    assert all(((start >= 0) & (start <= 1)).all() for start in starts)
    # The blind third goes as far from everything as it can, wherever that is.
    near = [start for start in starts if np.abs(optima - start).max(axis=1).min() <= 0.1]
    widest = [np.abs(seen - start).max(axis=1).min() for start in near]
    assert all(gap > 0.15 for gap in widest)
    assert len({tuple(start) for start in starts}) > 2


def test_a_new_start_is_blind_where_every_peak_is_known():
    seen = MODEL.observations.x
    everywhere = np.stack(np.meshgrid(*[np.linspace(0, 1, 11)] * 2), axis=-1).reshape(-1, 2)
    start = new_start(MODEL, seen, everywhere, np.random.default_rng(3))
    # Fourteen points leave a square of this half width.
    assert np.abs(seen - start).max(axis=1).min() > 0.15


def _descent(y: list[float]) -> tuple[Observations, np.ndarray]:
    x = np.linspace(0.1, 0.9, len(y))[:, None]
    return Observations(x, y), np.arange(len(y))


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


def test_hopeless_at_an_optimum_that_is_known():
    data, rows = _descent([0.0, 1.0, 2.0])
    end = data.x[2:]
    assert is_hopeless(data, rows, 3.0, end + 0.02)
    assert not is_hopeless(data, rows, 3.0, end - 0.05)
    assert not is_hopeless(data, rows, 1.5, end)
