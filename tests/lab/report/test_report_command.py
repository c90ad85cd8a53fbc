"""`eign report` on real runs, from the results file and from its export."""

import re

import pytest

from eign.cli import main
from eign_lab.papers.ei_gn.judgements import Judgement
from eign_lab.runs.experiment_file import load_experiments
from eign_lab.runs.export import export_records
from eign_lab.runs.run_log import Goal
from eign_lab.runs.store import Results
from eign_lab.runs.tasks import continue_run
from eign_lab.statistics import Verdict

OWN = """
[[experiment]]
id = "own"
problem = [{name = "branin-2", initial = 5, budget = 30}]
method = [{label = "Sobol", method = "sobol"}, {label = "L-BFGS-B", method = "l-bfgs"}]
"""


@pytest.fixture
def results(tmp_path):
    """An experiment of the user's own, with one of its runs cut short."""
    (tmp_path / "own.toml").write_text(OWN)
    (experiment,) = load_experiments(tmp_path / "own.toml")
    with Results(tmp_path / "runs.sqlite") as file:
        for row, (problem, method) in enumerate(experiment.pairs()):
            for seed in (0, 1):
                run = experiment.run(problem, method, seed)
                file.save(run, continue_run(run, None, Goal(12 if row + seed == 2 else 30), seconds=float("inf")))
        export_records(file.records(), tmp_path / "exported")
    return tmp_path


def test_report_of_a_file_and_of_its_export_is_the_same(results, monkeypatch, capsys):
    decided = Judgement(Verdict.HOLDS, "measured before")
    monkeypatch.setattr("eign_lab.papers.ei_gn.report.judge_landscapes", lambda: decided)
    monkeypatch.setattr("eign_lab.papers.ei_gn.report.judge_acquisition_costs", lambda: decided)
    texts = []
    for source, out in (("runs.sqlite", "one"), ("exported", "two")):
        arguments = ["report", str(results / source), "--out", str(results / out), "--spec", str(results / "own.toml")]
        assert main(arguments) == 0
        printed = capsys.readouterr().out
        assert str(results / out / "index.html") in printed
        texts.append(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "", (results / out / "report.md").read_text()))
    assert texts[0] == texts[1]
    assert "(`own`)" in texts[0]
    assert "- branin-2, L-BFGS-B: 1 of 2 runs not finished, the furthest at 12 of 30 evaluations" in texts[0]
    assert "Of 18 claims 2 hold, 0 do not hold, and 16 are not decided." in texts[0]
    assert (results / "one" / "figures" / "own.svg").is_file()


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none.sqlite"), "--out", str(tmp_path / "out")]) == 1
    assert "there is no results file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
