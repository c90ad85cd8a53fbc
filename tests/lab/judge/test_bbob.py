"""BBOB as a judge: COCO's values, gradients beside analytic ones, COCO's score, and a report of made-up runs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eign_lab.commands import judge
from eign_lab.judge.bbob.contestants import PROGRAMS, RIVALS
from eign_lab.judge.bbob.ecdf import TARGETS, area_under, runtimes_to_targets, share_reached
from eign_lab.judge.bbob.report import bars, make_sheets, write_report
from eign_lab.judge.bbob.suite import FUNCTIONS, INSTANCES, LAST_TARGET, TASKS, Task, pose_bbob
from eign_lab.judge.suites import SUITES
from eign_lab.runs.experiment import MethodSpec
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.run_log import Timing, Trace
from eign_lab.runs.store import Both, RunRecord
from eign_lab.runs.tasks import continue_run

cocoex = pytest.importorskip("cocoex")

AUTO = MethodSpec("auto", "auto")


def optimum_of(function: int, d: int, instance: int) -> np.ndarray:
    return np.array(cocoex.BareProblem("bbob", function, d, instance).best_parameter())


class TestSuite:
    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_values_are_those_of_cocos_suite(self, function: int) -> None:
        suite = cocoex.Suite("bbob", "instances:3", "dimensions:5")
        theirs = suite.get_problem_by_function_dimension_instance(function, 5, 3)
        problem = pose_bbob(Task(function, 5).name, 3)
        assert problem.name == theirs.id
        best = theirs(optimum_of(function, 5, 3))
        for x in np.random.default_rng(function).uniform(-5.0, 5.0, (5, 5)):
            assert problem(x)[0] == pytest.approx(best - theirs(x), rel=1e-14)
        assert problem.optimizers is not None
        # f_opt is at most 1000, so that its last digit is 1e-13.
        assert problem(problem.optimizers[0])[0] == pytest.approx(0.0, abs=3e-13)

    def test_gradient_of_the_sphere(self) -> None:
        problem, optimum = pose_bbob(Task(1, 5).name, 2), optimum_of(1, 5, 2)
        X = np.random.default_rng(1).uniform(-5.0, 5.0, (20, 5))
        _, slopes = problem.evaluate(X)
        # Rounding: two values of some 100 with errors of 1e-14, over twice the step.
        np.testing.assert_allclose(slopes, -2 * (X - optimum), atol=1e-5)

    @pytest.mark.parametrize("distance", [1.0, 1e-2, 1e-4])
    def test_gradient_of_the_separable_ellipsoid(self, distance: float) -> None:
        """With the oscillation of its coordinates: f2(x) = sum_i 10^(6 i/(d-1)) T(x_i - x_opt_i)^2."""
        d = 5
        problem, optimum = pose_bbob(Task(2, d).name, 1), optimum_of(2, d, 1)
        z = distance * np.random.default_rng(2).uniform(0.3, 1.0, (10, d)) * [1, -1, 1, -1, 1]
        osc, slope = _oscillated(z)
        weights = 10.0 ** (6 * np.arange(d) / (d - 1))
        values, slopes = problem.evaluate(optimum + z)
        np.testing.assert_allclose(values, -(osc**2) @ weights, rtol=1e-7, atol=1e-11)
        # Steps of 1e-8 at distances of 3e-5 and more leave 1e-7 of a component; rounding leaves 1e-8 (|f| + |f_opt|).
        noise = 1e-7 * (300 + np.abs(values).max())
        np.testing.assert_allclose(slopes, -2 * weights * osc * slope, rtol=1e-5, atol=noise)

    def test_differences_stay_within_the_border(self) -> None:
        """The linear slope has its optimum in a corner and is flat beyond it."""
        problem = pose_bbob(Task(5, 5).name, 1)
        assert problem.optimizers is not None
        corner = problem.optimizers[0]
        inside = problem(0.5 * corner)[1]
        assert np.abs(inside).min() > 0.5
        np.testing.assert_allclose(problem(corner)[1], inside, rtol=1e-4)


def _oscillated(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """BBOB's T_osz and its derivative."""
    log, up = np.log(np.abs(z)), z > 0
    first, second = np.where(up, 10.0, 5.5), np.where(up, 7.9, 3.1)
    wave = 0.049 * (np.sin(first * log) + np.sin(second * log))
    turn = 0.049 * (first * np.cos(first * log) + second * np.cos(second * log))
    value = np.sign(z) * np.exp(log + wave)
    return value, value * (1 + turn) / z


class TestScore:
    def test_targets_are_cocos(self) -> None:
        assert len(TARGETS) == 51
        assert (TARGETS[0], TARGETS[5], TARGETS[-1]) == (100.0, 10.0, 1e-8)

    @given(st.lists(st.floats(1e-10, 1e4), min_size=1, max_size=30))
    def test_runtime_is_the_first_evaluation_at_the_target(self, seen: list[float]) -> None:
        distances = np.minimum.accumulate(seen)
        (times,) = runtimes_to_targets(distances[None])
        for target, time in zip(TARGETS, times, strict=True):
            hits = [k for k, distance in enumerate(distances, start=1) if distance <= target]
            assert time == (hits[0] if hits else np.inf)

    @given(st.lists(st.one_of(st.integers(1, 120), st.just(np.inf)), min_size=1, max_size=40))
    def test_area_is_the_integral_of_the_share(self, times: list[float]) -> None:
        d, budget = 5, 120
        log = np.linspace(np.log(d), np.log(budget), 20001)[:-1]
        shares = share_reached(np.array(times), np.exp(log) * (1 + 1e-12))
        # A step is misplaced by at most one of 20,000 cells.
        assert area_under(np.array(times), d=d, budget=budget) == pytest.approx(shares.mean(), abs=1e-4)

    def test_best_and_worst_area(self) -> None:
        assert area_under(np.ones((3, 51)), d=2, budget=60) == 1.0
        assert area_under(np.full((3, 51), np.inf), d=2, budget=60) == 0.0


def _record(method: MethodSpec, task: Task, instance: int, at: int, distance: float) -> RunRecord:
    """A run that is at 50 from its first evaluation on, and at `distance` from another one on."""
    (spec,) = (experiment := SUITES["bbob"].experiment([method], names=[task.name])).problems
    best = [-50.0, -distance]
    trace = Trace(spec.budget, [1, at], best, best)
    return RunRecord(experiment.run(spec, method, instance), trace, Timing(1.0, 0.1, 2.5))


def _results(method: MethodSpec, *, at: int, distance: float, instances: range) -> ExportedResults:
    tasks = [task for task in TASKS.values() if task.dim == 5]
    records = [_record(method, task, instance, at, distance) for task in tasks for instance in instances]
    return ExportedResults({record.spec.key: record for record in records})


class TestReport:
    def test_bars(self) -> None:
        instances = INSTANCES["report"]
        ours = _results(AUTO, at=20, distance=1e-9, instances=instances)
        theirs = _results(RIVALS[0], at=60, distance=1e-9, instances=instances)
        (sheet,) = make_sheets(Both(ours, theirs), AUTO, "report")
        assert sheet.is_complete
        assert [line[:10] for line in bars(sheet)] == ["- **met**:"] * 3
        (turned,) = make_sheets(Both(ours, theirs), RIVALS[0], "report")
        assert turned.rivals == [], "auto is no rival"

    def test_a_bar_is_missed(self) -> None:
        ours = _results(AUTO, at=50, distance=1e-7, instances=INSTANCES["report"])
        theirs = _results(RIVALS[0], at=60, distance=1e-9, instances=INSTANCES["report"])
        (sheet,) = make_sheets(Both(ours, theirs), AUTO, "report")
        assert [line[:13] for line in bars(sheet)] == ["- **missed**:"] * 3

    def test_rivals_are_compared_on_the_runs_of_the_method(self, tmp_path: Path) -> None:
        ours = _results(AUTO, at=20, distance=1.0, instances=range(11, 12))
        theirs = _results(RIVALS[0], at=20, distance=1.0, instances=range(11, 16))
        lacking = _results(RIVALS[1], at=20, distance=1.0, instances=range(12, 16))
        results = Both(ours, Both(theirs, lacking))
        (sheet,) = make_sheets(results, AUTO, "tuning")
        assert set(sheet.runtimes) == {"auto", RIVALS[0].label}
        assert sheet.area("auto") == sheet.area(RIVALS[0].label)
        text = write_report(results, AUTO, "tuning", tmp_path)
        assert "so far, runs are missing" in text
        assert (tmp_path / "auto-tuning.svg").exists()


@pytest.mark.parametrize("method", PROGRAMS, ids=lambda method: method.label)
def test_programs_use_the_budget(method: MethodSpec) -> None:
    (problem,) = (experiment := SUITES["bbob"].experiment([method], names=["bbob_f003_d02"])).problems
    log = continue_run(experiment.run(problem, method, 11), None, problem.goal, seconds=np.inf)
    assert log.error is None
    assert len(log) == problem.budget or -log.trace.last <= LAST_TARGET
    assert len(log) <= problem.budget


def test_command_runs_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = {"export": tmp_path, "results": tmp_path / "runs.sqlite", "workers": 1, "suite": "bbob"}
    judge("run", methods=["l-bfgs", "mlsl"], problems=["bbob_f001_d02"], seeds="11", **place)
    judge("score", methods=["l-bfgs"], tuning=True, **place)
    assert "## 2 dimensions, 60 evaluations, 1 runs" in capsys.readouterr().out
