"""What every method is: a state of plain data, folded over what was asked and told, and a proposal made from it.

Everything here is in the unit cube and maximises.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.strategies.options import Option, resolve

if TYPE_CHECKING:
    from torch import Tensor


@final
@dataclass(frozen=True, slots=True)
class State:
    """What a method carries between proposals; plain numbers, texts, lists and dicts throughout.

    Attributes:
        dim: Coordinates of the unit cube.
        seed: Of the study.
        options: The method's options, checked and complete.
        asked: Points proposed so far. Randomness comes from (seed, asked) alone.
        told: Observations seen so far.
        expected_improvement: Of the last point proposed, in the units of y; None if the method does not know.
        reason: Why the last point was proposed, in one word.
        reasons: The same for each point of the last proposal.
        memory: What the method itself needs; its class says what is in it.
        decades: How many powers of ten each coordinate spans in user units, see `Box.decades`; empty is unknown.
    """

    dim: int
    seed: int
    options: Mapping[str, Any]
    asked: int = 0
    told: int = 0
    expected_improvement: float | None = None
    reason: str = ""
    reasons: Sequence[str] = field(default_factory=list)
    memory: Mapping[str, Any] = field(default_factory=dict)
    decades: Sequence[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal state."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "State":
        """The state that `to_json` described; what an earlier version did not know has its default."""
        if not {"dim", "seed", "options"} <= set(stored) <= set(cls.__slots__):
            raise ValueError(f"expected a state stored as {', '.join(cls.__slots__)}, got {', '.join(stored)}")
        return cls(**stored)


class Surrogate(Protocol):
    """A model that says what f is at `n x d` points: mean and variance first, `n` each."""

    def moments(self, X: "Tensor", /) -> "tuple[Tensor, ...]":
        """In the units of y."""


class Acquisition(Protocol):
    """What a method maximises to find its next point."""

    def evaluate(self, X: Array, /) -> Array:
        """Values, `n x d -> n`."""


@final
@dataclass(frozen=True, slots=True)
class Belief:
    """What a method with a surrogate knows and looks for, before its next proposal.

    Attributes:
        model: The surrogate of what was told.
        acquisition: What the next point is to maximise; None where a method looks for something else.
        x: The point that the method finds, `d`.
    """

    model: Surrogate
    acquisition: Acquisition | None
    x: Array


class Strategy(ABC):
    """One method. Objects carry no data: all that changes is in the `State`.

    Attributes:
        expects_improvement: Whether proposals come with an expected improvement, once there is a model.
    """

    expects_improvement: ClassVar[bool] = False

    @property
    @abstractmethod
    def options(self) -> Mapping[str, Option]:
        """What can be set."""

    @abstractmethod
    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Array, State]:
        """The next point `d`, and the state with what was learned on the way and the reason for the point.

        `asked` is counted elsewhere.
        """

    def estimates(self, state: State, data: Observations) -> Array:  # noqa: ARG002
        """What the method believes f to be at the points observed, `n`; the values themselves if it has no model."""
        return data.y

    def contradiction(self, dim: int, options: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """In what way options, each possible by itself, do not fit each other or the dimension; None if they do."""
        return None

    def belief(self, state: State, data: Observations, pending: Array) -> Belief | None:  # noqa: ARG002
        """What the next proposal is made from; None if the method has no model, or knows no value yet."""
        return None

    @final
    def restored(self, state: State) -> State:
        """A stored state with the options of today: those that are new have their defaults, old ones are forgotten."""
        options = {name: state.options.get(name, option.default) for name, option in self.options.items()}
        return replace(state, options=options)

    @final
    def start(
        self,
        dim: int,
        options: Mapping[str, Any] | None,
        seed: int,
        *,
        method: str = "this",
        decades: Sequence[float] = (),
    ) -> State:
        """The state before the first proposal; `method` names the method in errors, and `decades` is as in `State`.

        Raises:
            ValueError: an option is unknown or has an impossible value, or some do not fit each other.
        """
        resolved = resolve(method, self.options, options)
        if (problem := self.contradiction(dim, resolved)) is not None:
            raise ValueError(f"options of method {method!r}: {problem}")
        return State(dim, seed, resolved, decades=list(decades))

    @final
    def update(self, state: State, told: Observations) -> State:
        """The state after further observations."""
        return replace(state, told=state.told + len(told))

    @final
    def propose(self, state: State, data: Observations, pending: Array, n: int) -> tuple[Array, State]:
        """The next n points `n x d`, one after the other, so that n points at once are n times one point.

        Args:
            state: From `start`, `update` or the last `propose`.
            data: All that was told.
            pending: Points that were proposed and not told, `m x d`.
            n: How many points.
        """
        if state.told != len(data):
            raise ValueError(f"the state has seen {state.told} observations, the data are {len(data)}")
        reasons: list[str] = []
        for _ in range(n):
            point, state = self.propose_one(state, data, pending)
            reasons.append(state.reason)
            state = replace(state, asked=state.asked + 1)
            pending = np.concatenate([pending, point[None]])
        return pending[len(pending) - n :], replace(state, reasons=reasons)
