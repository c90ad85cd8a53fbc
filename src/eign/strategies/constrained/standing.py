"""How the points told so far stand under constraints: which are feasible, and which is the best."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array, Mask
from eign.constraints import FEASIBILITY_TOL, relative_excess, scales, violation
from eign.data import Observations
from eign.region import Region, region_of
from eign.strategies.strategy import State

Index = NDArray[np.intp]


@final
@dataclass(frozen=True)
class Standing:
    """What was told, and the limits it is measured by.

    Attributes:
        data: In the unit cube, to be maximised.
        lower: Limits of the constraints `m`, in their units.
        upper: `m`.
        region: What linear constraints leave of the cube.
        decades: Of each coordinate, see `Box.decades`; empty is unknown.
    """

    data: Observations
    lower: Array
    upper: Array
    region: Region
    decades: Sequence[float] = ()

    @classmethod
    def of(cls, state: State, data: Observations) -> "Standing":
        """With the limits and rows of a state."""
        limits = np.array(state.limits, dtype=np.float64).reshape(-1, 2)
        return cls(data, limits[:, 0], limits[:, 1], region_of(state.rows, state.dim), state.decades)

    @cached_property
    def values(self) -> Array:
        """Of the constraints, `n x m`; NaN where one is not known."""
        columns = [np.where(each.has_y, each.y, np.nan) for each in self.data.constraints]
        return np.column_stack(columns) if columns else np.empty((len(self.data), 0))

    @cached_property
    def scales(self) -> Array:
        """What differences of each constraint are measured in, `m`."""
        return scales(self.values, self.lower, self.upper)

    @cached_property
    def violations(self) -> Array:
        """The largest violation of each point in scales, `n`; infinite where a constraint is not known."""
        return relative_excess(violation(self.values, self.lower, self.upper), self.scales)

    @cached_property
    def feasible(self) -> Mask:
        """Which points have a value and satisfy all constraints within the tolerance, `n`."""
        return self.data.has_y & (self.violations <= FEASIBILITY_TOL)

    @cached_property
    def order(self) -> Index:
        """Rows from the best to the worst: feasible ones by value, then the others by violation; failed ones last."""
        value = np.where(self.data.has_y, self.data.y, -np.inf)
        far = np.where(self.feasible, 0.0, self.violations)
        return np.asarray(np.lexsort((-value, np.where(self.data.has_y, far, np.inf), ~self.data.has_y)), dtype=np.intp)

    @property
    def best(self) -> int | None:
        """The best row; None if no point has a value."""
        return int(self.order[0]) if self.data.has_y.any() else None

    @cached_property
    def best_feasible(self) -> float | None:
        """The best feasible value; None if there is none."""
        return float(self.data.y[self.feasible].max()) if self.feasible.any() else None
