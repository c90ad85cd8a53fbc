"""The names of a table's columns: which are written, which are read, and which are refused rather than overlooked.

| column | older name | what |
|---|---|---|
| the name of a coordinate, or x0, x1 and so on | | the point |
| `value` | `y` | the value |
| `gradient_` and the name | `d_` and the name | the partial derivative |
| `value_variance` | `y_var` | variance of the noise on the value |
| `gradient_variance_` and the name | `d_`, the name and `_var` | variance of the noise on the derivative |
| `constraint_c` | `constraint[c]` | the value of the constraint c |
| `constraint_c_gradient_` and the name | `constraint[c].gradient[name]` | its partial derivative |
| `constraint_c_variance` | `constraint[c].variance` | variance of the noise on its value |
| `constraint_c_gradient_variance_` and the name | `constraint[c].gradient_variance[name]` | and on its derivative |

The words are those of JSON, of programs' answers and of `eign.Evaluation`. Both columns of names are read; the first is
written, unless something else has that name: a coordinate may be called `value`, and a constraint `a_gradient_b`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from eign.checks import nearest_name
from eign.space import Box

# A column that consists of such words and names of coordinates was meant to be read.
_WORDS: Final = {"value", "y", "gradient", "grad", "jac", "derivative", "variance"}
# These are too short to mean anything by themselves.
_SHORT_WORDS: Final = {"d", "df", "dy", "g", "var", "of"}


Part = TypeVar("Part")


class Names(NamedTuple):
    """What a column may be called, the name that is written first; for x, value, gradient and their variances."""

    x: list[list[str]]
    value: list[list[str]]
    gradient: list[list[str]]
    value_variance: list[list[str]]
    gradient_variance: list[list[str]]
    constraints: tuple[list[list[str]], ...] = ()
    """Value, gradient and their variances of the first constraint, then of the next."""

    @property
    def groups(self) -> tuple[list[list[str]], ...]:
        """All groups of columns."""
        return (self.x, self.value, self.gradient, self.value_variance, self.gradient_variance, *self.constraints)

    @property
    def written(self) -> tuple[list[str], ...]:
        """The name of each column in a table of ours."""
        return tuple([choices[0] for choices in group] for group in self.groups)

    @property
    def known(self) -> Iterator[str]:
        """All names that are read."""
        return (name for group in self.groups for choices in group for name in choices)


def names_of(coordinates: Sequence[str], constraints: Sequence[str] = ()) -> Names:
    """The names of all columns, for coordinates and constraints of these names.

    >>> names_of(["a"]).written
    (['a'], ['value'], ['gradient_a'], ['value_variance'], ['gradient_variance_a'])
    >>> names_of(["value"]).written[1]
    ['y']
    >>> names_of(["a"], ["c"]).written[5:]
    (['constraint_c'], ['constraint_c_gradient_a'], ['constraint_c_variance'], ['constraint_c_gradient_variance_a'])

    Raises:
        ValueError: the names of the coordinates leave none for another column.
    """
    taken: set[str] = set()

    def free(*choices: str) -> list[str]:
        left = [name for name in choices if name not in taken]
        if not left:
            raise ValueError(f"a table has no column {choices[0]!r} beside coordinates called {', '.join(choices)}")
        taken.update(left)
        return left

    own = Names(
        [free(name) for name in coordinates],
        [free("value", "y")],
        [free(f"gradient_{name}", f"d_{name}") for name in coordinates],
        [free("value_variance", "y_var")],
        [free(f"gradient_variance_{name}", f"d_{name}_var") for name in coordinates],
    )
    groups: list[list[list[str]]] = []
    for c in constraints:
        groups.append([free(f"constraint_{c}", f"constraint[{c}]")])
        groups.append([free(f"constraint_{c}_gradient_{x}", f"constraint[{c}].gradient[{x}]") for x in coordinates])
        groups.append([free(f"constraint_{c}_variance", f"constraint[{c}].variance")])
        groups.append(
            [
                free(f"constraint_{c}_gradient_variance_{x}", f"constraint[{c}].gradient_variance[{x}]")
                for x in coordinates
            ]
        )
    return own._replace(constraints=tuple(groups))


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
    _refuse_lookalikes(header, names, box, source)
    if groups[1] == [None]:
        expected = " or ".join(map(repr, names.value[0]))
        raise ValueError(f"{source}: there is no column with the value, expected {expected}; {shown}")
    return groups


def _found(choices: Sequence[str], header: Sequence[str], source: str) -> str | None:
    found = [name for name in choices if name in header]
    if len(found) > 1:
        raise ValueError(f"{source}: the columns {found[0]!r} and {found[1]!r} mean the same; leave one out")
    return found[0] if found else None


def _refuse_lookalikes(header: Sequence[str], names: Names, box: Box, source: str) -> None:
    """A value or a derivative under another name must not be lost without a word."""
    known = set(names.known)
    unused = [choices for group in names.groups for choices in group if not set(choices) & set(header)]
    absent, old = [choices[0] for choices in unused], [name for choices in unused for name in choices[1:]]
    for name in header:
        if name in known:
            continue
        is_ours = name.startswith(("gradient_", "constraint_", "constraint[")) or _resembles(name, box)
        close = nearest_name(name, [*absent, *old], cutoff=0.6 if is_ours else 0.8)
        if is_ours or close is not None:
            hint = f"; did you mean {close!r}?" if close is not None else "."
            lacking = "" if names.constraints or "constraint" not in name else "; name the constraints of the study too"
            raise ValueError(f"{source}: the column {name!r} is unknown{hint} {_expected(names)}{lacking}")


def _expected(names: Names) -> str:
    x, value, gradient, value_variance, gradient_variance = (group[0] for group in names.written[:5])
    more = " and so on for each coordinate" if len(names.x) > 1 else ""
    return (
        f"Expected: {x} for the point, {value} for the value, {gradient} for its derivative, {value_variance} and "
        f"{gradient_variance} for the noise{more}"
    )


def _resembles(name: str, box: Box) -> bool:
    """Whether a name consists of words for a value or a gradient and of coordinates.

    >>> box = Box({"a": (0, 1)})
    >>> [_resembles(name, box) for name in ("Value", "grad_a", "df/da", "grad", "d", "comment", "grade")]
    [True, True, True, True, False, False, False]
    """
    coordinates = {coordinate.casefold() for coordinate in coordinates_of(box)}
    words = [word for word in re.split(r"[^0-9a-z]+", name.casefold()) if word]
    stems = {word if word in coordinates else re.sub(r"\d+$", "", word) for word in words}
    partials = {word for word in words if word[0] in "dg" and word[1:] in coordinates}
    rest = stems - coordinates - partials
    if box.names is None and re.fullmatch(r"(g|d|dx|df|dy)_?\d+", name.casefold()):
        return True  # g0, g1 beside x0, x1
    return bool(words) and rest <= _WORDS | _SHORT_WORDS and bool(rest & _WORDS or partials or (rest and stems - rest))
