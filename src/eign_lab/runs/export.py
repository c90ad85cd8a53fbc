"""Results as tables: Parquet and CSV written, and Parquet read back.

One row an improvement: the best value stays what it is until the next. `evaluations` is how far the run has come, and
`spec` holds all its settings as JSON, so that a file can be read without the code. A run that has no value yet has one
row, for evaluation 0.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from eign_lab.runs.experiment import RunSpec
from eign_lab.runs.run_log import Timing, Trace
from eign_lab.runs.store import Results, RunRecord

if TYPE_CHECKING:
    import pandas as pd

PARQUET: Final = "runs.parquet"
CSV: Final = "runs.csv"
_COLUMNS: Final = (
    *("key", "problem", "method", "options", "seed", "evaluation", "best", "observed"),
    *("evaluations", "seconds", "median_seconds", "longest_seconds", "error", "spec"),
)


def export_records(records: Iterable[RunRecord], directory: Path, *, csv: bool = False) -> list[Path]:
    """Write runs to `runs.parquet` in the directory, which is made if it is missing, and to `runs.csv` if so."""
    table = as_table(records)
    directory.mkdir(parents=True, exist_ok=True)
    table.to_parquet(directory / PARQUET, engine="pyarrow", compression="zstd", index=False)
    if not csv:
        return [directory / PARQUET]
    table.drop(columns=["spec"]).to_csv(directory / CSV, index=False)
    return [directory / PARQUET, directory / CSV]


def as_table(records: Iterable[RunRecord]) -> "pd.DataFrame":
    """Long format, the runs by problem, method and seed."""
    import pandas as pd

    parts = [pd.DataFrame(_columns(record)) for record in records]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_COLUMNS))
    return table.sort_values(["problem", "method", "options", "seed", "key", "evaluation"], ignore_index=True)


def _columns(record: RunRecord) -> dict[str, Any]:
    spec, trace = record.spec, record.trace
    best, observed = np.array(trace.best or [np.nan]), np.array(trace.observed or [np.nan])
    return {
        "key": spec.key,
        "problem": spec.problem,
        "method": spec.method,
        "options": json.dumps(dict(spec.options), sort_keys=True),
        "seed": spec.seed,
        "evaluation": trace.improved_at or [0],
        "best": best,
        "observed": np.where(observed == best, np.nan, observed),  # mostly the same, and then not worth the space
        "evaluations": len(record),
        "seconds": record.timing.total,
        "median_seconds": record.timing.median,
        "longest_seconds": record.timing.longest,
        "error": record.error or "",
        "spec": json.dumps(asdict(spec), sort_keys=True),
    }


@final
@dataclass(frozen=True, slots=True)
class ExportedResults:
    """Results read back from a Parquet file.

    Attributes:
        by_key: The runs of the file.
    """

    by_key: Mapping[str, RunRecord]

    @classmethod
    def read(cls, path: str | Path) -> "ExportedResults":
        """All runs of an exported file.

        Raises:
            ValueError: it is something else.
        """
        import pandas as pd

        try:
            table = pd.read_parquet(path, engine="pyarrow")
        except ValueError as error:  # what pyarrow raises for a file that is no Parquet is one
            raise ValueError(f"{path} is not an export of results: {error}") from error
        if missing := [name for name in _COLUMNS if name not in table.columns]:
            raise ValueError(f"{path} is not an export of results: it has no column {missing[0]!r}")
        columns = {name: table[name].to_numpy() for name in table.columns}
        starts = np.flatnonzero(columns["key"][1:] != columns["key"][:-1]) + 1
        bounds = [0, *starts.tolist(), len(table)] if len(table) else []
        records = [_record(columns, slice(*pair)) for pair in pairwise(bounds)]
        return cls({record.spec.key: record for record in records})

    def record(self, key: str) -> RunRecord | None:
        """The record of a run; None if it is not there."""
        return self.by_key.get(key)

    def seeds(self) -> list[int]:
        """Of all runs."""
        return sorted({record.spec.seed for record in self.by_key.values()})


def _record(columns: Mapping[str, Any], rows: slice) -> RunRecord:
    first = rows.start
    at, best, observed = (columns[name][rows] for name in ("evaluation", "best", "observed"))
    known = at > 0
    seen = np.where(np.isnan(observed), best, observed)
    trace = Trace(int(columns["evaluations"][first]), *(values[known].tolist() for values in (at, best, seen)))
    timing = Timing(*(float(columns[name][first]) for name in ("seconds", "median_seconds", "longest_seconds")))
    return RunRecord(RunSpec(**json.loads(columns["spec"][first])), trace, timing, columns["error"][first] or None)


def open_results(path: str | Path) -> Results | ExportedResults:
    """A results file of either kind: SQLite, or Parquet as it was exported; a directory is one that was exported to.

    Raises:
        ValueError: there is no such file, or it is something else; it is never written to.
    """
    place = Path(path)
    place = place / PARQUET if place.is_dir() else place
    if not place.is_file():
        raise ValueError(f"there is no results file {place}; eign paper makes one")
    return ExportedResults.read(place) if place.suffix == ".parquet" else Results(place, read_only=True)
