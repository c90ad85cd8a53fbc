"""A point to ask for where no neighbours tell yet whether the gradient is wrong.

A probe is a short step from an observed point in which each coordinate adds about the same to the difference of the
values. The parts differ between coordinates and from probe to probe, so that no two faults predict the same twice.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.data import Observations
from eign.study.gradient_check.faults import hidden_changes
from eign.study.gradient_check.neighbours import (
    DEVIATIONS,
    GRADIENT_ERROR,
    NEAR,
    TINY,
    NearPairs,
    is_informative,
    judge,
    known_variance,
    value_error,
)

# The longest step along a coordinate: neighbours, also after rounding in the user's units; and the shortest that does
# not suffer from that.
_LONGEST: Final = 0.99 * NEAR
_SHORTEST: Final = 1e-6
# Each coordinate of a probe makes a difference of about so many errors of the value, or more.
_ABOVE_ERROR: Final = 30.0
# By how much the parts of the coordinates may differ, at first and when faults have to be told apart.
_CONTRAST: Final = 2.0 / 3.0
_CONTRAST_IF_SUSPICIOUS: Final = 0.9
# A fault is expected to show if it hides so many times the bound. The first probe must show half of those in question.
_POWER: Final = 2.0
_SHOWN: Final = 0.5
_MOST_PROBES: Final = 2
_MOST_IF_SUSPICIOUS: Final = 5
# Points that are considered.
_CANDIDATES: Final = 64
# Multiples of different irrational numbers, modulo one, are the parts of the coordinates in each probe.
_IRRATIONALS: Final = np.sqrt([5.0, 2.0, 3.0, 7.0, 11.0])


def propose_probe(
    data: Observations, widths: Array, taken: Array, number: int, near: NearPairs | None = None
) -> Array | None:
    """Where to look next, `d`, in the unit cube; None if nothing is open, or no point would tell.

    Args:
        data: All that was told.
        widths: What the cube's units are in the user's at each point, `n x d`.
        taken: Points told or pending, `m x d`.
        number: Of probes so far.
        near: The neighbours that are known, see `judge`.
    """
    known = np.flatnonzero(is_informative(data))
    if len(known) < max(3, 3 * data.dim) or number >= _MOST_IF_SUSPICIOUS:
        return None
    verdict = judge(data, widths, near)
    if verdict.found or not (verdict.rejections or (number < _MOST_PROBES and verdict.alive.any())):
        return None
    known = known[_candidates(data[known], taken)]
    rows, units = data[known], widths[known]
    slope = np.where(rows.has_grad, rows.grad, 0.0)
    noise = DEVIATIONS * np.sqrt(2.0 * known_variance(rows.y_var)) + value_error(rows)
    step = _steps(rows.x, slope, noise, number, contrast=_CONTRAST_IF_SUSPICIOUS if verdict.rejections else _CONTRAST)
    bend = _expected_bend(rows, step)
    bound = (np.abs(step) * bend).sum(axis=1) + noise + GRADIENT_ERROR * np.abs(step * slope).sum(axis=1)
    power = np.abs(hidden_changes(step * units, slope / units)) / (bound[:, None] + TINY)
    power = power[:, verdict.alive] if verdict.alive.any() else power
    told = (power > _POWER).mean(axis=1)
    best = int(np.lexsort((np.minimum(power, 10.0).mean(axis=1), told))[-1])
    return rows.x[best] + step[best] if verdict.rejections or told[best] >= _SHOWN else None


def is_probed(data: Observations, pending: Array) -> bool:
    """Whether a pending point is next to one that was told, as a probe is."""
    rows = data[is_informative(data)]
    return len(rows) > 0 and len(pending) > 0 and bool((_crowd(rows.x, pending) > 0).any())


def _candidates(rows: Observations, taken: Array) -> NDArray[np.int64]:
    """The rows of points with typical slopes along all coordinates; with nothing next to them, if there are such."""
    crowded = _crowd(rows.x, taken) > 1
    size = np.abs(np.where(rows.has_grad, rows.grad, 0.0))
    relative = (size / (np.median(size, axis=0) + TINY)).min(axis=1)
    order = np.lexsort((-relative, crowded))
    return order[: min(_CANDIDATES, int((~crowded).sum()) or _CANDIDATES)].astype(np.int64)


def _steps(x: Array, slope: Array, noise: Array, number: int, *, contrast: float) -> Array:
    """The step of a probe from each point, `m x d`: uphill, unless that leaves the cube."""
    size = np.abs(slope)
    is_flat = size == 0.0
    least = np.where(is_flat, np.inf, size).min(axis=1)
    rise = np.maximum(np.where(np.isfinite(least), least, 0.0) * _LONGEST, _ABOVE_ERROR * noise)
    share = 1.0 - contrast + contrast * np.modf(_IRRATIONALS[number] * (np.arange(x.shape[1]) + 1))[0]
    length = np.clip(rise[:, None] * share / np.where(is_flat, 1.0, size), _SHORTEST, _LONGEST)
    step = np.copysign(np.where(is_flat, 0.0, length), slope)
    leaves = (x + step < 0.0) | (x + step > 1.0)
    return np.where(leaves, -step, step)


def _expected_bend(rows: Observations, step: Array) -> Array:
    """Half the change of the slopes over steps, `m x d`, judged by how slopes differ between the nearest points."""
    if len(rows) < 2:
        return np.zeros_like(step)
    slope = np.where(rows.has_grad, rows.grad, 0.0)
    from scipy.spatial import cKDTree

    distance, near = (np.asarray(part)[:, 0] for part in cKDTree(rows.x).query(rows.x, k=[2]))
    change = np.abs(slope - slope[near]) / np.maximum(distance[:, None], _LONGEST)
    return np.asarray(0.5 * np.median(change, axis=0) * np.linalg.norm(step, axis=1, keepdims=True))


def _crowd(x: Array, points: Array) -> Array:
    """How many of the points are neighbours of each x, `n`."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(points).query_ball_point(x, NEAR, p=np.inf, return_length=True))
