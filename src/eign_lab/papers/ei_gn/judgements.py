"""Which claims hold: paired tests with Holm's correction within an experiment, and intervals for what is alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from eign.arrays import Array
from eign_lab.papers.ei_gn.claims import CLAIMS, Claim, Part, Relation
from eign_lab.runs.outcomes import ExperimentOutcome, MethodRuns, ProblemOutcome
from eign_lab.statistics import (
    Verdict,
    combined,
    evaluations_to_target,
    holm,
    judge_better,
    judge_similar,
    paired_interval,
    paired_wilcoxon,
    seeds_needed,
)

Outcomes = Mapping[str, ExperimentOutcome]
"""By the id of the experiment."""


@final
@dataclass(frozen=True, slots=True)
class Judgement:
    """What is decided about a claim, or about a part of it.

    Attributes:
        verdict: The decision.
        numbers: What it rests on, in words.
        seeds: How many seeds could be paired; 0 where seeds play no role.
    """

    verdict: Verdict
    numbers: str
    seeds: int = 0


@final
@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim, the decision and those about its parts."""

    claim: Claim
    judgement: Judgement
    parts: tuple[tuple[Part, Judgement], ...] = ()


class SeedPairs(NamedTuple):
    """Results of two methods with the same seeds `n` each, larger is better, and what counts as a small difference."""

    first: Array
    second: Array
    margin: float
    evaluations: int


def judge_claims(
    outcomes: Outcomes, measured: Mapping[str, Judgement], claims: Sequence[Claim] = CLAIMS
) -> list[JudgedClaim]:
    """All claims, from as many runs as there are.

    Args:
        outcomes: Of the experiments.
        measured: Decisions about claims that do not rest on runs, by name.
        claims: In their order.
    """
    adjusted = _adjusted_p_values(outcomes, claims)
    judged = []
    for claim in claims:
        if claim.measured:
            unknown = Judgement(Verdict.OPEN, "not measured")
            judged.append(JudgedClaim(claim, measured.get(claim.measured, unknown)))
            continue
        parts = tuple((part, _judge(part, outcomes, adjusted)) for part in claim.parts)
        judged.append(JudgedClaim(claim, _summary([judgement for _, judgement in parts]), parts))
    return judged


def _summary(parts: Sequence[Judgement]) -> Judgement:
    plural = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.OPEN: "not decided"}
    counts = {verdict: sum(part.verdict is verdict for part in parts) for verdict in Verdict}
    listed = ", ".join(f"{count} {plural[verdict]}" for verdict, count in counts.items() if count)
    numbers = parts[0].numbers if len(parts) == 1 else f"{len(parts)} parts: {listed}"
    return Judgement(combined([part.verdict for part in parts]), numbers, min(part.seeds for part in parts))


def _adjusted_p_values(outcomes: Outcomes, claims: Sequence[Claim]) -> dict[Part, float]:
    """Holm over all tests of an experiment; one that cannot be made yet counts as p = 1, so that none is left out."""
    tests = list(dict.fromkeys(part for claim in claims for part in claim.parts if part.is_test))
    adjusted: dict[Part, float] = {}
    for experiment in dict.fromkeys(part.experiment for part in tests):
        family = [part for part in tests if part.experiment == experiment]
        found = [_pairs(part, outcomes) for part in family]
        p_values = [1.0 if pairs is None else paired_wilcoxon(pairs.first, pairs.second) for pairs in found]
        adjusted |= dict(zip(family, holm(p_values).tolist(), strict=True))
    return adjusted


def _judge(part: Part, outcomes: Outcomes, adjusted: Mapping[Part, float]) -> Judgement:
    pairs = _pairs(part, outcomes)
    if pairs is None:
        return Judgement(Verdict.OPEN, "no paired runs that have come so far")
    n = len(pairs.first)
    interval = paired_interval(pairs.first, pairs.second)
    what = f"at {pairs.evaluations}: difference {interval.mean:.3g}"
    between = f"90 % interval {interval.low:.3g} to {interval.high:.3g}, {_seeds(n)}"
    if not part.is_test:
        verdict = judge_similar(interval, pairs.margin)
        return Judgement(verdict, f"{what}, {between}, small is up to {pairs.margin:.3g}", n)
    p = adjusted[part]
    verdict = judge_better(pairs.first, pairs.second, p)
    numbers = f"{what}, {between}, p = {p:.2g} after Holm"
    is_small = part.relation is Relation.BETTER and judge_similar(interval, pairs.margin) is Verdict.HOLDS
    if is_small:
        numbers += f"; a small difference (up to {pairs.margin:.3g})"
    needed = seeds_needed(sum(other.experiment == part.experiment for other in adjusted))
    if verdict is Verdict.OPEN and n < needed:
        numbers += f"; no test can decide with fewer than {needed} seeds"
    elif verdict is Verdict.OPEN and is_small:
        verdict = Verdict.FAILS  # what was claimed to be better could have been found to be, and is similar
    return Judgement(verdict, numbers, n)


def _seeds(n: int) -> str:
    return f"{n} seed" if n == 1 else f"{n} seeds"


def _pairs(part: Part, outcomes: Outcomes) -> SeedPairs | None:
    """What the part compares, of the seeds that both methods have; None if there are none."""
    outcome = outcomes.get(part.experiment)
    problem = None if outcome is None else outcome.problems.get(part.problem)
    if problem is None or part.first not in problem.runs:
        return None
    evaluations = part.evaluations or problem.spec.budget
    first = problem.runs[part.first]
    if part.relation is Relation.NEAR:
        values = np.array(list(first.at(evaluations).values()))
        second_values = np.full(len(values), problem.reference)
        return SeedPairs(values, second_values, problem.margin, evaluations) if len(values) else None
    second = _second_runs(part, outcomes, problem)
    if second is None:
        return None
    values, second_values = _SAMPLES[part.relation](first, second, evaluations)
    return SeedPairs(values, second_values, problem.margin, evaluations) if len(values) else None


def _second_runs(part: Part, outcomes: Outcomes, problem: ProblemOutcome) -> MethodRuns | None:
    if not part.second_experiment:
        return problem.runs.get(part.second)
    elsewhere = outcomes.get(part.second_experiment)
    other = None if elsewhere is None else elsewhere.problems.get(part.problem)
    return None if other is None else other.runs.get(part.second)


def _values(first: MethodRuns, second: MethodRuns, evaluations: int) -> tuple[Array, Array]:
    """The best values of the common seeds."""
    mine, theirs = first.at(evaluations), second.at(evaluations)
    common = [seed for seed in mine if seed in theirs]
    return np.array([mine[seed] for seed in common]), np.array([theirs[seed] for seed in common])


def _steadiness(first: MethodRuns, second: MethodRuns, evaluations: int) -> tuple[Array, Array]:
    """Minus the distances of the best values from their median."""
    mine, theirs = _values(first, second, evaluations)
    if not len(mine):
        return mine, theirs
    return -np.abs(mine - np.median(mine)), -np.abs(theirs - np.median(theirs))


def _haste(first: MethodRuns, second: MethodRuns, evaluations: int) -> tuple[Array, Array]:
    """Minus the evaluations until the second method's last best value, or one more than there were."""
    targets = second.at(evaluations)
    common = [seed for seed in first.at(evaluations) if seed in targets]
    counts = [
        [
            min(float(evaluations_to_target(runs.best[[runs.seeds.index(seed)]], targets[seed])[0]), evaluations + 1.0)
            for seed in common
        ]
        for runs in (first, second)
    ]
    return -np.array(counts[0]), -np.array(counts[1])


_SAMPLES: Final[Mapping[Relation, Callable[[MethodRuns, MethodRuns, int], tuple[Array, Array]]]] = {
    Relation.BETTER: _values,
    Relation.SIMILAR: _values,
    Relation.STEADIER: _steadiness,
    Relation.FASTER: _haste,
}
