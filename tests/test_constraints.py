import json

import numpy as np
import pytest

from eign.constraints import Limits, LinearRows, is_feasible, scales, violation

NAN, INF = np.nan, np.inf


def test_violation_is_the_distance_from_the_allowed_interval():
    lower, upper = [-INF, 0.0, 2.0], [1.0, INF, 2.0]
    got = violation([[1.0, 0.0, 2.0], [1.5, -0.25, 1.0], [-9.0, 9.0, 5.0]], lower, upper)
    np.testing.assert_array_equal(got, [[0, 0, 0], [0.5, 0.25, 1.0], [0, 0, 3.0]])


def test_what_is_unknown_violates_by_an_unknown_amount_and_is_not_feasible():
    np.testing.assert_array_equal(violation([NAN, INF, -INF], [-INF] * 3, [0.0] * 3), [NAN] * 3)
    assert is_feasible([[0.0, NAN], [0.0, 0.0]], [-INF] * 2, [1.0] * 2).tolist() == [False, True]


def test_a_tolerance_has_the_units_of_its_constraint():
    values = [[1.05, 100.0], [1.0, 105.0]]
    assert is_feasible(values, [-INF] * 2, [1.0, 100.0], tol=[0.1, 1.0]).tolist() == [True, False]


def test_scales_are_of_the_first_values_and_do_not_shrink_as_a_search_comes_to_the_limit():
    design = np.linspace(0.0, 62.0, 32)[:, None]
    later = np.full((1000, 1), 1e-9)
    lower, upper = np.array([-INF]), np.array([0.0])
    assert scales(design, lower, upper) == scales(np.concatenate([design, later]), lower, upper) == 31.0


def test_scales_do_not_shrink_when_a_search_comes_to_the_limit_after_a_short_design():
    lower, upper = np.array([-np.inf]), np.array([0.0])
    design, later = np.array([5.0, 3.0, 9.0, 4.0, 7.0])[:, None], np.full((27, 1), 1e-9)
    assert scales(design, lower, upper) == scales(np.concatenate([design, later]), lower, upper) == 5.0


@pytest.mark.parametrize(
    ("values", "limits", "expected"),
    [
        ([], (-INF, 0.0), 1.0),  # nothing is known
        ([], (-INF, 250.0), 250.0),
        ([0.0, 0.0, 0.0], (0.0, 0.0), 1.0),  # all at the limit
        ([0.0, 0.0, 4.0], (-INF, 0.0), 4.0),  # most at the limit
        ([NAN, INF, 3.0, NAN], (1.0, INF), 2.0),  # what is unknown does not count
        ([2.0, 9.0], (1.0, 10.0), 1.0),  # the nearer limit
    ],
)
def test_a_scale_is_never_zero(values, limits, expected):
    column = np.reshape(np.array(values, dtype=float), (-1, 1))
    assert scales(column, np.array(limits[:1]), np.array(limits[1:])).tolist() == [expected]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([2.0], [1.0], r"limits are reversed, got \(2.0, 1.0\) for 'c'"),
        ([-INF], [INF], "allow everything"),
        ([NAN], [1.0], "must be numbers"),
        ([INF], [INF], "nothing can satisfy"),
        ([0.0, 1.0], [1.0, 2.0], r"shapes \(2,\)"),
    ],
)
def test_limits_that_are_none(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Limits(["c"], lower, upper)


def test_names_are_texts_and_differ():
    with pytest.raises(ValueError, match="differ"):
        Limits(["c", "c"], [0, 0], [1, 1])
    with pytest.raises(TypeError, match="text"):
        Limits([1], [0], [1])


def test_they_come_back_from_json():
    limits = Limits(["a", "b", "c"], [-INF, 0.0, 0.1], [1.0, INF, 0.1])
    rows = LinearRows([[1.0, 2.0], [0.1, 0.0]], [-INF, 0.1], [1.0, 0.1], ["sum", "first"])
    for each in (limits, rows, Limits(), LinearRows()):
        assert type(each).from_json(json.loads(json.dumps(each.to_json(), allow_nan=False))) == each
    assert repr(limits) == "Limits(a <= 1, 0 <= b, c == 0.1)"
    assert limits.is_equality.tolist() == [False, False, True]
    assert limits != Limits(["a", "b", "d"], limits.lower, limits.upper)


@pytest.mark.parametrize("stored", [None, [], {}, {"names": ["a"], "lower": 3, "upper": [1.0]}])
def test_limits_that_no_one_stored(stored):
    with pytest.raises(ValueError, match="expected"):
        Limits.from_json(stored)


def test_rows():
    rows = LinearRows([[1.0, 1.0], [1.0, -1.0]], [-INF, 0.0], [1.0, 0.0])
    assert rows.labels == ("row 0", "row 1")
    np.testing.assert_array_equal(rows.violation([[0.5, 0.25], [1.0, 1.0]]), [[0.0, 0.25], [1.0, 0.0]])
    with pytest.raises(ValueError, match="finite"):
        LinearRows([[NAN, 1.0]], [0.0], [1.0])
    with pytest.raises(ValueError, match="one row a constraint"):
        LinearRows([1.0, 1.0], [0.0], [1.0])
