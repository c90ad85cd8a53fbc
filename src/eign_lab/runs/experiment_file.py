"""Experiments from a TOML file or from plain data, with errors that name the key at fault.

[[experiment]]
id = "mine"
title = "A shifted Ackley function"

[[experiment.problem]]
name = "ackley-5"
initial = 10
budget = 60
options = {shifted = {seed = 1}}

[[experiment.method]]
method = "ei-gn"
options = {alpha = 0.3}

[[experiment.method]]
method = "l-bfgs"
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec, find_program
from eign_lab.runs.tasks import new_optimizer

# Key, type, whether it must be there.
Field = tuple[str, type | tuple[type, ...], bool]
_PROBLEM: Final[tuple[Field, ...]] = (
    ("name", str, True),
    ("initial", (int, type(None)), False),
    ("budget", int, True),
    ("options", Mapping, False),
    ("source", str, False),
    ("seeded", bool, False),
    ("design", str, False),
    ("target", (float, int, type(None)), False),
    ("restarts", (int, type(None)), False),
    ("raw_samples", (int, type(None)), False),
    ("surrogate", Mapping, False),
    ("checkpoints", (list, tuple), False),
    ("label", str, False),
)
_METHOD: Final[tuple[Field, ...]] = (("method", str, True), ("label", str, False), ("options", Mapping, False))
_EXPERIMENT: Final[tuple[Field, ...]] = (
    ("id", str, True),
    ("title", str, False),
    ("problems", (list, tuple), True),
    ("methods", (list, tuple), True),
    ("extra", bool, False),
    ("quick", bool, False),
)


def load_experiments(path: str | Path) -> list[Experiment]:
    """The experiments of a TOML file, each checked as far as that is possible without running it.

    Raises:
        ValueError: it is not TOML, a key is missing, unknown or of the wrong kind, or there is no such problem, method
            or option; the message names the key.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    tables = _known(content, (("experiment", list, True),), str(path))["experiment"]
    experiments = []
    for number, table in enumerate(tables):
        where = f"{path}: experiment[{number}]"
        plural = {"problem": "problems", "method": "methods"}  # one table each, as TOML reads
        renamed = {plural.get(key, key): value for key, value in _mapping(table, where).items()}
        experiments.append(read_experiment(renamed, where))
        _check_names(experiments[-1], where)
    return experiments


def read_experiment(stored: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """The experiment that plain data describe, as `Experiment.to_json` gives it; `where` begins an error.

    Raises:
        ValueError: a key is missing, unknown or of the wrong kind; the message names it.
    """
    table = _known(stored, _EXPERIMENT, where)
    problems = [_problem(each, f"{where}.problem[{i}]") for i, each in enumerate(table["problems"])]
    methods = [_method(each, f"{where}.method[{i}]") for i, each in enumerate(table["methods"])]
    rest = {key: value for key, value in table.items() if key not in ("problems", "methods")}
    rest.setdefault("title", table["id"])
    try:
        return Experiment(**rest, problems=tuple(problems), methods=tuple(methods))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _problem(stored: Any, where: str) -> ProblemSpec:
    table = _known(stored, _PROBLEM, where)
    points = table.get("checkpoints", ())
    if not all(isinstance(point, int) for point in points):
        raise ValueError(f"{where}.checkpoints: expected whole numbers, got {points!r}")
    try:
        return ProblemSpec(**{"initial": None, **table, "checkpoints": tuple(points)})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _method(stored: Any, where: str) -> MethodSpec:
    table = _known(stored, _METHOD, where)
    return MethodSpec(table.get("label", table["method"]), table["method"], table.get("options", {}))


def _check_names(experiment: Experiment, where: str) -> None:
    """Whether problems, methods and options exist."""
    for number, problem in enumerate(experiment.problems):
        try:
            problem.posed(0)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}.problem[{number}]: {error}") from error
    for number, method in enumerate(experiment.methods):
        for problem in experiment.problems:
            try:
                run = experiment.run(problem, method, 0)
                if find_program(method.method) is None:
                    new_optimizer(run, problem.posed(0))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{where}.method[{number}]: {error}") from error


def _known(stored: Any, fields: tuple[Field, ...], where: str) -> dict[str, Any]:
    """The table, if it has all that it needs, nothing else, and everything of the right kind."""
    table = _mapping(stored, where)
    names = [name for name, _, _ in fields]
    for key in table:
        if key not in names:
            raise ValueError(f"{where}: unknown key {key!r}; expected some of {', '.join(names)}")
    for name, kind, is_needed in fields:
        if name not in table:
            if is_needed:
                raise ValueError(f"{where}: the key {name!r} is missing")
        elif not isinstance(table[name], kind) or (kind is not bool and isinstance(table[name], bool)):
            raise ValueError(f"{where}.{name}: expected {_words(kind)}, got {table[name]!r}")
    return table


def _mapping(stored: Any, where: str) -> dict[str, Any]:
    if not isinstance(stored, Mapping):
        raise ValueError(f"{where}: expected a table, got {stored!r}")
    return dict(stored)


def _words(kind: type | tuple[type, ...]) -> str:
    first = kind[0] if isinstance(kind, tuple) else kind
    words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list"}
    return words.get(first, "a table")
