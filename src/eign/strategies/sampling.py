"""Methods that do not learn: scrambled Sobol points and uniform random points."""

from collections.abc import Mapping
from typing import final

from eign.arrays import Array
from eign.data import Observations
from eign.strategies.design import N_INIT, design_point, generator, initial_proposal, is_initial
from eign.strategies.options import Option
from eign.strategies.strategy import Proposal, State, Strategy


@final
class Sobol(Strategy):
    """The initial design, continued for ever; black-box constraints decide which point is the best."""

    handles_constraints = True

    @property
    def options(self) -> Mapping[str, Option]:
        """None: the sequence is given by the seed."""
        return {}

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:  # noqa: ARG002
        """The next point of the sequence."""
        return Proposal(design_point(state.seed, state.dim, state.asked), "sobol"), state


@final
class UniformRandom(Strategy):
    """The initial design, then independent uniform points; black-box constraints decide which is the best."""

    handles_constraints = True

    @property
    def options(self) -> Mapping[str, Option]:
        """The size of the design."""
        return N_INIT

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """A point of the design or a uniform one."""
        if is_initial(state, data, pending):
            return initial_proposal(state)
        return Proposal(generator(state).random(state.dim), "random"), state
