"""Points and evaluations as text, for people and for programs: JSON, one object a line, or CSV.

A point is `{"x": {"width": 0.5, "rate": 0.01}, "reason": "model"}`, with a list in place of the dict if the bounds
have no names. An evaluation is `{"x": ..., "value": 1.5, "gradient": ...}`, with value_variance and gradient_variance
where they are known: the words in which an external program answers. `"value": null` is a failed evaluation.
"""

import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from eign.arrays import Array
from eign.data import Observations, column_names
from eign.exchange.tables import TableRows, read_csv, write_csv
from eign.space import Box
from eign.study.optimizer import Optimizer

_KEYS: Final = {"x", "value", "gradient", "value_variance", "gradient_variance", "reason"}


def point_as_json(x: Array, box: Box) -> dict[str, float] | list[float]:
    """A point (d,) by name, or as a list where there are no names."""
    return box.as_dict(x) if box.names is not None else x.tolist()


def points_as_text(points: Array, reasons: Sequence[str], box: Box, *, as_csv: bool) -> str:
    """Points for somebody who evaluates them; a CSV has empty columns for value and gradient, to be filled in."""
    if not as_csv:
        pairs = zip(points, reasons, strict=True)
        return "".join(json.dumps({"x": point_as_json(x, box), "reason": reason}) + "\n" for x, reason in pairs)
    names, values, gradients, _, _ = column_names(box.dim, box.names)
    columns: dict[str, Sequence[Any]] = dict(zip(names, points.T.tolist(), strict=True))
    columns |= {name: [None] * len(points) for name in [*values, *gradients]}
    text = io.StringIO()
    write_csv({**columns, "reason": list(reasons)}, text)
    return text.getvalue()


def evaluations_from_text(text: str, box: Box, source: str, *, point: str | None = None) -> TableRows:
    """Evaluations in JSON or CSV, whichever it is.

    Args:
        text: One JSON object, an array of them, one a line, or a table as `read_table` takes it.
        box: Of the study.
        source: Where the text comes from, for errors.
        point: JSON of the point, if a single evaluation does not say it.

    Raises:
        ValueError: it is none of this; the message says where.
    """
    if not text.strip():
        raise ValueError(f"{source} is empty, expected evaluations in JSON or CSV")
    if text.lstrip()[0] not in "[{":
        return read_csv(io.StringIO(text.removeprefix("\ufeff")), box, source)
    objects = _objects(text, source)
    if point is not None:
        asked = _objects(point, "the point")
        if len(asked) != 1 or len(objects) != 1:
            raise ValueError(f"expected one point and one evaluation, got {len(asked)} and {len(objects)}")
        objects = [{"x": asked[0].get("x"), **objects[0]}]
    told = Observations.empty(box.dim)
    for number, found in enumerate(objects, start=1):
        try:
            told = _appended(told, found, box)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}, evaluation {number}: {error}") from None
    return TableRows(told, 0)


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


def evaluation_by_hand(x: str, y: float, gradient: str | None, box: Box) -> TableRows:
    """One evaluation that a person typed."""
    slope = None if gradient is None else numbers_from_text(gradient, box, "gradient")
    return TableRows(Observations.empty(box.dim).append(numbers_from_text(x, box, "x"), y, slope), 0)


def tell_new(study: Optimizer, rows: TableRows) -> str:
    """Tell what the study has not heard before; returns one line about it."""
    told = without_known(rows.told, study.history)
    if len(told):
        study.tell(told)
    parts = [f"told {len(told)}" + (f" ({told.n_failed} failed)" if told.n_failed else "")]
    if known := len(rows.told) - len(told):
        parts.append(f"{known} were known already")
    if rows.open:
        parts.append(f"{rows.open} rows without a value left out")
    parts.append(f"{len(study.history)} evaluations in all, {len(study.pending)} pending")
    if study.history.has_y.any():
        parts.append(f"best {study.best.y:.10g}")
    return "; ".join(parts)


def without_known(told: Observations, history: Observations) -> Observations:
    """The evaluations that a study has not heard before, to the last bit: a table may be told again, with new rows."""
    known = {_key(history, row) for row in range(len(history))}
    return told[[row for row in range(len(told)) if _key(told, row) not in known]]


def _key(observations: Observations, row: int) -> bytes:
    return b"".join(array[row].tobytes() for array in (observations.x, observations.y, observations.grad))


def _objects(text: str, source: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError as whole:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise ValueError(f"{source}: expected JSON: {whole}") from None
    objects = found if isinstance(found, list) else [found]
    if not all(isinstance(entry, dict) for entry in objects):
        raise ValueError(f"{source}: expected JSON objects with x and value")
    return objects


def _appended(told: Observations, found: Mapping[str, Any], box: Box) -> Observations:
    if unknown := set(found) - _KEYS:
        raise ValueError(f"unknown keys {sorted(unknown)}, expected some of {sorted(_KEYS)}")
    if found.get("x") is None:
        raise ValueError("there is no x")
    if "value" not in found and found.get("gradient") is None:
        raise ValueError("there is no value; null says that the evaluation failed")
    x = box.from_dict(found["x"]) if isinstance(found["x"], dict) else np.array(found["x"], dtype=np.float64)
    box.to_unit(x)
    y = math.nan if found.get("value") is None else float(found["value"])
    grad, grad_var = (
        _by_coordinate(entry, box, key) if isinstance(entry := found.get(key), dict) else entry
        for key in ("gradient", "gradient_variance")
    )
    return told.append(x, y, grad, found.get("value_variance"), grad_var)


def _by_coordinate(values: Mapping[str, float | None], box: Box, what: str) -> Array:
    names = box.names or ()
    if unknown := [name for name in values if name not in names]:
        raise ValueError(f"{what} has unknown names {unknown}, expected some of {list(names)}")
    if what == "x":
        return box.from_dict({name: float(value) for name, value in values.items() if value is not None})
    return np.array([values.get(name) for name in names], dtype=np.float64)
