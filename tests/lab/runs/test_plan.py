"""Which runs come in which order, and the estimate of the time left."""

from dataclasses import replace

import pytest

from campaign_cases import PROBLEM, SMALL
from eign_lab.runs.experiment import Experiment, MethodSpec
from eign_lab.runs.plan import Clock, plan_runs

CHEAP = Experiment("cheap", "", (replace(PROBLEM, budget=200, checkpoints=()),), (MethodSpec("L-BFGS-B", "l-bfgs"),))


def test_seed_after_seed_cheap_experiments_first_and_shared_runs_once():
    planned = plan_runs([SMALL, CHEAP], range(2))
    assert [each.title for each in planned] == [
        "small  branin-2  EI-GN  seed 0",
        "small  branin-2  L-BFGS-B  seed 0",
        "small  branin-2  EI-GN  seed 1",
        "small  branin-2  L-BFGS-B  seed 1",
    ]
    assert [each.goal.budget for each in planned] == [9, 200, 9, 200]
    dear = Experiment("dear", "", (replace(PROBLEM, name="ackley-14", budget=500, checkpoints=()),), SMALL.methods)
    assert plan_runs([dear, SMALL], range(1))[0].title.startswith("small")


def test_the_clock_learns_from_runs_of_the_same_kind():
    planned = plan_runs([SMALL], range(3))
    clock = Clock(planned, {})
    assert clock.left(2) is None
    assert clock.share == 0.0
    of_kind = [each.run.key for each in planned if each.run.method == "ei-gn"]
    others = [each.run.key for each in planned if each.run.method == "l-bfgs"]
    for key in others:
        clock.drop(key)
    clock.advance(of_kind[0], 9, 40.0)
    assert clock.left(1) == pytest.approx(80.0)
    assert clock.left(2) == pytest.approx(40.0)
    assert clock.left(100) == pytest.approx(40.0), "a run cannot be divided among workers"
    clock.advance(of_kind[1], 3, 5.0)  # a ninth of the work: proposals get dearer
    assert clock.left(1) == pytest.approx(45.0 / (10 / 9) * (8 / 9 + 1))
    clock.advance(of_kind[1], 9, 35.0)
    clock.advance(of_kind[2], 9, 40.0)
    assert (clock.left(1), clock.share) == (pytest.approx(0.0), pytest.approx(1.0))


def test_the_clock_scales_what_was_never_measured():
    planned = plan_runs([SMALL], range(1))
    clock = Clock(planned, {})
    first, second = planned
    clock.advance(first.run.key, first.goal.budget, 3.0 * first.nominal)
    assert clock.left(1) == pytest.approx(3.0 * second.nominal)


def test_the_clock_knows_what_was_done_before():
    planned = plan_runs([SMALL], range(1))
    clock = Clock(planned, {each.run.key: 99 for each in planned})
    assert clock.share == pytest.approx(1.0)
