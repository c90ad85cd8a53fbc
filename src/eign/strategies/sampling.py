"""Methods that do not learn: scrambled Sobol points and uniform random points."""

from collections.abc import Mapping
from typing import final

from eign.arrays import Array
from eign.data import Observations
from eign.region import region_of
from eign.strategies.design import N_INIT, generator, initial_proposal, is_initial, spread_point
from eign.strategies.options import Option
from eign.strategies.strategy import Proposal, State, Strategy


@final
class Sobol(Strategy):
    """The initial design, continued for ever; black-box constraints decide which point is the best."""

    handles_constraints = handles_linear = True

    @property
    def options(self) -> Mapping[str, Option]:
        """None: the sequence is given by the seed."""
        return {}

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:  # noqa: ARG002
        """The next point of the sequence."""
        return Proposal(spread_point(state), "sobol"), state


@final
class UniformRandom(Strategy):
    """The initial design, then independent uniform points; black-box constraints decide which is the best."""

    handles_constraints = handles_linear = True

    @property
    def options(self) -> Mapping[str, Option]:
        """The size of the design."""
        return N_INIT

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """A point of the design or a uniform one."""
        if is_initial(state, data, pending):
            return initial_proposal(state)
        rng = generator(state)
        if state.rows is None:
            return Proposal(rng.random(state.dim), "random"), state
        return Proposal(region_of(state.rows, state.dim).samples(1, rng)[0], "random"), state
