"""The results of runs: one record each, in an SQLite file that a single process opens."""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

import numpy as np

from eign.arrays import Array
from eign_lab.runs.experiment import Experiment, RunSpec
from eign_lab.runs.run_log import RunLog

Lookup = Callable[[str], "RunRecord | None"]
"""From the key of a run to its record."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """What a run found, evaluation by evaluation.

    Attributes:
        key: Of its `RunSpec`.
        problem: As `eign.problems.get` knows it.
        method: One of `eign.methods()`.
        options: Of the method.
        seed: Of the study.
        y: Values `n`, to be maximised; NaN = the evaluation failed.
        x: Points `n x d` in user units.
        seconds: Spent on proposing each point `n`; NaN for points of the initial design.
        stationarity: Norm of the projected gradient in the unit cube `n`; NaN where there is none.
        finished: Whether all evaluations of the budget are there.
        error: What stopped the run, if something did.
    """

    key: str
    problem: str
    method: str
    options: Mapping[str, Any]
    seed: int
    y: Array
    x: Array
    seconds: Array
    stationarity: Array
    finished: bool = False
    error: str | None = None

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int) -> "RunRecord":
        """The record as it was after `count` evaluations, or all of it; finished if there are as many."""
        cut = {name: getattr(self, name)[:count] for name in ("y", "x", "seconds", "stationarity")}
        return replace(self, **cut, finished=len(self) >= count)


def best_so_far(record: RunRecord) -> Array:
    """The best value after each evaluation `n`; -inf before the first that did not fail.

    >>> one = np.ones((3, 1))
    >>> best_so_far(RunRecord("", "", "", {}, 0, np.array([np.nan, 2.0, 1.0]), one, one, one))
    array([-inf,   2.,   2.])
    """
    return np.maximum.accumulate(np.where(np.isfinite(record.y), record.y, -np.inf))


def collect(experiment: Experiment, seeds: Iterable[int], lookup: Lookup) -> dict[tuple[str, str], list[RunRecord]]:
    """The records of an experiment by (problem label, method label), in the order of seeds; missing runs are left out.

    Runs are cut at the budget of the experiment: another one may have asked for more.
    """
    found: dict[tuple[str, str], list[RunRecord]] = {}
    wanted = tuple(seeds)
    for problem, method in experiment.pairs():
        records = (lookup(experiment.run(problem, method, seed).key) for seed in wanted)
        found[problem.label, method.label] = [record.first(problem.budget) for record in records if record is not None]
    return found


_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    spec TEXT NOT NULL,
    evaluations INTEGER NOT NULL,
    seconds REAL NOT NULL,
    error TEXT,
    log BLOB NOT NULL
)
"""


@final
class Results:
    """The results file. Only the process that hands out the tasks opens it, so that there is nothing to lock.

    >>> with Results(":memory:") as results:
    ...     len(results)
    0
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file, or start a new one."""
        self._path = str(path)
        # A report may be reading: wait for it.
        self._database = sqlite3.connect(self._path, timeout=60.0)
        try:
            self._database.execute(_SCHEMA)
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(f"{self._path} is not a results file: {error}") from error

    def save(self, spec: RunSpec, log: RunLog) -> None:
        """Store a run as far as it has come; committed before this returns."""
        packed = zlib.compress(json.dumps(log.to_json()).encode())
        row = (spec.key, json.dumps(spec.to_json()), len(log), float(np.nansum(log.seconds)), log.error, packed)
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", row)

    def log(self, key: str) -> RunLog | None:
        """How far a run has come; None if it has not begun."""
        with closing(self._database.execute("SELECT log FROM runs WHERE key = ?", (key,))) as rows:
            found = rows.fetchone()
        return None if found is None else RunLog.from_json(json.loads(zlib.decompress(found[0])))

    def progress(self) -> dict[str, tuple[int, str | None]]:
        """For each run its number of evaluations and its error, without reading the logs."""
        return {
            key: (count, error)
            for key, count, error in self._database.execute("SELECT key, evaluations, error FROM runs")
        }

    def record(self, key: str) -> RunRecord | None:
        """The record of a run; None if it has not begun."""
        with closing(self._database.execute("SELECT spec FROM runs WHERE key = ?", (key,))) as rows:
            found = rows.fetchone()
        log = self.log(key)
        return None if found is None or log is None else record_of(RunSpec(**json.loads(found[0])), log)

    def records(self, experiment: Experiment, seeds: Iterable[int]) -> dict[tuple[str, str], list[RunRecord]]:
        """The records of an experiment, see `collect`."""
        return collect(experiment, seeds, self.record)

    def specs(self) -> Iterator[RunSpec]:
        """All runs that have begun."""
        for (spec,) in self._database.execute("SELECT spec FROM runs ORDER BY key").fetchall():
            yield RunSpec(**json.loads(spec))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __len__(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM runs").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def record_of(spec: RunSpec, log: RunLog) -> RunRecord:
    """The record of a run from its log."""
    data = log.observations
    return RunRecord(
        spec.key,
        spec.problem,
        spec.method,
        spec.options,
        spec.seed,
        y=data.y,
        x=data.x,
        seconds=log.seconds,
        stationarity=log.stationarity,
        error=log.error,
    )
