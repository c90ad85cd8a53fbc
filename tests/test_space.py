import copy
import json
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import Bounds

from eign.arrays import as_floats, times_power
from eign.space import Box

PAIRS = [(-1.0, 3.0), (0.0, 2.0)]
LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize(
    "bounds",
    [
        PAIRS,
        tuple(PAIRS),
        np.array(PAIRS),
        zip([-1, 0], [3, 2], strict=True),
        Bounds([-1, 0], [3, 2]),
        Box(PAIRS),
        [[Fraction(-1), 3], [0, 2]],
    ],
    ids=["list", "tuple", "array", "zip", "scipy", "box", "fractions"],
)
def test_every_form_of_bounds_makes_the_same_box(bounds):
    box = Box(bounds)
    assert box == Box(PAIRS)
    np.testing.assert_array_equal(box.lower, [-1, 0])
    np.testing.assert_array_equal(box.upper, [3, 2])
    assert (box.dim, box.free_dim, box.names) == (2, 2, None)


def test_scipy_bounds_broadcast_a_common_bound():
    assert Box(Bounds(0, [1, 2])) == Box([(0, 1), (0, 2)])


def test_dict_gives_names_in_order():
    box = Box({"b": (0, 1), "a": (2, 3)})
    assert box.names == ("b", "a")
    assert box == Box([(0, 1), (2, 3)], names=["b", "a"])
    assert box != Box([(0, 1), (2, 3)])


def test_a_box_of_a_box_keeps_scales_and_names():
    box = Box({"a": (1, 2), "b": (1, 3)}, log=["a"])
    assert Box(box) == box
    assert Box(box, log=["b"]).log.tolist() == [True, True]
    assert Box(box, names=["c", "d"]).names == ("c", "d")


@pytest.mark.parametrize("log", [[1], ["b"], "b", 1, [False, True], np.array([False, True]), (np.int64(1),)])
def test_log_by_index_name_or_mask(log):
    assert Box({"a": (1, 2), "b": (1, 3)}, log=log).log.tolist() == [False, True]


@pytest.mark.parametrize(
    ("bounds", "error", "words"),
    [
        ([(0, 1), (3, 2)], ValueError, r"reversed, got \(3\.0, 2\.0\) for coordinate 1; expected low <= high"),
        ({"a": (3, 2)}, ValueError, r"reversed, got \(3\.0, 2\.0\) for 'a'"),
        ([(0, np.inf)], ValueError, r"finite, got \(0\.0, inf\) for coordinate 0; give the range"),
        ([(np.nan, 1)], ValueError, r"finite, got \(nan, 1\.0\)"),
        ([(0, None)], ValueError, "finite"),
        ([(0, 10**400)], ValueError, "float64 numbers"),
        ([("0", "1")], TypeError, r"real numbers, got \[\('0', '1'\)\]"),
        ("ab", TypeError, "real numbers, got 'ab'"),
        ([(0, 1j)], TypeError, "real numbers"),
        ([(False, True)], TypeError, "real numbers"),
        (None, ValueError, r"shape \(\), expected \(d, 2\)"),
        (3.0, ValueError, r"shape \(\), expected \(d, 2\)"),
        ([], ValueError, "empty, got .*at least one coordinate"),
        ({}, ValueError, "empty"),
        ((0, 1), ValueError, r"shape \(2,\), expected \(d, 2\): for one coordinate write \[\(low, high\)\]"),
        ([(0, 1, 2)], ValueError, r"shape \(1, 3\), expected \(d, 2\)"),
        (np.zeros((2, 3)), ValueError, "BoTorch, has to be transposed"),
        ([(0, 1), (0,)], ValueError, "rows of equal length"),
        ({"a": 3.0}, ValueError, r"expected \(d, 2\)"),
        (SimpleNamespace(lb=[0, 0], ub=[1, 2, 3]), ValueError, r"shapes \(2,\) and \(3,\), expected \(d,\) twice"),
        ([(1, 1), (2, 2)], ValueError, "every coordinate is fixed .*widen.*np.transpose"),
    ],
)
def test_bad_bounds_say_what_is_wrong(bounds, error, words):
    with pytest.raises(error, match=words):
        Box(bounds)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"names": ["a"]}, ValueError, r"expected 2 names, one for each coordinate, got 1: \['a'\]"),
        ({"names": ["a", "a"]}, ValueError, r"differ from each other, got \['a', 'a'\]"),
        ({"names": ["a", 1]}, TypeError, r"non-empty strings, got \['a', 1\]"),
        ({"names": ["a", ""]}, TypeError, "non-empty strings"),
        ({"log": [0]}, ValueError, r"log scale needs low > 0, got low = -1\.0 for coordinate 0"),
        ({"log": ["b"], "names": ["a", "b"]}, ValueError, r"low > 0, got low = 0\.0 for 'b'"),
        ({"log": [2]}, ValueError, r"no coordinate 2; expected an index from 0 to 1 \(this box has no names\)"),
        ({"log": [-1]}, ValueError, "no coordinate -1"),
        ({"log": ["c"], "names": ["a", "b"]}, ValueError, r"no coordinate 'c'; .*names \['a', 'b'\]"),
        ({"log": [True]}, ValueError, "no coordinate True"),
    ],
)
def test_bad_names_and_scales_say_what_is_wrong(options, error, words):
    with pytest.raises(error, match=words):
        Box(PAIRS, **options)


def test_dict_and_names_together_are_refused():
    with pytest.raises(ValueError, match="leave one out"):
        Box({"a": (0, 1)}, names=["b"])


def test_box_is_immutable_and_keeps_no_reference():
    given = np.array(PAIRS)
    box = Box(given)
    given[:] = 7.0
    assert box == Box(PAIRS)
    for array in (box.lower, box.upper, box.log):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        box.lower = np.zeros(2)


def test_equal_boxes_hash_alike():
    assert len({Box([(-0.0, 1)]), Box([(0.0, 1)]), Box([(0.0, 1.0)]), Box([(0, 2)])}) == 2
    assert Box(PAIRS) != PAIRS


@pytest.mark.parametrize("box", [Box(PAIRS), Box({"a": (1e-5, 0.1), "b": (2, 2)}, log=["a"]), Box([(1, 3)], log=[0])])
def test_copies_equal_the_box(box):
    assert eval(repr(box), {"Box": Box}) == box
    assert Box.from_json(json.loads(json.dumps(box.to_json(), allow_nan=False))) == box
    for copied in (pickle.loads(pickle.dumps(box)), copy.deepcopy(box)):
        assert copied == box
        assert not copied.lower.flags.writeable


def test_from_json_names_what_it_needs():
    with pytest.raises(ValueError, match="bounds, log and names"):
        Box.from_json({"bounds": PAIRS})


def test_linear_and_log_scale_by_hand():
    box = Box([(-2.0, 6.0), (1e-3, 1e3)], log=[1])
    np.testing.assert_allclose(box.to_unit([[0.0, 1.0], [6.0, 10.0]]), [[0.25, 0.5], [1.0, 4 / 6]], rtol=1e-15)
    np.testing.assert_allclose(box.from_unit([0.25, 0.5]), [0.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(box.unit_scale([0.0, 10.0]), [8.0, 10 * np.log(1e6)], rtol=1e-15)


def test_fixed_coordinates_leave_the_cube_and_come_back():
    box = Box([(5, 5), (0, 2), (1, 1)], log=[2])
    assert box.free.tolist() == [False, True, False]
    assert (box.dim, box.free_dim) == (3, 1)
    np.testing.assert_array_equal(box.to_unit([[5, 1, 1], [5, 2, 1]]), [[0.5], [1.0]])
    np.testing.assert_array_equal(box.from_unit([[0.5], [1.0]]), [[5, 1, 1], [5, 2, 1]])
    np.testing.assert_array_equal(box.unit_scale([5, 1, 1]), [2.0])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_leading_shapes_are_kept(shape):
    box = Box([(0, 4), (5, 5), (1, 3)], log=[2])
    x = np.broadcast_to([1.0, 5.0, 2.0], (*shape, 3))
    assert box.to_unit(x).shape == box.unit_scale(x).shape == (*shape, 2)
    assert box.from_unit(box.to_unit(x)).shape == (*shape, 3)
    assert box.contains(x).shape == shape


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([0.0, 2.1], ValueError, r"outside the box: 2\.1 for 'b', expected between 0\.0 and 2\.0"),
        ([[0.0, 1.0], [-1.5, 1.0]], ValueError, r"-1\.5 for 'a', expected between -1\.0 and 3\.0"),
        ([0.0, np.nan], ValueError, "nan for 'b'"),
        ([None, 1.0], ValueError, "nan for 'a'"),
        ([0.0], ValueError, r"shape \(1,\), expected \(\.\.\., 2\)"),
        (0.0, ValueError, r"shape \(\), expected \(\.\.\., 2\)"),
        (["0", "1"], TypeError, r"x: expected real numbers, got \['0', '1'\]"),
        ({"a": 0, "b": 1}, TypeError, "x: expected real numbers"),
    ],
)
def test_bad_points_name_the_coordinate(x, error, words):
    box = Box({"a": (-1, 3), "b": (0, 2)})
    for method in (box.to_unit, box.unit_scale):
        with pytest.raises(error, match=words):
            method(x)


def test_a_fixed_coordinate_must_have_its_value():
    with pytest.raises(ValueError, match=r"4\.0 for coordinate 1, expected 5\.0, where it is fixed"):
        Box([(0, 1), (5, 5)]).to_unit([0.5, 4.0])


@pytest.mark.parametrize(
    ("u", "words"),
    [
        ([0.5, 1.01], r"outside the unit cube: 1\.01 for 'c', expected 0 <= u <= 1"),
        ([np.nan, 0.5], "nan for 'a'"),
        ([0.5], r"shape \(1,\), expected \(\.\.\., 2\)"),
    ],
)
def test_bad_cube_points_name_the_coordinate(u, words):
    with pytest.raises(ValueError, match=words):
        Box({"a": (0, 1), "b": (2, 2), "c": (0, 1)}).from_unit(u)


def test_rounding_off_the_border_is_put_back_onto_it():
    box = Box([(0.1, 0.3), (1e-200, 1.0)], log=[1])
    beyond = [0.1 + 0.2, np.nextafter(1e-200, 0)]
    assert beyond[0] > 0.3
    np.testing.assert_array_equal(box.to_unit(beyond), [1.0, 0.0])
    np.testing.assert_array_equal(box.from_unit([1 + 4e-16, -4e-16]), [0.3, 1e-200])
    # On a log scale a tolerance in units of the upper bound would let non-positive numbers through.
    with pytest.raises(ValueError, match="outside the box"):
        box.to_unit([0.2, 0.0])


@pytest.mark.parametrize(
    ("bounds", "log"),
    [
        ((-1e308, 1e308), False),
        ((-LARGEST, LARGEST), False),
        ((0.0, 5e-324), False),
        ((1e-320, 1e308), False),
        ((1.0, np.nextafter(1.0, 2.0)), False),
        ((5e-324, LARGEST), True),
        ((1e-300, 1e300), True),
        ((1e300, np.nextafter(1e300, np.inf)), True),
    ],
)
def test_extreme_bounds_map_onto_the_border_and_centre(bounds, log):
    box = Box([bounds], log=[0] if log else [])
    np.testing.assert_array_equal(box.from_unit([[0.0], [1.0]]), np.array([bounds]).T)
    np.testing.assert_array_equal(box.to_unit(np.array([bounds]).T), [[0.0], [1.0]])
    centre = box.from_unit([0.5])
    assert box.contains(centre)
    assert 0 <= box.to_unit(centre).item() <= 1
    assert 0 < box.unit_scale(centre).item() < np.inf


def test_centre_of_the_widest_boxes():
    assert Box([(-1e308, 1e308)]).to_unit([0.5e308]).item() == 0.75
    assert Box([(-1e308, 1e308)]).from_unit([0.75]).item() == 0.5e308
    np.testing.assert_allclose(Box([(1e-300, 1e300)], log=[0]).from_unit([0.5]), [1.0], rtol=2e-13)


def test_chain_rule_is_exact_where_the_width_is_above_the_largest_float():
    box = Box([(-1e308, 1e308)])
    np.testing.assert_allclose(box.times_unit_scale([1e-308], [0.0]), [2.0], rtol=1e-15)
    np.testing.assert_allclose(box.times_unit_scale([2.0], [0.0], power=-1), [1e-308], rtol=1e-15)
    assert box.unit_scale([0.0]).item() == LARGEST


def test_narrow_log_boxes_keep_their_precision():
    low, high = 1e300, 1.0001e300
    x = np.linspace(low, high, 7)
    expected = np.log1p((x - low) / low) / np.log1p((high - low) / low)
    np.testing.assert_allclose(Box([(low, high)], log=[0]).to_unit(x[:, None])[:, 0], expected, atol=1e-12)


def test_contains_is_exact_at_the_border():
    box = Box([(0.0, 1.0), (2.0, 2.0)])
    inside = box.contains([[0.0, 2.0], [1.0, 2.0], [np.nextafter(1, 2), 2.0], [0.5, 2.1], [np.nan, 2.0]])
    assert inside.tolist() == [True, True, False, False, False]


def test_points_as_dicts():
    box = Box({"a": (0, 1), "b": (3, 3)})
    assert box.as_dict([0.5, 3]) == {"a": 0.5, "b": 3.0}
    np.testing.assert_array_equal(box.from_dict({"b": 3, "a": 0.25}), [0.25, 3])
    np.testing.assert_array_equal(box.from_dict({"a": 0.25}), [0.25, 3])
    with pytest.raises(ValueError, match=r"unknown names \['c'\] and lacks \['a'\]; expected \['a', 'b'\]"):
        box.from_dict({"c": 1})
    with pytest.raises(ValueError, match="one point"):
        box.as_dict([[0.5, 3]])
    for use in (lambda unnamed: unnamed.as_dict([0.5]), lambda unnamed: unnamed.from_dict({"a": 1})):
        with pytest.raises(ValueError, match="no names; make it with a dict"):
            use(Box([(0, 1)]))


def test_as_floats_copies_and_refuses_what_is_not_a_number():
    given = np.array([1.0, 2.0])
    assert not np.shares_memory(as_floats(given, "y"), given)
    np.testing.assert_array_equal(as_floats([None, Fraction(1, 2), 3], "y"), [np.nan, 0.5, 3])
    with pytest.raises(TypeError, match="y: expected real numbers"):
        as_floats([None, "1"], "y")


def test_a_tensor_that_requires_grad_is_refused_with_advice():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="detach"):
        as_floats(torch.ones(2, requires_grad=True), "grad")
    np.testing.assert_array_equal(as_floats(torch.ones(2), "grad"), [1, 1])


def test_times_power_saturates_and_keeps_what_is_not_finite():
    huge = np.frexp(np.array(1e200))
    np.testing.assert_array_equal(
        times_power(np.array([1.0, -1.0, 0.0, np.nan, np.inf, -np.inf]), huge, 2),
        [LARGEST, -LARGEST, 0.0, np.nan, np.inf, -np.inf],
    )


@pytest.mark.parametrize("x", [-1e300, np.inf, -np.inf])
def test_a_bound_at_the_largest_float_is_still_a_bound(x):
    with pytest.raises(ValueError, match="outside the box"):
        Box([(0.0, LARGEST)]).to_unit([x])
    with pytest.raises(ValueError, match="outside the box"):
        Box([(-LARGEST, 0.0)]).to_unit([-x])


def test_linear_rows_mean_the_same_in_the_cube():
    box = Box({"a": (-2.0, 3.0), "b": (5.0, 5.0), "c": (1.0, 100.0)}, log=["c"])
    A, lower, upper = np.array([[2.0, 3.0, 0.0]]), np.array([-np.inf]), np.array([17.0])
    rows, low, high = box.linear_to_unit(A, lower, upper)
    assert rows.shape == (1, 2)
    u = np.random.default_rng(0).random((50, 2))
    # A sum of three products of size 15.
    np.testing.assert_allclose(u @ rows.T - high, box.from_unit(u) @ A.T - upper, rtol=0, atol=1e-14)
    assert low == [-np.inf]


def test_linear_rows_on_a_log_scale_are_refused():
    box = Box({"a": (0.0, 1.0), "rate": (1.0, 100.0)}, log=["rate"])
    with pytest.raises(ValueError, match="'rate', which has a log scale"):
        box.linear_to_unit([[0.0, 1.0]], [0.0], [1.0])
    with pytest.raises(ValueError, match=r"expected \(k, 2\)"):
        box.linear_to_unit([[1.0]], [0.0], [1.0])
