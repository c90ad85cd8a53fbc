"""A file that is replaced whole: who reads at the same time sees the old one or the new one."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

# O_EXCL makes a new file and follows no link, so that nobody can put one in our way.
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` at the end of the block; after an error nothing has changed.

    It has the mode of the file that it replaces. Where `path` is a link, the file that it leads to is replaced and the
    link stays. What is no ordinary file, such as a pipe, is written to directly.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("wb") as file:
            yield file
        return
    unfinished = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.new")
    # The permissions of a new file are the user's umask; others must not read a private one while it is written.
    with _naming(path):
        descriptor = os.open(unfinished, _NEW, 0o666 if mode is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield file
        if mode is not None:
            unfinished.chmod(stat.S_IMODE(mode))
        with _naming(path):
            os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()
        raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """The system's errors are about the file that was asked for, not about ours, of which nobody knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
