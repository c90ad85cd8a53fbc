"""The examples that are shell scripts run as they stand; each `eign` of theirs is answered here, to spare its start."""

import contextlib
import csv
import io
import os
import runpy
import subprocess
import threading
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from eign import Optimizer, cli

mpl.use("Agg")

EXAMPLES = Path(__file__).parents[2] / "examples"
SHIM = """#!/bin/sh
printf '%s\\n' "$PWD" "$@" > {pipes}/question
cat {pipes}/answer
exit "$(cat {pipes}/code)"
"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a script with an `eign` on its PATH that hands its arguments to this process; gives what was printed."""
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    (pipes / "eign").write_text(SHIM.format(pipes=pipes))
    (pipes / "eign").chmod(0o755)
    for name in ("question", "answer"):
        os.mkfifo(pipes / name)

    def answer():
        while (question := (pipes / "question").read_text()) != "stop":
            directory, *arguments = question.splitlines()
            printed = io.StringIO()
            with contextlib.chdir(directory), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = cli.main(arguments)
            (pipes / "code").write_text(str(code))
            (pipes / "answer").write_text(printed.getvalue())

    server = threading.Thread(target=answer, daemon=True)
    server.start()
    monkeypatch.setenv("PATH", f"{pipes}{os.pathsep}{os.environ['PATH']}")

    def run(*command):
        finished = subprocess.run(["sh", *map(str, command)], capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    yield run
    (pipes / "question").write_text("stop")
    server.join(timeout=10)


def profit(temperature, minutes):
    """What measure.sh measures, without its noise."""
    k1 = 0.08 * np.exp(5000 * (1 / 330 - 1 / temperature))
    k2 = 0.01 * np.exp(9000 * (1 / 330 - 1 / temperature))
    return k1 / (k2 - k1) * (np.exp(-k1 * minutes) - np.exp(-k2 * minutes)) - 0.003 * minutes


def test_a_laboratory(shell, tmp_path):
    printed = shell(EXAMPLES / "laboratory/run.sh", "lab")
    assert "told 4 (1 failed); 4 evaluations in all, 0 pending" in printed
    assert "told 0; 4 were known already" in printed
    assert "evaluations  24, 1 failed" in printed
    study = Optimizer.view(tmp_path / "lab/lab.db")
    assert np.isnan(study.history.grad[:, 0]).all()
    assert np.isfinite(study.history.grad[:, 1]).sum() == 17  # the sensor is away in six runs, and one fails
    grid = profit(*np.meshgrid(np.linspace(300, 380, 161), np.geomspace(2, 60, 161)))
    # Three standard errors of one measurement.
    assert profit(*study.best.x) > grid.max() - 0.03
    with (tmp_path / "lab/lab.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {row["value_variance"] for row in rows} == {"0.0001", ""}
    draw = runpy.run_path(str(EXAMPLES / "laboratory/picture.py"))["draw"]
    draw(tmp_path / "lab/lab.db", tmp_path / "lab.png")
    assert (tmp_path / "lab.png").stat().st_size > 10_000


def test_a_batch_queue(shell, tmp_path):
    """One chain, as jobs of one chain follow each other; that many processes may share a study is tested elsewhere."""
    printed = shell(EXAMPLES / "batch_queue/submit.sh", "tin.db", 1, 6)
    assert "6 evaluations in all, 0 pending" in printed
    assert Optimizer.view(tmp_path / "tin.db").history.n_failed == 0
