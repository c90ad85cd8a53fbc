"""Points and evaluations as JSON and CSV, and a study as text."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from eign import Box, Observations, Optimizer
from eign.exchange.printing import plot_lines
from eign.exchange.status import describe, summarize
from eign.exchange.text import (
    evaluation_by_hand,
    evaluations_from_text,
    numbers_from_text,
    points_as_text,
    tell_new,
    without_known,
)

BOX = Box({"a": (0.0, 1.0), "b": (0.0, 2.0)})
PLAIN = Box([(0.0, 1.0), (0.0, 2.0)])


def read(text, box=BOX, **options):
    return evaluations_from_text(text, box, "answer", **options).told


def test_points_for_programs_and_for_people():
    points = np.array([[0.1, 1 / 3], [1.0, 2.0]])
    lines = points_as_text(points, ["initial", "model"], BOX, as_csv=False).splitlines()
    assert json.loads(lines[0]) == {"x": {"a": 0.1, "b": 1 / 3}, "reason": "initial"}
    assert json.loads(points_as_text(points[:1], ["model"], PLAIN, as_csv=False))["x"] == [0.1, 1 / 3]
    table = points_as_text(points, ["initial", "model"], BOX, as_csv=True)
    assert table == "a,b,value,gradient_a,gradient_b,reason\n0.1,0.3333333333333333,,,,initial\n1.0,2.0,,,,model\n"
    assert len(evaluations_from_text(table, BOX, "table").told) == 0
    assert evaluations_from_text(table, BOX, "table").open == 2


def test_one_object_an_array_or_lines():
    one = '{"x": {"a": 0.5, "b": 1}, "value": 2, "gradient": {"b": 3}, "value_variance": 0.1}'
    expected = Observations([[0.5, 1.0]], [2.0], [[None, 3.0]], y_var=[0.1])
    assert read(one) == expected
    assert read(f"[{one}]") == expected
    assert len(read(f"{one}\n\n{one}\n")) == 2
    assert read('{"x": [0.5, 1], "value": "-inf", "gradient": [1, null]}', PLAIN).y[0] == -np.inf
    failed = read('{"x": [0.5, 1], "value": null}')
    assert failed.failed.all()
    assert read("a,b,y\n0.5,1,2\n").y.tolist() == [2.0]


def test_lines_before_the_json_are_what_a_program_printed():
    for log in ("reading mesh, 3 elements\n", "[info] reading\n{mesh}\n", "iterations,residual\n3,1e-9\n"):
        rows = evaluations_from_text(log + '{"x": [0.5, 1], "value": 2}\n', BOX, "answer")
        assert rows.told == Observations([[0.5, 1.0]], [2.0])
        assert rows.skipped == log.count("\n")
    study = Optimizer(BOX, method="sobol", seed=0)
    assert tell_new(study, rows) == "told 1; 2 lines before the JSON left out; 1 evaluation in all, 0 pending; best 2"


def test_the_point_may_come_from_elsewhere():
    point = '{"x": {"a": 0.5, "b": 1.0}, "reason": "model"}\n'
    assert read('{"value": 2}', point=point) == Observations([[0.5, 1.0]], [2.0])
    with pytest.raises(ValueError, match="expected one point and one evaluation, got 2 and 1"):
        read('{"value": 2}', point=point + point)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  \n", "answer is empty"),
        ('{"x": [0, 1], "value": ', "answer: expected JSON"),
        ("[1, 2]", "expected JSON objects"),
        ('{"value": 1}', "answer, evaluation 1: there is no x"),
        ('{"x": [0, 1]}', 'evaluation 1: .*expected an object with a "value"; null says that it failed'),
        ('{"x": [0, 1], "value": 1}\n{"x": [0, 9], "value": 1}', "evaluation 2: x is outside the box"),
        ('{"x": [0, 1], "y": 1}', "the key 'y' is unknown; did you mean 'value'"),
        ('{"x": [0, 1], "value": "much"}', "value = 'much', expected a number or null"),
        ('{"x": [0, 1], "value": "1.5"}', "value = '1.5', expected a number or null"),
        ('{"x": [0, 1], "value": true}', "value = True, expected a number or null"),
        ('{"x": [true, 1], "value": 1}', "x = True, expected a number"),
        ('{"x": [0, "1"], "value": 1}', "x = '1', expected a number"),
        ('{"x": {"a": 0, "b": "1"}, "value": 1}', "x.b = '1', expected a number"),
        ('{"x": {"a": 0, "bb": 1}, "value": 1}', "x has no coordinate 'bb'; did you mean 'b'. Known: a, b"),
        ('{"x": [0, 1], "value": 1, "gradient": [1, false]}', "gradient = False, expected a number or null"),
        ('{"x": [0, 1], "value": 1, "value_variance": "2"}', "value_variance = '2', expected a number"),
        ('{"x": [0, 1], "gradient": [1, 2]}', 'expected an object with a "value"; null says that it failed'),
        ('{"x": [0, 1], "value": 1, "value": 2}', "the key 'value' is there twice"),
        ('{"x": [0, 1], "value": 1' + "0" * 400 + "}", "beyond the largest number"),
        ('{"x": [0, 1], "value": 1, "grad": [1, 2]}', "the key 'grad' is unknown; did you mean 'gradient'"),
        ('log\n{"x": [0, 1], "val\n{"x": [0, 1], "value": 1}', "answer: expected JSON"),
        ('{"x": [0, 1], "value": 1}\nlost\n{"x": [0, 1], "value": 1}', "answer: expected JSON"),
        ('{"x": [0, 1], "value": [1]}', "evaluation 1: "),
        ('{"x": [0], "value": 1}', "x of length 1, expected 2"),
        ('{"x": [0, 1], "value": 1, "gradient": {"c": 1}}', "gradient has no coordinate 'c'. Known: a, b"),
        ('{"x": [0, 1], "value": 1, "gradient": [1]}', "gradient of length 1, expected 2"),
    ],
)
def test_what_is_wrong_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_numbers_by_hand():
    np.testing.assert_array_equal(numbers_from_text("0.5, 1", BOX, "x"), [0.5, 1.0])
    np.testing.assert_array_equal(numbers_from_text("b=1", BOX, "gradient"), [np.nan, 1.0])
    rows = evaluation_by_hand("b=1,a=0.5", 2.0, "1,nan", BOX)
    assert rows.told == Observations([[0.5, 1.0]], [2.0], [[1.0, None]])
    for text, message in (
        ("0.5", "expected 2 numbers with commas"),
        ("a=0.5", r"lacks \['b'\]"),
        ("a,b", r"expected 2 numbers, or a=\.\.\.,b=\.\.\."),
        ("c=1,a=0,b=0", "x has no coordinate 'c'. Known: a, b"),
    ):
        with pytest.raises(ValueError, match=message):
            numbers_from_text(text, BOX, "x")


def test_a_table_may_be_told_again_with_new_rows():
    study = Optimizer(BOX, method="sobol", seed=0)
    table = "a,b,y\n0.5,1,2\n0.25,1,nan\n"
    assert tell_new(study, evaluations_from_text(table, BOX, "t")).startswith("told 2 (1 failed); 2 evaluations in all")
    again = tell_new(study, evaluations_from_text(table + "0.75,1,1\n0,0,\n", BOX, "t"))
    assert (
        again == "told 1; 2 were known already; 1 row without a value left out; 3 evaluations in all, 0 pending; best 1"
    )
    noisy = Observations([[0.5, 1.0]], [2.5])
    assert without_known(noisy, study.history) == noisy


def test_status(tmp_path):
    path = tmp_path / "study.db"
    with Optimizer(BOX, method="sobol", seed=0, storage=path) as study:
        empty = summarize(path)
        assert (empty["best"], empty["evaluations"], empty["last_event"]) == (None, 0, None)
        assert f"process {os.getpid()} " in empty["holder"]
        for x in study.ask(4):
            study.tell(x, float(x.sum()), [3.0, 4.0])
        study.tell([0.5, 0.5], None)
        asked = study.ask(2)
    summary = summarize(path)
    json.dumps(summary, allow_nan=False)
    assert (summary["evaluations"], summary["failed"], summary["holder"]) == (5, 1, None)
    assert summary["best"]["value"] == min(value for value in summary["values"] if value is not None)
    assert summary["best"]["gradient_norm"] == 5.0
    assert [point["x"] for point in summary["pending"]] == [BOX.as_dict(x) for x in asked]
    assert all(point["asked"].startswith("20") for point in summary["pending"])
    text = describe(summary)
    for words in ("minimizing with sobol, seed 0", "5, 1 failed", "|gradient|   5", "pending      2", "nobody", "*"):
        assert words in text
    many = {**summary, "pending": summary["pending"] * 10}
    assert "and 10 more" in describe(many)


def test_the_plot_goes_down_for_minimizing_and_up_for_maximizing():
    values = [5.0, None, 3.0, 4.0, 1.0]
    mirrored = [None if v is None else -v for v in values]
    down, up = plot_lines(values, maximize=False), plot_lines(mirrored, maximize=True)
    assert down[1].strip().startswith("5.6")
    assert [line.split("|")[1] for line in down[1:9] if "|" in line][-1] == "    *"
    assert next(line.split("|")[1] for line in up[1:9] if "|" in line) == "    *"
    assert plot_lines([1.0, None], maximize=False) == []


def test_the_plot_is_logarithmic_where_that_shows_more():
    falling = [10.0 ** (3 - i) for i in range(8)]
    for values, maximize in ((falling, False), ([-value for value in falling], True)):
        lines = plot_lines(values, maximize=maximize)
        assert lines[-1].endswith("; log scale")
        assert sum("*" in line for line in lines[1:-1]) >= 7  # a line of its own for each
        assert any(line.strip().startswith(("0.0001", "-0.0001")) for line in lines)
    assert "log" not in plot_lines([3.0, -1.0, -1000.0], maximize=False)[-1]
    assert "log" not in plot_lines([3.0, 2.0, 1.0], maximize=False)[-1]


@pytest.mark.parametrize(
    "values",
    [[2.0] * 500, [0.0, 0.0], [1e308, -1e308], [1e-300, 5e-324], [1e12, 1e-300], [1e300, 0.0, -1e300, math.inf]],
)
def test_the_plot_fits_whatever_the_values(values):
    for maximize in (False, True):
        lines = plot_lines(values, maximize=maximize, width=80)
        assert max(map(len, lines)) <= 80
        assert "nan" not in "".join(lines)
        assert any("*" in line for line in lines[:-1])


NAMES = ["inlet_temperature_of_the_second_stage_reactor", *"bcdefghijkl"]


def test_a_study_of_twelve_coordinates_fits_into_80_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the file's name is as long as it is
    box = Box(dict.fromkeys(NAMES, (1e-300, 1000000000000.0)))
    with Optimizer(box, method="sobol", seed=0, storage="study.db") as study:
        for i, x in enumerate(study.ask(20)):
            study.tell(x, 10.0 ** (12 - 16 * i), [1e-300] * 11 + [None])
        study.ask(3)
    lines = describe(summarize(Path("study.db")), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index("best point")
    assert [line.split()[0] for line in lines[at + 2 : at + 14]][1:] == NAMES[1:]
    assert [line.split()[2] for line in lines[at + 2 : at + 14]] == ["1e-300"] * 11 + ["not"]
    assert "|gradient|   3.32e-300" in lines


def test_of_hundreds_of_coordinates_thirty_are_shown(tmp_path):
    path = tmp_path / "study.db"
    with Optimizer([(0, 1)] * 300, method="sobol", seed=0, storage=path) as study:
        study.tell(np.full(300, 0.5), 1.0, np.ones(300))
        study.ask()
        text = describe(summarize(path))
    assert "x29" in text
    assert "x30" not in text
    assert "and 270 more coordinates: `eign export` has all" in text
    assert len(text.splitlines()) < 60


def test_escapes_in_a_study_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "study.db"
    with Optimizer({"a\x1b[2J": (0, 1)}, method="sobol", seed=0, storage=path) as study:
        study.tell([0.5], 1.0, [2.0])
        study.ask()
        summary = summarize(path)
    summary["holder"] = "process 1 of \x1b]0;owned\x07root\nbest value   0"
    summary["pending"][0]["reason"] = "\x9b31m"
    text = describe(summary)
    assert all(line.isprintable() for line in text.splitlines())
    assert "\\x1b]0;owned" in text
    assert "\nbest value   0" not in text
