"""The problem of a run: registered, wrapped or from a function elsewhere; as the run sees it and as it truly is."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from eign import Optimizer, problems
from eign.arrays import Array
from eign.problems import Problem
from eign_lab.rivals import CountedProblem
from eign_lab.rivals.counted import Record
from eign_lab.runs.plugins import load_function

MOVES: Final = ("shifted", "rotated", "mirrored", "scaled")
DISTURBANCES: Final = ("noisy", "without_gradients", "dropped_gradients")
WRAPPERS: Final = (*MOVES, *DISTURBANCES)
"""Changes to a problem that options may name; they are applied in this order."""


class Answer(NamedTuple):
    """An evaluation of a run.

    Attributes:
        told: What `Optimizer.tell` takes beside the point.
        value: What was observed, to be maximised; NaN where it counts as nothing.
    """

    told: dict[str, Any]
    value: float


class Counted(Protocol):
    """What a program evaluates."""

    is_over: bool


class Posed(Protocol):
    """What a run talks to: it begins a study, answers what the study asks, and can be given to a program."""

    @property
    def dim(self) -> int:
        """Number of coordinates."""

    def begin(self, method: str, seed: int, options: Mapping[str, Any]) -> Optimizer:
        """The optimizer that a user would get with these settings."""

    def answer(self, x: Array) -> Answer:
        """The evaluation of a point in user units."""

    def true_value(self, x: Array, observed: float) -> float:
        """The value without noise at a point where so much was observed."""

    def counted(self, record: Record, *, seed: int, budget: int, options: Mapping[str, Any]) -> Counted:
        """The problem as a program sees it, which tells `record` each evaluation."""


class PosedProblem(NamedTuple):
    """A problem as a run sees it, without noise and gaps, which is what the run is judged by, and the budget it knows.

    None is a run that knows none, so that a longer one begins as a shorter one.
    """

    seen: Problem
    true: Problem
    budget: int | None = None

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.seen.dim

    def begin(self, method: str, seed: int, options: Mapping[str, Any]) -> Optimizer:
        """The optimizer that a user would get with these settings."""
        settings: Any = {"maximize": True, "options": options, "check_gradients": False, "budget": self.budget}
        return Optimizer(self.seen.bounds, method=method, seed=seed, **settings)

    def answer(self, x: Array) -> Answer:
        """Value and gradient at a point."""
        value, gradient = self.seen(x)
        return Answer({"y": value, "grad": gradient}, value)

    def counted(self, record: Record, *, seed: int, budget: int, options: Mapping[str, Any]) -> CountedProblem:
        """The problem as a program sees it."""
        return CountedProblem(self.seen, record, seed=seed, budget=budget, options=options)

    def true_value(self, x: Array, observed: float) -> float:
        """The value without noise at a point where so much was observed."""
        return observed if self.seen is self.true else float(self.true.formula(x[None])[0][0])


def pose(name: str, options: Mapping[str, Any], *, source: str = "", seed: int | None = None) -> Any:
    """The problem of a name with its options.

    >>> pose("hartmann-6", {"mirrored": {"coordinates": [0, 2]}}).seen.name
    'mirrored(hartmann-6)'

    Args:
        name: As the source knows it.
        options: Keyword arguments of the source, and `WRAPPERS` by name with their keyword arguments.
        source: A function "package.module:function" that makes a `Problem`, or what is `Posed` already, of the name and
            the options; empty is `eign.problems.get`.
        seed: Given to the source as a keyword argument unless it is None.
    """
    arguments = {key: value for key, value in options.items() if key not in WRAPPERS}
    if seed is not None:
        arguments["seed"] = seed
    made = (load_function(source) if source else problems.get)(name, **arguments)
    if not isinstance(made, Problem):
        return made
    true = made
    for wrapper in MOVES:
        if wrapper in options:
            true = getattr(problems, wrapper)(true, **options[wrapper])
    seen = true
    for wrapper in DISTURBANCES:
        if wrapper in options:
            seen = getattr(problems, wrapper)(seen, **options[wrapper])
    return PosedProblem(seen, true)


def wrapped_name(name: str, options: Mapping[str, Any]) -> str:
    """What reports call it.

    >>> wrapped_name("ackley-3", {"shifted": {"seed": 1}})
    'shifted(ackley-3)'
    """
    for wrapper in WRAPPERS:
        if wrapper in options:
            name = f"{wrapper}({name})"
    return name
