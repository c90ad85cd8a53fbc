"""Constraints whose values are of any size, with limits of any other, and regions of a single point."""

import numpy as np
import pytest

from eign import Optimizer, methods
from eign.strategies.registry import strategy

SMALL = {"n_init": 3, "restarts": 2, "raw_samples": 16}
ABLE = [name for name in sorted(methods()) if strategy(name).handles_constraints]


def options_of(method):
    return {name: value for name, value in SMALL.items() if name in strategy(method).options}


def told(method, size, *, limit=0.5, evaluations=6):
    """A study of two outputs, the second times `size`; warnings are errors, also that of a method that failed."""
    limits = {"c": (None, limit * size)}
    options = options_of(method)
    opt = Optimizer([(0.0, 1.0)] * 2, method=method, seed=1, options=options, constraints=limits, check_gradients=False)
    for _ in range(evaluations):
        x = opt.ask()
        c, slope = size * float(np.sin(3 * x).sum() - 1.0), 3 * size * np.cos(3 * x)
        opt.tell(x, float(x @ x), 2 * x, constraints=[c], constraint_grads=[slope])
    return opt


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e155, 1e300])
@pytest.mark.parametrize("method", ABLE)
def test_values_of_any_size(method, size):
    assert told(method, size).box.contains(told(method, size).ask())


@pytest.mark.parametrize("method", ["ei", "ei-gn", "d-log-ei", "d-ei-gn"])
def test_a_power_of_two_changes_no_suggestion(method):
    """Neither an ordinary size nor one beyond the squares of floats: the same study but for rounding."""
    plain, large = told(method, 1.0), told(method, 2.0**600)
    np.testing.assert_allclose(large.history.x, plain.history.x, atol=1e-6)


def test_the_outlook_of_a_constraint_is_in_its_units():
    opt = told("log-ei", 1e200)
    predicted = opt.outlook().predict_constraints(opt.history.x)[0].mean
    np.testing.assert_allclose(predicted, opt.history.constraints[0].y, rtol=1e-4, atol=1e196)


@pytest.mark.parametrize("limit", [1e300, -1e300])
@pytest.mark.parametrize("method", ABLE)
def test_limits_without_relation_to_the_values(method, limit):
    opt = told(method, 1.0, limit=limit)
    assert opt.best.is_feasible == (limit > 0)


@pytest.mark.parametrize("method", ABLE)
def test_values_at_both_ends_of_the_floats(method):
    options = options_of(method)
    opt = Optimizer([(0.0, 1.0)], method=method, seed=0, options=options, constraints={"c": (-1e308, 1e308)})
    for c in (1.7e308, -1.7e308, 1.0, 1.6e308, -1.6e308):
        x = opt.ask()
        opt.tell(x, float(x[0]), [1.0], constraints=[c])
    assert opt.best.constraints.tolist() == [1.0]


@pytest.mark.parametrize("method", ABLE)
def test_a_region_of_a_single_point(method):
    """There is nothing to search, and no reason to hang: the point is proposed again."""
    opt = Optimizer([(0.0, 1.0)], method=method, seed=0, options=options_of(method), linear=([[1.0]], 0.25, 0.25))
    for _ in range(3):
        x = opt.ask(2)
        np.testing.assert_allclose(x, 0.25, atol=1e-12)
        opt.tell(x, [1.0, 1.0], [[1.0], [1.0]])
