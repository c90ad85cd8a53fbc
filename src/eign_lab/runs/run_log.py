"""How far a run has come, as plain data: what goes to a worker, comes back from it and is stored."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, final

import numpy as np

from eign.arrays import Array


@final
@dataclass(slots=True)
class Trace:
    """The improvements of a run: all that a comparison of methods needs of it.

    An evaluation is an improvement if its observed value is larger than all before. `best` is the value without noise
    at that point, so with noise it may fall.

    Attributes:
        evaluations: In all.
        improved_at: Numbers of the evaluations that were improvements `k`, from 1 on.
        best: Values there, without noise `k`.
        observed: Values there as the method saw them `k`; NaN where they are not known.
    """

    evaluations: int = 0
    improved_at: list[int] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    observed: list[float] = field(default_factory=list)

    def add(self, value: float, best: float) -> None:
        """One more evaluation, with what was observed; `best` is the same without noise."""
        self.evaluations += 1
        if np.isfinite(value) and (not self.observed or value > self.observed[-1]):
            self.improved_at.append(self.evaluations)
            self.best.append(best)
            self.observed.append(value)

    @property
    def last(self) -> float:
        """The best value so far; NaN if there is none."""
        return self.best[-1] if self.best else np.nan

    def first(self, count: int) -> "Trace":
        """The trace as it was after `count` evaluations, or all of it."""
        kept = int(np.searchsorted(self.improved_at, count, side="right"))
        parts = (self.improved_at[:kept], self.best[:kept], self.observed[:kept])
        return Trace(min(count, self.evaluations), *parts)

    def curve(self, count: int) -> Array:
        """The best value after each of `count` evaluations, which stays as it is after the last; NaN before the first.

        >>> Trace(4, [2, 3], [1.0, 5.0], [1.0, 5.0]).curve(5)
        array([nan,  1.,  5.,  5.,  5.])
        """
        steps = np.searchsorted(self.improved_at, np.arange(1, count + 1), side="right")
        return np.asarray(np.array([np.nan, *self.best])[steps])


class Goal(NamedTuple):
    """When a run is finished. No method looks at it: a run with less is the beginning of one with more.

    Attributes:
        budget: Evaluations in all.
        target: A best value at which it ends earlier; None is never.
    """

    budget: int
    target: float | None = None

    def is_reached(self, evaluations: int, best: float) -> bool:
        """Whether a run that has come so far is finished."""
        return evaluations >= self.budget or (self.target is not None and best >= self.target)


class Timing(NamedTuple):
    """Seconds spent on proposals, those of the initial design left out; NaN if nothing was measured."""

    total: float
    median: float
    longest: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Timing":
        """Of the proposals of a run, NaN where there was none."""
        spent = [value for value in seconds if not np.isnan(value)]
        return cls(sum(spent), float(np.median(spent)), max(spent)) if spent else cls(np.nan, np.nan, np.nan)


@final
@dataclass(slots=True)
class RunLog:
    """A run as far as it has come, with all that it takes to go on.

    Attributes:
        trace: Its improvements.
        seconds: Between the answer before and the proposal of each point; NaN for points of the initial design.
        study: `eign.study.handle.snapshot` of the optimizer; None before the first point, and for other programs.
        error: What stopped the run, if something did.
    """

    trace: Trace = field(default_factory=Trace)
    seconds: list[float] = field(default_factory=list)
    study: dict[str, Any] | None = None
    error: str | None = None

    def __len__(self) -> int:
        return self.trace.evaluations

    def copy(self) -> "RunLog":
        """The same, to be changed."""
        return RunLog(deepcopy(self.trace), list(self.seconds), self.study, self.error)

    def to_json(self) -> dict[str, Any]:
        """What `RunRecord` does not have: plain data for `from_json`."""
        return {"seconds": [None if np.isnan(value) else value for value in self.seconds], "study": self.study}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], trace: Trace, error: str | None) -> Self:
        """The log whose other half `to_json` described."""
        seconds = [np.nan if value is None else value for value in stored["seconds"]]
        return cls(trace, seconds, stored["study"], error)
