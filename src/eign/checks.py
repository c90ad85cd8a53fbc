"""Checks of what a user gives, and one style for what is wrong: the place, what was expected, what was given.

A check takes what was given and returns it as plain data, or raises ValueError with what it expected. Methods describe
their options by checks, TOML files their keys. A name that does not exist is told with the nearest one that does.
"""

import difflib
import math
import numbers
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from eign.arrays import whole_number

Check = Callable[[Any], Any]
"""Takes what was given and returns it as plain data; raises ValueError with what was expected."""

Place = tuple[str | int, ...]
"""The keys and numbers that lead to an entry."""

# So many names are listed where one was not found; a box may have thousands.
_LISTED: Final = 40
_GIVEN: Final = reprlib.Repr()
_GIVEN.maxstring = _GIVEN.maxother = 80


class EntryError(ValueError):
    """An entry of nested tables and lists is wrong; the message begins with its place.

    Attributes:
        place: Where it is.
        problem: What is wrong with it.
    """

    def __init__(self, place: Place, problem: str) -> None:
        """What is wrong, and where."""
        super().__init__(f"{place_as_text(place)}: {problem}" if place else problem)
        self.place, self.problem = place, problem


def place_as_text(place: Place) -> str:
    """A place as a person writes it.

    >>> place_as_text(("experiment", 0, "budget"))
    'experiment[0].budget'
    """
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place).removeprefix(".")


def not_among(complaint: str, name: object, known: Iterable[str]) -> str:
    """That a name does not exist: with the nearest one, if one is near, and with those that do.

    >>> not_among("there is no method", "EI_GM", ["auto", "ei", "ei-gn"])
    "there is no method 'EI_GM'; did you mean 'ei-gn'? Known: auto, ei, ei-gn"
    """
    names = list(known)
    close = nearest_name(name, names)
    listed = ", ".join(names[:_LISTED]) or "none"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    hint = f"; did you mean {close!r}?" if close is not None else "."
    return f"{complaint} {_GIVEN.repr(name)}{hint} Known: {listed}{more}"


def nearest_name(name: object, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was most likely meant, whatever its case, hyphens and underscores; None if none is near."""
    plain = {each.casefold().replace("_", "-"): each for each in known}
    given = str(name).casefold().replace("_", "-")
    likeness = {each: difflib.SequenceMatcher(None, given, each).ratio() for each in plain}
    # A letter that is wrong is as likely as one that is missing, which is more alike.
    close = max(likeness, key=lambda each: likeness[each] + (0.1 if len(each) == len(given) else 0.0), default=None)
    return None if close is None or likeness[close] < cutoff else plain[close]


def checked(value: Any, check: Check, place: Place) -> Any:
    """The value as plain data.

    Raises:
        EntryError: it is not what the check expects.
    """
    try:
        return check(value)
    except (TypeError, ValueError) as error:
        raise EntryError(place, f"expected {error}, got {_GIVEN.repr(value)}") from None


def checked_table(
    given: Any, known: Mapping[str, Check], place: Place = (), *, needed: Sequence[str] = ()
) -> dict[str, Any]:
    """A table with nothing but known keys, all that it needs, and everything as expected.

    >>> checked_table({"budget": 3}, {"budget": whole(least=1), "seed": whole(least=0)})
    {'budget': 3}

    Raises:
        EntryError: it is something else.
    """
    table = checked(given, a_table, place)
    for key in table:
        if key not in known:
            raise EntryError((*place, key), not_among("there is no key", key, known))
    for key in needed:
        if key not in table:
            raise EntryError(place, f"the key {key!r} is missing")
    return {key: checked(value, known[key], (*place, key)) for key, value in table.items()}


def whole(*, least: int) -> Check:
    """A whole number, at least `least`."""

    def check(value: Any) -> int:
        if (number := whole_number(value, least=least)) is None:
            raise ValueError(f"a whole number, at least {least}")
        return number

    return check


def at_least(least: float) -> Check:
    """A finite number, at least `least`."""
    return real(lambda value: value >= least, f"a finite number, at least {least:g}")


def more_than(bound: float) -> Check:
    """A finite number above `bound`."""
    return real(lambda value: value > bound, f"a finite number above {bound:g}")


def real(accepts: Callable[[float], bool], expected: str) -> Check:
    """A finite number with a property. A truth value is no number, and neither is a text."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ValueError(expected)
        number = float(value)
        if not (math.isfinite(number) and accepts(number)):
            raise ValueError(expected)
        return number

    return check


a_number: Final[Check] = real(lambda _: True, "a finite number")


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def a_text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def a_table(value: Any) -> dict[str, Any]:
    """A table: a dict with texts as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError("a table")
    return dict(value)


def one_of(*choices: str) -> Check:
    """One of these words; the nearest is named for one that is misspelt."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            close = nearest_name(value, choices) if isinstance(value, str) else None
            hint = f" (did you mean {close!r}?)" if close is not None else ""
            raise ValueError(f"one of {', '.join(choices)}{hint}")
        return value

    return check


def list_of(check: Check, expected: str, *, empty: bool = False) -> Check:
    """A list whose entries all pass a check."""

    def check_all(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple) or not (value or empty):
            raise ValueError(expected)
        try:
            return [check(entry) for entry in value]
        except (TypeError, ValueError):
            raise ValueError(expected) from None

    return check_all


def table_of(check: Check, expected: str) -> Check:
    """A table whose entries all pass a check."""

    def check_all(value: Any) -> dict[str, Any]:
        try:
            return {key: check(entry) for key, entry in a_table(value).items()}
        except (TypeError, ValueError):
            raise ValueError(expected) from None

    return check_all


def or_none(check: Check) -> Check:
    """None, or what the check expects."""
    return lambda value: None if value is None else check(value)
