"""What has been observed, and the chain rule into the unit cube; `standardization` has the units of the models.

| name       | shape | meaning                                                               |
|------------|-------|-----------------------------------------------------------------------|
| `x`        | n x d | points, always finite                                                 |
| `y`        | n     | values; NaN = missing, +-inf = the evaluation failed                  |
| `grad`     | n x d | gradients; NaN = missing, component by component                      |
| `y_var`    | n     | known variance of the noise on `y`; NaN = unknown                     |
| `grad_var` | n x d | known variance of the noise on `grad`, component by component         |

A black-box constraint is one more output of the same evaluation: `constraints` has the same table for each, over the
same points.
"""

import operator
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eign.arrays import Array, Mask, as_floats, read_only
from eign.columns import names_of
from eign.space import Box

if TYPE_CHECKING:
    import pandas

Numbers = ArrayLike | Sequence[Any]
"""Numbers in any nesting, with None for a missing one."""

_ARRAYS = ("x", "y", "grad", "y_var", "grad_var")


@final
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Observations:
    """Evaluations in the order they came in; adding to them makes a new object.

    A row has failed if its value is infinite, or if nothing is known of it: neither a value nor a gradient component,
    of no output. Failed rows are kept and counted, and `usable` is what a model may see. A row that knows some outputs
    and not others counts for those that it knows.

    >>> seen = Observations.empty(2).append([0.1, 0.2], 3.0, [1.0, None]).append([0.5, 0.5], None)
    >>> seen
    Observations(n=2, dim=2, values=1, gradient_components=1, failed=1)
    >>> seen.usable.grad
    array([[ 1., nan]])
    """

    x: Array
    y: Array
    grad: Array
    y_var: Array
    grad_var: Array
    constraints: "tuple[Observations, ...]"

    def __init__(
        self,
        x: Numbers,
        y: Numbers | None = None,
        grad: Numbers | None = None,
        y_var: Numbers | None = None,
        grad_var: Numbers | None = None,
        *,
        constraints: "Sequence[Observations]" = (),
    ) -> None:
        """Check and copy; x is (n, d), the others are as for `append`, and `constraints` are observed at the same x."""
        points = as_floats(x, "x")
        if points.ndim != 2 or points.shape[1] == 0:
            raise ValueError(f"x has shape {points.shape}, expected (n, d) with d > 0; one point is [[...]]")
        self._fill(*_rows(points, y, grad, y_var, grad_var, points.shape[1]))
        object.__setattr__(self, "constraints", tuple(_sharing(self.x, constraint) for constraint in constraints))

    @classmethod
    def empty(cls, dim: int, *, constraints: int = 0) -> "Observations":
        """No observations yet, of points with `dim` coordinates and so many constraints."""
        expected = f"expected the number of coordinates, a whole number of at least 1, got dim = {dim!r}"
        try:
            count = operator.index(dim)
        except TypeError:
            raise TypeError(expected) from None
        if count < 1:
            raise ValueError(expected)
        nothing = cls(np.empty((0, dim)))
        return nothing.with_constraints((nothing,) * constraints) if constraints else nothing

    def append(
        self,
        x: Numbers,
        y: Numbers | None,
        grad: Numbers | None = None,
        y_var: Numbers | None = None,
        grad_var: Numbers | None = None,
    ) -> "Observations":
        """These observations and new ones after them; a bad argument raises and changes nothing.

        Args:
            x: one point (d,) or many (n, d).
            y: its value, or (n,) values; None or NaN = missing, +-inf = failed.
            grad: its gradient (d,), or (n, d); None or NaN, also for single rows and components = missing.
            y_var: variance of the noise on y, one number for all or as many as y; None or NaN = unknown.
            grad_var: variance of the noise on the gradient, one number for all or of the shape of grad.
        """
        new = self._of(*_rows(as_floats(x, "x"), y, grad, y_var, grad_var, self.dim))
        return self.followed_by(new.with_missing_constraints(len(self.constraints)))

    def followed_by(self, new: "Observations") -> "Observations":
        """These observations and then the new ones.

        Raises:
            ValueError: the points have another number of coordinates, or of constraints.
        """
        if new.dim != self.dim:
            raise ValueError(f"x has shape {new.x.shape}, expected (n, {self.dim})")
        if len(new.constraints) != len(self.constraints):
            raise ValueError(f"got {len(new.constraints)} constraints, expected {len(self.constraints)}")
        both = self._of(*(np.concatenate(pair) for pair in zip(self._arrays(), new._arrays(), strict=True)))
        if not self.constraints:
            return both
        pairs = zip(self.constraints, new.constraints, strict=True)
        return both.with_constraints([mine.followed_by(theirs) for mine, theirs in pairs])

    @property
    def objective(self) -> "Observations":
        """The same without constraints."""
        return self._of(*self._arrays()) if self.constraints else self

    def with_constraints(self, constraints: "Sequence[Observations]") -> "Observations":
        """These observations with others of the same points as their constraints.

        Raises:
            ValueError: the points differ.
        """
        made = self._of(*self._arrays())
        object.__setattr__(made, "constraints", tuple(_sharing(self.x, constraint) for constraint in constraints))
        return made

    def with_missing_constraints(self, count: int) -> "Observations":
        """With `count` constraints of which nothing is known, if there are none yet."""
        if self.constraints or not count:
            return self
        missing = Observations(self.x)
        return self.with_constraints([missing] * count)

    def at(self, x: Array) -> "Observations":
        """What was observed, at other points (n, d)."""
        moved = Observations(x, self.y, self.grad, self.y_var, self.grad_var)
        if not self.constraints:
            return moved
        return moved.with_constraints([constraint.at(moved.x) for constraint in self.constraints])

    @property
    def dim(self) -> int:
        """Number of coordinates of a point."""
        return int(self.x.shape[1])

    @property
    def has_y(self) -> Mask:
        """Which values are present (n,)."""
        return np.isfinite(self.y)

    @property
    def has_grad(self) -> Mask:
        """Which gradient components are present (n, d)."""
        return np.isfinite(self.grad)

    @property
    def failed(self) -> Mask:
        """Which rows no model may see (n,): y is infinite, or there is no value and no gradient component at all."""
        known = self.has_y | self.has_grad.any(axis=1)
        for constraint in self.constraints:
            known |= constraint.has_y | constraint.has_grad.any(axis=1)
        return np.isinf(self.y) | ~known

    @property
    def n_failed(self) -> int:
        """Number of failed rows."""
        return int(self.failed.sum())

    @property
    def usable(self) -> "Observations":
        """The rows that have not failed, with infinite gradient components and infinite constraints as missing."""
        failed, outputs = self.failed, (self, *self.constraints)
        infinite = any(np.count_nonzero(np.isinf(each.grad)) or np.count_nonzero(np.isinf(each.y)) for each in outputs)
        if not (np.count_nonzero(failed) or infinite):
            return self
        kept = self[~failed]
        finite = kept._finite()
        return finite.with_constraints([each._finite() for each in kept.constraints]) if kept.constraints else finite

    @property
    def blank_where_failed(self) -> "Observations":
        """The same rows, of which nothing is known where the value is infinite: one way to say that one failed."""
        failed = np.isinf(self.y)
        if not np.count_nonzero(failed):
            return self

        def blank(array: Array) -> Array:
            return np.where(failed.reshape(-1, *(1,) * (array.ndim - 1)), np.nan, array)

        made = self._of(self.x, *map(blank, self._arrays()[1:]))
        if not self.constraints:
            return made
        return made.with_constraints([self._of(self.x, *map(blank, each._arrays()[1:])) for each in self.constraints])

    def to_json(self) -> dict[str, Any]:
        """Plain lists with None for NaN and the text "inf" or "-inf", from which `from_json` builds an equal object."""
        arrays = {name: _encoded(array.tolist()) for name, array in zip(_ARRAYS, self._arrays(), strict=True)}
        stored = {"dim": self.dim} | arrays
        if self.constraints:
            others = [constraint.to_json() for constraint in self.constraints]
            stored["constraints"] = [{name: each[name] for name in _ARRAYS[1:]} for each in others]
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Observations":
        """The observations that `to_json` described."""
        if set(stored) - {"constraints"} != {"dim", *_ARRAYS}:
            raise ValueError(f"expected observations stored as dim and {_ARRAYS}, got {reprlib.repr(stored)}")
        constraints = stored.get("constraints", [])
        if not isinstance(constraints, list) or not all(
            isinstance(each, dict) and set(each) == set(_ARRAYS[1:]) for each in constraints
        ):
            raise ValueError(f"expected constraints stored as {_ARRAYS[1:]} each, got {reprlib.repr(constraints)}")
        x, *others = (_decoded(stored[name]) for name in _ARRAYS)
        if not x:
            return cls.empty(stored["dim"], constraints=len(constraints))
        outputs = [cls(x, *(_decoded(each[name]) for name in _ARRAYS[1:])) for each in constraints]
        return cls(x, *others, constraints=outputs)

    def columns(self, names: Sequence[str] | None = None, constraints: Sequence[str] | None = None) -> dict[str, Array]:
        """As columns of a table, in the words of tables in files: see `eign.columns`.

        Gradients and variances are left out where none is known. Without names the coordinates are x0, x1 and so on,
        and the constraints c0, c1.

        >>> list(Observations([[0.1, 0.2]], [3.0], [[1.0, None]]).columns(["width", "height"]))
        ['width', 'height', 'value', 'gradient_width', 'gradient_height']

        Raises:
            ValueError: the names are too few, or leave none for another column.
        """
        given = [f"x{i}" for i in range(self.dim)] if names is None else list(names)
        if len(given) != self.dim:
            raise ValueError(f"expected {self.dim} names, one for each coordinate, got {given}")
        limited = [f"c{i}" for i in range(len(self.constraints))] if constraints is None else list(constraints)
        if len(limited) != len(self.constraints):
            raise ValueError(f"expected {len(self.constraints)} names of constraints, got {limited}")
        arrays = [self.x]
        for each in (self, *self.constraints):
            arrays += [each.y[:, None], each.grad, each.y_var[:, None], each.grad_var]
        always = 2  # the point and its value
        return {
            name: array[:, i]
            for which, (group, array) in enumerate(zip(names_of(given, limited).written, arrays, strict=True))
            if which < always or not np.isnan(array).all()
            for i, name in enumerate(group)
        }

    def to_frame(
        self, names: Sequence[str] | None = None, constraints: Sequence[str] | None = None
    ) -> "pandas.DataFrame":
        """The `columns` as a pandas DataFrame.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("a DataFrame needs pandas: pip install 'eign[bench]' or pip install pandas") from error
        return pandas.DataFrame(self.columns(names, constraints))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> "Observations":
        """The rows of a slice, a mask or a list of indices; one index gives one row, still as `Observations`."""
        rows: Any = [index] if isinstance(index, int | np.integer) else index
        chosen = self._of(*(array[rows] for array in self._arrays()))
        return chosen.with_constraints([each[rows] for each in self.constraints]) if self.constraints else chosen

    def __eq__(self, other: object) -> bool:
        """Equal entry by entry, where a missing entry equals a missing one."""
        if not isinstance(other, Observations):
            return NotImplemented
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        same = all(np.array_equal(mine, theirs, equal_nan=True) for mine, theirs in pairs)
        return same and self.constraints == other.constraints

    __hash__ = None  # type: ignore[assignment]  # large arrays make a poor key

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (*self._arrays(), self.constraints)

    def __repr__(self) -> str:
        values, components = int(self.has_y.sum()), int(self.has_grad.sum())
        counts = f"values={values}, gradient_components={components}, failed={self.n_failed}"
        constraints = f", constraints={len(self.constraints)}" if self.constraints else ""
        return f"Observations(n={len(self)}, dim={self.dim}, {counts}{constraints})"

    def _arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.x, self.y, self.grad, self.y_var, self.grad_var

    def _fill(self, *arrays: Array) -> None:
        for name, array in zip(_ARRAYS, arrays, strict=True):
            object.__setattr__(self, name, read_only(array))
        object.__setattr__(self, "constraints", ())

    def _finite(self) -> "Observations":
        """With infinite values and gradient components as missing."""
        y, grad = np.where(self.has_y, self.y, np.nan), np.where(self.has_grad, self.grad, np.nan)
        return self._of(self.x, y, grad, self.y_var, self.grad_var)

    @classmethod
    def _of(cls, *arrays: Array) -> "Observations":
        """Without constraints, from arrays that have been checked before, in the order of the fields."""
        made = object.__new__(cls)
        made._fill(*arrays)
        return made


def _restored(*parts: Any) -> Observations:
    """From a pickle."""
    *arrays, constraints = parts
    return Observations(*arrays, constraints=constraints)


def _sharing(x: Array, constraint: Observations) -> Observations:
    """The constraint as observed at just these points, with the very array of them."""
    if constraint.x is x and not constraint.constraints:
        return constraint
    if constraint.x.shape != x.shape or not np.array_equal(constraint.x, x):
        raise ValueError("a constraint is observed at the points of its objective, got others")
    return Observations._of(x, *constraint._arrays()[1:])


def constraint_values(obs: Observations) -> Array:
    """The values of the constraints, `n x m`."""
    return np.stack([each.y for each in obs.constraints], axis=1) if obs.constraints else np.empty((len(obs), 0))


def constraint_gradients(obs: Observations) -> Array:
    """The gradients of the constraints, `n x m x d`."""
    if not obs.constraints:
        return np.empty((len(obs), 0, obs.dim))
    return np.stack([each.grad for each in obs.constraints], axis=1)


def to_unit(obs: Observations, box: Box) -> Observations:
    """Map x into the unit cube; df/du = df/dx * dx/du for the free coordinates, variances by its square.

    >>> to_unit(Observations([[2.0]], [0.0], [[3.0]], grad_var=[[1.0]]), Box([(0, 10)])).grad_var
    array([[100.]])
    """
    _check_dimensions(obs.dim, box.dim, "the box has {} coordinates")
    grad = box.times_unit_scale(obs.grad[:, box.free], obs.x, power=1)
    grad_var = box.times_unit_scale(obs.grad_var[:, box.free], obs.x, power=2)
    unit = Observations(box.to_unit(obs.x), obs.y, grad, obs.y_var, grad_var)
    return unit.with_constraints([to_unit(each, box) for each in obs.constraints]) if obs.constraints else unit


def to_user(obs: Observations, box: Box) -> Observations:
    """The inverse of `to_unit`; derivatives along fixed coordinates are missing."""
    _check_dimensions(obs.dim, box.free_dim, "the unit cube of the box has {} coordinates")
    x = box.from_unit(obs.x)
    grad, grad_var = np.full_like(x, np.nan), np.full_like(x, np.nan)
    grad[:, box.free] = box.times_unit_scale(obs.grad, x, power=-1)
    grad_var[:, box.free] = box.times_unit_scale(obs.grad_var, x, power=-2)
    user = Observations(x, obs.y, grad, obs.y_var, grad_var)
    return user.with_constraints([to_user(each, box) for each in obs.constraints]) if obs.constraints else user


def _check_dimensions(given: int, expected: int, what: str) -> None:
    if given != expected:
        raise ValueError(f"the observations have {given} coordinates, {what.format(expected)}")


def _rows(
    x: Array, y: Numbers | None, grad: Numbers | None, y_var: Numbers | None, grad_var: Numbers | None, dim: int
) -> tuple[Array, Array, Array, Array, Array]:
    """New rows as arrays of full shape, checked."""
    single = x.ndim < 2
    points = np.atleast_2d(x)
    if points.ndim != 2 or points.shape[1] != dim:
        raise ValueError(f"x has shape {x.shape}, expected ({dim},) for one point or (n, {dim}) for many")
    if not np.isfinite(points).all():
        raise ValueError(f"x must be finite, got {points[~np.isfinite(points).all(axis=1)][0].tolist()}")
    shape, many = points.shape, (None if single else len(points))
    return (
        points,
        _filled(y, shape[:1], "y", many=many),
        _filled(grad, shape, "grad", many=many),
        _checked_variance(_filled(y_var, shape[:1], "y_var", many=many, one_for_all=True), "y_var"),
        _checked_variance(_filled(grad_var, shape, "grad_var", many=many, one_for_all=True), "grad_var"),
    )


def _filled(values: Any, shape: tuple[int, ...], what: str, *, many: int | None, one_for_all: bool = False) -> Array:
    """`values` in the given shape of all rows, NaN where they are missing; `many` is None for a single point."""
    if values is None:
        return np.full(shape, np.nan)
    if many is not None and len(shape) == 2 and (isinstance(values, list | tuple) or np.ndim(values) == 1):
        values = [[None] * shape[1] if row is None else row for row in values]
    array = as_floats(values, what)
    if one_for_all and array.ndim == 0:
        return np.full(shape, array)
    expected = shape if many is not None else shape[1:]
    # A function of one variable often returns a number where an array of one is meant, and the other way round.
    if array.shape == expected or (many is None and array.size == np.prod(expected) == 1):
        return array.reshape(shape)
    advice = "one number a point" if len(shape) == 1 else "one number a coordinate"
    raise ValueError(f"{what} has shape {array.shape}, expected {expected}: {advice}, NaN or None where it is missing")


def _checked_variance(variance: Array, what: str) -> Array:
    bad = (variance < 0) | np.isinf(variance)
    if bad.any():
        got = float(variance[bad][0])
        raise ValueError(f"{what} must be finite and not negative, got {got!r}; None or NaN says that it is unknown")
    return variance


def _encoded(values: Any) -> Any:
    if isinstance(values, list):
        return [_encoded(value) for value in values]
    if np.isnan(values):
        return None
    return str(values) if np.isinf(values) else values


def _decoded(values: Any) -> Any:
    if isinstance(values, list):
        return [_decoded(value) for value in values]
    return float(values) if values in ("inf", "-inf") else values


def __getattr__(name: str) -> object:
    """What was here once, and is where `standardization` is: pickled models and users' imports have the name."""
    if name in ("Standardization", "standardize_independent", "standardize_joint"):
        return getattr(import_module("eign.standardization"), name)
    raise AttributeError(f"module 'eign.data' has no attribute {name!r}")
