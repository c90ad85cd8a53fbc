"""The units that models work in: by hand, at the ends of the floats, and back."""

import pickle

import numpy as np
import pytest

from eign import data
from eign.data import Observations
from eign.standardization import Standardization, standardize_independent, standardize_joint

NAN, INF = np.nan, np.inf
LARGEST = np.finfo(np.float64).max


def test_joint_standardization_by_hand():
    obs = Observations([[0.0], [0.5], [1.0], [0.2]], [1.0, 3.0, 8.0, None], [[2.0], [NAN], [5.0], [6.0]], 0.7, 0.7)
    std = standardize_joint(obs)
    deviation = np.std([1.0, 3.0, 8.0], ddof=1)
    assert (std.y_shift, std.y_scale) == (4.0, pytest.approx(deviation, rel=1e-15))
    np.testing.assert_array_equal(std.grad_shift, [0.0])
    np.testing.assert_array_equal(std.grad_scale, [std.y_scale])
    np.testing.assert_array_equal(std.common_grad_scale, [1.0])
    np.testing.assert_array_equal(std.common_grad_shift, [0.0])
    made = std.apply(obs)
    np.testing.assert_allclose(made.y, (obs.y - 4.0) / deviation, rtol=1e-15)
    np.testing.assert_allclose(made.grad, obs.grad / deviation, rtol=1e-15)
    np.testing.assert_allclose(made.y_var, obs.y_var / deviation**2, rtol=1e-15)
    np.testing.assert_allclose(made.grad_var, obs.grad_var / deviation**2, rtol=1e-15)


def test_independent_standardization_by_hand():
    rng = np.random.default_rng(0)
    obs = Observations(rng.random((6, 2)), rng.normal(size=6), rng.normal(size=(6, 2)) * [1, 50] + [3, 0], 0.1, 0.2)
    std = standardize_independent(obs)
    np.testing.assert_allclose(std.grad_shift, obs.grad.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(std.grad_scale, obs.grad.std(axis=0, ddof=1), rtol=1e-14)
    assert std.y_scale == standardize_joint(obs).y_scale
    made = std.apply(obs)
    np.testing.assert_allclose(made.grad.mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(made.grad.std(axis=0, ddof=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(made.grad_var, 0.2 / np.tile(std.grad_scale**2, (6, 1)), rtol=1e-14)
    common = std.common_grad_shift + std.common_grad_scale * made.grad
    np.testing.assert_allclose(common, obs.grad / std.y_scale, rtol=1e-13)


def test_missing_and_failed_entries_do_not_count():
    clean = Observations([[0.0], [1.0]], [1.0, 3.0], [[1.0], [2.0]])
    dirty = clean.append([[0.1], [0.2], [0.3]], [INF, None, NAN], [[1e9], [INF], [NAN]])
    for standardize in (standardize_independent, standardize_joint):
        one, other = standardize(clean), standardize(dirty)
        assert (one.y_shift, one.y_scale) == (other.y_shift, other.y_scale)
        np.testing.assert_array_equal(one.grad_shift, other.grad_shift)
        np.testing.assert_array_equal(one.grad_scale, other.grad_scale)


def test_the_slope_of_a_failed_row_does_not_count():
    flat = Observations([[0.0]], [1.0], [[0.0]])
    assert standardize_joint(flat.append([0.5], INF, [7.0])).y_scale == 1.0


def test_gradients_without_values_count():
    obs = Observations([[0.0], [1.0], [0.5]], [1.0, 3.0, None], [[1.0], [2.0], [6.0]])
    assert standardize_independent(obs).grad_shift.item() == 3.0


@pytest.mark.parametrize("standardize", [standardize_independent, standardize_joint])
@pytest.mark.parametrize(
    "obs",
    [
        Observations.empty(2),
        Observations([[0.0, 0.0]], [5.0]),
        Observations([[0.0, 0.0]], [5.0], [[0.0, 0.0]]),
        Observations([[0.0, 0.0]] * 3, [0.1] * 3),
        Observations([[0.0, 0.0]] * 2, [None, INF]),
        Observations([[0.0, 0.0]] * 2, [0.0, 5e-324], [[5e-324, 0.0]] * 2),
    ],
    ids=["empty", "point", "flat point", "constant", "failed", "subnormal"],
)
def test_without_any_spread_the_scale_is_one(standardize, obs):
    std = standardize(obs)
    assert std.y_scale == 1.0
    np.testing.assert_array_equal(std.grad_scale, [1.0, 1.0])


@pytest.mark.parametrize("values", [[0.1] * 1000, [1e12, 1e12 * (1 + 2e-16), 1e12], [0.1 + 0.2, 0.3]])
def test_a_constant_up_to_rounding_has_no_spread(values):
    obs = Observations(np.zeros((len(values), 1)), values)
    std = standardize_joint(obs)
    assert std.y_scale == 1.0
    assert min(values) <= std.y_shift <= max(values)


@pytest.mark.parametrize("units", [1.0, 1e-290, 1e290])
@pytest.mark.parametrize("y", [[0.7], [0.7, 0.7, 0.7], [None]])
def test_without_spread_in_y_the_slope_gives_the_scale(y, units):
    values = [None if value is None else units * value for value in y]
    obs = Observations([[0.5, 0.5]] * len(y), values, [[3 * units, NAN], [NAN, 4 * units], [3 * units, NAN]][: len(y)])
    slope = 3.0 if len(y) == 1 else 5.0
    for standardize in (standardize_independent, standardize_joint):
        assert standardize(obs).y_scale == pytest.approx(units * slope / np.sqrt(12), rel=1e-14)
    # The gradient GPs have no spread either, and fall back on the scale of y.
    np.testing.assert_array_equal(standardize_independent(obs).common_grad_scale, [1.0, 1.0])


def test_the_stand_in_is_the_deviation_of_a_linear_function_over_the_cube():
    slope = np.array([3.0, -4.0, 12.0])
    values = np.random.default_rng(0).random((200_000, 3)) @ slope
    scale = standardize_joint(Observations([[0.5] * 3], [0.0], [slope])).y_scale
    assert scale == pytest.approx(values.std(), rel=0.01)  # standard error of a deviation: below 1 / sqrt(2 n) = 0.16 %


@pytest.mark.parametrize("units", [1e-300, 1e-150, 1e12, 1e150, 1e300])
@pytest.mark.parametrize("standardize", [standardize_independent, standardize_joint])
def test_extreme_units_change_nothing(standardize, units):
    y, grad = np.array([1.0, -2.0, 4.0]), np.array([[1.0, 5.0], [2.0, -5.0], [3.0, 5.5]])
    plain = standardize(Observations(np.eye(3)[:, :2], y, grad))
    std = standardize(Observations(np.eye(3)[:, :2], units * y, units * grad))
    np.testing.assert_allclose(std.y_scale / units, plain.y_scale, rtol=1e-14)
    np.testing.assert_allclose(std.grad_scale / units, plain.grad_scale, rtol=1e-14)
    assert standardize(Observations(np.eye(3)[:, :2], 1e12 + y)).y_scale == pytest.approx(plain.y_scale, rel=1e-3)


def test_the_largest_floats_do_not_overflow():
    obs = Observations([[0.0], [1.0], [0.5]], [-LARGEST, LARGEST, LARGEST], [[LARGEST], [-LARGEST], [-LARGEST]])
    for standardize in (standardize_independent, standardize_joint):
        std = standardize(obs)
        made = std.apply(obs)
        np.testing.assert_allclose(made.y, np.array([-2, 1, 1]) / np.sqrt(3), rtol=0.2)  # the deviation saturates
        np.testing.assert_allclose(std.undo(made).y, obs.y, rtol=1e-15)
        np.testing.assert_allclose(std.undo(made).grad, obs.grad, rtol=1e-15)


def test_undo_saturates_instead_of_overflowing():
    std = Standardization(1e308, 1e308, np.array([0.0]), np.array([1e308]))
    assert std.undo_y(1e10).item() == LARGEST
    np.testing.assert_array_equal(std.undo_grad([[-1e10]]), [[-LARGEST]])
    np.testing.assert_array_equal(std.undo_y([INF, -INF, NAN]), [INF, -INF, NAN])


@pytest.mark.parametrize("scale", [0.0, -1.0, NAN, INF])
def test_scales_must_be_positive_and_finite(scale):
    with pytest.raises(ValueError, match="positive and finite"):
        Standardization(0.0, scale, np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="positive and finite"):
        Standardization(0.0, 1.0, np.zeros(1), np.array([scale]))


def test_the_earlier_home_still_has_the_names():
    """Pickled models name it."""
    assert data.Standardization is Standardization
    assert pickle.loads(b"ceign.data\nStandardization\n.") is Standardization
    with pytest.raises(AttributeError, match="no attribute 'standardise'"):
        _ = data.standardise
