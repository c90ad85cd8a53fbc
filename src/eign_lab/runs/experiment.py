"""Experiments as data: problems, methods and budgets, and the runs that follow from them.

A run is known by its key: a hash of the problem, the method and all their settings, and the seed. Experiments that ask
for the same run share it, and a changed setting gives another run. The budget is not part of it: no method looks at
it, so that a longer run begins as the shorter one.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, final

from eign.strategies import strategy
from eign_lab.rivals import PROGRAM_OPTIONS, PROGRAMS, Program
from eign_lab.runs.plugins import load_function
from eign_lab.runs.posed_problem import PosedProblem, pose, wrapped_name
from eign_lab.runs.run_log import Goal

FIRST_VERSION: Final = 2
"""Of runs that do not say which version they are."""


@final
@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """A problem, and how it is searched whatever the method.

    Attributes:
        name: As its source knows it.
        initial: Points of the initial design, the same for every method of a seed; None leaves it to the method.
        budget: Evaluations in all, the initial ones included.
        options: Keyword arguments of the source, and wrappers by name, see `eign_lab.runs.posed_problem.pose`.
        source: A function "package.module:function" that makes the problem; empty is `eign.problems.get`.
        seeded: Whether the problem takes the seed of the run, as those with random rollouts.
        design: A function "package.module:function" that makes points `n x d` in user units of the problem's name and
            the seed: every run is told them first, in place of an initial design. Empty is none.
        target: A best value at which a run ends before its budget; None is never.
        restarts: Local searches of an acquisition; None is the method's default.
        raw_samples: Candidates they start from; None is the method's default.
        surrogate: Further options for every method that has them, such as the kernel.
        checkpoints: Numbers of evaluations at which results are tabulated.
        label: What reports call it; made from name and wrappers if empty.
    """

    name: str
    initial: int | None
    budget: int
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    seeded: bool = False
    design: str = ""
    target: float | None = None
    restarts: int | None = None
    raw_samples: int | None = None
    surrogate: Mapping[str, Any] = field(default_factory=dict)
    checkpoints: tuple[int, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if self.budget < 1 or not 1 <= (1 if self.initial is None else self.initial) <= self.budget:
            raise ValueError(f"{self.name}: initial = {self.initial} is not between 1 and budget = {self.budget}")
        beyond = [point for point in self.checkpoints if not 1 <= point <= self.budget]
        if beyond:
            raise ValueError(f"{self.name}: checkpoints {beyond} are not between 1 and budget = {self.budget}")
        object.__setattr__(self, "checkpoints", tuple(self.checkpoints) or (self.budget,))
        object.__setattr__(self, "label", self.label or wrapped_name(self.name, self.options))

    @property
    def goal(self) -> Goal:
        """When a run is finished."""
        return Goal(self.budget, self.target)

    def posed(self, seed: int) -> PosedProblem:
        """The problem itself, as a run of this seed sees it."""
        posed: PosedProblem = pose(self.name, self.options, source=self.source, seed=seed if self.seeded else None)
        return posed


@final
@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method with its settings.

    Attributes:
        label: What reports call it.
        method: One of `eign.methods()`, or another program, see `eign_lab.rivals`.
        options: Of the method; they win over those of the problem.
    """

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class RunSpec:
    """All that the points of a run depend on, as plain data; how long it is, says its `Goal`.

    Attributes:
        problem, source, problem_options, seeded, design: See `ProblemSpec`.
        method, options: See `MethodSpec`.
        seed: Of the study.
        quick: Whether it is a trial of the machinery; such a run never counts as a result.
        version: See `Experiment`.
    """

    problem: str
    method: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    problem_options: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    seeded: bool = False
    design: str = ""
    quick: bool = False
    version: int = FIRST_VERSION

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits, the same whenever all settings are."""
        settings = json.dumps(asdict(self), sort_keys=True, allow_nan=False)
        return hashlib.sha256(settings.encode()).hexdigest()[:16]


@final
@dataclass(frozen=True, slots=True)
class Experiment:
    """Problems times methods.

    Attributes:
        id: A short name, as the terminal takes it and files are called: letters, digits, `-`, `_` and `.`.
        title: One line.
        problems: With different labels.
        methods: With different labels.
        extra: Whether it goes beyond the paper's experiments; such ones run only when they are named.
        quick: Whether its runs are trials of the machinery, see `quick_version`.
        version: Part of every key. Raise it when the same settings give other runs, so that old results are not taken
            for new.
    """

    id: str
    title: str
    problems: tuple[ProblemSpec, ...]
    methods: tuple[MethodSpec, ...]
    extra: bool = False
    quick: bool = False
    version: int = FIRST_VERSION

    def __post_init__(self) -> None:
        # Figures are written under this name: with `../` in it they would be elsewhere.
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", self.id):
            raise ValueError(f"id = {self.id!r}: expected letters, digits, '-', '_' and '.', as in a file's name")
        for kind, specs in (("problem", self.problems), ("method", self.methods)):
            if not specs:
                raise ValueError(f"experiment {self.id!r} has no {kind}")
            labels = [spec.label for spec in specs]
            twice = sorted({label for label in labels if labels.count(label) > 1})
            if twice:
                raise ValueError(f"experiment {self.id!r}: two {kind}s have the label {twice[0]!r}; give them others")

    def run(self, problem: ProblemSpec, method: MethodSpec, seed: int) -> RunSpec:
        """The run of one problem, method and seed."""
        options = run_options(problem, method)
        given = (problem.options, problem.source, problem.seeded, problem.design)
        return RunSpec(problem.name, method.method, seed, options, *given, self.quick, self.version)

    def pairs(self) -> Iterator[tuple[ProblemSpec, MethodSpec]]:
        """Every problem with every method."""
        return ((problem, method) for problem in self.problems for method in self.methods)


def run_options(problem: ProblemSpec, method: MethodSpec) -> dict[str, Any]:
    """The options of a method on a problem: what the problem says, as far as the method has it, and its own.

    What the problem says of the surrogate belongs together: a method gets all of it, or nothing.

    >>> shekel = ProblemSpec("shekel-4", 12, 125, restarts=8, raw_samples=256)
    >>> run_options(shekel, MethodSpec("CMA-ES", "cma-es", {"sigma0": 0.2}))
    {'n_init': 12, 'sigma0': 0.2}
    """
    search = {"n_init": problem.initial, "restarts": problem.restarts, "raw_samples": problem.raw_samples}
    is_program = find_program(method.method) is not None
    known = PROGRAM_OPTIONS.get(method.method, ()) if is_program else strategy(method.method).options
    surrogate = problem.surrogate if set(problem.surrogate) <= set(known) else {}
    shared = {name: value for name, value in {**search, **surrogate}.items() if name in known}
    return {**{name: value for name, value in shared.items() if value is not None}, **method.options}


def find_program(method: str) -> Program | None:
    """The program of a name, see `eign_lab.rivals`; None if it is a registered method.

    >>> find_program("scipy/basin-hopping") is not None, find_program("ei-gn")
    (True, None)

    Raises:
        ValueError: there is no such program.
    """
    if ":" in method:
        return load_function(method)
    if "/" in method and method not in PROGRAMS:
        raise ValueError(f"there is no program {method!r}; expected one of {', '.join(PROGRAMS)}")
    return PROGRAMS.get(method)


def without_methods(experiment: Experiment, labels: Collection[str]) -> Experiment:
    """The same without the methods of these labels, which it need not have."""
    return replace(experiment, methods=tuple(method for method in experiment.methods if method.label not in labels))


def quick_version(experiment: Experiment, *, evaluations: int = 2) -> Experiment:
    """The same problems and methods with hardly any work: a few points, and a few evaluations after them.

    Extra experiments have new methods on the problems of the others: of those, two are enough.
    """
    problems = tuple(
        replace(problem, initial=4, budget=4 + evaluations, restarts=2, raw_samples=32, checkpoints=())
        for problem in experiment.problems[: 2 if experiment.extra else None]
    )
    return replace(experiment, problems=problems, quick=True)
