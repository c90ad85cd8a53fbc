"""Our runs beside those of another implementation from the same designs: better, not worse, worse, or not decided."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign_lab.report.summaries import Table
from eign_lab.statistics import NOT_WORSE, Verdict, bootstrap_interval, judge_not_worse

HEADINGS: Final = (
    *("problem", "method", "evaluations", "designs", "median regret", "the other's"),
    *("closer to the optimum: ours / theirs", "90 % interval, % of the scale", "verdict"),
)
NOTE: Final = (
    "Interval: 90 % by bootstrap, of the mean difference in regret, ours minus the other's, paired by design. Not "
    f"worse: it stays below {NOT_WORSE:.0%} of the scale, which is the optimum minus the median of the designs' best "
    "values. Better: it stays below minus that. Fewer than ten designs decide nothing."
)


class Duel(NamedTuple):
    """Regrets of two methods from the same designs.

    Attributes:
        problem, method, evaluations: What is compared.
        ours, theirs: Regrets `n`, paired.
        scale: What there was to gain.
    """

    problem: str
    method: str
    evaluations: int
    ours: Array
    theirs: Array
    scale: float

    @property
    def verdict(self) -> str:
        """In words."""
        interval, margin, n = bootstrap_interval(self.ours - self.theirs), NOT_WORSE * self.scale, len(self.ours)
        verdict = judge_not_worse(interval, margin, seeds=n)
        if verdict is Verdict.HOLDS and interval.high < -margin:
            return "better"
        return {Verdict.HOLDS: "not worse", Verdict.FAILS: "worse", Verdict.OPEN: "not decided"}[verdict]


def pair(ours: Mapping[int, float], theirs: Mapping[int, float]) -> tuple[Array, Array]:
    """The values of the seeds that both have, in one order."""
    common = sorted(ours.keys() & theirs.keys())
    return np.array([ours[seed] for seed in common]), np.array([theirs[seed] for seed in common])


def duel_table(title: str, duels: Sequence[Duel]) -> Table:
    """One row a duel."""
    return Table(title, HEADINGS, tuple(_row(duel) for duel in duels if len(duel.ours)), NOTE)


def _row(duel: Duel) -> tuple[str, ...]:
    difference = duel.ours - duel.theirs
    _, low, high = bootstrap_interval(difference)
    return (
        *(duel.problem, duel.method, str(duel.evaluations), str(len(difference))),
        *(f"{np.median(regrets):.2g}" for regrets in (duel.ours, duel.theirs)),
        f"{(difference < 0).sum()} / {(difference > 0).sum()}",
        f"{100 * low / duel.scale:.2g} to {100 * high / duel.scale:.2g}",
        duel.verdict,
    )
