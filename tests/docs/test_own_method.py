"""The method of the page on methods, registered as the page says, is a method like any other."""

import json
import re
import sys
from pathlib import Path
from types import MappingProxyType, ModuleType

import numpy as np
import pytest

import eign
from eign.strategies import registry

PAGE = (Path(__file__).parents[2] / "docs/own_method.md").read_text()
BOUNDS = [(-4.0, 3.0)] * 2


def bowl(x):
    return float(np.sum((x - 1) ** 2)), 2 * (x - 1)


@pytest.fixture
def name(monkeypatch):
    """Where the page says that the class goes, and the line of the registry as it stands there."""
    module = ModuleType("eign.strategies.step_and_hop")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1], vars(module))
    line = re.search(r'^("step-and-hop": .*)$', PAGE, re.MULTILINE)[1]
    entry = eval(f"{{{line}}}", {"Method": registry.Method})
    monkeypatch.setattr(registry, "_METHODS", MappingProxyType({**registry._METHODS, **entry}))
    return next(iter(entry))


def test_it_finds_the_bottom_of_a_bowl(name):
    result = eign.minimize(bowl, BOUNDS, method=name, budget=60, seed=0, options={"step": 0.05})
    assert result.fun < 0.1
    assert {"initial", "step", "hop"} <= set(result.reasons)
    assert name in eign.methods()


def test_it_goes_on_bit_for_bit_after_a_crash(name, tmp_path):
    whole = eign.minimize(bowl, BOUNDS, method=name, budget=20, seed=1)
    for budget in (9, 20):
        result = eign.minimize(bowl, BOUNDS, method=name, budget=budget, seed=1, storage=tmp_path / "a.db", resume=True)
    np.testing.assert_array_equal(result.history.x, whole.history.x)


def test_missing_failed_and_pending(name):
    optimizer = eign.Optimizer(BOUNDS, method=name, seed=0)
    for i in range(15):
        first, second = optimizer.ask(), optimizer.ask()
        assert not np.array_equal(first, second)
        optimizer.tell(second, *bowl(second))
        optimizer.tell(first, None if i % 3 == 0 else bowl(first)[0], [None, 0.5] if i % 3 == 1 else None)
    assert len(optimizer.history) == 30


def test_its_state_is_plain_data(name):
    strategy = registry.strategy(name)
    state = strategy.start(eign.Box(BOUNDS), None, 0)
    proposals, state = strategy.propose(state, eign.Observations.empty(2), np.empty((0, 2)), 3)
    assert len(proposals) == 3
    assert json.loads(json.dumps(state.to_json())) == state.to_json()
