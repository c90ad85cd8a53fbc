"""A run in pieces is bitwise the run in one piece, and the run that a user would get."""

import json
from dataclasses import replace

import numpy as np
import pytest

import eign
from campaign_cases import PROBLEM, SMALL
from eign_lab.runs.experiment import MethodSpec, RunSpec
from eign_lab.runs.run_log import RunLog
from eign_lab.runs.tasks import continue_run

METHODS = ("ei-gn", "d-ei-gn", "ei-g-bound", "thompson", "cma-es", "l-bfgs", "sobol")


def run_of(method: str, **changes: object) -> RunSpec:
    return SMALL.run(replace(PROBLEM, **changes), MethodSpec(method, method), 5)


def same(first: RunLog, second: RunLog) -> bool:
    return first.observations == second.observations and first.state == second.state


@pytest.mark.parametrize("method", METHODS)
def test_split_at_every_evaluation_and_stored_in_between_it_is_the_same_run(method):
    run = run_of(method)
    whole = continue_run(run, None, budget=8, seconds=np.inf)
    log = None
    for count in range(1, 9):
        log = continue_run(run, log, budget=8, seconds=0.0)
        assert len(log) == count
        log = RunLog.from_json(json.loads(json.dumps(log.to_json())))
    assert same(log, whole)
    assert len(continue_run(run, log, budget=8)) == 8


@pytest.mark.parametrize("method", ["ei-gn", "l-bfgs"])
def test_it_is_the_run_that_a_user_gets(method):
    run = run_of(method)
    problem = run.build_problem()
    log = continue_run(run, None, budget=6, seconds=np.inf)
    result = eign.maximize(problem, problem.bounds, method=method, seed=5, budget=6, options=run.options)
    assert np.array_equal(log.observations.x, result.history.x)
    assert np.array_equal(log.observations.y, result.history.y)


def test_every_method_of_a_seed_starts_with_the_same_points():
    designs = [continue_run(run_of(method), None, budget=4, seconds=np.inf).observations.x for method in METHODS]
    assert all(np.array_equal(design, designs[0]) for design in designs)


def test_a_proposal_is_timed_and_a_point_of_the_design_is_not():
    log = continue_run(run_of("ei-gn"), None, budget=6, seconds=np.inf)
    assert np.isnan(log.seconds[:4]).all()
    assert (log.seconds[4:] > 0).all()


def test_the_gradient_norm_is_that_of_the_unit_cube():
    run = run_of("sobol")
    log = continue_run(run, None, budget=3, seconds=np.inf)
    bounds, grad = run.build_problem().bounds, log.observations.grad
    expected = np.linalg.norm(grad * (bounds.upper - bounds.lower), axis=1)
    np.testing.assert_allclose(log.stationarity, expected, rtol=1e-12)  # no point lies on the border


def test_a_stop_is_heeded_after_one_evaluation():
    assert len(continue_run(run_of("sobol"), None, budget=8, is_stopped=lambda: True)) == 1


def test_an_error_is_kept_with_the_evaluations_before_it_and_the_run_can_go_on(monkeypatch):
    run = run_of("ei-gn")

    def fail(*arguments, **keywords):
        raise FloatingPointError("no\nfactor")

    with monkeypatch.context() as patch:
        patch.setattr("eign.strategies.bayesian.fitted_surrogate", fail)
        log = continue_run(run, None, budget=8, seconds=np.inf)
    assert len(log) == 4
    assert log.error is not None
    assert log.error.startswith("FloatingPointError: no factor (test_campaign_tasks.py:")
    assert same(continue_run(run, log, budget=8), continue_run(run, None, budget=8, seconds=np.inf))
    assert continue_run(run, log, budget=8).error is None


def test_a_problem_that_cannot_be_built_is_an_error_of_the_run():
    log = continue_run(run_of("ei", name="branin-3"), None, budget=8)
    assert (len(log), log.error is not None and log.error.startswith("ValueError: branin has no dimension 3")) == (
        0,
        True,
    )


def test_without_stationarity_it_is_bitwise_expected_improvement():
    """So that the sweep over alpha may share its first run with the comparisons."""
    plain, without = (
        continue_run(SMALL.run(PROBLEM, method, 5), None, budget=8, seconds=np.inf)
        for method in (MethodSpec("EI", "ei"), MethodSpec("EI-GN", "ei-gn", {"alpha": 0.0}))
    )
    assert plain.observations == without.observations
