"""One evaluation in JSON, as programs answer and as `eign tell` reads it.

`{"value": 1.5, "gradient": [0.2, -1.0], "value_variance": 0.01, "gradient_variance": [0.1, 0.1]}`: all but the value
may be left out, and null is missing. A gradient may also be an object by name. As JSON has no numbers for them, the
texts "nan", "inf" and "-inf" stand for these; no other text is a number, and neither is true or false.

Constraints are `"constraints": {"stress": 231.0}` and `"constraint_gradients": {"stress": [0.1, 4.0]}`, with
`"constraint_variances"` and `"constraint_gradient_variances"` for noise: objects by name, or lists in their order.
"""

import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from eign.checks import not_among

CONSTRAINT_KEYS: Final = (
    "constraints",
    "constraint_gradients",
    "constraint_variances",
    "constraint_gradient_variances",
)
KEYS: Final = ("value", "gradient", "value_variance", "gradient_variance", *CONSTRAINT_KEYS)
# What the same things are called elsewhere.
_SYNONYMS: Final = {"y": "value", "fun": "value", "grad": "gradient", "jac": "gradient", "y_var": "value_variance"}
_TEXTS: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def read_json(text: str) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is no JSON, or an object has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def checked_answer(answer: Any, dim: int, names: Sequence[str] | None) -> dict[str, Any]:
    """An answer with floats in it, None where something is missing.

    >>> checked_answer({"value": 2, "gradient": {"b": 1}}, 2, ["a", "b"])
    {'value': 2.0, 'gradient': {'b': 1.0}}

    Raises:
        ValueError: it is not what was agreed.
    """
    if not isinstance(answer, dict) or "value" not in answer:
        raise ValueError(f'{reprlib.repr(answer)}, expected an object with a "value"; null says that it failed')
    for key in answer:
        if key not in KEYS:
            raise ValueError(unknown_key(key, KEYS))
    return {key: _entry(key, entry, dim, names) for key, entry in answer.items()}


def _entry(key: str, entry: Any, dim: int, names: Sequence[str] | None) -> Any:
    """What an answer has under a key, with floats in it."""
    if key in ("value", "value_variance"):
        return _number(entry, key)
    if key not in CONSTRAINT_KEYS:
        return components(entry, key, dim, names)

    def one(given: Any, place: str) -> Any:
        return components(given, place, dim, names) if "gradient" in key else _number(given, place)

    match entry:
        case None:
            return None
        case dict():
            return {name: one(given, f"{key}.{name}") for name, given in entry.items()}
        case list():
            return [one(given, f"{key}[{i}]") for i, given in enumerate(entry)]
    raise ValueError(f"{key} = {reprlib.repr(entry)}, expected an object by name, or a list: one entry a constraint")


def components(given: Any, key: str, dim: int, names: Sequence[str] | None) -> Any:
    """A number for each coordinate: a list, a dict by name where there are names, or None.

    Raises:
        ValueError: it is something else.
    """
    match given:
        case None:
            return None
        case dict() if names is not None:
            for name in given:
                if name not in names:
                    raise ValueError(not_among(f"{key} has no coordinate", name, names))
            return {name: _number(entry, f"{key}.{name}") for name, entry in given.items()}
        case list() if len(given) == dim:
            return [_number(entry, key) for entry in given]
        case list():
            raise ValueError(f"{key} of length {len(given)}, expected {dim}: one entry a coordinate")
    by_name = ", or an object by name" if names is not None else "; the points have no names"
    raise ValueError(f"{key} = {reprlib.repr(given)}, expected a list of {dim} numbers{by_name}")


def unknown_key(key: str, known: Sequence[str]) -> str:
    """That an object has a key which means nothing, with the one that was meant.

    >>> unknown_key("y", ["value", "gradient"])
    "the key 'y' is unknown; did you mean 'value'? Known: value, gradient"
    """
    if key in _SYNONYMS:
        return f"the key {key!r} is unknown; did you mean {_SYNONYMS[key]!r}? Known: {', '.join(known)}"
    return not_among("there is no key", key, known)


def _number(value: Any, key: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and value in _TEXTS:
        return _TEXTS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} = {reprlib.repr(value)}, expected a number or null")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{key} = {reprlib.repr(value)} is beyond the largest number, 1.8e308") from None


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return found
