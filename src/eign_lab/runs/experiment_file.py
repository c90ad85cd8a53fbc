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
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec, find_program
from eign_lab.runs.tasks import new_optimizer


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
    if set(content) != {"experiment"} or not isinstance(content["experiment"], list):
        raise ValueError(f"{path}: expected tables [[experiment]] and nothing else, got {', '.join(content) or 'none'}")
    experiments = []
    for number, table in enumerate(content["experiment"]):
        where = f"{path}: experiment[{number}]"
        plural = {"problem": "problems", "method": "methods"}  # one table each, as TOML reads
        renamed = {plural.get(key, key): value for key, value in _mapping(table, where).items()}
        experiments.append(read_experiment(renamed, where))
        _check_names(experiments[-1], where)
    return experiments


def read_experiment(stored: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """The experiment that plain data describe, with the attributes of `Experiment`; `where` begins an error.

    Raises:
        ValueError: a key is missing, unknown or of the wrong kind; the message names it.
    """
    table = _known({"title": _mapping(stored, where).get("id"), **stored}, Experiment, where)
    table["problems"] = tuple(_problem(each, f"{where}.problem[{i}]") for i, each in enumerate(table["problems"]))
    table["methods"] = tuple(_method(each, f"{where}.method[{i}]") for i, each in enumerate(table["methods"]))
    try:
        return Experiment(**table)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _problem(stored: Any, where: str) -> ProblemSpec:
    table = _known({"initial": None, **_mapping(stored, where)}, ProblemSpec, where)
    points = table.get("checkpoints", ())
    if not all(isinstance(point, int) for point in points):
        raise ValueError(f"{where}.checkpoints: expected whole numbers, got {points!r}")
    try:
        return ProblemSpec(**{**table, "checkpoints": tuple(points)})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _method(stored: Any, where: str) -> MethodSpec:
    table = _mapping(stored, where)
    return MethodSpec(**_known({"label": table.get("method", ""), **table}, MethodSpec, where))


def _check_names(experiment: Experiment, where: str) -> None:
    """Whether problems, methods and options exist."""
    for i, problem in enumerate(experiment.problems):
        at = f"{where}.problem[{i}]"
        try:
            posed = problem.posed(0)
            for j, method in enumerate(experiment.methods):
                at = f"{where}.method[{j}]"
                if find_program(method.method) is None:
                    new_optimizer(experiment.run(problem, method, 0), posed)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{at}: {error}") from error


def _known(table: Mapping[str, Any], kind: type, where: str) -> dict[str, Any]:
    """The table, if it has all that the dataclass needs, nothing else, and everything of the right kind."""
    attributes = {each.name: each for each in fields(kind)}
    for key in table:
        if key not in attributes:
            raise ValueError(f"{where}: unknown key {key!r}; expected some of {', '.join(attributes)}")
    for name, each in attributes.items():
        kinds = _kinds(each.type)
        if name not in table:
            if each.default is MISSING and each.default_factory is MISSING:
                raise ValueError(f"{where}: the key {name!r} is missing")
        elif not isinstance(table[name], kinds) or (bool not in kinds and isinstance(table[name], bool)):
            raise ValueError(f"{where}.{name}: expected {_WORDS.get(kinds[0], 'a table')}, got {table[name]!r}")
    return dict(table)


_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list"}


def _kinds(annotation: Any) -> tuple[type, ...]:
    """What a value from a file may be, for an attribute with this annotation."""
    parts = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    kinds = [get_origin(part) or part for part in parts]
    also = {tuple: list, float: int}  # TOML has lists, and 3 where 3.0 is meant
    return (*kinds, *(also[kind] for kind in kinds if kind in also))


def _mapping(stored: Any, where: str) -> dict[str, Any]:
    if not isinstance(stored, Mapping):
        raise ValueError(f"{where}: expected a table, got {stored!r}")
    return dict(stored)
