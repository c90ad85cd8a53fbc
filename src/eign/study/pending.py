"""Points that were asked and not told: who has them, and why they were proposed."""

from collections.abc import Sequence
from typing import final

import numpy as np

from eign.arrays import Array
from eign.notices import warn_user
from eign.space import SAME_POINT, Box, nearest

# A point that went through single precision, or a table with seven digits, is told up to that far from where it was
# asked.
_ROUNDED = 1e-6
# One that is told this near, but not as near, is most likely the one asked, moved.
_MOVED = 1e-3

TOLD = "told"
"""The reason for a point that was never asked: somebody told it."""


@final
class Pending:
    """An ordered collection of points, user units.

    A point is unclaimed if a process that has ended had asked for it: it is handed out again.
    """

    def __init__(self, box: Box) -> None:
        """No points, of this box."""
        self._box = box
        self._x = np.empty((0, box.dim))
        self._reasons: list[str] = []
        self._claimed: list[bool] = []

    @property
    def x(self) -> Array:
        """The points (m, d)."""
        return self._x.copy()

    @property
    def units(self) -> Array:
        """The points in the unit cube."""
        return self._box.to_unit(self._x)

    @property
    def reasons(self) -> list[str]:
        """Why each was proposed."""
        return list(self._reasons)

    def add(self, x: Array, reasons: Sequence[str]) -> None:
        """Points were asked."""
        self._x = np.concatenate([self._x, x])
        self._reasons += reasons
        self._claimed += [True] * len(x)

    def as_asked(self, x: Array) -> Array:
        """Points that are told, `n x d` in user units, without rounding errors: where a pending one is meant, that one.

        A search on its way from point to point would ask for the exact one again, and again get the rounded one.
        """
        told = self._box.to_unit(x)  # refuses points outside
        if not self._reasons:
            return x
        meant, pending = x.copy(), self.units
        for i, unit in enumerate(told):
            row, distance = nearest(pending, unit)
            if SAME_POINT < distance <= _ROUNDED:
                meant[i] = self._x[row]
            elif _ROUNDED < distance <= _MOVED:
                warn_user(
                    f"told x = {x[i].tolist()}, which is next to x = {self._x[row].tolist()}, asked and still pending; "
                    "tell the point as it was asked, with all its digits, or the study waits for it"
                )
        return meant

    def drop(self, unit: Array) -> str:
        """A point was told, `d` in the unit cube; returns why it had been asked."""
        if not self._reasons:  # thousands may be told at once that were never asked
            return TOLD
        row, distance = nearest(self.units, unit)
        if distance > SAME_POINT:
            return TOLD
        self._x = np.delete(self._x, row, axis=0)
        del self._claimed[row]
        return self._reasons.pop(row)

    def unclaim(self) -> None:
        """Nobody has the points any more."""
        self._claimed = [False] * len(self._claimed)

    def unclaimed(self, most: int) -> list[int]:
        """The first rows that nobody has."""
        return [row for row, claimed in enumerate(self._claimed) if not claimed][:most]

    def claim(self, rows: Sequence[int]) -> Array:
        """Hand these rows out again; returns the points."""
        for row in rows:
            self._claimed[row] = True
        return self._x[list(rows)]
