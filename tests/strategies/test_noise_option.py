"""What `noise` means where nobody says that there is any: in new studies, in those begun before, where data scatter."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from eign.data import Observations
from eign.models.surrogates import Kind
from eign.space import Box
from eign.strategies.registry import strategy
from eign.strategies.strategy import State
from eign.strategies.surrogate_fit import fitted_surrogate

VALUES = Kind(joint=False, with_gradient=False)


def data(count: int = 20, dim: int = 2, seed: int = 0) -> Observations:
    x = np.random.default_rng(seed).random((count, dim))
    return Observations(x, np.sin(4.0 * x).sum(axis=1))


def begun(method: str = "ei", options: dict[str, object] | None = None) -> State:
    return strategy(method).start(Box([(0.0, 1.0)] * 2), options, 0)


@pytest.mark.parametrize("options", [None, {"noise": None}, {"noise": 0.0}])
@pytest.mark.parametrize("method", ["ei", "log-ei", "ei-gn", "ucb", "thompson"])
def test_none_is_none(method: str, options: dict[str, object] | None) -> None:
    state = begun(method, options)
    assert state.options["noise"] == 0.0
    model, _ = fitted_surrogate(VALUES, state, data())
    assert (model.jitter == 1e-9).all()


def test_a_level_is_taken_as_given() -> None:
    model, state = fitted_surrogate(VALUES, begun(options={"noise": 1e-3}), data())
    assert model.noise == 1e-3
    assert state.memory["jitter"] == [[20, 0.0]]


def test_a_study_begun_before_keeps_its_noise() -> None:
    """Its stored options have None, which was a variance of 1e-6, and its hyperparameters have no jitter."""
    observed, ei = data(), strategy("ei")
    _, now = fitted_surrogate(VALUES, begun(), observed)
    hyper = {name: value for name, value in now.memory["hyperparameters"].items() if name != "jitter"}
    memory = {"hyperparameters": hyper, "fitted": 18}
    before = replace(now, options={**now.options, "noise": None}, memory=memory)
    stored = json.loads(json.dumps(before.to_json()))
    restored = ei.restored(State.from_json(stored))
    assert restored.options["noise"] is None
    model, state = fitted_surrogate(VALUES, restored, observed)
    assert model.noise == 1e-6
    assert (model.jitter == 0.0).all()
    # At the data it is as unsure as it was: a hundred times less sure than a new study is.
    given, _ = fitted_surrogate(VALUES, replace(now, memory={}), observed)
    at = given.observations.x[:5]
    then, today = (one.moments(torch.tensor(at))[1].sqrt() for one in (model, given))
    assert (then > 10.0 * today).all()
    again, _ = fitted_surrogate(VALUES, ei.restored(State.from_json(json.loads(json.dumps(state.to_json())))), observed)
    assert again.noise == 1e-6


def test_the_memory_has_the_history_of_jitters_and_a_warning_comes_once() -> None:
    """Values that scatter by a hundredth at repeated points: with 1e-9 they would be absurd."""
    rng = np.random.default_rng(0)
    clean = data()
    x = np.concatenate([clean.x, np.tile(clean.x[:4], (6, 1))])
    rough = Observations(x, np.sin(4.0 * x).sum(axis=1) + 1e-2 * rng.normal(size=len(x)))
    _, state = fitted_surrogate(VALUES, begun(), clean)
    assert state.memory["jitter"] == [[20, 1e-9]]
    with pytest.warns(RuntimeWarning, match="44 observations is nearly singular") as caught:
        model, state = fitted_surrogate(VALUES, state, rough)
    assert len(caught) == 1
    assert 1e-6 <= model.jitter[0] <= 1e-3
    assert state.memory["jitter"] == [[20, 1e-9], [44, model.jitter[0]]]
    more = rough.followed_by(data(1, seed=5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, state = fitted_surrogate(VALUES, state, more)
    assert json.loads(json.dumps(state.to_json()))["memory"]["jitter"][0] == [20, 1e-9]
