"""Evaluations in tables, CSV or Parquet, with columns by name.

| column | what |
|---|---|
| the name of a coordinate, or x0, x1 and so on | the point |
| `y` | the value |
| `d_` and the name | the partial derivative |
| `y_var`, `d_` and the name and `_var` | variances of the noise |

A cell that is empty is not known; `nan` as the value says that the evaluation failed. A row that has neither a value
nor a derivative has not been evaluated and is left out. Other columns are not looked at.
"""

import csv
import difflib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

import numpy as np

from eign.data import Observations, column_names
from eign.space import Box

FORMATS: Final = (".csv", ".parquet", ".json")


class TableRows(NamedTuple):
    """What a table says: evaluations, and how many rows were not evaluated."""

    told: Observations
    open: int


def read_table(path: str | os.PathLike[str], bounds: Any) -> Observations:
    """Evaluations from a CSV or Parquet file, for `Optimizer.tell`.

    Columns go by name: the coordinates (x0, x1 and so on if the bounds have no names), `y`, and where they are known
    `d_` and the name for the gradient, `y_var`, `d_` and the name and `_var`. Empty cells are missing, and `nan` as
    the value is a failed evaluation. TableRows with neither value nor gradient are left out, other columns are ignored.

    Args:
        path: Ends in .csv or .parquet.
        bounds: As for `minimize`; a point outside is an error.

    Raises:
        ValueError: a column is missing or misspelt, a cell is no number, or a point is outside the bounds.
        ImportError: Parquet needs pyarrow.
    """
    file, box = Path(path), bounds if isinstance(bounds, Box) else Box(bounds)
    if file.suffix.lower() == ".parquet":
        return read_rows(_parquet().read_table(file).to_pylist(), box, str(file)).told
    if file.suffix.lower() != ".csv":
        raise ValueError(f"{file}: expected the ending .csv or .parquet")
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return read_csv(lines, box, str(file)).told


def read_csv(lines: Iterable[str], box: Box, source: str) -> TableRows:
    """A table of CSV; also with semicolons and decimal commas, as spreadsheets write it in half of the world."""
    text = list(lines)
    header = text[0] if text else ""
    semicolons = ";" in header
    delimiter = ";" if semicolons else "\t" if "\t" in header else ","
    reader = csv.DictReader(text, delimiter=delimiter, skipinitialspace=True)
    rows: list[dict[str, str]] = []
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"{source}, row {len(rows) + 1}: expected {len(reader.fieldnames or ())} cells")
        cells = {str(name).strip(): cell.strip() for name, cell in row.items()}
        if any(cells.values()):
            rows.append({name: cell.replace(",", ".") if semicolons else cell for name, cell in cells.items()})
    if not rows and header:
        _check_columns([name.strip() for name in reader.fieldnames or ()], box, source)
    return read_rows(rows, box, source)


def read_rows(rows: Sequence[Mapping[str, Any]], box: Box, source: str) -> TableRows:
    """TableRows of a table, each a dict column -> cell."""
    groups, bounds = column_names(box.dim, box.names), (box.lower.tolist(), box.upper.tolist())
    if rows:
        _check_columns(list(rows[0]), box, source)
    known: list[list[list[float | None]]] = []
    for number, row in enumerate(rows, start=1):
        place = f"{source}, row {number}"
        x, y, grad, y_var, grad_var = ([_cell(row, name, place) for name in group] for group in groups)
        if all(cell is None for cell in [*y, *grad]):
            continue
        # A coordinate that is fixed need not be there.
        x = [low if cell is None and low == high else cell for cell, low, high in zip(x, *bounds, strict=True)]
        try:
            box.to_unit(np.array(x, dtype=np.float64))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        known.append([x, y, grad, y_var, grad_var])
    if not known:
        return TableRows(Observations.empty(box.dim), len(rows))
    points, values, grads, variances, grad_variances = (np.array(part, np.float64) for part in zip(*known, strict=True))
    try:
        told = Observations(points, values[:, 0], grads, variances[:, 0], grad_variances)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return TableRows(told, len(rows) - len(told))


def write_table(path: str | os.PathLike[str], history: Observations, *, names: Sequence[str] | None = None) -> None:
    """Write evaluations to a file that `read_table` reads, with every bit of the numbers.

    Args:
        path: Ends in .csv, .parquet or .json; a file that is there is replaced.
        history: For example `opt.history`.
        names: Of the coordinates, for example `opt.box.names`.

    Raises:
        ImportError: Parquet needs pyarrow.
    """
    write_columns(Path(path), _cells(history, names))


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of numbers, texts and None; the ending of the name says in which format."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path}: expected one of the endings {', '.join(FORMATS)}")
    # Written beside it and moved: who reads at the same time sees the old or the new table.
    unfinished = path.with_name(f".{path.name}.new")
    try:
        if kind == ".parquet":
            arrow = _parquet()
            import pyarrow

            arrow.write_table(pyarrow.table({name: list(values) for name, values in columns.items()}), unfinished)
        else:
            with unfinished.open("w", newline="", encoding="utf-8") as file:
                (write_csv if kind == ".csv" else write_json)(columns, file)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_csv(columns: Mapping[str, Sequence[Any]], file: TextIO) -> None:
    """Columns as CSV; floats with as many digits as it takes to read the same float."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(["" if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in row])


def write_json(columns: Mapping[str, Sequence[Any]], file: TextIO) -> None:
    """Columns as a JSON array of one object a row; NaN and infinities are texts, as JSON has no such numbers."""
    rows = [dict(zip(columns, map(_json_cell, row), strict=True)) for row in zip(*columns.values(), strict=True)]
    json.dump(rows, file, indent=1, allow_nan=False)
    file.write("\n")


def study_columns(history: Observations, names: Sequence[str] | None, reasons: Sequence[str]) -> dict[str, list[Any]]:
    """The columns of a study's history, with the reason for each point."""
    return {**_cells(history, names), "reason": list(reasons)}


def _cells(history: Observations, names: Sequence[str] | None) -> dict[str, list[Any]]:
    """Columns with None for what is not known; the value of a failed evaluation is NaN or infinite."""
    columns: dict[str, list[Any]] = {
        name: [None if math.isnan(cell) else cell for cell in column.tolist()]
        for name, column in history.columns(names).items()
    }
    columns["y"] = [
        math.nan if failed and cell is None else cell
        for cell, failed in zip(columns["y"], history.failed.tolist(), strict=True)
    ]
    return columns


def _json_cell(cell: Any) -> Any:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell


def _cell(row: Mapping[str, Any], name: str, place: str) -> float | None:
    """A number, or None if the cell is empty or there is no such column."""
    cell = row.get(name)
    if cell is None or cell == "":
        return None
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise ValueError(f"{place}, column {name}: expected a number, got {cell!r}") from None


def _check_columns(found: list[str], box: Box, source: str) -> None:
    groups = column_names(box.dim, box.names)
    needed = [name for name, free in zip(groups[0], box.free, strict=True) if free]
    if missing := [name for name in needed if name not in found]:
        raise ValueError(f"{source}: there is no column {missing[0]!r}; the columns are {', '.join(found) or 'none'}")
    known = [name for group in groups for name in group]
    absent = [name for name in known if name not in found]
    for name in found:
        # A derivative that is misspelt must not be lost without a word.
        if name not in known and (close := difflib.get_close_matches(name, absent, n=1, cutoff=0.8)):
            raise ValueError(f"{source}: column {name!r} is unknown; did you mean {close[0]!r}?")


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'eign[bench]' or pip install pyarrow") from error
    return pyarrow.parquet
