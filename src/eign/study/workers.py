"""Where evaluations run: in this process, in processes of our own, on the user's executor or on a Dask cluster.

All four are a `concurrent.futures.Executor` and a number of points that it can work on at once, so that a run is one
loop over futures.
"""

import ctypes
import operator
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Self, final

from eign.evaluation import Evaluation, Raised, Task, unpack

Outcome = Evaluation | Raised

_ATTEMPTS: Final = 2
# PR_SET_PDEATHSIG of <sys/prctl.h>.
_SET_DEATH_SIGNAL: Final = 1
_LOOK_FOR_PARENT: Final = 0.5
_IS_LINUX: Final[bool] = sys.platform.startswith("linux")
_THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class LostWorkerError(RuntimeError):
    """The process that evaluated a point ended without an answer, and so did the one that tried again."""


@final
@dataclass(frozen=True)
class Workers:
    """An executor with what a run must know of it.

    Attributes:
        executor: Takes a task and a point.
        count: How many points it can work on now; a cluster may grow.
        stop: Called at the end of a `with` block.
        death: What a future raises if its worker died and trying again did not help.
    """

    executor: Executor
    count: Callable[[], int]
    stop: Callable[[], None] = lambda: None
    death: type[Exception] = LostWorkerError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def submit(self, task: Task, point: Any) -> "Future[Outcome]":
        """Start an evaluation."""
        try:
            return self.executor.submit(task, point)
        except BrokenExecutor as error:
            raise _broken(error) from error

    def outcome(self, future: "Future[Outcome]") -> Outcome:
        """What came of it.

        Raises:
            LostWorkerError: More than once.
            RuntimeError: The executor is of no more use.
            Exception: Whatever else went wrong outside the user's function.
        """
        try:
            return future.result()
        except self.death as error:
            raise error if isinstance(error, LostWorkerError) else LostWorkerError(str(error)) from error
        except BrokenExecutor as error:
            raise _broken(error) from error
        except CancelledError as error:
            raise RuntimeError("the executor given as workers cancelled an evaluation; was it shut down?") from error


def hire(workers: Any, task: Task, *, timeout: float | None = None) -> Workers:
    """The workers that `minimize` was asked for.

    Args:
        workers: See `minimize`.
        task: What they will do.
        timeout: Seconds after which an evaluation in a process of ours is ended.

    Raises:
        ValueError: The number is impossible, or an executor does not tell how many workers it has.
        TypeError: It is nothing that can work, or the task cannot be sent to another process.
    """
    number = None
    if isinstance(workers, tuple) and len(workers) == 2:
        workers, number = workers[0], _checked_number(workers[1])
    if timeout is not None and (isinstance(workers, Executor) or _is_dask_client(workers)):
        raise ValueError("timeout: only a process of ours can be ended; give workers as a number")
    if isinstance(workers, Executor):
        size = number or _declared_number(workers)
        return Workers(workers, lambda: size)
    if _is_dask_client(workers):
        return _dask_workers(workers, number)
    size = _checked_number(1 if workers is None else workers)
    if size == 1 and timeout is None:
        return Workers(InThisProcess(), lambda: 1)
    task.pack()  # what cannot be sent is told before anything starts
    processes = ProcessExecutor(size, timeout=timeout)
    return Workers(processes, lambda: size, processes.kill)


@final
class InThisProcess(Executor):
    """Evaluates while it is asked to: the sequential run. An interrupt goes up to the caller."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """A future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@final
class ProcessExecutor(Executor):
    """Processes that are replaced when they die; a point whose process died is tried once more.

    A pool that loses a process gives up all that it was working on. So each process is a pool of its own, attended by a
    thread here, and a death concerns one point.
    """

    def __init__(self, number: int, *, timeout: float | None = None) -> None:
        """Each process starts with its first point, and is ended if that takes longer than `timeout` seconds."""
        self._timeout = timeout
        self._environment = _thread_limits(number)
        self._attendants = ThreadPoolExecutor(number, thread_name_prefix="eign-worker")
        self._pools = [self._new_pool() for _ in range(number)]
        self._idle: SimpleQueue[Any] = SimpleQueue()
        for pool in self._pools:
            self._idle.put(pool)
        self._is_killed = False
        self._lock = Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Start a call."""
        return self._attendants.submit(self._attend, fn, *args, **kwargs)

    def kill(self) -> None:
        """End the processes, and the programs that they have started, whatever they are doing."""
        with self._lock:
            self._is_killed = True
            for pool in self._pools:
                pool.shutdown(wait=False, kill_workers=True)
        self._attendants.shutdown(cancel_futures=True)

    def _attend(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        from loky.process_executor import BrokenProcessPool

        pool = self._idle.get()
        try:
            for _ in range(_ATTEMPTS):
                try:
                    if self._timeout is not None:
                        pool.submit(unpack, fn).result()  # a process that has just started is not the function's
                    return pool.submit(fn, *args, **kwargs).result(self._timeout)
                except TimeoutError:
                    pool = self._replaced(pool)
                    return Raised(TimeoutError(f"the evaluation took longer than {self._timeout:g} s and was ended"))
                except BrokenProcessPool as error:
                    death = str(error)
                pool = self._replaced(pool)
            raise LostWorkerError(f"{_ATTEMPTS} processes died of it: {death}")
        finally:
            self._idle.put(pool)

    def _replaced(self, pool: Any) -> Any:
        with self._lock:
            if self._is_killed:
                raise LostWorkerError("the run has ended")
            pool.shutdown(kill_workers=True)
            self._pools.remove(pool)
            self._pools.append(self._new_pool())
            return self._pools[-1]

    def _new_pool(self) -> Any:
        from loky import ProcessPoolExecutor

        return ProcessPoolExecutor(1, env=self._environment, initializer=live_with_parent, initargs=(os.getpid(),))


def live_with_parent(parent: int) -> None:
    """Of a new worker: leave Ctrl-C to the parent, and end with it, whatever ends it.

    Linux sends the signal itself, also while the function is in a solver and does not give the interpreter back.
    Elsewhere a thread looks whether the parent is still there.
    """
    # Ctrl-C in a terminal reaches every process: ours are ended by `kill`, without a traceback each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _IS_LINUX:
        # A worker is started by an attendant's thread, which lives as long as the executor does.
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        return
    Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT)
    os._exit(1)


def _thread_limits(number: int) -> dict[str, str]:
    """An equal share of the cores for the linear algebra of each process, unless the user has set a number."""
    from loky import cpu_count

    share = str(max(1, cpu_count() // number))
    return {name: share for name in _THREAD_VARIABLES if name not in os.environ}


def _is_dask_client(workers: Any) -> bool:
    distributed = sys.modules.get("distributed")  # whoever has a client has imported it
    return distributed is not None and isinstance(workers, distributed.Client)


def _dask_workers(client: Any, number: int | None) -> Workers:
    """One point a thread of the cluster. Dask itself tries again when a worker dies, see its `allowed-failures`."""
    from distributed import KilledWorker

    # Not pure: a point that is asked for twice, as may be with noise, is evaluated twice.
    executor = client.get_executor(pure=False)
    return Workers(executor, lambda: number or max(1, sum(client.nthreads().values())), death=KilledWorker)


def _declared_number(executor: Executor) -> int:
    """The executors of the standard library and loky tell it by the first attribute, that of mpi4py by the second."""
    number = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    if not isinstance(number, int):
        kind = type(executor).__name__
        raise ValueError(f"workers: a {kind} does not tell how many workers it has; pass workers=({kind}(...), 4)")
    return number


def _checked_number(number: Any) -> int:
    kinds = "a concurrent.futures.Executor or a dask.distributed.Client"
    expected = f"expected a number of processes, at least 1 or -1 for all cores, {kinds}"
    try:
        count = operator.index(number)
    except TypeError:
        raise TypeError(f"workers={number!r}, {expected}") from None
    if isinstance(number, bool) or not (count >= 1 or count == -1):
        raise ValueError(f"workers={number!r}, {expected}")
    return count if count > 0 else os.cpu_count() or 1


def _broken(error: BrokenExecutor) -> RuntimeError:
    advice = "workers=4 (a number of processes) replaces a process that dies"
    return RuntimeError(f"the executor given as workers broke: {error}; what was told is kept; {advice}")
