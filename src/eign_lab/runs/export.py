"""Results as tables: Parquet with everything, CSV without the points, and Parquet read back.

One row an evaluation. `spec` holds all settings of the run as JSON, so that a file can be read without the code.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from eign_lab.runs.experiment import Experiment, RunSpec
from eign_lab.runs.store import Results, RunRecord, best_so_far, collect

if TYPE_CHECKING:
    import pandas as pd

PARQUET: Final = "runs.parquet"
CSV: Final = "runs.csv"


def export_results(results: Results, directory: Path, *, quick: bool | None = None) -> tuple[Path, Path]:
    """Write all runs to `runs.parquet` and `runs.csv` in the directory, which is made if it is missing.

    Args:
        results: The results file.
        directory: Where to write.
        quick: Only runs of this kind; None is all.
    """
    specs = [spec for spec in results.specs() if quick is None or spec.quick == quick]
    table = as_table(results, specs)
    directory.mkdir(parents=True, exist_ok=True)
    parquet, csv = directory / PARQUET, directory / CSV
    table.to_parquet(parquet, engine="pyarrow", compression="zstd", index=False)
    table.drop(columns=["x", "spec"]).to_csv(csv, index=False)
    return parquet, csv


def as_table(results: Results, specs: Iterable[RunSpec]) -> "pd.DataFrame":
    """Long format: a row for each evaluation of each run."""
    import pandas as pd

    parts = []
    for spec in specs:
        record = results.record(spec.key)
        if record is not None and len(record):
            parts.append(pd.DataFrame(_columns(spec, record)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_COLUMNS))


_COLUMNS: Final = (
    *("key", "problem", "method", "options", "seed", "quick", "evaluation"),
    *("y", "best", "stationarity", "seconds", "error", "x", "spec"),
)


def _columns(spec: RunSpec, record: RunRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "problem": record.problem,
        "method": record.method,
        "options": json.dumps(dict(record.options), sort_keys=True),
        "seed": record.seed,
        "quick": spec.quick,
        "evaluation": np.arange(1, len(record) + 1),
        "y": record.y,
        "best": best_so_far(record),
        "stationarity": record.stationarity,
        "seconds": record.seconds,
        "error": record.error,
        "x": list(record.x),
        "spec": json.dumps(spec.to_json(), sort_keys=True),
    }


@final
@dataclass(frozen=True, slots=True)
class ExportedResults:
    """Results read back from a Parquet file: the same `records` as `Results`.

    Attributes:
        by_key: The runs of the file.
    """

    by_key: Mapping[str, RunRecord]

    @classmethod
    def read(cls, path: str | Path) -> "ExportedResults":
        """All runs of an exported file."""
        import pandas as pd

        table = pd.read_parquet(path, engine="pyarrow")
        return cls({str(key): _record(rows) for key, rows in table.groupby("key", sort=False)})

    def records(self, experiment: Experiment, seeds: Iterable[int]) -> dict[tuple[str, str], list[RunRecord]]:
        """The records of an experiment, see `collect`."""
        return collect(experiment, seeds, self.by_key.get)


def _record(rows: "pd.DataFrame") -> RunRecord:
    rows = rows.sort_values("evaluation")
    first = rows.iloc[0]
    return RunRecord(
        key=str(first["key"]),
        problem=str(first["problem"]),
        method=str(first["method"]),
        options=json.loads(first["options"]),
        seed=int(first["seed"]),
        y=rows["y"].to_numpy(np.float64),
        x=np.stack([np.asarray(x, dtype=np.float64) for x in rows["x"]]),
        seconds=rows["seconds"].to_numpy(np.float64),
        stationarity=rows["stationarity"].to_numpy(np.float64),
        error=first["error"] if isinstance(first["error"], str) else None,
    )


def open_results(path: str | Path) -> Results | ExportedResults:
    """A results file of either kind: SQLite, or Parquet as it was exported; a directory is one that was exported to.

    Raises:
        ValueError: there is no such file.
    """
    place = Path(path)
    place = place / PARQUET if place.is_dir() else place
    if not place.is_file():
        raise ValueError(f"there is no results file {place}; eign paper makes one")
    return ExportedResults.read(place) if place.suffix == ".parquet" else Results(place)
