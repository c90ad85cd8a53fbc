"""A bar in the terminal: evaluations, how many are running and what for, best value, gradient norm and time left."""

from types import TracebackType
from typing import Self, final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from eign.study.handle import handle
from eign.study.optimizer import Optimizer


@final
class Progress:
    """Shows how a run goes, on stderr so that results can be piped."""

    def __init__(self, budget: int, *, maximize: bool, console: Console | None = None) -> None:
        """A bar of `budget` evaluations."""
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(
                "{task.fields[running]} running {task.fields[reason]}  "
                "best {task.fields[best]}  |gradient| {task.fields[slope]}"
            ),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
        )
        description = "maximizing" if maximize else "minimizing"
        self._task = self._bar.add_task(description, total=budget, running=0, reason="", best="-", slope="-")

    def update(self, optimizer: Optimizer, *, running: int = 0) -> None:
        """Show what is known now, and how many evaluations are under way."""
        history = optimizer.history
        best, slope = "-", "-"
        if history.has_y.any():
            point = optimizer.best
            best = f"{point.y:.6g}"
            known = point.grad[np.isfinite(point.grad)]
            slope = f"{np.linalg.norm(known):.2g}" if len(known) else "-"
        purposes = handle(optimizer).pending.reasons or optimizer.reasons
        reason = f"({purposes[-1]})" if purposes else ""
        self._bar.update(self._task, completed=len(history), running=running, reason=reason, best=best, slope=slope)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
