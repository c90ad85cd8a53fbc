"""The columns of a table that is read: which are known, and which are refused rather than overlooked.

`eign.columns` has their names. A column that looks like one of ours and is none is an error: a value or a derivative
under another name must not be lost without a word.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from eign.checks import nearest_name
from eign.columns import Names, names_of
from eign.space import Box

# A column that consists of such words and names of coordinates was meant to be read.
_WORDS: Final = {"value", "y", "gradient", "grad", "jac", "derivative", "variance"}
# These are too short to mean anything by themselves.
_SHORT_WORDS: Final = {"d", "df", "dy", "g", "var", "of"}

Part = TypeVar("Part")


def by_output(parts: Sequence[Part]) -> Iterator[tuple[Part, Part, Part, Part]]:
    """Value, gradient and their variances of the objective and of each constraint, from all of them in a row."""
    return zip(*(parts[first::4] for first in range(4)), strict=True)


def coordinates_of(box: Box) -> list[str]:
    """The names of the coordinates, x0, x1 and so on where they have none."""
    return [f"x{i}" for i in range(box.dim)] if box.names is None else list(box.names)


def found_columns(
    header: Sequence[str], box: Box, source: str, constraints: Sequence[str] = ()
) -> tuple[list[str | None], ...]:
    """Which columns of a table are x, value, gradient, their variances and constraints; None where there is none.

    Raises:
        ValueError: a column that is needed is missing, one is there twice, or one looks like ours and is not.
    """
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise ValueError(f"{source}: the column {twice[0]!r} is there twice")
    names = names_of(coordinates_of(box), constraints)
    groups = tuple([_found(choices, header, source) for choices in group] for group in names.groups)
    shown = f"the columns are {', '.join(header) or 'none'}"
    for choices, name, free in zip(names.x, groups[0], box.free, strict=True):
        if free and name is None:
            raise ValueError(f"{source}: there is no column {choices[0]!r}; {shown}")
    _refuse_lookalikes(header, names, box, source, constraints)
    if groups[1] == [None]:
        expected = " or ".join(map(repr, names.value[0]))
        raise ValueError(f"{source}: there is no column with the value, expected {expected}; {shown}")
    return groups


def _found(choices: Sequence[str], header: Sequence[str], source: str) -> str | None:
    found = [name for name in choices if name in header]
    if len(found) > 1:
        raise ValueError(f"{source}: the columns {found[0]!r} and {found[1]!r} mean the same; leave one out")
    return found[0] if found else None


def _refuse_lookalikes(header: Sequence[str], names: Names, box: Box, source: str, constraints: Sequence[str]) -> None:
    """A value or a derivative under another name must not be lost without a word."""
    known = set(names.known)
    unused = [choices for group in names.groups for choices in group if not set(choices) & set(header)]
    absent, old = [choices[0] for choices in unused], [name for choices in unused for name in choices[1:]]
    for name in header:
        if name in known:
            continue
        is_ours = name.startswith(("gradient_", "constraint_", "constraint[")) or _resembles(name, box, constraints)
        # The name of a constraint alone is a small part of what its column is called.
        close = nearest_name(
            name, [*absent, *old], cutoff=0.4 if is_ours and names.constraints else 0.6 if is_ours else 0.8
        )
        if is_ours or close is not None:
            hint = f"; did you mean {close!r}?" if close is not None else "."
            lacking = "" if names.constraints or "constraint" not in name else "; name the constraints of the study too"
            raise ValueError(f"{source}: the column {name!r} is unknown{hint} {_expected(names)}{lacking}")


def _expected(names: Names) -> str:
    x, value, gradient, value_variance, gradient_variance = (group[0] for group in names.written[:5])
    more = " and so on for each coordinate" if len(names.x) > 1 else ""
    more += f", {names.written[5][0]} for a constraint" if names.constraints else ""
    return (
        f"Expected: {x} for the point, {value} for the value, {gradient} for its derivative, {value_variance} and "
        f"{gradient_variance} for the noise{more}"
    )


def _resembles(name: str, box: Box, constraints: Sequence[str] = ()) -> bool:
    """Whether a name consists of words for a value, a gradient or a constraint and of coordinates.

    >>> box = Box({"a": (0, 1)})
    >>> [_resembles(name, box) for name in ("Value", "grad_a", "df/da", "grad", "d", "comment", "grade")]
    [True, True, True, True, False, False, False]
    >>> [_resembles(name, box, ["stress"]) for name in ("stress", "dstress/da", "stress_variance", "stress test")]
    [True, True, True, False]
    """
    coordinates = {coordinate.casefold() for coordinate in coordinates_of(box)}
    words = _words(name)
    stems = {word if word in coordinates else re.sub(r"\d+$", "", word) for word in words}
    partials = {word for word in words if word[0] in "dg" and word[1:] in coordinates}
    quantities = _WORDS | {word for constraint in constraints for word in _words(constraint)}
    derived = {word for word in words if word[0] == "d" and word[1:] in quantities}
    rest = stems - coordinates - partials
    if box.names is None and re.fullmatch(r"(g|d|dx|df|dy)_?\d+", name.casefold()):
        return True  # g0, g1 beside x0, x1
    is_said = rest & quantities or derived or partials or (rest and stems - rest)
    return bool(words) and rest <= quantities | derived | _SHORT_WORDS and bool(is_said)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^0-9a-z]+", name.casefold()) if word]
