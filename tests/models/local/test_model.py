"""The parabola, and what the process makes of points that it misses."""

import numpy as np
import pytest

from eign.arrays import Array
from eign.models.local.model import LocalModel, local_model


def _points(seed: int, count: int, d: int) -> Array:
    points = np.random.default_rng(seed).normal(size=(count, d))
    points[0] = 0.0
    return points


def _bent(u: Array) -> tuple[Array, Array]:
    """A parabola with a sine on it, and its gradient."""
    d = u.shape[1]
    slope = np.linspace(-1.0, 1.0, d)
    value = u @ slope + 0.5 * np.vecdot(u, u) + np.sin(u[:, 0])
    gradient = slope + u
    gradient[:, 0] += np.cos(u[:, 0])
    return value, gradient


@pytest.mark.parametrize("d", [2, 30])
def test_it_interpolates_and_its_gradient_is_that_of_its_value(d: int) -> None:
    u = _points(0, 6, d)
    value, gradient = _bent(u)
    model = local_model(u, value - value[0], gradient, gradient[0])
    for point, expected, slope in zip(u, value - value[0], gradient, strict=True):
        found, found_slope = model(point)
        # A few times what the nugget of 1e-12 lets pass, by the model itself.
        assert found == pytest.approx(expected, abs=20.0 * model.error)
        np.testing.assert_allclose(found_slope, slope, atol=1e-3)
    x, h = np.full(d, 0.3), 1e-5
    numeric = [(model(x + h * e)[0] - model(x - h * e)[0]) / (2.0 * h) for e in np.eye(d)]
    np.testing.assert_allclose(model(x)[1], numeric, atol=1e-6)


def test_value_and_gradient_at_the_center_are_exact() -> None:
    u = _points(1, 8, 4)
    value, gradient = _bent(1e3 * u)
    model = local_model(u, value - value[0], 1e3 * gradient, 1e3 * gradient[0])
    found, slope = model(np.zeros(4))
    assert found == 0.0
    np.testing.assert_array_equal(slope, 1e3 * gradient[0])


def test_it_foretells_what_the_parabola_misses() -> None:
    u, new = _points(2, 12, 3), np.array([0.2, -0.1, 0.3])
    value, gradient = _bent(u)
    model = local_model(u, value - value[0], gradient, gradient[0])
    truth = _bent(new[None])[0][0] - value[0]
    miss = abs(LocalModel(gradient[0])(new)[0] - truth)
    assert abs(model(new)[0] - truth) < 0.1 * miss


def test_nothing_left_or_nothing_finite_is_the_parabola() -> None:
    u = _points(3, 4, 2)
    slope = np.ones(2)
    exact = local_model(u, u @ slope + 0.5 * np.vecdot(u, u), slope + u, slope)
    assert exact(np.ones(2))[0] == pytest.approx(3.0, abs=1e-12)
    assert local_model(u, np.array([0.0, 1.0, np.inf, 2.0]), slope + u, slope).rest is None
    assert local_model(u[:1], np.zeros(1), slope[None], slope).rest is None
