"""The map from values to what the model of `auto` sees, over all sizes of values."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eign.data import Observations
from eign.models.transforms.output import Output, outputs

EPS = float(np.finfo(np.float64).eps)
SHAPES = ["linear", "top", "bottom"]

shapes = st.sampled_from(SHAPES)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def values(draw: st.DrawFn, largest: int = 300) -> np.ndarray:
    """Two to thirty values that differ, of any size, on any offset, some of them far out."""
    rng = np.random.default_rng(draw(seeds))
    y = rng.standard_normal(draw(st.integers(2, 30)))
    y *= 10.0 ** (rng.random(len(y)) * draw(st.integers(0, 8)))
    return (y + draw(st.sampled_from([0.0, 1.0, -1e3]))) * 10.0 ** draw(st.integers(-largest, largest - 12))


def with_gradients(y: np.ndarray, seed: int = 0) -> Observations:
    rng = np.random.default_rng(seed)
    return Observations(rng.random((len(y), 2)), y, np.abs(y).max() * rng.standard_normal((len(y), 2)))


@given(values())
def test_every_map_keeps_the_order_and_can_be_undone(y):
    for output in outputs(with_gradients(y)):
        seen = output.values(y)
        assert seen.mean() == pytest.approx(0.0, abs=1e-9)
        assert seen.std(ddof=1) == pytest.approx(1.0, rel=1e-9)
        assert (np.diff(seen[np.argsort(y)]) >= 0).all()
        # Roundings of the values and the origin, and those of what the model sees, which the inverse of the slope
        # turns into units of y.
        rounded = np.abs(output.center) / output.spread + np.abs(seen)
        allowed = 8 * EPS * (np.abs(y) + abs(output.origin) + rounded / output.slope(y))
        assert (np.abs(output.undo(seen) - y) <= allowed).all()


@given(values(), seeds)
def test_slope_is_the_derivative(y, seed):
    rng = np.random.default_rng(seed)
    for output in outputs(with_gradients(y)):
        # Where differences can tell it: in units in which the curve bends, away from the kink.
        z = np.sign(rng.standard_normal(5)) * 10.0 ** rng.uniform(-1, 3, 5)
        at, step = output.origin + output.unit * z, 1e-5 * output.unit * np.abs(z)
        if not (step > 1e10 * np.spacing(np.abs(at))).all():
            continue
        difference = (output.values(at + step) - output.values(at - step)) / (2 * step)
        # The square of the relative step, and rounding over it.
        np.testing.assert_allclose(difference, output.slope(at), rtol=1e-5)


@given(shapes, st.floats(-3, 3), st.floats(-3, 3), st.floats(-2, 2), seeds)
def test_slope_in_closed_form(shape, log_unit, log_spread, center, seed):
    output = Output(shape, 2.0, 10.0**log_unit, center, 10.0**log_spread)
    y = np.random.default_rng(seed).uniform(-9, 9, 20)
    z = (y - output.origin) / output.unit
    bent = {"linear": False, "top": z < 0, "bottom": z > 0}[shape]
    expected = np.where(bent, 1 / (1 + np.abs(z)), 1.0) / (output.unit * output.spread)
    np.testing.assert_allclose(output.slope(y), expected, rtol=1e-13)


@given(values(100), seeds)
def test_log_jacobian_counts_each_number_that_was_observed(y, seed):
    rng = np.random.default_rng(seed)
    data = with_gradients(y, seed)
    grad = np.where(rng.random(data.grad.shape) < 0.4, np.nan, data.grad)
    told = Observations(data.x, data.y, grad)
    for output in outputs(told):
        slopes = np.log(output.slope(y))
        expected = slopes.sum() + sum(slopes[row] for row, _ in zip(*np.nonzero(told.has_grad), strict=True))
        assert output.log_jacobian(told) == pytest.approx(expected, rel=1e-12)


@given(values(300))
def test_gradients_and_variances_follow_the_slope_until_their_squares_would_not_exist(y):
    data = with_gradients(y)
    noise = Observations(data.x, y, data.grad, np.full(len(y), 3.0), np.full(data.grad.shape, 5.0))
    for output in outputs(noise):
        seen, slope = output.apply(noise), output.slope(y)
        with np.errstate(over="ignore"):
            grad, variance = data.grad * slope[:, None], slope**2
        np.testing.assert_array_equal(seen.y, np.clip(output.values(y), -1e50, 1e50))
        np.testing.assert_allclose(seen.grad, np.clip(grad, -1e50, 1e50), rtol=1e-14)
        np.testing.assert_allclose(seen.y_var, np.minimum(3.0 * variance, 1e100), rtol=1e-14)
        np.testing.assert_allclose(seen.grad_var, np.minimum(5.0 * variance, 1e100)[:, None] * np.ones(2), rtol=1e-14)


@given(values())
def test_json_round_trip(y):
    for output in outputs(with_gradients(y)):
        assert Output.from_json(json.loads(json.dumps(output.to_json(), allow_nan=False))) == output


@given(shapes, st.floats(-2, 2), st.floats(0, 0.5))
def test_moments_of_y_by_a_fine_sum(shape, mean, variance):
    output = Output(shape, 1.0, 0.5, 0.3, 1.2)
    found = output.undo_moments(np.array([mean]), np.array([variance]))
    # The trapezoidal rule converges exponentially on a smooth integrand; the kink of the map costs a step squared.
    nodes = np.linspace(-9, 9, 20_001)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    y = output.undo(mean + np.sqrt(variance) * nodes)
    first = weights @ y
    second = weights @ (y - first) ** 2
    # Twenty nodes see a kink in the first derivative with an error of a per cent of the deviation.
    assert found[0][0] == pytest.approx(first, abs=1e-9 + 0.02 * np.sqrt(second))
    assert found[1][0] == pytest.approx(second, rel=0.05, abs=1e-12)
