"""A study in a file: every event is on the disk, with the state after it, before the call that caused it returns."""

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, final

from eign.study.storage.file_format import (
    FORMAT,
    Contents,
    StorageError,
    append_event,
    check_header,
    connect,
    dumps,
    read_contents,
    replace_state,
    write_new,
)
from eign.study.storage.lock import Holder, Lock, is_held_here

__all__ = ["Contents", "StorageError", "StudyFile", "as_path", "read_study"]

Decoded = TypeVar("Decoded")

# Seconds between two looks at a lock that somebody has.
_LOOK_AGAIN: Final = 0.05
# What SQLite's result codes mean for a study; the others keep SQLite's own words.
_REASONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it is closed for writing",
    sqlite3.SQLITE_IOERR: "the disk does not take or give the data",
    sqlite3.SQLITE_BUSY: "another program keeps it locked",
    sqlite3.SQLITE_CONSTRAINT: "somebody else has written to it",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged",
    sqlite3.SQLITE_INTERRUPT: "it is damaged: reading it does not come to an end",
}


def as_path(storage: Any) -> Path:
    """The file that `storage` names.

    Raises:
        TypeError: it names none.
        ValueError: it is an address, as of a database.
    """
    if "://" in str(storage):
        name = str(storage).rpartition("/")[2] or "study.db"
        raise ValueError(f"storage={storage!r} is an address, expected the name of a file: storage={name!r}")
    try:
        path = Path(storage)
    except TypeError:
        raise TypeError(f"storage={storage!r}, expected the name of a file") from None
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; give the name of a file in it, as {path / 'study.db'}")
    return path


def read_study(path: Path) -> Contents:
    """What is in the file, without holding it: also while another process does.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: it is no study, or damaged.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no study {path}")
    # Opening and closing a file that this process has open would drop SQLite's own locks on it.
    if not is_held_here(path):
        check_header(path)
    with _explained(path, "read"), contextlib.closing(connect(path)) as connection:
        return read_contents(connection, path)


@final
class StudyFile:
    """The file of one study, held by this process until `close`. Made by `create` or `open`.

    Threads may share it. A forked child may not write; it can open the study itself once its parent has closed it.
    """

    def __init__(self, path: Path, lock: Lock, contents: Contents) -> None:
        """What `create` and `open` have found, of a file that is locked."""
        self.path: Final = path
        self.contents: Final = contents
        self._lock, self._pid = lock, os.getpid()
        self._mutex = threading.RLock()
        self._count, self._digest = len(contents.events), contents.digest
        self._unwritten: list[Mapping[str, Any]] = []
        with _explained(path, "write to"):
            self._connection = connect(path)
            try:
                self._identity = os.stat(path)
                # A file of an earlier format gets events of this one from now on.
                self._connection.execute(f"PRAGMA user_version = {FORMAT}")
                self._connection.execute("REPLACE INTO holder VALUES (1, ?)", (dumps(Holder.here().to_json()),))
            except BaseException:
                self._connection.close()
                raise
        self._is_open = True
        _open_files.add(self)

    @classmethod
    def create(cls, path: Path, definition: Mapping[str, Any], state: Mapping[str, Any]) -> "StudyFile":
        """A new file.

        Raises:
            FileExistsError: there is one of this name.
            StorageError: it cannot be written.
        """
        _refuse_existing(path)
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(
                f"there is no directory {path.absolute().parent} for the study {path}; make it first"
            )
        lock = _lock(path)
        try:
            _refuse_existing(path)
            with _explained(path, "write to"):
                write_new(path, definition, state)
            return cls(path, lock, read_study(path))
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls, path: Path, decode: Callable[[Contents], Decoded], *, wait: float = 0.0
    ) -> tuple["StudyFile", Decoded]:
        """A file that exists, taken over from a process that has died, if need be, and what it holds.

        Args:
            path: The file.
            decode: Makes something of the contents. If it fails, the file was not written to.
            wait: Seconds to wait for a process that holds it.

        Raises:
            FileNotFoundError: there is no such file.
            StorageError: another process holds it, it is no study, it is damaged, or it cannot be written.
        """
        if not path.exists():
            raise FileNotFoundError(f"there is no study {path}; to start one: Optimizer(bounds, storage={str(path)!r})")
        if not is_held_here(path):
            check_header(path)
        lock = _lock(path, wait)
        try:
            contents = read_study(path)
            decoded = decode(contents)
            return cls(path, lock, contents), decoded
        except BaseException:
            lock.release()
            raise

    def append(self, event: Mapping[str, Any], state: Mapping[str, Any], *, keep: bool) -> None:
        """Write an event, the state after it, and events that could not be written before, in one transaction.

        Args:
            event: As plain data.
            state: As plain data; it replaces the last one.
            keep: Whether an event that cannot be written waits for the next call; otherwise it is forgotten.

        Raises:
            StorageError: nothing was written.
        """
        with self._mutex:
            try:
                self._write([*self._unwritten, event], state)
            except BaseException:
                if keep and self._is_open:  # into a file that was closed nothing would ever be written
                    self._unwritten.append(event)
                    self._state = state
                raise
            self._unwritten.clear()

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return self._is_open

    def close(self) -> None:
        """Write what could not be written before, and let others have the study. Closing twice is no error.

        Raises:
            StorageError: something still cannot be written; the file stays open, so that it can be tried again.
        """
        with self._mutex:
            if not self._is_open or os.getpid() != self._pid:
                return
            if self._unwritten:
                self._write(self._unwritten, self._state)
                self._unwritten.clear()
            self._let_go()

    def abandon(self) -> None:
        """Let others have the study, without what could not be written: for who has no more use for this object."""
        with self._mutex:
            if self._is_open and os.getpid() == self._pid:
                self._let_go()

    def _let_go(self) -> None:
        self._is_open = False
        with contextlib.suppress(sqlite3.Error):  # who comes next writes a name over ours
            self._connection.execute("DELETE FROM holder")
        self._connection.close()
        self._lock.release()

    def _write(self, events: list[Mapping[str, Any]], state: Mapping[str, Any]) -> None:
        self._check_usable()
        count, digest = self._count, self._digest
        with _explained(self.path, "write to"):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for event in events:
                    count += 1
                    digest = append_event(self._connection, count, event, digest)
                replace_state(self._connection, count, state, digest)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._count, self._digest = count, digest

    def _check_usable(self) -> None:
        if not self._is_open:
            raise StorageError(
                f"the study {self.path} is closed; continue with Optimizer.resume({str(self.path)!r}). "
                "Nothing was recorded"
            )
        if os.getpid() != self._pid:
            raise StorageError(
                f"{self.path} belongs to process {self._pid}, and this one was forked from it; ask and tell there"
            )
        try:
            is_there = os.path.samestat(os.stat(self.path), self._identity)
        except FileNotFoundError:
            is_there = False
        if not is_there:
            raise StorageError(f"cannot write to {self.path}: it was deleted, moved or replaced; move it back")

    def __del__(self) -> None:
        if getattr(self, "_is_open", False) and os.getpid() == self._pid:
            self._let_go()


_open_files: Final[weakref.WeakSet[StudyFile]] = weakref.WeakSet()


def _before_fork() -> None:
    """No child is forked in the middle of a transaction: on its exit it would undo what it takes for its own."""
    for file in list(_open_files):
        file._mutex.acquire()


def _after_fork() -> None:
    for file in list(_open_files):
        with contextlib.suppress(RuntimeError):  # opened in between
            file._mutex.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise FileExistsError(
            f"{path} exists; to continue that study: Optimizer.resume({str(path)!r}); for a new one give another name"
        )


def _lock(path: Path, wait: float = 0.0) -> Lock:
    deadline = time.monotonic() + wait
    try:
        while True:
            try:
                return Lock(path)
            except BlockingIOError:
                if time.monotonic() >= deadline or is_held_here(path):
                    raise
                time.sleep(_LOOK_AGAIN)
    except BlockingIOError:
        if is_held_here(path):
            who = "this process; close() the Optimizer that has it"
        else:
            holder = None
            with contextlib.suppress(StorageError, FileNotFoundError):
                holder = read_study(path).holder
            who = str(holder or "another process")
        raise StorageError(f"{path} is in use by {who}") from None
    except OSError as error:
        raise StorageError(f"cannot write to {path}: there can be no lock beside it ({error})") from error


@contextlib.contextmanager
def _explained(path: Path, what: str) -> Any:
    """SQLite's errors in the block, as `StorageError` with what they mean."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        advice = "; it was left as it is" if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) else ""
        raise StorageError(f"cannot {what} {path}: {_REASONS.get(code, 'SQLite says')} ({error}){advice}") from error
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot {what} {path}: {error}") from error
