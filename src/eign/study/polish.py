"""The last digits: L-BFGS-B on the function itself, from the best point of a search.

A model resolves a function to some digits; a quasi-Newton method that sees nothing but the last few gradients has no
such limit. It is replayed over the evaluations that exist until it needs one that does not.
"""

from typing import Final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.space import SAME_POINT, nearest
from eign.strategies.multistart import replay

POLISH: Final = "polish"
"""The reason for a point of the last digits."""

# The first step, in the unit cube: as far as the nearest point, within these.
_FIRST_STEP: Final = (1e-6, 0.1)


def first_step(data: Observations, start: Array) -> float:
    """How far the first step goes: to where the function was seen last around the start, `d`."""
    others = data.x[np.abs(data.x - start).max(axis=1) > SAME_POINT]
    return float(np.clip(nearest(others, start)[1], *_FIRST_STEP))


def next_point(data: Observations, start: Array, step: float) -> Array | None:
    """The point that L-BFGS-B needs next, `d` in the unit cube; None if it has ended.

    It ends by its gradient, a billionth of the one at the start, or where the function changes by roundings only.
    """
    return replay(start, data, {"ftol": 0.0, "gtol": 1e-9, "first_step": step}).needed
