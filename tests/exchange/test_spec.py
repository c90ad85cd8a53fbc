"""A TOML file that describes an optimization, and what is said of one that does not."""

import tomllib

import numpy as np
import pytest

from eign import Box
from eign.exchange.spec import SpecError, read_spec
from eign.exchange.toml_file import find_line
from eign.integrations.spec_run import load_objective, run_spec

COMPLETE = """
method = "ei-gn"  # a comment with [brackets] and = signs
budget = 40
seed = 3
maximize = true
storage = "data/study.db"
workers = 2
tol = 1e-3
on_error = "fail"

[bounds]
width = [0.1, 2.0]
rate = { low = 1e-6, high = 1, scale = "log" }
decay = [
    1e-3,  # per second
    10.0,
    "log",
]

[objective]
program = ["./simulate", "--fast"]
timeout = 3600
retries = 1
directory = "runs"
input = "stdin"
gradient = false

[options]
alpha = 0.3
"""


def spec_of(tmp_path, text):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return read_spec(path)


def test_all_of_it(tmp_path):
    spec = spec_of(tmp_path, COMPLETE)
    assert spec.box == Box({"width": (0.1, 2.0), "rate": (1e-6, 1.0), "decay": (1e-3, 10.0)}, log=["rate", "decay"])
    assert spec.settings == {
        "method": "ei-gn",
        "budget": 40,
        "seed": 3,
        "workers": 2,
        "tol": 1e-3,
        "on_error": "fail",
        "options": {"alpha": 0.3},
    }
    assert spec.maximize
    assert spec.storage == tmp_path / "data/study.db"
    assert spec.objective.program == ["./simulate", "--fast"]
    assert not spec.objective.gradient
    assert spec.objective.settings == {"timeout": 3600, "retries": 1, "directory": "runs", "input": "stdin"}
    assert spec.study == {"method": "ei-gn", "seed": 3, "options": {"alpha": 0.3}}


def test_bounds_without_names(tmp_path):
    spec = spec_of(tmp_path, 'bounds = [[0, 1], [1e-3, 1, "log"]]')
    assert spec.box == Box([(0, 1), (1e-3, 1)], log=[1])
    assert spec.objective is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("budget = 40", "budget = 0", "line 3: budget: expected a whole number, at least 1, got 0"),
        ("budget = 40", "bugdet = 40", "line 3: bugdet: there is no key 'bugdet'; did you mean 'budget'"),
        ("budget = 40", "budget = true", "line 3: budget: expected a whole number"),
        ("budget = 40", "color = 1", "line 3: color: there is no key 'color'. Known: bounds, method"),
        ("seed = 3", "seed = -3", "line 4: seed: expected a whole number, at least 0"),
        ("maximize = true", "maximize = 1", "line 5: maximize: expected true or false"),
        ('"data/study.db"', "7", "line 6: storage: expected a text"),
        ("tol = 1e-3", "tol = inf", "line 8: tol: expected a finite number above 0"),
        ('"fail"', '"skip"', "line 9: on_error: expected one of raise, fail, got 'skip'"),
        ('"fail"', '"fail"\ncheck_gradients = true', 'line 10: check_gradients: expected "probe", "passive" or false'),
        ('"ei-gn"', '"ei_gn"', "line 2: method: there is no method 'ei_gn'; did you mean 'ei-gn'. Known: auto, ei-gn"),
        ("[0.1, 2.0]", "[0.1]", r"line 12: bounds.width: expected \[low, high\]"),
        ("[0.1, 2.0]", "[2.0, 0.1]", "line 12: bounds.width: expected low <= high, got 2.0 and 0.1"),
        ("[0.1, 2.0]", '["0.1", 2.0]', "line 12: bounds.width: expected"),
        ("low = 1e-6", "low = 0", "line 13: bounds.rate: a log scale needs low > 0"),
        ("low = 1e-6", "low = nan", "line 13: bounds.rate.low: expected a finite number"),
        (
            'scale = "log"',
            'scale = "lgo"',
            r"line 13: bounds.rate.scale: expected one of linear, log \(did you mean 'log'\?\), got 'lgo'",
        ),
        ('scale = "log"', "width = 3", "line 13: bounds.rate.width: there is no key"),
        ("    10.0,\n", "    1e-4,\n", "line 14: bounds.decay: expected low <= high"),
        ("timeout = 3600", "timeout = -1", "line 22: objective.timeout: expected a finite number above 0"),
        ('["./simulate", "--fast"]', '"./simulate --fast"', "line 21: objective.program: expected a list of texts"),
        ("program = [", 'python = "a:b"\nprogram = [', "line 20: objective: expected either python"),
        ('program = ["./simulate", "--fast"]', 'python = "a:b"', "line 22: objective.timeout: only a program has"),
        ('program = ["./simulate", "--fast"]', 'python = "a.b"', "line 21: objective.python: expected a text"),
        ("alpha = 0.3", "alpha = -1", "line 29: options.alpha: option alpha=-1 of method 'ei-gn': expected a finite"),
        ("alpha = 0.3", "alpa = 1", "line 29: options.alpa: .* did you mean 'alpha'"),
        ("seed = 3", "seed = = 3", r"Invalid value \(at line 4"),
        ("[bounds]", "[space]", "line 11: space: there is no key"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, old, new, message):
    assert old in COMPLETE
    with pytest.raises(SpecError, match=message):
        spec_of(tmp_path, COMPLETE.replace(old, new, 1))


def test_an_error_in_a_long_file_is_found_in_linear_time(tmp_path):
    """2,000 coordinates took 32 seconds; the time for 20 times as many is compared, not the seconds."""
    import time

    def seconds(count, text):
        (tmp_path / "spec.toml").write_text(text(count))
        begin = time.perf_counter()
        with pytest.raises(SpecError, match=rf"line {count + 1}: .*|line 1: bounds\[{count - 1}\]"):
            read_spec(tmp_path / "spec.toml")
        return time.perf_counter() - begin

    def named(count):
        return "[bounds]\n" + "".join(f"c{i} = [0, {1 if i < count - 1 else -1}]\n" for i in range(count))

    def listed(count):
        return "bounds = [\n" + "".join(f" [0, {1 if i < count - 1 else -1}],\n" for i in range(count)) + "]\n"

    for text in (named, listed):
        assert seconds(4000, text) < 60 * max(seconds(200, text), 0.01)


@pytest.mark.parametrize(
    "text",
    [
        'a = "]"  # [\nb = 1',
        "a = '#['\nb = 1",
        'a = """x""\n[b]\n\\""" """\nb = 1'.replace(' """', '"""', 1),
        "a = '''\n\\'''\nb = 1",
        'a = [ # one ]\n [1, "]"],\n]\n\n  # b = 2\n  b = 1',
        'a = {b = "}"}\nb = 1',
    ],
)
def test_brackets_in_texts_and_comments_end_no_statement(text):
    assert tomllib.loads(text)["b"] == 1
    assert find_line(text, ("b",)) == text.count("\n") + 1


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_spec(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(SpecError, match="expected a TOML file in UTF-8"):
        read_spec(tmp_path / "latin.toml")
    with pytest.raises(SpecError, match="bounds are missing"):
        spec_of(tmp_path, "budget = 3\n")
    with pytest.raises(SpecError, match="line 1: bounds: every coordinate is fixed"):
        spec_of(tmp_path, "bounds = {a = [1, 1]}\n")


def test_lines_of_keys_in_odd_places():
    text = 'a = """\n[b]\nc = 1\n"""\n\n[b]\n"c" = [\n 1,\n]\nd.e = 2\n[[f]]\ng = 1\n[[f]]\ng = 2\n'
    expected = {("a",): 1, ("b",): 6, ("b", "c"): 7, ("b", "d", "e"): 10, ("f", 0, "g"): 12, ("f", 1, "g"): 14}
    assert {where: find_line(text, where) for where in expected} == expected
    assert find_line(text, ("z",)) is None
    assert find_line(text, ()) is None


class TestObjective:
    def loaded(self, tmp_path, objective, bounds="a = [0, 1]\nb = [0, 1]"):
        spec = spec_of(tmp_path, f"[bounds]\n{bounds}\n[objective]\n{objective}\n")
        return load_objective(spec, spec.objective)

    def test_a_function_beside_the_spec_gets_names(self, tmp_path, monkeypatch):
        monkeypatch.setattr("sys.path", ["nowhere"])
        (tmp_path / "spec_test_bowl.py").write_text("def f(p):\n    return p['a'] - p['b'], p\nsize = 3\n")
        fun = self.loaded(tmp_path, 'python = "spec_test_bowl:f"')
        assert fun(np.array([3.0, 1.0])) == (2.0, {"a": 3.0, "b": 1.0})
        for home, message in (
            ("spec_test_bowl:g", "the module spec_test_bowl has no 'g'"),
            ("spec_test_bowl:size", "is no function but 3"),
            ("spec_test_no_such:f", r"No module named .*; modules are looked for in"),
        ):
            with pytest.raises(SpecError, match=message):
                self.loaded(tmp_path, f'python = "{home}"')

    def test_a_program_beside_the_spec(self, tmp_path):
        program = tmp_path / "sum.sh"
        program.write_text('#!/bin/sh\ncat "$1" >&2\necho \'{"value": 2.5}\'\n')
        program.chmod(0o755)
        (tmp_path / "data.txt").write_text("some data\n")
        fun = self.loaded(tmp_path, 'program = ["./sum.sh", "data.txt"]\ndirectory = "runs"')
        assert fun(np.array([0.5, 0.25])).value == 2.5
        assert (tmp_path / "runs/000001/stderr.txt").read_text() == "some data\n"
        assert (tmp_path / "runs/000001/input.json").read_text() == '{"x": {"a": 0.5, "b": 0.25}}\n'
        with pytest.raises(SpecError, match=r"objective.program: program '\./none' not found"):
            self.loaded(tmp_path, 'program = ["./none"]')

    def test_what_is_needed_to_run(self, tmp_path):
        spec = spec_of(tmp_path, "bounds = [[0, 1]]\n")
        with pytest.raises(SpecError, match="objective is missing"):
            run_spec(spec, resume=False, progress=False)
        spec = spec_of(tmp_path, 'bounds = [[0, 1]]\nobjective.python = "math:sin"\n')
        with pytest.raises(SpecError, match="storage is missing: there is no file to resume from"):
            run_spec(spec, resume=True, progress=False)
