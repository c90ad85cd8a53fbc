"""Published runs of EI: our functions have the published values, and our runs start from the published designs."""

import numpy as np
import pytest

from eign import problems
from eign_lab.report.head_to_head import Duel, duel_table, pair
from eign_lab.runs.outcomes import MethodRuns, ProblemOutcome
from eign_lab.runs.run_log import Goal
from eign_lab.runs.tasks import continue_run
from eign_lab.studies.published_runs import CHECKPOINTS, FUNCTIONS, design, experiment, published_best, published_table

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_at_the_designs_are_the_published_ones(name):
    problem, best = problems.get(name), published_best(name)
    points = np.stack([design(name, seed) for seed in range(len(best))])
    values = problem.evaluate(points.reshape(-1, problem.dim))[0].reshape(points.shape[:2])
    # The same formulas in another order of operations: a few roundings of the largest value.
    np.testing.assert_allclose(np.maximum.accumulate(values, axis=1), best[:, : points.shape[1]], rtol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_published_run_is_above_the_optimum(name):
    # Wang-Freitas is 4 in their code and 4 + 3e-14, the tail of the hill, in truth.
    assert published_best(name).max() <= problems.get(name).optimum + 1e-12


def test_our_runs_are_told_the_published_design_first():
    comparison = experiment(["branin-2"], ["ei"])
    (problem,), (method,) = comparison.problems, comparison.methods
    log = continue_run(comparison.run(problem, method, 7), None, Goal(problem.initial + 1))
    assert log.error is None
    np.testing.assert_array_equal(log.trace.curve(4), published_best("branin-2")[7, :4])
    # The fifth point is the method's own: no further points of a design.
    assert np.isfinite(log.seconds).tolist() == [False] * 4 + [True]


def duel(difference, *, n=12, scale=10.0):
    theirs = RNG.random(n)
    return Duel("p", "m", 50, theirs + difference + 0.01 * RNG.standard_normal(n), theirs, scale)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (duel(-1.0), "better"),
        (duel(0.0), "not worse"),
        (duel(-0.1), "not worse"),
        (duel(0.1), "not worse"),
        (duel(0.2), "not decided"),
        (duel(0.4), "worse"),
        (duel(-1.0, n=9), "not decided"),
    ],
)
def test_two_per_cent_of_the_scale_decide(made, verdict):
    assert made.verdict == verdict
    assert duel_table("", [made]).rows[0][-1] == verdict


def test_designs_are_paired_by_their_numbers():
    ours, theirs = pair({3: 1.0, 0: 2.0, 8: 9.0}, {0: 5.0, 3: 4.0, 1: 9.0})
    assert (ours.tolist(), theirs.tolist()) == ([2.0, 1.0], [5.0, 4.0])


def test_a_row_has_the_published_run_of_the_same_design():
    """Runs that are the published ones of these designs, but better by 1: at each checkpoint, in each."""
    spec = experiment(["rosenbrock-10"], ["ei"]).problems[0]
    seeds = tuple(range(4, 16))
    runs = MethodRuns(seeds, published_best("rosenbrock-10")[list(seeds)] + 1.0, ())
    table = published_table({"rosenbrock-10": ProblemOutcome(spec, 0.0, {"EI": runs})})
    assert [row[2] for row in table.rows] == [str(count) for count in CHECKPOINTS]
    assert {row[6:] for row in table.rows} == {("12 / 0", "-0.00057 to -0.00057", "not worse")}
