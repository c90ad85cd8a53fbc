"""Who holds a study: one process at a time, for as long as it lives.

The lock is the operating system's, on a small file beside the study: it ends with the process, however that ends, and
no process number that is used again can be mistaken for it. Record locks (`fcntl`) are taken because a forked child
does not inherit them: a worker that outlives its parent does not keep the study. They belong to the process and not to
the file that was opened, so that a table of this process's locks stands between its threads.
"""

import contextlib
import getpass
import os
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, final

from eign.arrays import whole_number

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_guard: Final = threading.Lock()
_held: Final[dict[str, int]] = {}
"""Studies locked by this process, each with the number of the process: a forked child copies the table too."""


@final
@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a study open.

    Attributes:
        pid: Its number.
        host: The machine it runs on.
        user: Whose it is.
        since: When it opened the study, ISO 8601.
        command: How it was started.
    """

    pid: int
    host: str
    user: str
    since: str
    command: str

    @classmethod
    def here(cls) -> "Holder":
        """This process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container may run under a number without a name
            user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), socket.gethostname(), user, now, " ".join(sys.argv)[:200] or sys.executable)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs, as far as this machine can tell: a process elsewhere is believed to."""
        if self.host != socket.gethostname() or sys.platform == "win32":
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # somebody else's
            return True
        return True

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` makes an equal one."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Holder":
        """The holder that `to_json` described.

        Raises:
            ValueError: it described none.
        """
        texts = [stored.get(name) for name in ("host", "user", "since", "command")]
        pid = whole_number(stored.get("pid"), least=1)
        if len(stored) != 5 or pid is None or pid >= 2**31 or not all(isinstance(text, str) for text in texts):
            raise ValueError("expected a holder stored as pid, host, user, since and command")
        return cls(**stored)

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host} since {self.since} ({self.command})"


@final
class Lock:
    """The right of this process to write a study; `release` gives it back."""

    def __init__(self, study: Path) -> None:
        """Take the lock of the study in this file.

        Raises:
            BlockingIOError: this or another process has it.
            OSError: there can be no lock, as in a directory that is closed for writing.
        """
        self._key = os.path.realpath(study)
        self._path = self._key + ".lock"
        self._pid = os.getpid()
        with _guard:
            if _held.get(self._key) == self._pid:
                raise BlockingIOError("this process holds it already")
            self._descriptor = _locked(self._path)
            _held[self._key] = self._pid

    def release(self) -> None:
        """Give it back; a forked child has nothing to give."""
        with _guard:
            if _held.get(self._key) != os.getpid() or self._pid != os.getpid():
                return
            del _held[self._key]
            # Removed while it is still locked: who waits for it finds out in `_locked`.
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            os.close(self._descriptor)


def is_held_here(study: Path) -> bool:
    """Whether this process holds the study in this file."""
    return _held.get(os.path.realpath(study)) == os.getpid()


def _locked(path: str) -> int:
    """A descriptor of the file at `path`, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its last holder removed the file in between: this is a lock on nothing


def _lock(descriptor: int) -> None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError as error:  # some systems say EACCES for a lock that is taken
        raise BlockingIOError(str(error)) from error
