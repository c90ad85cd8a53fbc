"""Which runs there are to do, in which order, and how long they will take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from eign.campaign.spec import Experiment, MethodSpec, ProblemSpec, RunSpec
from eign.strategies import strategy

# Seconds of a proposal for each point that one Gaussian process has seen; good for proportions until runs have been
# measured.
_PER_POINT: Final = 2e-4


@final
@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run to do.

    Attributes:
        run: What it depends on.
        budget: Evaluations in all.
        title: For a line in the terminal.
        nominal: Seconds it may take, roughly.
    """

    run: RunSpec
    budget: int
    title: str
    nominal: float


def plan_runs(experiments: Sequence[Experiment], seeds: Iterable[int]) -> list[PlannedRun]:
    """All runs of the experiments, each once with the largest budget asked for.

    Seed after seed, and within a seed cheap experiments first, so that results are balanced whenever it is stopped.
    """
    cheap_first = sorted(experiments, key=lambda experiment: sum(nominal_seconds(*pair) for pair in experiment.pairs()))
    planned: dict[str, PlannedRun] = {}
    for seed in seeds:
        for experiment in cheap_first:
            for problem, method in experiment.pairs():
                run = experiment.run(problem, method, seed)
                title = f"{experiment.id}  {problem.label}  {method.label}  seed {seed}"
                new = PlannedRun(run, problem.budget, title, nominal_seconds(problem, method))
                known = planned.setdefault(run.key, new)
                if known.budget < new.budget:
                    planned[run.key] = replace(known, budget=new.budget, nominal=new.nominal)
    return list(planned.values())


def nominal_seconds(problem: ProblemSpec, method: MethodSpec) -> float:
    """What a run may take: a surrogate costs by the number of points and coordinates, all else is cheap."""
    known = strategy(method.method).options
    if "kernel" not in known:
        return 0.01 * problem.budget
    dim = int(problem.name.rpartition("-")[2]) if problem.name[-1].isdigit() else 1
    models = 1 + (dim if "rows" in known else 0) + (1 if "alpha" in known else 0)
    return _PER_POINT * problem.budget**2 * float(dim**0.5) * models + 0.02 * problem.budget


@final
class Clock:
    """Estimates the time left from what runs have taken so far.

    A run costs what runs of the same problem and method did, and where there is none yet, its nominal time corrected by
    how wrong nominal times were so far.
    """

    def __init__(self, planned: Sequence[PlannedRun], done: Mapping[str, int]) -> None:
        """Of these runs, with the number of evaluations that each has already."""
        self._planned = {each.run.key: each for each in planned}
        self._done = {key: min(done.get(key, 0), each.budget) for key, each in self._planned.items()}
        self._share = {key: self._of(key, count) for key, count in self._done.items()}
        self._seconds: dict[tuple[str, str], float] = {}
        self._shares: dict[tuple[str, str], float] = {}
        self._nominal: dict[tuple[str, str], float] = {}

    def advance(self, key: str, evaluations: int, seconds: float) -> None:
        """A task of this run came back with so many evaluations in all, after so many seconds."""
        kind, share = self._kind(key), self._of(key, evaluations)
        gained = share - self._share[key]
        self._share[key], self._done[key] = share, evaluations
        for total, gain in ((self._seconds, seconds), (self._shares, gained)):
            total[kind] = total.get(kind, 0.0) + gain
        self._nominal[kind] = self._nominal.get(kind, 0.0) + gained * self._planned[key].nominal

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
        if not self._seconds:
            return None
        work = [self._expected(key) * (1.0 - share) for key, share in self._share.items()]
        return max(sum(work) / workers, max(work, default=0.0))

    def _expected(self, key: str) -> float:
        kind, nominal = self._kind(key), self._planned[key].nominal
        if self._shares.get(kind, 0.0) > 0.0:
            return self._seconds[kind] / self._shares[kind]
        known = sum(self._nominal.values())
        return nominal * (sum(self._seconds.values()) / known if known > 0.0 else 1.0)

    def _kind(self, key: str) -> tuple[str, str]:
        run = self._planned[key].run
        return run.problem, f"{run.method} {sorted(run.options.items(), key=str)}"

    def _of(self, key: str, evaluations: int) -> float:
        """Share of a run's work in its first evaluations: proposals get dearer as the data grow."""
        return float((evaluations / self._planned[key].budget) ** 2)
