"""The default method as users meet it: what can be set, and the initial design. The steps after it are in `method`.

Nothing here needs torch, so that a study begins, and its first points are asked and told, without waiting for it.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.models.derivative_kernels import SELECTABLE
from eign.strategies.auto.settings import SETTINGS, are_many
from eign.strategies.design import initial_proposal
from eign.strategies.options import Option, flag, noise_level, one_of, whole
from eign.strategies.strategy import Belief, Proposal, State, Strategy

if TYPE_CHECKING:
    from eign.strategies.auto.method import Steps
    from eign.strategies.constrained.method import ConstrainedSteps


@final
class Auto(Strategy):
    """The default method: docs/auto.md describes it."""

    expects_improvement = True
    handles_constraints = handles_linear = True

    @property
    def options(self) -> Mapping[str, Option]:
        """Nothing has to be set; each part can be left out, to see what it is good for."""
        return {
            "n_init": Option(None, whole(least=0), "points of the initial design; None is 2, without gradients 3 d"),
            "kernel": Option("choose", one_of("choose", *SELECTABLE), "of the model; choose takes the more likely"),
            "compress": Option(True, flag, "let the model see logarithms of y where they are more likely"),
            "logs": Option(True, flag, "let it see logarithms of positive coordinates where they are more likely"),
            "gradients": Option(True, flag, "let the model see gradients"),
            "noise": Option(None, noise_level, 'variance in standardised units, or "learn"; None decides by the data'),
            "local": Option(True, flag, "search locally around the best point"),
            "elsewhere": Option(True, flag, "search locally from elsewhere where the model knows no place to go"),
        }

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """A point of the design, or what the model says."""
        if _is_initial(state, data, pending) or not data.has_y.any():
            if state.asked == 0 and are_many(state.dim) and not state.limits and state.rows is None:
                # In many dimensions the centre is nearer to any optimum than nearly all other points are.
                return Proposal(np.full(state.dim, 1 / 2), "initial"), state
            return initial_proposal(state)
        return self._steps(state).propose_one(state, data, pending)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief | None:
        """The model in the units of y, and where a global step would look; also while the initial design lasts."""
        return self._steps(state).belief(state, data, pending) if data.has_y.any() else None

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and there is a model; otherwise the values."""
        return self._steps(state).estimates(state, data) if state.memory else data.y

    def _steps(self, state: State) -> "Steps | ConstrainedSteps":
        return self._constrained if state.limits or state.rows is not None else self._free

    @cached_property
    def _free(self) -> "Steps":
        from eign.strategies.auto.method import Steps  # and with it torch

        return Steps()

    @cached_property
    def _constrained(self) -> "ConstrainedSteps":
        from eign.strategies.constrained.method import ConstrainedSteps

        return ConstrainedSteps()


def _is_initial(state: State, data: Observations, pending: Array) -> bool:
    """Fewer points than the design has; without gradients, or with constraints, a model needs more to start with."""
    count: int | None = state.options["n_init"]
    if count is None:
        blind = len(data) > 0 and not data.has_grad.any()
        is_free = not state.limits and state.rows is None
        local = SETTINGS.design if is_free else SETTINGS.model.fewest + state.dim
        count = SETTINGS.blind_design * state.dim if blind else local
    return len(data) + len(pending) < count
