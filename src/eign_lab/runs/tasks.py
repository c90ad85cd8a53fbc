"""A run in pieces: the log goes in, a longer log comes out, and the pieces together are bitwise the run in one piece.

A method is a fold over what it was told, and its state is in the log. So nothing is repeated when a run continues, on
this machine or on another, and nothing is left behind where it stopped. Gradients are taken as they are: whether they
agree with the values is a question for a user's function.
"""

import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
import torch

from eign.arrays import Array
from eign.data import Observations, to_unit
from eign.formulas import stationarity
from eign.numerics.threads import pinned_threads, single_threaded_blas
from eign.problems import Problem
from eign.strategies import strategy
from eign_lab.runs.experiment import RunSpec, build_problem
from eign_lab.runs.run_log import RunLog

TASK_SECONDS: Final = 30.0
"""Work after which a task hands back the log: what a lost worker costs."""


def continue_run(
    run: RunSpec,
    log: RunLog | None,
    *,
    budget: int,
    seconds: float = TASK_SECONDS,
    is_stopped: Callable[[], bool] = lambda: False,
) -> RunLog:
    """Go on with a run until its budget is used or the time is up, by at least one evaluation.

    Whatever the problem or the method raises ends up in `error` of the log, and the evaluations before it are kept.

    Args:
        run: What to run.
        log: How far it has come; None is the beginning.
        budget: Evaluations in all.
        seconds: Stop after this time.
        is_stopped: Asked after each evaluation.
    """
    end = time.monotonic() + seconds
    try:
        with one_thread():
            problem = _problem(run)
            log = replace(log, error=None) if log else RunLog.empty(problem.dim)
            while len(log) < budget:
                log = _with_evaluation(run, log, problem)
                if time.monotonic() >= end or is_stopped():
                    break
    except Exception as error:
        return failed(log, _in_one_line(error))
    return log


def failed(log: RunLog | None, message: str) -> RunLog:
    """The log of a run that was stopped by an error; one that has not begun has no dimension yet, and gets one."""
    return replace(log or RunLog.empty(1), error=message)


def _with_evaluation(run: RunSpec, log: RunLog, problem: Problem) -> RunLog:
    """The log after one more point was proposed and evaluated."""
    box, method = problem.bounds, strategy(run.method)
    state = (
        method.start(box, run.options, run.seed, method=run.method) if log.state is None else method.restored(log.state)
    )
    start = time.perf_counter()
    [proposal], state = method.propose(state, to_unit(log.observations, box), np.empty((0, box.free_dim)), 1)
    elapsed = time.perf_counter() - start
    x = box.from_unit(proposal.x)
    value, gradient = problem(x)
    told = Observations.empty(box.dim).append(x, value, gradient)
    inside = to_unit(told, box)
    is_initial = len(log) < run.options.get("n_init", 0)
    return RunLog(
        log.observations.append(x, value, gradient),
        state.after(inside),
        seconds=np.append(log.seconds, np.nan if is_initial else elapsed),
        stationarity=np.append(log.stationarity, _gradient_norm(inside)),
    )


def _gradient_norm(inside: Observations) -> Array:
    """Norm of the projected gradient in the unit cube `n`, NaN where a component is missing."""
    squares = stationarity(torch.tensor(inside.x), torch.tensor(inside.grad))
    return np.asarray(squares.sqrt().numpy())


def _problem(run: RunSpec) -> Problem:
    """The problem of a run, kept for the next task: some take seconds to build."""
    return _built(run.problem, json.dumps(dict(run.problem_options)), run.seed if run.seeded else None)


@lru_cache(maxsize=8)
def _built(name: str, options: str, seed: int | None) -> Problem:
    return build_problem(name, json.loads(options), seed=seed)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for everything inside the block: as many runs as cores are faster than one run on all of them."""
    with pinned_threads(), single_threaded_blas():
        yield


def _in_one_line(error: Exception) -> str:
    """Kind, message and the place where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
    return " ".join(f"{type(error).__name__}: {error} ({place})".split())
