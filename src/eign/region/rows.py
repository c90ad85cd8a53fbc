r"""Linear rows, lower <= A x <= upper: in user units, in the unit cube, and on the way back.

| symbol | meaning |
|---|---|
| A, lower, upper | the rows as a user gives them, `k x d, k, k` |
| x, u | a point in user units and in the cube: x = low + width u on linear scales |

In the cube a row is A width u, its limits are less A low, and it is divided by its largest entry. All of that is exact
rational arithmetic, rounded once: with bounds of 1e12 and a width of 1 floating point would leave four digits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from eign.arrays import LARGEST, Array, Mask, as_floats, read_only
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


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows lower <= A x <= upper; infinite where open, the same number twice for an equality.

    Attributes:
        matrix: A, `k x d`.
        lower: `k`.
        upper: `k`.
        labels: What a user calls the rows, for errors, `k`.
    """

    matrix: Array
    lower: Array
    upper: Array
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        matrix = as_floats(self.matrix, "A")
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise ValueError(f"A has shape {matrix.shape}, expected (k, d) with finite entries: {self.matrix!r}")
        count = len(matrix)
        for name in ("lower", "upper"):
            limit = np.broadcast_to(as_floats(getattr(self, name), name), count)
            object.__setattr__(self, name, read_only(np.array(limit)))
        labels = tuple(self.labels) or tuple(f"row {row}" for row in range(count))
        if len(labels) != count:
            raise ValueError(f"expected {count} labels, one for each row, got {len(labels)}: {labels!r}")
        for label, low, high in zip(labels, self.lower.tolist(), self.upper.tolist(), strict=True):
            if not low <= high or low == np.inf or high == -np.inf:
                raise ValueError(f"{label}: limits ({low!r}, {high!r}), expected lower <= upper")
        object.__setattr__(self, "matrix", read_only(matrix))
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.matrix)

    def to_json(self) -> dict[str, Any]:
        """Plain lists with None for an open limit, from which `from_json` builds equal rows."""
        limits = {
            name: [None if np.isinf(one) else one for one in getattr(self, name).tolist()]
            for name in ("lower", "upper")
        }
        return {"matrix": self.matrix.tolist(), **limits, "labels": list(self.labels)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Rows":
        """The rows that `to_json` described."""
        lower = [-np.inf if one is None else one for one in stored["lower"]]
        upper = [np.inf if one is None else one for one in stored["upper"]]
        return cls(
            np.array(stored["matrix"], dtype=np.float64), np.array(lower), np.array(upper), tuple(stored["labels"])
        )

    def are_equalities(self) -> Mask:
        """Which rows have one limit twice, `k`."""
        return np.asarray(self.lower == self.upper)

    def scales(self, box: Box) -> Array:
        """The size of the numbers in each row, `k`: what 1e-12 of a row's scale refers to."""
        largest = np.abs(self.matrix) @ np.maximum(np.abs(box.lower), np.abs(box.upper))
        limits = np.where(np.isfinite(self.lower), np.abs(self.lower), 0.0)
        return np.asarray(np.maximum(largest, np.where(self.are_equalities(), limits, 0.0)))

    def excess(self, x: Array) -> Array:
        """By how much a row is beyond a limit as NumPy computes it, `... x d -> ... x k`; negative is inside."""
        value = x @ self.matrix.T
        return np.asarray(np.maximum(self.lower - value, value - self.upper))


def rows_in_cube(rows: Rows, box: Box) -> Rows:
    """The rows for the free coordinates of the unit cube; fixed coordinates go into the limits.

    >>> cube = rows_in_cube(Rows([[1.0, 2.0]], -np.inf, 5.0), Box([(0, 4), (1, 2)]))
    >>> cube.matrix.tolist(), cube.upper.tolist()
    ([[1.0, 0.5]], [0.75])

    Raises:
        ValueError: A row touches a coordinate on a log scale, where it is no linear row in the cube.
    """
    if rows.matrix.shape[1] != box.dim:
        raise ValueError(f"linear constraints have {rows.matrix.shape[1]} coordinates, the box has {box.dim}")
    touched = (rows.matrix != 0.0) & box.log & box.free
    if touched.any():
        row, column = (int(one) for one in np.argwhere(touched)[0])
        name = f"coordinate {column}" if box.names is None else repr(box.names[column])
        raise ValueError(
            f"{rows.labels[row]}: {name} is on a log scale, where a linear constraint is not linear for the method; "
            "put the coordinate on a linear scale, or give the constraint as a function (NonlinearConstraint)"
        )
    free = np.flatnonzero(box.free)
    low = [Fraction(one) for one in box.lower.tolist()]
    width = {int(i): Fraction(float(box.upper[i])) - low[i] for i in free}
    matrix, limits = np.zeros((len(rows), len(free))), np.empty((2, len(rows)))
    for row, entries in enumerate(rows.matrix.tolist()):
        exact = [Fraction(one) for one in entries]
        shift = sum((entry * base for entry, base in zip(exact, low, strict=True)), Fraction(0))
        scaled = [exact[i] * width[i] for i in width]
        size = max((abs(one) for one in scaled), default=Fraction(0)) or Fraction(1)
        matrix[row] = [float(one / size) for one in scaled]
        for side, limit in enumerate((rows.lower, rows.upper)):
            limits[side, row] = _shifted(float(limit[row]), shift, size)
    return Rows(matrix, limits[0], limits[1], rows.labels)


def _shifted(limit: float, shift: Fraction, size: Fraction) -> float:
    """(limit - shift) / size; the largest numbers stand for what is beyond them."""
    if not np.isfinite(limit):
        return limit
    exact = (Fraction(limit) - shift) / size
    return float(max(min(exact, Fraction(LARGEST)), Fraction(-LARGEST)))


def user_point(u: Array, rows: Rows, box: Box, region: "Region") -> Array:
    """A point of the cube as a user gets it, `free_dim -> d`: inequalities hold exactly, equalities to `EQUALITY`.

    Rounding on the way to user units may leave a point beyond a row that it lies on. It is then pulled towards the
    middle of the region, by shares from 1e-16 on, until all rows hold whatever the order of the sum is. Rows that
    leave no room, as x <= 1 and x >= 1 together, hold as equalities do.

    Args:
        u: A point of the region, or near it: the nearest point of the region is taken.
        rows: In user units.
        box: From user units to the cube.
        region: Of `rows_in_cube(rows, box)`.
    """
    x = box.from_unit(region.project(u))
    middle = box.from_unit(region.center)
    is_touched = (rows.matrix != 0.0).any(axis=0)
    flat = region.is_flat(rows)
    attempts = [(share, rows.are_equalities()) for share in _TINY_SHARES] + [(share, flat) for share in _SHARES]
    for share, as_equality in attempts:
        pulled = np.where(is_touched, (1.0 - share) * x + share * middle, x) if share else x
        pulled = np.clip(pulled, box.lower, box.upper)
        if _holds(pulled, rows, box, as_equality):
            return pulled
    return x


def _holds(x: Array, rows: Rows, box: Box, as_equality: Mask) -> bool:
    """Whether inequalities hold exactly in every order of summation, and the others to `EQUALITY`."""
    excess = rows.excess(x)
    rounding = (len(x) + 2) * _EPS * (np.abs(rows.matrix) @ np.abs(x))
    is_clear = excess + rounding <= 0.0
    if is_clear.all():
        return True
    is_close = as_equality & (excess <= EQUALITY * rows.scales(box))
    doubtful = np.flatnonzero(~is_clear & ~is_close)
    return bool((excess[doubtful] <= 0.0).all()) and all(_holds_exactly(x, rows, int(row)) for row in doubtful)


def _holds_exactly(x: Array, rows: Rows, row: int) -> bool:
    """In rational arithmetic, for what is too close to call."""
    entries: Sequence[tuple[float, float]] = list(zip(rows.matrix[row].tolist(), x.tolist(), strict=True))
    value = sum((Fraction(entry) * Fraction(one) for entry, one in entries), Fraction(0))
    low, high = float(rows.lower[row]), float(rows.upper[row])
    return (low == -np.inf or value >= Fraction(low)) and (high == np.inf or value <= Fraction(high))
