"""Numbers as users pass them: what is none of them is answered with what to write."""

import numpy as np
import pytest

import eign
from eign.arrays import as_floats


@pytest.mark.parametrize("gradient", [np.array([1.0, 2.0]), [1.0, 2.0], np.array([1.0])])
def test_a_value_with_its_gradient_is_named(gradient):
    advice = r"a pair of a value and a gradient: pass jac=True to minimize, or tell\(x, \*fun\(x\)\)"
    with pytest.raises(ValueError, match=rf"value: expected one number, got \(5.41, .*\), {advice}"):
        as_floats((5.41, gradient), "value")
    with pytest.raises(ValueError, match=advice):
        eign.minimize(lambda x: (5.41, gradient), [(0, 1)] * len(gradient), jac=None, budget=2)
    with pytest.raises(ValueError, match=advice):
        eign.Optimizer([(0, 1)] * len(gradient)).tell([0.5] * len(gradient), (5.41, gradient))


@pytest.mark.parametrize("bounds", [[(1e-3, 3, "log")], [(0, 1), (1e-3, 3, "log")], {"a": (1e-3, 3, "log")}])
def test_a_log_scale_among_the_bounds_is_sent_to_the_box(bounds):
    with pytest.raises((TypeError, ValueError), match=r"eign.Box\(bounds, log=\[0\]\)"):
        eign.Box(bounds)


@pytest.mark.parametrize("values", [[[1.0, 2.0], [3.0]], (1.0, (2.0, 3.0)), ([[1.0], [2.0, 3.0]], [4.0])])
def test_other_uneven_rows_are_no_such_pair(values):
    with pytest.raises(ValueError, match=r"bounds: expected rows of equal length, got .*[\])]$"):
        as_floats(values, "bounds")
