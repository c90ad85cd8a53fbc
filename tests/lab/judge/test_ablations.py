"""The parts of `auto`: each has a family of problems, and runs are compared in pairs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import typer

from eign.strategies import strategy
from eign_lab.commands import judge
from eign_lab.judge import ablations
from eign_lab.judge.ablations import ABLATIONS, SEEDS, Ablation, ablation_table, area, most_minutes, report_ablations
from eign_lab.judge.cases import CASES
from eign_lab.judge.suites import SUITES
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.run_log import Timing, Trace
from eign_lab.runs.store import RunRecord

RESTARTS = Ablation("restarts", {"elsewhere": False}, ("gp-sample-4", "bbob_f021_d02"), "several basins")


def _record(name: str, seed: int, regrets: Sequence[float], *, whole: bool = True) -> RunRecord:
    """A run that has these regrets, on our problems as shares of the scale, at the evaluations 1, 2, ..."""
    suite = "auto" if name in CASES else "bbob"
    experiment = RESTARTS.experiment(suite)
    assert experiment is not None
    (spec,) = (problem for problem in experiment.problems if problem.name == name)
    best = [CASES[name].optimum - CASES[name].scale * r if suite == "auto" else -r for r in regrets]
    run = experiment.run(spec, experiment.methods[0 if whole else 1], seed)
    trace = Trace(spec.budget, list(range(1, len(best) + 1)), best, best)
    return RunRecord(run, trace, Timing(1.0, 0.1, 2.5), finished=True)


def results_of(*records: RunRecord) -> ExportedResults:
    return ExportedResults({record.spec.key: record for record in records})


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.part)
def test_parts_are_left_out_by_options_on_problems_that_exist(ablation: Ablation) -> None:
    known = strategy("auto").options
    for name, value in ablation.without.items():
        assert known[name].default != known[name].check(value)
    found = [problem.name for suite in SEEDS if (e := ablation.experiment(suite)) for problem in e.problems]
    assert sorted(found) == sorted(ablation.family)


def test_seeds_are_those_for_tuning() -> None:
    for suite, seeds in SEEDS.items():
        assert not set(seeds) & set(SUITES[suite].seeds["report"])
    assert min(SEEDS["auto"]) >= 100


def test_area_is_the_mean_of_log_regret_over_log_evaluations() -> None:
    """1 and 1e-6 of the scale are the first and the last of 31 targets, and evaluations up to d = 4 are as the d-th."""
    budget = CASES["gp-sample-4"].budget
    assert area(_record("gp-sample-4", 100, [0.1, 1e-7])) == 1.0
    assert area(_record("gp-sample-4", 100, [2.0])) == 0.0
    # All but the first target are reached by the sixth evaluation.
    expected = (1 + 30 * np.log(budget / 6) / np.log(budget / 4)) / 31
    assert area(_record("gp-sample-4", 100, [1.0, 0.99, 0.98, 0.97, 0.96, 0.0])) == pytest.approx(expected)
    assert area(_record("bbob_f021_d02", 11, [1e-8])) == 1.0


def test_in_many_dimensions_the_scale_is_that_of_the_seeds_instance() -> None:
    ablation = Ablation("x", {"local": False}, ("quadratic-100",), "")
    experiment = ablation.experiment("many")
    assert experiment is not None
    spec, case = experiment.problems[0], SUITES["many"].problems["quadratic-100"]
    best = [case.optimum(1) - case.scales[1] * 0.5]
    record = RunRecord(experiment.run(spec, experiment.methods[0], 100), Trace(150, [1], best, best), Timing(1, 1, 1))
    assert area(record) == pytest.approx(2 / 31)  # 1 and 0.63 of the scale


def test_parts_are_compared_on_the_runs_that_both_have() -> None:
    whole = [_record("gp-sample-4", seed, [1e-7]) for seed in (100, 101, 102)]
    without = [_record("gp-sample-4", seed, [2.0], whole=False) for seed in (101, 102, 103)]
    elsewhere = [_record("bbob_f021_d02", 11, [1e-9], whole=whole) for whole in (True, False)]
    found = results_of(*whole, *without, *elsewhere)
    (row,) = ablation_table(found, [RESTARTS]).rows
    each = "gp-sample-4 -1.000, bbob_f021_d02 +0.000"
    assert row[:-1] == (
        *("restarts", "elsewhere = False", "3", "1.000", "0.333", "-0.667"),
        *("-1.000 to +0.000", "not shown"),
    )
    assert row[-1] == each
    more = [_record("gp-sample-4", 103, [1e-7])]
    assert ablation_table(results_of(*whole, *without, *more), [RESTARTS]).rows[0][-2] == "kept"
    assert ablation_table(results_of(*whole), [RESTARTS]).rows == ()


def test_a_part_that_harms_is_named() -> None:
    runs = [_record("gp-sample-4", seed, [regret], whole=regret == 2.0) for seed in (101, 102) for regret in (2.0, 0.0)]
    assert ablation_table(results_of(*runs), [RESTARTS]).rows[0][-2] == "harms"


def test_all_of_it_is_three_hours_of_one_core_at_most() -> None:
    planned = {suite: [e for a in ABLATIONS if (e := a.experiment(suite))] for suite in SEEDS}
    assert most_minutes(planned) < 180


def test_the_command_runs_what_is_missing_and_writes_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two judges, one seed each; the second time nothing is left to do."""
    local = Ablation("local", {"local": False, "elsewhere": False}, ("plateau-4", "bbob_f001_d02"), "one basin")
    monkeypatch.setattr(ablations, "ABLATIONS", (local,))
    monkeypatch.setattr(ablations, "SEEDS", {"auto": [100], "bbob": [11], "many": [100]})
    work = {"workers": 1, "results": tmp_path / "a.sqlite", "export": tmp_path / "ablations"}
    for left in (2, 0):
        judge("ablations", **work)
        assert capsys.readouterr().out.count(f"local: 2 runs of 1 seeds, {left} to do") == 2
    written = (tmp_path / "ablations.md").read_text()
    assert written == report_ablations(ExportedResults.read(tmp_path / "ablations" / "runs.parquet"))
    assert "| local | local = False, elsewhere = False | 2 |" in written
    assert "- local: one basin." in written
    with pytest.raises(typer.BadParameter, match="problems and seeds of their own"):
        judge("ablations", seeds="1-2")
