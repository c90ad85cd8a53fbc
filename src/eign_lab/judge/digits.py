"""Once it is in the right basin of a smooth function, how many evaluations does `auto` need for nine digits?

    python -m eign_lab.judge.digits [--problems rosenbrock-6 ...]

The bar: no more than L-BFGS-B from the same point, by the median over the judge's smooth problems. A run begins 0.05
of the unit cube away from the optimum, in a random direction, where a descent leads to it, and ends at a regret of 1e-9
of the scale. The start is the first evaluation of both, each a value with its gradient. Who does not get there counts
as 200 evaluations, the most there are. Each pair of runs is a line of results/digits.jsonl, written when it ends, so
that the command can be stopped and called again.
"""

import argparse
import json
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

import numpy as np
from scipy.optimize import minimize

from eign import Optimizer
from eign.arrays import Array
from eign_lab.judge.bbob.suite import INSTANCES, TASKS, Task, pose_bbob
from eign_lab.judge.cases import CASES, CONVERGED, Case
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.rivals import CountedProblem, Finished
from eign_lab.runs.tasks import one_thread

RESULTS: Final = Path("results/digits.jsonl")
SEEDS: Final = range(100, 105)
DISTANCE: Final = 0.05
"""Of the start from the optimum, in the unit cube."""
DIGITS: Final = 1e-9
"""Share of the scale at which a run ends."""
LIMIT: Final = 200
_EDGED: Final = ("ackley", "sharp-ridge")
"""Functions that are not smooth at the optimum, or only within a thousandth of the box."""
_BBOB: Final = (1, 2, 8, 9, 10, 11, 12, 14)


class Pair(TypedDict):
    """Evaluations that both took from one start; None is more than there are, or that it ended before.

    `local` are those of `auto` that its local search had.
    """

    problem: str
    seed: int
    auto: int | None
    local: int
    l_bfgs_b: int | None


def smooth_cases() -> list[str]:
    """The judge's problems without noise, with whole gradients and a maximum that is smooth and stated."""
    return [
        name
        for name, case in CASES.items()
        if not name.startswith(_EDGED)
        and case.disturbed is None
        and case.best_known is None
        and case.problem.optimizers is not None
    ]


def case_of(name: str, seed: int) -> Case:
    """The problem of a seed; on BBOB the seeds are tuning instances."""
    if name in CASES:
        return CASES[name]
    task, instance = TASKS[name], INSTANCES["tuning"][seed - SEEDS[0]]
    return Case(name, task.group, LIMIT, partial(pose_bbob, name, instance))


def start_near(case: Case, seed: int) -> Array:
    """A point of the optimum's basin in the unit cube: the first of random ones from which a descent leads there.

    In a corner of the cube, where points are clipped, not the optimum itself.
    """
    assert case.problem.optimizers is not None
    rng, top = np.random.default_rng(seed), case.problem.bounds.to_unit(case.problem.optimizers[0])
    while True:
        direction = rng.standard_normal(case.dim)
        u = np.clip(top + DISTANCE * direction / np.linalg.norm(direction), 0.0, 1.0)
        regrets = descent(case, u)
        if len(regrets) > 1 and min(regrets) < CONVERGED * case.scale:
            return np.asarray(u)


def descent(case: Case, u: Array) -> list[float]:
    """Regrets of L-BFGS-B from a point of the cube, with no tolerance, one for each evaluation."""
    regrets: list[float] = []

    def record(_: Array, value: float, __: float) -> bool:
        regrets.append(case.optimum - value)
        return regrets[-1] <= DIGITS * case.scale or len(regrets) >= LIMIT

    counted = CountedProblem(case.problem, record, seed=0, budget=LIMIT)

    def negated(u: Array) -> tuple[float, Array]:
        value, gradient = counted.in_cube(u)
        return -value, -gradient

    bounds = [(0.0, 1.0)] * case.dim
    with suppress(Finished):
        minimize(negated, u, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 0.0, "gtol": 0.0})
    return regrets


def study(case: Case, u: Array, seed: int) -> tuple[list[float], Sequence[str]]:
    """The same of `auto`, which is told the point; and why it took each."""
    problem, regrets = case.problem, list[float]()
    optimizer = Optimizer(problem.bounds, method="auto", seed=seed, maximize=True, check_gradients=False)
    x = problem.bounds.from_unit(u)
    while True:
        value, gradient = problem(x)
        regrets.append(case.optimum - value)
        optimizer.tell(x, value, gradient)
        if regrets[-1] <= DIGITS * case.scale or len(regrets) >= LIMIT:
            return regrets, optimizer.reasons
        x = optimizer.ask()


def run(name: str, seed: int) -> Pair:
    """Both from one start."""
    case = case_of(name, seed)
    u = start_near(case, seed)
    regrets, reasons = study(case, u, seed)
    auto, l_bfgs_b = _taken(case, regrets), _taken(case, descent(case, u))
    return Pair(problem=name, seed=seed, auto=auto, local=reasons.count("local"), l_bfgs_b=l_bfgs_b)


def _taken(case: Case, regrets: Sequence[float]) -> int | None:
    return len(regrets) if regrets[-1] <= DIGITS * case.scale else None


def read(file: Path) -> list[Pair]:
    """The runs of earlier calls."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_missing(file: Path, names: Iterable[str]) -> None:
    """All pairs that the file does not have."""
    known = {(pair["problem"], pair["seed"]) for pair in read(file)}
    for name in names:
        for seed in SEEDS:
            if (name, seed) not in known:
                pair = run(name, seed)
                with file.open("a") as lines:
                    lines.write(json.dumps(pair) + "\n")
                print(json.dumps(pair), flush=True)


def digits_table(pairs: Sequence[Pair]) -> Table:
    """A row for each problem, and the medians over them."""
    rows, ratios = [], []
    for name in dict.fromkeys(pair["problem"] for pair in pairs):
        mine = [pair for pair in pairs if pair["problem"] == name]
        ours, theirs = (np.array([pair[who] or LIMIT for pair in mine]) for who in ("auto", "l_bfgs_b"))
        ratios.append(float(np.median(ours / theirs)))
        arrived = (f"{sum(pair[who] is not None for pair in mine)}/{len(mine)}" for who in ("auto", "l_bfgs_b"))
        local = f"{np.median([pair['local'] for pair in mine]):g}"
        rows.append((name, f"{np.median(ours):g}", local, f"{np.median(theirs):g}", f"{ratios[-1]:.2f}", *arrived))
    note = f"Median of the ratio over {len(ratios)} problems: {np.median(ratios):.2f}, asked at most 1; "
    below, above = sum(ratio < 1.0 for ratio in ratios), sum(ratio > 1.0 for ratio in ratios)
    note += f"below 1 on {below}, above on {above}."
    heads = ("problem", "`auto`", "local", "L-BFGS-B", "ratio", "`auto` arrives", "L-BFGS-B arrives")
    return Table("Evaluations to nine digits", heads, tuple(rows), note)


def main() -> None:
    """Run what is missing, and print the table."""
    names = [*smooth_cases(), *(Task(function, 5).name for function in _BBOB)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=names, default=names)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run_missing(arguments.results, arguments.problems)
    table = digits_table(read(arguments.results))
    print(f"{as_markdown_table(table)}\n\n{table.note}")


if __name__ == "__main__":
    main()
