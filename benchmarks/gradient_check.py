"""Errors of the gradient check: false alarms on correct gradients, and wrong gradients that are not found within 5d.

    python benchmarks/gradient_check.py [--method sobol] [--seeds 20] [--problems branin-2,levy-6]

Every problem of eign is run for 5d evaluations with correct gradients and with seven errors in them; the coordinates
of an error are drawn by the seed. An alarm counts whatever it names.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Final

import numpy as np

from eign import problems
from eign.problems import Problem
from eign.study import GradientWarning, Optimizer

Error = Callable[[np.ndarray, int, int], np.ndarray]
LARGEST_DIM: Final = 14


def _times(factor: float) -> Error:
    return lambda grad, i, _: np.where(np.arange(len(grad)) == i, factor * grad, grad)


def _swap(grad: np.ndarray, i: int, j: int) -> np.ndarray:
    swapped = grad.copy()
    swapped[[i, j]] = grad[[j, i]]
    return swapped


ERRORS: Final[dict[str, Error]] = {
    "correct": lambda grad, _i, _j: grad,
    "sign of one": _times(-1.0),
    "sign of all": lambda grad, _i, _j: -grad,
    "one doubled": _times(2.0),
    "one halved": _times(0.5),
    "all doubled": lambda grad, _i, _j: 2.0 * grad,
    "all halved": lambda grad, _i, _j: 0.5 * grad,
    "two swapped": _swap,
}


def alarm(problem: Problem, error: str, *, method: str, seed: int) -> bool:
    """Whether a run of 5d evaluations warns."""
    rng = np.random.default_rng(seed)
    i = int(rng.integers(problem.dim))
    j = (i + 1 + int(rng.integers(max(1, problem.dim - 1)))) % problem.dim
    optimizer = Optimizer(problem.bounds, method=method, seed=seed, maximize=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GradientWarning)
        for _ in range(max(4, 5 * problem.dim)):
            x = optimizer.ask()
            value, gradient = problem(x)
            optimizer.tell(x, value, ERRORS[error](gradient, i, j))
            if any(issubclass(warning.category, GradientWarning) for warning in caught):
                return True
    return False


def main() -> None:
    """Print one row a problem: the share of runs with an alarm, for each error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="sobol")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--problems", default=",".join(problems.names()))
    arguments = parser.parse_args()
    print(f"{'alarms, of ' + str(arguments.seeds):22}" + "".join(f"{error:>13}" for error in ERRORS) + "   seconds")
    totals = dict.fromkeys(ERRORS, 0)
    names = [name for name in arguments.problems.split(",") if problems.get(name).dim <= LARGEST_DIM]
    for name in names:
        problem, begin = problems.get(name), time.perf_counter()
        row = ""
        for error in ERRORS:
            if error == "two swapped" and problem.dim == 1:
                row += f"{'-':>13}"
                continue
            alarms = sum(alarm(problem, error, method=arguments.method, seed=seed) for seed in range(arguments.seeds))
            totals[error] += alarms
            row += f"{alarms:>13}"
        print(f"{name:22}{row}{time.perf_counter() - begin:>10.1f}", flush=True)
    print(f"{'all':22}" + "".join(f"{total:>13}" for total in totals.values()))


if __name__ == "__main__":
    main()
