"""How `auto` is scored: pure functions of regrets.

| name | shape | meaning |
|---|---|---|
| `final`, `rival` | seeds | regrets of two methods, paired by seed |
| `scale` | | optimum minus the median of the initial designs' best |
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign_lab.statistics import LEVEL, holm, paired_wilcoxon

EARLY_FLOOR: Final = 0.01
"""At a third of the budget a regret below this share of the scale is always good enough."""
EARLY_SHARE: Final = 0.8
"""Share of the problems of groups 1 and 2 on which the early bar must be met."""
DEFICIT: Final = 0.02
"""A method is worse only by more than this share of the scale."""
AT_OPTIMUM: Final = 0.01
"""A run is at the global optimum if its regret is below this share of the scale."""
RUNS_AT_OPTIMUM, LEAST_AT_OPTIMUM = 150, 17
"""Of the 160 runs on the eight counted problems, and of the 20 on each."""
MEDIAN_SECONDS, MOST_SECONDS = 0.5, 2.0


def third(budget: int) -> int:
    """A third of the budget, rounded down: 41 of 125.

    >>> third(125)
    41
    """
    return budget // 3


def strongest(tuning: Mapping[str, Array]) -> str | None:
    """The method with the smallest mean final regret on the tuning seeds; None if there is none.

    >>> strongest({"a": np.array([1.0, 3.0]), "b": np.array([1.5])})
    'b'
    """
    return min(tuning, key=lambda method: float(np.mean(tuning[method])), default=None)


def meets_early_bar(early: Array, rival_final: Array, scale: float) -> bool:
    """Whether the mean regret at a third is at most the rival's final mean, or 1 per cent of the scale if larger."""
    return float(np.mean(early)) <= max(float(np.mean(rival_final)), EARLY_FLOOR * scale)


class Comparison(NamedTuple):
    """Final regrets of a method against a rival's, on one problem.

    Attributes:
        deficit: Mean regret minus the rival's, as a share of the scale; negative is better.
        p: Of the paired test.
    """

    deficit: float
    p: float


def compare_regrets(final: Array, rival: Array, scale: float) -> Comparison:
    """The mean difference as a share of the scale, and Wilcoxon's p-value."""
    return Comparison(float(np.mean(final - rival)) / scale, paired_wilcoxon(final, rival))


def worse(comparisons: Mapping[str, Comparison]) -> dict[str, bool]:
    """Whether a method is worse on each problem: p < .05 after Holm over all, and a deficit above 2 per cent."""
    adjusted = holm([comparison.p for comparison in comparisons.values()])
    pairs = zip(comparisons.items(), adjusted, strict=True)
    return {name: bool(p < LEVEL and comparison.deficit > DEFICIT) for (name, comparison), p in pairs}


def count_at_optimum(final: Array, scale: float) -> int:
    """Runs with a regret below 1 per cent of the scale."""
    return int(np.sum(np.asarray(final) < AT_OPTIMUM * scale))


def meets_count_bar(counts: Sequence[int]) -> bool:
    """Whether at least 150 of the 160 runs are at the optimum, and at least 17 of the 20 on each problem.

    >>> meets_count_bar([20] * 7 + [17]), meets_count_bar([20] * 7 + [16]), meets_count_bar([18] * 8)
    (True, False, False)
    """
    return sum(counts) >= RUNS_AT_OPTIMUM and min(counts) >= LEAST_AT_OPTIMUM
