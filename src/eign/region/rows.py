r"""Linear rows, lower <= A x <= upper, at the border: what is handed out to a user satisfies them exactly.

| symbol | meaning |
|---|---|
| A, lower, upper | the rows as a user gives them, `k x d, k, k` |
| x, u | a point in user units and in the cube: x = low + width u on linear scales |
"""

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from eign.arrays import Array, Mask
from eign.constraints import LinearRows
from eign.space import Box

if TYPE_CHECKING:
    from eign.region.polytope import Region

EQUALITY: Final = 1e-12
"""An equality holds to this share of the size of the numbers in its row."""

# A suggestion is pulled towards the middle of the region by the first of these shares that brings it inside, after
# rounding. Rows that only allow equality are never inside by a margin: for them there is no more than the first part.
_SHARES: Final = (0.0, *np.ldexp(1.0, np.arange(-53, 1)).tolist())
_TINY_SHARES: Final = tuple(share for share in _SHARES if share <= 2.0**-33)
_EPS: Final = float(np.finfo(np.float64).eps)


def row_scales(rows: LinearRows, box: Box) -> Array:
    """The size of the numbers in each row, `k`: what 1e-12 of a row's scale refers to."""
    largest = np.abs(rows.A) @ np.maximum(np.abs(box.lower), np.abs(box.upper))
    return np.asarray(np.where(rows.is_equality, np.maximum(largest, np.abs(rows.lower)), largest))


def row_excess(rows: LinearRows, x: Array) -> Array:
    """By how much a row is beyond a limit as NumPy computes it, `... x d -> ... x k`; negative is inside."""
    value = x @ rows.A.T
    return np.asarray(np.maximum(rows.lower - value, value - rows.upper))


def user_point(u: Array, rows: LinearRows, box: Box, region: "Region") -> Array:
    """A point of the cube as a user gets it, `free_dim -> d`: inequalities hold exactly, equalities to `EQUALITY`.

    Rounding on the way to user units may leave a point beyond a row that it lies on. It is then pulled towards the
    middle of the region, by shares from 1e-16 on, until all rows hold whatever the order of the sum is. Rows that
    leave no room, as x <= 1 and x >= 1 together, hold as equalities do.

    Args:
        u: A point of the region, or near it: the nearest point of the region is taken.
        rows: In user units.
        box: From user units to the cube.
        region: Of the rows in the cube, see `Box.linear_to_unit`.
    """
    x = box.from_unit(region.project(u))
    middle = box.from_unit(region.center)
    is_touched = (rows.A != 0.0).any(axis=0)
    flat = region.is_flat(rows)
    attempts = [(share, rows.is_equality) for share in _TINY_SHARES] + [(share, flat) for share in _SHARES]
    for share, as_equality in attempts:
        pulled = np.where(is_touched, (1.0 - share) * x + share * middle, x) if share else x
        pulled = np.clip(pulled, box.lower, box.upper)
        if _holds(pulled, rows, box, as_equality):
            return pulled
    return x


def _holds(x: Array, rows: LinearRows, box: Box, as_equality: Mask) -> bool:
    """Whether inequalities hold exactly in every order of summation, and the others to `EQUALITY`."""
    excess = row_excess(rows, x)
    rounding = (len(x) + 2) * _EPS * (np.abs(rows.A) @ np.abs(x))
    is_clear = excess + rounding <= 0.0
    if is_clear.all():
        return True
    is_close = as_equality & (excess <= EQUALITY * row_scales(rows, box))
    doubtful = np.flatnonzero(~is_clear & ~is_close)
    return bool((excess[doubtful] <= 0.0).all()) and all(_holds_exactly(x, rows, int(row)) for row in doubtful)


def _holds_exactly(x: Array, rows: LinearRows, row: int) -> bool:
    """In rational arithmetic, for what is too close to call."""
    entries = zip(rows.A[row].tolist(), x.tolist(), strict=True)
    value = sum((Fraction(entry) * Fraction(one) for entry, one in entries), Fraction(0))
    low, high = float(rows.lower[row]), float(rows.upper[row])
    return (low == -np.inf or value >= Fraction(low)) and (high == np.inf or value <= Fraction(high))
