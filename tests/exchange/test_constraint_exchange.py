"""Constraints in tables, JSON, specifications and status: every bit comes back, and no two columns have one name."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eign import Box, Observations, Optimizer, read_table, write_table
from eign.columns import names_of
from eign.constraints import Limits
from eign.exchange.printing import plot_lines
from eign.exchange.spec import SpecError, read_spec
from eign.exchange.status import describe, summarize
from eign.exchange.text import evaluation_by_hand, evaluations_from_text, points_as_text, tell_new, without_known

BOX = Box({"a": (0.0, 1.0), "b": (0.0, 2.0)})
LIMITS = Limits(["stress", "mass"], [-np.inf, 1.0], [250.0, 2.0])
X = [[0.1, 1 / 3], [0.5, 1.0], [1.0, 0.5], [0.0, 0.0]]
TOLD = Observations(
    X,
    [0.1 + 0.2, np.nan, 3.0, np.nan],
    [[1.0, 2.0], None, None, None],
    constraints=[
        Observations(X, [0.1, 240.0, None, None], [[1.0, None], None, [5e-324, 2.0], None], [0.5, None, None, None]),
        Observations(X, [1.5, np.inf, None, None], None, None, [[0.25, None], None, None, None]),
    ],
)


def text_of(line, **more):
    return evaluations_from_text(line, BOX, "answer", constraints=LIMITS, **more).told


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_bit_comes_back_from_a_table(tmp_path, ending):
    path = tmp_path / f"told.{ending}"
    write_table(path, TOLD, names=BOX.names, constraints=LIMITS.names)
    assert read_table(path, BOX, constraints=LIMITS.names) == TOLD


def test_every_bit_comes_back_from_json(tmp_path):
    path = tmp_path / "told.json"
    write_table(path, TOLD, names=BOX.names, constraints=LIMITS.names)
    assert text_of(path.read_text()) == TOLD


def test_columns_of_constraints(tmp_path):
    path = tmp_path / "told.csv"
    write_table(path, TOLD[:1].with_constraints([TOLD[:1].constraints[0]]))
    assert path.read_text().splitlines()[0].split(",")[3:] == [
        "gradient_x0",
        "gradient_x1",
        "constraint_c0",
        "constraint_c0_gradient_x0",
        "constraint_c0_gradient_x1",
        "constraint_c0_variance",
    ]
    with pytest.raises(ValueError, match="expected 2 names of constraints, got"):
        write_table(path, TOLD, constraints=["one"])


NAMES = st.lists(
    st.text("ab_[].", min_size=1, max_size=3)
    | st.sampled_from(["value", "y", "a_gradient_b", "gradient", "variance", "constraint_a", "a_variance", "d_a"]),
    max_size=4,
    unique=True,
)


@given(NAMES.filter(len), NAMES)
def test_no_two_columns_have_one_name(coordinates, constraints):
    try:
        names = names_of(coordinates, constraints)
    except ValueError:  # said at once, not when a table is read
        return
    known = list(names.known)
    assert len(set(known)) == len(known)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,b,value,constraint_stres", "'constraint_stres' is unknown; did you mean 'constraint_stress'"),
        ("a,b,value,constraint_stress,constraint[stress]", "mean the same"),
        (
            "a,b,value,stress",
            "'stress' is unknown; did you mean 'constraint_stress'.*constraint_stress for a constraint",
        ),
        ("a,b,value,Stress_gradient_a", "did you mean 'constraint_stress_gradient_a'"),
        ("a,b,value,dstress_da", "'dstress_da' is unknown"),
        ("a,b,value,dvalue_da", "'dvalue_da' is unknown"),
    ],
)
def test_columns_that_are_wrong(tmp_path, header, message):
    (tmp_path / "t.csv").write_text(header + "\n")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv", BOX, constraints=LIMITS.names)


def test_constraints_nobody_named_are_not_overlooked(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,value,constraint_stress\n0,0,1,2\n")
    with pytest.raises(ValueError, match="name the constraints of the study too"):
        read_table(tmp_path / "t.csv", BOX)


def test_a_constraint_without_a_value_needs_a_word(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,value,constraint_stress\n0,0,,2\n1,1,,\n")
    with pytest.raises(ValueError, match="there is a constraint and no value; nan as the value says"):
        read_table(tmp_path / "t.csv", BOX, constraints=LIMITS.names)


def test_a_table_to_fill_in():
    table = points_as_text(np.array([[0.5, 1.0]]), ["model"], BOX, as_csv=True, constraints=["c"])
    header, row = table.splitlines()
    assert (
        header == "a,b,value,gradient_a,gradient_b,constraint_c,constraint_c_gradient_a,constraint_c_gradient_b,reason"
    )
    filled = evaluations_from_text(
        f"{header}\n{row.replace(',,,,,,,', ',7,,,8,,,')}\n", BOX, "t", constraints=Limits(["c"], [0], [1])
    )
    assert (filled.told.y, filled.told.constraints[0].y) == ([7.0], [8.0])


def test_json_by_name_and_by_number():
    by_name = text_of(
        '{"x": [0, 1], "value": 2, "constraints": {"mass": 1.5}, "constraint_gradients": {"stress": {"b": 3}}}'
    )
    by_number = text_of(
        '{"x": [0, 1], "value": 2, "constraints": [null, 1.5], "constraint_gradients": [[null, 3], null]}'
    )
    assert by_name == by_number
    assert np.isnan(text_of('{"x": [0, 1], "value": 2}').constraints[0].y).all()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('"constraints": {"strss": 1}', "no constraint 'strss'; did you mean 'stress'"),
        ('"constraints": {"stress": true}', r"constraints.stress = True, expected a number or null"),
        ('"constraints": 3', "expected an object by name, or a list"),
        ('"constraints": [1]', "got 1, expected 2"),
        ('"constraint_gradients": {"stress": [1]}', "constraint_gradients.stress of length 1, expected 2"),
    ],
)
def test_json_that_is_wrong(entry, message):
    with pytest.raises(ValueError, match=message):
        text_of(f'{{"x": [0, 1], "value": 2, {entry}}}')


def test_constraints_by_hand():
    rows = evaluation_by_hand("0,1", 2.0, None, BOX, constraint=["mass=1.5"], constraints=LIMITS)
    assert rows.told.constraints[1].y == [1.5]
    with pytest.raises(ValueError, match="expected a name and its value, stress=231"):
        evaluation_by_hand("0,1", 2.0, None, BOX, constraint=["mass"], constraints=LIMITS)


def test_an_evaluation_told_again_with_its_constraints_is_new():
    assert len(without_known(TOLD, TOLD)) == 0
    assert len(without_known(TOLD[:1].objective, TOLD)) == 1
    known = TOLD[:1].objective.with_missing_constraints(2)
    assert len(without_known(TOLD[:1].objective, known)) == 0


def study(path):
    opt = Optimizer(BOX, method="sobol", seed=0, constraints=LIMITS, storage=path)
    return opt, [opt.ask() for _ in range(3)]


def test_status_shows_what_is_violated(tmp_path):
    path = tmp_path / "study.db"
    opt, (first, second, third) = study(path)
    with opt:
        opt.tell(first, 1.0, constraints=[300.0, 1.5])
        rows = evaluations_from_text(
            json.dumps({"x": second.tolist(), "value": 2.0, "constraints": [260.0, 1.5]}), BOX, "t", constraints=LIMITS
        )
        assert tell_new(opt, rows).endswith("best 2, infeasible by 10")
        summary = summarize(path)
        assert summary["feasible"] == [False, False]
        assert summary["best"]["violation"] == 10.0
        assert "violation    10\n" in describe(summary)
        opt.tell(third, 3.0, [0.0, 0.0], constraints=[249.0, None], constraint_grads=[[1.0, 2.0], None])
        assert describe(summarize(path)).count("feasible     0 of 3") == 1
        opt.tell([0.3, 0.3], 4.0, [0.0, 0.0], constraints=[249.0, 1.75])
        text = describe(json.loads(json.dumps(summarize(path), allow_nan=False)))
    assert "best value   4, evaluation 4" in text
    assert "feasible     1 of 4" in text
    assert "violation    none" in text
    assert "  stress  249                 at most 250\n  mass    1.75                from 1 to 2\n" in text
    assert "x infeasible" in text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["stress=231"], "best 2, no value of the constraint 'mass' is told there"),
        (["stress=300"], "best 2, no value of the constraint 'mass' is told there"),
        (["mass=0.5", "stress=231"], "best 2, infeasible by 0.5"),
    ],
)
def test_a_constraint_that_is_not_told_is_named(given, expected):
    opt = Optimizer(BOX, method="sobol", seed=0, constraints=LIMITS)
    rows = evaluation_by_hand("0.5,0.5", 2.0, None, BOX, constraint=given, constraints=LIMITS)
    assert tell_new(opt, rows).endswith(expected)


def test_a_plot_shows_infeasible_values_where_the_best_has_not_changed():
    lines = plot_lines([3.0, 2.0, None, 1.0], maximize=False, feasible=[True, False, True, False])
    assert "".join(lines[1:-2]).count("x") == 2
    assert "".join(lines[1:-2]).count("*") == 4


def test_a_plot_counts_feasible_values_alone_unless_there_are_none():
    lines = plot_lines([1.0, 5.0, 4.0], maximize=False, feasible=[False, True, True])
    assert lines[-1].endswith("* best so far, . each value, x infeasible")
    assert "*" not in "".join(line.split("|")[1][:1] for line in lines[1:-2])
    assert plot_lines([1.0, 5.0, 4.0], maximize=False, feasible=[False] * 3) == plot_lines(
        [1.0, 5.0, 4.0], maximize=False
    )


SPEC = """
method = "sobol"
feasibility_tol = 1e-3

[bounds]
a = [0.0, 1.0]
b = [0.0, 2.0]

[constraints]
stress = { upper = 250 }
mass = [1.0, 2.0]
gap = { equal = 0.5 }
"""


def read(tmp_path, text):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return read_spec(path)


def test_a_spec_with_constraints(tmp_path):
    spec = read(tmp_path, SPEC)
    assert spec.constraints == Limits(["stress", "mass", "gap"], [-np.inf, 1.0, 0.5], [250.0, 2.0, 0.5])
    assert spec.study["feasibility_tol"] == 1e-3
    opt = Optimizer(spec.box, **spec.study)
    assert opt.constraints == spec.constraints


def test_an_infinite_side_is_an_open_one(tmp_path):
    spec = read(tmp_path, SPEC.replace("{ upper = 250 }", "[-inf, 250]").replace("[1.0, 2.0]\ngap", "[1, inf]\ngap"))
    assert spec.constraints == Limits(["stress", "mass", "gap"], [-np.inf, 1.0, 0.5], [250.0, np.inf, 0.5])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{ upper = 250 }", "[inf, 250]", r"line 10: constraints.stress.lower: expected a finite number, got inf"),
        (
            "upper = 250",
            "uper = 250",
            r"line 10: constraints.stress.uper: there is no key 'uper'; did you mean 'u",
        ),
        ("[1.0, 2.0]\ngap", "[2.0, 1.0]\ngap", r"line 11: constraints.mass: expected lower <= upper"),
        ("[1.0, 2.0]\ngap", "7\ngap", r"constraints.mass: expected \[lower, upper\], or"),
        ("{ upper = 250 }", "{}", r"constraints.stress: expected \[lower, upper\]"),
        ("equal = 0.5", "equal = 0.5, lower = 1", "expected equal, or lower and upper"),
        ('"sobol"', '"cma-es"', "method: method 'cma-es' takes no constraints; these do: "),
        ("1e-3", "-1", "feasibility_tol: expected a finite number, at least 0"),
    ],
)
def test_specs_that_are_wrong(tmp_path, old, new, message):
    with pytest.raises(SpecError, match=message):
        read(tmp_path, SPEC.replace(old, new, 1))
