"""Evaluations in tables, CSV or Parquet, with columns by name; `columns` has the names.

A cell that is empty is not known; `nan` as the value says that the evaluation failed, or that there is a gradient
alone. A row that has neither a value nor a derivative has not been evaluated and is left out. Columns that have nothing
to do with an evaluation are not looked at.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

import numpy as np

from eign.data import Observations
from eign.exchange.columns import by_output, found_columns
from eign.exchange.replaced_file import replaced_file
from eign.space import Box

FORMATS: Final = (".csv", ".parquet", ".json")
SAVE_AS_UTF8: Final = "if a spreadsheet wrote it, save it as CSV UTF-8"
# What a text begins with that a spreadsheet would calculate.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class TableRows(NamedTuple):
    """What a text says: evaluations, how many rows were not evaluated, and how many lines are no evaluations."""

    told: Observations
    open: int
    skipped: int = 0


def read_table(path: str | os.PathLike[str], bounds: Any, *, constraints: Sequence[str] = ()) -> Observations:
    """Evaluations from a CSV or Parquet file, for `Optimizer.tell`.

    Columns go by name: the coordinates (x0, x1 and so on if the bounds have no names), `value`, and where they are
    known `gradient_` and the name, `value_variance`, `gradient_variance_` and the name. The older names `y`, `d_` and
    the name, `y_var`, `d_` and the name and `_var` are read too. Empty cells are missing, and `nan` as the value is a
    failed evaluation, or a gradient alone. Rows with neither value nor gradient are left out, and columns that look
    like none of these are ignored. Of a constraint c there may be `constraint_c`, `constraint_c_gradient_` and the
    name, `constraint_c_variance`, and `constraint_c_gradient_variance_` and the name.

    Args:
        path: Ends in .csv or .parquet.
        bounds: As for `minimize`; a point outside is an error.
        constraints: Names of the constraints, for example `opt.constraints.names`.

    Raises:
        ValueError: a column is missing or misspelt, a cell is no number, a point is outside the bounds, or a CSV is not
            in UTF-8.
        ImportError: Parquet needs pyarrow.
    """
    file, box = Path(path), bounds if isinstance(bounds, Box) else Box(bounds)
    if file.suffix.lower() == ".parquet":
        table = _parquet().read_table(file)
        # Before the rows become dicts, which have no column twice.
        found_columns(table.column_names, box, str(file), constraints)
        return read_rows(table.to_pylist(), table.column_names, box, str(file), constraints).told
    if file.suffix.lower() != ".csv":
        raise ValueError(f"{file}: expected the ending .csv or .parquet")
    return read_csv(io.StringIO(read_utf8(file), newline=""), box, str(file), constraints).told


def read_utf8(file: Path) -> str:
    """The text of a file as it is, without the mark that spreadsheets put in front.

    Raises:
        ValueError: it is not in UTF-8.
    """
    content = file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(f"{file}, line {line}: expected UTF-8; {SAVE_AS_UTF8}") from None


def read_csv(lines: Iterable[str], box: Box, source: str, constraints: Sequence[str] = ()) -> TableRows:
    """A table of CSV; also with semicolons and decimal commas, as spreadsheets write it in half of the world."""
    text = list(lines)
    header = text[0] if text else ""
    semicolons = ";" in header
    delimiter = ";" if semicolons else "\t" if "\t" in header else ","
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    columns = [_plain_text(name.strip()) for name in next(reader, [])]
    rows: list[dict[str, str]] = []
    for row in reader:
        cells = [cell.strip().replace(",", ".") if semicolons else cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(columns):
            raise ValueError(f"{source}, row {len(rows) + 1}: expected {len(columns)} cells, got {len(cells)}")
        rows.append(dict(zip(columns, cells, strict=True)))
    return read_rows(rows, columns, box, source, constraints)


def read_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], box: Box, source: str, constraints: Sequence[str] = ()
) -> TableRows:
    """The rows of a table, each a dict column -> cell."""
    groups, bounds = found_columns(columns, box, source, constraints), (box.lower.tolist(), box.upper.tolist())
    known: list[list[list[float | None]]] = []
    for number, row in enumerate(rows, start=1):
        place = f"{source}, row {number}"
        x, y, grad, y_var, grad_var, *others = ([_cell(row, name, place) for name in group] for group in groups)
        seen = [*grad, *(cell for group in others[0::4] + others[1::4] for cell in group)]
        if all(cell is None for cell in [*y, *seen]):
            continue
        if y == [None]:
            what = "a gradient" if any(cell is not None for cell in grad) else "a constraint"
            nan = f"nan as the {groups[1][0]} says that there is none"
            raise ValueError(f"{place}: there is {what} and no {groups[1][0]}; {nan}")
        # A coordinate that is fixed need not be there.
        x = [low if cell is None and low == high else cell for cell, low, high in zip(x, *bounds, strict=True)]
        try:
            box.to_unit(np.array(x, dtype=np.float64))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        known.append([x, y, grad, y_var, grad_var, *others])
    if not known:
        return TableRows(Observations.empty(box.dim, constraints=len(constraints)), len(rows))
    points, *outputs = (np.array(part, np.float64) for part in zip(*known, strict=True))
    try:
        told, *limited = (
            Observations(points, values[:, 0], grads, variances[:, 0], grad_variances)
            for values, grads, variances, grad_variances in by_output(outputs)
        )
        told = told.with_constraints(limited)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return TableRows(told, len(rows) - len(told))


def write_table(
    path: str | os.PathLike[str],
    history: Observations,
    *,
    names: Sequence[str] | None = None,
    reasons: Sequence[str] | None = None,
    constraints: Sequence[str] | None = None,
) -> None:
    """Write evaluations to a file, with every bit of the numbers: columns that `read_table` reads, or JSON.

    JSON is an array of objects in the words that `eign tell` reads. A file that is there is replaced, keeps its
    permissions, and is the old one or the new one at any time.

    Args:
        path: Ends in .csv, .parquet or .json.
        history: For example `opt.history`.
        names: Of the coordinates, for example `opt.box.names`.
        reasons: Why each point was proposed, for a column `reason`: for example `opt.reasons`.
        constraints: Names of the constraints, for example `opt.constraints.names`; None is c0, c1 and so on.

    Raises:
        ImportError: Parquet needs pyarrow.
    """
    file, kind = Path(path), Path(path).suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{file}: expected one of the endings {', '.join(FORMATS)}")
    limited = [f"c{i}" for i in range(len(history.constraints))] if constraints is None else list(constraints)
    if len(limited) != len(history.constraints):
        raise ValueError(f"expected {len(history.constraints)} names of constraints, got {limited}")
    columns = _cells(history, names, limited)
    if reasons is not None:
        if len(reasons) != len(history):
            raise ValueError(f"expected {len(history)} reasons, one for each evaluation, got {len(reasons)}")
        columns["reason"] = list(reasons)
    arrow = _parquet() if kind == ".parquet" else None
    with replaced_file(file) as written:
        if arrow is not None:
            import pyarrow

            arrow.write_table(pyarrow.table(columns), written)
            return
        text = io.StringIO()
        if kind == ".csv":
            write_csv(columns, text)
        else:
            json.dump(as_objects(history, names, reasons, limited), text, indent=1, allow_nan=False)
            text.write("\n")
        written.write(text.getvalue().encode())


def write_csv(columns: Mapping[str, Sequence[Any]], file: TextIO) -> None:
    """Columns as CSV; floats with as many digits as it takes to read the same float."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_csv_cell, columns))
    for row in zip(*columns.values(), strict=True):
        writer.writerow(map(_csv_cell, row))


def _csv_cell(cell: Any) -> str:
    """A cell that no spreadsheet takes for a formula: a text that begins like one has an apostrophe before it."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(cell)
    return f"'{cell}" if str(cell)[:1] in _FORMULA else str(cell)


def _plain_text(name: str) -> str:
    """The name of a column without the apostrophe that `_csv_cell` puts before it."""
    return name[1:] if name[:1] == "'" and name[1:2] in _FORMULA and name[1:] else name


def as_objects(
    history: Observations, names: Sequence[str] | None, reasons: Sequence[str] | None, constraints: Sequence[str]
) -> list[dict[str, Any]]:
    """Evaluations as JSON has them; what is not known at all is left out."""

    def by_coordinate(numbers: Any) -> Any:
        entries = [_json_number(number) for number in numbers.tolist()]
        return entries if names is None else dict(zip(names, entries, strict=True))

    objects = []
    for row in range(len(history)):
        told: dict[str, Any] = {"x": by_coordinate(history.x[row]), "value": _json_number(float(history.y[row]))}
        if not np.isnan(history.grad[row]).all():
            told["gradient"] = by_coordinate(history.grad[row])
        if not np.isnan(history.y_var[row]):
            told["value_variance"] = float(history.y_var[row])
        if not np.isnan(history.grad_var[row]).all():
            told["gradient_variance"] = by_coordinate(history.grad_var[row])
        outputs = list(zip(constraints, history.constraints, strict=True))
        values = {name: _json_number(float(each.y[row])) for name, each in outputs}
        parts = {
            "constraints": {name: value for name, value in values.items() if value is not None},
            "constraint_gradients": {
                name: by_coordinate(each.grad[row]) for name, each in outputs if not np.isnan(each.grad[row]).all()
            },
            "constraint_variances": {
                name: float(each.y_var[row]) for name, each in outputs if not np.isnan(each.y_var[row])
            },
            "constraint_gradient_variances": {
                name: by_coordinate(each.grad_var[row])
                for name, each in outputs
                if not np.isnan(each.grad_var[row]).all()
            },
        }
        told |= {key: part for key, part in parts.items() if part}
        objects.append(told if reasons is None else {**told, "reason": reasons[row]})
    return objects


def _json_number(number: float) -> float | str | None:
    """NaN is null and an infinity a text, as JSON has no such numbers."""
    return number if math.isfinite(number) else None if math.isnan(number) else str(number)


def _cells(history: Observations, names: Sequence[str] | None, constraints: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Columns with None for what is not known, but for a value: that is NaN, which says so.

    Raises:
        ValueError: the names are too few, or leave none for another column.
    """
    columns = history.columns(names, constraints)
    shown = [*columns][: history.dim + 1]
    return {
        name: column.tolist() if name in shown else [None if math.isnan(cell) else cell for cell in column.tolist()]
        for name, column in columns.items()
    }


def _cell(row: Mapping[str, Any], name: str | None, place: str) -> float | None:
    """A number, or None if the cell is empty or there is no such column."""
    cell = None if name is None else row.get(name)
    if cell is None or cell == "":
        return None
    try:
        if isinstance(cell, bool):
            raise TypeError
        return float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"{place}, column {name}: expected a number, got {cell!r}") from None


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'eign[bench]' or pip install pyarrow") from error
    return pyarrow.parquet
