"""An optimization described in a TOML file; whatever is wrong in it is told with the key and the line.

method = "ei-gn"
budget = 60
storage = "study.db"

[bounds]
width = [0.1, 2.0]
rate = { low = 1e-6, high = 1.0, scale = "log" }

[constraints]
stress = { upper = 250.0 }

[[linear]]
coefficients = { width = 1.0, rate = 2.0 }
upper = 3.0

[objective]
program = ["./simulate", "--fast"]
timeout = 3600
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from eign.checks import (
    Check,
    EntryError,
    Place,
    a_number,
    a_table,
    a_text,
    at_least,
    checked,
    checked_table,
    flag,
    list_of,
    more_than,
    not_among,
    one_of,
    table_of,
    whole,
)
from eign.constraints import Limits, LinearRows
from eign.exchange.toml_file import SpecError, read_toml
from eign.region import region_in
from eign.space import Box
from eign.strategies import methods, strategy
from eign.strategies.registry import check_handled

__all__ = ["Objective", "Spec", "SpecError", "read_spec"]


@final
@dataclass(frozen=True, slots=True)
class Objective:
    """What is evaluated: a function `module:name`, or a program with its arguments.

    Attributes:
        python: The function, or None.
        program: The program and its arguments, or None.
        gradient: Whether it gives gradients.
        settings: Further keys, for the program alone: input, timeout, retries, directory, keep, env.
    """

    python: str | None
    program: list[str] | None
    gradient: bool
    settings: Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Spec:
    """An optimization.

    Attributes:
        path: The file it was read from; relative paths in it start there.
        box: Where to look.
        settings: Arguments of `eign.minimize` that were given: method, budget, seed, workers and so on.
        maximize: Whether larger values are better.
        storage: The study's file, or None.
        objective: What is evaluated, or None if somebody else does, by `eign ask` and `eign tell`.
        constraints: Limits of what the objective returns beside its value.
        linear: Known linear constraints.
    """

    path: Path
    box: Box
    settings: Mapping[str, Any]
    maximize: bool = False
    storage: Path | None = None
    objective: Objective | None = None
    constraints: Limits = field(default_factory=Limits)
    linear: LinearRows = field(default_factory=LinearRows)

    @property
    def study(self) -> dict[str, Any]:
        """The arguments of `Optimizer` among the settings."""
        names = ("method", "seed", "options", "check_gradients", "feasibility_tol")
        settings = {name: self.settings[name] for name in names if name in self.settings}
        if len(self.constraints):
            settings["constraints"] = self.constraints
        if len(self.linear):
            settings["linear"] = self.linear
        return settings


def _a_function(value: Any) -> str:
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) != 2 or not all(part.replace(".", "_").isidentifier() for part in parts):
        raise ValueError('a text "module:function"')
    return str(value)


def _a_gradient_check(value: Any) -> str | bool:
    if value is not False and value not in ("probe", "passive"):
        raise ValueError('"probe", "passive" or false')
    return value  # type: ignore[no-any-return]


def _some_bounds(value: Any) -> dict[str, Any] | list[Any]:
    if not isinstance(value, dict | list) or not value:
        raise ValueError("a table of coordinates, or a list of pairs")
    return value


_KEYS: Final[Mapping[str, Check]] = {
    "bounds": _some_bounds,
    "method": a_text,
    "budget": whole(least=1),
    "seed": whole(least=0),
    "maximize": flag,
    "workers": whole(least=1),
    "storage": a_text,
    "tol": more_than(0.0),
    "on_error": one_of("raise", "fail"),
    "check_gradients": _a_gradient_check,
    "options": a_table,
    "objective": a_table,
    "constraints": a_table,
    "linear": list_of(a_table, "tables [[linear]] with coefficients, lower and upper"),
    "feasibility_tol": at_least(0.0),
}
_SETTINGS: Final = (
    "method",
    "budget",
    "seed",
    "workers",
    "tol",
    "on_error",
    "options",
    "check_gradients",
    "feasibility_tol",
)


def _a_side(open_side: float) -> Check:
    """A number, or the infinity that says that this side is open."""

    def check(value: Any) -> float:
        return open_side if value == open_side else a_number(value)

    return check


_LIMIT_KEYS: Final[Mapping[str, Check]] = {
    "lower": _a_side(-math.inf),
    "upper": _a_side(math.inf),
    "equal": a_number,
}
_LINEAR_KEYS: Final[Mapping[str, Check]] = {
    **_LIMIT_KEYS,
    "coefficients": lambda value: value,
    "label": a_text,
}
_PROGRAM_KEYS: Final[Mapping[str, Check]] = {
    "input": one_of("stdin", "file"),
    "timeout": more_than(0.0),
    "retries": whole(least=0),
    "directory": a_text,
    "keep": one_of("all", "failed"),
    "env": table_of(a_text, "a table of texts"),
}
_OBJECTIVE_KEYS: Final[Mapping[str, Check]] = {
    "python": _a_function,
    "program": list_of(a_text, "a list of texts: the program, then each argument by itself"),
    "gradient": flag,
    **_PROGRAM_KEYS,
}
_COORDINATE_KEYS: Final[Mapping[str, Check]] = {"low": a_number, "high": a_number, "scale": one_of("linear", "log")}


def read_spec(path: Path) -> Spec:
    """The optimization that a TOML file describes.

    Raises:
        SpecError: something in it is wrong.
        FileNotFoundError: there is no such file.
    """
    file = read_toml(path)
    with file.located():
        return _spec(path, file.content)


def _spec(path: Path, content: Mapping[str, Any]) -> Spec:
    given = checked_table(content, _KEYS)
    if "bounds" not in given:
        raise EntryError((), "bounds are missing: expected a table [bounds] with a line for each coordinate")
    box, method = _box(given["bounds"]), given.get("method", "auto")
    if method not in methods():
        raise EntryError(("method",), not_among("there is no method", method, methods()))
    _check_options(method, given.get("options", {}), box)
    settings = {name: value for name, value in given.items() if name in _SETTINGS}
    storage = path.parent / given["storage"] if "storage" in given else None
    objective = _objective(given["objective"]) if "objective" in given else None
    limits, rows = _limits(given.get("constraints", {})), _linear(given.get("linear", []), box)
    try:
        check_handled(method, constraints=len(limits) > 0, linear=len(rows) > 0)
    except ValueError as error:
        raise EntryError(("method",) if "method" in given else (), str(error)) from None
    return Spec(path, box, settings, given.get("maximize", False), storage, objective, limits, rows)


def _limits(constraints: Mapping[str, Any]) -> Limits:
    """A line for each constraint: [lower, upper], or a table of what is limited."""
    pairs = [_sides(value, ("constraints", name)) for name, value in constraints.items()]
    return Limits(tuple(constraints), [low for low, _ in pairs], [high for _, high in pairs])


def _sides(value: Any, place: Place, known: Mapping[str, Check] = _LIMIT_KEYS) -> tuple[float, float]:
    expected = "[lower, upper], or {upper = ...}, {lower = ...}, {equal = ...}"
    if isinstance(value, list):
        if len(value) != 2:
            raise EntryError(place, f"expected {expected}, got {value!r}")
        value = dict(zip(("lower", "upper"), value, strict=True))
    given = checked_table(checked(value, _a_limit, place), known, place)
    if "equal" in given and ("lower" in given or "upper" in given):
        raise EntryError(place, "expected equal, or lower and upper")
    low, high = given.get("equal", given.get("lower", -math.inf)), given.get("equal", given.get("upper", math.inf))
    if math.isinf(low) and math.isinf(high):
        raise EntryError(place, f"expected {expected}")
    if low > high:
        raise EntryError(place, f"expected lower <= upper, got {low} and {high}")
    return low, high


def _a_limit(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("[lower, upper], or {upper = ...}, {lower = ...}, {equal = ...}")
    return value


def _linear(tables: Sequence[Mapping[str, Any]], box: Box) -> LinearRows:
    """The tables [[linear]]."""
    rows, pairs, labels = [], [], []
    for number, table in enumerate(tables):
        place = ("linear", number)
        given = checked_table(table, _LINEAR_KEYS, place, needed=["coefficients"])
        rows.append(_coefficients(given["coefficients"], box, (*place, "coefficients")))
        pairs.append(_sides(table, place, _LINEAR_KEYS))
        labels.append(given.get("label", f"row {number}"))
    if not rows:
        return LinearRows()
    try:
        linear = LinearRows(rows, [low for low, _ in pairs], [high for _, high in pairs], labels)
        region_in(box, linear)
    except ValueError as error:
        raise EntryError(("linear",), str(error)) from None
    return linear


def _coefficients(value: Any, box: Box, place: Place) -> list[float]:
    """A number for each coordinate: a list, or a table by name, 0 where one is left out."""
    if not isinstance(value, dict):
        numbers = checked(value, list_of(a_number, f"{box.dim} numbers, or a table by coordinate"), place)
        if len(numbers) != box.dim:
            raise EntryError(place, f"expected {box.dim} numbers, one a coordinate, got {len(numbers)}")
        return list(numbers)
    names = box.names or ()
    for name in value:
        if name not in names:
            raise EntryError((*place, name), not_among("there is no coordinate", name, names))
    return [checked(value.get(name, 0.0), a_number, (*place, name)) for name in names]


def _box(bounds: Any) -> Box:
    keys: list[Any] = list(bounds) if isinstance(bounds, dict) else list(range(len(bounds)))
    pairs, log = [], []
    for key in keys:
        place = ("bounds", key)
        low, high, scale = _coordinate(bounds[key], place)
        if low > high:
            raise EntryError(place, f"expected low <= high, got {low} and {high}")
        if scale == "log" and low <= 0:
            raise EntryError(place, f"a log scale needs low > 0, got {low}")
        pairs.append((low, high))
        log.append(scale == "log")
    try:
        return Box(pairs, log=log, names=keys if isinstance(bounds, dict) else None)
    except (TypeError, ValueError) as error:
        raise EntryError(("bounds",), str(error)) from None


def _coordinate(value: Any, place: Place) -> tuple[float, float, str]:
    pair, scale = value, "linear"
    match value:
        case {"low": _, "high": _}:
            table = checked_table(value, _COORDINATE_KEYS, place)
            return table["low"], table["high"], table.get("scale", scale)
        case [low, high, "log" | "linear" as scale]:
            pair = [low, high]
    low, high = checked(pair, _a_pair, place)
    return low, high, scale


def _a_pair(value: Any) -> tuple[float, float]:
    expected = '[low, high], or {low = ..., high = ..., scale = "log"}'
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(expected)
    low, high = list_of(a_number, expected)(value)
    return low, high


def _check_options(method: str, options: Mapping[str, Any], box: Box) -> None:
    for name, value in options.items():
        try:
            strategy(method).checked_options(box.free_dim, {name: value}, method=method)
        except (TypeError, ValueError) as error:
            raise EntryError(("options", name), str(error)) from None


def _objective(value: Any) -> Objective:
    given = checked_table(value, _OBJECTIVE_KEYS, ("objective",))
    if ("python" in given) == ("program" in given):
        raise EntryError(("objective",), 'expected either python = "module:function" or program = [...]')
    settings = {name: entry for name, entry in given.items() if name in _PROGRAM_KEYS}
    if "python" in given and settings:
        raise EntryError(("objective", next(iter(settings))), "only a program has this key")
    return Objective(given.get("python"), given.get("program"), given.get("gradient", True), settings)
