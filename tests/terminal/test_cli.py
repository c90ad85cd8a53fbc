"""The terminal as a user meets it: the installed command, its output, exit codes and errors."""

import json
import re
import subprocess
import sys
import warnings

import pytest

import eign
from eign import __version__, cli


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import sys; from eign.cli import main; sys.exit(main())", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_version():
    result = run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"eign {__version__}\n", "")


def test_as_a_module():
    """For who has the interpreter and not its scripts on the path; with the exit codes of the command."""
    for words, code in ((["--version"], 0), (["status", "nowhere.db"], 1), (["nonsense"], 2)):
        assert (
            subprocess.run([sys.executable, "-m", "eign", *words], capture_output=True, timeout=300).returncode == code
        )


def test_help_lists_the_commands_and_is_shown_without_arguments(capsys):
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "demo" in shown
    assert "speed" in shown
    assert cli.main([]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nonsense"], "nonsense"), (["demo", "--nope"], "--nope"), (["speed", "--steps", "0"], "steps")],
)
def test_wrong_usage_takes_one_line_and_exit_code_2(capsys, arguments, words):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("eign: error: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_an_error_keeps_its_lines_and_debug_shows_the_traceback(capsys, monkeypatch):
    def fail():
        error = ValueError("bounds are reversed:\n\tlow 2 is above high 1\x1b[31m")
        error.add_note("in evaluation 3")
        error.add_note("in the worker: Traceback")
        raise error

    monkeypatch.setattr("eign.demo.show_demo", fail)
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == (
        "eign: error: bounds are reversed:\n          low 2 is above high 1\\x1b[31m\n  in evaluation 3\n"
    )
    with pytest.raises(ValueError, match="bounds are reversed"):
        cli.main(["--debug", "demo"])


def test_a_warning_has_no_line_of_python(capsys, monkeypatch):
    monkeypatch.setattr(
        "eign.demo.show_demo", lambda: warnings.warn("the gradient is wrong", UserWarning, stacklevel=1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(["demo"]) == 0
    assert capsys.readouterr().err == "eign: warning: the gradient is wrong\n"


def test_everything_that_is_listed_fits_into_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in (
        ["methods"],
        ["problems"],
        ["--help"],
        ["paper", "--help"],
        ["tell", "--help"],
        ["speed", "--help"],
    ):
        assert cli.main(command) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_help_of_paper_names_its_experiments(capsys, monkeypatch):
    from eign_lab.papers.ei_gn.experiments import EXPERIMENTS

    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["paper", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for extra, begin, end in ((False, "Of the paper: ", "."), (True, "with all: ", ".")):
        listed = shown.partition(begin)[2].partition(end)[0].split(", ")
        assert listed == [name for name, experiment in EXPERIMENTS.items() if experiment.extra is extra]


def test_interruption_is_reported_without_a_traceback(capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("eign.demo.show_demo", interrupt)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "eign: error: interrupted\n"


def test_demo_compares_methods_and_writes_a_figure(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("eign.demo.BUDGET", 15)
    monkeypatch.setattr("eign.demo.SEEDS", (0, 1))
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    for name, gradients in (("auto", "yes"), ("ei-gn", "yes"), ("log-ei", "no"), ("l-bfgs", "yes"), ("cma-es", "no")):
        assert re.search(rf"│ {name} +│ +{gradients} │ +[\d.]+ ± [\d.]+ │ +[\d.]+ ± [\d.]+ │ +\d of 2 │", shown)
    assert max(map(len, shown.splitlines())) <= 80
    assert (tmp_path / "eign-demo.png").read_bytes().startswith(b"\x89PNG")
    assert not any(name.startswith("eign_lab.") and name != "eign_lab.commands" for name in _loaded_by_the_demo())


def _loaded_by_the_demo():
    program = "import sys, json, eign.demo; print(json.dumps(list(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return json.loads(result.stdout)


def test_demo_takes_the_first_seeds_and_the_budget_of_the_paper():
    from eign import demo
    from eign_lab.papers.ei_gn.experiments import EXPERIMENTS

    problems = {problem.name: problem for problem in EXPERIMENTS["synthetic"].problems}
    assert problems[demo.PROBLEM].budget == demo.BUDGET
    assert tuple(range(10)) == demo.SEEDS


def test_methods_and_problems_are_listed(capsys):
    assert cli.main(["methods"]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line.split()[0] for line in listed] == list(eign.methods())
    assert cli.main(["problems"]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line.split()[0] for line in listed] == list(eign.problems.names())


def test_formula_costs_cover_every_formula_and_dimension():
    from eign_lab.speed.formula_costs import FORMULAS, measure_formula_costs

    costs = measure_formula_costs((2, 3), seconds=0.0)
    assert {(cost.formula, cost.d) for cost in costs} == {(name, d) for name in FORMULAS for d in (2, 3)}
    assert all(cost.value > 0 and cost.with_gradient > 0 for cost in costs)
