"""Observations as the split needs them: every point with its value, and with its whole gradient or none of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.data import Observations


@dataclass(frozen=True)
class SpannedData:
    """Standardised observations; the m points with a gradient come first.

    Attributes:
        x: Points n x d.
        y: Values n.
        grad: Gradients m x d.
        y_noise: Known noise variances of the values, n.
        grad_noise: Known noise variances of the gradients, m x d.
    """

    x: Array
    y: Array
    grad: Array
    y_noise: Array
    grad_noise: Array

    @classmethod
    def of(cls, observations: Observations) -> SpannedData:
        """From standardised observations.

        A gradient with missing components counts as missing, and a point without a value is left out: otherwise the
        likelihood does not split.
        """
        usable = observations.usable
        usable = usable[usable.has_y]
        whole: NDArray[np.bool_] = np.asarray(usable.has_grad.all(axis=1))
        first, last = usable[whole], usable[~whole]
        return cls(
            np.concatenate([first.x, last.x]),
            np.concatenate([first.y, last.y]),
            np.array(first.grad),
            np.nan_to_num(np.concatenate([first.y_var, last.y_var])),
            np.nan_to_num(first.grad_var),
        )

    @property
    def gradients(self) -> int:
        """m, the number of points with a gradient."""
        return len(self.grad)

    @property
    def numbers(self) -> int:
        """Observed numbers, n + m d."""
        return len(self.y) + self.grad.size
