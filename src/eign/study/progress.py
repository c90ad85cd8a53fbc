"""A bar in the terminal: evaluations, how many are running and what for, best value, gradient norm and time left."""

import math
from collections.abc import Sequence
from types import TracebackType
from typing import Self, final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from eign.study.handle import handle
from eign.study.optimizer import Optimizer

# Columns of the bar itself, of the time left and of the gaps.
_BAR, _TIME, _GAPS = 10, 7, 4


@final
class Progress:
    """Shows how a run goes, on stderr so that results can be piped.

    What matters most comes first, and what does not fit into the terminal is left out rather than cut.
    """

    def __init__(self, budget: int, *, maximize: bool, console: Console | None = None) -> None:
        """A bar of `budget` evaluations."""
        self._console = console or Console(stderr=True)
        self._room = self._console.width - _BAR - 2 * len(str(budget)) - 1 - _TIME - _GAPS
        self._bar = Bar(
            BarColumn(_BAR),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task("maximizing" if maximize else "minimizing", total=budget)

    def update(self, optimizer: Optimizer, *, running: int = 0) -> None:
        """Show what is known now, and how many evaluations are under way."""
        history = optimizer.history
        parts = []
        if history.has_y.any():
            point = optimizer.best
            parts.append(f"best {point.y:.6g}")
            if not point.is_feasible:
                is_known = math.isfinite(point.violation)
                parts.append(f"violation {point.violation:.2g}" if is_known else "a constraint is missing")
            known = point.grad[np.isfinite(point.grad)]
            if len(known):
                parts.append(f"|gradient| {math.hypot(*known.tolist()):.2g}")
        if running:
            parts.append(f"{running} running")
        if purposes := handle(optimizer).pending.reasons or optimizer.reasons:
            parts.append(f"({purposes[-1]})")
        self._bar.update(self._task, completed=len(history), description=_fitting(parts, self._room))

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


def _fitting(parts: Sequence[str], room: int) -> str:
    """As many of the parts as there is room for; the first in any case."""
    text = parts[0] if parts else ""
    for part in parts[1:]:
        if len(text) + 2 + len(part) > room:
            break
        text += f"  {part}"
    return text
