"""What a user may set for a method: names, defaults and checks, so that a typing error is told and not ignored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from eign.checks import Check, at_least, flag, more_than, not_among, one_of, real, whole

__all__ = [
    "Check",
    "Option",
    "at_least",
    "fixed_hyperparameters",
    "flag",
    "more_than",
    "noise_level",
    "one_of",
    "resolve",
    "whole",
]


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
            raise ValueError(not_among(f"method {method!r} has no option", name, sorted(known)))
    resolved = {}
    for name, option in known.items():
        value = given.get(name)
        try:
            resolved[name] = option.default if value is None else option.check(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"option {name}={value!r} of method {method!r}: expected {error}") from None
    return resolved


def noise_level(value: Any) -> float | str:
    """A variance in standardised units, or "learn"."""
    if value == "learn":
        return "learn"
    expected = 'a finite variance in standardised units, at least 0, or "learn"'
    return float(real(lambda number: number >= 0.0, expected)(value))


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
    positive = real(lambda number: number > 0.0, expected)
    length = value["lengthscale"]
    lengths = length.tolist() if hasattr(length, "tolist") else length
    return {
        "lengthscale": [positive(each) for each in lengths] if isinstance(lengths, list | tuple) else positive(lengths),
        "outputscale": positive(value.get("outputscale", 1.0)),
    }
