"""How far a run has come, as plain data: what goes to a worker and comes back from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from eign.arrays import Array, as_floats
from eign.data import Observations
from eign.strategies import State


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """The evaluations of a run and the state of its method after them.

    Attributes:
        observations: In user units, in the order of evaluation.
        state: What the method carries to its next proposal; None before the first.
        seconds: Spent on proposing each point `n`; NaN for points of the initial design.
        stationarity: Norm of the projected gradient in the unit cube `n`; NaN where there is none.
        error: What stopped the run, if something did.
    """

    observations: Observations
    state: State | None
    seconds: Array
    stationarity: Array
    error: str | None = None

    @classmethod
    def empty(cls, dim: int) -> "RunLog":
        """A run that has not begun, of points with `dim` coordinates."""
        return cls(Observations.empty(dim), None, np.empty(0), np.empty(0))

    def __len__(self) -> int:
        return len(self.observations)

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal log."""
        return {
            "observations": self.observations.to_json(),
            "state": None if self.state is None else self.state.to_json(),
            "seconds": _with_none(self.seconds),
            "stationarity": _with_none(self.stationarity),
            "error": self.error,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RunLog":
        """The log that `to_json` described."""
        state = stored["state"]
        return cls(
            Observations.from_json(stored["observations"]),
            None if state is None else State.from_json(state),
            as_floats(stored["seconds"], "seconds"),
            as_floats(stored["stationarity"], "stationarity"),
            stored["error"],
        )


def _with_none(values: Array) -> list[float | None]:
    """JSON has no NaN."""
    return [None if np.isnan(value) else value for value in values.tolist()]
