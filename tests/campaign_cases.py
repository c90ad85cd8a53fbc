"""Small experiments for the tests of campaigns, and the run that they must come to."""

import tomllib
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import eign
from eign_lab.rivals import CountedProblem
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec, RunSpec
from eign_lab.runs.experiment_file import read_experiment
from eign_lab.runs.pool import TaskPool
from eign_lab.runs.run_log import Goal, RunLog
from eign_lab.runs.tasks import continue_run

PROBLEM = ProblemSpec("branin-2", initial=4, budget=9, restarts=2, raw_samples=32)
SMALL = Experiment(
    "small",
    "Two methods, one function",
    (PROBLEM,),
    (MethodSpec("EI-GN", "ei-gn"), MethodSpec("L-BFGS-B", "l-bfgs")),
)

# Long enough to be interrupted in the middle, even when the machine is fast.
LONG_BUDGET = 30
LONG_TOML = f"""
[[experiment]]
id = "long"

[[experiment.problems]]
name = "branin-2"
initial = 5
budget = {LONG_BUDGET}
restarts = 2
raw_samples = 32

[[experiment.methods]]
label = "EI-GN"
method = "ei-gn"

[[experiment.methods]]
label = "LogEI"
method = "log-ei"
"""


def write_long(directory: Path) -> Path:
    path = directory / "long.toml"
    path.write_text(LONG_TOML)
    return path


def long_experiment() -> Experiment:
    return read_experiment(tomllib.loads(LONG_TOML)["experiment"][0])


def moved_bowl(name: str, *, centre: float = 0.3, seed: int = 0) -> eign.problems.Problem:
    """A problem that no registry knows: the seed moves its maximum."""
    at = centre + 0.01 * seed

    def formula(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -((X - at) ** 2).sum(axis=1), -2.0 * (X - at)

    return eign.problems.Problem(name, eign.Box([(0.0, 1.0)] * 2), formula=formula, optimum=0.0)


CALLS: list[int] = []


def failing_once(name: str) -> eign.problems.Problem:
    """A problem that raises at its sixth evaluation, the first time that it comes to it."""
    problem = eign.problems.get(name)

    def formula(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        CALLS.append(len(CALLS))
        if len(CALLS) == 6:
            raise OSError("the licence server is gone")
        return problem.formula(X)

    return eign.problems.Problem(name, problem.bounds, formula=formula)


def corners(problem: str, seed: int) -> list[list[float]]:
    """A design that somebody else has published."""
    return [[-4.0, 1.0 + seed], [9.0, 14.0], [2.5, 7.5]]


def three_evaluations(problem: CountedProblem) -> None:
    """A program that gives up."""
    for u in np.random.default_rng(problem.seed).random((3, problem.dim)):
        problem.in_cube(u)


@cache
def uninterrupted(key: str) -> RunLog:
    """A run of the long experiment in one piece and in this process."""
    experiment = long_experiment()
    (run,) = (run for pair in experiment.pairs() if (run := experiment.run(*pair, 0)).key == key)
    return continue_run(run, None, Goal(LONG_BUDGET), seconds=np.inf)


class InThisProcess(TaskPool):
    """One worker, done with a task before it is waited for."""

    count = 1

    def submit(self, run: RunSpec, log: RunLog | None, goal: Goal) -> "Future[RunLog]":
        future: Future[RunLog] = Future()
        future.set_result(continue_run(run, log, goal, seconds=0.0))
        return future

    def is_lost(self, error: BaseException) -> bool:
        return False

    def stop(self) -> bool:
        return False

    def close(self) -> None:
        pass


class Watcher:
    """A display that notes what it is shown, and may act when the first task comes back."""

    def __init__(self, act: Any = None) -> None:
        self.act, self.begun, self.advanced, self.ended = act, 0, 0, 0

    def begin(self, *_: object) -> None:
        self.begun += 1

    def advance(self, *_: object) -> None:
        self.advanced += 1
        if self.act is not None and self.advanced == 1:
            self.act()

    def end(self, *_: object) -> None:
        self.ended += 1
