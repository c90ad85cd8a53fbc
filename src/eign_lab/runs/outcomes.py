"""The runs of an experiment as a report needs them: by problem and method, as curves, with what is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from eign.arrays import Array
from eign_lab.runs.experiment import Experiment, ProblemSpec
from eign_lab.runs.run_log import Timing
from eign_lab.runs.store import Records, RunRecord, collect
from eign_lab.statistics import similarity_margin


@final
@dataclass(frozen=True, slots=True, eq=False)
class MethodRuns:
    """The runs of one method on one problem that are compared: see `gather`.

    Attributes:
        seeds: Of the runs.
        best: Best value so far, `runs x evaluations`, as long as the shortest run; NaN before the first value. A run
            that ended at its target stays there.
        timings: Of the proposals of each run.
    """

    seeds: tuple[int, ...]
    best: Array
    timings: tuple[Timing, ...]

    @classmethod
    def of(cls, records: Sequence[RunRecord], budget: int) -> "MethodRuns":
        """The curves of some records, at least one."""
        length = min(budget if record.finished else len(record) for record in records)
        return cls(
            tuple(record.spec.seed for record in records),
            np.stack([record.trace.curve(length) for record in records]),
            tuple(record.timing for record in records),
        )

    @property
    def evaluations(self) -> int:
        """How far all the runs have come."""
        return int(self.best.shape[1])

    @property
    def median_seconds(self) -> float:
        """Of a suggestion: the median of the runs' medians; NaN if nothing was measured."""
        known = [timing.median for timing in self.timings if np.isfinite(timing.median)]
        return float(np.median(known)) if known else np.nan

    def at(self, evaluations: int) -> dict[int, float]:
        """The best value after so many evaluations by seed; empty if they have not come so far."""
        if not 1 <= evaluations <= self.evaluations:
            return {}
        return dict(zip(self.seeds, self.best[:, evaluations - 1].tolist(), strict=True))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProblemOutcome:
    """What the methods found on one problem.

    Attributes:
        spec: The problem.
        optimum: Its maximum, if it is known.
        runs: By the label of the method; methods without a run are left out.
    """

    spec: ProblemSpec
    optimum: float | None
    runs: dict[str, MethodRuns]

    @property
    def reference(self) -> float:
        """The optimum or, where it is not known, the best value that any run has seen; NaN without runs."""
        if self.optimum is not None:
            return self.optimum
        seen = [float(np.nanmax(runs.best[:, -1])) for runs in self.runs.values()]
        return max(seen, default=float("nan"))

    @property
    def initial(self) -> Array:
        """The best values of the initial designs, one a seed: all methods of a seed have the same."""
        by_seed: dict[int, float] = {}
        for runs in self.runs.values():
            by_seed = runs.at(min(self.spec.initial or 1, runs.evaluations)) | by_seed
        return np.array(list(by_seed.values()))

    @property
    def margin(self) -> float:
        """A difference up to this is small; NaN without runs."""
        return similarity_margin(self.reference, self.initial) if self.runs else float("nan")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExperimentOutcome:
    """What an experiment found.

    Attributes:
        experiment: What was asked for.
        problems: By label.
        missing: What is not there, in words.
    """

    experiment: Experiment
    problems: dict[str, ProblemOutcome]
    missing: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no run at all."""
        return not any(problem.runs for problem in self.problems.values())

    @property
    def hours(self) -> float:
        """Spent on proposals, in all runs that are shown."""
        shown = (runs for problem in self.problems.values() for runs in problem.runs.values())
        return float(np.nansum([timing.total for runs in shown for timing in runs.timings])) / 3600.0


def finished_runs(results: Records, experiment: Experiment, seeds: Iterable[int]) -> dict[str, dict[str, MethodRuns]]:
    """All finished runs by the labels of problem and method; methods without one are left out."""
    runs: dict[str, dict[str, MethodRuns]] = {problem.label: {} for problem in experiment.problems}
    budgets = {problem.label: problem.budget for problem in experiment.problems}
    for (problem, method), records in collect(results, experiment, seeds).items():
        if finished := [record for record in records if record.finished]:
            runs[problem][method] = MethodRuns.of(finished, budgets[problem])
    return runs


def gather(results: Records, experiment: Experiment, *, every_seed: bool = False) -> ExperimentOutcome:
    """The outcome of an experiment, from as many of its runs as there are.

    Of each method on each problem those runs are taken that are finished or, if none is, all; and of these the seeds
    that all methods have on that problem, if there is such a seed. Seeds differ more than methods do, so that means
    over different seeds would show differences that are none; and an experiment may share runs with one that has more
    seeds.

    Args:
        results: Where the runs are.
        experiment: Which runs belong to it.
        every_seed: Whether to take all seeds of each method instead, for who compares methods seed by seed.
    """
    found = collect(results, experiment, results.seeds())
    seeds = {record.spec.seed for records in found.values() for record in records}
    missing, problems = [], {}
    for problem in experiment.problems:
        of_problem = [found[problem.label, method.label] for method in experiment.methods]
        common = seeds if every_seed else _common_seeds(of_problem)
        runs: dict[str, MethodRuns] = {}
        gaps: dict[str, list[str]] = {}
        for method in experiment.methods:
            records = found[problem.label, method.label]
            if (shown := _shown(records, common, problem.budget)) is not None:
                runs[method.label] = shown
            for gap in _gaps(problem, records, common or seeds):
                gaps.setdefault(gap, []).append(method.label)
        missing += [f"{problem.label}, {', '.join(methods)}: {gap}" for gap, methods in gaps.items()]
        begun = {record.spec.seed for records in of_problem for record in records}
        if common and (left_out := begun - common):
            words = ", ".join(map(str, sorted(left_out)))
            missing.append(f"{problem.label}: left out, for not all methods have them: seeds {words}")
        problems[problem.label] = ProblemOutcome(problem, _optimum(problem) if runs else None, runs)
    return ExperimentOutcome(experiment, problems, tuple(missing))


def _common_seeds(runs: Iterable[Sequence[RunRecord]]) -> set[int]:
    """The seeds with finished runs wherever there is a finished run at all."""
    finished = [{record.spec.seed for record in records if record.finished} for records in runs]
    return set[int]().union(*finished).intersection(*filter(None, finished))


def _shown(records: Sequence[RunRecord], common: set[int], budget: int) -> MethodRuns | None:
    begun = [record for record in records if len(record)]
    shown = [record for record in begun if record.finished] or begun
    shown = [record for record in shown if record.spec.seed in common] or shown
    return MethodRuns.of(shown, budget) if shown else None


def _gaps(problem: ProblemSpec, records: Sequence[RunRecord], seeds: set[int]) -> list[str]:
    """One line for each kind of thing that is missing from the runs of a method."""
    lines = [f"seed {record.spec.seed} stopped: {record.error}" for record in records if record.error]
    unfinished = [record for record in records if not record.finished and not record.error]
    if unfinished:
        furthest = max(len(record) for record in unfinished)
        count = f"{len(unfinished)} of {len(records)} runs"
        lines.append(f"{count} not finished, the furthest at {furthest} of {problem.budget} evaluations")
    if absent := len(seeds - {record.spec.seed for record in records}):
        lines.append(f"{absent} of {len(seeds)} runs not begun")
    return lines


def _optimum(problem: ProblemSpec) -> float | None:
    return None if problem.seeded else problem.posed(0).true.optimum
