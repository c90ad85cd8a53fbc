"""How methods are scored: pure functions of regrets, which are shares of the scale, and the numbers of the bars."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

EARLY_FLOOR: Final = 0.01
"""At a third of the budget a regret up to this share of the scale is always good enough."""
EARLY_SHARE: Final = 0.8
"""Share of the problems of groups 1 and 2 on which the early bar must be met."""
AT_OPTIMUM: Final = 0.01
"""A run is at the global optimum if its regret is below this share of the scale."""
RUNS_AT_OPTIMUM: Final = 155
"""Of the 160 runs on the eight counted problems."""
SHEKEL_EVALUATIONS, SHEKEL_RUNS = 60, 18
"""Runs of 20 that are at the optimum of Shekel's function after so many evaluations."""
FEW_DIMENSIONS: Final = 6
MEDIAN_SECONDS, MEDIAN_SECONDS_BEYOND, MOST_SECONDS = 0.04, 0.15, 1.0
"""Of a suggestion: medians up to few dimensions and beyond, and the longest."""


def third(budget: int) -> int:
    """A third of the budget, rounded down: 41 of 125.

    >>> third(125)
    41
    """
    return budget // 3


def strongest(tuning: Mapping[str, Iterable[float]]) -> str | None:
    """The method with the smallest mean final regret on the tuning seeds; None if there is none.

    >>> strongest({"a": [1.0, 3.0], "b": [1.5]})
    'b'
    """
    return min(tuning, key=lambda method: float(np.mean(list(tuning[method]))), default=None)


def meets_early_bar(early: Iterable[float], rival_final: Iterable[float]) -> bool:
    """Whether the mean regret at a third is at most the rival's final mean, or 1 per cent of the scale if larger.

    >>> meets_early_bar([0.3, 0.5], [0.4, 0.4]), meets_early_bar([0.3, 0.5], [0.39, 0.4])
    (True, False)
    """
    return float(np.mean(list(early))) <= max(float(np.mean(list(rival_final))), EARLY_FLOOR)


def count_at_optimum(regrets: Iterable[float]) -> int:
    """Runs with a regret below 1 per cent of the scale."""
    return sum(regret < AT_OPTIMUM for regret in regrets)
