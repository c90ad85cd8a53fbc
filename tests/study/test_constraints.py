"""Studies with constraints: what is told, stored and found best."""

import warnings

import numpy as np
import pytest

from eign import Optimizer
from eign.constraints import Limits, LinearRows
from eign.data import Observations
from eign.study.events import Tell
from eign.study.handle import handle, restore, snapshot
from eign.study.storage.study_file import read_study

SQUARE = [(-2.0, 2.0)] * 2
LIMITS = Limits(["disk", "line"], [-np.inf, 0.0], [1.0, 0.0])


def told(x):
    x = np.atleast_2d(x)
    disk = Observations(x, (x**2).sum(axis=1), 2 * x)
    line = Observations(x, x[:, 0] - x[:, 1], np.tile([1.0, -1.0], (len(x), 1)))
    return Observations(x, x.sum(axis=1), np.ones_like(x), constraints=[disk, line])


@pytest.mark.parametrize("maximize", [False, True])
def test_inside_gradients_have_the_units_of_the_cube_and_constraints_keep_their_sign(maximize):
    opt = Optimizer(SQUARE, method="sobol", seed=0, constraints=LIMITS, maximize=maximize)
    opt.tell(told([0.5, 1.0]))
    data = handle(opt).data
    sign = 1.0 if maximize else -1.0
    assert data.y.tolist() == [sign * 1.5]
    disk, line = data.constraints
    assert (disk.y.tolist(), line.y.tolist()) == ([1.25], [-0.5])
    assert (disk.grad.tolist(), line.grad.tolist()) == ([[4.0, 8.0]], [[4.0, -4.0]])
    assert handle(opt).state.limits == [[-np.inf, 1.0], [0.0, 0.0]]


def test_a_study_goes_on_from_plain_data_and_from_its_file(tmp_path):
    path = tmp_path / "study.db"
    with Optimizer(SQUARE, method="sobol", seed=0, constraints=LIMITS, storage=path) as opt:
        for _ in range(4):
            opt.tell(told(opt.ask()))
        opt.tell(opt.ask(), None)  # failed, and so are its constraints
        opt.retract(opt.history.x[2])
        opt.ask()
        history, definition = opt.history, handle(opt).definition
    assert len(history) == 4
    assert np.isnan(history.constraints[1].y).tolist() == [False, False, False, True]
    for again in (Optimizer.view(path), Optimizer.resume(path)):
        assert again.history == history
        assert handle(again).definition == definition
        again.close()
    memory = Optimizer(SQUARE, method="sobol", seed=0, constraints=LIMITS)
    memory.tell(told(memory.ask()))
    assert restore(snapshot(memory)).history == memory.history


def test_methods_that_take_no_constraints_say_which_do():
    with pytest.raises(ValueError, match=r"method 'cma-es' takes no constraints; these do: .*sobol"):
        Optimizer(SQUARE, method="cma-es", constraints=LIMITS)
    with pytest.raises(ValueError, match="method 'cma-es' takes no linear constraints; these do: "):
        Optimizer(SQUARE, method="cma-es", linear=LinearRows([[1.0, 1.0]], [-np.inf], [1.0]))


@pytest.mark.parametrize("limits", [Limits(["a"], [0.0], [1.0]), None])
def test_told_with_another_number_of_constraints(limits, tmp_path):
    path = tmp_path / "study.db"
    with Optimizer(SQUARE, method="sobol", constraints=limits, storage=path) as opt:
        with pytest.raises(ValueError, match=f"told 2 constraints, expected {0 if limits is None else 1}"):
            opt.tell(told([0.0, 0.0]))
        assert len(opt.history) == 0
    assert not read_study(path).events


NAMED = {"width": (0.0, 1.0), "height": (0.0, 1.0)}
LIMITED = {"stress": (None, 250.0), "mass": (1.0, None)}


def named(**more):
    return Optimizer(NAMED, method="sobol", seed=0, constraints=LIMITED, **more)


@pytest.mark.parametrize(
    ("told", "values", "gradients"),
    [
        ({"constraints": [240.0, 2.0]}, [240, 2], [[np.nan] * 2] * 2),
        ({"constraints": {"mass": 2.0}}, [np.nan, 2], [[np.nan] * 2] * 2),
        ({"constraints": [None, 2.0], "constraint_grads": [[1, 2], None]}, [np.nan, 2], [[1, 2], [np.nan] * 2]),
        (
            {"constraints": {"stress": 240.0}, "constraint_grads": {"stress": {"height": 3.0}}},
            [240, np.nan],
            [[np.nan, 3], [np.nan] * 2],
        ),
        ({"constraint_grads": np.ones((2, 2))}, [np.nan] * 2, [[1, 1], [1, 1]]),
    ],
)
def test_telling_one_point(told, values, gradients):
    opt = named()
    opt.tell({"width": 0.5, "height": 0.25}, 3.0, **told)
    np.testing.assert_array_equal([each.y[0] for each in opt.history.constraints], values)
    np.testing.assert_array_equal([each.grad[0] for each in opt.history.constraints], gradients)


def test_telling_many_points_and_their_noise():
    opt, x = named(), np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    values, slopes = np.arange(6.0).reshape(3, 2), np.arange(12.0).reshape(3, 2, 2)
    opt.tell(x, [1.0, 2.0, None], constraints=values, constraint_grads=slopes, constraint_vars=0.5)
    for i, each in enumerate(opt.history.constraints):
        np.testing.assert_array_equal(each.y, values[:, i])
        np.testing.assert_array_equal(each.grad, slopes[:, i])
        np.testing.assert_array_equal(each.y_var, [0.5] * 3)
    by_name = named()
    by_name.tell(
        x,
        [1.0, 2.0, None],
        constraints={"mass": values[:, 1], "stress": values[:, 0]},
        constraint_grads={"mass": slopes[:, 1], "stress": slopes[:, 0]},
        constraint_vars={"mass": 0.5, "stress": [0.5] * 3},
    )
    assert by_name.history == opt.history


def test_the_only_constraint_needs_no_brackets():
    opt = Optimizer(SQUARE, method="sobol", constraints=1)
    opt.tell([0.0, 1.0], 1.0, constraints=2.0, constraint_grads=[3.0, 4.0])
    assert (opt.history.constraints[0].y, opt.history.constraints[0].grad.tolist()) == ([2.0], [[3.0, 4.0]])
    opt.tell([[0.0, 1.0]] * 2, [1.0, 1.0], constraints=[5.0, 6.0])
    assert opt.history.constraints[0].y.tolist() == [2.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"constraints": [1.0]}, r"constraints: got 1, expected 2, one for each of \['stress', 'mass'\]"),
        ({"constraints": {"stres": 1.0}}, "no constraint 'stres'; did you mean 'stress'"),
        ({"constraint_grads": {"stress": [1.0]}}, r"constraint 'stress': grad has shape \(1,\), expected \(2,\)"),
        ({"constraint_grads": {"mass": {"depth": 1.0}}}, r"constraint_grads has unknown names \['depth'\]"),
        ({"constraints": [1.0, 2.0], "constraint_vars": [-1.0, 1.0]}, "constraint 'stress': y_var must be finite"),
    ],
)
def test_what_was_not_agreed_is_not_told(told, message):
    opt = named()
    with pytest.raises(ValueError, match=message):
        opt.tell([0.5, 0.5], 1.0, **told)
    assert len(opt.history) == 0


def test_constraints_are_named_when_a_study_begins():
    with pytest.raises(ValueError, match="give their limits when it begins: constraints="):
        Optimizer(SQUARE, method="sobol").tell([0.0, 0.0], 1.0, constraints=[1.0])


def test_best_is_the_best_feasible_point_then_the_least_violated():
    opt = Optimizer([(0.0, 10.0)], method="sobol", constraints={"c": (None, 0.0), "d": (None, 0.0)})
    opt.tell([1.0], 1.0, constraints=[None, -1.0])
    assert np.isnan(opt.best.violation)
    assert not opt.best.is_feasible
    opt.tell([2.0], 2.0, constraints=[4.0, -400.0])
    assert (opt.best.x[0], opt.best.violation, opt.best.is_feasible) == (2.0, 4.0, False)
    opt.tell([3.0], 3.0, constraints=[-2.0, 100.0])  # by its scale the second is violated less
    assert opt.best.x[0] == 3.0
    assert "best 3 (infeasible)" in repr(opt)
    opt.tell([4.0], 9.0, constraints=[-2.0, -1.0], constraint_grads=[[5.0], [6.0]])
    opt.tell([5.0], 8.0, constraints=[1e-8, 0.0])  # within a millionth of the scale
    opt.tell([6.0], -9.0, constraints=[-1.0, np.inf])
    best = opt.best
    assert (best.x[0], best.y, best.is_feasible, best.violation) == (5.0, 8.0, True, 1e-8)
    assert best.constraints.tolist() == [1e-8, 0.0]
    opt.retract([5.0])
    assert opt.best.x[0] == 4.0
    assert opt.best.constraint_grads.tolist() == [[5.0], [6.0]]


def test_a_failed_evaluation_needs_no_constraints():
    opt = named()
    opt.tell(opt.ask(), None)
    assert opt.history.n_failed == 1


def test_an_empty_region_names_the_rows():
    rows = LinearRows([[1.0, 1.0], [1.0, 1.0]], [3.0, -np.inf], [np.inf, 1.0], ["long", "short"])
    with pytest.raises(ValueError, match=r"leave no point: .*(long|short).*(long|short)"):
        Optimizer(SQUARE, method="sobol", linear=rows)


def test_a_wrong_gradient_of_a_constraint_is_found():
    opt = Optimizer([(-1.0, 2.0)] * 2, method="sobol", seed=0, constraints={"right": (None, 1.0), "wrong": (None, 1.0)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(14):
            x = opt.ask()
            bowl, slope = float(x @ x + x[0]), 2 * x + [1.0, 0.0]
            opt.tell(x, bowl, slope, constraints=[bowl, bowl], constraint_grads=[slope, -slope])
    [warning] = caught
    assert str(warning.message).startswith("constraint 'wrong': the gradient")
    assert warning.filename == __file__


def test_what_could_not_be_written_is_shown_with_its_constraints():
    told_again = eval(f"dict({Tell(told([0.5, 0.25])).as_arguments()})")
    opt = Optimizer(SQUARE, method="sobol", constraints=LIMITS)
    opt.tell(**told_again)
    assert opt.history == told([0.5, 0.25])


def test_columns_of_a_frame():
    columns = told([0.5, 0.25]).columns(["a", "b"], ["disk", "line"])
    words = ["", "_gradient_a", "_gradient_b"]
    assert list(columns)[5:] == [f"constraint_{name}{word}" for name in ("disk", "line") for word in words]
    assert columns["constraint_line_gradient_b"] == [-1.0]
    assert "constraint_c1" in told([0.5, 0.25]).columns()
    # Where a coordinate has the name of a column, that has its other name.
    assert "constraint[disk]" in told([0.5, 0.25]).columns(["constraint_disk", "b"], ["disk", "line"])
    with pytest.raises(ValueError, match="expected 2 names of constraints"):
        told([0.5, 0.25]).columns(["a", "b"], ["disk"])
