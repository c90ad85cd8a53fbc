r"""The few directions in which a function of many coordinates changes, as its gradients show them.

| symbol | meaning |
|---|---|
| V | the directions, orthonormal, `r x d`: f(x) is about h(V x), so that gradients are :math:`V^\top h'` |
| r | how far the cube of u reaches along them: 1 where a direction is a coordinate, more if good points lie far out |
| u | coordinates along them, :math:`1/2 + V (x - 1/2) / r` |
"""

from typing import Final, NamedTuple, final

import numpy as np

from eign.arrays import Array, Mask
from eign.data import Observations

_ROUNDS: Final = 100
_EXACT: Final = 1e-12
_ROUNDING: Final = 1e-9


@final
class Directions(NamedTuple):
    """The directions V, `r x d`, and how far the cube of their coordinates reaches along each, `r` or 1 for all."""

    axes: Array
    reach: Array | float = 1.0

    def around(self, x: Array) -> "Directions":
        """With a cube that holds a point `d` and twice as much: a larger one would hide what is small."""
        far = 4.0 * np.abs((x - 0.5) @ self.axes.T)
        return self._replace(reach=np.clip(far, 1.0, np.maximum(np.abs(self.axes).sum(axis=1), 1.0)))

    def coordinates(self, x: Array) -> Array:
        """Of points `... x d`: u, `... x r`."""
        return np.asarray((x - 0.5) @ self.axes.T / self.reach + 0.5)

    def seen(self, data: Observations) -> Observations:
        """Observations along the directions, without those that lie outside of the cube of u."""
        u = self.coordinates(data.x)
        seen = Observations(np.clip(u, 0.0, 1.0), data.y, data.grad @ self.axes.T * self.reach)
        return seen[np.flatnonzero(self.holds(u))]

    def holds(self, u: Array) -> Mask:
        """Whether coordinates `... x r` lie in their cube, but for rounding."""
        return np.asarray(((u >= -_ROUNDING) & (u <= 1.0 + _ROUNDING)).all(axis=-1))

    def lifted(self, u: Array, start: Array) -> Array:
        """The point of the cube with these coordinates that is near to a start, `r, d -> d`.

        By turns the nearest point with these coordinates and the nearest point of the cube: if no point has them, the
        last one misses them by little.
        """
        x = start
        for _ in range(_ROUNDS):
            missing = u - self.coordinates(x)
            if np.abs(missing).max() <= _EXACT:
                break
            x = np.clip(x + (missing * self.reach) @ self.axes, 0.0, 1.0)
        return x


def active_directions(gradients: Array, *, rest: float, most: int) -> Directions | None:
    """What gradients `n x d` span, up to this share of each of them; None if these are more directions than `most`.

    In the order of the rows, so that directions stay what they are as further gradients come.

    >>> told = np.array([[0.0, 2.0, 0.0], [0.0, 1.0, 1e-9], [3.0, 1.0, 0.0]])
    >>> active_directions(told, rest=1e-6, most=2).axes.tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    >>> active_directions(told, rest=1e-6, most=1)
    """
    axes = np.empty((0, gradients.shape[1]))
    for gradient in gradients:
        if len(axes) > most:
            return None
        largest = np.abs(gradient).max()
        if not 0.0 < largest < np.inf:
            continue
        unit = gradient / largest / np.linalg.norm(gradient / largest)
        left = unit - (axes @ unit) @ axes
        if np.linalg.norm(left) > rest:
            left = left - (axes @ left) @ axes  # once more: rounding of the first time
            axes = np.vstack([axes, left / np.linalg.norm(left)])
    return Directions(axes) if len(axes) <= most else None
