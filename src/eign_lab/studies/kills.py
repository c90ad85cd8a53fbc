"""Kill studies at random moments with SIGKILL, resume them, and compare with runs that nobody disturbed.

A parent imports eign once and forks a child for each life of a study. A child resumes the study from its file, or
begins it, and goes on asking, evaluating and telling until the parent kills it: in a phase chosen at random, at a
random moment of it. At the end file and undisturbed run are compared bit for bit: every event, every value, the state.
Whatever a call had returned before a kill must be there when the next child resumes.

    python -m eign_lab.studies.kills --kills 1000 --results results/kill_study.jsonl

Each study is a line of the results file; a study that is in it is not run again.
"""

import argparse
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eign.arrays import Array
from eign.study.handle import handle
from eign.study.optimizer import Optimizer
from eign.study.storage.file_format import dumps
from eign.study.storage.study_file import read_study

_FAST = {"restarts": 2, "raw_samples": 32}
METHODS: dict[str, dict[str, int]] = {
    "sobol": {},
    "ei-gn": _FAST,
    "d-log-ei": _FAST,
    "l-bfgs": {},
    "cma-es": {},
    "slsqp": {},
    "auto": {"n_init": 3},
}
# Studies of these methods have a black-box constraint and a linear one.
CONSTRAINED = ("slsqp", "auto")
LIMITED: dict[str, Any] = {"constraints": {"product": (None, 2.0)}, "linear": ([[1.0, 1.0]], 0.5, 4.0)}
PHASES = ("open", "ask", "evaluate", "tell", "close")
BOUNDS = {"a": (-1.0, 2.0), "b": (0.5, 4.0)}
BUDGET = 12
KILLS = 6
# Seconds from the beginning of a phase within which a kill falls: about as long as the phase takes on a memory disk.
WITHIN = {"open": 0.008, "ask": 0.02, "evaluate": 0.004, "tell": 0.0015, "close": 0.001}


def evaluate(x: Array) -> tuple[float, list[float]]:
    """A smooth function with several minima, and its gradient."""
    a, b = x
    value = (a - 0.7) ** 2 + 0.5 * np.sin(5.0 * a) * b + 0.1 * b**2
    return float(value), [float(2 * (a - 0.7) + 2.5 * np.cos(5.0 * a) * b), float(0.5 * np.sin(5.0 * a) + 0.2 * b)]


def constraints_at(x: Array, method: str) -> dict[str, Any]:
    """What is told of the constraints of a study of this method."""
    a, b = x.tolist()
    return {"constraints": [a * b], "constraint_grads": [[b, a]]} if method in CONSTRAINED else {}


def begun(method: str, seed: int, storage: Path | None = None) -> Optimizer:
    """A new study."""
    limited = LIMITED if method in CONSTRAINED else {}
    return Optimizer(BOUNDS, method=method, seed=seed, storage=storage, options=METHODS[method], **limited)


class Board:
    """Memory that parent and child share: the phase, phases begun so far, and what calls have returned."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 32)

    def read(self) -> tuple[int, int, int, int]:
        """Phase, phases begun, points asked, evaluations told."""
        phase, begun, asked, told = struct.unpack("4q", self._memory[:32])
        return phase, begun, asked, told

    def write(self, *, phase: str, asked: int, told: int) -> None:
        """Begin a phase; `asked` and `told` are what calls have returned."""
        begun = self.read()[1] + 1
        self._memory[:32] = struct.pack("4q", PHASES.index(phase), begun, asked, told)


def live(path: Path, method: str, seed: int, board: Board) -> None:
    """One life of the study, from the resume to the budget."""
    _, _, asked, told = board.read()
    board.write(phase="open", asked=asked, told=told)
    study = Optimizer.resume(path) if path.exists() else begun(method, seed, storage=path)
    found_asked, found_told = handle(study).state.asked, len(study.history)
    if not (asked <= found_asked <= asked + 1 and told <= found_told <= told + 1):
        raise AssertionError(f"returned {asked} asked, {told} told; the file has {found_asked}, {found_told}")
    asked, told = found_asked, found_told
    while told < BUDGET:
        board.write(phase="ask", asked=asked, told=told)
        x = study.ask()
        asked = handle(study).state.asked
        board.write(phase="evaluate", asked=asked, told=told)
        time.sleep(WITHIN["evaluate"])
        value, gradient = evaluate(x)
        board.write(phase="tell", asked=asked, told=told)
        study.tell(x, value, gradient, **constraints_at(x, method))
        told += 1
    board.write(phase="close", asked=asked, told=told)
    study.close()


def forked(work: Callable[..., None], *arguments: object) -> int:
    """The number of a child that does `work` and exits with 0 if nothing went wrong."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException as error:
        print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(code)


def live_and_be_killed(path: Path, method: str, seed: int, board: Board, rng: random.Random) -> str | None:
    """A life that ends in a phase chosen at random; returns the phase, or None if the study was complete before."""
    target = rng.choice(PHASES)
    passed = board.read()[1] + (0 if target == "open" else rng.randrange(6))
    child = forked(live, path, method, seed, board)
    while True:
        phase, begun, _, _ = board.read()
        if begun > passed and (PHASES[phase] == target or begun > passed + 6):
            break
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return None
        time.sleep(0.0005)
    time.sleep(rng.uniform(0.0, WITHIN[PHASES[board.read()[0]]]))
    killed_in = PHASES[board.read()[0]]
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return killed_in if os.WIFSIGNALED(status) else None


def undisturbed(method: str, seed: int) -> str:
    """Events and final state of a run in memory."""
    study = begun(method, seed)
    for _ in range(BUDGET):
        x = study.ask()
        study.tell(x, *evaluate(x), **constraints_at(x, method))
    return dumps([[event.to_json() for event in handle(study).log], handle(study).state.to_json()])


def kill_study(directory: Path, method: str, seed: int) -> dict[str, Any]:
    """One study, killed at most `KILLS` times; returns what happened."""
    rng, board = random.Random(f"{method} {seed}"), Board()
    path, mid_commit = directory / f"{method}-{seed}.db", 0
    kills: list[str] = []
    # In the parent, before any child: they inherit the packages that it has loaded.
    expected = undisturbed(method, seed)
    for _ in range(KILLS):
        phase = live_and_be_killed(path, method, seed, board, rng)
        if phase is None:
            break
        kills.append(phase)
        mid_commit += path.with_name(path.name + "-journal").exists()
    _, status = os.waitpid(forked(live, path, method, seed, board), 0)
    same = False
    if status == 0:
        contents = read_study(path)
        same = dumps([contents.events, contents.state]) == expected
        path.unlink()
    return {"method": method, "seed": seed, "same": same, "kills": kills, "mid_commit": mid_commit}


def main() -> bool:
    """Kill as often as asked; whether a study differs from its undisturbed run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--results", type=Path, help="one line a study; those that are there are not run again")
    parser.add_argument("--directory", type=Path, help="for the studies; on a memory disk it is much faster")
    options = parser.parse_args()
    torch.set_num_threads(1)  # a child of a process with threads may hang
    done = []
    if options.results and options.results.exists():
        done = [json.loads(line) for line in options.results.read_text().splitlines()]
    seen = {(row["method"], row["seed"]) for row in done}
    total, seed = sum(len(row["kills"]) for row in done), 0
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        while total < options.kills:
            method = list(METHODS)[seed % len(METHODS)]
            if (method, seed) not in seen:
                row = kill_study(Path(directory), method, seed)
                done.append(row)
                total += len(row["kills"])
                print(
                    f"{total:5d} kills  {method:<9} seed {seed}: {'same' if row['same'] else 'DIFFERENT'}", flush=True
                )
                if options.results:
                    with options.results.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            seed += 1
    phases = [phase for row in done for phase in row["kills"]]
    counts = ", ".join(f"{phases.count(name)} in {name}" for name in PHASES)
    different = [row for row in done if not row["same"]]
    print(f"{total} kills of {len(done)} studies ({counts}; {sum(row['mid_commit'] for row in done)} mid-commit)")
    print(f"{len(different)} studies differ from the undisturbed run")
    return len(different) > 0


if __name__ == "__main__":
    sys.exit(main())
