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

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from eign.checks import Check, EntryError, Place, a_number, a_table, checked, checked_table, flag, or_none, whole
from eign.exchange.toml_file import SpecError, read_toml
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec, find_program


def load_experiments(path: str | Path) -> list[Experiment]:
    """The experiments of a TOML file, each checked as far as that is possible without running it.

    Raises:
        ValueError: it is not TOML, a key is missing, unknown or of the wrong kind, or there is no such problem, method
            or option; the message names the key.
    """
    try:
        file = read_toml(Path(path))
    except OSError as error:
        raise SpecError(f"{path}: {error}") from error
    experiments = []
    with file.located():
        tables = checked_table(file.content, {"experiment": _a_list}, needed=("experiment",))["experiment"]
        for number, table in enumerate(tables):
            place = ("experiment", number)
            plural = {"problem": "problems", "method": "methods"}  # one table each, as TOML reads
            renamed = {plural.get(key, key): value for key, value in checked(table, a_table, place).items()}
            experiments.append(read_experiment(renamed, place))
            _check_names(experiments[-1], place)
    return experiments


def read_experiment(stored: Mapping[str, Any], place: Place = ("experiment",)) -> Experiment:
    """The experiment that plain data describe, with the attributes of `Experiment`; `place` begins an error.

    Raises:
        ValueError: a key is missing, unknown or of the wrong kind; the message names it.
    """
    given = checked(stored, a_table, place)
    table = _known({"title": given.get("id"), **given}, Experiment, place)
    table["problems"] = tuple(_problem(each, (*place, "problem", i)) for i, each in enumerate(table["problems"]))
    table["methods"] = tuple(_method(each, (*place, "method", i)) for i, each in enumerate(table["methods"]))
    try:
        return Experiment(**table)
    except ValueError as error:
        raise EntryError(place, str(error)) from error


def _problem(stored: Any, place: Place) -> ProblemSpec:
    table = _known({"initial": None, **checked(stored, a_table, place)}, ProblemSpec, place)
    try:
        return ProblemSpec(**{**table, "checkpoints": tuple(table.get("checkpoints", ()))})
    except ValueError as error:
        raise EntryError(place, str(error)) from error


def _method(stored: Any, place: Place) -> MethodSpec:
    table = checked(stored, a_table, place)
    return MethodSpec(**_known({"label": table.get("method", ""), **table}, MethodSpec, place))


def _check_names(experiment: Experiment, place: Place) -> None:
    """Whether problems, methods and options exist."""
    for i, problem in enumerate(experiment.problems):
        at: Place = (*place, "problem", i)
        try:
            posed = problem.posed(0)
            for j, method in enumerate(experiment.methods):
                at = (*place, "method", j)
                if find_program(method.method) is None:
                    run = experiment.run(problem, method, 0)
                    posed.begin(run.method, run.seed, run.options)
        except (TypeError, ValueError) as error:
            raise EntryError(at, str(error)) from error


def _known(table: Mapping[str, Any], kind: type, place: Place) -> dict[str, Any]:
    """The table, if it has all that the dataclass needs, nothing else, and everything of the right kind."""
    attributes = fields(kind)
    needed = [each.name for each in attributes if each.default is MISSING and each.default_factory is MISSING]
    return checked_table(table, {each.name: _check(each.type) for each in attributes}, place, needed=needed)


def _check(annotation: Any) -> Check:
    """What a value from a file must be, for an attribute with this annotation."""
    parts = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    (kind,) = (part for part in parts if part is not NoneType)
    check = _whole_numbers if kind == tuple[int, ...] else _CHECKS.get(get_origin(kind) or kind, a_table)
    return or_none(check) if NoneType in parts else check


def _a_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def _a_list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError("a list")
    return list(value)


def _whole_numbers(value: Any) -> list[int]:
    if not all(isinstance(entry, int) for entry in _a_list(value)):
        raise ValueError("whole numbers")
    return list(value)


_CHECKS: Final[Mapping[Any, Check]] = {
    str: _a_text,
    int: whole(least=0),
    float: a_number,
    bool: flag,
    tuple: _a_list,
}
