"""However a run ends, nothing of it lives on, and no evaluation is lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import eign
from eign.integrations.command import Command, CommandError

RUN = """
import os, sys, time
from pathlib import Path
import eign

def slow(x):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(300)

eign.minimize(slow, [(0, 1)] * 2, jac=None, method="sobol", workers=2, budget=4)
"""
PROGRAM = """
import sys
from pathlib import Path
import eign
from eign.integrations.command import Command

script = "echo $$ > " + sys.argv[1] + "/$$; sleep 300 & echo $! > " + sys.argv[1] + "/$!; wait"
eign.minimize(Command(["sh", "-c", script]), [(0, 1)], jac=None, method="sobol", budget=2)
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for(condition, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("program", [RUN, PROGRAM], ids=["workers", "program"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_lives_on(tmp_path, program, number):
    # Who runs the tests with nohup ignores SIGHUP, and so would the run.
    heard = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)\n" if number != signal.SIGKILL else ""
    run = subprocess.Popen([sys.executable, "-c", heard + program, str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        assert wait_for(lambda: len(list(tmp_path.iterdir())) >= 2)
        started = [int(path.name) for path in tmp_path.iterdir()]
        assert all(map(is_alive, started))
        run.send_signal(number)
        assert run.wait(60) == -number
        assert wait_for(lambda: not any(map(is_alive, started)), 10.0)
    finally:
        run.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_run_under_nohup_goes_on_when_the_terminal_is_closed(tmp_path):
    ignored = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    run = subprocess.Popen([sys.executable, "-c", ignored + RUN, str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        assert wait_for(lambda: len(list(tmp_path.iterdir())) >= 2)
        run.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert run.poll() is None
        assert all(is_alive(int(path.name)) for path in tmp_path.iterdir())
    finally:
        run.kill()
        run.wait()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_what_a_program_leaves_behind_ends_with_it(tmp_path):
    script = f"sleep 300 & echo $! > {tmp_path}/child; echo '{{\"value\": 1.0}}'"
    assert Command(["sh", "-c", script])([0.5]).value == 1.0
    child = int((tmp_path / "child").read_text())
    assert wait_for(lambda: not is_alive(child), 10.0)  # it is killed; the system may take a moment


def test_a_program_that_dies_of_a_signal_says_so():
    with pytest.raises(CommandError, match="was killed by SIGSEGV"):
        Command(["sh", "-c", "kill -SEGV $$"])([0.5])


def leave(x):
    sys.exit(0)


def interrupt(x):
    raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [None, 2])
def test_exit_in_a_function_is_a_failed_evaluation(workers):
    with pytest.raises(RuntimeError, match=r"the function called sys.exit\(0\)"):
        eign.minimize(leave, [(0, 1)], jac=None, method="sobol", budget=2, workers=workers)
    result = eign.minimize(leave, [(0, 1)], jac=None, method="sobol", budget=2, workers=workers, on_error="fail")
    assert (result.nfev, result.success) == (2, False)


def test_exit_without_a_code_is_shown_as_it_was_called():
    with pytest.raises(RuntimeError, match=r"the function called sys.exit\(\)\n"):
        eign.minimize(lambda x: sys.exit(), [(0, 1)], jac=None, method="sobol", budget=2)


def test_an_interrupt_of_the_function_itself_in_a_worker_is_not_the_users():
    result = eign.minimize(interrupt, [(0, 1)], jac=None, method="sobol", budget=2, workers=2, on_error="fail")
    assert (result.nfev, result.status) == (2, eign.study.Status.NOTHING_KNOWN)


def sleepy(x):
    time.sleep(60.0 if x[0] > 0.5 else 0.0)
    return float(x[0])


def test_a_python_function_has_a_time_limit_too():
    begun = time.monotonic()
    result = eign.minimize(sleepy, [(0, 1)], jac=None, method="sobol", seed=0, budget=4, timeout=2.0, on_error="fail")
    assert time.monotonic() - begun < 50.0
    assert 0 < result.history.n_failed < 4
    with pytest.raises(TimeoutError, match="took longer than 2 s and was ended"):
        eign.minimize(sleepy, [(0, 1)], jac=None, x0=[0.9], method="sobol", budget=1, timeout=2.0)
