"""Points and evaluations as text, for people and for programs: JSON, one object a line, or CSV.

A point is `{"x": {"width": 0.5, "rate": 0.01}, "reason": "model"}`, with a list in place of the dict if the bounds
have no names. An evaluation is `{"x": ..., "value": 1.5, "gradient": ...}`: the words in which an external program
answers, see `answers`. `"value": null` is a failed evaluation.
"""

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eign.arrays import Array, as_floats
from eign.checks import not_among
from eign.columns import names_of
from eign.constraints import Limits
from eign.data import Observations
from eign.exchange.answers import CONSTRAINT_KEYS, KEYS, checked_answer, components, read_json, unknown_key
from eign.exchange.columns import by_output, coordinates_of
from eign.exchange.tables import TableRows, read_csv, write_csv
from eign.space import Box
from eign.study.told import with_told_constraints

if TYPE_CHECKING:
    from eign.study.optimizer import Optimizer

_KEYS: Final = ("x", *KEYS, "reason")


def point_as_json(x: Array, box: Box) -> dict[str, float] | list[float]:
    """A point (d,) by name, or as a list where there are no names."""
    return box.as_dict(x) if box.names is not None else x.tolist()


def points_as_text(
    points: Array, reasons: Sequence[str], box: Box, *, as_csv: bool, constraints: Sequence[str] = ()
) -> str:
    """Points for somebody who evaluates them; a CSV has empty columns for values and gradients, to be filled in."""
    if not as_csv:
        pairs = zip(points, reasons, strict=True)
        return "".join(json.dumps({"x": point_as_json(x, box), "reason": reason}) + "\n" for x, reason in pairs)
    names, *outputs = names_of(coordinates_of(box), constraints).written
    columns: dict[str, Sequence[Any]] = dict(zip(names, points.T.tolist(), strict=True))
    for values, gradients, _, _ in by_output(outputs):
        columns |= {name: [None] * len(points) for name in [*values, *gradients]}
    text = io.StringIO()
    write_csv({**columns, "reason": list(reasons)}, text)
    return text.getvalue()


def evaluations_from_text(
    text: str, box: Box, source: str, *, point: str | None = None, constraints: Limits | None = None
) -> TableRows:
    """Evaluations in JSON or CSV, whichever it is.

    Args:
        text: One JSON object, an array of them, one a line, or a table as `read_table` takes it.
        box: Of the study.
        source: Where the text comes from, for errors.
        point: JSON of the point, if a single evaluation does not say it.
        constraints: Those of the study.

    Raises:
        ValueError: it is none of this; the message says where.
    """
    limits = constraints if constraints is not None else Limits()
    if not text.strip():
        raise ValueError(f"{source} is empty, expected evaluations in JSON or CSV")
    if not _is_json(text):
        return read_csv(io.StringIO(text.removeprefix("\ufeff"), newline=""), box, source, limits.names)
    objects, skipped = _objects(text, source)
    if point is not None:
        asked, _ = _objects(point, "the point")
        if len(asked) != 1 or len(objects) != 1:
            raise ValueError(f"expected one point and one evaluation, got {len(asked)} and {len(objects)}")
        objects = [{"x": asked[0].get("x"), **objects[0]}]
    told = Observations.empty(box.dim, constraints=len(limits))
    for number, found in enumerate(objects, start=1):
        try:
            told = told.followed_by(_observation(found, box, limits).with_missing_constraints(len(limits)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}, evaluation {number}: {error}") from None
    return TableRows(told, 0, skipped)


def numbers_from_text(text: str, box: Box, what: str) -> Array:
    """Numbers that a person types, `0.5,0.01` or `width=0.5,rate=0.01`, one for each coordinate.

    >>> numbers_from_text("b=2, a=1", Box({"a": (0, 3), "b": (0, 3)}), "x")
    array([1., 2.])
    """
    parts = [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]
    try:
        if any("=" in part for part in parts):
            named = {name.strip(): float(number) for name, _, number in (part.partition("=") for part in parts)}
            return _by_coordinate(named, box, what)
        numbers = np.array([float(part) for part in parts])
    except ValueError as error:
        names = ",".join(f"{name}=..." for name in box.names or ("0.5", "0.1"))
        raise ValueError(f"{what} {text!r}: {error}; expected {box.dim} numbers, or {names}") from None
    if len(numbers) != box.dim:
        raise ValueError(f"{what} {text!r}: expected {box.dim} numbers with commas between them")
    return numbers


def evaluation_by_hand(
    x: str,
    y: float,
    gradient: str | None,
    box: Box,
    *,
    constraint: Sequence[str] = (),
    constraints: Limits | None = None,
) -> TableRows:
    """One evaluation that a person typed; each constraint as `stress=231`."""
    slope = None if gradient is None else numbers_from_text(gradient, box, "gradient")
    told = Observations.empty(box.dim).append(numbers_from_text(x, box, "x"), y, slope)
    values: dict[str, float] = {}
    for text in constraint:
        name, _, number = text.rpartition("=")
        try:
            values[name.strip()] = float(number)
        except ValueError:
            raise ValueError(f"constraint {text!r}: expected a name and its value, stress=231") from None
    limits = constraints if constraints is not None else Limits()
    return TableRows(with_told_constraints(told, box, limits, values=values or None), 0)


def tell_new(study: "Optimizer", rows: TableRows) -> str:
    """Tell what the study has not heard before; returns one line about it."""
    told = without_known(rows.told, study.history)
    if len(told):
        study.tell(told)
    parts = [f"told {len(told)}" + (f" ({told.n_failed} failed)" if told.n_failed else "")]
    if known := len(rows.told) - len(told):
        parts.append(f"{known} {'was' if known == 1 else 'were'} known already")
    if rows.open:
        parts.append(f"{rows.open} row{'s' * (rows.open > 1)} without a value left out")
    if rows.skipped:
        parts.append(f"{rows.skipped} line{'s' * (rows.skipped > 1)} before the JSON left out")
    count = len(study.history)
    parts.append(f"{count} evaluation{'s' * (count != 1)} in all, {len(study.pending)} pending")
    if study.history.has_y.any():
        parts.append(f"best {study.best.y:.10g}{_infeasibility(study)}")
    return "; ".join(parts)


def _infeasibility(study: "Optimizer") -> str:
    """Why the best point is not feasible; nothing if it is."""
    best = study.best
    if best.is_feasible:
        return ""
    missing = [
        repr(name) for name, told in zip(study.constraints.names, best.constraints, strict=True) if np.isnan(told)
    ]
    if missing:
        return f", no value of the constraint{'s' * (len(missing) > 1)} {', '.join(missing)} is told there"
    return f", infeasible by {best.violation:.3g}"


def without_known(told: Observations, history: Observations) -> Observations:
    """The evaluations that a study has not heard before, to the last bit: a table may be told again, with new rows."""
    padded = told.with_missing_constraints(len(history.constraints))
    known = {_key(history, row) for row in range(len(history))}
    return told[[row for row in range(len(told)) if _key(padded, row) not in known]]


def _key(observations: Observations, row: int) -> bytes:
    outputs = (observations, *observations.constraints)
    arrays = [observations.x, *(array for each in outputs for array in (each.y, each.grad))]
    return b"".join(array[row].tobytes() for array in arrays)


def _is_json(text: str) -> bool:
    """Whether there is JSON in it, at its beginning or after lines of another kind; otherwise it is a table."""
    lines = text.lstrip().splitlines()
    return lines[0][:1] in ("[", "{") or any(line.lstrip()[:1] == "{" for line in lines[1:])


def _objects(text: str, source: str) -> tuple[list[dict[str, Any]], int]:
    """The JSON objects of a text, and how many lines come before them: programs print what they do before they answer.

    From the first object on every line must be one, so that none is lost that a crash has cut short.
    """
    try:
        found, skipped = read_json(text), 0
    except ValueError as whole:
        lines = [line for line in text.splitlines() if line.strip()]
        parsed = [_object(line) for line in lines]
        skipped = next((i for i, entry in enumerate(parsed) if entry is not None), len(lines))
        found = parsed[skipped:]
        if not found or None in found or any(line.lstrip().startswith('{"') for line in lines[:skipped]):
            raise ValueError(f"{source}: expected JSON: {whole}") from None
    objects: list[Any] = found if isinstance(found, list) else [found]
    if not all(isinstance(entry, dict) for entry in objects):
        raise ValueError(f"{source}: expected JSON objects with x and value")
    return objects, skipped


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = read_json(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _observation(found: Mapping[str, Any], box: Box, limits: Limits) -> Observations:
    """One evaluation, with its constraints where it says something of them."""
    for key in found:
        if key not in _KEYS:
            raise ValueError(unknown_key(key, _KEYS))
    if found.get("x") is None:
        raise ValueError("there is no x")
    x = _by_coordinate(components(found["x"], "x", box.dim, box.names), box, "x")
    box.to_unit(x)
    answer = checked_answer({key: entry for key, entry in found.items() if key in KEYS}, box.dim, box.names)
    gradient, gradient_variance = (
        None if answer.get(key) is None else _by_coordinate(answer[key], box, key)
        for key in ("gradient", "gradient_variance")
    )
    told = Observations.empty(box.dim).append(
        x, answer["value"], gradient, answer.get("value_variance"), gradient_variance
    )
    values, gradients, variances, gradient_variances = (answer.get(key) for key in CONSTRAINT_KEYS)
    return with_told_constraints(
        told,
        box,
        limits,
        values=values,
        gradients=gradients,
        variances=variances,
        gradient_variances=gradient_variances,
    )


def _by_coordinate(values: Mapping[str, float | None] | list[float | None], box: Box, what: str) -> Array:
    """Numbers in the order of the coordinates, NaN where one is missing; a point lacks none."""
    if isinstance(values, list):
        return as_floats(values, what)
    names = box.names or ()
    for name in values:
        if name not in names:
            raise ValueError(not_among(f"{what} has no coordinate", name, names))
    if what == "x":
        return box.from_dict({name: value for name, value in values.items() if value is not None})
    return as_floats([values.get(name) for name in names], what)
