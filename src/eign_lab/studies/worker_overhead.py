"""How busy are eight workers whose evaluation times vary tenfold? Threads that sleep stand for them.

    python -m eign_lab.studies.worker_overhead [--method auto] [--seconds 2] [--budget 96]

Evaluations take between `seconds` and ten times as long, log-uniformly. Idle time has two reasons: a worker waits for
its next point to be computed, and at the end there are no more points to hand out. Both shares are printed, and what
the same durations would give in batches of eight, where everybody waits for the slowest.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import final

import numpy as np

import eign

WORKERS = 8


@final
class Sleeper:
    """A problem that takes its time, and notes when each evaluation began and ended."""

    def __init__(self, problem: eign.problems.Problem, shortest: float, count: int) -> None:
        self.durations = shortest * 10.0 ** np.random.default_rng(0).uniform(size=count)
        self.spans: list[tuple[float, float]] = []
        self._problem, self._lock, self._next = problem, Lock(), iter(self.durations)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, later."""
        begin = time.perf_counter()
        with self._lock:
            duration = next(self._next)
        time.sleep(duration)
        answer = self._problem(x)
        self.spans.append((begin, time.perf_counter()))
        return answer


def busy_share(spans: np.ndarray, end: float) -> float:
    """Share of the workers' time, from the first beginning to `end`, in which they evaluate."""
    begin = spans[:, 0].min()
    worked = np.minimum(spans[:, 1], end) - np.minimum(spans[:, 0], end)
    return float(worked.sum() / (WORKERS * (end - begin)))


def main() -> None:
    """Run, and print how busy the workers were."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--problem", default="hartmann-6")
    parser.add_argument("--seconds", type=float, default=2.0, help="the shortest evaluation")
    parser.add_argument("--budget", type=int, default=96)
    arguments = parser.parse_args()
    problem = eign.problems.get(arguments.problem)
    sleeper = Sleeper(problem, arguments.seconds, arguments.budget)
    with ThreadPoolExecutor(WORKERS) as threads:
        result = eign.maximize(
            sleeper, problem.bounds, method=arguments.method, budget=arguments.budget, seed=0, workers=threads
        )
    spans = np.array(sleeper.spans)
    batches = sleeper.durations.reshape(-1, WORKERS)
    low, high = sleeper.durations.min(), sleeper.durations.max()
    in_batches = batches.sum() / (WORKERS * batches.max(axis=1).sum())
    print(
        f"{problem.name}, {arguments.method}: {result.nfev} evaluations of {low:.1f} to {high:.1f} s, {WORKERS} workers"
    )
    print(f"busy while there are points to hand out: {100 * busy_share(spans, spans[:, 0].max()):.1f} per cent")
    print(f"busy to the end of the last evaluation:  {100 * busy_share(spans, spans[:, 1].max()):.1f} per cent")
    print(f"in batches of {WORKERS} it would be at most:     {100 * in_batches:.1f} per cent")


if __name__ == "__main__":
    main()
