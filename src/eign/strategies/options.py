"""What a user may set for a method: names, defaults and checks, so that a typing error is told and not ignored."""

import difflib
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from eign.arrays import whole_number

Check = Callable[[Any], Any]
"""Takes what was given and returns it as plain data; raises ValueError with what was expected."""


@final
@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a method.

    Attributes:
        default: What is taken if nothing is given; None is decided by the method.
        check: Makes plain data of what was given.
        text: One line for the documentation.
    """

    default: Any
    check: Check
    text: str


def resolve(method: str, known: Mapping[str, Option], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """All options of a method with the given ones checked and the defaults for the others.

    >>> resolve("ucb", {"weight": Option(2.0, at_least(0.0), "of sigma")}, {"weight": 3})
    {'weight': 3.0}

    Raises:
        ValueError: an option is unknown or has an impossible value.
    """
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"options: expected a dict name -> value, got {given!r}")
    given = dict(given or {})
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            listed = ", ".join(sorted(known)) or "none"
            raise ValueError(f"method {method!r} has no option {name!r}{hint} It knows: {listed}")
    resolved = {}
    for name, option in known.items():
        value = given.get(name)
        try:
            resolved[name] = option.default if value is None else option.check(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"option {name}={value!r} of method {method!r}: expected {error}") from None
    return resolved


def whole(*, least: int) -> Check:
    """A whole number, at least `least`."""

    def check(value: Any) -> int:
        if (number := whole_number(value, least=least)) is None:
            raise ValueError(f"a whole number, at least {least}")
        return number

    return check


def at_least(least: float) -> Check:
    """A finite number, at least `least`."""
    return _real(lambda value: value >= least, f"a finite number, at least {least:g}")


def more_than(bound: float) -> Check:
    """A finite number above `bound`."""
    return _real(lambda value: value > bound, f"a finite number above {bound:g}")


def flag(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def one_of(*choices: str) -> Check:
    """One of these words."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return value

    return check


def noise_level(value: Any) -> float | str:
    """A variance in standardised units, or "learn"."""
    if value == "learn":
        return "learn"
    expected = 'a finite variance in standardised units, at least 0, or "learn"'
    return float(_real(lambda number: number >= 0.0, expected)(value))


def fixed_hyperparameters(value: Any) -> dict[str, Any]:
    """A lengthscale, one for all coordinates or one each, and an outputscale; as numbers and lists.

    >>> fixed_hyperparameters({"lengthscale": 0.2})
    {'lengthscale': 0.2, 'outputscale': 1.0}
    """
    expected = (
        "a dict with lengthscale, a positive number or one for each coordinate, and outputscale, a positive number"
    )
    if not isinstance(value, Mapping) or "lengthscale" not in value or not set(value) <= {"lengthscale", "outputscale"}:
        raise ValueError(expected)
    positive = _real(lambda number: number > 0.0, expected)
    length = value["lengthscale"]
    lengths = length.tolist() if hasattr(length, "tolist") else length
    return {
        "lengthscale": [positive(each) for each in lengths] if isinstance(lengths, list | tuple) else positive(lengths),
        "outputscale": positive(value.get("outputscale", 1.0)),
    }


def _real(accepts: Callable[[float], bool], expected: str) -> Check:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ValueError(expected)
        number = float(value)
        if not (abs(number) < float("inf") and accepts(number)):
            raise ValueError(expected)
        return number

    return check
