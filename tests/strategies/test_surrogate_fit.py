"""Many points: hyperparameters are learned from a part of them, and the surrogate is of all."""

import numpy as np
import pytest
import torch

from cases import cube
from eign.data import Observations
from eign.strategies import strategy, surrogate_fit
from eign.strategies.surrogate_fit import LEARNED_FROM, fitted_surrogate


def observed(count):
    x = np.random.default_rng(0).random((count, 2))
    return Observations(x, np.sin(5 * x).sum(axis=1), 5 * np.cos(5 * x))


def surrogate(method, data):
    chosen = strategy(method)
    state = chosen.start(cube(data.dim), {}, 0).after(data)
    return fitted_surrogate(chosen._steps._kind(data), state, data)


@pytest.mark.parametrize("method", ["ei", "ei-gn", "d-ei"])
def test_a_part_teaches_and_all_are_known(method, monkeypatch):
    data = observed(40)
    best = int(data.y.argmax())
    rows = [0, 13, 26, 39, best]
    assert len(set(rows)) == 5
    alone, _ = surrogate(method, data[np.sort(rows)])
    monkeypatch.setattr(surrogate_fit, "LEARNED_FROM", 4)
    model, state = surrogate(method, data)
    assert model.hyperparameters.to_json() == alone.hyperparameters.to_json() == state.memory["hyperparameters"]
    assert state.memory["fitted"] == len(model.observations) == 40
    # Without noise a surrogate goes through what it has seen, up to the jitter: 1e-9 of the variance of some 1.
    np.testing.assert_allclose(model.moments(torch.tensor(data.x))[0], data.y, atol=1e-3)


@pytest.mark.parametrize(("count", "teaching"), [(LEARNED_FROM, [LEARNED_FROM]), (2 * LEARNED_FROM, [500, 501])])
def test_runs_as_long_as_the_papers_learn_from_all(count, teaching, monkeypatch):
    taught = []
    monkeypatch.setattr(surrogate_fit, "fit", lambda model: taught.append(len(model.observations)) or model)
    surrogate("ei", observed(count))
    assert taught[0] in teaching  # with the best, if that is not among the others
