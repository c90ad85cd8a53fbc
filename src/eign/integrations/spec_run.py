"""Run what a spec describes: its function is imported or its program started, and `minimize` does the rest."""

import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from scipy.optimize import OptimizeResult

from eign.data import Observations
from eign.evaluation import AnswerError, Evaluation
from eign.exchange.printing import counted, entries, printable
from eign.exchange.spec import Objective, Spec, SpecError
from eign.exchange.tables import as_objects
from eign.integrations.command import Command
from eign.study import Optimizer, maximize, minimize
from eign.study.storage.study_file import StorageError


@final
@dataclass(frozen=True, slots=True)
class SpecFunction:
    """The function that a spec names, behind one that takes an array.

    Attributes:
        fun: Takes a dict if there are names.
        names: Of the coordinates, or None.
        gradient: Whether it is to return (value, gradient).
    """

    fun: Callable[[Any], Any]
    names: Sequence[str] | None
    gradient: bool

    def __call__(self, x: Any) -> Any:
        """The function at a point `d`."""
        answer = self.fun(x if self.names is None else dict(zip(self.names, x.tolist(), strict=True)))
        is_pair = isinstance(answer, tuple | list) and len(answer) == 2
        if self.gradient and not is_pair and not isinstance(answer, Evaluation):
            advice = "return (value, gradient), or write gradient = false under [objective]"
            raise AnswerError(f"the function returned {type(answer).__name__}: {advice}")
        return answer


def run_spec(spec: Spec, *, resume: bool, progress: bool) -> OptimizeResult:
    """Evaluate until the budget is used or the optimum found.

    Raises:
        SpecError: the spec has no objective, or one that is not there.
        FileExistsError: there is a study of this name, and it is not to be resumed.
    """
    if spec.objective is None:
        raise SpecError(f"{spec.path}: objective is missing: expected a table [objective] with python or program")
    if resume and spec.storage is None:
        raise SpecError(f"{spec.path}: storage is missing: there is no file to resume from")
    if not resume and spec.storage is not None and spec.storage.exists():
        raise FileExistsError(f"{spec.storage} exists; to continue that study give --resume, for a new one a new name")
    search = maximize if spec.maximize else minimize
    try:
        return search(
            load_objective(spec, spec.objective),
            spec.box,
            jac=spec.objective.gradient,
            storage=spec.storage,
            resume=resume,
            progress=progress,
            constraints=[spec.constraints, spec.linear],
            **spec.settings,
        )
    except StorageError as error:
        if not hasattr(error, "partial_result"):
            raise
        raise _not_written(error, error.partial_result.history, spec) from error


def _not_written(error: StorageError, history: Observations, spec: Spec) -> StorageError:
    """The error in the words of the terminal, with the evaluations that the file lacks: the process is about to end."""
    reason = error.__cause__ if isinstance(error.__cause__, StorageError) else error
    missing = history[len(Optimizer.view(spec.storage).history) :]
    lost = [json.dumps(one) for one in as_objects(missing, spec.box.names, None, spec.constraints.names)]
    if lost:
        lost = [f"The file lacks {counted(len(lost), 'evaluation')}; give this to eign tell {spec.storage}:", *lost]
    again = f"When that is mended, go on with: eign optimize {spec.path} --resume"
    return StorageError("\n".join([f"{reason}.", *lost, again]))


def describe_result(result: OptimizeResult, spec: Spec, *, as_json: bool) -> str:
    """What was found, for a person or for a program."""
    point, names = result.x.tolist(), spec.box.names
    if as_json:
        values = {"x": point if names is None else dict(zip(names, point, strict=True)), "value": float(result.fun)}
        more = {"gradient": result.jac.tolist(), "evaluations": result.nfev, "success": bool(result.success)}
        if "constr" in result:
            named = zip(result.constr_names, result.constr.tolist(), strict=True)
            more |= {"constraints": dict(named), "violation": float(result.constr_violation)}
        return json.dumps(_nulls({**values, **more, "message": result.message}), allow_nan=False)
    labels = [f"x{i}" for i in range(len(point))] if names is None else names
    numbers = [*zip(("value", *labels), (float(result.fun), *point), strict=True)]
    if "constr" in result:
        numbers += [*zip(result.constr_names, result.constr.tolist(), strict=True)]
        numbers += [("violation", float(result.constr_violation))]
    return "\n".join([printable(result.message), *entries((label, f"{number:.10g}") for label, number in numbers)])


def _nulls(value: Any) -> Any:
    """The same with null for NaN and infinities, which JSON has not."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: _nulls(entry) for key, entry in value.items()}
        case list():
            return [_nulls(entry) for entry in value]
    return value


def load_objective(spec: Spec, objective: Objective) -> Callable[[Any], Any]:
    """What is called at each point. With names in the bounds, points are dicts; paths start at the spec's directory."""
    directory = spec.path.absolute().parent
    names = spec.box.names
    if objective.python is not None:
        fun = _imported(objective.python, directory, spec.path)
        return SpecFunction(fun, names, objective.gradient)
    assert objective.program is not None, "a spec has one of the two"
    settings = dict(objective.settings)
    if "directory" in settings:
        settings["directory"] = directory / settings["directory"]
    # A program runs in a directory of its own: what is a file here must be found from there.
    program = [directory / word if os.path.isfile(directory / word) else word for word in objective.program]
    try:
        return Command(program, names=names, **settings)
    except (FileNotFoundError, ValueError) as error:
        raise SpecError(f"{spec.path}: objective.program: {error}") from None


def _imported(home: str, directory: Path, source: Path) -> Callable[[Any], Any]:
    module, _, name = home.partition(":")
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise SpecError(f"{source}: objective.python: {error}; modules are looked for in {directory} too") from error
    except AttributeError:
        raise SpecError(f"{source}: objective.python: the module {module} has no {name!r}") from None
    if not callable(found):
        raise SpecError(f"{source}: objective.python: {home} is no function but {found!r}")
    return found  # type: ignore[no-any-return]
