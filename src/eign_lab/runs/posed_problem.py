"""The problem of a run: registered, wrapped or from a function elsewhere; as the run sees it and as it truly is."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from eign import problems
from eign.arrays import Array
from eign.problems import Problem
from eign_lab.runs.plugins import load_function

MOVES: Final = ("shifted", "rotated", "mirrored", "scaled")
DISTURBANCES: Final = ("noisy", "without_gradients", "dropped_gradients")
WRAPPERS: Final = (*MOVES, *DISTURBANCES)
"""Changes to a problem that options may name; they are applied in this order."""


class PosedProblem(NamedTuple):
    """A problem as a run sees it, and without noise and gaps, which is what the run is judged by."""

    seen: Problem
    true: Problem

    def true_value(self, x: Array, observed: float) -> float:
        """The value without noise at a point where so much was observed."""
        return observed if self.seen is self.true else float(self.true.formula(x[None])[0][0])


def pose(name: str, options: Mapping[str, Any], *, source: str = "", seed: int | None = None) -> PosedProblem:
    """The problem of a name with its options.

    >>> pose("hartmann-6", {"mirrored": {"coordinates": [0, 2]}}).seen.name
    'mirrored(hartmann-6)'

    Args:
        name: As the source knows it.
        options: Keyword arguments of the source, and `WRAPPERS` by name with their keyword arguments.
        source: A function "package.module:function" that makes a `Problem` or a `PosedProblem` of the name and the
            options; empty is `eign.problems.get`.
        seed: Given to the source as a keyword argument unless it is None.
    """
    arguments = {key: value for key, value in options.items() if key not in WRAPPERS}
    if seed is not None:
        arguments["seed"] = seed
    made = (load_function(source) if source else problems.get)(name, **arguments)
    if isinstance(made, PosedProblem):
        return made
    true: Problem = made
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
