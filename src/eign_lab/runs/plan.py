"""Which runs there are to do, in which order, and how long they will take."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from eign.strategies import strategy
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec, RunSpec, find_program
from eign_lab.runs.run_log import Goal

# Seconds of a proposal from a Gaussian process, and for each point of it half as many more; rough, and good for
# proportions until runs have been measured.
_PER_PROPOSAL: Final = 0.04
_PER_POINT: Final = 1.2e-4


@final
@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run to do.

    Attributes:
        run: What it depends on.
        goal: When it is finished.
        title: For a line in the terminal.
        nominal: Seconds it may take, roughly.
    """

    run: RunSpec
    goal: Goal
    title: str
    nominal: float


def plan_runs(experiments: Sequence[Experiment], seeds: Iterable[int]) -> list[PlannedRun]:
    """All runs of the experiments, each once with the largest goal asked for.

    Seed after seed, and within a seed cheap experiments first, so that results are balanced whenever it is stopped.
    """
    cheap_first = sorted(experiments, key=lambda experiment: sum(nominal_seconds(*pair) for pair in experiment.pairs()))
    planned: dict[str, PlannedRun] = {}
    for seed in seeds:
        for experiment in cheap_first:
            for problem, method in experiment.pairs():
                run = experiment.run(problem, method, seed)
                title = f"{experiment.id}  {problem.label}  {method.label}  seed {seed}"
                new = PlannedRun(run, problem.goal, title, nominal_seconds(problem, method))
                known = planned.setdefault(run.key, new)
                if known.goal != new.goal:
                    goal = _larger(known.goal, new.goal)
                    planned[run.key] = replace(known, goal=goal, nominal=max(known.nominal, new.nominal))
    return list(planned.values())


def _larger(first: Goal, second: Goal) -> Goal:
    """A goal that is reached only when both are."""
    if first.target is None or second.target is None:
        return Goal(max(first.budget, second.budget))
    return Goal(max(first.budget, second.budget), max(first.target, second.target))


def nominal_seconds(problem: ProblemSpec, method: MethodSpec) -> float:
    """What a run may take: a surrogate costs by the number of points, and more with gradients; all else is cheap."""
    known = {} if find_program(method.method) else strategy(method.method).options
    if "kernel" not in known:
        return 0.01 * problem.budget
    weight = (2.5 if "alpha" in known else 1.0) * (2.0 if "rows" in known else 1.0)
    return _PER_PROPOSAL * problem.budget + _PER_POINT * weight * problem.budget**2


@final
@dataclass(slots=True)
class _Measured:
    """What runs of one kind have taken: seconds, for so many nominal seconds and so many whole runs."""

    seconds: float = 0.0
    nominal: float = 0.0
    runs: float = 0.0


@final
class Clock:
    """Estimates the time left from what runs have taken so far.

    A run costs what runs of the same problem and method did. Where there is none yet, it costs its nominal time, times
    how far nominal times were wrong so far.
    """

    def __init__(self, planned: Sequence[PlannedRun], done: Mapping[str, int]) -> None:
        """Of these runs, with the number of evaluations that each has already, which is the budget if it is done."""
        self._planned = {each.run.key: each for each in planned}
        # Hashes, which thousands of runs would otherwise make anew after each.
        self._kind = {key: replace(each.run, seed=0).key for key, each in self._planned.items()}
        self._share = {key: self._share_of(key, done.get(key, 0)) for key in self._planned}
        self._measured: defaultdict[str, _Measured] = defaultdict(_Measured)

    def advance(self, key: str, evaluations: int, seconds: float) -> None:
        """A task of this run came back with so many evaluations in all, after so many seconds."""
        share = self._share_of(key, evaluations)
        gained, self._share[key] = share - self._share[key], share
        measured = self._measured[self._kind[key]]
        measured.seconds += seconds
        measured.runs += gained
        measured.nominal += gained * self._planned[key].nominal

    def drop(self, key: str) -> None:
        """This run takes no more time."""
        self._share[key] = 1.0

    @property
    def share(self) -> float:
        """Of the work that is done, between 0 and 1."""
        total = sum(self._expected(key) for key in self._planned)
        done = sum(self._expected(key) * share for key, share in self._share.items())
        return done / total if total else 1.0

    def left(self, workers: int) -> float | None:
        """Seconds, or None before anything has been measured."""
        if not self._measured:
            return None
        work = [self._expected(key) * (1.0 - share) for key, share in self._share.items()]
        return max(sum(work) / workers, max(work, default=0.0))

    def _expected(self, key: str) -> float:
        """Seconds of the whole run."""
        same = self._measured.get(self._kind[key], _Measured())
        if same.runs > 0.0:
            return same.seconds / same.runs
        nominal = sum(each.nominal for each in self._measured.values())
        seconds = sum(each.seconds for each in self._measured.values())
        return self._planned[key].nominal * (seconds / nominal if nominal > 0.0 else 1.0)

    def _share_of(self, key: str, evaluations: int) -> float:
        """Share of a run's work in its first evaluations: proposals get dearer as the data grow."""
        return float(min(1.0, evaluations / self._planned[key].goal.budget) ** 2)
