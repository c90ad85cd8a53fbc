"""The steps that `auto` chooses from."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auto_cases import coupled, design, observe
from eign.data import Observations
from eign.models import JointGradientGP
from eign.strategies.auto.steps import is_hopeless, local_step, new_start
from example_counts import examples

DIM = 2


def _model() -> JointGradientGP:
    data = observe(coupled, design(14, DIM))
    model = JointGradientGP(*(torch.tensor(part) for part in (data.x, data.y[:, None], data.grad)))
    model.fit_hyperparameters()
    return model


MODEL = _model()


def mean_at(x: np.ndarray) -> float:
    return float(MODEL.moments(torch.tensor(x[None]))[0][0])


@examples(25)
@given(st.lists(st.floats(0, 1), min_size=DIM, max_size=DIM), st.floats(-6, 0).map(lambda e: 10.0**e))
def test_local_step_stays_near_and_does_not_descend(center, radius):
    start = np.array(center)
    step = local_step(MODEL, start, radius)
    assert ((step.x >= 0) & (step.x <= 1)).all()
    # A rounding of the bound.
    assert np.abs(step.x - start).max() <= radius + 1e-15
    # A rounding of a mean of order one that is a sum of forty terms.
    assert step.gain >= -1e-9
    assert step.gain == pytest.approx(mean_at(step.x) - mean_at(start), abs=1e-9)


def test_local_step_finds_the_best_mean_nearby():
    center, radius = np.array([0.5, 0.5]), 0.1
    grid = np.stack(np.meshgrid(*[np.linspace(0.4, 0.6, 41)] * 2), axis=-1).reshape(-1, 2)
    best = float(MODEL.moments(torch.tensor(grid))[0].max())
    # A grid is half a step of 1/400 away from the maximum at most.
    assert local_step(MODEL, center, radius).gain >= best - mean_at(center) - 1e-6


OPTIMA = np.array([[0.2, 0.2], [0.8, 0.5]])
# Best first: at a known optimum, near it, near a better one that is; then two of which the first is better.
POINTS = [[0.2, 0.2], [0.75, 0.55], [0.69, 0.61], [0.4, 0.9], [0.6, 0.1], [0.65, 0.15]]
SEEN = Observations(np.array(POINTS), [5.0, 4.0, 3.0, 2.0, 1.0, 0.5])


def test_new_starts_are_the_best_point_alone_or_anywhere_but_in_known_basins():
    starts = np.array([new_start(SEEN, OPTIMA, np.random.default_rng(seed)) for seed in range(800)])
    is_known = (starts == POINTS[3]).all(axis=1)
    # 400 +- 14 of them.
    assert 340 < is_known.sum() < 460
    others = starts[~is_known]
    assert (np.abs(others[:, None] - OPTIMA).max(axis=-1) > 0.1).all()
    # Of 400 uniform points outside of two squares of 0.04 each quarter of the cube has 100 +- 9.
    quarters = np.bincount((others > 0.5) @ [1, 2], minlength=4)
    assert quarters.min() > 60


def test_the_next_best_point_alone_follows_when_a_search_has_been_there():
    known = np.vstack([OPTIMA, POINTS[3]])
    starts = np.array([new_start(SEEN, known, np.random.default_rng(seed)) for seed in range(20)])
    assert (starts == POINTS[4]).all(axis=1).sum() > 2


def test_a_new_start_is_anywhere_if_every_place_is_in_a_known_basin():
    everywhere = np.stack(np.meshgrid(*[np.linspace(0, 1, 11)] * 2), axis=-1).reshape(-1, 2)
    starts = np.array([new_start(SEEN, everywhere, np.random.default_rng(seed)) for seed in range(20)])
    assert ((starts >= 0) & (starts <= 1)).all()
    assert len(np.unique(starts, axis=0)) == 20


def test_a_failed_evaluation_is_no_start():
    failed = Observations(np.array([[0.4, 0.9], [0.6, 0.1]]), [np.nan, np.inf])
    starts = [new_start(failed, OPTIMA, np.random.default_rng(seed)).tolist() for seed in range(20)]
    assert not any(start in failed.x.tolist() for start in starts)


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
