"""Constraints: what is allowed, how far a point is from it, and in which units that is small.

| name | shape | meaning |
|---|---|---|
| m | | number of black-box constraints: outputs of an evaluation, known only where something was evaluated |
| `lower`, `upper` | m | limits of the values c: lower <= c(x) <= upper; equal for an equality, infinite where open |
| `A` | k x d | known linear rows: lower <= A x <= upper, user units; they cost nothing |

Limits and rows are in user units throughout. The sign of a constraint never turns, whatever is done with the objective.
"""

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array, Mask, as_floats, read_only

FEASIBILITY_TOL: Final = 1e-6
"""By how much of its scale a constraint may be violated at a point that counts as feasible, unless the user says."""

# A constraint's scale is the largest median over so many of its first values or fewer. Later ones gather at the limit,
# and a scale that shrank with them would make feasible points infeasible.
_FIRST_VALUES: Final = (4, 32)


@final
@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Limits:
    """The black-box constraints of a study: names and limits.

    >>> limits = Limits(["stress", "mass"], [-np.inf, 1.0], [250.0, 1.0])
    >>> limits
    Limits(stress <= 250, mass == 1)
    >>> limits.violation([300.0, 0.5])
    array([50. ,  0.5])

    Attributes:
        names: One for each, all different.
        lower: The least value allowed `m`, -inf where there is none.
        upper: The largest value allowed `m`, inf where there is none.
    """

    names: tuple[str, ...]
    lower: Array
    upper: Array

    def __init__(self, names: Sequence[str] = (), lower: ArrayLike = (), upper: ArrayLike = ()) -> None:
        """Check and copy; without arguments there are no constraints."""
        object.__setattr__(self, "names", _checked_names(names, "constraint"))
        object.__setattr__(self, "lower", _limits(lower, "lower"))
        object.__setattr__(self, "upper", _limits(upper, "upper"))
        _check_limits(self.names, self.lower, self.upper)

    @property
    def is_equality(self) -> Mask:
        """Which limits are equal `m`."""
        return np.asarray(self.lower == self.upper)

    def violation(self, values: ArrayLike) -> Array:
        """By how much values are outside the limits, `... x m -> ... x m`; 0 inside, NaN where the value is unknown."""
        return violation(values, self.lower, self.upper)

    def scales(self, values: ArrayLike) -> Array:
        """What differences of each constraint are measured in, `n x m -> m`; see `scales`."""
        return scales(values, self.lower, self.upper)

    def texts(self) -> dict[str, str]:
        """What is allowed for each constraint, in words.

        >>> Limits(["stress", "mass"], [-np.inf, 1.0], [250.0, 2.0]).texts()
        {'stress': 'at most 250', 'mass': 'from 1 to 2'}
        """
        pairs = zip(self.names, self.lower.tolist(), self.upper.tolist(), strict=True)
        return {name: _words(low, high) for name, low, high in pairs}

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds equal limits; a side that is open is None."""
        return {"names": list(self.names), "lower": _closed(self.lower), "upper": _closed(self.upper)}

    @classmethod
    def from_json(cls, stored: Any) -> "Limits":
        """The limits that `to_json` described.

        Raises:
            ValueError: it described none.
        """
        if not isinstance(stored, Mapping) or set(stored) != {"names", "lower", "upper"}:
            raise ValueError(f"expected constraints stored as names, lower and upper, got {reprlib.repr(stored)}")
        return cls(stored["names"], _opened(stored["lower"], -math.inf), _opened(stored["upper"], math.inf))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Limits({', '.join(_texts(self.names, self.lower, self.upper))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # arrays make a poor key


@final
@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class LinearRows:
    """Known linear constraints lower <= A x <= upper, in user units.

    >>> LinearRows([[1.0, 1.0]], [-np.inf], [1.0], ["length"])
    LinearRows(length <= 1)

    Attributes:
        A: `k x d`.
        lower: `k`, -inf where there is none.
        upper: `k`, inf where there is none.
        labels: What each row is called in messages `k`.
    """

    A: Array
    lower: Array
    upper: Array
    labels: tuple[str, ...]

    def __init__(
        self, A: ArrayLike = ((),), lower: ArrayLike = (), upper: ArrayLike = (), labels: Sequence[str] = ()
    ) -> None:
        """Check and copy; without arguments there are no rows."""
        rows = as_floats(A, "A")
        object.__setattr__(self, "A", read_only(rows if rows.size else np.empty((0, 0))))
        object.__setattr__(self, "lower", _limits(lower, "lower"))
        object.__setattr__(self, "upper", _limits(upper, "upper"))
        given = labels or [f"row {i}" for i in range(len(self.A))]
        object.__setattr__(self, "labels", _checked_names(given, "row"))
        if self.A.ndim != 2 or len(self.A) != len(self.labels):
            raise ValueError(f"A has shape {self.A.shape}, expected ({len(self.labels)}, d): one row a constraint")
        if not np.isfinite(self.A).all():
            raise ValueError(f"A must be finite, got {self.A[~np.isfinite(self.A).all(axis=1)][0].tolist()}")
        _check_limits(self.labels, self.lower, self.upper)

    @property
    def is_equality(self) -> Mask:
        """Which rows are equations `k`."""
        return np.asarray(self.lower == self.upper)

    def violation(self, x: ArrayLike) -> Array:
        """By how much A x is outside its limits, `... x d -> ... x k`."""
        return violation(as_floats(x, "x") @ self.A.T, self.lower, self.upper)

    def scales(self, lower: Array, upper: Array) -> Array:
        """By how much each row varies over a box, `d, d -> k`; 1 where it does not."""
        span = np.abs(self.A) @ (upper - lower)
        return np.where(span > 0.0, span, 1.0)

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds equal rows; a side that is open is None."""
        limits = {"lower": _closed(self.lower), "upper": _closed(self.upper)}
        return {"A": self.A.tolist(), **limits, "labels": list(self.labels)}

    @classmethod
    def from_json(cls, stored: Any) -> "LinearRows":
        """The rows that `to_json` described.

        Raises:
            ValueError: it described none.
        """
        if not isinstance(stored, Mapping) or set(stored) != {"A", "lower", "upper", "labels"}:
            raise ValueError(f"expected rows stored as A, lower, upper and labels, got {reprlib.repr(stored)}")
        if not stored["A"]:
            return cls()
        lower, upper = _opened(stored["lower"], -math.inf), _opened(stored["upper"], math.inf)
        return cls(stored["A"], lower, upper, stored["labels"])

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"LinearRows({', '.join(_texts(self.labels, self.lower, self.upper))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearRows) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # arrays make a poor key


def violation(values: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
    """max(lower - c, c - upper, 0), entry by entry; NaN where c is not known, an infinite one included."""
    values, lower, upper = np.asarray(values, dtype=np.float64), np.asarray(lower), np.asarray(upper)
    known = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(over="ignore"):  # farther away than the largest float
        return np.asarray(np.maximum(np.maximum(lower - known, known - upper), 0.0))


def is_feasible(values: ArrayLike, lower: ArrayLike, upper: ArrayLike, tol: ArrayLike = 0.0) -> Mask:
    """Whether all constraints hold up to `tol` (one or m, in their units), `... x m -> ...`; not if one is unknown.

    >>> is_feasible([[0.5], [1.5], [np.nan]], [-np.inf], [1.0], tol=0.1)
    array([ True, False, False])
    """
    return np.asarray((violation(values, lower, upper) <= np.asarray(tol)).all(axis=-1))


def scales(values: ArrayLike, lower: Array, upper: Array) -> Array:
    """What differences of each constraint are measured in, `n x m -> m`: positive, in the constraint's units.

    The largest of the median distances of its first 4, 5 ... 32 values from the nearer limit, so that values which
    gather there make it no smaller; where that is 0, the largest distance, the size of the limit, or 1.

    >>> scales([[3.0], [5.0], [9.0]], np.array([-np.inf]), np.array([1.0]))
    array([4.])
    """
    values = np.asarray(values, dtype=np.float64)
    return np.array([_scale(values[:, i], lower[i], upper[i]) for i in range(len(lower))])


def relative_excess(violations: Array, scale: Array) -> Array:
    """The largest violation of each point in units of the scales, `n x m, m -> n`; inf if one is unknown.

    >>> relative_excess(np.array([[0.0, 3.0], [np.nan, 0.0]]), np.array([1.0, 10.0]))
    array([0.3, inf])
    """
    with np.errstate(over="ignore"):
        relative = violations / scale
    return np.asarray(np.where(np.isnan(relative), np.inf, relative).max(axis=1, initial=0.0))


def best_row(y: Array, excess: Array, tol: float) -> int:
    """The row of the largest y with an excess of at most `tol`; if there is none, of the least excess, then largest y.

    Args:
        y: Values to be maximised `n`, NaN where one is missing; one at least is known.
        excess: See `relative_excess`, `n`.
        tol: What counts as feasible.
    """
    known = np.flatnonzero(np.isfinite(y))
    feasible = known[excess[known] <= tol]
    if not len(feasible):
        feasible = known[excess[known] == excess[known].min()]
    return int(feasible[np.argmax(y[feasible])])


def _scale(values: Array, lower: float, upper: float) -> float:
    fewest, most = _FIRST_VALUES
    first = values[np.isfinite(values)][:most]
    size = max(abs(limit) for limit in (lower, upper, 0.0) if math.isfinite(limit))
    with np.errstate(over="ignore"):  # an infinite scale is none
        distance = np.minimum(np.abs(first - lower), np.abs(first - upper))
        counts = range(min(fewest, len(distance)), len(distance) + 1)
        tried = (max(float(np.median(distance[:k])) for k in counts), float(distance.max())) if len(distance) else ()
    return next((scale for scale in (*tried, size) if 0.0 < scale < math.inf), 1.0)


def _limits(limits: ArrayLike, what: str) -> Array:
    return read_only(as_floats(limits if np.size(limits) else np.empty(0), what))


def _checked_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    given: list[object] = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) and name for name in given):
        raise TypeError(f"a {what} is named by a text, got {given!r}")
    if len(set(given)) != len(given):
        raise ValueError(f"names of {what}s must differ from each other, got {given!r}")
    return tuple(str(name) for name in given)


def _check_limits(names: Sequence[str], lower: Array, upper: Array) -> None:
    if lower.shape != (len(names),) or upper.shape != (len(names),):
        raise ValueError(f"limits have shapes {lower.shape} and {upper.shape}, expected ({len(names)},) twice")
    for name, low, high in zip(names, lower.tolist(), upper.tolist(), strict=True):
        got = f"got ({low!r}, {high!r}) for {name!r}"
        if math.isnan(low) or math.isnan(high):
            raise ValueError(f"limits must be numbers, {got}; a side that is open is None or infinite")
        if low > high:
            raise ValueError(f"limits are reversed, {got}; expected lower <= upper")
        if low == math.inf or high == -math.inf:
            raise ValueError(f"limits that nothing can satisfy, {got}")
        if math.isinf(low) and math.isinf(high):
            raise ValueError(f"limits that allow everything, {got}; give one side at least, or leave it out")


def _texts(names: Sequence[str], lower: Array, upper: Array) -> list[str]:
    """Each constraint as one would write it."""
    texts = []
    for name, low, high in zip(names, lower.tolist(), upper.tolist(), strict=True):
        if low == high:
            texts.append(f"{name} == {low:g}")
        else:
            left = f"{low:g} <= " if math.isfinite(low) else ""
            texts.append(f"{left}{name}" + (f" <= {high:g}" if math.isfinite(high) else ""))
    return texts


def _words(low: float, high: float) -> str:
    if low == high:
        return f"equal to {low:g}"
    if math.isinf(low):
        return f"at most {high:g}"
    return f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"


def _closed(limits: Array) -> list[float | None]:
    return [float(limit) if math.isfinite(limit) else None for limit in limits]


def _opened(limits: Any, open_side: float) -> list[float]:
    if not isinstance(limits, list):
        raise ValueError(f"expected a list of limits, got {reprlib.repr(limits)}")
    return [open_side if limit is None else limit for limit in limits]
