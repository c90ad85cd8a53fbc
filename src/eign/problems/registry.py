"""Problems by name."""

import operator

from eign.problems.catalogue import SYNTHETIC
from eign.problems.problem import Family, Problem

FAMILIES = {family.name: family for family in SYNTHETIC}


def names() -> list[str]:
    """The names of the standard problems, those of the paper among them.

    A name ends in the dimension. Most families have other dimensions too, such as `ackley-3`: see `get`.

    >>> "shekel-4" in names()
    True
    """
    return [f"{family.name}-{d}" for family in FAMILIES.values() for d in sorted(family.standard)]


def get(name: str, d: int | None = None) -> Problem:
    """The problem of a name: "ackley-14", or "ackley" with d = 14; without a dimension, the standard one.

    >>> get("levy-20"), get("levy", d=20), get("ackley")  # doctest: +NORMALIZE_WHITESPACE
    (Problem('levy-20', dim=20, optimum=0.0),
     Problem('levy-20', dim=20, optimum=0.0),
     Problem('ackley-14', dim=14, optimum=0.0))

    Raises:
        ValueError: there is no such problem, or not in this dimension; the message says what there is.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a problem, such as 'ackley-14', got {name!r}")
    family, named_d = _split(name)
    if d is not None and named_d not in (None, operator.index(d)):
        raise ValueError(f"{name!r} has its dimension in the name, got d = {d} too; leave one out")
    dim = next((given for given in (named_d, d) if given is not None), family.standard[0])
    if dim not in family.dims:
        raise ValueError(f"{family.name} has no dimension {dim}; allowed: {family.allowed}")
    return family.build(dim)


def _split(name: str) -> tuple[Family, int | None]:
    """The family that a name begins with, and the dimension it ends in."""
    if name in FAMILIES:
        return FAMILIES[name], None
    stem, _, ending = name.rpartition("-")
    if stem in FAMILIES and ending.isdecimal():
        return FAMILIES[stem], int(ending)
    other = "and other dimensions d of most families as in 'ackley-3' or get('ackley', d=3)"
    raise ValueError(f"unknown problem {name!r}; expected one of {', '.join(names())}, {other}")
