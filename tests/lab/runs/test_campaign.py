"""Campaigns as they happen: processes that are killed or interrupted, a Dask cluster that loses a worker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from campaign_cases import LONG_BUDGET, Watcher, long_experiment, uninterrupted, write_long
from eign import cli
from eign.study.storage.lock import Lock
from eign_lab.runs.coordinator import run_planned
from eign_lab.runs.experiment_file import load_experiments
from eign_lab.runs.plan import plan_runs
from eign_lab.runs.pool import DaskWorkers, LocalWorkers
from eign_lab.runs.store import Results

EIGN = [sys.executable, "-c", "import sys; from eign.cli import main; sys.exit(main())"]
PATIENCE = 120.0  # seconds, on a machine that is busy with other things


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def evaluations(path: Path) -> int:
    if not path.exists():
        return 0
    with Results(path) as results:
        return sum(len(record) for record in results.records())


def assert_complete(path: Path) -> None:
    """Both runs are there, bitwise as if nothing had happened."""
    with Results(path) as results:
        assert len(results) == 2
        for record in results.records():
            log, expected = results.log(record.spec.key), uninterrupted(record.spec.key)
            assert log is not None
            assert log.error is None
            assert (log.trace, log.study) == (expected.trace, expected.study)


def run_until(path: Path, count: int, how: signal.Signals, arguments: list[str]) -> tuple[int, str]:
    """Start a campaign in a process of its own, stop it after so many evaluations; its exit code and last words."""
    process = subprocess.Popen([*EIGN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: evaluations(path) >= count or process.poll() is not None)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert workers
    process.send_signal(how)
    _, error = process.communicate(timeout=PATIENCE)
    psutil.wait_procs(workers, timeout=PATIENCE)
    assert not any(worker.is_running() for worker in workers), "a worker has outlived its coordinator"
    return process.returncode, error


def kill_the_local_worker() -> None:
    (worker,) = (child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline()))
    worker.kill()


def test_killed_interrupted_and_robbed_of_its_worker_a_campaign_goes_on_as_if_nothing_had_happened(tmp_path):
    path, spec = tmp_path / "results.sqlite", write_long(tmp_path)
    arguments = ["paper", "--spec", str(spec), "--results", str(path), "--seeds", "1", "--workers", "1"]
    arguments += ["--task-seconds", "0.1"]
    code, _ = run_until(path, 8, signal.SIGKILL, arguments)
    assert code == -signal.SIGKILL
    killed_at = evaluations(path)
    assert 8 <= killed_at < 2 * LONG_BUDGET
    code, error = run_until(path, killed_at + 5, signal.SIGINT, arguments)
    assert code == 130
    assert error.rstrip().endswith("eign: error: interrupted")
    assert killed_at + 5 <= evaluations(path) < 2 * LONG_BUDGET
    watcher = Watcher(kill_the_local_worker)
    with Results(path) as results, LocalWorkers(1, task_seconds=0.1) as workers:
        summary = run_planned(plan_runs(load_experiments(spec), range(1)), results, workers, watcher)
    assert watcher.advanced
    assert (summary.failed, summary.finished + summary.already) == ({}, 2)
    assert_complete(path)


def test_a_dask_cluster_that_loses_a_worker_does_the_same_runs(tmp_path):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "results.sqlite"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
        Results(path) as results,
        DaskWorkers(cluster.scheduler_address, task_seconds=0.3) as workers,
    ):
        pids = list(client.run(os.getpid).values())
        watcher = Watcher(lambda: os.kill(pids[0], signal.SIGKILL))
        summary = run_planned(plan_runs([long_experiment()], range(1)), results, workers, watcher)
        assert workers.count >= 1
    assert watcher.advanced
    assert (summary.finished, summary.failed) == (2, {})
    assert_complete(path)


def test_the_command_runs_exports_and_has_nothing_to_do_the_second_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["paper", "fig1", "--quick", "--seeds", "1", "--workers", "1", "--export", "made"]
    arguments += ["--without", "auto", "--without", "dLogEI"]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr()
    assert "fig1: 3 runs of 1 seeds, 3 to do; results in eign-paper-quick.sqlite" in shown.out
    assert "3 runs finished" in shown.out
    assert [line.split(":")[0] for line in shown.err.splitlines()] == [
        "[1/3] fig1  mixture-1  EI  seed 0",
        "[2/3] fig1  mixture-1  EI-GN  seed 0",
        "[3/3] fig1  mixture-1  L-BFGS-B  seed 0",
    ]
    assert (tmp_path / "made" / "runs.parquet").exists()
    assert cli.main(arguments) == 0
    assert "0 runs finished in 0.0 min, 3 were finished before, 0 failed" in capsys.readouterr().out


def test_wrong_names_and_a_second_coordinator_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["paper", "fig2"]) == 1
    assert "there is no experiment 'fig2'" in capsys.readouterr().err
    assert cli.main(["paper", "fig1", "--spec", str(write_long(tmp_path))]) == 1
    assert "expected some of long" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.sqlite"))
    lock = Lock(tmp_path / "eign-paper.sqlite")
    assert cli.main(["paper", "fig1"]) == 1
    lock.release()
    assert "eign-paper.sqlite is in use by another campaign" in capsys.readouterr().err
    assert cli.main(["paper", "--seeds", "0"]) == 2
