"""Round trips between user units and the unit cube, for boxes of all magnitudes."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eign.space import Box

EPS = np.finfo(np.float64).eps
FINITE = st.floats(allow_nan=False, allow_infinity=False)
UNIT = st.floats(0.0, 1.0)


@st.composite
def boxes(draw):
    """A box of any magnitude with at least one free coordinate, some on a log scale, some fixed."""
    pairs, log = [], []
    for i in range(draw(st.integers(1, 4))):
        on_log = draw(st.booleans())
        ends = st.floats(5e-324, allow_infinity=False) if on_log else FINITE
        pair = sorted([draw(ends), draw(ends)])
        pairs.append((pair[0], pair[0]) if draw(st.integers(0, 4)) == 0 else tuple(pair))
        log += [i] * on_log
    if all(low == high for low, high in pairs):
        pairs.append((-1.0, 1.0))
    return Box(pairs, log=log)


@st.composite
def boxes_and_points(draw):
    box = draw(boxes())
    return box, np.array([draw(st.floats(low, high)) for low, high in zip(box.lower, box.upper, strict=True)])


@st.composite
def boxes_and_cube_points(draw):
    box = draw(boxes())
    return box, np.array([draw(UNIT) for _ in range(box.free_dim)])


def rounding(x):
    """At least half the distance from x to the next float, subnormal ones included."""
    return EPS * np.abs(x) + 5e-324


@given(boxes_and_points())
def test_user_units_survive_the_cube(case):
    box, x = case
    u = box.to_unit(x)
    assert ((u >= 0) & (u <= 1)).all()
    back = box.from_unit(u)
    assert box.contains(back)
    # In halves, because the width of the widest boxes is no float. A box narrower than 1e-12 of its bounds has no
    # finer numbers than the rounding.
    half_width = 0.5 * box.upper - 0.5 * box.lower
    tolerance = 1e-12 * half_width + rounding(x)
    assert (np.abs(0.5 * back - 0.5 * x) <= tolerance).all()


@given(boxes_and_cube_points())
def test_cube_points_survive_user_units(case):
    box, u = case
    x = box.from_unit(u)
    assert box.contains(x)
    # What one rounding of x means in the cube: all that a box with few numbers between its bounds can give back.
    resolution = box.times_unit_scale(rounding(np.maximum(np.abs(x), np.abs(box.lower)))[box.free], x, power=-1)
    assert (np.abs(box.to_unit(x) - u) <= 1e-12 + 2 * resolution).all()


@given(boxes(), st.data())
def test_the_border_stays_the_border_exactly(box, data):
    corner = np.array([float(data.draw(st.booleans())) for _ in range(box.free_dim)])
    expected = box.lower.copy()
    expected[box.free] = np.where(corner == 1, box.upper[box.free], box.lower[box.free])
    np.testing.assert_array_equal(box.from_unit(corner), expected)
    np.testing.assert_array_equal(box.to_unit(expected), corner)


@given(boxes(), st.data())
def test_both_maps_keep_the_order(box, data):
    u = np.sort([data.draw(UNIT), data.draw(UNIT)])[:, None] * np.ones(box.free_dim)
    x = box.from_unit(u)
    assert (x[0] <= x[1]).all()
    back = box.to_unit(x)
    assert (back[0] <= back[1] + 4 * EPS).all()


@given(UNIT, st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(1e-300, 1e280), st.floats(0.1, 40.0))
def test_unit_scale_is_the_slope_of_from_unit(u, low, width, least, log_ratio):
    box = Box([(low, low + width), (least, least * np.exp(log_ratio))], log=[1])
    h = 1e-5
    centre = np.full(2, h + u * (1 - 2 * h))
    x, ahead, behind = box.from_unit([centre, centre + h, centre - h])
    slope, truth = (ahead - behind) / (2 * h), box.unit_scale(x)
    # Truncation (L h)^2 / 6, relative, on the log scale; the rounding of two x (low + u width: of the bounds).
    truncation = truth * np.array([0.0, (log_ratio * h) ** 2 / 6])
    roundoff = 4 * EPS * np.array([abs(low) + width, ahead[1] * (1 + log_ratio)]) / h
    assert (np.abs(slope - truth) <= 1.01 * truncation + roundoff).all()


@given(boxes_and_points(), st.sampled_from([1, 2]), st.floats(1e-100, 1e100))
def test_the_chain_rule_undoes_itself(case, power, value):
    box, x = case
    there = box.times_unit_scale(np.full(box.free_dim, value), x, power=power)
    back = box.times_unit_scale(there, x, power=-power)
    safe = (there > 1e-300) & (there < 1e300)
    np.testing.assert_allclose(back[safe], value, rtol=8 * EPS)


@given(boxes())
def test_stored_boxes_are_equal(box):
    assert Box.from_json(json.loads(json.dumps(box.to_json(), allow_nan=False))) == box
    assert eval(repr(box), {"Box": Box}) == box
