r"""REINFORCE: gradient ascent with a constant step size, clipped to the box.

.. math:: u_{k+1} = \mathrm{clip}\bigl(u_k + \eta\, \nabla f(u_k)\bigr), \qquad
          \eta = s \Big/ \sqrt{\tfrac1n \sum_{i \le n} \|\nabla f(u_i)\|^2}

in the unit cube, with the sum over the points known when the first run starts: the initial design. A gradient of the
design's usual length thus moves the point by s, whatever the units of f, and the steps become short where the function
becomes flat. Normalising by the first gradient alone would leave the step to one noisy estimate, and normalising each
gradient would never settle.

The default s comes from a coarse grid on seeds that no study uses; `docs/problems.md` has the table.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.space import SAME_POINT, nearest
from eign.strategies.design import N_INIT, is_initial
from eign.strategies.local_runs import Replay, next_point
from eign.strategies.options import Option, more_than
from eign.strategies.strategy import Proposal, State, Strategy

# Shorter steps after failures are tried so many times; then the run has ended.
_HALVINGS: Final = 4


@final
class Reinforce(Strategy):
    """Steps along the gradient from the best point of the initial design; f itself only chooses the start.

    A partial derivative that is missing counts as zero. From a failed point the run goes back and halves the step, a
    few times. A run ends where it stands still: without a gradient, or in a corner that the gradient points out of.
    The next one starts at the best point that no run has been through, and then at random points, so that without any
    gradient this is a random search.

    Memory: what `runs` remembers, and `gradient_size`, the usual length of a gradient.
    """

    @property
    def options(self) -> Mapping[str, Option]:
        """The design and the step size."""
        return {**N_INIT, "step": Option(0.3, more_than(0.0), "step for a gradient of usual length, in the unit cube")}

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The next step of the first run that is not waiting for a pending point."""
        if "gradient_size" not in state.memory and not is_initial(state, data, pending):
            state = replace(state, memory={**state.memory, "gradient_size": gradient_size(data)})
        step, size = state.options["step"], state.memory.get("gradient_size", 1.0)
        return next_point(state, data, pending, lambda start: replay(start, data, step=step, size=size))


def gradient_size(data: Observations) -> float:
    """The root mean square length of the gradients known in full or in part; 1 if there is none.

    >>> gradient_size(Observations([[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0], [[3.0, 4.0], [np.nan, np.nan]]))
    5.0
    """
    known = np.where(data.has_grad, data.grad, 0.0)[data.has_grad.any(axis=1)]
    largest = float(np.abs(known).max(initial=0.0))
    # In units of the largest component, so that no square overflows or vanishes.
    return largest * float(np.sqrt(((known / largest) ** 2).sum(axis=1).mean())) if largest > 0.0 else 1.0


def replay(start: Array, data: Observations, *, step: float, size: float) -> Replay:
    """Ascend from `start` over the evaluations in `data` until the run ends or needs another one.

    Args:
        start: Where the run begins, `d`.
        data: All that is known.
        step: Length of the step for a gradient of length `size`.
        size: The usual length of a gradient.
    """
    used: set[int] = set()
    origin, move, target = start, np.zeros_like(start), start
    halvings = 0
    while True:
        row, distance = nearest(data.x, target)
        if distance > SAME_POINT:
            return Replay(target, frozenset(used))
        if row in used or halvings > _HALVINGS:
            return Replay(None, frozenset(used | {row}))
        used.add(row)
        if data.failed[row]:
            halvings, move = halvings + 1, 0.5 * move
        else:
            with np.errstate(over="ignore"):  # a step of infinite length ends at the border, as any long one
                halvings, move = 0, step * (np.where(data.has_grad[row], data.grad[row], 0.0) / size)
            origin = data.x[row]
        target = np.clip(origin + move, 0.0, 1.0)
