"""Linear programs about a polytope G u <= h, E u = e; rows of G have length 1, `equal` is E with e as last column."""

from typing import Any, Final

import numpy as np

from eign.arrays import Array, Mask

_TOLERANCES: Final = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Slack counts no more than this for one row, so that one program looks for some slack in all.
_ENOUGH: Final = 1e-2
# Multipliers below this share of the largest are rounding.
_SUPPORT: Final = 1e-9
_HOLDS: Final = 1e-9
_MAGNIFIED: Final = 1e-8


class NoPoint(Exception):  # noqa: N818  # what callers make an error of
    """The equalities alone cannot hold."""


def deepest_point(normals: Array, offsets: Array, equal: Array) -> tuple[Array, float]:
    """The middle of the largest ball that keeps its distance from all rows, and its radius; negative if none is inside.

    Raises:
        NoPoint: The equalities cannot hold together.
    """
    found = _program(normals, offsets, equal)
    if found.status != 0:
        raise NoPoint
    return np.asarray(found.x[:-1]), float(found.x[-1])


def deepest_nearby(normals: Array, offsets: Array, equal: Array, point: Array) -> Array:
    """The deepest point within 1e-6 of one that is right to 1e-9, to 1e-16: the same program, magnified."""
    dim = len(point)
    walls = np.concatenate([normals, np.eye(dim), -np.eye(dim)])
    slack = np.concatenate([(offsets - normals @ point) / _MAGNIFIED, np.full(2 * dim, 1.0 / _MAGNIFIED * 1e-6)])
    beside = equal.copy()
    beside[:, -1] = (equal[:, -1] - equal[:, :-1] @ point) / _MAGNIFIED
    found = _program(walls, slack, beside)
    return np.asarray(point + _MAGNIFIED * found.x[:-1]) if found.status == 0 else point


def room(normals: Array, offsets: Array, equal: Array) -> Array:
    """The largest slack that each row can have, up to `_ENOUGH`, or less where it has some; zero is no room at all."""
    count, dim = normals.shape
    found = np.zeros(count)
    open_rows = np.ones(count, dtype=np.bool_)
    while open_rows.any():
        result = _linprog(
            np.concatenate([np.zeros(dim), np.where(open_rows, -1.0, 0.0)]),
            A_ub=np.hstack([normals, np.eye(count)]),
            b_ub=offsets + _HOLDS * 0.1,
            A_eq=np.hstack([equal[:, :-1], np.zeros((len(equal), count))]) if len(equal) else None,
            b_eq=equal[:, -1] if len(equal) else None,
            bounds=[(None, None)] * dim + [(0.0, _ENOUGH)] * count,
        )
        if result.status != 0:
            break
        slack = np.asarray(result.x[dim:])
        has_room: Mask = open_rows & (slack > _HOLDS)
        if not has_room.any():
            break
        found[has_room] = slack[has_room]
        open_rows &= ~has_room
    return found


def smallest_conflict(normals: Array, offsets: Array, equal: Array) -> list[int]:
    """Rows that cannot hold together, each of which is needed for that: of G first, then of E.

    The multipliers of the program for the deepest point prove the conflict; of these rows each is left out for good
    without which the others still conflict.
    """
    count = len(normals)
    found = _program(normals, offsets, equal)
    if found.status == 0:
        weights = np.abs(np.concatenate([found.ineqlin.marginals, found.eqlin.marginals if len(equal) else []]))
        rows = np.flatnonzero(weights > _SUPPORT * weights.max(initial=0.0)).tolist()
    else:
        rows = list(range(count + len(equal)))
    if not _conflicts(rows, normals, offsets, equal):
        rows = list(range(count + len(equal)))
    for row in list(rows):
        others = [one for one in rows if one != row]
        if _conflicts(others, normals, offsets, equal):
            rows = others
    return rows


def within_bounds(matrix: Array, limit: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The smallest bounds of the points of matrix w <= limit between bounds, `q` each."""
    count = len(lower)
    if not len(matrix) or not count:
        return lower, upper
    low, high = np.empty(count), np.empty(count)
    bounds = list(zip(lower.tolist(), upper.tolist(), strict=True))
    for i in range(count):
        for sign, ends in ((1.0, low), (-1.0, high)):
            result = _linprog(sign * np.eye(count)[i], A_ub=matrix, b_ub=limit, bounds=bounds)
            ends[i] = result.x[i] if result.status == 0 else (lower if sign > 0 else upper)[i]
    return np.maximum(low, lower), np.minimum(high, upper)


def _conflicts(rows: list[int], normals: Array, offsets: Array, equal: Array) -> bool:
    one_sided = [row for row in rows if row < len(normals)]
    two_sided = [row - len(normals) for row in rows if row >= len(normals)]
    found = _program(normals[one_sided], offsets[one_sided], equal[two_sided])
    return bool(found.status != 0 or found.x[-1] < -_HOLDS)


def _program(normals: Array, offsets: Array, equal: Array) -> Any:
    """Maximise the smallest slack, at most 1; it may be negative."""
    dim = normals.shape[1]
    return _linprog(
        np.append(np.zeros(dim), -1.0),
        A_ub=np.column_stack([normals, np.ones(len(normals))]) if len(normals) else None,
        b_ub=offsets if len(normals) else None,
        A_eq=np.column_stack([equal[:, :-1], np.zeros(len(equal))]) if len(equal) else None,
        b_eq=equal[:, -1] if len(equal) else None,
        bounds=[(None, None)] * dim + [(None, 1.0)],
    )


def _linprog(objective: Array, **program: Any) -> Any:
    from scipy import optimize  # slow to import, and needed only where there are rows

    solve: Any = optimize.linprog
    found = solve(objective, method="highs", options=_TOLERANCES, **program)
    if found.status == 4:  # numerical difficulties: another algorithm often has none
        found = solve(objective, method="highs-ipm", options=_TOLERANCES, **program)
    return found
