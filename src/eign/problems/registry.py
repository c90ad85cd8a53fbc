"""Problems by name."""

import operator

from eign.checks import not_among
from eign.problems.catalogue import SYNTHETIC
from eign.problems.control import CONTROL
from eign.problems.gp_samples import GP_SAMPLES
from eign.problems.problem import Family, Problem

FAMILIES = {family.name: family for family in sorted((*SYNTHETIC, GP_SAMPLES, *CONTROL), key=lambda f: f.name)}
_SHORT_NAMES = {"holder": "holder-table"}


def names() -> list[str]:
    """The names of the standard problems, those of the paper among them.

    A name ends in the dimension. Most families have other dimensions too, such as `ackley-3`: see `get`.

    >>> "shekel-4" in names()
    True
    """
    return list(summaries())


def summaries() -> dict[str, str]:
    """The names of the standard problems with one line each; nothing is built for it.

    >>> summaries()["branin-2"]
    'Branin: three equal maxima along a curve'
    """
    return {f"{family.name}-{d}": family.summary for family in FAMILIES.values() for d in sorted(family.standard)}


def get(name: str, d: int | None = None, *, seed: int | None = None) -> Problem:
    """The problem of a name: "ackley-14", or "ackley" with d = 14; without a dimension, the standard one.

    Problems that are drawn at random, GP samples and policy search, take a seed: the same seed is the same function,
    in every process. Without one it is 0.

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
    if family.seeded:
        return family.build(dim, seed=_checked_seed(0 if seed is None else seed))
    if seed is not None:
        raise ValueError(f"{name!r} is not random, got seed = {seed}; leave it out, or move the problem by shifted")
    return family.build(dim)


def _checked_seed(seed: int) -> int:
    number = operator.index(seed)
    if number < 0:
        raise ValueError(f"seed: expected an integer >= 0, got {seed!r}")
    return number


def _split(name: str) -> tuple[Family, int | None]:
    """The family that a name begins with, and the dimension it ends in."""
    stem, _, ending = name.rpartition("-")
    if not ending.isdecimal() or _SHORT_NAMES.get(stem, stem) not in FAMILIES:
        stem, ending = name, ""
    stem = _SHORT_NAMES.get(stem, stem)
    if stem in FAMILIES:
        return FAMILIES[stem], int(ending) if ending else None
    other = "and other dimensions d of most families as in 'ackley-3' or get('ackley', d=3)"
    raise ValueError(f"{not_among('there is no problem', name, names())}, {other}")
