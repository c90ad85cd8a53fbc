"""What users write for constraints, in SciPy's forms and in ours, as limits, rows and functions.

| given | means |
|---|---|
| `scipy.optimize.NonlinearConstraint` | lower <= c(x) <= upper; `jac`: a function, or none |
| `{"type": "ineq" or "eq", "fun": c, "jac": ..., "args": ...}` | c(x) >= 0 or c(x) == 0, as for SLSQP |
| `scipy.optimize.LinearConstraint` | lower <= A x <= upper, known: every suggestion satisfies it |
| `(lower, upper)`, `scipy.optimize.Bounds` | limits of what the objective returns in its `eign.Evaluation` |
| `{"stress": (None, 250.0)}` | the same by name |
| 3 | three that the objective returns, each at most 0 |
| a list of these | all of them |

None and infinities are open sides.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from eign.arrays import Array, as_floats, whole_number
from eign.constraints import Limits, LinearRows
from eign.evaluation import AnswerError, ConstraintFunction
from eign.space import Box

_EXPECTED: Final = (
    "expected a NonlinearConstraint or LinearConstraint of scipy.optimize, {'type': 'ineq', 'fun': ...}, a pair "
    "(lower, upper) or {name: (lower, upper)} for what the function returns in an eign.Evaluation, or a list of these"
)


class Constraints(NamedTuple):
    """All constraints of a problem.

    Attributes:
        limits: Of the black-box constraints, in the order given.
        linear: The known linear ones.
        functions: Those that have functions of their own.
        outputs: Names of those that the objective returns.
    """

    limits: Limits
    linear: LinearRows
    functions: tuple[ConstraintFunction, ...] = ()
    outputs: tuple[str, ...] = ()


class _Part(NamedTuple):
    """Black-box constraints of one entry: limits (k,), names where they have any, a function where there is one."""

    lower: Array
    upper: Array
    names: tuple[str, ...] | None = None
    fun: Callable[..., Any] | None = None
    jac: Any = None
    args: tuple[Any, ...] = ()


def read_constraints(given: Any, box: Box, *, linear: Any = None, point: Any = None) -> Constraints:
    """What a user gave, checked.

    Args:
        given: See the table above.
        box: The bounds.
        linear: Further linear constraints: a LinearConstraint, (A, lower, upper), `LinearRows`, or a list of these.
        point: Where a function is called once if nothing says how many values it returns, in the form that it takes;
            None: functions are an error, because there is nobody to call them.

    Raises:
        TypeError: an entry is no constraint.
        ValueError: limits or shapes are wrong.
    """
    if isinstance(given, Constraints):
        return given
    parts: list[_Part] = []
    rows: list[LinearRows] = []
    for entry in _entries(given):
        part = _read(entry, box)
        rows += [part] if isinstance(part, LinearRows) else []
        parts += [] if isinstance(part, LinearRows) else [_sized(part, point)]
    rows += [_linear(entry, box) for entry in _linear_entries(linear)]
    names = _named(parts)
    functions = tuple(
        ConstraintFunction(part.fun, part.jac, part.args, own)
        for part, own in zip(parts, names, strict=True)
        if part.fun is not None
    )
    outputs = tuple(name for part, own in zip(parts, names, strict=True) if part.fun is None for name in own)
    lower, upper = (
        np.concatenate([np.empty(0), *(getattr(part, side) for part in parts)]) for side in ("lower", "upper")
    )
    limits = Limits([name for own in names for name in own], lower, upper)
    return Constraints(limits, _stacked(rows), functions, outputs)


def _entries(given: Any) -> list[Any]:
    """The single constraints that were given."""
    if given is None:
        return []
    if isinstance(given, list | tuple) and not _is_pair(given):
        return list(given)
    return [given]


def _is_pair(entry: Any) -> bool:
    """Whether this is (lower, upper), and no list of two constraints."""
    return isinstance(entry, list | tuple) and len(entry) == 2 and all(_is_limit(side) for side in entry)


def _is_limit(side: Any) -> bool:
    return side is None or (isinstance(side, int | float | np.number) and not isinstance(side, bool))


def _read(entry: Any, box: Box) -> "_Part | LinearRows":
    """One entry of any form."""
    if isinstance(entry, Limits):
        return _Part(entry.lower, entry.upper, entry.names)
    if isinstance(entry, LinearRows) or (hasattr(entry, "A") and hasattr(entry, "lb")):
        return _linear(entry, box)
    if hasattr(entry, "fun") and hasattr(entry, "lb"):
        return _nonlinear(entry)
    if isinstance(entry, Mapping):
        return _dictionary(entry) if "fun" in entry or "type" in entry else _by_name(entry)
    if hasattr(entry, "lb") and hasattr(entry, "ub"):
        return _Part(*_sides(entry.lb, entry.ub))
    if (count := whole_number(entry, least=0)) is not None:
        return _Part(np.full(count, -np.inf), np.zeros(count))
    if _is_pair(entry):
        return _Part(*_sides(*([side] for side in entry)))
    hint = "; a function goes into NonlinearConstraint(fun, lower, upper)" if callable(entry) else ""
    raise TypeError(f"constraints: {entry!r}, {_EXPECTED}{hint}")


def _nonlinear(entry: Any) -> _Part:
    """SciPy's `NonlinearConstraint`; limits that are single numbers do not say how many values there are."""
    if np.any(entry.keep_feasible):
        raise ValueError(
            "constraints: keep_feasible=True cannot be kept: what a function returns is known only where it was "
            "evaluated; leave it out, or give what is linear as a LinearConstraint, which always holds"
        )
    jac = entry.jac if callable(entry.jac) or entry.jac is True else None  # "2-point" and the like: no gradients
    lower, upper = _sides(entry.lb, entry.ub)
    return _Part(lower, upper, None, entry.fun, jac)


def _dictionary(entry: Mapping[str, Any]) -> _Part:
    """SLSQP's and COBYLA's dict."""
    if unknown := set(entry) - {"type", "fun", "jac", "args", "name"}:
        raise ValueError(f"constraints: unknown keys {sorted(unknown)} in {entry!r}; known: type, fun, jac, args, name")
    kind, fun = entry.get("type"), entry.get("fun")
    if kind not in ("ineq", "eq") or not callable(fun):
        call = "{'type': 'ineq', 'fun': c} for c(x) >= 0, 'eq' for c(x) == 0"
        raise ValueError(f"constraints: {entry!r}, expected {call}")
    args, jac, name = entry.get("args", ()), entry.get("jac"), entry.get("name")
    return _Part(
        np.asarray(0.0),
        np.asarray(np.inf if kind == "ineq" else 0.0),
        None if name is None else (name,),
        fun,
        jac if callable(jac) or jac is True else None,
        args if isinstance(args, tuple) else (args,),
    )


def _by_name(entry: Mapping[str, Any]) -> _Part:
    """Limits of outputs, by name."""
    for name, pair in entry.items():
        if not _is_pair(pair):
            raise ValueError(f"constraints: {name!r}: {pair!r}, expected a pair (lower, upper), None for an open side")
    lower, upper = _sides([low for low, _ in entry.values()], [high for _, high in entry.values()])
    return _Part(lower, upper, tuple(entry))


def _sides(lower: Any, upper: Any) -> tuple[Array, Array]:
    """Limits of one shape; None is an open side."""
    low, high = (_side(given, what) for given, what in ((lower, "lower"), (upper, "upper")))
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    try:
        low, high = np.broadcast_arrays(low, high)
    except ValueError:
        raise ValueError(
            f"constraints: lower has shape {low.shape} and upper {high.shape}, expected one shape"
        ) from None
    return np.array(low), np.array(high)


def _side(given: Any, what: str) -> Array:
    """One side of limits, NaN where it is open, that is None; NaN itself is no limit but a mistake."""
    limits = as_floats(given, what)
    entries = np.asarray(given, dtype=object)
    if (np.isnan(limits) & np.vectorize(lambda entry: entry is not None, otypes=[np.bool_])(entries)).any():
        raise ValueError(f"constraints: {what} = {given!r}, expected numbers; a side that is open is None or infinite")
    return limits


def _sized(part: _Part, point: Any) -> _Part:
    """With limits for each value that the function returns; it is called once, if nothing else tells.

    Where it fails it is taken to return one number.
    """
    if part.fun is None:
        return part
    if point is None:
        raise TypeError(
            "constraints: an Optimizer calls no functions; give limits, constraints={'stress': (None, 250.0)}, and "
            "tell the values, tell(x, y, constraints={'stress': 231.0}); eign.minimize takes functions"
        )
    if part.lower.ndim == 1:
        return part
    try:
        answer = part.fun(point, *part.args)
    except (Exception, SystemExit):
        answer = 0.0  # as most do, it is taken to return one number; an evaluation will tell, as it tells of errors
    values = answer[0] if part.jac is True and isinstance(answer, tuple | list) else answer
    try:
        count = np.atleast_1d(as_floats(values, "value")).size
    except (TypeError, ValueError) as error:
        raise AnswerError(f"constraints: {_label(part)}: {error}") from None
    lower, upper = np.full(count, part.lower), np.full(count, part.upper)
    names = None if part.names is None else _numbered(part.names[0], count)
    return part._replace(lower=lower, upper=upper, names=names)


def _label(part: _Part) -> str:
    return getattr(part.fun, "__name__", type(part.fun).__name__)


def _named(parts: Sequence[_Part]) -> list[tuple[str, ...]]:
    """Names of all constraints: the given ones, those of the functions where they have telling ones, c0, c1 and so on.

    Raises:
        ValueError: a name is given twice.
    """
    names: list[tuple[str, ...]] = []
    for part in parts:
        count, first = len(part.lower), sum(map(len, names))
        plain = tuple(f"c{first + i}" for i in range(count))
        own = part.names
        if own is None:
            label = "" if part.fun is None else _label(part)
            own = _numbered(label, count) if label.isidentifier() and label != "fun" else plain
            taken = {name for group in names for name in group}
            own = plain if taken & set(own) else own
        names.append(own)
    return names


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}_{i}" for i in range(count))


def _linear_entries(given: Any) -> list[Any]:
    if given is None:
        return []
    is_triple = isinstance(given, tuple) and len(given) == 3 and not hasattr(given[0], "A")
    return list(given) if isinstance(given, list | tuple) and not is_triple else [given]


def _linear(entry: Any, box: Box) -> LinearRows:
    """Known linear rows of any form.

    Raises:
        TypeError, ValueError: it is none; the error shows the call to write.
    """
    if isinstance(entry, LinearRows):
        if not len(entry):
            return entry
        given: tuple[Any, ...] = (entry.A, entry.lower, entry.upper, entry.labels)
    elif hasattr(entry, "A") and hasattr(entry, "lb"):
        given = (entry.A, entry.lb, entry.ub)
    elif isinstance(entry, tuple) and len(entry) == 3:
        given = entry
    else:
        call = "scipy.optimize.LinearConstraint(A, lower, upper) or (A, lower, upper)"
        raise TypeError(f"linear constraints: {entry!r}, expected {call}, or a list of these")
    A, lower, upper, *labels = given
    if isinstance(A, Mapping):
        A = _coefficients(A, box)
    A = np.atleast_2d(as_floats(A.toarray() if hasattr(A, "toarray") else A, "A"))
    if A.ndim != 2 or A.shape[1] != box.dim:
        raise ValueError(f"linear constraints: A has shape {A.shape}, expected (k, {box.dim}): a column a coordinate")
    low, high = _sides(lower, upper)
    try:
        low, high = (np.array(np.broadcast_to(side, (len(A),))) for side in (low, high))
    except ValueError:
        raise ValueError(f"linear constraints: {len(A)} rows, and limits of shape {low.shape}") from None
    is_open = np.isinf(low) & np.isinf(high) & (low < high)  # SciPy allows rows that say nothing
    kept = labels[0] if labels else ()
    return LinearRows(
        A[~is_open], low[~is_open], high[~is_open], [name for name, out in zip(kept, is_open, strict=False) if not out]
    )


def _coefficients(given: Mapping[str, float], box: Box) -> list[float]:
    """A row by name."""
    names = box.names or ()
    if unknown := [name for name in given if name not in names]:
        raise ValueError(f"linear constraints: unknown names {unknown}, expected some of {list(names)}")
    return [float(given.get(name, 0.0)) for name in names]


def _stacked(rows: Sequence[LinearRows]) -> LinearRows:
    """All rows, numbered where they have no labels of their own."""
    full = [each for each in rows if len(each)]
    if not full:
        return LinearRows()
    labels = [label for each in full for label in each.labels]
    if len(set(labels)) != len(labels):
        labels = [f"row {i}" for i in range(len(labels))]
    lower, upper = np.concatenate([each.lower for each in full]), np.concatenate([each.upper for each in full])
    return LinearRows(np.concatenate([each.A for each in full]), lower, upper, labels)


def as_text(limits: Limits) -> str:
    """The limits as a user may write them.

    >>> as_text(Limits(["stress", "mass"], [-np.inf, 1.0], [250.0, 1.0]))
    "{'stress': (None, 250.0), 'mass': (1.0, 1.0)}"
    """
    pairs = zip(limits.names, limits.lower.tolist(), limits.upper.tolist(), strict=True)
    shown = {
        name: (low if math.isfinite(low) else None, high if math.isfinite(high) else None) for name, low, high in pairs
    }
    return repr(shown)
