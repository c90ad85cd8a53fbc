"""The judges by name, all of one shape: problems, contestants, seeds and a report."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, final

from eign_lab.judge.bbob import contestants as bbob
from eign_lab.judge.bbob.report import write_report
from eign_lab.judge.bbob.suite import INSTANCES, TASKS
from eign_lab.judge.cases import CASES
from eign_lab.judge.constrained import cases as constrained
from eign_lab.judge.constrained import contestants as constrained_contestants
from eign_lab.judge.constrained.report import write_report as write_constrained
from eign_lab.judge.contestants import SETS
from eign_lab.judge.many import cases as many
from eign_lab.judge.many import contestants as many_contestants
from eign_lab.judge.many.report import write_report as write_many
from eign_lab.judge.report_cards import SEEDS, write_report_card
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec
from eign_lab.runs.store import Records


class JudgedProblem(Protocol):
    """A problem of a judge: its number of coordinates, the group it belongs to, and how an experiment takes it."""

    @property
    def dim(self) -> int: ...  # noqa: D102
    @property
    def group(self) -> int: ...  # noqa: D102
    @property
    def spec(self) -> ProblemSpec: ...  # noqa: D102


@final
@dataclass(frozen=True)
class Suite:
    """A judge.

    Attributes:
        name: Of the suite, and of the directory with its results.
        problems: By name.
        seeds: Of the runs that are scored: "report" and "tuning".
        sets: Contestants by the name of a set; "rivals" has all.
        write: Makes the report of a method on "report" or "tuning" seeds in a directory.
    """

    name: str
    problems: Mapping[str, JudgedProblem]
    seeds: Mapping[str, range]
    sets: Mapping[str, Sequence[MethodSpec]]
    write: Callable[[Records, MethodSpec, str, Path], str]

    def find(self, names: Iterable[str]) -> list[MethodSpec]:
        """Contestants by their labels or sets of them, or any registered method.

        >>> [method.method for method in SUITES["auto"].find(["l-bfgs", "ei-xi"])]
        ['scipy/l-bfgs-b', 'ei-xi']
        """
        known = {method.label: method for method in self.sets["rivals"]}
        return [method for name in names for method in self.sets.get(name, (known.get(name, MethodSpec(name, name)),))]

    def experiment(
        self,
        methods: Sequence[MethodSpec],
        *,
        names: Collection[str] = (),
        groups: Collection[int] = (),
        dimensions: Collection[int] = (),
    ) -> Experiment:
        """Methods on all problems, or on those of these names, groups and dimensions."""
        if unknown := [name for name in names if name not in self.problems]:
            raise ValueError(f"{self.name} has no problem {unknown[0]!r}; expected some of {', '.join(self.problems)}")
        chosen = [
            problem
            for name, problem in self.problems.items()
            if (not names or name in names)
            and (not groups or problem.group in groups)
            and (not dimensions or problem.dim in dimensions)
        ]
        title = f"The judge {self.name}"
        return Experiment("judge", title, tuple(problem.spec for problem in chosen), tuple(methods))


SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite("auto", CASES, SEEDS, SETS, write_report_card),
        Suite("bbob", TASKS, INSTANCES, bbob.SETS, write_report),
        Suite("constrained", constrained.CASES, constrained.SEEDS, constrained_contestants.SETS, write_constrained),
        Suite("many", many.CASES, many.SEEDS, many_contestants.SETS, write_many),
    )
}
