"""An optimization described in a TOML file; whatever is wrong in it is told with the key and the line.

method = "ei-gn"
budget = 60
storage = "study.db"

[bounds]
width = [0.1, 2.0]
rate = { low = 1e-6, high = 1.0, scale = "log" }

[objective]
program = ["./simulate", "--fast"]
timeout = 3600
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from eign.checks import (
    Check,
    EntryError,
    Place,
    a_number,
    a_table,
    a_text,
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
from eign.exchange.toml_file import SpecError, read_toml
from eign.space import Box
from eign.strategies import methods, strategy

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
    """

    path: Path
    box: Box
    settings: Mapping[str, Any]
    maximize: bool = False
    storage: Path | None = None
    objective: Objective | None = None

    @property
    def study(self) -> dict[str, Any]:
        """The arguments of `Optimizer` among the settings."""
        names = ("method", "seed", "options", "check_gradients")
        return {name: self.settings[name] for name in names if name in self.settings}


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
}
_SETTINGS: Final = ("method", "budget", "seed", "workers", "tol", "on_error", "options", "check_gradients")
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
    return Spec(path, box, settings, given.get("maximize", False), storage, objective)


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
