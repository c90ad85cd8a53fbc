"""A PostgreSQL server of the tests' own, where its programs are installed: a socket in its directory, no port."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACES = os.pathsep.join([os.environ.get("PATH", ""), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))])


def missing() -> str | None:
    """Why no server can be started here, or None."""
    if not all(shutil.which(program, path=PLACES) for program in ("initdb", "pg_ctl", "postgres")):
        return "PostgreSQL's programs initdb, pg_ctl and postgres are not installed"
    if os.geteuid() == 0 and _other_user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody to run it"
    return None


@contextmanager
def server() -> Iterator[str]:
    """The SQLAlchemy URL of an empty database, which is gone afterwards."""
    # Not pytest's directory: it is closed to other users, and its path may be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="eign-pg-") as name:
        user = _other_user() if os.geteuid() == 0 else None
        if user is not None:
            os.chown(name, user, -1)
        data = f"{name}/data"
        _run(["initdb", "--pgdata", data, "--auth=trust", "--username=eign", "--no-sync"], user)
        settings = f"-c listen_addresses='' -c unix_socket_directories='{name}' -c fsync=off"
        _run(["pg_ctl", "--pgdata", data, "--log", f"{name}/log", "--options", settings, "--wait", "start"], user)
        try:
            yield f"postgresql+psycopg://eign@/postgres?host={name}"
        finally:
            _run(["pg_ctl", "--pgdata", data, "--mode=immediate", "stop"], user)


def _run(command: list[str], user: int | None) -> None:
    program = str(shutil.which(command[0], path=PLACES))
    # The server inherits what it is started with: an open pipe would never end.
    done = subprocess.run(
        [program, *command[1:]], user=user, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")


def _other_user() -> int | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return None
