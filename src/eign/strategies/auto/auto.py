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
from eign.strategies.design import design_point, initial_proposal
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
            "n_init": Option(None, whole(least=0), "points of the initial design; None is 1, without gradients 3 d"),
            "kernel": Option("choose", one_of("choose", *SELECTABLE), "of the model; choose takes the more likely"),
            "compress": Option(True, flag, "let the model see logarithms of y where they are more likely"),
            "logs": Option(True, flag, "let it see logarithms of positive coordinates where they are more likely"),
            "gradients": Option(True, flag, "let the model see gradients"),
            "noise": Option(None, noise_level, 'variance in standardised units, or "learn"; None decides by the data'),
            "local": Option(True, flag, "search locally around the best point"),
            "bowl": Option(True, flag, "search from the top of a bowl, where the points show one"),
            "directions": Option(True, flag, "in many dimensions, a model of the few directions that gradients span"),
            "jumps": Option(True, flag, "in many dimensions, steps along all coordinates on a model of a sum"),
            "draws": Option(True, flag, "in many dimensions, let the design go on for this model"),
            "elsewhere": Option(True, flag, "search locally from elsewhere where the model knows no place to go"),
        }

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """A point of the design, or what the model says."""
        if _is_initial(state, data, pending) or not data.has_y.any() or (not state.limits and _is_plateau(data)):
            if state.asked == 0 and _is_free(state) and state.options["n_init"] is None:
                return Proposal(_first_point(state), "initial"), state
            return initial_proposal(state)
        return self._steps(state).propose_one(state, data, pending)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief | None:
        """The model in the units of y, and where a global step would look; also while the initial design lasts."""
        return self._steps(state).belief(state, data, pending) if data.has_y.any() else None

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and there is a model; otherwise the values."""
        return self._steps(state).estimates(state, data) if state.memory else data.y

    def _steps(self, state: State) -> "Steps | ConstrainedSteps":
        return self._free if _is_free(state) else self._constrained

    @cached_property
    def _free(self) -> "Steps":
        from eign.strategies.auto.method import Steps  # and with it torch

        return Steps()

    @cached_property
    def _constrained(self) -> "ConstrainedSteps":
        from eign.strategies.constrained.method import ConstrainedSteps

        return ConstrainedSteps()


def _first_point(state: State) -> Array:
    """A point of the middle half of the box, where all optima are nearer; with many coordinates one next to the centre.

    Never the centre itself: where a function is symmetric its gradient says nothing there, or leads along the symmetry
    (of atoms that all are at one place none moves away from the others).
    """
    centre, drawn = np.full(state.dim, 1 / 2), design_point(state.seed, state.dim, 0)
    if are_many(state.dim):
        return np.asarray(centre + 2 * SETTINGS.model.resolution * (drawn - centre))
    return np.asarray((centre + drawn) / 2)


def _is_free(state: State) -> bool:
    """Whether there are no constraints."""
    return not state.limits and state.rows is None


def _is_plateau(data: Observations) -> bool:
    """Whether all values are equal and no gradient leads anywhere: nothing is known but places that need no other look.

    Then the design, which fills space evenly, finds a slope sooner than a model, to which the corners are least known.
    """
    y = data.y[data.has_y]
    return bool(y.min() == y.max()) and not np.nan_to_num(data.grad).any()


def _is_initial(state: State, data: Observations, pending: Array) -> bool:
    """Fewer points than the design has; without gradients, or with constraints, a model needs more to start with."""
    count: int | None = state.options["n_init"]
    if count is None:
        blind = len(data) > 0 and not data.has_grad.any()
        local = SETTINGS.design if _is_free(state) else SETTINGS.model.fewest + state.dim
        count = SETTINGS.blind_design * state.dim if blind else local
    return len(data) + len(pending) < count
