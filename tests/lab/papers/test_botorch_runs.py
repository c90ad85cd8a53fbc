"""Ours beside plain BoTorch's, paired by seed, at the checkpoints of the paper."""

import numpy as np

from eign_lab.papers.ei_gn.botorch_runs import EXPERIMENT, duels
from eign_lab.runs.outcomes import MethodRuns, ProblemOutcome

SHEKEL = EXPERIMENT.problems[0]


def runs(seeds, gain):
    """All begin at 1 and end `gain` higher, in equal steps after the design."""
    curve = 1.0 + gain * np.clip(np.arange(1, 126) - 12, 0, None) / 113
    return MethodRuns(tuple(seeds), np.tile(curve, (len(seeds), 1)), ())


def test_each_is_compared_with_its_own_counterpart_on_the_seeds_of_both():
    found = {
        "EI": runs(range(12), 9.0),
        "BoTorch EI": runs(range(2, 14), 6.0),
        "LogEI": runs(range(12), 5.0),
        "L-BFGS-B": runs(range(12), 9.5),
    }
    made = list(duels(ProblemOutcome(SHEKEL, 11.0, found)))
    assert [(duel.method, duel.evaluations) for duel in made] == [("EI", 40), ("EI", 80), ("EI", 125)]
    assert {len(duel.ours) for duel in made} == {10}
    np.testing.assert_allclose(made[-1].ours, 1.0)
    np.testing.assert_allclose(made[-1].theirs, 4.0)
    assert made[-1].scale == 10.0
    assert made[-1].verdict == "better"
