"""Runs on several workers: threads, processes that are killed, and a Dask cluster that loses a worker."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import cloudpickle
import numpy as np
import pytest

import eign
from eign.study import LostWorkerWarning, Status
from eign.study.progress import Progress

SQUARE = [(-1.0, 2.0)] * 2
# Under pytest this module cannot be imported elsewhere; a notebook's functions are sent by value without this.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def bowl(x):
    return float(((x - 0.3) ** 2).sum()), 2 * (x - 0.3)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as executor:
        yield executor


def test_one_worker_is_bitwise_the_sequential_run():
    """The same loop evaluates in this process and elsewhere; with one worker it gives the same points."""
    here = eign.minimize(bowl, SQUARE, method="ei", budget=9, seed=3)
    with ThreadPoolExecutor(1) as one:
        there = eign.minimize(bowl, SQUARE, method="ei", budget=9, seed=3, workers=one)
    assert here.history == there.history


def test_threads_work_at_the_same_time(threads):
    together = threading.Barrier(4, timeout=20)

    def meet(x):
        together.wait()
        return bowl(x)

    # No probes of the gradient: where they go depends on which points are told first.
    settings = {"method": "sobol", "budget": 8, "seed": 0, "check_gradients": False}
    result = eign.minimize(meet, SQUARE, **settings, workers=threads)
    assert (result.nfev, result.njev, result.nit, result.status) == (8, 8, 8, Status.BUDGET)
    alone = eign.minimize(bowl, SQUARE, **settings)
    assert sorted(map(tuple, result.history.x)) == sorted(map(tuple, alone.history.x))


def test_a_free_worker_does_not_wait_for_the_slowest(threads):
    """The first point is answered only after all the others: the other three workers do them meanwhile."""
    others = threading.Semaphore(0)
    first = threading.Lock()

    def slow_first(x):
        if first.acquire(blocking=False):
            for _ in range(11):
                assert others.acquire(timeout=20)
        else:
            others.release()
        return bowl(x)

    result = eign.minimize(slow_first, SQUARE, method="sobol", budget=12, seed=0, workers=threads)
    assert result.success
    assert result.nfev == 12


def test_everything_else_works_with_workers_too(threads, capsys, monkeypatch):
    calls, running = [], []
    update = Progress.update

    def recorded(self, *arguments, **named):
        running.append(named["running"])
        return update(self, *arguments, **named)

    # What the last frame shows as running depends on how many answers came at once.
    monkeypatch.setattr(Progress, "update", recorded)
    result = eign.minimize(
        lambda point, shift: (point["a"] - shift) ** 2 + point["b"],
        {"a": (-1, 2), "b": (0, 1)},
        jac=lambda point, shift: {"a": 2 * (point["a"] - shift), "b": 1.0},
        args=(0.5,),
        x0={"a": 0.5, "b": 0.0},
        budget=40,
        method="l-bfgs",
        seed=0,
        tol=1e-6,
        callback=lambda intermediate_result: calls.append(intermediate_result.nfev),
        progress=True,
        workers=threads,
    )
    assert result.status == Status.CONVERGED
    np.testing.assert_allclose(result.x, [0.5, 0.0], atol=1e-9)
    assert calls == list(range(1, len(calls) + 1))
    assert running[:5] == [0, 1, 2, 3, 4]
    assert max(running) == 4
    assert "best " in capsys.readouterr().err


def test_known_noise_is_used(threads):
    def measured(x):
        return eign.Evaluation(*bowl(x), value_variance=0.01, gradient_variance={"a": 0.1, "b": 0.2})

    result = eign.minimize(
        lambda point: measured(np.array(list(point.values()))),
        {"a": (-1, 2), "b": (-1, 2)},
        method="sobol",
        budget=4,
        workers=threads,
    )
    np.testing.assert_array_equal(result.history.y_var, 0.01)
    np.testing.assert_array_equal(result.history.grad_var, [[0.1, 0.2]] * 4)


def test_an_error_stops_the_run_and_keeps_what_is_known(threads):
    def fragile(x):
        if x[0] > 1.0:
            raise ZeroDivisionError("no mesh")
        return bowl(x)

    with pytest.raises(ZeroDivisionError, match="no mesh") as caught:
        eign.minimize(fragile, SQUARE, method="sobol", budget=50, seed=0, workers=threads)
    assert any("at x = [" in note for note in caught.value.__notes__)
    partial = caught.value.partial_result
    assert partial.status == Status.ERROR
    assert 0 < partial.nfev < 50
    assert partial.fun == partial.history.y.min()
    result = eign.minimize(fragile, SQUARE, method="sobol", budget=12, seed=0, workers=threads, on_error="fail")
    assert result.nfev == 12
    assert result.history.n_failed == (result.history.x[:, 0] > 1.0).sum() > 0


def test_what_has_ended_when_an_error_stops_the_run_is_kept(threads):
    together, ended = threading.Barrier(4, timeout=20), []

    def one_fails(x):
        turn = together.wait()
        if turn == 0:
            while len(ended) < 3:
                time.sleep(0.01)
            time.sleep(0.1)
            raise ZeroDivisionError
        ended.append(turn)
        return bowl(x)

    def wait_for_all(_):
        time.sleep(0.3)

    with pytest.raises(ZeroDivisionError) as caught:
        eign.minimize(one_fails, SQUARE, method="sobol", budget=4, workers=threads, callback=wait_for_all)
    assert caught.value.partial_result.nfev == 3


def test_a_wrong_answer_is_no_failed_evaluation(threads):
    with pytest.raises(TypeError, match=r"return \(value, gradient\)"):
        eign.minimize(lambda x: 1.0, SQUARE, method="sobol", budget=4, workers=threads, on_error="fail")


def test_lambdas_run_in_processes():
    own = os.getpid()
    result = eign.minimize(lambda x: (float(os.getpid()), 0 * x), SQUARE, method="sobol", budget=6, workers=2)
    assert result.success
    assert own not in result.history.y
    assert 1 <= len(set(result.history.y)) <= 2


def test_a_process_that_dies_costs_its_own_point_only(tmp_path):
    """One point kills its process once and is tried again; another kills every process that tries it."""
    log = tmp_path / "tries"

    def deadly(x):
        with log.open("a") as file:
            file.write(f"{x[0]}\n")
        if x[0] == 1.5 or (x[0] == 1.0 and log.read_text().count("1.0\n") == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.3)  # the others are under way when it happens
        return bowl(x)

    x0 = [[0.0, 0.0], [1.0, 0.0], [1.5, 0.0], [0.5, 0.0]]
    with pytest.warns(LostWorkerWarning, match=r"(?s)x = \[1.5, 0.0\].*SIGKILL"):
        result = eign.minimize(deadly, SQUARE, method="sobol", budget=8, seed=0, x0=x0, workers=3)
    assert result.success
    assert result.nfev == 8
    assert result.history.x[result.history.failed].tolist() == [[1.5, 0.0]]
    tries = log.read_text().split()
    assert (tries.count("1.0"), tries.count("1.5")) == (2, 2)
    assert len(tries) == 8 + 2


def test_an_error_in_a_process_comes_with_its_traceback():
    def broken_mesh(x):
        raise ZeroDivisionError("no mesh")

    with pytest.raises(ZeroDivisionError, match="no mesh") as caught:
        eign.minimize(broken_mesh, SQUARE, method="sobol", budget=4, workers=2)
    assert any("in broken_mesh" in note for note in caught.value.__notes__)


def test_a_pool_of_the_user_that_breaks_is_told():
    def deadly(x):
        os._exit(3)

    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        pytest.raises(RuntimeError, match=r"the executor given as workers broke.*workers=4") as caught,
    ):
        eign.minimize(deadly, SQUARE, method="sobol", budget=4, workers=pool)
    assert caught.value.partial_result.nfev == 0


def test_ctrl_c_returns_the_best_so_far_and_ends_the_workers(tmp_path):
    """A real terminal sends the signal to the whole group; the workers are hours from an answer."""
    program = f"""
import os, time, eign
def slow(x):
    if x[0] > 0:
        open({str(tmp_path)!r} + f"/{{os.getpid()}}", "w").close()
        time.sleep(600)
    return float(x @ x), 2 * x
print("ready", flush=True)
x0 = [[-0.5, 0.0], [0.5, 0.0], [0.6, 0.0]]
result = eign.minimize(slow, [(-1, 1)] * 2, x0=x0, method="sobol", budget=3, workers=3)
print(result.nfev, result.fun, result.message)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as child:
        try:
            # Processes that import torch on a busy machine, and then some.
            deadline = time.monotonic() + 240
            while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.5)
            os.killpg(child.pid, signal.SIGINT)
            out, err = child.communicate(timeout=120)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    assert out.splitlines() == ["ready", "1 0.25 interrupted; this is the best so far"], err
    assert err == ""
    workers = [int(path.name) for path in tmp_path.iterdir()]
    assert len(workers) == 2
    assert not any(map(_is_alive, workers))


def test_a_dask_cluster_that_loses_workers(tmp_path):
    """As for processes; here Dask starts the worker and the point again, as often as the cluster allows."""
    import dask
    from distributed import Client, LocalCluster

    log = tmp_path / "tries"

    def deadly(x):
        with log.open("a") as file:
            file.write(f"{x[0]}\n")
        if x[0] == 1.5 or (x[0] == 1.0 and log.read_text().count("1.0\n") == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
        return bowl(x)

    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50) as c,
        Client(c) as client,
    ):
        x0 = [[1.0, 0.0], [0.0, 0.0], [1.5, 0.0]]
        with pytest.warns(LostWorkerWarning, match=r"x = \[1.5, 0.0\]"):
            result = eign.minimize(deadly, SQUARE, method="sobol", budget=8, seed=0, x0=x0, workers=client)
        assert result.success
        assert result.history.x[result.history.failed].tolist() == [[1.5, 0.0]]
        tries = log.read_text().split()
        assert (tries.count("1.0"), tries.count("1.5")) == (2, 2)
        assert len(tries) == 8 + 2  # what a worker had answered before it died is not evaluated again
        with pytest.raises(ZeroDivisionError):
            eign.minimize(lambda x: 1 / 0, SQUARE, method="sobol", budget=3, workers=(client, 1))


class Silent(Executor):
    """An executor that does not tell how many workers it has."""

    def __init__(self, inner):
        self.inner = inner

    def submit(self, fn, /, *args, **kwargs):
        return self.inner.submit(fn, *args, **kwargs)


def test_the_number_of_workers_is_asked_for_where_it_is_not_known(threads):
    with pytest.raises(ValueError, match=r"a Silent does not tell .* workers=\(Silent\(...\), 4\)"):
        eign.minimize(bowl, SQUARE, workers=Silent(threads))
    assert eign.minimize(bowl, SQUARE, method="sobol", budget=5, workers=(Silent(threads), 2)).nfev == 5


@pytest.mark.parametrize("workers", [0, -2, True])
def test_impossible_numbers(workers):
    with pytest.raises(ValueError, match=f"workers={workers}, expected a number of processes"):
        eign.minimize(bowl, SQUARE, workers=workers)


@pytest.mark.parametrize("workers", ["4", 2.0, object()])
def test_impossible_kinds(workers):
    with pytest.raises(TypeError, match="expected a number of processes"):
        eign.minimize(bowl, SQUARE, workers=workers)


def test_an_executor_that_was_shut_down():
    executor = ThreadPoolExecutor(2)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        eign.minimize(bowl, SQUARE, method="sobol", budget=2, workers=executor)


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
