"""The judge of `auto`: its problems state what they are, its scores and rivals do what the bars say."""

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from eign import Optimizer
from eign.problems import Problem
from eign_lab.judge import command, functions, report_cards, scores
from eign_lab.judge.ablations import table
from eign_lab.judge.cases import CASES, COUNTED, Case, design
from eign_lab.judge.report_cards import SEEDS, report, sheets
from eign_lab.judge.rivals import CONVERGED, PROGRAMS, Finished, RivalRun, perform
from eign_lab.judge.scores import (
    Comparison,
    compare,
    count_at_optimum,
    meets_count_bar,
    meets_early_bar,
    regret_at,
    strongest,
    third,
    worse,
)

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


@pytest.mark.parametrize("module", [scores, functions], ids=lambda module: module.__name__)
def test_examples_in_docstrings(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


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
    run = RivalRun(case, 1)
    run.observe(x)
    assert run.regrets == [(1, case.optimum - case.problem(x)[0])]


class TestRivals:
    @pytest.mark.parametrize("method", PROGRAMS)
    @pytest.mark.parametrize("name", ["cosine-8-shifted", "hartmann-6-half-missing"])
    def test_stops_at_the_budget_or_the_optimum(self, method: str, name: str) -> None:
        case = CASES[name]
        run = perform(case, method, 100, {})
        last = run.regrets[-1][1]
        assert run.evaluations == case.budget or last <= CONVERGED * case.scale
        assert run.evaluations <= case.budget
        regrets = [regret for _, regret in run.regrets]
        assert regrets == sorted(regrets, reverse=True)

    @pytest.mark.parametrize("method", PROGRAMS)
    def test_a_seed_is_a_run(self, method: str) -> None:
        case = CASES["shekel-4"]
        first, again, other = (perform(case, method, seed, {}).regrets for seed in (101, 101, 102))
        assert first == again
        assert first != other

    def test_multistart_is_the_method_of_the_registry(self) -> None:
        """The same evaluations until random starts begin: on Griewank the runs from the design take all of 60."""
        case = CASES["griewank-10-shifted"]
        run = perform(case, "l-bfgs", 100, {})
        optimizer = Optimizer(case.problem.bounds, method="l-bfgs", seed=100, maximize=True, check_gradients=False)
        best = -np.inf
        for step in range(1, 61):
            x = optimizer.ask()
            value, gradient = case.problem(x)
            optimizer.tell(x, value, gradient)
            best = max(best, value)
            # The two round differently, which quasi-Newton steps amplify.
            assert regret_at(run.regrets, step) == pytest.approx(case.optimum - best, rel=1e-4)

    def test_differences_for_missing_components_are_evaluations(self) -> None:
        case = CASES["hartmann-6-no-gradients"]
        run = RivalRun(case, 0)
        u = design(6, 0)[0]
        _, gradient = run.whole_gradient(u)
        assert run.evaluations == 7
        # Forward differences of step 1e-6: half the step times second derivatives of some 100.
        assert np.allclose(gradient, case.problem(u)[1], atol=1e-4)

    def test_the_budget_is_hard(self) -> None:
        run = RivalRun(CASES["shekel-4"], 0)
        points = np.random.default_rng(1).random((126, 4))
        for u in points[:125]:
            run.in_cube(u)
        with pytest.raises(Finished):
            run.in_cube(points[125])
        assert run.evaluations == 125

    def test_a_cut_run_says_so(self) -> None:
        run = perform(CASES["shekel-4"], "l-bfgs", 100, {}, seconds=0.0)
        assert run.cut
        assert run.evaluations == 1


class TestScores:
    def test_early_bar_takes_the_larger_of_rival_and_floor(self) -> None:
        early = np.array([0.3, 0.5])
        assert meets_early_bar(early, np.array([0.4, 0.4]), scale=1.0)
        assert not meets_early_bar(early, np.array([0.39, 0.4]), scale=1.0)
        assert meets_early_bar(early, np.array([0.0, 0.0]), scale=40.0)

    def test_worse_needs_significance_after_holm_and_a_deficit(self) -> None:
        found = {"clear": Comparison(0.1, 1e-4), "small": Comparison(0.01, 1e-4), "weak": Comparison(0.5, 0.04)}
        assert worse(found) == {"clear": True, "small": False, "weak": True}
        assert worse({**found, "other": Comparison(0.5, 0.05)})["weak"] is False

    def test_better_is_never_worse(self) -> None:
        rival = np.linspace(1.0, 2.0, 20)
        assert worse({"only": compare(rival - 0.5, rival, 1.0)}) == {"only": False}
        assert worse({"only": compare(rival + 0.5, rival, 1.0)}) == {"only": True}

    def test_counts(self) -> None:
        assert count_at_optimum(np.array([0.0, 0.019, 0.02, 0.5]), scale=2.0) == 2
        assert meets_count_bar([20, 20, 20, 20, 20, 17, 17, 17])
        assert not meets_count_bar([20, 20, 20, 20, 20, 20, 13, 17])

    def test_strongest_of_none(self) -> None:
        assert strongest({}) is None


def _record(label: str, seed: int, regret: float, problem: str = "shekel-4") -> dict[str, object]:
    return {"problem": problem, "label": label, "seed": seed, "regrets": [(1, 9.0), (60, regret)]}


class TestReport:
    def test_rival_is_chosen_on_tuning_seeds_and_met_on_report_seeds(self) -> None:
        tuning = [
            _record(label, 100 + k, regret) for label, regret in (("mlsl", 0.5), ("l-bfgs", 0.1)) for k in range(3)
        ]
        tuning.append(_record("d-log-ei", 100, 0.0))  # one lucky run makes no rival
        scored = [_record("mlsl", 0, 0.0), _record("l-bfgs", 0, 3.0), _record("auto", 0, 1.0)]
        sheet = next(s for s in sheets(tuning + scored, label="auto", seeds="report") if s.case.name == "shekel-4")
        assert sheet.rival == "l-bfgs"
        assert sheet.comparison is not None
        assert sheet.comparison.deficit == pytest.approx(-2.0 / sheet.case.scale)
        assert sheet.early is False  # 9 at evaluation 41, against 3
        assert third(sheet.case.budget) == 41

    def test_plain_methods_are_the_rivals_of_groups_3_to_5(self) -> None:
        runs = [_record(label, 0, regret, "corner-6") for label, regret in (("mlsl", 0.0), ("l-bfgs", 0.2))]
        sheet = next(s for s in sheets(runs, label="auto", seeds="report") if s.case.name == "corner-6")
        assert sheet.rival == "l-bfgs"

    def test_writes_tables_bars_and_profiles(self, tmp_path: Path, capsys, monkeypatch) -> None:
        monkeypatch.setattr(report_cards, "CASES", {name: CASES[name] for name in COUNTED})  # scales take seconds
        waits = {"median_wait": 0.1, "max_wait": 2.5}
        runs = [{**_record(label, seed, 0.0), **waits} for label in ("auto", "l-bfgs") for seed in range(2)]
        report(runs, label="auto", seeds="report", directory=tmp_path)
        written = (tmp_path / "auto-report.md").read_text()
        assert written.strip() == capsys.readouterr().out.strip()
        assert "- **missed** so far, runs are missing: median suggestion at most 0.1 s on every problem" in written
        assert (tmp_path / "auto-report.svg").stat().st_size > 1000

    def test_parts_are_compared_on_the_runs_that_both_have(self) -> None:
        scale = CASES["gp-sample-4"].scale
        full = [_record("auto", seed, 0.0, "gp-sample-4") for seed in (100, 101, 102)]
        variant = [_record("auto, no restarts", seed, scale, "gp-sample-4") for seed in (101, 102, 103)]
        lines = table([*full, *variant], range(100, 106))
        assert len(lines) == 4
        cells = [cell.strip() for cell in lines[-1].split("|")[1:-1]]
        # Nine at the first evaluation, and what comes with the 60th is after a third of the budget.
        early = f"{9.0 / scale:.3f}"
        assert cells == ["auto, no restarts", "2", early, early, "-", "1.000", "0.000", "0.5", "0", "2"]
        assert [line.split("|")[2].strip() for line in lines[2:]] == ["3", "2"]

    def test_seeds_do_not_overlap(self) -> None:
        assert not set(SEEDS["report"]) & set(SEEDS["tuning"])


class TestDriver:
    @pytest.fixture
    def jobs(self) -> Callable[..., list[command.Job]]:
        return lambda *seeds: [command.Job("plateau-4", "l-bfgs", "l-bfgs", "{}", seed) for seed in seeds]

    def test_skips_what_is_stored(self, jobs: Callable[..., list[command.Job]], tmp_path: Path, capsys) -> None:
        command.work(jobs(1), workers=1, directory=tmp_path)
        with (tmp_path / "l-bfgs.jsonl").open("a") as file:
            file.write('{"problem": "plateau-4", "lab')  # a crash while writing
        command.work(jobs(1, 2), workers=1, directory=tmp_path)
        assert "2 runs, 1 of them there already" in capsys.readouterr().out
        assert [record["seed"] for record in command.stored(tmp_path)] == [1, 2]

    def test_labels_tell_variants_apart(self) -> None:
        record = command.run(command.Job("plateau-4", "sobol", "no model", json.dumps({}), 3))
        assert command.identity(json.loads(json.dumps(record))) == command.Job(
            "plateau-4", "sobol", "no model", "{}", 3
        )
        assert record["evaluations"] == 100
