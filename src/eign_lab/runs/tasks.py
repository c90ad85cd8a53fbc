"""A run in pieces: the log goes in, a longer log comes out, and the pieces together are bitwise the run in one piece.

A study is a fold over what it was told, and its snapshot is in the log. So nothing is repeated when a run continues, on
this machine or on another, and nothing is left behind where it stopped. Other programs cannot be interrupted: they do
their run in one piece. Gradients are taken as they are: whether they agree with the values is a question for a user's
function.
"""

import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import numpy as np

from eign.arrays import Array
from eign.numerics.threads import single_threaded_blas, undisturbed
from eign.study import MethodFailedWarning
from eign.study.handle import restore, snapshot
from eign_lab.rivals import Finished
from eign_lab.runs.experiment import RunSpec, find_program
from eign_lab.runs.plugins import load_function
from eign_lab.runs.posed_problem import Posed, pose
from eign_lab.runs.run_log import Goal, RunLog

TASK_SECONDS: Final = 30.0
"""Work after which a task hands back the log: what a lost worker costs."""

Stopped = Callable[[], bool]


def continue_run(
    run: RunSpec, log: RunLog | None, goal: Goal, *, seconds: float = TASK_SECONDS, is_stopped: Stopped = lambda: False
) -> RunLog:
    """Go on with a run until it is finished or the time is up, by at least one evaluation.

    Whatever the problem or the method raises ends up in `error` of the log, and the evaluations before it are kept.

    Args:
        run: What to run.
        log: How far it has come; None is the beginning.
        goal: When it is finished.
        seconds: Stop after this time.
        is_stopped: Asked after each evaluation.
    """
    log = RunLog() if log is None else log.copy()
    log.error = None
    end = time.monotonic() + seconds
    try:
        with one_thread(), warnings.catch_warnings():
            # A run in which other points took the place of the method's would be no run of the method.
            warnings.simplefilter("error", MethodFailedWarning)
            if find_program(run.method) is not None:
                return _run_program(run, goal, is_stopped)
            _continue_study(run, log, goal, lambda: time.monotonic() >= end or is_stopped())
    except Exception as error:
        log.error = _in_one_line(error)
    return log


def _continue_study(run: RunSpec, log: RunLog, goal: Goal, is_stopped: Stopped) -> None:
    """Ask, evaluate and tell, as a user would."""
    problem = _posed(run)
    design = _design(run, problem)
    optimizer = restore(log.study) if log.study is not None else problem.begin(run.method, run.seed, run.options)
    answered = time.perf_counter()
    try:
        while not goal.is_reached(len(log), log.trace.last):
            # A point that was asked before the run was stopped by an error comes first.
            asked = np.concatenate([design[len(log) :][:1], optimizer.pending])
            x = asked[0] if len(asked) else optimizer.ask()
            waited = time.perf_counter() - answered
            answer = problem.answer(x)
            answered = time.perf_counter()
            optimizer.tell(x, **answer.told)
            log.seconds.append(np.nan if optimizer.reasons[-1] in ("initial", "told") else waited)
            log.trace.add(answer.value, problem.true_value(x, answer.value))
            if is_stopped():
                break
    finally:
        log.study = snapshot(optimizer)


def _run_program(run: RunSpec, goal: Goal, is_stopped: Stopped) -> RunLog:
    """The whole run of another program; a log without evaluations if it was stopped."""
    program, problem, log = find_program(run.method), _posed(run), RunLog()
    assert program is not None, "continue_run has looked"
    if run.design:
        raise ValueError(f"{run.method} begins where it likes: given designs are for registered methods")

    def record(x: Array, value: float, waited: float) -> bool:
        log.seconds.append(waited)
        log.trace.add(value, problem.true_value(x, value))
        if is_stopped():
            raise InterruptedError
        return goal.is_reached(len(log), log.trace.last)

    counted = problem.counted(record, seed=run.seed, budget=goal.budget, options=run.options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of line searches that fail, which is the program's own affair
        try:
            program(counted)
        except Finished:
            pass
        except InterruptedError:
            return RunLog()
    if not counted.is_over:
        raise RuntimeError(f"{run.method} gave up after {len(log)} of {goal.budget} evaluations")
    return log


def _design(run: RunSpec, problem: Posed) -> Array:
    """Given points that are told before the first is asked, `n x d`."""
    points = load_function(run.design)(run.problem, run.seed) if run.design else ()
    return np.reshape(np.asarray(points, dtype=np.float64), (-1, problem.dim))


def _posed(run: RunSpec) -> Posed:
    """The problem of a run, kept for the next task: some take seconds to build."""
    return _kept(run.problem, run.source, json.dumps(dict(run.problem_options)), run.seed if run.seeded else None)


@lru_cache(maxsize=8)
def _kept(name: str, source: str, options: str, seed: int | None) -> Posed:
    posed: Posed = pose(name, json.loads(options), source=source, seed=seed)
    return posed


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for everything inside the block: as many runs as cores are faster than one run on all of them."""
    with undisturbed(), single_threaded_blas():
        yield


def _in_one_line(error: Exception) -> str:
    """Kind, message and the place where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
    return " ".join(f"{type(error).__name__}: {error} ({place})".split())
