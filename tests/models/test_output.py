"""The map from values to what the model of `auto` sees: single cases."""

import numpy as np
import pytest

from eign.arrays import LARGEST
from eign.data import Observations
from eign.models.transforms.output import Output, outputs


def told(y, grad=None) -> Observations:
    x = np.random.default_rng(0).random((len(y), 2))
    return Observations(x, y, None if grad is None else np.broadcast_to(grad, x.shape))


def test_the_linear_map_comes_first_and_is_the_only_one_if_asked():
    data = told(np.arange(8.0), [1.0, 2.0])
    assert [output.shape for output in outputs(data)] == ["linear"] + 3 * ["top", "bottom"]
    assert [output.shape for output in outputs(data, compressed=False)] == ["linear"]


def test_a_gradient_without_a_value_leaves_the_linear_map():
    data = told([0.0, 1.0, 2.0, 3.0, np.nan], [1.0, 2.0])
    assert [output.shape for output in outputs(data)] == ["linear"]


def test_failures_and_missing_values_do_not_move_the_map():
    y = [0.0, 1.0, 2.0, 5.0]
    assert outputs(told([*y, np.nan, np.inf, -np.inf])) == outputs(told(y))


def test_which_end_is_compressed():
    y = np.array([-100.0, -10.0, -1.0, 0.0, 1.0, 10.0, 100.0])
    top, bottom = Output("top"), Output("bottom")
    np.testing.assert_allclose(top.values(y), [*-np.log1p([100.0, 10.0, 1.0]), 0, 1, 10, 100], rtol=1e-15)
    np.testing.assert_allclose(bottom.values(y), -top.values(-y), rtol=1e-15)


@pytest.mark.parametrize("size", [0.0, 3.0, -1e300, 1e-300])
def test_equal_values_are_measured_by_the_slopes(size):
    (output,) = outputs(told([size] * 4, [3.0, 4.0]))
    # The deviation over the unit cube of a linear function with this gradient.
    assert 1 / output.slope(np.array(size)) == pytest.approx(5 / np.sqrt(12), rel=1e-14)
    assert output.values(np.array([size]))[0] == 0.0


@pytest.mark.parametrize("count", [1, 2])
def test_equal_values_without_slopes_have_unit_one(count):
    (output,) = outputs(told([7.0] * count))
    np.testing.assert_array_equal(output.values(np.array([7.0, 8.0])), [0.0, 1.0])
    (flat,) = outputs(told([7.0] * count, [0.0, 0.0]))
    assert flat == output


def test_values_that_differ_by_rounding_are_equal():
    y = 1.0 + np.spacing(1.0) * np.array([0, 1, 0, 2, 1])
    (output,) = outputs(told(y, [1e-3, 0.0]))
    assert 1 / output.slope(np.array(1.0)) == pytest.approx(1e-3 / np.sqrt(12), rel=1e-12)


@pytest.mark.parametrize("y", [[-1.7e308, 1.7e308], [1.7e308, 1.7e308, -1.7e308, 0.0, 3.0], [1e-310, 0.0, -3e-310]])
def test_the_ends_of_the_numbers(y):
    data = told(y, [1.0, 1.0])
    for output in outputs(data):
        assert np.isfinite(output.values(data.y)).all()
        assert (output.slope(data.y) > 0).all()
        assert np.isfinite(output.slope(data.y)).all()
        assert np.isfinite(output.log_jacobian(data))
        moments = output.undo_moments(np.linspace(-3, 3, 5), np.linspace(0, 9, 5))
        assert np.isfinite(moments).all()
        assert (moments[1] >= 0).all()


def test_one_value_far_out_leaves_the_others_apart():
    data = told([0.0, 1.0, 2.0, 3.0, 4.0, 1e300], [1.0, 1.0])
    best = max(outputs(data), key=lambda output: float(np.diff(output.values(data.y)).min()))
    assert best.shape == "bottom"
    # All log(1 + z) of 0 to 4 quartile ranges and of 1e300: a hundredth of the spread between neighbours at least.
    assert np.diff(best.values(data.y)).min() > 1e-4


def test_moments_of_a_lognormal():
    """exp(w) - 1 for w well above 0 has the moments of the lognormal distribution, less one."""
    output = Output("bottom", 0.0, 1.0, 0.0, 1.0)
    mean, variance = output.undo_moments(np.array([8.0]), np.array([0.25]))
    assert mean[0] == pytest.approx(np.exp(8 + 0.125) - 1, rel=1e-12)
    assert variance[0] == pytest.approx(np.expm1(0.25) * np.exp(16.25), rel=1e-12)


def test_moments_of_the_linear_map_are_exact():
    output = Output("linear", 2.0, 4.0, 1.0, 3.0)
    mean, variance = output.undo_moments(np.array([0.0, 2.0]), np.array([1.0, 0.25]))
    np.testing.assert_array_equal(mean, [6.0, 30.0])
    np.testing.assert_array_equal(variance, [144.0, 36.0])


def test_too_large_for_a_number_is_the_largest():
    output = Output("bottom", 0.0, 1.0, 0.0, 100.0)
    assert output.undo(np.array([10.0]))[0] == LARGEST
    mean, variance = output.undo_moments(np.array([10.0]), np.array([1.0]))
    assert mean[0] <= LARGEST
    assert variance[0] == LARGEST
