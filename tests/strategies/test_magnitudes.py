"""Values over hundreds of decades: every method goes on, and its model sees numbers it can compute with."""

import numpy as np
import pytest

from eign import Optimizer, methods
from eign.data import Observations
from eign.strategies.magnitudes import Computable
from eign.strategies.registry import strategy
from eign.study.gradient_check.faults import GradientWarning

SMALL = {"n_init": 3, "restarts": 2, "raw_samples": 16, "candidates": 32, "samples": 16}


def observations(scale, slopes=1.0):
    rng = np.random.default_rng(0)
    return Observations(rng.random((5, 2)), scale * rng.normal(size=5), slopes * rng.normal(size=(5, 2)))


@pytest.mark.parametrize("scale", [1e-49, 1.0, 1e49])
def test_ordinary_data_are_left_alone(scale):
    data = observations(scale, slopes=scale)
    within = Computable(data)
    assert within.data is data
    assert not within.is_extreme
    np.testing.assert_array_equal(within.outside(data.y), data.y)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e155, 1e200, 1e307])
def test_extreme_data_are_in_units_of_their_spread_exactly(scale):
    data = observations(scale, slopes=scale)
    within = Computable(data)
    assert within.is_extreme
    assert 0.3 < np.std(within.data.y) < 2.0
    np.testing.assert_array_equal(within.outside(within.data.y), data.y)
    np.testing.assert_allclose(within.data.grad / within.data.y[:, None], data.grad / data.y[:, None], rtol=1e-14)


def test_slopes_without_relation_to_the_values():
    data = Observations(np.eye(3), [0.0, 1.0, 2.0], [[1e300, 1e-300, np.nan], [-1e300, 1.0, 0.0], [1.0, 2.0, 3.0]])
    grad = Computable(data).data.grad
    np.testing.assert_array_equal(grad, [[1e50, 0.0, np.nan], [-1e50, 1.0, 0.0], [1.0, 2.0, 3.0]])


def test_equal_values_far_from_zero_by_the_measure_of_the_slopes():
    within = Computable(Observations([[0.2], [0.4]], [1e200, 1e200], [[1e-150], [0.0]]))
    assert within.data.y.tolist() == [1e50, 1e50]


@pytest.mark.parametrize("mode", ["probe", "passive"])
@pytest.mark.parametrize("method", sorted(methods()))
@pytest.mark.filterwarnings("ignore:.*was told before with:UserWarning")
def test_scales_mixed_over_all_floats(method, mode):
    """Warnings are errors here: neither a stray exception nor a method that failed and was replaced."""
    options = {name: value for name, value in SMALL.items() if name in strategy(method).options}
    for kind in ("one scale", "penalties", "every scale"):
        rng = np.random.default_rng([len(method), len(kind)])
        widths = 10.0 ** rng.uniform(-100, 100, 2) if kind != "penalties" else np.ones(2)
        opt = Optimizer([(0.0, w) for w in widths], method=method, seed=0, options=options, check_gradients=mode)
        base = rng.choice([-1.0, 1.0]) * rng.uniform(160, 300)
        for _ in range(8):
            x = opt.ask()
            assert opt.box.contains(x)
            decade = {"one scale": base, "penalties": 200.0 if rng.random() < 0.3 else 0.0}.get(kind)
            y, grad = (rng.uniform(-300, 300) if decade is None else decade for _ in range(2))
            try:
                opt.tell(x, rng.normal() * 10.0**y, rng.normal(size=2) * 10.0**grad)
            except GradientWarning:  # random slopes are wrong ones
                break
        assert np.isfinite(opt.best.y)


def test_values_without_relation_to_a_given_scale():
    data = Observations(
        np.eye(3), [1e-60, 1e60, -1e300], [[1e300, 1e-300, np.nan], [-1e300, 1.0, 0.0], [1.0, 2.0, 3.0]]
    )
    within = Computable(data, spread=2.0)
    np.testing.assert_array_equal(within.data.y, [0.0, 2e50, -2e50])
    np.testing.assert_array_equal(within.data.grad[0], [2e50, 0.0, np.nan])
    np.testing.assert_array_equal(within.outside(within.data.y), within.data.y)
    ordinary = observations(1e49)
    assert Computable(ordinary, spread=1e-30).data is not ordinary
    assert Computable(ordinary, spread=1.0).data is ordinary


@pytest.mark.parametrize("scale", [1e-250, 1e200])
@pytest.mark.parametrize("method", ["ei", "ei-gn", "d-ei-gn", "thompson"])
@pytest.mark.parametrize("given", [None, {"lengthscale": 0.3}], ids=["learned", "given"])
def test_beliefs_and_proposals_exist_for_values_of_any_size(method, scale, given):
    options = {name: value for name, value in SMALL.items() if name in strategy(method).options}
    opt = Optimizer([(0.0, 1.0)], method=method, seed=0, options={**options, "hyperparameters": given})
    for x in np.linspace(0.0, 1.0, 6)[:, None]:
        opt.tell(x, scale * np.sin(5 * x[0]), scale * 5 * np.cos(5 * x))
    outlook = opt.outlook()
    assert opt.box.contains(outlook.x)
    mean, deviation = outlook.predict([[0.5]])
    if given is None:
        # Six points on two thirds of a wave: a tenth of it is far more than the model is off between them.
        np.testing.assert_allclose(mean, scale * np.sin(2.5), atol=0.1 * scale)
        assert 0.0 < deviation[0] < 0.5 * scale
    assert np.isfinite(mean).all()
    assert opt.box.contains(opt.ask())


def test_what_is_expected_of_a_point_is_in_the_units_of_y():
    """The same study in other units: a power of two, so that not a digit differs."""
    gains = []
    for factor in (1.0, 2.0**700):
        opt = Optimizer([(0.0, 1.0)], method="ei", seed=0, options={"n_init": 3})
        for _ in range(5):
            x = opt.ask()
            opt.tell(x, factor * float(np.sin(7 * x[0])), factor * 7 * np.cos(7 * x))
        log = [event for event in opt._study.log if hasattr(event, "expected_improvements")]
        gains.append(np.array([gain for ask in log for gain in ask.expected_improvements if gain is not None]) / factor)
    assert len(gains[0]) >= 1
    np.testing.assert_allclose(gains[0], gains[1], rtol=1e-6)


def test_a_failed_evaluation_stays_one():
    """An infinite value was once a finite one, 1e50 deviations from the others, which a model then took for flat."""
    data = Observations([[0.1], [0.3], [0.6], [0.9]], [1.0, 2.0, np.inf, -np.inf])
    within = Computable(data)
    assert within.data is data
    huge = Computable(Observations(data.x, [1e200, 2e200, np.inf, -np.inf]))
    assert huge.is_extreme
    assert huge.data.failed.tolist() == [False, False, True, True]


@pytest.mark.parametrize("failed", [np.inf, -np.inf])
@pytest.mark.parametrize("method", sorted(methods()))
def test_infinite_is_failed_for_every_method(method, failed):
    """The same suggestion as after NaN."""
    options = {name: value for name, value in SMALL.items() if name in strategy(method).options}
    suggested = []
    for value in (np.nan, failed):
        opt = Optimizer([(0.0, 1.0)] * 2, method=method, seed=0, options=options, check_gradients=False)
        for k in range(5):
            x = opt.ask()
            opt.tell(x, value if k == 2 else float(x @ x), None if k == 2 else 2 * x)
        suggested.append(opt.ask(2))
    np.testing.assert_array_equal(*suggested)


def test_a_variance_without_relation_to_the_values():
    data = Observations([[0.2], [0.4]], [0.0, np.sqrt(2.0)], y_var=[1.0, 1e308], grad_var=[[np.nan], [1e200]])
    seen = Computable(data).data
    np.testing.assert_allclose(seen.y_var, [1.0, 1e100])
    np.testing.assert_allclose(seen.grad_var, [[np.nan], [1e100]])


def test_limits_are_in_the_units_of_their_values():
    units = Computable(observations(1e200))
    lower, upper = units.limits(np.array([-np.inf, 1e200]))
    assert lower == -np.inf
    assert units.outside(np.array(upper)) == 1e200
    assert Computable(observations(1.0)).limits(np.array([2.0])) == [2.0]
    assert np.isfinite(Computable(observations(1e-200)).limits(np.array([1e300, -1e300]))).all()
