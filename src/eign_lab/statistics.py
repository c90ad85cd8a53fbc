"""Comparing methods over seeds: pure functions of arrays.

| name | shape | meaning |
|---|---|---|
| `best` | runs x evaluations | best value so far of each run, to be maximised |
| `first`, `second` | n | results of two methods, paired: the same seed, the same initial design |
| `margin` | | what counts as a small difference |
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from eign.arrays import Array
from eign.plot.bands import mean_and_error

LEVEL: Final = 0.05
"""A difference is significant if its p-value, after Holm, is below this."""

SIMILAR: Final = 0.05
"""Methods are similar if they differ by at most this share of what there was to gain."""


NOT_WORSE: Final = 0.02
"""A method is not worse than another if it is behind by at most this share of what there was to gain."""

LEAST_SEEDS: Final = 10
"""With fewer, nothing is said about a method being as good as another."""


class Verdict(StrEnum):
    """What the runs say about a statement."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided"


class Interval(NamedTuple):
    """Where a mean lies, with the confidence asked for; infinite if there are fewer than two values."""

    mean: float
    low: float
    high: float


def paired_wilcoxon(first: Array, second: Array) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test of `first` against `second`; 1 if they never differ.

    Pairs without a difference are left out, as Wilcoxon did. Up to 50 pairs the distribution is exact, also with tied
    ranks, for which SciPy has an approximation.

    >>> paired_wilcoxon(np.arange(6.0), np.arange(6.0) + [1, 2, 3, 4, 5, 6])
    0.03125
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    if len(difference) > 50:
        return float(stats.wilcoxon(difference, method="approx", keepdims=False).pvalue)
    # Tied ranks are halves: twice the ranks are whole numbers.
    ranks = np.rint(2.0 * stats.rankdata(np.abs(difference))).astype(np.int64)
    ways = np.ones(1)  # ways[s] sign patterns have ranks with sum s among the positive ones
    for rank in ranks:
        longer = np.append(ways, np.zeros(rank))
        longer[rank:] += ways
        ways = longer
    away = np.abs(2 * np.arange(len(ways)) - ranks.sum())
    observed = abs(2 * ranks[difference > 0].sum() - ranks.sum())
    return float(ways[away >= observed].sum() / ways.sum())


def smallest_p(pairs: int) -> float:
    """The smallest p-value that the paired test can reach: 2 / 2^n, all differences of one sign.

    >>> smallest_p(5), smallest_p(6)
    (0.0625, 0.03125)
    """
    return min(1.0, 2.0 ** (1 - pairs))


def seeds_needed(tests: int) -> int:
    """How many seeds it takes at least before one of so many tests can be significant after Holm.

    >>> seeds_needed(1), seeds_needed(16)
    (6, 10)
    """
    return next(n for n in range(1, 64) if smallest_p(n) * max(1, tests) < LEVEL)


def holm(p_values: Sequence[float] | Array) -> Array:
    r"""Holm's adjusted p-values, in the order given.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\bigl(1, (m - j + 1)\, p_{(j)}\bigr)

    >>> holm([0.01, 0.04, 0.03]).round(12).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return adjusted


def paired_interval(first: Array, second: Array, *, confidence: float = 0.9) -> Interval:
    """Student's interval of the mean of first - second."""
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    mean, error = mean_and_error(difference)
    if len(difference) < 2:
        return Interval(float(mean), -np.inf, np.inf)
    half = float(stats.t.ppf(0.5 + confidence / 2, len(difference) - 1) * error)
    return Interval(float(mean), float(mean) - half, float(mean) + half)


def bootstrap_interval(difference: Array, *, confidence: float = 0.9, draws: int = 10_000) -> Interval:
    """The percentile interval of a mean over resampled seeds, the same at every call; infinite below two values.

    >>> bootstrap_interval(np.array([1.0, 1.0, 1.0]))
    Interval(mean=1.0, low=1.0, high=1.0)
    """
    values = np.asarray(difference, dtype=np.float64)
    if len(values) < 2:
        return Interval(float(values.mean()) if len(values) else np.nan, -np.inf, np.inf)
    drawn = np.random.default_rng(0).integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Interval(float(values.mean()), float(low), float(high))


def judge_not_worse(interval: Interval, margin: float, *, seeds: int) -> Verdict:
    """Whether a method with this interval of its regret minus the rival's is behind by less than the margin.

    It takes `LEAST_SEEDS`: a test that cannot reject is no evidence of being as good.
    """
    if seeds < LEAST_SEEDS:
        return Verdict.OPEN
    if interval.high <= margin:
        return Verdict.HOLDS
    return Verdict.FAILS if interval.low > margin else Verdict.OPEN


def similarity_margin(optimum: float, initial: Array) -> float:
    """5 per cent of what there was to gain: the optimum minus the median of the initial designs' best values."""
    return SIMILAR * (optimum - float(np.median(initial)))


def judge_better(first: Array, second: Array, adjusted_p: float) -> Verdict:
    """Whether the first method is better: significantly, in the direction of the signed ranks."""
    if adjusted_p >= LEVEL:
        return Verdict.OPEN
    difference = np.asarray(first) - np.asarray(second)
    ranks = stats.rankdata(np.abs(difference)) * (difference != 0)
    return Verdict.HOLDS if float(np.sum(np.sign(difference) * ranks)) > 0 else Verdict.FAILS


def judge_similar(interval: Interval, margin: float) -> Verdict:
    """Whether the 90 per cent interval of the difference lies within the margin, or wholly outside of it."""
    if max(abs(interval.low), abs(interval.high)) <= margin:
        return Verdict.HOLDS
    return Verdict.FAILS if interval.low > margin or interval.high < -margin else Verdict.OPEN


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """Of a statement with several parts: it holds if all do, and does not hold if one does not."""
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if verdicts and all(verdict is Verdict.HOLDS for verdict in verdicts) else Verdict.OPEN


def share_at_optimum(final: Array, optimum: float, *, margin: float) -> float:
    """The share of the runs whose last best value is within the margin of the optimum."""
    return float(np.mean(np.asarray(final) >= optimum - margin))


def evaluations_to_target(best: Array, target: float) -> Array:
    """The first evaluation with at least the target in each run, `runs x evaluations -> runs`; inf if there is none.

    >>> evaluations_to_target(np.array([[1.0, 3.0, 4.0], [0.0, 0.0, 2.0]]), 3.0)
    array([ 2., inf])
    """
    reached = np.asarray(best) >= target
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def data_profile(costs: Array, evaluations: Array) -> Array:
    """The share of problems that are solved by so many evaluations, `problems, k -> k`; inf = never solved.

    >>> data_profile(np.array([10.0, 30.0, np.inf]), np.array([5.0, 10.0, 100.0])).round(3).tolist()
    [0.0, 0.333, 0.667]
    """
    return np.asarray((np.asarray(costs)[:, None] <= np.asarray(evaluations)[None]).mean(axis=0))


def performance_profile(costs: Mapping[str, Array], ratios: Array) -> dict[str, Array]:
    """For each method the share of problems solved at no more than so many times the cost of the best method.

    A problem that no method solves counts as unsolved by all (Dolan and Moré).

    Args:
        costs: For each method the evaluations that each problem took, `problems`; inf = never solved.
        ratios: `k`, at least 1.
    """
    least = np.min(list(costs.values()), axis=0)
    with np.errstate(invalid="ignore"):  # inf / inf: nobody solved it
        relative = {name: np.where(np.isfinite(least), cost / least, np.inf) for name, cost in costs.items()}
    return {name: data_profile(ratio, ratios) for name, ratio in relative.items()}
