"""A hard function, the default method and its rivals, in the terminal and as a figure."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from eign.arrays import Array
from eign.problems import Problem, get
from eign.study import Optimizer

PROBLEM: Final = "shekel-4"
# The budget of the paper, and the first ten seeds: none was chosen for its result.
BUDGET: Final = 125
SEEDS: Final = tuple(range(10))
# The slowest first, so that both processes are busy to the end; whether it uses the gradients.
METHODS: Final = {"auto": True, "ei-gn": True, "log-ei": False, "l-bfgs": True, "cma-es": False}
FIGURE: Final = "eign-demo.png"
# Regret of one per cent of the optimum: within the basin of the best of Shekel's ten peaks.
FOUND: Final = 0.01
_PROCESSES: Final = 2


@dataclass(frozen=True, slots=True)
class DemoRun:
    """One run: the best value after each evaluation, and the seconds spent on proposals."""

    method: str
    seed: int
    best: Array
    seconds: float


def show_demo(figure: Path = Path(FIGURE)) -> None:
    """Run every method on the same seeds, print a table and write the figure."""
    problem = get(PROBLEM)
    console = Console(highlight=False)
    console.print(
        f"\n[bold]{problem.name}[/bold]: {problem.summary}\n"
        f"{BUDGET} evaluations of value and gradient, {len(SEEDS)} seeds; the optimum is {problem.optimum:.3f}.\n"
        "log-ei and cma-es are the rivals that see no gradients.\n"
    )
    runs = _run_all(console)
    console.print(_table(problem, runs))
    try:
        _draw(problem, runs, figure)
        console.print(f"\nThe curves: [bold]{figure}[/bold]")
    except ImportError:
        console.print("\nFor a picture of it: pip install matplotlib")
    console.print("For your own function: eign.minimize, see README.md\n")


def _run_all(console: Console) -> dict[str, list[DemoRun]]:
    """All runs, several at once, each in the order of the seeds."""
    total = len(METHODS) * len(SEEDS)
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TextColumn("runs"))
    runs: dict[str, list[DemoRun]] = {method: [] for method in METHODS}
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(f"{'starting':<24}", total=total)
        for run in _finished_runs():
            runs[run.method].append(run)
            best = f"{run.method}, seed {run.seed}: {run.best[-1]:.2f}"
            progress.update(task, advance=1, description=f"{best:<24}")
    return {method: sorted(found, key=lambda run: run.seed) for method, found in runs.items()}


def _finished_runs() -> Iterator[DemoRun]:
    """Runs as they finish, in processes of their own: each of them uses one core."""
    count = min(_PROCESSES, os.cpu_count() or 1)
    # A forked process would inherit torch's threads in whatever state they are.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        futures: list[Future[DemoRun]] = [
            pool.submit(run_once, PROBLEM, method, seed, BUDGET) for method in METHODS for seed in SEEDS
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run_once(problem: str, method: str, seed: int, budget: int) -> DemoRun:
    """One method, one seed: ask, evaluate, tell."""
    function = get(problem)
    optimizer = Optimizer(function.bounds, method=method, seed=seed, maximize=True, check_gradients=False)
    values, seconds = [], 0.0
    for _ in range(budget):
        start = time.perf_counter()
        x = optimizer.ask()
        seconds += time.perf_counter() - start
        value, gradient = function(x)
        optimizer.tell(x, value, gradient)
        values.append(value)
    return DemoRun(method, seed, np.maximum.accumulate(values), seconds)


def _table(problem: Problem, runs: dict[str, list[DemoRun]]) -> Table:
    assert problem.optimum is not None
    third = max(1, BUDGET // 3)
    table = Table()
    table.add_column("method")
    for heading in ("gradients", f"best at {third}", f"best at {BUDGET}", "optimum found", "a suggestion"):
        table.add_column(heading, justify="right")
    for name, of_method in runs.items():
        best = np.stack([run.best for run in of_method])
        error = best.std(axis=0, ddof=1) / np.sqrt(len(best))
        found = int(np.sum(best[:, -1] >= problem.optimum - FOUND * abs(problem.optimum)))
        milliseconds = 1e3 * np.median([run.seconds for run in of_method]) / BUDGET
        table.add_row(
            name,
            "yes" if METHODS[name] else "no",
            *(f"{best[:, k - 1].mean():.2f} ± {error[k - 1]:.2f}" for k in (third, BUDGET)),
            f"{found} of {len(best)}",
            f"{milliseconds:.0f} ms",
        )
    return table


def _draw(problem: Problem, runs: dict[str, list[DemoRun]], figure: Path) -> None:
    from matplotlib.figure import Figure

    from eign.plot import compare

    curves = {
        name if METHODS[name] else f"{name} (no gradients)": np.stack([run.best for run in of_method])
        for name, of_method in runs.items()
    }
    drawing = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = drawing.subplots()
    compare(curves, maximize=True, optimum=problem.optimum, axes=axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)  # the curves fill the axes
    axes.set_title(f"{problem.name}: mean and standard error of {len(SEEDS)} seeds", loc="left", fontsize=10)
    drawing.savefig(figure, dpi=150)
