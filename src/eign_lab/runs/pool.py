"""Where tasks are done: processes of this machine, or a Dask cluster.

Both take a run and its log and promise a longer log; neither opens the results file.
"""

import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Any, Self, final

from eign_lab.runs.experiment import RunSpec
from eign_lab.runs.run_log import Goal, RunLog
from eign_lab.runs.tasks import TASK_SECONDS, continue_run


class TaskPool(ABC):
    """Does tasks, several at a time."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many tasks are done at a time, now."""

    @abstractmethod
    def submit(self, run: RunSpec, log: RunLog | None, goal: Goal) -> "Future[RunLog]":
        """Begin the next task of a run."""

    @abstractmethod
    def is_lost(self, error: BaseException) -> bool:
        """Whether this is the end of a worker, and no fault of the task's own; after it, the task is given again."""

    @abstractmethod
    def stop(self) -> bool:
        """Ask for tasks under way to be handed back; whether it is worth waiting for them."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the workers."""

    @final
    def __enter__(self) -> Self:
        return self

    @final
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@final
class LocalWorkers(TaskPool):
    """Processes of this machine; tasks see to it that each uses one thread."""

    def __init__(self, count: int, *, task_seconds: float = TASK_SECONDS) -> None:
        """Start `count` processes when the first task comes."""
        self._count, self._seconds = count, task_seconds
        self._context = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._executor = self._start()

    @property
    def count(self) -> int:
        """As given."""
        return self._count

    def submit(self, run: RunSpec, log: RunLog | None, goal: Goal) -> "Future[RunLog]":
        """Begin the next task of a run, with new processes if the last ones broke."""
        task = partial(_local_task, run, log, goal, self._seconds)
        try:
            return self._executor.submit(task)
        except BrokenProcessPool:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = self._start()
            return self._executor.submit(task)

    def is_lost(self, error: BaseException) -> bool:
        """Whether a process was killed."""
        return isinstance(error, BrokenProcessPool)

    def stop(self) -> bool:
        """Tasks come back after their current evaluation."""
        self._stop.set()
        return True

    def close(self) -> None:
        """End the processes."""
        self._stop.set()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._count, mp_context=self._context, initializer=_begin_process, initargs=(self._stop,)
        )


@final
class DaskWorkers(TaskPool):
    """The workers of a Dask cluster, which give a task to another one if its worker is lost."""

    def __init__(self, address: str, *, task_seconds: float = TASK_SECONDS) -> None:
        """Connect to the scheduler at `address`, such as "tcp://10.0.0.1:8786"."""
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError("--scheduler needs the package distributed: pip install 'eign[dask]'") from error
        self._seconds = task_seconds
        self._client: Any = Client(address)  # type: ignore[no-untyped-call]
        self._executor: Executor = self._client.get_executor(pure=False)  # type: ignore[no-untyped-call]

    @property
    def count(self) -> int:
        """Threads of the cluster, and at least one so that tasks wait there for workers to come."""
        return max(1, sum(int(threads) for threads in self._client.nthreads().values()))

    def submit(self, run: RunSpec, log: RunLog | None, goal: Goal) -> "Future[RunLog]":
        """Begin the next task of a run."""
        return self._executor.submit(continue_run, run, log, goal, seconds=self._seconds)

    def is_lost(self, error: BaseException) -> bool:
        """Whether Dask gave up after several workers were lost."""
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)

    def stop(self) -> bool:
        """Tasks of a cluster are dropped."""
        return False

    def close(self) -> None:
        """Disconnect; tasks under way are cancelled."""
        self._executor.shutdown(wait=False)
        self._client.close()


_stop: Event | None = None


def _begin_process(stop: Event) -> None:
    """In a new process: Ctrl-C is for the coordinator, and when that is gone so is this."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "processes of a pool have a parent"
    wait([parent.sentinel])
    os._exit(1)


def _local_task(run: RunSpec, log: RunLog | None, goal: Goal, seconds: float) -> RunLog:
    assert _stop is not None, "set when the process began"
    return continue_run(run, log, goal, seconds=seconds, is_stopped=_stop.is_set)
