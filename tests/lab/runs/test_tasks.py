"""A run in pieces is bitwise the run in one piece, and the run that a user would get."""

import json
from dataclasses import replace

import numpy as np
import pytest

import campaign_cases
import eign
from campaign_cases import PROBLEM, SMALL
from eign.study.handle import restore
from eign_lab.rivals import PROGRAMS
from eign_lab.runs.experiment import MethodSpec, RunSpec
from eign_lab.runs.posed_problem import pose
from eign_lab.runs.run_log import Goal, RunLog
from eign_lab.runs.tasks import continue_run

METHODS = ("auto", "ei-gn", "d-ei-gn", "ei-g-bound", "thompson", "cma-es", "l-bfgs", "sobol")


def run_of(method: str, **changes: object) -> RunSpec:
    return SMALL.run(replace(PROBLEM, **changes), MethodSpec(method, method), 5)


def whole(run: RunSpec, budget: int, target: float | None = None) -> RunLog:
    return continue_run(run, None, Goal(budget, target), seconds=np.inf)


def points(log: RunLog) -> np.ndarray:
    return restore(log.study).history.x


def same(first: RunLog, second: RunLog) -> bool:
    return first.trace == second.trace and json.dumps(first.study) == json.dumps(second.study)


@pytest.mark.parametrize("method", METHODS)
def test_split_at_every_evaluation_and_stored_in_between_it_is_the_same_run(method):
    run = run_of(method)
    log = None
    for count in range(1, 9):
        log = continue_run(run, log, Goal(8), seconds=0.0)
        assert len(log) == count
        log = RunLog.from_json(json.loads(json.dumps(log.to_json())), log.trace, log.error)
    assert same(log, whole(run, 8))
    assert len(continue_run(run, log, Goal(8))) == 8


@pytest.mark.parametrize(
    "source",
    [{}, {"name": "magnitudes-4", "source": "eign_lab.judge.functions:unit_problem"}],
    ids=["branin", "decades"],
)
@pytest.mark.parametrize("method", METHODS)
def test_it_is_the_run_of_a_plain_optimizer_bit_for_bit(method, source):
    """On the second problem coordinates are positive over decades, which `auto` takes note of."""
    run = run_of(method, **source)
    posed = pose(run.problem, run.problem_options, source=run.source).seen
    settings = {"method": method, "seed": 5, "maximize": True, "options": run.options, "check_gradients": False}
    optimizer = eign.Optimizer(posed.bounds, **settings)
    for _ in range(8):
        x = optimizer.ask()
        optimizer.tell(x, *posed(x))
    log = whole(run, 8)
    assert points(log).tobytes() == optimizer.history.x.tobytes()
    assert np.array_equal(log.trace.curve(8), np.maximum.accumulate(optimizer.history.y))


def test_it_is_the_run_that_a_user_gets_from_maximize():
    run, problem = run_of("ei-gn"), eign.problems.get("branin-2")
    result = eign.maximize(problem, problem.bounds, method="ei-gn", seed=5, budget=6, options=run.options)
    assert np.array_equal(points(whole(run, 6)), result.history.x)


def test_every_method_of_a_seed_starts_with_the_same_points():
    designs = [points(whole(run_of(method), 4)) for method in METHODS]
    assert all(np.array_equal(design, designs[0]) for design in designs)


def test_a_proposal_is_timed_and_a_point_of_the_design_is_not():
    log = whole(run_of("ei-gn"), 6)
    assert np.isnan(log.seconds[:4]).all()
    assert (np.array(log.seconds[4:]) > 0).all()


def test_a_stop_is_heeded_after_one_evaluation_and_by_other_programs_at_once():
    assert len(continue_run(run_of("sobol"), None, Goal(8), is_stopped=lambda: True)) == 1
    assert len(continue_run(run_of("scipy/l-bfgs-b"), None, Goal(8), is_stopped=lambda: True)) == 0


def test_a_run_ends_at_its_target_and_goes_on_for_who_wants_more():
    run = run_of("l-bfgs")
    full = whole(run, 40)
    target = full.trace.best[-2]
    log = whole(run, 40, target)
    assert len(log) == full.trace.improved_at[-2] < 40
    assert same(continue_run(run, log, Goal(40), seconds=np.inf), full)


# BoTorch takes a tenth of a second for a point: test_botorch_loop.py does the same with fewer.
@pytest.mark.parametrize("method", [name for name in PROGRAMS if not name.startswith("botorch/")])
def test_another_program_is_a_method_of_the_harness(method):
    first, again, other = (whole(replace(run_of(method), seed=seed), 30).trace for seed in (1, 1, 2))
    assert first == again
    assert (first == other) is (method == "nlopt/stogo"), "StoGO begins by splitting the box, wherever it starts"
    assert first.evaluations == 30
    assert len(whole(run_of(method), 30, target=first.best[0])) < 30


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("campaign_cases:three_evaluations", "RuntimeError: campaign_cases:three_evaluations gave up after 3 of 8"),
        ("campaign_cases:nothing", "ValueError: there is no function 'campaign_cases:nothing'"),
        ("scipy/hill-climbing", "ValueError: there is no program 'scipy/hill-climbing'; expected one of scipy/l-bfgs"),
    ],
)
def test_a_program_that_gives_up_or_is_not_there_is_an_error_of_the_run(method, message):
    log = continue_run(RunSpec("branin-2", method, 0), None, Goal(8))
    assert (log.error or "").startswith(message)


def test_a_problem_comes_from_any_function():
    run = RunSpec("bowl", "sobol", 7, source="campaign_cases:moved_bowl", problem_options={"centre": 0.5}, seeded=True)
    log = whole(run, 5)
    values, _ = campaign_cases.moved_bowl("bowl", centre=0.5, seed=7).evaluate(points(log))
    assert np.array_equal(log.trace.curve(5), np.maximum.accumulate(values))


def test_a_run_begins_with_the_points_of_a_given_design():
    run = replace(run_of("ei-gn", initial=3), design="campaign_cases:corners")
    log = whole(run, 6)
    given = np.array(campaign_cases.corners("branin-2", 5))
    optimizer = eign.Optimizer(
        eign.problems.get("branin-2").bounds,
        method="ei-gn",
        seed=5,
        maximize=True,
        options=run.options,
        check_gradients=False,
    )
    for x in given:
        optimizer.tell(x, *eign.problems.get("branin-2")(x))
    assert np.array_equal(points(log)[:3], given)
    assert np.array_equal(points(log)[3], optimizer.ask())
    assert np.isnan(log.seconds[:3]).all()
    pieces = None
    for _ in range(6):
        pieces = continue_run(run, pieces, Goal(6), seconds=0.0)
    assert same(pieces, log)
    refused = continue_run(replace(run, method="pycma/cma-es", options={}), None, Goal(6))
    assert "given designs are for registered methods" in (refused.error or "")


def test_with_noise_a_run_is_judged_by_the_values_without_it():
    noisy = {"noisy": {"value_std": 50.0, "seed": 1}}
    log = whole(run_of("sobol", options=noisy), 20)
    branin = eign.problems.get("branin-2")
    history = restore(log.study).history
    improved = np.array(log.trace.improved_at) - 1
    assert log.trace.best == [branin(x)[0] for x in history.x[improved]]
    assert log.trace.observed == history.y[improved].tolist()
    assert log.trace.observed == sorted(log.trace.observed)
    assert log.trace.best != log.trace.observed


def test_an_error_is_kept_with_the_evaluations_before_it_and_the_run_can_go_on(monkeypatch):
    run = run_of("ei-gn")

    def fail(*arguments, **keywords):
        raise FloatingPointError("no\nfactor")

    with monkeypatch.context() as patch:
        patch.setattr("eign.strategies.surrogate_steps.fitted_surrogate", fail)
        log = whole(run, 8)
    assert len(log) == 4
    assert log.error is not None
    assert log.error.startswith("MethodFailedWarning: method 'ei-gn' failed")
    assert "FloatingPointError: no factor (test_tasks.py, line" in log.error
    assert same(continue_run(run, log, Goal(8)), whole(run, 8))
    assert continue_run(run, log, Goal(8)).error is None


def test_a_point_whose_evaluation_raised_is_evaluated_again():
    run = run_of("ei-gn", source="campaign_cases:failing_once")
    campaign_cases.CALLS.clear()
    log = whole(run, 8)
    assert (len(log), (log.error or "").startswith("OSError: the licence server is gone")) == (5, True)
    assert np.array_equal(points(continue_run(run, log, Goal(8))), points(whole(run_of("ei-gn"), 8)))


def test_a_problem_that_cannot_be_built_is_an_error_of_the_run():
    log = continue_run(run_of("ei", name="branin-3"), None, Goal(8))
    assert (len(log), (log.error or "").startswith("ValueError: branin has no dimension 3")) == (0, True)


def test_without_stationarity_it_is_bitwise_expected_improvement():
    """So that the sweep over alpha may share its first run with the comparisons."""
    plain, without = (
        whole(SMALL.run(PROBLEM, method, 5), 8)
        for method in (MethodSpec("EI", "ei"), MethodSpec("EI-GN", "ei-gn", {"alpha": 0.0}))
    )
    assert np.array_equal(points(plain), points(without))
