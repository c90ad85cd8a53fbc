"""What every method is: a state of plain data, and proposals made from it and from what was told.

Everything here is in the unit cube and maximises.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, final

import numpy as np

from eign.arrays import Array, whole_number
from eign.constraints import Limits, LinearRows
from eign.data import Observations
from eign.space import Box
from eign.strategies.options import Option, resolve

if TYPE_CHECKING:
    from torch import Tensor


class Proposal(NamedTuple):
    """A point to evaluate.

    Attributes:
        x: In the unit cube, `d`.
        reason: Why, in one word.
        expected_improvement: Over the best value, in the units of y; None if the method does not know.
    """

    x: Array
    reason: str
    expected_improvement: float | None = None


# Fields of states that earlier versions stored.
_FORMER = frozenset({"expected_improvement", "reason", "reasons"})


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
        memory: What the method itself needs; its class says what is in it.
        decades: How many powers of ten each coordinate spans in user units, see `Box.decades`; empty is unknown.
        noisy: Whether the method takes values to scatter, so that its estimates differ from them; None is unknown.
        limits: (lower, upper) of each black-box constraint, in its units; infinite where open.
        rows: Known linear constraints lower <= A u <= upper of the unit cube's points, as a table of these three
            lists; None if there are none.
        budget: Evaluations in all that are planned; None is unknown.
    """

    dim: int
    seed: int
    options: Mapping[str, Any]
    asked: int = 0
    told: int = 0
    memory: Mapping[str, Any] = field(default_factory=dict)
    decades: Sequence[float] = field(default_factory=list)
    noisy: bool | None = None
    limits: Sequence[Sequence[float]] = field(default_factory=list)
    rows: Mapping[str, Any] | None = None
    budget: int | None = None

    def after(self, told: Observations) -> "State":
        """The state after further observations. Models are fitted when a proposal needs them, not here."""
        return replace(self, told=self.told + len(told))

    def without_memory(self, told: int) -> "State":
        """The state of a method that has to learn anew from so many observations, as some were taken back."""
        return replace(self, told=told, memory={}, noisy=None)

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal state."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "State":
        """The state that `to_json` described; what an earlier version did not know has its default."""
        known = {name: value for name, value in stored.items() if name not in _FORMER}
        if not {"dim", "seed", "options"} <= set(known) <= set(cls.__slots__):
            raise ValueError(f"expected a state stored as {', '.join(cls.__slots__)}, got {', '.join(stored)}")
        state = cls(**known)
        counts = (state.dim, state.seed, state.asked, state.told)
        if any(whole_number(count, least=0) is None for count in counts) or not isinstance(state.noisy, bool | None):
            raise ValueError(f"dim, seed, asked, told = {counts} and noisy = {state.noisy!r} make no state")
        tables = (state.options, state.memory, {} if state.rows is None else state.rows)
        if not all(isinstance(table, Mapping) for table in tables):
            raise ValueError("expected the options, the memory and the rows of a state as tables")
        if state.budget is not None and whole_number(state.budget, least=1) is None:
            raise ValueError(f"expected a number of evaluations for budget, got {state.budget!r}")
        if not all(isinstance(span, int | float) for span in state.decades):
            raise ValueError(f"expected numbers for decades, got {state.decades!r}")
        _check_constraints(state)
        return state


def _check_constraints(state: State) -> None:
    """Refuse what no study stores as limits and rows."""
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in state.limits):
        raise ValueError(f"expected pairs for limits, got {state.limits!r}")
    names = [f"constraint {i}" for i in range(len(state.limits))]
    Limits(names, [low for low, _ in state.limits], [high for _, high in state.limits])  # refuses what is no number
    if state.rows is None:
        return
    if set(state.rows) != {"A", "lower", "upper"}:
        raise ValueError("expected rows stored as A, lower and upper")
    if LinearRows(state.rows["A"], state.rows["lower"], state.rows["upper"]).A.shape[1] != state.dim:
        raise ValueError(f"expected rows of {state.dim} coordinates")


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
        in_told_units: From the model's values, and differences of them, to the units of what was told.
        constraints: Surrogates of the constraints, in their order and units; none where a method has none.
    """

    model: Surrogate
    acquisition: Acquisition | None
    x: Array
    in_told_units: Callable[[Array], Array] = np.asarray
    constraints: tuple[Surrogate, ...] = ()


class Strategy(ABC):
    """One method. Objects carry no data: all that changes is in the `State`.

    Attributes:
        expects_improvement: Whether proposals come with an expected improvement, once there is a model.
        handles_constraints: Whether `State.limits` may have entries.
        handles_linear: Whether every proposal satisfies `State.rows`.
    """

    expects_improvement: ClassVar[bool] = False
    handles_constraints: bool = False
    handles_linear: bool = False

    @property
    @abstractmethod
    def options(self) -> Mapping[str, Option]:
        """What can be set."""

    @abstractmethod
    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The next point, and the state with what was learned on the way; `asked` is counted elsewhere."""

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
    def checked_options(self, dim: int, options: Mapping[str, Any] | None, *, method: str = "this") -> dict[str, Any]:
        """All options, those given checked; `method` names the method in errors.

        Raises:
            ValueError: an option is unknown or has an impossible value, or some do not fit each other.
        """
        resolved = resolve(method, self.options, options)
        if (problem := self.contradiction(dim, resolved)) is not None:
            raise ValueError(f"options of method {method!r}: {problem}")
        return resolved

    @final
    def start(
        self,
        box: Box,
        options: Mapping[str, Any] | None,
        seed: int,
        *,
        method: str = "this",
        limits: Limits | None = None,
        linear: LinearRows | None = None,
        budget: int | None = None,
    ) -> State:
        """The state before the first proposal; errors as of `checked_options`.

        Args:
            box: The region that is searched.
            options: Those that the user has set.
            seed: Of the study.
            method: Names the method in errors.
            limits: Of the black-box constraints.
            linear: Known linear constraints, user units.
            budget: Evaluations in all, as a hint.
        """
        checked = self.checked_options(box.free_dim, options, method=method)
        pairs = [] if limits is None else np.column_stack([limits.lower, limits.upper]).tolist()
        rows = None
        if linear is not None and len(linear):
            A, lower, upper = box.linear_to_unit(linear.A, linear.lower, linear.upper)
            rows = {"A": A.tolist(), "lower": lower.tolist(), "upper": upper.tolist()}
        known = {"decades": box.decades.tolist(), "limits": pairs, "rows": rows, "budget": budget}
        return State(box.free_dim, seed, checked, noisy=False, **known)

    @final
    def propose(self, state: State, data: Observations, pending: Array, n: int) -> tuple[list[Proposal], State]:
        """The next n points, one after the other, so that n points at once are n times one point.

        Args:
            state: From `start`, `State.after` or the last `propose`.
            data: All that was told.
            pending: Points that were proposed and not told, `m x d`.
            n: How many points.
        """
        if state.told != len(data):
            raise ValueError(f"the state has seen {state.told} observations, the data are {len(data)}")
        proposals: list[Proposal] = []
        for _ in range(n):
            proposal, state = self.propose_one(state, data, pending)
            proposals.append(proposal)
            state = replace(state, asked=state.asked + 1)
            pending = np.concatenate([pending, proposal.x[None]])
        return proposals, state
