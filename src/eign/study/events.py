"""The log of a study: what was asked, told and taken back, in user units and in the user's sign.

The log and the method's state after each event are all there is to a study: data, pending points and the best point
follow from it. Events are plain data both ways, so that a file can hold them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from eign.arrays import Array, as_floats, read_only
from eign.data import Observations


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """Points were handed out.

    Attributes:
        x: The points `n x d`, read-only.
        reasons: Why each was proposed, in one word.
        expected_improvements: What the method expects of each, in the units of y; None where it does not know.
    """

    x: Array
    reasons: tuple[str, ...]
    expected_improvements: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", read_only(as_floats(self.x, "x")))
        object.__setattr__(self, "reasons", tuple(self.reasons))
        object.__setattr__(self, "expected_improvements", tuple(self.expected_improvements))
        if len(self.reasons) != len(self.x):
            raise ValueError(f"expected a reason for each of {len(self.x)} points, got {self.reasons}")

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `event_from_json` builds an equal event."""
        gains = list(self.expected_improvements)
        return {"event": "ask", "x": self.x.tolist(), "reasons": list(self.reasons), "expected_improvements": gains}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ask) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # arrays make a poor key


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tell:
    """Evaluations came in.

    Attributes:
        observations: What was observed, as the user gave it.
    """

    observations: Observations

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `event_from_json` builds an equal event."""
        return {"event": "tell", "observations": self.observations.to_json()}

    def as_arguments(self) -> str:
        """What was told, to the last digit, as arguments of `Optimizer.tell`."""
        told = self.observations
        text = f"x={told.x.tolist()}, y={told.y.tolist()}, grad={told.grad.tolist()}"
        if not (np.isnan(told.y_var).all() and np.isnan(told.grad_var).all()):
            text += f", y_var={told.y_var.tolist()}, grad_var={told.grad_var.tolist()}"
        if not told.constraints:
            return text
        parts = {"constraints": "y", "constraint_grads": "grad", "constraint_vars": "y_var"}
        parts["constraint_grad_vars"] = "grad_var"
        arrays = {name: np.stack([getattr(each, part) for each in told.constraints], 1) for name, part in parts.items()}
        known = [f"{name}={array.tolist()}" for name, array in arrays.items() if not np.isnan(array).all()]
        return ", ".join([text, *known])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tell) and self.observations == other.observations

    __hash__ = None  # type: ignore[assignment]  # arrays make a poor key


@final
@dataclass(frozen=True, slots=True, eq=False)
class Retract:
    """What was told at a point is taken back: it stays in the log, and nothing is learned from it any more.

    Attributes:
        x: The point `d`, read-only.
    """

    x: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", read_only(as_floats(self.x, "x")))

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `event_from_json` builds an equal event."""
        return {"event": "retract", "x": self.x.tolist()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Retract) and np.array_equal(self.x, other.x)

    __hash__ = None  # type: ignore[assignment]  # arrays make a poor key


Event = Ask | Tell | Retract


def event_from_json(stored: Mapping[str, Any]) -> Event:
    """The event that `to_json` described.

    >>> event_from_json(Ask(np.zeros((1, 2)), ("initial",)).to_json())
    Ask(x=array([[0., 0.]]), reasons=('initial',), expected_improvements=())

    Raises:
        ValueError: it describes none.
    """
    match stored:
        case {"event": "ask", "x": list(x), "reasons": list(reasons)} if all(isinstance(r, str) for r in reasons):
            gains = stored.get("expected_improvements", ())
            numbers = tuple(None if gain is None else float(gain) for gain in gains)
            return Ask(np.array(x, dtype=np.float64), tuple(reasons), numbers)
        case {"event": "tell", "observations": observations}:
            return Tell(Observations.from_json(observations))
        case {"event": "retract", "x": x}:
            return Retract(np.array(x, dtype=np.float64))
    raise ValueError(f"expected a stored ask, tell or retract, got the keys {', '.join(map(str, stored))}")
