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

import difflib
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from eign.space import Box
from eign.strategies import methods, strategy


class SpecError(ValueError):
    """The file does not describe an optimization; the message names the key and the line."""


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


Check = Callable[[Any], str | None]
"""Takes what was given; returns what was expected, or None if that is it."""


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(least: int) -> Check:
    return lambda value: None if _is_whole(value, least) else f"a whole number, at least {least}"


def _positive(value: Any) -> str | None:
    return None if _is_number(value) and value > 0 else "a number above 0"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "a text"


def _table(value: Any) -> str | None:
    return None if isinstance(value, dict) else "a table"


def _words(value: Any) -> str | None:
    is_list = isinstance(value, list) and value and all(isinstance(word, str) for word in value)
    return None if is_list else "a list of texts: the program, then each argument by itself"


def _texts(value: Any) -> str | None:
    is_texts = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    return None if is_texts else "a table of texts"


def _function(value: Any) -> str | None:
    parts = value.split(":") if isinstance(value, str) else []
    is_name = len(parts) == 2 and all(part.replace(".", "_").isidentifier() for part in parts)
    return None if is_name else 'a text "module:function"'


def _one_of(*choices: str) -> Check:
    return lambda value: None if value in choices else "one of " + ", ".join(f'"{choice}"' for choice in choices)


def _gradient_check(value: Any) -> str | None:
    return None if value is False or value in ("probe", "passive") else '"probe", "passive" or false'


def _bounds(value: Any) -> str | None:
    return None if isinstance(value, dict | list) and value else "a table of coordinates, or a list of pairs"


_KEYS: Final[Mapping[str, Check]] = {
    "bounds": _bounds,
    "method": _one_of(*methods()),
    "budget": _whole(1),
    "seed": _whole(0),
    "maximize": _flag,
    "workers": _whole(1),
    "storage": _text,
    "tol": _positive,
    "on_error": _one_of("raise", "fail"),
    "check_gradients": _gradient_check,
    "options": _table,
    "objective": _table,
}
_PROGRAM_KEYS: Final[Mapping[str, Check]] = {
    "input": _one_of("stdin", "file"),
    "timeout": _positive,
    "retries": _whole(0),
    "directory": _text,
    "keep": _one_of("all", "failed"),
    "env": _texts,
}
_OBJECTIVE_KEYS: Final[Mapping[str, Check]] = {
    "python": _function,
    "program": _words,
    "gradient": _flag,
    **_PROGRAM_KEYS,
}
_COORDINATE_KEYS: Final[Mapping[str, Check]] = {
    "low": lambda value: None if _is_number(value) else "a number",
    "high": lambda value: None if _is_number(value) else "a number",
    "scale": _one_of("linear", "log"),
}


def read_spec(path: Path) -> Spec:
    """The optimization that a TOML file describes.

    Raises:
        SpecError: something in it is wrong.
        FileNotFoundError: there is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: expected a TOML file in UTF-8: {error}") from None
    return _Reader(path, text).spec()


@final
@dataclass(slots=True)
class _Reader:
    """One file: checks values, and finds the lines of what is wrong."""

    path: Path
    text: str
    given: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.given = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"{self.path}: {error}") from None  # which names the line

    def spec(self) -> Spec:
        self._check(self.given, _KEYS)
        if "bounds" not in self.given:
            raise self._error((), "bounds are missing: expected a table [bounds] with a line for each coordinate")
        given = self.given
        box = self._box()
        self._check_options(box)
        settings = {name: value for name, value in given.items() if name in _SETTINGS}
        storage = self.path.parent / given["storage"] if "storage" in given else None
        return Spec(self.path, box, settings, given.get("maximize", False), storage, self._objective())

    def _box(self) -> Box:
        bounds = self.given["bounds"]
        keys: list[Any] = list(bounds) if isinstance(bounds, dict) else list(range(len(bounds)))
        pairs, log = [], []
        for key in keys:
            where = ("bounds", key)
            low, high, scale = self._coordinate(bounds[key], where)
            if low > high:
                raise self._error(where, f"expected low <= high, got {low} and {high}")
            if scale == "log" and low <= 0:
                raise self._error(where, f"a log scale needs low > 0, got {low}")
            pairs.append((low, high))
            log.append(scale == "log")
        try:
            return Box(pairs, log=log, names=keys if isinstance(bounds, dict) else None)
        except (TypeError, ValueError) as error:
            raise self._error(("bounds",), str(error)) from None

    def _coordinate(self, value: Any, where: tuple[Any, ...]) -> tuple[float, float, str]:
        match value:
            case [low, high] if _is_number(low) and _is_number(high):
                return float(low), float(high), "linear"
            case [low, high, "log" | "linear" as scale] if _is_number(low) and _is_number(high):
                return float(low), float(high), scale
            case {"low": _, "high": _}:
                self._check(value, _COORDINATE_KEYS, where)
                return float(value["low"]), float(value["high"]), value.get("scale", "linear")
        expected = 'expected [low, high], or {low = ..., high = ..., scale = "log"}'
        raise self._error(where, f"{expected}, got {value!r}")

    def _check_options(self, box: Box) -> None:
        method, options = self.given.get("method", "auto"), self.given.get("options", {})
        for name, value in options.items():
            try:
                strategy(method).checked_options(box.free_dim, {name: value}, method=method)
            except (TypeError, ValueError) as error:
                raise self._error(("options", name), str(error)) from None

    def _objective(self) -> Objective | None:
        if "objective" not in self.given:
            return None
        given = self.given["objective"]
        self._check(given, _OBJECTIVE_KEYS, ("objective",))
        if ("python" in given) == ("program" in given):
            raise self._error(("objective",), 'expected either python = "module:function" or program = [...]')
        settings = {name: value for name, value in given.items() if name in _PROGRAM_KEYS}
        if "python" in given and settings:
            raise self._error(("objective", next(iter(settings))), "only a program has this key")
        return Objective(given.get("python"), given.get("program"), given.get("gradient", True), settings)

    def _check(self, given: Mapping[str, Any], known: Mapping[str, Check], where: tuple[Any, ...] = ()) -> None:
        for name, value in given.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
                hint = f"did you mean {close[0]!r}? Known" if close else "known"
                raise self._error((*where, name), f"there is no such key; {hint} are {', '.join(known)}")
            if (expected := known[name](value)) is not None:
                raise self._error((*where, name), f"expected {expected}, got {value!r}")

    def _error(self, where: tuple[Any, ...], message: str) -> SpecError:
        line = find_line(self.text, where)
        place = f"{self.path}, line {line}" if line else str(self.path)
        key = ".".join(map(str, where))
        return SpecError(f"{place}: {key}: {message}" if key else f"{place}: {message}")


_SETTINGS: Final = ("method", "budget", "seed", "workers", "tol", "on_error", "options", "check_gradients")


def find_line(text: str, where: tuple[Any, ...]) -> int | None:
    r"""The line, counted from 1, on which a key of a TOML text begins; None if the text has no such key.

    tomllib does not say. But it says whether the first n lines are TOML by themselves, and whether they have the key:
    it begins after the last n for which it is not there yet.

    >>> find_line('budget = 3\n[bounds]\na = [\n 0, 1]\nb = [0, 2]', ("bounds", "a"))
    3
    """
    if not where:
        return None
    complete = 0
    for count, found in _parsed_beginnings(text):
        if _has(found, where):
            return complete + 1
        complete = count
    return None


def _parsed_beginnings(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = text.splitlines()
    for count in range(1, len(lines) + 1):
        try:
            yield count, tomllib.loads("\n".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue


def _has(found: Any, where: tuple[Any, ...]) -> bool:
    for key in where:
        keys = found if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
        if key not in keys:
            return False
        found = found[key]
    return True
