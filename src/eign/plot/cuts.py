"""What cuts through an optimizer have in common: where they go, and how strongly points beside them are drawn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from eign.arrays import Array, as_floats
from eign.space import Box
from eign.study import Optimizer

_REACH: Final = 0.25
"""Points so far from a cut, in the unit cube, are drawn at less than half of their strength."""


class Cut(NamedTuple):
    """Some coordinates of a box vary, the others stay at those of one point.

    Attributes:
        box: The region that is searched.
        centre: The point `d`, user units.
        coordinates: What varies, as indices in user units.
    """

    box: Box
    centre: Array
    coordinates: tuple[int, ...]

    @property
    def free(self) -> list[int]:
        """What varies, as indices in the unit cube."""
        return [int(self.box.free[:k].sum()) for k in self.coordinates]

    @property
    def labels(self) -> list[str]:
        """What the axes are called."""
        names = self.box.names
        return [f"x[{k}]" if names is None else names[k] for k in self.coordinates]

    def grid(self, resolution: int) -> Array:
        """Points of the cut, evenly spaced in the unit cube, the first coordinate running fastest, `... x d`."""
        ticks = [np.linspace(0.0, 1.0, resolution)] * len(self.coordinates)
        meshed = [axis.ravel() for axis in np.meshgrid(*ticks)]
        u = np.tile(self.box.to_unit(self.centre), (len(meshed[0]), 1))
        u[:, self.free] = np.column_stack(meshed)
        return self.box.from_unit(u)

    def slopes(self, optimizer: Optimizer) -> Array:
        """The observed derivatives along what varies, with respect to the unit cube, `n x k`; NaN = missing."""
        seen = optimizer.history
        return self.box.times_unit_scale(seen.grad[:, self.box.free], seen.x)[:, self.free]

    def moved(self, x: Array, steps: Array) -> Array:
        """Points `n x d` moved along what varies by steps `n x k` in the unit cube, as far as the box goes."""
        u = self.box.to_unit(x)
        u[:, self.free] = np.clip(u[:, self.free] + steps, 0.0, 1.0)
        return self.box.from_unit(u)

    def strengths(self, x: Array) -> Array:
        """How strongly the points `n x d` are drawn, `n`: fully on the cut, less with the distance from it."""
        away = self.box.to_unit(x) - self.box.to_unit(self.centre)
        away[:, self.free] = 0.0
        return np.asarray(0.12 + 0.88 * np.exp(-((away / _REACH) ** 2).sum(axis=1)))


def read_cut(optimizer: Optimizer, coordinates: tuple[int | str, ...], at: Any) -> Cut:
    """The cut through a point (d,), or a dict, or the best point if that is None.

    Raises:
        TypeError: it is no optimizer, but the result of a run, say.
        ValueError: a coordinate is unknown, fixed or named twice, or the point has the wrong shape.
    """
    given: object = optimizer
    if not isinstance(given, Optimizer):
        raise TypeError(_how_to_get_an_optimizer(given))
    box = optimizer.box
    indices = tuple(_free_index(box, coordinate) for coordinate in coordinates)
    if len(set(indices)) < len(indices):
        raise ValueError(f"coordinates={coordinates!r}, expected different ones")
    if at is None:
        return Cut(box, optimizer.best.x, indices)
    point = box.from_dict(at) if isinstance(at, dict) else as_floats(at, "at")
    if point.shape != (box.dim,):
        raise ValueError(f"at has shape {point.shape}, expected ({box.dim},): one point in user units")
    return Cut(box, point, indices)


def _how_to_get_an_optimizer(given: object) -> str:
    """That a picture of a model needs an optimizer, with the lines that make one."""
    if isinstance(given, Mapping) and "history" in given:
        sign = ", maximize=True" if given.get("maximize") else ""
        return (
            "the result of a run has its evaluations and no model; tell them to an optimizer and draw that:\n"
            f'    optimizer = eign.Optimizer(bounds, method="log-ei"{sign})\n'
            "    optimizer.tell(result.history.x, result.history.y, result.history.grad)\n"
            "A run with storage=FILE has one already: eign.Optimizer.view(FILE)"
        )
    if isinstance(given, str | Path):
        return f"expected an eign.Optimizer; if that is the file of a study: eign.Optimizer.view({str(given)!r})"
    return f"expected an eign.Optimizer, got {type(given).__name__}"


def _free_index(box: Box, coordinate: int | str) -> int:
    names = box.names or ()
    k = names.index(coordinate) if coordinate in names else coordinate
    if not isinstance(k, int) or not 0 <= k < box.dim:
        known = f"one of {', '.join(names)}" if names else f"an index below {box.dim}"
        raise ValueError(f"coordinate={coordinate!r}, expected {known}")
    if not box.free[k]:
        raise ValueError(f"coordinate={coordinate!r} is fixed at {float(box.lower[k])!r}: there is nothing to see")
    return k
