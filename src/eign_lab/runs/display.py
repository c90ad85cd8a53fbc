"""How a campaign goes, in the terminal: a line for each run in progress and an overall bar, or one line a finished run.

The second is for where there is no terminal: a log file, a batch job.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from eign_lab.runs.plan import Clock, PlannedRun
from eign_lab.runs.run_log import RunLog


@contextmanager
def shown_progress(runs: int, console: Console | None = None) -> Iterator["Display"]:
    """The display that suits the console, while the block runs."""
    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield PlainLines(runs, console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn())
    note = TextColumn("{task.fields[note]}")
    with Progress(*columns, note, TimeElapsedColumn(), console=console) as progress:
        yield Bars(runs, progress)


@final
class PlainLines:
    """One line for each run that ends."""

    def __init__(self, runs: int, console: Console) -> None:
        """Of so many runs to do."""
        self._runs, self._ended, self._console = runs, 0, console

    def begin(self, planned: PlannedRun, evaluations: int) -> None:
        """Nothing yet."""

    def advance(self, planned: PlannedRun, log: RunLog, clock: Clock, workers: int) -> None:
        """Nothing yet."""

    def end(self, planned: PlannedRun, log: RunLog, clock: Clock, workers: int) -> None:
        """The line."""
        self._ended += 1
        count = f"[{self._ended}/{self._runs}]"
        line = f"{count} {planned.title}: {outcome(log)}; {left_in_words(clock.left(workers))}"
        self._console.print(line, markup=False, soft_wrap=True)


@final
class Bars:
    """A line for each run in progress, and a bar for all of them."""

    def __init__(self, runs: int, progress: Progress) -> None:
        """Of so many runs to do."""
        self._runs, self._ended, self._progress = runs, 0, progress
        self._overall = progress.add_task(f"0 of {runs} runs", total=1.0, note="")
        self._lines: dict[str, TaskID] = {}

    def begin(self, planned: PlannedRun, evaluations: int) -> None:
        """A new line."""
        line = self._progress.add_task(planned.title, total=planned.goal.budget, completed=evaluations, note="")
        self._lines[planned.run.key] = line

    def advance(self, planned: PlannedRun, log: RunLog, clock: Clock, workers: int) -> None:
        """The line grows."""
        note = f"{len(log)} of {planned.goal.budget} evaluations, best {log.trace.last:.6g}"
        self._progress.update(self._lines[planned.run.key], completed=len(log), note=note)
        self._show_overall(clock, workers)

    def end(self, planned: PlannedRun, log: RunLog, clock: Clock, workers: int) -> None:
        """The line goes; an error stays."""
        self._ended += 1
        self._progress.remove_task(self._lines.pop(planned.run.key))
        if log.error is not None:
            self._progress.console.print(f"{planned.title}: {outcome(log)}", markup=False)
        self._show_overall(clock, workers)

    def _show_overall(self, clock: Clock, workers: int) -> None:
        done, note = f"{self._ended} of {self._runs} runs", left_in_words(clock.left(workers))
        self._progress.update(self._overall, description=done, completed=clock.share, note=note)


Display = PlainLines | Bars
"""Shows how a campaign goes: runs that begin or go on, tasks that come back, and runs that end."""


def outcome(log: RunLog) -> str:
    """What a run came to, in a few words."""
    if log.error is not None:
        return f"failed after {len(log)} evaluations: {log.error}"
    seconds = np.nansum(log.seconds)
    return f"best {log.trace.last:.6g} after {len(log)} evaluations, {seconds:.1f} s of proposals"


def left_in_words(seconds: float | None) -> str:
    """The time left as people say it.

    >>> [left_in_words(seconds) for seconds in (None, 50.0, 600.0, 7800.0)]
    ['', 'less than a minute left', 'about 10 min left', 'about 2 h 10 min left']
    """
    if seconds is None:
        return ""
    if seconds < 60.0:
        return "less than a minute left"
    hours, minutes = divmod(round(seconds / 60.0), 60)
    return f"about {hours} h {minutes} min left" if hours else f"about {minutes} min left"
