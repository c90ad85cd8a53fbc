"""The box of a problem: user units at the border, the unit cube inside.

For a coordinate x in [low, high] and u in [0, 1]:

| scale  | u(x)                            | x(u)                   | dx/du               |
|--------|---------------------------------|------------------------|---------------------|
| linear | (x - low) / (high - low)        | low + u (high - low)   | high - low          |
| log    | log(x / low) / log(high / low)  | low (high / low)**u    | x log(high / low)   |
| fixed  | not a coordinate of the cube    | low, which is high     |                     |
"""

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eign.arrays import LARGEST, Array, Factor, Mask, as_floats, read_only, times_power

# Arithmetic in user units may push a point off the border by some roundings; it still belongs to the box.
_BORDER_SLACK = 8 * float(np.finfo(np.float64).eps)

SAME_POINT = 1e-9
"""Points of the unit cube nearer than this in every coordinate are one: mapping to user units and back moves less."""


class LowerUpper(Protocol):
    """What `scipy.optimize.Bounds` looks like; asking for the attributes spares the import of SciPy."""

    lb: Any
    ub: Any


@final
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Box:
    """The region that is searched, with the scale of each coordinate.

    Coordinates with low == high are fixed: they stay in every user point and are no coordinate of the unit cube.

    >>> box = Box({"rate": (1e-4, 1.0), "width": (0.0, 8.0), "depth": (3, 3)}, log=["rate"])
    >>> box.to_unit([0.01, 2.0, 3.0])
    array([0.5 , 0.25])
    >>> box.as_dict(box.from_unit([0.0, 0.5]))
    {'rate': 0.0001, 'width': 4.0, 'depth': 3.0}

    Attributes:
        lower: lower bounds (d,), read-only.
        upper: upper bounds (d,), read-only.
        log: which coordinates are on a log scale (d,), read-only.
        names: the names of the coordinates, or None.
    """

    lower: Array
    upper: Array
    log: Mask
    names: tuple[str, ...] | None

    def __init__(
        self,
        bounds: "Box | LowerUpper | Mapping[str, Any] | Sequence[Any] | ArrayLike",
        *,
        log: Iterable[int | str] | str | int | None = (),
        names: Iterable[str] | None = None,
    ) -> None:
        """Check the bounds and keep copies of them.

        Args:
            bounds: (low, high) pairs as a sequence, an array (d, 2) or a dict name -> pair; `scipy.optimize.Bounds`;
                or a `Box`, whose scales and names carry over.
            log: indices or names of the coordinates on a log scale, or a mask of d booleans.
            names: the names of the coordinates, unless the dict has them already.
        """
        if isinstance(bounds, Mapping):
            if names is not None:
                raise ValueError(f"names: a dict of bounds has its own, got names={names!r} too; leave one out")
            names = list(bounds)
        elif isinstance(bounds, Box) and names is None:
            names = bounds.names
        lower, upper = _lower_and_upper(bounds)
        checked_names = _checked_names(names, len(lower))
        _check_bounds(lower, upper, checked_names)
        on_log = _log_mask(log, checked_names, len(lower))
        if isinstance(bounds, Box):
            on_log |= bounds.log
        for i in np.flatnonzero(on_log & (lower <= 0)):
            got = f"got low = {float(lower[i])!r} for {_label(i, checked_names)}"
            raise ValueError(f"a log scale needs low > 0, {got}; raise it, or leave this coordinate on a linear scale")
        on_log.flags.writeable = False
        # Adding zero turns -0.0 into 0.0, so that equal boxes have equal bytes, and equal hashes.
        object.__setattr__(self, "lower", read_only(lower + 0.0))
        object.__setattr__(self, "upper", read_only(upper + 0.0))
        object.__setattr__(self, "log", on_log)
        object.__setattr__(self, "names", checked_names)

    @property
    def dim(self) -> int:
        """Number of coordinates of a user point, fixed ones included."""
        return len(self.lower)

    @property
    def free(self) -> Mask:
        """Which coordinates are searched (d,)."""
        return self.lower < self.upper

    @property
    def free_dim(self) -> int:
        """Number of coordinates of the unit cube."""
        return int(self.free.sum())

    @property
    def resolution(self) -> Array:
        """The distance in the unit cube of neighbouring user points in floating point, at most (free_dim,).

        >>> Box([(0, 1), (1e9, 1e9 + 1)]).resolution.round(9)
        array([0.00e+00, 1.19e-07])
        """
        ends = np.maximum(np.abs(self.lower), np.abs(self.upper))[self.free]
        return np.asarray(np.spacing(ends) / self.unit_scale(self.upper))

    @property
    def decades(self) -> Array:
        """How many powers of ten the free coordinates span on a linear scale; 0 on a log scale, and unless low > 0.

        >>> Box([(0.1, 10), (1, 1000), (-1, 1)], log=[1]).decades
        array([2., 0., 0.])
        """
        low, high, log = self._free_bounds()
        positive = ~log & (low > 0)
        return np.asarray(np.log10(np.where(positive, high, 1.0)) - np.log10(np.where(positive, low, 1.0)))

    def to_unit(self, x: ArrayLike) -> Array:
        """User units to the unit cube, `... x d -> ... x free_dim`; the border goes to exactly 0 and 1.

        Raises:
            ValueError: a point is outside the box by more than rounding.
        """
        x, low, high, log = self._checked(x)[..., self.free], *self._free_bounds()
        u = np.empty_like(x)
        u[..., ~log] = _linear_to_unit(x[..., ~log], low[~log], high[~log])
        u[..., log] = _log_ratio(x[..., log], low[log]) / _log_ratio(high[log], low[log])
        # The quotient at the upper bound need not be 1: a vectorised logarithm may round differently in its last lanes.
        return np.where(x >= high, 1.0, np.clip(u, 0.0, 1.0))

    def from_unit(self, u: ArrayLike) -> Array:
        """The unit cube to user units, `... x free_dim -> ... x d`; 0 and 1 go to exactly the bounds.

        Raises:
            ValueError: a point is outside the unit cube by more than rounding.
        """
        u = as_floats(u, "u")
        if u.ndim == 0 or u.shape[-1] != self.free_dim:
            raise ValueError(f"u has shape {u.shape}, expected (..., {self.free_dim}): one entry a free coordinate")
        inside = (u >= -_BORDER_SLACK) & (u <= 1.0 + _BORDER_SLACK)
        if not inside.all():
            where = tuple(np.argwhere(~inside)[0])
            label = _label(np.flatnonzero(self.free)[where[-1]], self.names)
            raise ValueError(f"u is outside the unit cube: {float(u[where])!r} for {label}, expected 0 <= u <= 1")
        low, high, log = self._free_bounds()
        inner = np.empty_like(u)
        inner[..., ~log] = _linear_from_unit(u[..., ~log], low[~log], high[~log])
        inner[..., log] = _times_exp(low[log], u[..., log] * _log_ratio(high[log], low[log]))
        x = np.broadcast_to(self.lower, (*u.shape[:-1], self.dim)).copy()
        x[..., self.free] = np.where(u <= 0.0, low, np.where(u >= 1.0, high, np.clip(inner, low, high)))
        return x

    def unit_scale(self, x: ArrayLike) -> Array:
        """dx/du at x, `... x d -> ... x free_dim`: the width, or x log(high / low) on a log scale.

        >>> Box([(-2, 3), (1, 100)], log=[1]).unit_scale([0, 10]).round(3)
        array([ 5.   , 46.052])
        """
        return self.times_unit_scale(1.0, x)

    def times_unit_scale(self, values: ArrayLike, x: ArrayLike, *, power: int = 1) -> Array:
        """The chain rule, values * (dx/du)**power at x: `... x free_dim, ... x d -> ... x free_dim`.

        Power 1 takes gradients into the cube and 2 their variances; -1 and -2 bring them back. Safe from overflow.
        """
        x, low, high, log = self._checked(x)[..., self.free], *self._free_bounds()
        mantissa, exponent = np.empty_like(x), np.empty(x.shape, dtype=np.int32)
        mantissa[..., ~log], exponent[..., ~log] = _linear_factor(low[~log], high[~log])
        mantissa[..., log], exponent[..., log] = _log_factor(x[..., log], low[log], high[log])
        return times_power(as_floats(values, "values"), (mantissa, exponent), power)

    def linear_to_unit(self, A: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array, Array]:
        """Rows lower <= A x <= upper as rows of the unit cube's points: `k x d, k, k -> k x free_dim, k, k`.

        >>> Box([(1, 3), (2, 2)]).linear_to_unit([[1.0, 10.0]], [-np.inf], [22.0])
        (array([[2.]]), array([-inf]), array([1.]))

        Raises:
            ValueError: a row has another number of coordinates, or a coordinate on a log scale: it is linear in x and
                would not be in the cube.
        """
        rows, free = np.atleast_2d(as_floats(A, "A")), self.free
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ValueError(f"A has shape {rows.shape}, expected (k, {self.dim}): one column a coordinate")
        bent = np.argwhere((rows != 0.0) & self.log & free)
        if len(bent):
            label = _label(bent[0][1], self.names)
            raise ValueError(
                f"a linear constraint on {label}, which has a log scale: it would not be linear where the search is; "
                "give that coordinate a linear scale, or the constraint as a function (a NonlinearConstraint)"
            )
        # In rational arithmetic, rounded once: with bounds of 1e12 and a width of 1, floats would leave four digits.
        low, high = ([Fraction(bound) for bound in bounds.tolist()] for bounds in (self.lower, self.upper))
        exact = [[Fraction(entry) for entry in row] for row in rows.tolist()]
        matrix = [[_rounded(row[i] * (high[i] - low[i])) for i in np.flatnonzero(free)] for row in exact]
        offsets = [sum((entry * base for entry, base in zip(row, low, strict=True)), Fraction(0)) for row in exact]
        sides = (np.broadcast_to(as_floats(limits, "limits"), len(rows)).tolist() for limits in (lower, upper))
        moved = [
            [
                _rounded(Fraction(one) - offset) if np.isfinite(one) else one
                for one, offset in zip(side, offsets, strict=True)
            ]
            for side in sides
        ]
        return np.array(matrix).reshape(len(rows), self.free_dim), np.array(moved[0]), np.array(moved[1])

    def contains(self, x: ArrayLike) -> Mask:
        """Whether the points lie in the box, border included, `... x d -> ...`; NaN is nowhere."""
        x = self._shaped(x)
        return np.asarray(((x >= self.lower) & (x <= self.upper)).all(axis=-1))

    def as_dict(self, x: ArrayLike) -> dict[str, float]:
        """One point (d,) as a dict name -> value."""
        names, point = self._required_names(), self._shaped(x)
        if point.ndim != 1:
            raise ValueError(f"as_dict takes one point, x of shape ({self.dim},), got shape {point.shape}")
        return dict(zip(names, point.tolist(), strict=True))

    def from_dict(self, point: Mapping[str, float]) -> Array:
        """A dict name -> value as a point (d,); fixed coordinates may be left out."""
        names = self._required_names()
        unknown = [name for name in point if name not in names]
        missing = [name for name, free in zip(names, self.free, strict=True) if free and name not in point]
        if unknown or missing:
            wrong = [f"has unknown names {unknown}"] * bool(unknown) + [f"lacks {missing}"] * bool(missing)
            raise ValueError(f"point {' and '.join(wrong)}; expected {list(names)}")
        values = [point.get(name, low) for name, low in zip(names, self.lower, strict=True)]
        return as_floats(values, "point")

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers, from which `from_json` builds an equal box."""
        return {
            "bounds": np.column_stack([self.lower, self.upper]).tolist(),
            "log": np.flatnonzero(self.log).tolist(),
            "names": None if self.names is None else list(self.names),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Box":
        """The box that `to_json` described."""
        if set(stored) != {"bounds", "log", "names"}:
            raise ValueError(f"expected a box stored as bounds, log and names, got {reprlib.repr(stored)}")
        return cls(stored["bounds"], log=stored["log"], names=stored["names"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Box.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        pairs = list(zip(self.lower.tolist(), self.upper.tolist(), strict=True))
        bounds = pairs if self.names is None else dict(zip(self.names, pairs, strict=True))
        log = [i if self.names is None else self.names[i] for i in np.flatnonzero(self.log).tolist()]
        return f"Box({bounds!r}, log={log!r})" if log else f"Box({bounds!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.lower.tobytes(), self.upper.tobytes(), self.log.tobytes(), self.names

    def _free_bounds(self) -> tuple[Array, Array, Mask]:
        free = self.free
        return self.lower[free], self.upper[free], self.log[free]

    def _required_names(self) -> tuple[str, ...]:
        if self.names is None:
            raise ValueError("this box has no names; make it with a dict of bounds, or with names=[...]")
        return self.names

    def within_single_precision(self, x: ArrayLike) -> Array:
        """Points that were rounded to single precision: on the border where that took them across, `... x d`.

        >>> Box([(0, 0.1)]).within_single_precision(np.float32([0.1]))
        array([0.1])
        """
        points = self._shaped(x)
        near = np.clip(points, self.lower, self.upper)
        return np.asarray(np.where(near.astype(np.float32) == points.astype(np.float32), near, points))

    def _shaped(self, x: ArrayLike) -> Array:
        array = as_floats(x, "x")
        if array.ndim == 0 or array.shape[-1] != self.dim:
            raise ValueError(f"x has shape {array.shape}, expected (..., {self.dim}): one entry a coordinate")
        return array

    def _checked(self, x: ArrayLike) -> Array:
        """The points as an array, if none is outside by more than rounding."""
        x = self._shaped(x)
        slack = _BORDER_SLACK * np.maximum(np.abs(self.lower), np.abs(self.upper))
        with np.errstate(over="ignore"):
            least = np.maximum(self.lower - np.where(self.log, _BORDER_SLACK * self.lower, slack), -LARGEST)
            most = np.minimum(self.upper + slack, LARGEST)
        inside = (x >= least) & (x <= most)
        if not inside.all():
            where = tuple(np.argwhere(~inside)[0])
            i = where[-1]
            low, high, value = float(self.lower[i]), float(self.upper[i]), float(x[where])
            expected = f"between {low!r} and {high!r}" if low < high else f"{low!r}, where it is fixed"
            raise ValueError(f"x is outside the box: {value!r} for {_label(i, self.names)}, expected {expected}")
        return x


def _lower_and_upper(bounds: Any) -> tuple[Array, Array]:
    """Any accepted form of bounds as two arrays (d,)."""
    given = bounds
    if isinstance(bounds, Box):
        given = np.column_stack([bounds.lower, bounds.upper])
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        lower, upper = np.atleast_1d(as_floats(bounds.lb, "bounds.lb"), as_floats(bounds.ub, "bounds.ub"))
        if lower.ndim != 1 or upper.ndim != 1 or (lower.size != upper.size and 1 not in (lower.size, upper.size)):
            raise ValueError(
                f"bounds.lb and bounds.ub have shapes {lower.shape} and {upper.shape}, expected (d,) twice"
            )
        given = np.column_stack(np.broadcast_arrays(lower, upper))
    elif isinstance(bounds, Mapping | Iterator):
        given = list(bounds.values() if isinstance(bounds, Mapping) else bounds)
    pairs = as_floats(given, "bounds")
    if not pairs.size:
        raise ValueError(f"bounds are empty, got {bounds!r}; expected a pair (low, high) for at least one coordinate")
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        advice = "one pair (low, high) a coordinate"
        if pairs.ndim == 1:
            advice = "for one coordinate write [(low, high)]"
        elif pairs.ndim == 2 and len(pairs) == 2:
            advice += "; an array of lower and upper bounds, as in BoTorch, has to be transposed"
        raise ValueError(f"bounds have shape {pairs.shape}, expected (d, 2): {advice}; got {reprlib.repr(bounds)}")
    return pairs[:, 0], pairs[:, 1]


def _check_bounds(lower: Array, upper: Array, names: tuple[str, ...] | None) -> None:
    for i, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
        got = f"got ({low!r}, {high!r}) for {_label(i, names)}"
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"bounds must be finite, {got}; give the range in which the optimum is expected")
        if low > high:
            raise ValueError(f"bounds are reversed, {got}; expected low <= high")
    if np.array_equal(lower, upper):
        advice = "widen one of the bounds"
        if len(lower) == 2:
            advice += ", or transpose them if these are lower and upper bounds: np.transpose(bounds)"
        raise ValueError(f"every coordinate is fixed (low == high): nothing is left to search; {advice}")


def _checked_names(names: Iterable[object] | None, dim: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    given = [names] if isinstance(names, str) else list(names)
    checked = tuple(name for name in given if isinstance(name, str) and name)
    if len(checked) != len(given):
        raise TypeError(f"names must be non-empty strings, got {given!r}")
    if len(set(checked)) != len(checked):
        raise ValueError(f"names must differ from each other, got {given!r}")
    if len(checked) != dim:
        raise ValueError(f"expected {dim} names, one for each coordinate, got {len(checked)}: {given!r}")
    return checked


def _log_mask(log: Iterable[int | str] | str | int | None, names: tuple[str, ...] | None, dim: int) -> Mask:
    given = [log] if isinstance(log, str | int) else list(() if log is None else log)
    if len(given) == dim and all(isinstance(entry, bool | np.bool_) for entry in given):
        return np.array(given, dtype=np.bool_)
    mask = np.zeros(dim, dtype=np.bool_)
    for entry in given:
        if isinstance(entry, str) and entry in (names or ()):
            mask[(names or ()).index(entry)] = True
        elif isinstance(entry, int | np.integer) and not isinstance(entry, bool) and 0 <= entry < dim:
            mask[entry] = True
        else:
            known = f" or one of the names {list(names)}" if names else " (this box has no names)"
            raise ValueError(f"log: no coordinate {entry!r}; expected an index from 0 to {dim - 1}{known}")
    return mask


def _rounded(exact: Fraction) -> float:
    """The nearest float, or the largest one."""
    return float(max(min(exact, Fraction(LARGEST)), Fraction(-LARGEST)))


def _label(index: int | np.intp, names: tuple[str, ...] | None) -> str:
    return f"coordinate {index}" if names is None else repr(names[index])


def _linear_exponent(low: Array, high: Array) -> NDArray[np.int32]:
    """The power of two that bounds both: measured in it, high - low is exact and (-1e308, 1e308) has a finite width."""
    return np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]


def _linear_to_unit(x: Array, low: Array, high: Array) -> Array:
    """(x - low) / (high - low)."""
    shift = -_linear_exponent(low, high)
    x, low, high = np.ldexp(x, shift), np.ldexp(low, shift), np.ldexp(high, shift)
    return (x - low) / (high - low)


def _linear_from_unit(u: Array, low: Array, high: Array) -> Array:
    """Low + u (high - low)."""
    exponent = _linear_exponent(low, high)
    low, high = np.ldexp(low, -exponent), np.ldexp(high, -exponent)
    with np.errstate(over="ignore"):  # rounding above the largest float, which clipping to the bounds repairs
        return np.ldexp(low + u * (high - low), exponent)


def _linear_factor(low: Array, high: Array) -> Factor:
    """The width high - low, split."""
    exponent = _linear_exponent(low, high)
    mantissa, shift = np.frexp(np.ldexp(high, -exponent) - np.ldexp(low, -exponent))
    return mantissa, exponent + shift


def _log_factor(x: Array, low: Array, high: Array) -> Factor:
    """The slope x log(high / low), split."""
    mantissa, exponent = np.frexp(x)
    mantissa, shift = np.frexp(mantissa * _log_ratio(high, low))
    return mantissa, exponent + shift


def _log_ratio(x: Array, low: Array) -> Array:
    """log(x / low), to full precision also where x / low is next to 1 or above the largest float."""
    with np.errstate(over="ignore"):
        excess = (x - low) / low
    return np.where(np.isfinite(excess), np.log1p(excess), np.log(x) - np.log(low))


def _times_exp(low: Array, t: Array) -> Array:
    """Low exp(t), the inverse of `_log_ratio`."""
    with np.errstate(over="ignore"):
        x = low + low * np.expm1(t)
        return np.where(np.isfinite(x), x, np.exp(np.log(low) + t))


def nearest(points: Array, x: Array) -> tuple[int, float]:
    """Index of the point nearest to x and its distance, the largest over the coordinates; (-1, inf) if there is none.

    >>> nearest(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0.9, 0.8]))[0]
    1
    """
    if len(points) == 0:
        return -1, np.inf
    distances = np.abs(points - x).max(axis=1)
    index = int(distances.argmin())
    return index, float(distances[index])


def contains(points: Array, x: Array) -> bool:
    """Whether x is one of the points of the unit cube, up to `SAME_POINT`."""
    return nearest(points, x)[1] <= SAME_POINT
