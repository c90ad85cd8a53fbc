"""The results of runs: one record each, in an SQLite file that a single process opens."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, final

import numpy as np

from eign_lab.runs.experiment import Experiment, RunSpec
from eign_lab.runs.run_log import Goal, RunLog, Timing, Trace


@final
@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a run found.

    Attributes:
        spec: What it depends on.
        trace: Its improvements.
        timing: Of its proposals.
        error: What stopped the run, if something did.
        finished: Whether it has come as far as it was asked to, see `up_to`.
    """

    spec: RunSpec
    trace: Trace
    timing: Timing
    error: str | None = None
    finished: bool = False

    def __len__(self) -> int:
        return self.trace.evaluations

    def up_to(self, goal: Goal) -> "RunRecord":
        """The record as it was at the end of the budget, or all of it; finished if the goal was reached."""
        trace = self.trace.first(goal.budget)
        return replace(self, trace=trace, finished=goal.is_reached(trace.evaluations, trace.last))


class Records(Protocol):
    """Where records are: a results file, or an export of one."""

    def record(self, key: str) -> RunRecord | None:
        """The record of a run; None if it has not begun."""

    def seeds(self) -> list[int]:
        """Of all runs."""


@final
@dataclass(frozen=True, slots=True)
class Both:
    """The records of two places; where both have a run, that of the first."""

    first: Records
    second: Records

    def record(self, key: str) -> RunRecord | None:
        """The record of a run; None if it has not begun."""
        return self.first.record(key) or self.second.record(key)

    def seeds(self) -> list[int]:
        """Of all runs."""
        return sorted({*self.first.seeds(), *self.second.seeds()})


def collect(results: Records, experiment: Experiment, seeds: Iterable[int]) -> dict[tuple[str, str], list[RunRecord]]:
    """The records of an experiment by (problem label, method label), in the order of seeds; missing runs are left out.

    Runs are cut at the budget of the experiment: another one may have asked for more.
    """
    found: dict[tuple[str, str], list[RunRecord]] = {}
    wanted = tuple(seeds)
    for problem, method in experiment.pairs():
        records = (results.record(experiment.run(problem, method, seed).key) for seed in wanted)
        found[problem.label, method.label] = [record.up_to(problem.goal) for record in records if record is not None]
    return found


# `log` is what it takes to go on: NULL for a run that came from an export.
_SCHEMA: Final = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,
    spec TEXT NOT NULL,
    error TEXT,
    trace TEXT NOT NULL,
    timing TEXT NOT NULL,
    log BLOB
)
"""
_COLUMNS: Final = {"key", "spec", "error", "trace", "timing", "log"}


@final
class Results:
    """The results file. Only the process that hands out the tasks writes it, so that there is nothing to lock.

    >>> with Results(":memory:") as results:
    ...     len(results)
    0
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        """Open the file, or start a new one; one that is only read is never changed.

        Raises:
            ValueError: it is something else.
        """
        self._path = str(path)
        name = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else self._path
        # A report may be reading: wait for it.
        self._database = sqlite3.connect(name, timeout=60.0, uri=read_only)
        try:
            # A file of another program gets no table of ours.
            if not read_only and not self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                self._database.execute(_SCHEMA)
            _check_schema(self._database)
        except (sqlite3.DatabaseError, ValueError) as error:
            self._database.close()
            raise ValueError(
                f"{self._path} is not a results file of this version: {error}; it was left as it is"
            ) from error

    def save(self, spec: RunSpec, log: RunLog) -> None:
        """Store a run as far as it has come; committed before this returns."""
        packed = zlib.compress(json.dumps(log.to_json()).encode())
        record = RunRecord(spec, log.trace, Timing.of(log.seconds), log.error)
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", _row(record, packed))

    def add(self, records: Iterable[RunRecord]) -> int:
        """Take over runs that were done elsewhere, unless they have begun here; how many that were."""
        with self._database:
            rows = [_row(record, None) for record in records]
            before = len(self)
            self._database.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows)
        return len(self) - before

    def log(self, key: str) -> RunLog | None:
        """How far a run has come; None if it has not begun, or cannot go on from where it is."""
        with closing(self._database.execute("SELECT log, trace, error FROM runs WHERE key = ?", (key,))) as rows:
            found = rows.fetchone()
        if found is None or found[0] is None:
            return None
        return RunLog.from_json(json.loads(zlib.decompress(found[0])), _trace(found[1]), found[2])

    def record(self, key: str) -> RunRecord | None:
        """The record of a run; None if it has not begun."""
        query = "SELECT spec, trace, timing, error FROM runs WHERE key = ?"
        with closing(self._database.execute(query, (key,))) as rows:
            found = rows.fetchone()
        if found is None:
            return None
        spec, trace, timing, error = found
        seconds = (np.nan if value is None else value for value in json.loads(timing))
        return RunRecord(RunSpec(**json.loads(spec)), _trace(trace), Timing(*seconds), error)

    def records(self) -> Iterator[RunRecord]:
        """All runs that have begun."""
        for (key,) in self._database.execute("SELECT key FROM runs ORDER BY key").fetchall():
            if (record := self.record(key)) is not None:
                yield record

    def seeds(self) -> list[int]:
        """Of all runs."""
        rows = self._database.execute("SELECT DISTINCT json_extract(spec, '$.seed') FROM runs")
        return sorted(seed for (seed,) in rows)

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


def _check_schema(database: sqlite3.Connection) -> None:
    """Refuse what has not our table: a view of its name could be a query without end.

    Raises:
        ValueError: with the reason.
    """
    if ("table",) not in database.execute("SELECT type FROM sqlite_master WHERE name = 'runs'").fetchall():
        raise ValueError("it has no table 'runs'")
    columns = {row[1] for row in database.execute("PRAGMA table_info(runs)")}
    if missing := _COLUMNS - columns:
        raise ValueError(f"its table 'runs' has no column {min(missing)!r}")


def _row(record: RunRecord, log: bytes | None) -> tuple[object, ...]:
    trace = asdict(record.trace)
    trace["observed"] = [None if np.isnan(value) else value for value in trace["observed"]]
    timing = [None if np.isnan(value) else value for value in record.timing]
    spec = json.dumps(asdict(record.spec), sort_keys=True)
    return (record.spec.key, spec, record.error, json.dumps(trace), json.dumps(timing), log)


def _trace(stored: str) -> Trace:
    trace = json.loads(stored)
    observed = [np.nan if value is None else value for value in trace.pop("observed")]
    return Trace(**trace, observed=observed)
