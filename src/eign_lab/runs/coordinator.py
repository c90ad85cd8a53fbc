"""The coordinator: hands out tasks, takes back logs and is the only one to open the results file."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Final, final

from eign_lab.runs.display import Display
from eign_lab.runs.plan import Clock, PlannedRun
from eign_lab.runs.pool import TaskPool
from eign_lab.runs.run_log import RunLog
from eign_lab.runs.store import Results

# A task is given again when its worker is lost, but not for ever: it may be the one that kills them.
_LOSSES_ALLOWED: Final = 4


@final
@dataclass(slots=True)
class Summary:
    """How a campaign ended.

    Attributes:
        finished: Runs that were finished now.
        already: Runs that were finished before.
        failed: Title and error of the runs that raised.
        seconds: By the clock on the wall.
    """

    finished: int = 0
    already: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@final
@dataclass(slots=True)
class _OpenTask:
    planned: PlannedRun
    log: RunLog | None
    begun: float


def run_planned(planned: Sequence[PlannedRun], results: Results, workers: TaskPool, display: Display) -> Summary:
    """Do all runs that are not finished yet.

    A run that failed before is tried again from where it stopped. Each task's log is committed when it comes back, so
    that whatever happens costs no more than the tasks under way.

    Raises:
        KeyboardInterrupt: after the tasks under way were handed back and saved, where that takes a moment only.
    """
    return _Campaign(planned, results, workers, display).run_all()


@final
class _Campaign:
    """One call of `run_planned`."""

    def __init__(self, planned: Sequence[PlannedRun], results: Results, workers: TaskPool, display: Display) -> None:
        done = finished_evaluations(planned, results)
        self._results, self._workers, self._display = results, workers, display
        self._clock = Clock(planned, done)
        self._waiting = [each for each in reversed(planned) if done[each.run.key] < each.goal.budget]
        self._tasks: dict[Future[RunLog], _OpenTask] = {}
        self._losses: dict[str, int] = {}
        self._summary = Summary(already=len(planned) - len(self._waiting))

    def run_all(self) -> Summary:
        begun = time.monotonic()
        try:
            while self._waiting or self._tasks:
                self._fill()
                self._take(wait(self._tasks, return_when=FIRST_COMPLETED).done)
        except KeyboardInterrupt:
            if self._workers.stop():
                self._waiting.clear()
                self._take(wait(self._tasks).done, go_on=False)
            raise
        self._summary.seconds = time.monotonic() - begun
        return self._summary

    def _fill(self) -> None:
        """As many tasks as there are workers."""
        while self._waiting and len(self._tasks) < self._workers.count:
            planned = self._waiting.pop()
            log = self._results.log(planned.run.key)
            self._display.begin(planned, 0 if log is None else len(log))
            self._submit(planned, log)

    def _submit(self, planned: PlannedRun, log: RunLog | None) -> None:
        future = self._workers.submit(planned.run, log, planned.goal)
        self._tasks[future] = _OpenTask(planned, log, time.monotonic())

    def _take(self, done: Iterable["Future[RunLog]"], *, go_on: bool = True) -> None:
        """Save what came back and go on with those runs."""
        for future in done:
            task = self._tasks.pop(future)
            if future.cancelled():
                raise RuntimeError(
                    "the cluster has dropped a task; is its scheduler still there? Run it again to go on"
                )
            error = future.exception()
            if error is None:
                self._save(task, future.result(), go_on=go_on)
            elif self._workers.is_lost(error) and self._lost(task):
                if go_on:
                    self._submit(task.planned, task.log)
            elif isinstance(error, Exception):
                message = f"{type(error).__name__}: {' '.join(str(error).split())}"
                failed = RunLog() if task.log is None else task.log.copy()
                failed.error = message
                self._save(task, failed, go_on=False)
            else:
                raise error

    def _save(self, task: _OpenTask, log: RunLog, *, go_on: bool) -> None:
        planned = task.planned
        key, count = planned.run.key, self._workers.count
        self._results.save(planned.run, log)
        is_finished = planned.goal.is_reached(len(log), log.trace.last)
        self._clock.advance(key, planned.goal.budget if is_finished else len(log), time.monotonic() - task.begun)
        if log.error is not None:
            self._clock.drop(key)
            self._summary.failed[planned.title] = log.error
            self._display.end(planned, log, self._clock, count)
        elif is_finished:
            self._summary.finished += 1
            self._display.end(planned, log, self._clock, count)
        else:
            self._display.advance(planned, log, self._clock, count)
            if go_on:
                self._submit(planned, log)

    def _lost(self, task: _OpenTask) -> bool:
        """Whether the task may be given again."""
        key = task.planned.run.key
        self._losses[key] = self._losses.get(key, 0) + 1
        return self._losses[key] < _LOSSES_ALLOWED


def finished_evaluations(planned: Sequence[PlannedRun], results: Results) -> dict[str, int]:
    """For each run the evaluations that it has, or its whole budget if it is finished."""
    done = {}
    for each in planned:
        record = results.record(each.run.key)
        is_finished = record is not None and record.up_to(each.goal).finished
        done[each.run.key] = each.goal.budget if is_finished else 0 if record is None else len(record)
    return done
