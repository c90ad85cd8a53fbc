"""The names of a table's columns, which tables in files and frames have in common.

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

from collections.abc import Iterator, Sequence
from typing import NamedTuple


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
