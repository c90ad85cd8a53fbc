"""Sentences that the page and the text of a report share."""

from collections import Counter
from typing import Final

from eign_lab.papers.ei_gn.judgements import JudgedClaim
from eign_lab.papers.ei_gn.report import Report
from eign_lab.runs.outcomes import ExperimentOutcome
from eign_lab.statistics import LEVEL, SIMILAR, Verdict, seeds_needed

TITLE: Final = "Stationarity-aware expected improvement: what the runs say"
TRIAL: Final = (
    "These are trial runs with a handful of evaluations (eign paper --quick). They show that everything works, and "
    "decide nothing."
)
RULE: Final = (
    f"“Better” is a paired Wilcoxon test over seeds at the stated number of evaluations, p < {LEVEL:g} after Holm over "
    f"the tests of the experiment. “Similar” is a 90 % interval of the mean paired difference within {SIMILAR:.0%} of "
    "the gain from the median of the initial designs' best to the optimum (where that is not known: to the best value "
    "seen). What is claimed to be better and is found to be worse, or similar although there are seeds enough for a "
    "test, does not hold. A claim with several parts holds if all do, and does not hold if one does not. With fewer "
    f"than {seeds_needed(1)} seeds no paired test can be significant, and with many tests it takes more."
)


def tally(claims: tuple[JudgedClaim, ...]) -> str:
    """How many claims hold, do not hold and are not decided."""
    counts = Counter(judged.judgement.verdict for judged in claims)
    return (
        f"Of {len(claims)} claims {counts[Verdict.HOLDS]} hold, {counts[Verdict.FAILS]} do not hold, and "
        f"{counts[Verdict.OPEN]} are not decided."
    )


def count_of_seeds(count: int) -> str:
    """In words, with the plural that it needs."""
    return "1 seed" if count == 1 else f"{count} seeds"


def seeds_text(outcome: ExperimentOutcome) -> str:
    """How many seeds there are, and how long they took."""
    if outcome.is_empty:
        return f"There are no runs yet: eign paper {outcome.experiment.id}"
    counts = {len(runs.seeds) for problem in outcome.problems.values() for runs in problem.runs.values()}
    least, most = min(counts), max(counts)
    seeds = f"{least} to {most} seeds" if least < most else count_of_seeds(most)
    return f"{seeds}; proposing points took {60 * outcome.hours:.3g} minutes of one core"


def footer(report: Report) -> str:
    """When, with what, and how long."""
    return f"{report.made}. Proposing points took {report.hours:.2g} hours of one core for the runs shown."
