import copy
import json
import pickle

import numpy as np
import pytest

from eign.data import Observations, to_unit, to_user
from eign.space import Box

NAN, INF = np.nan, np.inf
LARGEST = np.finfo(np.float64).max


def five_rows() -> Observations:
    """All present; y missing; one component missing; all missing; y infinite."""
    return Observations(
        [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8], [0.9, 1.0]],
        [1.0, None, 3.0, NAN, -INF],
        [[1.0, 2.0], [3.0, 4.0], [NAN, 6.0], None, [9.0, 9.0]],
        y_var=[0.1, NAN, 0.0, NAN, NAN],
        grad_var=[[0.1, 0.2], None, [0.5, 0.6], None, None],
    )


def test_append_one_point_and_many():
    one = Observations.empty(2).append([0.1, 0.2], 1.0, [3.0, 4.0], 0.1, [0.2, 0.3])
    both = one.append([[0.3, 0.4], [0.5, 0.6]], [2.0, 3.0], [[5.0, 6.0], [7.0, 8.0]])
    assert (len(one), len(both), both.dim) == (1, 3, 2)
    np.testing.assert_array_equal(both.x, [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    np.testing.assert_array_equal(both.y, [1, 2, 3])
    np.testing.assert_array_equal(both.grad, [[3, 4], [5, 6], [7, 8]])
    np.testing.assert_array_equal(both.y_var, [0.1, NAN, NAN])
    np.testing.assert_array_equal(both.grad_var, [[0.2, 0.3], [NAN, NAN], [NAN, NAN]])


def test_what_is_missing_is_nan():
    obs = five_rows()
    np.testing.assert_array_equal(obs.y, [1, NAN, 3, NAN, -INF])
    np.testing.assert_array_equal(obs.grad[2:4], [[NAN, 6], [NAN, NAN]])
    assert obs.has_y.tolist() == [True, False, True, False, False]
    assert obs.has_grad.tolist() == [[True, True], [True, True], [False, True], [False, False], [True, True]]


@pytest.mark.parametrize(
    ("y", "grad", "failed"),
    [
        (1.0, None, False),
        (1.0, [INF, NAN], False),
        (None, None, True),
        (NAN, [NAN, NAN], True),
        (NAN, [INF, NAN], True),
        (NAN, [NAN, 1.0], False),
        (INF, [1.0, 1.0], True),
        (-INF, None, True),
    ],
)
def test_what_counts_as_failed(y, grad, failed):
    obs = Observations.empty(2).append([0.0, 0.0], y, grad)
    assert obs.failed.tolist() == [failed]
    assert obs.n_failed == failed
    assert len(obs) == 1
    assert len(obs.usable) == 1 - failed


def test_usable_holds_no_infinity():
    obs = five_rows().append([0.0, 0.0], 7.0, [INF, -1.0])
    usable = obs.usable
    np.testing.assert_array_equal(usable.x[:, 0], [0.1, 0.3, 0.5, 0.0])
    np.testing.assert_array_equal(usable.grad[-1], [NAN, -1.0])
    assert obs.grad[-1, 0] == INF
    assert usable.usable == usable


def test_scalars_stand_for_arrays_of_one():
    obs = Observations.empty(1).append(0.5, np.array([2.0]), 3.0, np.array([0.1]), 0.2)
    assert obs == Observations([[0.5]], [2.0], [[3.0]], [0.1], [[0.2]])


def test_one_variance_stands_for_all():
    obs = Observations.empty(2).append(np.zeros((3, 2)), [1, 2, 3], np.ones((3, 2)), 0.1, 0.2)
    np.testing.assert_array_equal(obs.y_var, [0.1] * 3)
    np.testing.assert_array_equal(obs.grad_var, np.full((3, 2), 0.2))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([0.1], 1.0), ValueError, r"x has shape \(1,\), expected \(2,\) for one point or \(n, 2\) for many"),
        ((np.zeros((1, 1, 2)), 1.0), ValueError, r"x has shape \(1, 1, 2\)"),
        (([0.1, NAN], 1.0), ValueError, r"x must be finite, got \[0\.1, nan\]"),
        (([[0.1, 0.2], [0.3, INF]], [1, 2]), ValueError, r"x must be finite, got \[0\.3, inf\]"),
        ((["a", "b"], 1.0), TypeError, r"x: expected real numbers, got \['a', 'b'\]"),
        (([0.1, 0.2], "1.0"), TypeError, r"y: expected real numbers, got '1\.0'"),
        (([0.1, 0.2], 1j), TypeError, "y: expected real numbers"),
        (([0.1, 0.2], [1.0, 2.0]), ValueError, r"y has shape \(2,\), expected \(\): one number a point"),
        (([[0.1, 0.2]] * 3, [1.0, 2.0]), ValueError, r"y has shape \(2,\), expected \(3,\)"),
        (([[0.1, 0.2]] * 3, 1.0), ValueError, r"y has shape \(\), expected \(3,\)"),
        (([0.1, 0.2], 1.0, [1.0]), ValueError, r"grad has shape \(1,\), expected \(2,\): one number a coordinate, NaN"),
        (([0.1, 0.2], 1.0, [1.0, 2.0, 3.0]), ValueError, r"grad has shape \(3,\), expected \(2,\)"),
        (([0.1, 0.2], 1.0, 3.0), ValueError, r"grad has shape \(\), expected \(2,\)"),
        (([0.1, 0.2], 1.0, "up"), TypeError, "grad: expected real numbers, got 'up'"),
        (([[0.1, 0.2]] * 2, [1, 2], [[1, 2], [3]]), ValueError, "grad: expected rows of equal length"),
        (([[0.1, 0.2]] * 2, [1, 2], [1, 2]), ValueError, r"grad has shape \(2,\), expected \(2, 2\)"),
        (([0.1, 0.2], 1.0, None, -0.1), ValueError, r"y_var must be finite and not negative, got -0\.1; None or NaN"),
        (([0.1, 0.2], 1.0, None, INF), ValueError, "y_var must be finite and not negative, got inf"),
        (([0.1, 0.2], 1.0, [1, 1], None, [0.1, -2]), ValueError, r"grad_var must be .* got -2\.0"),
        (([0.1, 0.2], 1.0, [1, 1], None, [0.1]), ValueError, r"grad_var has shape \(1,\), expected \(2,\)"),
    ],
)
def test_bad_rows_raise_and_lose_nothing(arguments, error, words):
    obs = five_rows()
    with pytest.raises(error, match=words):
        obs.append(*arguments)
    assert obs == five_rows()


@pytest.mark.parametrize("x", [[0.1, 0.2], [], 0.1, [[]]])
def test_the_constructor_takes_rows(x):
    with pytest.raises(ValueError, match=r"expected \(n, d\) with d > 0; one point is"):
        Observations(x)


@pytest.mark.parametrize(("dim", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError), (1.5, TypeError)])
def test_empty_takes_a_positive_whole_number(dim, error):
    with pytest.raises(error):
        Observations.empty(dim)


def test_observations_are_immutable_and_keep_no_reference():
    x, y = np.zeros((2, 2)), np.zeros(2)
    obs = Observations(x, y)
    x[:], y[:] = 7.0, 7.0
    assert obs == Observations(np.zeros((2, 2)), np.zeros(2))
    for made in (obs, obs[:1], obs.usable, obs.append([1.0, 1.0], 1.0), pickle.loads(pickle.dumps(obs))):
        for array in (made.x, made.y, made.grad, made.y_var, made.grad_var):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.0
    with pytest.raises(AttributeError):
        obs.y = y
    with pytest.raises(TypeError, match="unhashable"):
        hash(obs)


def test_indexing_by_slice_mask_list_and_number():
    obs = five_rows()
    assert obs[1:3] == obs[[1, 2]] == obs[np.array([False, True, True, False, False])]
    assert obs[2] == obs[2:3]
    assert obs[-1] == obs[4:]
    assert obs[5:] == Observations.empty(2)
    with pytest.raises(IndexError):
        obs[5]


def test_equality_sees_every_field():
    obs = five_rows()
    fields = (obs.x, obs.y, obs.grad, obs.y_var, obs.grad_var)
    for i, field in enumerate(fields):
        changed = [f.copy() for f in fields]
        changed[i][0] = field[0] + 1.0
        assert Observations(*changed) != obs
    assert Observations.empty(2) != Observations.empty(3)
    assert obs != "observations"


@pytest.mark.parametrize("obs", [five_rows(), Observations.empty(3)])
def test_copies_equal_the_observations(obs):
    assert Observations.from_json(json.loads(json.dumps(obs.to_json(), allow_nan=False))) == obs
    assert pickle.loads(pickle.dumps(obs)) == obs
    assert copy.deepcopy(obs) == obs


def test_from_json_names_what_it_needs():
    with pytest.raises(ValueError, match="stored as dim and"):
        Observations.from_json({"x": []})


def test_repr_counts():
    assert repr(five_rows()) == "Observations(n=5, dim=2, values=2, gradient_components=7, failed=2)"


def test_chain_rule_by_hand():
    box = Box([(0.0, 4.0), (7.0, 7.0), (1.0, np.e)], log=[2])
    obs = Observations([[1.0, 7.0, 2.0]], [5.0], [[3.0, 9.0, 0.5]], [0.1], [[1.0, 1.0, 2.0]])
    unit = to_unit(obs, box)
    np.testing.assert_allclose(unit.x, [[0.25, np.log(2.0)]], rtol=1e-15)
    np.testing.assert_allclose(unit.grad, [[12.0, 1.0]], rtol=1e-15)
    np.testing.assert_allclose(unit.grad_var, [[16.0, 8.0]], rtol=1e-15)
    assert (unit.y.item(), unit.y_var.item()) == (5.0, 0.1)
    user = to_user(unit, box)
    np.testing.assert_allclose(user.x, obs.x, rtol=1e-15)
    np.testing.assert_allclose(user.grad, [[3.0, NAN, 0.5]], rtol=1e-15)
    np.testing.assert_allclose(user.grad_var, [[1.0, NAN, 2.0]], rtol=1e-15)


def test_chain_rule_keeps_what_is_missing_or_infinite():
    box = Box([(0.0, 4.0), (1.0, 3.0)], log=[1])
    obs = Observations([[1.0, 2.0]] * 2, [None, INF], [[NAN, INF], None])
    assert np.isnan(to_unit(obs, box).y[0])
    np.testing.assert_array_equal(to_unit(obs, box).grad, obs.grad)
    assert to_unit(obs, box).failed.tolist() == [True, True]


def test_chain_rule_does_not_overflow():
    box = Box([(-1e308, 1e308), (0.0, 1e-200)])
    unit = to_unit(Observations([[0.0, 0.0]], [0.0], [[1e-308, 1e200]], None, [[1e-300, 1e300]]), box)
    np.testing.assert_allclose(unit.grad, [[2.0, 1.0]], rtol=1e-15)
    np.testing.assert_allclose(unit.grad_var, [[LARGEST, 1e-100]], rtol=1e-15)


def test_observations_of_another_box_are_told_apart():
    with pytest.raises(ValueError, match="2 coordinates, the box has 1"):
        to_unit(Observations([[1.0, 1.0]]), Box([(0, 1)]))
    with pytest.raises(ValueError, match="2 coordinates, the unit cube of the box has 1"):
        to_user(Observations([[1.0, 1.0]]), Box([(0, 1), (3, 3)]))


def test_an_array_of_none_is_no_gradients():
    seen = Observations.empty(2).append([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], np.array([None, None]))
    assert not seen.has_grad.any()


def test_followed_by_is_append_of_what_has_been_checked():
    first, second = Observations([[0.1, 0.2]], [1.0], [[None, 2.0]]), Observations([[0.3, 0.4]], [np.inf], None, [0.5])
    assert first.followed_by(second) == first.append(second.x, second.y, second.grad, second.y_var)
    with pytest.raises(ValueError, match=r"expected \(n, 2\)"):
        first.followed_by(Observations([[0.1]]))


def test_usable_is_the_same_object_where_nothing_failed():
    seen = Observations([[0.1, 0.2], [0.3, 0.4]], [1.0, None], [[None, 2.0], [1.0, 1.0]])
    assert seen.usable is seen
    assert len(seen.append([0.5, 0.5], np.inf).usable) == 2
    assert np.isnan(seen.append([0.5, 0.5], 1.0, [np.inf, 1.0]).usable.grad[2, 0])


def test_masked_entries_are_missing():
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    told = Observations.empty(2).append([0.5, 0.5], np.ma.masked, masked)
    assert not told.has_y.any()
    np.testing.assert_array_equal(told.grad, [[1.0, np.nan]])
    many = Observations(
        [[0.0], [1.0]], np.ma.masked_invalid([3.0, np.nan]), np.ma.masked_array([[1.0], [2.0]], [[1], [0]])
    )
    np.testing.assert_array_equal(many.y, [3.0, np.nan])
    np.testing.assert_array_equal(many.grad, [[np.nan], [2.0]])
    with pytest.raises(ValueError, match="x must be finite"):
        Observations(np.ma.masked_array([[1.0]], mask=True))


def constrained() -> Observations:
    """Everything known; the value alone; the first constraint's gradient alone; nothing; the evaluation failed."""
    x = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8], [0.9, 1.0]]
    first = Observations(x, [1.0, None, None, None, 2.0], [[1.0, INF], None, [5.0, NAN], None, None], [0.1] * 5)
    second = Observations(x, [-INF, None, None, None, 3.0])
    return Observations(x, [1.0, 2.0, None, None, INF], constraints=[first, second])


def test_a_row_that_knows_any_output_counts_for_that():
    obs = constrained()
    assert obs.failed.tolist() == [False, False, False, True, True]
    usable = obs.usable
    assert len(usable) == 3
    np.testing.assert_array_equal(usable.y, [1, 2, NAN])
    first, second = usable.constraints
    np.testing.assert_array_equal(first.y, [1, NAN, NAN])
    np.testing.assert_array_equal(first.grad, [[1, NAN], [NAN, NAN], [5, NAN]])
    np.testing.assert_array_equal(second.y, [NAN, NAN, NAN])  # an infinite one is unknown
    assert obs.objective.failed.tolist() == [False, False, True, True, True]
    assert obs.objective.constraints == ()
    assert repr(obs) == "Observations(n=5, dim=2, values=2, gradient_components=0, failed=2, constraints=2)"


def test_constraints_share_the_points_themselves():
    for obs in (constrained(), constrained()[1:4], constrained().usable, Observations.empty(2, constraints=2)):
        assert len(obs.constraints) == 2
        assert all(each.x is obs.x for each in obs.constraints)
    with pytest.raises(ValueError, match="points of its objective"):
        Observations([[0.0]], [1.0], constraints=[Observations([[0.5]], [1.0])])


def test_constraints_are_carried_along():
    obs = constrained()
    assert obs[[3, 0]].constraints[0].y.tolist()[1] == 1.0
    assert obs[:2].followed_by(obs[2:]) == obs
    assert obs != obs.objective
    assert obs != obs.with_constraints(obs.constraints[::-1])
    assert pickle.loads(pickle.dumps(obs)) == copy.deepcopy(obs) == obs
    assert Observations.from_json(json.loads(json.dumps(obs.to_json()))) == obs
    empty = Observations.empty(2, constraints=3)
    assert Observations.from_json(empty.to_json()) == empty
    with pytest.raises(ValueError, match="got 0 constraints, expected 2"):
        obs.followed_by(obs.objective)
    added = obs.append([0.0, 0.0], 7.0)
    assert np.isnan(added.constraints[0].y[-1])
    moved = obs.at(obs.x + 1.0)
    np.testing.assert_array_equal(moved.constraints[0].x, obs.x + 1.0)
    np.testing.assert_array_equal(moved.constraints[0].grad, obs.constraints[0].grad)


def test_constraints_stored_wrongly():
    stored = constrained().to_json()
    for wrong in (3, [3], [{"y": []}]):
        with pytest.raises(ValueError, match="expected constraints stored as"):
            Observations.from_json(stored | {"constraints": wrong})


def test_without_constraints_nothing_more_is_stored():
    assert set(five_rows().to_json()) == {"dim", "x", "y", "grad", "y_var", "grad_var"}


def test_the_chain_rule_is_the_same_for_constraints():
    box, obs = Box([(0, 10), (1, 100)], log=[1]), constrained()
    user = to_user(obs, box)
    for mine, theirs in zip(user.constraints, obs.constraints, strict=True):
        assert mine == to_user(theirs, box)
    back = to_unit(user, box)
    # The quotient and the product of each partial derivative round once each.
    np.testing.assert_allclose(back.constraints[0].grad, obs.constraints[0].grad, rtol=1e-14)


def test_failed_rows_are_blank_in_one_way():
    """An infinite value says that the evaluation failed; nothing else of its row counts, of no output."""
    limit = Observations([[0.1], [0.2]], [1.0, 2.0], [[3.0], [4.0]])
    told = Observations(limit.x, [5.0, np.inf], [[6.0], [7.0]], [0.1, 0.2], constraints=[limit])
    blank = told.blank_where_failed
    assert blank.failed.tolist() == told.failed.tolist() == [False, True]
    np.testing.assert_array_equal(blank.y, [5.0, np.nan])
    np.testing.assert_array_equal(blank.grad, [[6.0], [np.nan]])
    np.testing.assert_array_equal(blank.y_var, [0.1, np.nan])
    np.testing.assert_array_equal(blank.constraints[0].y, [1.0, np.nan])
    np.testing.assert_array_equal(blank.constraints[0].grad, [[3.0], [np.nan]])
    assert told[:1].blank_where_failed == told[:1]
