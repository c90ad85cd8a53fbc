"""A hard function, the default method and its rivals, in the terminal and as a figure."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from eign.arrays import Array
from eign.problems import Problem, get
from eign.study import Optimizer

PROBLEM = "shekel-4"
BUDGET = 60
SEEDS = (0, 1, 2)
METHODS = ("auto", "ei-gn", "log-ei", "l-bfgs", "cma-es")
FIGURE = "eign-demo.png"
# Regret of one per cent of the optimum: within the basin of the best of Shekel's ten peaks.
FOUND = 0.01


@dataclass(frozen=True)
class DemoRun:
    """One run: the best value after each evaluation, and the seconds spent on proposals."""

    best: Array
    seconds: float


def show_demo(figure: Path = Path(FIGURE)) -> None:
    """Run every method on the same seeds, print a table and write the figure."""
    problem = get(PROBLEM)
    console = Console(highlight=False)
    console.print(
        f"\n[bold]{problem.name}[/bold]: {problem.summary}\n"
        f"{BUDGET} evaluations of value and gradient, {len(SEEDS)} seeds; the optimum is {problem.optimum:.3f}.\n"
    )
    runs = _run_all(problem, console)
    console.print(_table(problem, runs))
    _draw(problem, runs, figure)
    console.print(f"\nThe curves: [bold]{figure}[/bold]. For your own function: eign.minimize, see README.md\n")


def _run_all(problem: Problem, console: Console) -> dict[str, list[DemoRun]]:
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
    )
    runs: dict[str, list[DemoRun]] = {}
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        tasks = {name: progress.add_task(name, total=BUDGET * len(SEEDS), best="") for name in METHODS}
        for name, task in tasks.items():
            runs[name] = []
            for seed in SEEDS:
                report = partial(_advance, progress, task)
                runs[name].append(_run(problem, name, seed, report))
    return runs


def _advance(progress: Progress, task: TaskID, best: float) -> None:
    progress.update(task, advance=1, best=f"best {best:.3f}")


def _run(problem: Problem, method: str, seed: int, report: Callable[[float], object]) -> DemoRun:
    optimizer = Optimizer(problem.bounds, method=method, seed=seed, maximize=True, check_gradients=False)
    values, seconds = [], 0.0
    for _ in range(BUDGET):
        start = time.perf_counter()
        x = optimizer.ask()
        seconds += time.perf_counter() - start
        value, gradient = problem(x)
        optimizer.tell(x, value, gradient)
        values.append(value)
        report(max(values))
    return DemoRun(np.maximum.accumulate(values), seconds)


def _table(problem: Problem, runs: dict[str, list[DemoRun]]) -> Table:
    assert problem.optimum is not None
    third = BUDGET // 3
    table = Table()
    table.add_column("method")
    for heading in (f"best at {third}", f"best at {BUDGET}", "optimum found", "per suggestion"):
        table.add_column(heading, justify="right")
    for name, of_method in runs.items():
        best = np.stack([run.best for run in of_method])
        error = best.std(axis=0, ddof=1) / np.sqrt(len(best))
        found = int(np.sum(best[:, -1] >= problem.optimum - FOUND * abs(problem.optimum)))
        milliseconds = 1e3 * np.median([run.seconds for run in of_method]) / BUDGET
        table.add_row(
            name,
            *(f"{best[:, k].mean():.2f} ± {error[k]:.2f}" for k in (third - 1, BUDGET - 1)),
            f"{found} of {len(best)}",
            f"{milliseconds:.0f} ms",
        )
    return table


def _draw(problem: Problem, runs: dict[str, list[DemoRun]], figure: Path) -> None:
    import matplotlib.pyplot as plt

    from eign.plot import compare

    curves = {name: np.stack([run.best for run in of_method]) for name, of_method in runs.items()}
    drawing, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    compare(curves, maximize=True, optimum=problem.optimum, axes=axes)
    axes.set_title(f"{problem.name}: mean and standard error of {len(SEEDS)} seeds", loc="left", fontsize=10)
    drawing.savefig(figure, dpi=150)
    plt.close(drawing)
