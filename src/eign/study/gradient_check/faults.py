r"""What people get wrong in a gradient, as maps from the gradient told to the true one.

Along a step delta with the mean gradient h told, a fault hides a part of the change of f:

| fault | true gradient | hidden change |
|---|---|---|
| factor s of i (-1: its sign) | s h_i | (s - 1) delta_i h_i |
| factor s of all | s h | (s - 1) delta . h |
| i and j swapped | h_j, h_i | (delta_i - delta_j) (h_j - h_i) |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array


class GradientWarning(UserWarning):
    """Gradients and values of the user's function contradict each other."""


# The factors that people forget or add; swaps of more coordinates than this are too many to look for.
_FACTORS: Final = (-1.0, 0.5, 2.0)
_MOST_SWAPPED: Final = 100


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """One error.

    Attributes:
        kind: "sign", "factor" or "swap".
        coordinates: Which coordinates of the unit cube; empty for all of them.
        factor: By what the gradient told should be multiplied.
    """

    kind: str
    coordinates: tuple[int, ...]
    factor: float

    def repaired(self, grad: Array) -> Array:
        """The true gradients where these were told with the fault, `m x d -> m x d`."""
        true = grad.copy()
        if self.kind == "swap":
            true[:, self.coordinates] = grad[:, self.coordinates[::-1]]
        elif self.coordinates:
            true[:, self.coordinates] *= self.factor
        else:
            true *= self.factor
        return true

    def describe(self, labels: Sequence[str]) -> str:
        """In words, with the names of the coordinates."""
        if self.kind == "swap":
            first, second = (labels[i] for i in self.coordinates)
            return f"the partial derivatives by {first} and by {second} seem to be swapped"
        which = f"the partial derivative by {labels[self.coordinates[0]]}" if self.coordinates else "the gradient"
        if self.kind == "sign":
            return f"{which} seems to have the wrong sign"
        size, factor = ("too large", 1.0 / self.factor) if self.factor < 1.0 else ("too small", self.factor)
        return f"{which} seems to be {size} by a factor of about {factor:.2g}"


def scaling(coordinates: tuple[int, ...], factor: float) -> Fault:
    """A factor, which is a wrong sign if it is negative."""
    return Fault("sign" if factor < 0.0 else "factor", coordinates, factor)


def one_or_all(dim: int) -> list[tuple[int, ...]]:
    """Each coordinate, and all of them where that is not the same.

    >>> one_or_all(2)
    [(0,), (1,), ()]
    """
    return [(i,) for i in range(dim)] + ([()] if dim > 1 else [])


def common_faults(dim: int) -> list[Fault]:
    """The faults that are looked for: signs, factors of two and swaps.

    >>> [fault.kind for fault in common_faults(1)]
    ['sign', 'factor', 'factor']
    """
    scaled = [scaling(coordinates, factor) for factor in _FACTORS for coordinates in one_or_all(dim)]
    return scaled + [Fault("swap", (int(i), int(j)), 1.0) for i, j in zip(*_swapped(dim), strict=True)]


def hidden_changes(step: Array, slope: Array) -> Array:
    """What each of `common_faults` hides of the change of f along steps, `m x d, m x d -> m x k`."""
    parts, (i, j) = step * slope, _swapped(step.shape[1])
    whole = parts.sum(axis=1, keepdims=True) if step.shape[1] > 1 else parts[:, :0]
    scaled = [(factor - 1.0) * part for factor in _FACTORS for part in (parts, whole)]
    return np.hstack([*scaled, (step[:, i] - step[:, j]) * (slope[:, j] - slope[:, i])])


def repaired_bounds(step: Array, bend: Array) -> Array:
    """The sum of |delta_i| bend_i with the bend of each of `common_faults` repaired, `m x d, m x d -> m x k`."""
    size, (i, j) = np.abs(step), _swapped(step.shape[1])
    parts = size * bend
    whole = parts.sum(axis=1, keepdims=True)
    scaled = [
        part
        for factor in np.abs(_FACTORS)
        for part in (whole + (factor - 1.0) * parts, factor * (whole if step.shape[1] > 1 else parts[:, :0]))
    ]
    return np.hstack([*scaled, whole + (size[:, i] - size[:, j]) * (bend[:, j] - bend[:, i])])


def message(found: Sequence[Fault], labels: Sequence[str]) -> str:
    """For the user: all faults that explain the values about equally well."""
    what = ", or ".join(fault.describe(labels) for fault in found)
    return (
        f"{what}: gradients and values contradict each other. Check the function, for example with "
        "scipy.optimize.check_grad; if the gradient is right, ignore this warning"
    )


def _swapped(dim: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    i, j = np.triu_indices(dim if dim <= _MOST_SWAPPED else 0, 1)
    return i.astype(np.int64), j.astype(np.int64)
