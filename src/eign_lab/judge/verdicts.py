"""What the reports of all judges share: how a method compares with a rival, and bars in words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eign_lab.statistics import NOT_WORSE, Interval, Verdict, bootstrap_interval, judge_not_worse


class Comparison(NamedTuple):
    """Regrets of a method minus a rival's, as shares of the scale, paired by seed.

    Attributes:
        interval: 90 per cent, bootstrap over the seeds.
        not_worse: Whether it stays below 2 per cent; None without a common seed.
    """

    interval: Interval
    not_worse: Verdict | None


def compare_regrets(ours: Mapping[int, float], theirs: Mapping[int, float], scale: float = 1.0) -> Comparison:
    """Two methods on the seeds that both have.

    >>> compare_regrets({1: 0.3, 2: 0.1}, {2: 0.1, 1: 0.2, 3: 0.0}).interval.mean.__round__(3)
    0.05
    >>> compare_regrets({1: 0.3}, {}).not_worse is None
    True
    """
    found = np.array([(ours[seed] - theirs[seed]) / scale for seed in sorted(ours.keys() & theirs.keys())])
    interval = bootstrap_interval(found)
    return Comparison(interval, judge_not_worse(interval, NOT_WORSE, seeds=len(found)) if len(found) else None)


def as_word(verdict: Verdict | None) -> str:
    """A cell of a table."""
    return {Verdict.HOLDS: "yes", Verdict.FAILS: "no", Verdict.OPEN: "not decided", None: "-"}[verdict]


def bar(met: bool, complete: bool, words: str, *, except_on: Sequence[str] = ()) -> str:
    """A line that says whether a bar is met, and where it is not.

    >>> bar(False, False, "feasible in 3 of 4 runs", except_on=["g06"])
    '- **missed** so far, runs are missing: feasible in 3 of 4 runs (not so: g06)'
    """
    missing = "" if complete else " so far, runs are missing"
    ending = f" (not so: {', '.join(except_on)})" if except_on else ""
    return f"- **{'met' if met else 'missed'}**{missing}: {words}{ending}"


def not_worse_bar(verdicts: Mapping[str, Verdict | None], complete: bool, opening: str = "") -> str:
    """The bar on being not worse on any problem; names those where this is not shown."""
    behind = [name for name, verdict in verdicts.items() if verdict is not Verdict.HOLDS]
    words = f"{opening}not worse than the rival on {len(verdicts) - len(behind)} of {len(verdicts)} problems"
    return bar(not behind, complete, words, except_on=behind)
