"""The judge in many dimensions: gradients, instances, programs that keep to the budget, the bars."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eign_lab.commands import JudgeSuite
from eign_lab.judge.many.cases import CASES, SEEDS, Case, instance_of, pose_many, told_first
from eign_lab.judge.many.contestants import RIVALS
from eign_lab.judge.many.report import Sheet, bars, make_sheets, write_report
from eign_lab.judge.suites import SUITES
from eign_lab.runs.experiment import MethodSpec
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.run_log import Timing, Trace
from eign_lab.runs.store import RunRecord
from eign_lab.runs.tasks import continue_run

AUTO = MethodSpec("auto", "auto")


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_gradients_agree_with_differences_and_no_point_beats_the_optimum(case: Case) -> None:
    problem = case.problem(0)
    rng = np.random.default_rng(3)
    x = problem.bounds.from_unit(rng.uniform(0.2, 0.8, case.dim))
    value, gradient = problem(x)
    along = gradient / np.linalg.norm(gradient)
    h = 1e-5 * float((problem.bounds.upper - problem.bounds.lower).max())
    # Along the gradient, where the derivative is largest: central differences are good to 1e-6 of it there.
    assert (problem(x + h * along)[0] - problem(x - h * along)[0]) / (2 * h) == pytest.approx(
        gradient @ along, rel=1e-5
    )
    assert value < case.optimum(0)
    if problem.optimizers is not None:
        assert problem(problem.optimizers[0])[0] == pytest.approx(case.optimum(0), abs=1e-9)


@pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.published is None], ids=lambda case: case.name
)
def test_tuning_is_on_another_instance(case: Case) -> None:
    assert [instance_of(seed) for seed in (*SEEDS["report"], *SEEDS["tuning"])] == [0] * 10 + [1] * 3
    u = np.linspace(0.2, 0.7, case.dim)
    values = [problem(problem.bounds.from_unit(u))[0] for problem in (case.problem(0), case.problem(1))]
    assert values[0] != values[1]


def test_runs_know_their_budget_and_published_ones_are_told_thirty_points() -> None:
    posed = pose_many("levy-200", 0)
    assert posed.budget == CASES["levy-200"].spec.budget == 300
    assert told_first("levy-200-published", 3).shape == (30, 200)


@pytest.mark.parametrize("method", {rival.method: rival for rival in RIVALS}.values(), ids=lambda method: method.label)
def test_programs_use_the_budget_and_do_not_look_at_it(method: MethodSpec) -> None:
    (problem,) = (experiment := SUITES["many"].experiment([method], names=["control-120"])).problems
    log = continue_run(experiment.run(problem, method, 0), None, problem.goal, seconds=np.inf)
    assert log.error is None
    assert len(log) == problem.budget
    assert np.isfinite(log.trace.last)
    shorter = continue_run(experiment.run(problem, method, 0), None, problem.goal._replace(budget=150), seconds=np.inf)
    assert log.trace.first(150) == shorter.trace


def _results(*stories: tuple[MethodSpec, float, int]) -> ExportedResults:
    """Runs of the heat problem whose regret, as a share of the scale, is 1 and from one evaluation on another."""
    case, records = CASES["heat-400"], []
    for method, share, at in stories:
        (problem,) = (experiment := SUITES["many"].experiment([method], names=[case.name])).problems
        for seed in (*SEEDS["report"], *SEEDS["tuning"]):
            instance = instance_of(seed)
            best = [case.optimum(instance) - regret * case.scales[instance] for regret in (1.0, share)]
            trace = Trace(problem.budget, [1, at], best, best)
            records.append(RunRecord(experiment.run(problem, method, seed), trace, Timing(1.0, 0.1, 2.5)))
    return ExportedResults({record.spec.key: record for record in records})


def test_a_run_above_the_best_known_value_is_named() -> None:
    """Its regret counts as 0, so that the others' are too small."""
    assert not [line for line in bars(_heat(_results((AUTO, 0.0, 2)))) if "best value known" in line]
    (line,) = [line for line in bars(_heat(_results((AUTO, -0.5, 2)))) if "best value known" in line]
    assert "heat-400" in line


def _heat(results: ExportedResults) -> list[Sheet]:
    return [sheet for sheet in make_sheets(results, AUTO, "report") if sheet.runs]


class TestReport:
    def test_bars_are_met(self, tmp_path: Path) -> None:
        results = _results((AUTO, 0.01, 75), (RIVALS[0], 0.02, 30), (RIVALS[1], 0.5, 5))
        sheets = _heat(results)
        assert [(sheet.budget, sheet.rival) for sheet in sheets] == [(150, "l-bfgs-ten"), (300, "l-bfgs-ten")]
        assert [line.split(":")[0] for line in bars(sheets)] == ["- **met**"] * 4
        assert "| heat-400 | 400 | 150 | 22.3 | l-bfgs-ten |" in write_report(results, AUTO, "report", tmp_path)

    def test_each_budget_has_its_rival_and_its_bars(self) -> None:
        sheets = _heat(_results((AUTO, 0.1, 75), (RIVALS[0], 0.2, 30), (RIVALS[1], 0.01, 151)))
        assert [sheet.rival for sheet in sheets] == [RIVALS[0].label, RIVALS[1].label]
        assert bars(sheets) == [
            "- **met**: not worse than the rival on 1 of 1 problems",
            "- **met**: at half of the budget the rival's final regret on 1 of 1",
            "- **missed**: with 300 evaluations: not worse than the rival on 0 of 1 problems (not so: heat-400)",
            "- **missed**: with 300 evaluations: at half of the budget the rival's final regret on 0 of 1",
        ]

    def test_runs_that_ended_at_the_first_budget_count_there(self) -> None:
        runs = _results((AUTO, 0.01, 75), (RIVALS[0], 0.02, 30)).by_key
        shorter = {key: replace(record, trace=record.trace.first(150)) for key, record in runs.items()}
        assert [sheet.budget for sheet in _heat(ExportedResults(shorter))] == [150]

    @pytest.mark.parametrize(("share", "at", "met"), [(0.01, 76, [True, False]), (0.05, 5, [False, False])])
    def test_late_and_worse_runs_miss_them(self, share: float, at: int, met: list[bool]) -> None:
        results = _results((AUTO, share, at), (RIVALS[0], 0.02, 30))
        assert ["met" in line for line in bars(_heat(results)[:1])] == met

    def test_the_terminal_knows_the_suite(self) -> None:
        assert set(JudgeSuite) == set(SUITES)
