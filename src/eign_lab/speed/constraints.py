"""What constraints cost: seconds of a suggestion of `auto` with m of them, told to have been evaluated often before.

Objective and constraints are waves on a bowl with gradients; each constraint leaves about half of the box. The first
suggestion chooses all models and is left out; those after it are as in a run that goes on, refits among them.
"""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple, final

import numpy as np
from rich.console import Console
from rich.table import Table

from eign.arrays import Array
from eign.constraints import Limits
from eign.data import Observations
from eign.study.optimizer import Optimizer
from eign_lab.runs.tasks import one_thread

COUNTS: Final = (0, 1, 2, 5, 10)
"""Constraints."""
DIM: Final = 10
TOLD: Final = 100


class SuggestionCosts(NamedTuple):
    """Seconds of consecutive suggestions with m constraints."""

    constraints: int
    seconds: Sequence[float]

    @property
    def median(self) -> float:
        """Of the suggestions."""
        return float(np.median(self.seconds))


@final
class _Outputs:
    """An objective and m constraints on the unit cube, each a bowl around a point of its own with a wave on it."""

    def __init__(self, count: int, dim: int) -> None:
        rng = np.random.default_rng([count, dim, 24])
        self._centers = rng.random((count + 1, dim))
        self._normals = rng.normal(size=(count + 1, dim)) / np.sqrt(dim)
        points = rng.random((256, dim))
        values = np.array([[self._at(x, k)[0] for k in range(1, count + 1)] for x in points]).reshape(256, count)
        limits = np.median(values, axis=0)
        self.limits = Limits([f"c{j}" for j in range(count)], [-np.inf] * count, limits) if count else None

    def __call__(self, x: Array) -> Observations:
        outputs = [self._at(x, k) for k in range(len(self._centers))]
        first, *others = (Observations(x[None], [value], [slope]) for value, slope in outputs)
        return first.with_constraints(others) if others else first

    def _at(self, x: Array, k: int) -> tuple[float, Array]:
        away, normal = x - self._centers[k], self._normals[k]
        phase = 6.0 * normal @ x
        return float(away @ away + 0.3 * np.sin(phase)), 2.0 * away + 1.8 * np.cos(phase) * normal


def measure_constraints(count: int, *, dim: int = DIM, told: int = TOLD, steps: int = 10) -> SuggestionCosts:
    """Consecutive suggestions of `auto` after `told` evaluations at random points, with one thread."""
    outputs = _Outputs(count, dim)
    bounds = [(0.0, 1.0)] * dim
    optimizer = Optimizer(bounds, seed=0, constraints=outputs.limits, check_gradients=False)
    for x in np.random.default_rng(24).random((told, dim)):
        optimizer.tell(outputs(x))
    seconds = []
    with one_thread():
        for _ in range(steps + 1):
            started = time.perf_counter()
            x = optimizer.ask()
            seconds.append(time.perf_counter() - started)
            optimizer.tell(outputs(x))
    return SuggestionCosts(count, seconds[1:])


def report_constraints(
    console: Console, *, counts: Sequence[int] = COUNTS, dim: int = DIM, told: int = TOLD, steps: int = 10
) -> list[SuggestionCosts]:
    """Measure and print a line for each number of constraints; ratios are to the first line."""
    title = f"A suggestion of auto in {dim} dimensions after {told} evaluations, one thread"
    table = Table("constraints", "median ms", "longest ms", "times the first line", title=title)
    rows: list[SuggestionCosts] = []
    for count in counts:
        row = measure_constraints(count, dim=dim, told=told, steps=steps)
        rows.append(row)
        ratio = row.median / rows[0].median
        table.add_row(str(count), f"{1000 * row.median:.0f}", f"{1000 * max(row.seconds):.0f}", f"{ratio:.1f}")
    console.print(table)
    return rows
