"""Values of any size for models, whose squares must neither overflow nor vanish."""

from typing import Final, final

import numpy as np

from eign.arrays import Array, Factor, times_power
from eign.data import Observations
from eign.standardization import standardize_joint

_ORDINARY: Final = 1e50
"""Spreads between this and its inverse are left alone, and slopes within it of the spread: fourth powers exist."""


@final
class Computable:
    """Observations in units in which a model can compute, and the way back.

    A unit is a power of two, so that nothing is rounded, and mostly it is 1. A penalty of 1e200 among values of size 1
    is what a model sees then, and these values are all the same to it. Slopes beyond any relation to the values are
    as large as that can be, and those far below are none.
    """

    def __init__(self, data: Observations, *, spread: float | None = None) -> None:
        """What was told, in the unit cube.

        Args:
            data: What was told.
            spread: Of the values, where it is given and not learned from them; what is beyond any relation to it is
                as large as that can be, or 0, and the units stay as they are.
        """
        is_given, spread = spread is not None, standardize_joint(data).y_scale if spread is None else spread
        is_ordinary = is_given or 1.0 / _ORDINARY <= spread <= _ORDINARY
        # The unit is mantissa times two to the exponent, as `np.frexp` gives it.
        self._unit: Factor = (np.array(0.5), np.array(1 if is_ordinary else np.frexp(spread)[1] + 1))
        size = spread if is_ordinary else 1.0
        most, least = _ORDINARY * size, size / _ORDINARY
        y, slopes = self._inside(data.y, 1), np.abs(grad := self._inside(data.grad, 1))
        is_far = bool(((slopes > most) | ((slopes < least) & (slopes > 0.0))).any())
        # Equal values may be far from 0 by the measure of the slopes.
        near = np.clip(np.where(is_given & (np.abs(y) < least), 0.0, y), -most, most)
        near = np.where(np.isinf(y), y, near)  # a failure stays one
        is_far, y = is_far or not np.array_equal(near, y, equal_nan=True), near
        given = (data.y_var, data.grad_var)
        variances = [np.minimum(self._inside(part, 2), most * most) for part in given]
        is_far = is_far or any(bool((self._inside(part, 2) > most * most).any()) for part in given)
        self.is_extreme: Final = is_far or not is_ordinary
        """Whether anything differs from what was told."""
        self._most: Final = most
        if not self.is_extreme:
            self.data = data
            return
        grad = np.clip(np.where(slopes < least, 0.0, grad), -most, most)
        self.data = Observations(data.x, y, np.where(data.has_grad, grad, np.nan), *variances)

    def _inside(self, values: Array, power: int) -> Array:
        return times_power(values, self._unit, -power)

    def limits(self, limits: Array) -> Array:
        """Limits of the values, in the model's units: beyond all values where they are beyond any relation to them."""
        farthest = _ORDINARY * self._most
        return np.where(np.isinf(limits), limits, np.clip(self._inside(limits, 1), -farthest, farthest))

    def outside(self, values: Array) -> Array:
        """Values or differences of them, in the units of what was told; at most the largest float."""
        return times_power(values, self._unit, 1)
