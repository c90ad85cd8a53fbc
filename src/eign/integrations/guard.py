"""Runs a program so that nothing of it outlives us: a small process between the two ends it when we are gone.

A program that is started directly goes on when its parent is killed, without its time limit, and a study that is
resumed would start the same point beside it. So a guard starts it, in a process group of its own, and waits for two
things: the end of the program, and the end of a pipe whose other side we hold for as long as we live. After either it
kills what is left of the group. Where there are no process groups, the program is started directly.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, final

# Runs with `python -I -S -c`, which takes 15 ms; hence no imports but these, and no names of ours.
_PROGRAM: Final = """
import os, select, signal, sys, time
alive, started = int(sys.argv[1]), int(sys.argv[2])
os.set_inheritable(alive, False)
os.set_inheritable(started, False)
try:
    child = os.posix_spawnp(sys.argv[3], sys.argv[3:], os.environ, setpgroup=0)
except OSError as error:
    os.write(started, (error.strerror or str(error)).encode())
    os._exit(127)
os.close(started)
for stream in (0, 1, 2):
    os.close(stream)
ended = os.WEXITED | os.WNOWAIT
try:
    watched = os.pidfd_open(child)
    select.select([alive, watched], [], [])
except (AttributeError, OSError):
    while not select.select([alive], [], [], 0.05)[0] and os.waitid(os.P_PID, child, ended | os.WNOHANG) is None:
        pass
try:
    os.killpg(child, signal.SIGKILL)
except ProcessLookupError:
    pass
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@final
class GuardedProgram:
    """A running program and its guard."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        streams: tuple[IO[str], IO[str], IO[str]],
        directory: Path,
        environment: Mapping[str, str],
    ) -> None:
        """Start it.

        Args:
            argv: The program and its arguments.
            streams: What it has as stdin, stdout and stderr.
            directory: Where it runs.
            environment: All of its environment variables.

        Raises:
            OSError: it cannot be started.
        """
        stdin, stdout, stderr = streams
        if not hasattr(os, "posix_spawnp"):
            self._alive = -1
            self._process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=directory, env=environment
            )
            return
        watched, self._alive = os.pipe()
        reading, started = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(watched), str(started), *argv],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=directory,
                env=environment,
                pass_fds=(watched, started),
                start_new_session=True,  # Ctrl-C in the terminal is for us
            )
        except BaseException:
            os.close(self._alive)
            os.close(reading)
            raise
        finally:
            os.close(watched)
            os.close(started)
        with os.fdopen(reading, "rb") as reports:
            problem = reports.read().decode(errors="replace")
        if problem:
            self.end()
            raise OSError(problem)

    def wait(self, timeout: float | None) -> int:
        """The exit code, negative for a signal; what the program has started has ended then, too.

        Raises:
            subprocess.TimeoutExpired: it takes longer.
        """
        code = self._process.wait(timeout)
        self._close()
        return code

    def end(self) -> None:
        """End the program and all that it has started, now."""
        self._close()
        if self._process.poll() is None and not hasattr(os, "posix_spawnp"):
            self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def _close(self) -> None:
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
