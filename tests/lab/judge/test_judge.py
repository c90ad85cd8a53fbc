"""The judge of `auto`: its problems state what they are, its scores and rivals do what the bars say."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from eign import Optimizer
from eign.problems import Problem
from eign_lab.commands import judge
from eign_lab.judge import report_cards
from eign_lab.judge.cases import CASES, CONVERGED, COUNTED, SHEKELS, Case
from eign_lab.judge.contestants import PROGRAMS, RIVALS, judge_experiment
from eign_lab.judge.report_cards import SEEDS, Sheet, bars, make_sheets, write_report_card
from eign_lab.judge.scores import count_at_optimum, meets_early_bar, strongest, third
from eign_lab.judge.suites import SUITES
from eign_lab.judge.verdicts import compare_regrets
from eign_lab.rivals import CountedProblem, Finished, sobol_design
from eign_lab.runs.experiment import MethodSpec
from eign_lab.runs.export import ExportedResults, export_records
from eign_lab.runs.run_log import RunLog, Timing, Trace
from eign_lab.runs.store import RunRecord
from eign_lab.runs.tasks import continue_run
from eign_lab.statistics import Verdict

# An evaluation of acrobot takes 40 ms, and its gradient is an estimate.
QUICK = [case for case in CASES.values() if case.best_known is None or case.name == "kernel-ridge-6"]


def _points(problem: Problem, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.02, 0.98, (count, problem.dim))


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
class TestProblems:
    def test_states_a_maximum(self, case: Case) -> None:
        problem = case.problem
        values, _ = problem.evaluate(problem.bounds.from_unit(_points(problem, 200, 1)))
        assert values.max() <= case.optimum
        assert case.scale > 0
        if problem.optimizers is not None:
            # Rounding only: maximisers are stated to all digits, and the largest value near one is 1e5 (Rosenbrock).
            assert problem(problem.optimizers[0])[0] == pytest.approx(case.optimum, abs=1e-9)

    def test_gradient_agrees_with_differences(self, case: Case) -> None:
        problem, box = case.problem, case.problem.bounds
        for u in _points(problem, 3, 2):
            x = box.from_unit(u)
            slope = problem(x)[1] * box.unit_scale(x)
            steps = 1e-6 * np.eye(problem.dim)
            differences = [(problem(box.from_unit(u + s))[0] - problem(box.from_unit(u - s))[0]) / 2e-6 for s in steps]
            # Central differences with this step have errors of 1e-10 |f| from rounding and 1e-12 |f'''| from the rest.
            assert np.allclose(differences, slope, rtol=1e-5, atol=1e-6 * (1 + np.abs(slope).max()))


def test_the_groups_are_complete() -> None:
    assert {group: sum(case.group == group for case in CASES.values()) for group in range(1, 6)} == {
        1: 10,
        2: 10,
        3: 10,
        4: 10,
        5: 5,
    }
    assert len(COUNTED) == 8
    assert all(CASES[name].group == 1 for name in COUNTED)
    assert all(CASES[name].group <= 2 for name in SHEKELS)


def test_shifts_differ_and_move_the_maximum_from_the_centre() -> None:
    for name in ("cosine-8-shifted", "griewank-10-shifted", "ackley-14-shifted", "ackley-14-rotated"):
        problem = CASES[name].problem
        assert problem.optimizers is not None
        away = problem.bounds.to_unit(problem.optimizers[0]) - 0.5
        assert np.abs(away).max() > 0.1


def test_noise_belongs_to_the_seed_and_regrets_are_without_it() -> None:
    case = CASES["hartmann-6-noise-10"]
    x = case.problem.bounds.from_unit(np.full(6, 0.4))
    assert case.seen(1)(x)[0] != case.seen(2)(x)[0]
    posed = case.spec.posed(1)
    assert posed.true_value(x, posed.seen(x)[0]) == case.problem(x)[0]
    assert case.spec.target is None, "the regret of a run may rise again"


def run_case(case: Case, method: MethodSpec, seed: int) -> RunLog:
    (problem,) = (experiment := judge_experiment([method], problems=[case.name])).problems
    return continue_run(experiment.run(problem, method, seed), None, problem.goal, seconds=np.inf)


def by_label(label: str) -> MethodSpec:
    (found,) = SUITES["auto"].find([label])
    return found


class TestRivals:
    @pytest.mark.parametrize("method", PROGRAMS, ids=lambda method: method.label)
    @pytest.mark.parametrize("name", ["cosine-8-shifted", "hartmann-6-half-missing"])
    def test_stops_at_the_budget_or_the_optimum(self, method: MethodSpec, name: str) -> None:
        case = CASES[name]
        log = run_case(case, method, 100)
        assert log.error is None
        assert len(log) == case.budget or case.optimum - log.trace.last <= CONVERGED * case.scale
        assert len(log) <= case.budget
        assert log.trace.best == sorted(log.trace.best)

    def test_multistart_is_the_method_of_the_registry(self) -> None:
        """The same evaluations until random starts begin: on Griewank the runs from the design take all of 60."""
        case = CASES["griewank-10-shifted"]
        optimizer = Optimizer(case.problem.bounds, method="l-bfgs", seed=100, maximize=True, check_gradients=False)
        for _ in range(60):
            x = optimizer.ask()
            optimizer.tell(x, *case.problem(x))
        curve = run_case(case, by_label("l-bfgs"), 100).trace.curve(60)
        # The two round differently, which quasi-Newton steps amplify.
        expected = case.optimum - np.maximum.accumulate(optimizer.history.y)
        np.testing.assert_allclose(case.optimum - curve, expected, rtol=1e-4)

    def test_differences_for_missing_components_are_evaluations(self) -> None:
        case, seen = CASES["hartmann-6-no-gradients"], []
        problem = CountedProblem(case.seen(0), lambda *call: bool(seen.append(call)), seed=0, budget=9)
        u = sobol_design(6, 0)[0]
        _, gradient = problem.whole_gradient(u)
        assert len(seen) == 7
        # Forward differences of step 1e-6: half the step times second derivatives of some 100.
        assert np.allclose(gradient, case.problem(u)[1], atol=1e-4)

    def test_the_design_is_that_of_the_registered_methods(self) -> None:
        optimizer = Optimizer([(0.0, 1.0)] * 3, method="ei-gn", seed=7, check_gradients=False)
        assert np.array_equal(sobol_design(3, 7), optimizer.ask(9))

    def test_who_asks_for_more_is_stopped(self) -> None:
        problem = CountedProblem(CASES["shekel-4"].problem, lambda *_: True, seed=0, budget=1)
        problem.in_cube(np.full(4, 0.5))
        with pytest.raises(Finished):
            problem.in_cube(np.full(4, 0.5))


class TestScores:
    def test_early_bar_takes_the_larger_of_rival_and_floor(self) -> None:
        assert meets_early_bar([0.3, 0.5], [0.4, 0.4])
        assert not meets_early_bar([0.3, 0.5], [0.39, 0.4])
        assert meets_early_bar([0.0, 0.02], [0.0, 0.0])
        assert not meets_early_bar([0.0, 0.03], [0.0, 0.0])

    @pytest.mark.parametrize(
        ("behind", "verdict"),
        [
            ([0.01] * 10, Verdict.HOLDS),
            ([0.03] * 10, Verdict.FAILS),
            ([-0.1] * 9, Verdict.OPEN),  # too few seeds
            ([0.0] * 19 + [0.3], Verdict.OPEN),  # the mean is below 2 per cent, the upper end is not
            ([], None),
        ],
    )
    def test_not_worse_is_an_interval_over_ten_seeds(self, behind: list[float], verdict: Verdict | None) -> None:
        rival = dict(enumerate(np.linspace(0.0, 1.0, 20)))
        ours = {seed: rival[seed] + difference for seed, difference in enumerate(behind)}
        assert compare_regrets(ours, rival).not_worse is verdict

    def test_counts(self) -> None:
        assert count_at_optimum([0.0, 0.0099, 0.01, 0.25]) == 2

    def test_strongest_of_none(self) -> None:
        assert strongest({}) is None


METHODS = {method.label: method for method in (*RIVALS, MethodSpec("auto", "auto"))}

TIMING = Timing(1.0, 0.1, 2.5)


def _record(
    label: str,
    seed: int,
    regret: float,
    problem: str = "shekel-4",
    *,
    at: int = 60,
    timing: Timing = TIMING,
) -> RunRecord:
    """A regret of 9 from the first evaluation on, and another one later."""
    (spec,) = (experiment := judge_experiment([METHODS[label]], problems=[problem])).problems
    best = [CASES[problem].optimum - 9.0, CASES[problem].optimum - regret]
    return RunRecord(experiment.run(spec, METHODS[label], seed), Trace(spec.budget, [1, at], best, best), timing)


def results_of(*records: RunRecord) -> ExportedResults:
    return ExportedResults({record.spec.key: record for record in records})


@pytest.fixture
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scales of all cases take seconds."""
    few = {name: CASES[name] for name in (*COUNTED, "shekel-4-rotated", "corner-6")}
    monkeypatch.setattr(report_cards, "CASES", few)


def _sheet(problem: str, *records: RunRecord) -> Sheet:
    found = make_sheets(results_of(*records), METHODS["auto"], "report")
    return next(sheet for sheet in found if sheet.case.name == problem)


class Story(NamedTuple):
    """A run of `auto`: its regret as a share of the scale, from which evaluation on, and its times."""

    regret: float = 0.0
    at: int = 2
    median: float = 0.04
    longest: float = 1.0


def _bars_of(tell: Callable[[Case, int], Story], seeds: int = 20) -> list[str]:
    """The bars of `auto` against a rival that is at the optimum from the 60th evaluation on."""
    records = []
    for case in report_cards.CASES.values():
        records += [_record("l-bfgs", seed, 0.0, case.name) for seed in (*range(20), 100, 101, 102)]
        for seed in range(seeds):
            regret, at, median, longest = tell(case, seed)
            timing = Timing(1.0, median, longest)
            records.append(_record("auto", seed, regret * case.scale, case.name, at=at, timing=timing))
    return bars(make_sheets(results_of(*records), METHODS["auto"], "report"))


MISSED: dict[str, tuple[Callable[[Case, int], Story], str]] = {
    "late": (
        lambda case, _: Story(at=third(case.budget) + 1),
        "at a third of the budget on 0 of 9",
    ),
    "behind": (
        lambda case, _: Story(0.03 if case.name == "corner-6" else 0.0),
        "not worse than the rival on 9 of 10 problems (not so: corner-6)",
    ),
    "not surely as good": (
        lambda case, seed: Story(0.3 if (case.name, seed) == ("corner-6", 0) else 0.0),
        "not worse than the rival on 9 of 10 problems (not so: corner-6)",
    ),
    "six runs elsewhere": (
        lambda case, seed: Story(0.015 if case.name == "cosine-8" and seed < 6 else 0.0),
        "global optimum in 154 of 160 runs",
    ),
    "a copy of Shekel": (
        lambda case, seed: Story(at=61 if case.name == "shekel-4-rotated" and seed < 3 else 2),
        "optimum after 60 evaluations: shekel-4 20/20, shekel-4-shifted 20/20, shekel-4-rotated 17/20",
    ),
    "slow": (
        lambda case, _: Story(median=0.051 if case.name == "hartmann-6" else 0.04),
        "median suggestion at most 40 ms up to 6 dimensions (not so: hartmann-6 51)",
    ),
    "slow beyond 6 dimensions": (
        lambda case, _: Story(median=0.04 if case.dim <= 6 else 0.15 + 0.01 * (case.name == "cosine-8")),
        "median suggestion at most 150 ms beyond 6 dimensions (not so: cosine-8 160)",
    ),
    "one long suggestion": (
        lambda case, seed: Story(longest=1.2 if (case.name, seed) == ("cosine-8", 7) else 1.0),
        "longest suggestion 1.2 s",
    ),
}


@pytest.mark.usefixtures("few_cases")
class TestBars:
    def test_all_are_met(self) -> None:
        found = _bars_of(lambda case, seed: Story(0.015 if case.name == "cosine-8" and seed < 5 else 0.0))
        assert [line.split(":")[0] for line in found] == ["- **met**"] * 7
        assert "- **met**: global optimum in 155 of 160 runs" in found

    @pytest.mark.parametrize("why", MISSED)
    def test_one_is_missed(self, why: str) -> None:
        tell, words = MISSED[why]
        assert [line for line in _bars_of(tell) if not line.startswith("- **met**")] == [f"- **missed**: {words}"]

    def test_few_seeds_decide_nothing(self) -> None:
        found = _bars_of(lambda *_: Story(), seeds=9)
        assert all(line.split(":")[0].endswith("so far, runs are missing") for line in found)
        assert found[1].startswith("- **missed** so far, runs are missing: not worse than the rival on 0 of 10")


@pytest.mark.usefixtures("few_cases")
class TestReport:
    def test_rival_is_chosen_on_tuning_seeds_and_met_on_report_seeds(self) -> None:
        tuning = [
            _record(label, 100 + k, regret) for label, regret in (("mlsl", 0.5), ("l-bfgs", 0.1)) for k in range(3)
        ]
        tuning.append(_record("d-log-ei", 100, 0.2))  # one lucky run makes no rival
        regrets = {"mlsl": 0.0, "l-bfgs": 3.0, "auto": 1.0}
        scored = [_record(label, seed, regret) for label, regret in regrets.items() for seed in range(10)]
        sheet = _sheet("shekel-4", *tuning, *scored)
        assert sheet.rival == "l-bfgs"
        assert sheet.comparison.interval.mean == pytest.approx(-2.0 / sheet.case.scale)
        assert sheet.comparison.not_worse is Verdict.HOLDS
        assert sheet.early is Verdict.FAILS  # 9 at evaluation 41, against 3
        assert third(sheet.case.budget) == 41
        assert sheet.is_settled

    def test_a_stronger_rival_without_enough_runs_is_named(self) -> None:
        stories = (("mlsl", 0.1, 9), ("l-bfgs", 0.2, 10), ("auto", 0.0, 10))
        runs = [_record(label, seed, regret, "corner-6") for label, regret, n in stories for seed in range(n)]
        runs += [_record(label, 100 + k, regret, "corner-6") for label, regret, _ in stories for k in range(3)]
        sheet = _sheet("corner-6", *runs)
        assert sheet.rival == "l-bfgs"
        assert not sheet.is_settled
        assert bars([sheet])[-1] == "- ahead of the rival, with too few runs to be met: mlsl on corner-6"

    def test_multistart_is_the_rival_without_tuning_seeds(self) -> None:
        regrets = {"auto": 0.0, "mlsl": 0.3, "l-bfgs": 0.2}
        runs = [_record(label, seed, regret, "corner-6") for label, regret in regrets.items() for seed in range(10)]
        sheet = _sheet("corner-6", *runs)
        assert sheet.rival == "l-bfgs"
        assert sheet.comparison.not_worse is Verdict.HOLDS

    def test_writes_tables_bars_and_profiles(self, tmp_path: Path) -> None:
        runs = [_record(label, seed, 0.0) for label in ("auto", "l-bfgs") for seed in range(2)]
        written = write_report_card(results_of(*runs), METHODS["auto"], "report", tmp_path)
        assert (tmp_path / "auto-report.md").read_text() == written
        assert "| shekel-4 | 125 | 9.967 | l-bfgs | 0 | 0.9 | 0.9 | 0 | no | +0 | +0 | not decided | 2/2 |" in written
        assert "| hartmann-6 | 150 | 2.031 | - | - | - | - | - | - | - | - | - | - | - |" in written
        assert "- **missed** so far, runs are missing: median suggestion at most 40 ms up to 6 dimensions" in written
        assert (tmp_path / "auto-report.svg").stat().st_size > 1000

    def test_the_command_scores_an_export(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        export_records([_record("auto", 0, 0.0)], tmp_path)
        judge("score", export=tmp_path)
        assert capsys.readouterr().out == (tmp_path / "auto-report.md").read_text()

    def test_seeds_do_not_overlap(self) -> None:
        assert not set(SEEDS["report"]) & set(SEEDS["tuning"])


def test_the_command_runs_what_is_missing_and_exports_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_records([_record("l-bfgs", 1, 0.0, "plateau-4")], tmp_path)
    work = {"seeds": "1-2", "workers": 1, "results": tmp_path / "judge.sqlite", "export": tmp_path}
    judge("run", methods=["l-bfgs"], problems=["plateau-4"], **work)
    assert "judge: 2 runs of 2 seeds, 1 to do" in capsys.readouterr().out
    found = ExportedResults.read(tmp_path / "runs.parquet")
    assert {(r.spec.problem, r.spec.method, r.spec.seed) for r in found.by_key.values()} == {
        ("plateau-4", "scipy/l-bfgs-b", seed) for seed in (1, 2)
    }
    with pytest.raises(ValueError, match="the judge has no problem 'plateau-5'"):
        judge_experiment(RIVALS, problems=["plateau-5"])
