"""`eign paper --quick` and `eign report`, as a user types them, on every experiment there is."""

import re

from eign.cli import main
from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.runs.experiment import quick_version
from eign_lab.runs.plan import plan_runs


def test_every_experiment_from_the_first_run_to_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert main(["paper", "--quick", "--seeds", "1", "--workers", "1", "--export", "made"]) == 0
    experiments = [quick_version(experiment) for experiment in EXPERIMENTS.values()]
    runs = len(plan_runs(experiments, range(1)))
    printed = capsys.readouterr().out
    assert f"{', '.join(EXPERIMENTS)}: {runs} runs of 1 seeds, {runs} to do" in printed
    assert f"{runs} runs finished" in printed
    assert ", 0 failed" in printed

    assert main(["report", "made", "--out", "report"]) == 0
    text = (tmp_path / "report" / "report.md").read_text()
    assert "trial runs" in text
    for experiment in experiments:
        assert f"(`{experiment.id}`)\n\n1 seed; proposing points took" in text
    assert "Missing:" not in text
    for link in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / "report" / link).stat().st_size > 1000
    page = (tmp_path / "report" / "index.html").read_text()
    assert page.count("<details><summary>") == 18
    panels = sum(len(experiment.problems) for experiment in experiments)
    assert page.count('class="curves"') == panels
    assert text.count("\n### ") == panels + 1  # and what the claims rest on
