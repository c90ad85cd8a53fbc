"""Everything that people write for `constraints=`, and what is wrong with what they write."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from scipy.sparse import csr_array

import eign
from eign import Evaluation, Optimizer
from eign.constraints import Limits, LinearRows
from eign.evaluation import AnswerError
from eign.space import Box
from eign.study.constraint_forms import as_text, read_constraints

BOX, INF = Box([(0.0, 1.0)] * 2), np.inf
X = np.array([0.25, 0.5])


def disk(x):
    return x @ x


def both(x, factor=1.0):
    return factor * np.array([x[0], x[0] - x[1]])


def bowl(x):
    return float(x @ x), 2 * x


def limits_of(given, **more):
    return read_constraints(given, BOX, point=X, **more).limits


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        ([], {}),
        (2, {"c0": (None, 0.0), "c1": (None, 0.0)}),
        ((None, 2.0), {"c0": (None, 2.0)}),
        ([(None, 2.0), (1, 1)], {"c0": (None, 2.0), "c1": (1.0, 1.0)}),
        (Bounds([-INF, 0.0], [1.0, INF]), {"c0": (None, 1.0), "c1": (0.0, None)}),
        ({"stress": (None, 250), "mass": [1.0, None]}, {"stress": (None, 250.0), "mass": (1.0, None)}),
        (Limits(["a"], [0.0], [1.0]), {"a": (0.0, 1.0)}),
        (NonlinearConstraint(disk, -INF, 1.0), {"disk": (None, 1.0)}),
        (NonlinearConstraint(both, [0.0, -1.0], 1.0), {"both_0": (0.0, 1.0), "both_1": (-1.0, 1.0)}),
        (NonlinearConstraint(both, -INF, 1.0), {"both_0": (None, 1.0), "both_1": (None, 1.0)}),
        (NonlinearConstraint(lambda x: x[0], 0.0, 0.0), {"c0": (0.0, 0.0)}),
        ({"type": "ineq", "fun": disk}, {"disk": (0.0, None)}),
        ({"type": "eq", "fun": both, "args": (2.0,), "name": "b"}, {"b_0": (0.0, 0.0), "b_1": (0.0, 0.0)}),
        (
            [{"type": "ineq", "fun": disk}, {"type": "eq", "fun": disk}, (None, 1.0)],
            {"disk": (0.0, None), "c1": (0.0, 0.0), "c2": (None, 1.0)},
        ),
    ],
)
def test_limits(given, expected):
    assert as_text(limits_of(given)) == repr(expected)


@pytest.mark.parametrize("given", [{"a": (0.0, np.nan)}, (np.nan, 1.0), NonlinearConstraint(disk, 0.0, np.nan)])
def test_nan_is_no_open_side(given):
    with pytest.raises(ValueError, match="a side that is open is None or infinite"):
        limits_of(given)


def test_where_the_values_come_from():
    given = [(None, 1.0), {"type": "eq", "fun": both, "jac": lambda x, factor: None, "args": 3.0}, {"mass": (0, 1)}]
    found = read_constraints(given, BOX, point=X)
    assert found.outputs == ("c0", "mass")
    [function] = found.functions
    assert (function.names, function.args) == (("both_0", "both_1"), (3.0,))
    assert found.limits.names == ("c0", "both_0", "both_1", "mass")


def test_gradients_by_finite_differences_are_none():
    jacs = [NonlinearConstraint(disk, 0, 1, jac=jac) for jac in ("2-point", "cs", disk)]
    assert [each.jac for each in read_constraints(jacs, BOX, point=X).functions] == [None, None, disk]


@pytest.mark.parametrize(
    ("linear", "A", "labels"),
    [
        (LinearConstraint([[1, 2]], -INF, 1), [[1, 2]], ["row 0"]),
        (LinearConstraint([1, 2], 0, 1), [[1, 2]], ["row 0"]),
        (LinearConstraint(csr_array([[1.0, 0.0], [0.0, 2.0]]), [0, 0], 1), [[1, 0], [0, 2]], ["row 0", "row 1"]),
        (([[1.0, 2.0]], None, 1.0), [[1, 2]], ["row 0"]),
        ([LinearConstraint([1, 2], 0, 1), LinearConstraint([3, 4], 0, 1)], [[1, 2], [3, 4]], ["row 0", "row 1"]),
        (LinearRows([[1.0, 2.0]], [0.0], [1.0], ["length"]), [[1, 2]], ["length"]),
        (LinearConstraint([[1, 2], [3, 4]], [0, -INF], [1, INF]), [[1, 2]], ["row 0"]),  # the second says nothing
    ],
)
def test_linear_constraints(linear, A, labels):
    among_others = [] if isinstance(linear, tuple) else [read_constraints(linear, BOX)]
    for found in (read_constraints(None, BOX, linear=linear), *among_others):
        np.testing.assert_array_equal(found.linear.A, A)
        assert list(found.linear.labels) == labels
        assert not len(found.limits)


def test_coefficients_by_name():
    box = Box({"a": (0, 1), "b": (0, 1), "c": (0, 1)})
    found = read_constraints(None, box, linear=({"c": 1.0, "a": -1.0}, None, 0.0)).linear
    np.testing.assert_array_equal(found.A, [[-1.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match=r"unknown names \['d'\]"):
        read_constraints(None, box, linear=({"d": 1.0}, None, 0.0))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (disk, TypeError, r"a function goes into NonlinearConstraint\(fun, lower, upper\)"),
        ("stress", TypeError, "expected a NonlinearConstraint"),
        ({"type": "le", "fun": disk}, ValueError, r"'ineq', 'fun': c} for c\(x\) >= 0"),
        ({"type": "ineq"}, ValueError, "'eq' for"),
        ({"type": "ineq", "fun": disk, "jacobian": disk}, ValueError, r"unknown keys \['jacobian'\]"),
        ({"stress": 250.0}, ValueError, r"'stress': 250.0, expected a pair \(lower, upper\)"),
        (NonlinearConstraint(disk, 0, 1, keep_feasible=True), ValueError, "keep_feasible=True cannot be kept"),
        (NonlinearConstraint(both, [0, 0, 0], [1, 1]), ValueError, r"lower has shape \(3,\)"),
        ((2.0, 1.0), ValueError, "limits are reversed"),
        ({"type": "ineq", "fun": lambda x: "no"}, AnswerError, "expected real numbers"),
        (LinearConstraint([[1, 2, 3]], 0, 1), ValueError, r"expected \(k, 2\): a column a coordinate"),
    ],
)
def test_what_is_no_constraint(given, error, message):
    with pytest.raises(error, match=message):
        read_constraints(given, BOX, point=X)


def test_an_optimizer_calls_no_functions():
    with pytest.raises(TypeError, match=r"give limits, constraints=\{'stress': \(None, 250.0\)\}"):
        Optimizer(BOX, constraints=NonlinearConstraint(disk, 0, 1), method="sobol")


def objective(x):
    return float(x @ x), 2 * x


def run(constraints, fun=objective, **more):
    settings = {"method": "sobol", "budget": 16, "seed": 0} | more
    return eign.minimize(fun, [(0.0, 1.0)] * 2, constraints=constraints, **settings)


def test_functions_are_evaluated_with_the_objective():
    line = NonlinearConstraint(lambda x: x[0] + x[1], 1.0, INF, jac=lambda x: np.ones((1, 2)))
    result = run([line, {"type": "ineq", "fun": lambda x: 0.9 - x[0]}])
    values, slopes = (np.stack([getattr(each, part) for each in result.history.constraints]) for part in ("y", "grad"))
    np.testing.assert_allclose(values, [result.history.x.sum(axis=1), 0.9 - result.history.x[:, 0]])
    assert (slopes[0] == 1.0).all()
    assert np.isnan(slopes[1]).all()
    feasible = (values[0] >= 1.0) & (values[1] >= 0.0)
    assert feasible.any()
    assert not feasible.all()
    assert result.fun == result.history.y[feasible].min()
    assert result.success
    np.testing.assert_array_equal(result.constr, [result.x.sum(), 0.9 - result.x[0]])
    np.testing.assert_array_equal(result.constr_jac[0], [1.0, 1.0])
    assert result.constr_violation == result.maxcv == 0.0
    assert result.constr_names == ("c0", "c1")


def test_one_run_gives_all():
    def simulated(x):
        return Evaluation(
            float(x @ x),
            2 * x,
            constraints={"sum": x.sum()},
            constraint_gradients={"sum": [1.0, None]},
            constraint_variances=0.01,
        )

    result = run({"sum": (1.0, None)}, simulated)
    [seen] = result.history.constraints
    np.testing.assert_array_equal(seen.y, result.history.x.sum(axis=1))
    assert np.isnan(seen.grad).any(axis=0).tolist() == [False, True]
    assert (seen.y_var == 0.01).all()
    assert result.constr[0] >= 1.0


def test_outputs_and_functions_together():
    def simulated(x):
        return Evaluation(float(x @ x), 2 * x, constraints=[x[0]], constraint_gradients=[[1.0, 0.0]])

    result = run([{"type": "ineq", "fun": lambda x: x[1] - 0.5}, (0.5, None)], simulated)
    np.testing.assert_array_equal(result.history.constraints[0].y, result.history.x[:, 1] - 0.5)
    np.testing.assert_array_equal(result.history.constraints[1].y, result.history.x[:, 0])
    assert (result.history.constraints[1].grad == [1.0, 0.0]).all()
    assert (result.x >= 0.5).all()


def test_points_by_name_reach_constraints_by_name():
    result = eign.maximize(
        lambda p: (p["a"] + p["b"], {"a": 1.0, "b": 1.0}),
        {"a": (0, 1), "b": (0, 1)},
        constraints=NonlinearConstraint(lambda p: p["a"], -INF, 0.5, jac=lambda p: {"a": 1.0}),
        method="sobol",
        budget=16,
        seed=0,
    )
    assert result.x[0] <= 0.5
    assert result.constr_jac.tolist()[0][0] == 1.0


def test_an_evaluation_whose_constraint_fails_is_the_evaluation_that_failed():
    def breaks(x):
        if x[0] > 0.5:
            raise RuntimeError("no mesh")
        return x[1]

    constraint = NonlinearConstraint(breaks, [-INF], [0.5])
    with pytest.raises(RuntimeError, match="no mesh") as caught:
        run(constraint)
    assert "in evaluation" in str(caught.value.__notes__)
    result = run(constraint, on_error="fail")
    assert result.history.n_failed == (result.history.x[:, 0] > 0.5).sum() > 0
    assert result.constr[0] <= 0.5


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (
            NonlinearConstraint(both, [0.0], [1.0]),
            r"'both': the function returned values of shape \(2,\)",
        ),
        (NonlinearConstraint(disk, [0.0], [1.0], jac=lambda x: np.ones((3, 2))), "the Jacobian has 3 rows"),
        (NonlinearConstraint(lambda x: "no", [0.0], [1.0]), "the constraint 'c0': value: expected real numbers"),
    ],
)
def test_answers_that_were_not_agreed_end_the_run_whatever_on_error_says(constraint, message):
    with pytest.raises(ValueError, match=message):
        run(constraint, on_error="fail")


def test_nothing_feasible():
    result = run({"type": "ineq", "fun": lambda x: x[0] - 2.0, "name": "far"})
    assert not result.success
    assert result.status == 6
    least = 2.0 - result.history.x[:, 0].max()
    assert result.maxcv == pytest.approx(least, rel=1e-15)
    assert result.x[0] == result.history.x[:, 0].max()
    assert result.message == (
        f"the budget of 16 evaluations is used, and nothing feasible was found: "
        f"the least violated point is {least:.3g} outside 'far'"
    )


def test_unknown_constraints_are_not_feasible():
    result = run({"c": (None, 1.0)}, fun=lambda x: Evaluation(float(x @ x), 2 * x))
    assert "at no point are the values of all constraints known" in result.message
    assert not result.success
    assert np.isnan(result.constr).all()


def test_a_wider_tolerance():
    far = {"type": "ineq", "fun": lambda x: x[0] - 2.0}
    assert run(far, feasibility_tol=1.0).success
    with pytest.raises(ValueError, match="feasibility_tol=-1"):
        run(far, feasibility_tol=-1)


def test_workers_evaluate_constraints_too():
    line = NonlinearConstraint(lambda x: x[0] + x[1], [1.0], [INF], jac=lambda x: np.ones((1, 2)))
    result = run(line, workers=2)
    np.testing.assert_array_equal(result.history.constraints[0].y, result.history.x.sum(axis=1))
    assert result.constr[0] >= 1.0


def test_resume_knows_the_constraints(tmp_path):
    path, line = tmp_path / "study.db", {"type": "ineq", "fun": lambda x: x.sum() - 1.0}
    first = run(line, storage=path, resume=True, budget=8)
    again = run(line, storage=path, resume=True)
    assert again.history[:8] == first.history
    assert again.history == run(line).history
    for other in (None, {"type": "eq", "fun": lambda x: x.sum() - 1.0}):
        with pytest.raises(ValueError, match="holds another study: constraints = "):
            run(other, storage=path, resume=True)
    with pytest.raises(ValueError, match="holds another study: feasibility_tol = "):
        run(line, storage=path, resume=True, feasibility_tol=0.1)


def test_x0_outside_linear_constraints_is_refused_before_anything_is_evaluated():
    with pytest.raises(ValueError, match=r"x0 = \[1.0, 1.0\] violates the linear constraint 'row 0' by 1; nothing"):
        run(LinearConstraint([1, 1], -INF, 1), x0=[1.0, 1.0])


def test_a_constraint_that_fails_where_its_values_are_counted_is_no_end():
    """`minimize` calls it once to find out how many values it returns; a failure there is one like any other."""

    def fragile(x):
        if x[0] > 0.4:  # the middle of the box among them
            raise ZeroDivisionError("no mesh")
        return x[0] - 0.2

    settings = {"constraints": {"type": "ineq", "fun": fragile}, "method": "sobol", "budget": 8, "seed": 0}
    result = eign.minimize(bowl, [(0.0, 1.0)] * 2, **settings, on_error="fail")
    assert result.history.n_failed == (result.history.x[:, 0] > 0.4).sum() > 0
    assert result.success
    with pytest.raises(ZeroDivisionError, match="no mesh") as caught:
        eign.minimize(bowl, [(0.0, 1.0)] * 2, **settings)
    assert any("at x = [" in note for note in caught.value.__notes__)


def test_limits_of_what_the_function_never_returns():
    """The whole budget was once spent on points of which no constraint was ever known."""
    settings = {"constraints": {"stress": (None, 1.0)}, "method": "sobol", "budget": 4}
    with pytest.raises(AnswerError, match=r"return eign.Evaluation\(value, gradient, constraints=\{'stress': ...\}\)"):
        eign.minimize(bowl, [(0.0, 1.0)] * 2, **settings)
    with pytest.raises(TypeError, match=r"return eign.Evaluation\(.*, got 3 objects"):
        eign.minimize(lambda x: (1.0, x, 3.0), [(0.0, 1.0)] * 2, **settings)
    failed = eign.minimize(lambda x: (None, None), [(0.0, 1.0)] * 2, **settings)  # a failed evaluation knows nothing
    assert failed.history.n_failed == 4
