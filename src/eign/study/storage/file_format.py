"""What a study file is: an SQLite database of JSON texts, with a version and a checksum over all of it.

| table | rows | columns |
|---|---|---|
| `study` | one | `definition`: box, method, seed, maximize, constraints, versions of the packages that made it |
| `events` | one for each ask and tell, numbered from 1 | `at`, when it was written; `event` |
| `state` | one | `after`, the number of events it follows; `state`, what the method carries to its next proposal |
| `holder` | none or one | `holder`, the process that has the study open |

Only the newest state is kept: it is all that a resumed study needs, and a file of n events has a size of order n. Each
text carries a digest of itself and the digest before it, from the definition over the events to the state, so that a
bit that flipped anywhere is noticed. Floats are written with 17 digits and come back bit for bit; what JSON has no
number for is written as `{"$float": "nan"}`. Nothing in the file is code.

The journal is SQLite's rollback journal, not its write-ahead log: with one writer there is nothing to gain from the
latter, a study at rest is a single file that can be copied, and it also works on network file systems.
"""

import json
import math
import os
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

from eign.study.storage.lock import Holder

APPLICATION_ID: Final = int.from_bytes(b"eign")
FORMAT: Final = 3
"""All are read.

3: constraints in definition, state and observations.
2: events may be retractions, asks carry what was expected, the definition has the budget.
"""

_SCHEMA: Final = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE study (id INTEGER PRIMARY KEY CHECK (id = 1), definition TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE events (number INTEGER PRIMARY KEY, at TEXT NOT NULL, event TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), after INTEGER NOT NULL, state TEXT NOT NULL,
                    digest TEXT NOT NULL);
CREATE TABLE holder (id INTEGER PRIMARY KEY CHECK (id = 1), holder TEXT NOT NULL);
"""
_TABLES: Final = {
    "study": ("id", "definition", "digest"),
    "events": ("number", "at", "event", "digest"),
    "state": ("id", "after", "state", "digest"),
    "holder": ("id", "holder"),
}
# Steps of SQLite's machine after which reading a file of so many bytes is given up: a study takes a tenth at most.
_STEPS: Final = 1_000_000
_STEPS_PER_BYTE: Final = 10
_MAGIC: Final = b"SQLite format 3\x00"
# Seconds to wait for someone who is reading or writing at this moment.
_PATIENCE: Final = 30.0


class StorageError(OSError):
    """A study's file cannot be used, or not now; the message says why and what to do."""


class Contents(NamedTuple):
    """All that a file holds; the last digest is where the next event continues."""

    definition: dict[str, Any]
    events: list[dict[str, Any]]
    times: list[str]
    state: dict[str, Any]
    digest: str
    holder: Holder | None


def dumps(value: Any) -> str:
    """JSON text of plain data, also with NaN and infinities in it.

    >>> dumps({"a": [0.1, float("inf")]})
    '{"a":[0.1,{"$float":"inf"}]}'
    """
    return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Any:
    """What `dumps` wrote.

    >>> loads('{"a":[0.1,{"$float":"inf"}]}')
    {'a': [0.1, inf]}
    """
    return json.loads(text, object_hook=lambda found: float(found["$float"]) if list(found) == ["$float"] else found)


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return {"$float": repr(float(value))}
        case Mapping():
            return {key: _finite(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_finite(entry) for entry in value]
    return value


def digest_of(text: str, before: str = "") -> str:
    """The checksum of a text and of all that came before it."""
    return blake2b(f"{before}\n{text}".encode(), digest_size=8).hexdigest()


def connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return.

    Opened for writing wherever possible, as reading too may have to undo a transaction that a crash cut short.
    """
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    # EXTRA is FULL, and also syncs the directory after the journal is deleted, which is what commits.
    connection.execute("PRAGMA synchronous = EXTRA")
    return connection


def write_new(path: Path, definition: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """A new file with no events. It appears under its name at once and whole: a crash leaves it whole or not there."""
    unfinished = path.with_name(f".{path.name}.new")
    # A journal without its database is left of one that was deleted; SQLite would take it for a journal of the new one.
    for stale in (unfinished, journal_of(unfinished), journal_of(path)):
        stale.unlink(missing_ok=True)
    try:
        connection = connect(unfinished, create=True)
        try:
            connection.executescript(_SCHEMA)
            defined = dumps(definition)
            digest = digest_of(defined)
            connection.execute("BEGIN")
            connection.execute("INSERT INTO study VALUES (1, ?, ?)", (defined, digest))
            replace_state(connection, 0, state, digest)
            connection.execute("COMMIT")
        finally:
            connection.close()
        os.rename(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def journal_of(path: Path) -> Path:
    """Where SQLite keeps what undoes an unfinished transaction."""
    return path.with_name(path.name + "-journal")


def append_event(connection: sqlite3.Connection, number: int, event: Mapping[str, Any], before: str) -> str:
    """Write one event inside the caller's transaction; returns its digest."""
    text, now = dumps(event), datetime.now(UTC).isoformat(timespec="seconds")
    digest = digest_of(now + text, before)
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (number, now, text, digest))
    return digest


def replace_state(connection: sqlite3.Connection, after: int, state: Mapping[str, Any], before: str) -> None:
    """Write the state inside the caller's transaction."""
    text = dumps(state)
    connection.execute("REPLACE INTO state VALUES (1, ?, ?, ?)", (after, text, digest_of(text, before)))


def check_header(path: Path) -> None:
    """Refuse what is no study of this or an earlier format, before SQLite looks at it.

    Raises:
        StorageError: with the reason.
    """
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        raise StorageError(f"{path} is empty, not a study; delete it, or give another name")
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise StorageError(f"{path} is not a study: it is no SQLite file; it was left as it is")
    application, version = (int.from_bytes(header[i : i + 4]) for i in (68, 60))
    if application != APPLICATION_ID:
        raise StorageError(f"{path} is not a study: it is an SQLite file of another program; it was left as it is")
    if version > FORMAT:
        raise StorageError(
            f"{path} has format {version}, and this version of eign knows formats up to {FORMAT}; "
            "install a newer eign to read it; it was left as it is"
        )
    if header[18:20] != b"\x01\x01":
        # Anything else would be another journal than ours, whose files SQLite makes on opening.
        raise damaged(path, "its header is wrong")


def read_contents(connection: sqlite3.Connection, path: Path) -> Contents:
    """Everything in the file, checked against its digests.

    Raises:
        StorageError: something is damaged.
        sqlite3.Error: SQLite itself cannot read it.
    """
    connection.execute("BEGIN")
    limit = (_STEPS + _STEPS_PER_BYTE * path.stat().st_size) // _STEPS
    looks = iter(range(limit))
    connection.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
    try:
        _check_schema(connection, path)
        if (found := connection.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
            raise damaged(path, str(found[0]) if found else "SQLite finds no content")
        return _checked_contents(connection, path)
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error
    finally:
        connection.set_progress_handler(None, 0)
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse all but our tables: a view of a table's name may be a query without end, and a trigger would write."""
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    for kind, name, text in found:
        if kind != "table" or name not in _TABLES or "VIRTUAL" in str(text).upper():
            raise damaged(path, f"it has a {kind} {name!r} that no study has")
    for table, columns in _TABLES.items():
        there = tuple(row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})"))
        if there != columns:
            raise damaged(path, f"its table {table!r} has the columns {there}, expected {columns}")


def _checked_contents(connection: sqlite3.Connection, path: Path) -> Contents:
    [(definition, digest)] = connection.execute("SELECT definition, digest FROM study")
    if digest != digest_of(definition):
        raise damaged(path, "the definition does not match its checksum")
    events, times = [], []
    for expected, row in enumerate(connection.execute("SELECT * FROM events ORDER BY number"), start=1):
        number, at, event, own = row
        if not isinstance(at, str) or not isinstance(event, str):
            raise damaged(path, f"event {expected} is no text")
        if number != expected or own != digest_of(at + event, digest):
            raise damaged(path, f"event {expected} does not match its checksum")
        digest = own
        events.append(_table(event, f"event {expected}"))
        times.append(at)
    [(after, state, own)] = connection.execute("SELECT after, state, digest FROM state")
    if after != len(events) or own != digest_of(state, digest):
        raise damaged(path, "the state does not match its checksum")
    row = connection.execute("SELECT holder FROM holder").fetchone()
    holder = Holder.from_json(_table(row[0], "the holder")) if row else None
    return Contents(_table(definition, "the definition"), events, times, _table(state, "the state"), digest, holder)


def _table(text: str, what: str) -> dict[str, Any]:
    """What a text holds, if it is a table.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(found := loads(text), dict):
        raise ValueError(f"{what} is no table")
    return found


def damaged(path: Path, why: str) -> StorageError:
    """The error for a file whose content is no study."""
    return StorageError(f"{path} is damaged ({why}); it was left as it is: go on from a copy, if there is one")
