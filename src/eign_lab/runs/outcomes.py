"""The runs of an experiment as a report needs them: by problem and method, as curves, with what is missing."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np

from eign.arrays import Array
from eign.plot.runs import best_so_far
from eign_lab.runs.experiment import Experiment, ProblemSpec, build_problem
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.store import Results, RunRecord
from eign_lab.statistics import similarity_margin

AnyResults = Results | ExportedResults


@final
@dataclass(frozen=True, slots=True, eq=False)
class MethodRuns:
    """The runs of one method on one problem that are compared: see `gather`.

    Attributes:
        seeds: Of the runs.
        best: Best value so far, `runs x evaluations`, as long as the shortest run; NaN before the first value.
        seconds: Spent on each proposal, `runs x evaluations`; NaN in the initial design.
        complete: Whether they are finished.
    """

    seeds: tuple[int, ...]
    best: Array
    seconds: Array
    complete: bool

    @property
    def evaluations(self) -> int:
        """How far all the runs have come."""
        return int(self.best.shape[1])

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
            by_seed = runs.at(min(self.spec.initial, runs.evaluations)) | by_seed
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
        times = (runs.seconds for problem in self.problems.values() for runs in problem.runs.values())
        return float(sum(np.nansum(seconds) for seconds in times)) / 3600.0

    @property
    def seeds(self) -> list[int]:
        """Of all runs."""
        return sorted({seed for p in self.problems.values() for runs in p.runs.values() for seed in runs.seeds})


def gather(results: AnyResults, experiment: Experiment, *, every_seed: bool = False) -> ExperimentOutcome:
    """The outcome of an experiment, from as many of its runs as there are.

    Of each method on each problem those runs are taken that are finished or, if none is, all; and of these the seeds
    that all have, if there is such a seed. Seeds differ more than methods do, so that means over different seeds would
    show differences that are none; and an experiment may share runs with one that has more seeds.

    Args:
        results: Where the runs are.
        experiment: Which runs belong to it.
        every_seed: Whether to take all seeds of each method instead, for who compares methods seed by seed.
    """
    found = results.records(experiment, known_seeds(results))
    seeds = {record.seed for records in found.values() for record in records}
    common = seeds if every_seed else _common_seeds(found.values())
    missing, problems = [], {}
    for problem in experiment.problems:
        runs: dict[str, MethodRuns] = {}
        gaps: dict[str, list[str]] = {}
        for method in experiment.methods:
            records = found[problem.label, method.label]
            if (shown := _shown(records, common)) is not None:
                runs[method.label] = shown
            for gap in _gaps(problem, records, common or seeds):
                gaps.setdefault(gap, []).append(method.label)
        missing += [f"{problem.label}, {', '.join(methods)}: {gap}" for gap, methods in gaps.items()]
        problems[problem.label] = ProblemOutcome(problem, _optimum(problem) if runs else None, runs)
    if common and seeds - common:
        missing.append(f"left out, for not all runs have them: seeds {', '.join(map(str, sorted(seeds - common)))}")
    return ExperimentOutcome(experiment, problems, tuple(missing))


def known_seeds(results: AnyResults) -> list[int]:
    """The seeds of all runs in a file."""
    if isinstance(results, Results):
        return sorted({spec.seed for spec in results.specs()})
    return sorted({record.seed for record in results.by_key.values()})


def _common_seeds(runs: Iterable[Sequence[RunRecord]]) -> set[int]:
    """The seeds with finished runs wherever there is a finished run at all."""
    finished = [{record.seed for record in records if record.finished} for records in runs]
    return set[int]().union(*finished).intersection(*filter(None, finished))


def _shown(records: Sequence[RunRecord], common: set[int]) -> MethodRuns | None:
    begun = [record for record in records if len(record)]
    finished = [record for record in begun if record.finished]
    shown = finished or begun
    shown = [record for record in shown if record.seed in common] or shown
    if not shown:
        return None
    length = min(len(record) for record in shown)
    values = np.stack([np.where(np.isfinite(record.y), record.y, np.nan)[:length] for record in shown])
    return MethodRuns(
        tuple(record.seed for record in shown),
        best_so_far(values, maximize=True),
        np.stack([record.seconds[:length] for record in shown]),
        bool(finished),
    )


def _gaps(problem: ProblemSpec, records: Sequence[RunRecord], seeds: set[int]) -> list[str]:
    """One line for each kind of thing that is missing from the runs of a method."""
    lines = [f"seed {record.seed} stopped: {record.error}" for record in records if record.error]
    unfinished = [record for record in records if not record.finished and not record.error]
    if unfinished:
        furthest = max(len(record) for record in unfinished)
        count = f"{len(unfinished)} of {len(records)} runs"
        lines.append(f"{count} not finished, the furthest at {furthest} of {problem.budget} evaluations")
    if absent := len(seeds - {record.seed for record in records}):
        lines.append(f"{absent} of {len(seeds)} runs not begun")
    return lines


def _optimum(problem: ProblemSpec) -> float | None:
    return None if problem.seeded else _known_optimum(problem.name, json.dumps(dict(problem.options), sort_keys=True))


@cache
def _known_optimum(name: str, options: str) -> float | None:
    """Of a problem; its options are JSON because a dict is no key."""
    return build_problem(name, json.loads(options)).optimum
