r"""The coordinates that `auto` works in: those of the unit cube, or logarithms of the positive ones.

A coordinate whose bounds are positive and span two decades or more may be one that users think of in magnitudes, also
if they did not ask for a log scale. With k decades and c = 1 / (10^k - 1) its value is u + c in units of its range, and

.. math:: w(u) = \log_{10}((u + c) / c) / k.
"""

from collections.abc import Sequence
from typing import Final, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations, to_unit
from eign.space import Box

# Over fewer decades there is little to gain. Where there are more, the last ones are taken together: points that differ
# there are the same point of the unit cube, up to `SAME_POINT`.
_DECADES: Final = (2.0, 6.0)


@final
class Coordinates:
    """The map of this module's docstring; without logarithms, or where no coordinate has so many decades, identity.

    >>> logs = Coordinates([2.0, 0.0], logs=True)
    >>> logs.points(np.array([[0.0, 0.0], [1 / 11, 0.5], [1.0, 1.0]])).round(6).tolist()
    [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(self, decades: Sequence[float], *, logs: bool) -> None:
        """Decades of each coordinate, see `Box.decades`; none of them if they are unknown."""
        spans = np.minimum(decades, _DECADES[1])
        bent = (spans >= _DECADES[0]) & logs
        self._low = np.where(bent, 1.0 / (10.0 ** np.maximum(spans, _DECADES[0]) - 1.0), 0.0)
        log = np.flatnonzero(bent).tolist()
        self._box = Box(np.column_stack([self._low, 1.0 + self._low]), log=log) if log else None

    @property
    def are_own(self) -> bool:
        """Whether they are those of the unit cube."""
        return self._box is None

    def points(self, x: Array) -> Array:
        """Points of the cube in these coordinates, `n x d`."""
        return x if self._box is None else self._box.to_unit(x + self._low)

    def undo(self, w: Array) -> Array:
        """The points of the cube, `... x d`."""
        return w if self._box is None else np.clip(self._box.from_unit(w) - self._low, 0.0, 1.0)

    def seen(self, data: Observations) -> Observations:
        """Observations in these coordinates, gradients by the chain rule."""
        if self._box is None:
            return data
        return to_unit(Observations(data.x + self._low, data.y, data.grad, data.y_var, data.grad_var), self._box)

    def slopes(self, gradient: Array, x: Array) -> Array:
        """Derivatives by these coordinates as derivatives by those of the cube, at points of the cube, `n x d`."""
        return gradient if self._box is None else self._box.times_unit_scale(gradient, x + self._low, power=-1)

    def log_jacobian(self, data: Observations) -> float:
        """Log of the density of the data over that in these coordinates: each slope is multiplied by du/dw."""
        if self._box is None:
            return 0.0
        return float(np.log(self._box.unit_scale(data.x + self._low))[data.has_grad].sum())
