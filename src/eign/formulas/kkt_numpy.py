r"""First-order optimality under constraints (Karush, Kuhn and Tucker), for maximisation inside the unit cube.

| symbol | in code | meaning |
|---|---|---|
| :math:`\nabla f` | `gradient` | of the objective, `d` |
| :math:`n_i` | `normals` | outward normals of what is active: of constraints at a limit, rows, sides of the cube |
| :math:`\lambda_i \ge 0` | `multipliers` | how much f would gain if the limit moved |

At an optimum :math:`\nabla f = \sum_i \lambda_i n_i` with all :math:`\lambda_i \ge 0`: there is no way up that no limit
bars. Without constraints the residual is the length of the projected gradient.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np
from scipy.optimize import nnls

from eign.arrays import Array, Mask

# Rows and sides of the cube are known exactly: they are active within rounding of the search.
_AT_BORDER: Final = 1e-9
# Normals shorter than this share of their scale point nowhere.
_NO_DIRECTION: Final = 1e-14


@final
@dataclass(frozen=True)
class Limited:
    """Something with limits near a point: values `k`, gradients `k x d`, limits `k`, and scales `k` of the values."""

    values: Array
    gradients: Array
    lower: Array
    upper: Array
    scales: Array

    def violation(self) -> float:
        """The largest violation in scales; 0 inside."""
        beyond = np.maximum(self.lower - self.values, self.values - self.upper) / self.scales
        return float(beyond.max(initial=0.0))

    def complementarity(self, multipliers: Array) -> float:
        """The largest product of a multiplier and the distance from its limit."""
        pushed = multipliers != 0.0
        limit = np.where(multipliers > 0.0, self.upper, self.lower)[pushed]
        return float(np.abs(multipliers[pushed] * (self.values[pushed] - limit)).max(initial=0.0))

    def active(self, tol: float) -> tuple[Mask, Mask]:
        """Which are at their lower and at their upper limit, within `tol` of their scales, or beyond."""
        slack = tol * self.scales
        return self.values <= self.lower + slack, self.values >= self.upper - slack


class Optimality(NamedTuple):
    """How far a point is from a first-order optimum.

    Attributes:
        residual: Length of what multipliers leave of the gradient, in the units of f and of the cube.
        remainder: That vector, `d`.
        violation: The largest violation of a constraint, in its scales.
        complementarity: The largest |multiplier| times distance from the limit, in the units of f.
        constraints: Multipliers of the constraints `m`: d f / d limit; positive at an upper limit, negative at a lower.
        rows: Of the linear rows, `k`.
        bounds: Of the sides of the cube, `d`.
    """

    residual: float
    remainder: Array
    violation: float
    complementarity: float
    constraints: Array
    rows: Array
    bounds: Array


def kkt(
    u: Array, gradient: Array, constraints: Limited | None = None, rows: Limited | None = None, *, active: float = 1e-6
) -> Optimality:
    r"""Multipliers of what is active and what they leave, by least squares with signs (NNLS).

    .. math:: \min_{\lambda \ge 0} \Bigl\| \nabla f - \sum_i \lambda_i n_i \Bigr\|_2

    A limit counts as active within `active` of the constraint's scale; an equality may push either way.

    Args:
        u: The point in the cube, `d`.
        gradient: Of f there, to be maximised, `d`.
        constraints: The black-box constraints there.
        rows: The linear rows.
        active: How near a limit is active, in scales of the constraint.

    >>> kkt(np.array([1.0, 0.5]), np.array([2.0, 0.5])).bounds
    array([2., 0.])
    """
    dim = len(u)
    groups = [_none(dim) if constraints is None else constraints, _none(dim) if rows is None else rows]
    identity = np.eye(dim)
    groups.append(Limited(u, identity, np.zeros(dim), np.ones(dim), np.ones(dim)))
    columns, places = [], []
    for which, (group, tol) in enumerate(zip(groups, (active, _AT_BORDER, _AT_BORDER), strict=True)):
        for sign, mask in zip((-1.0, 1.0), group.active(tol), strict=True):
            for i in np.flatnonzero(mask & np.isfinite(group.gradients).all(axis=1)).tolist():
                columns.append(sign * group.gradients[i])
                places.append((which, i, sign))
    found = [np.zeros(len(group.values)) for group in groups]
    remainder = gradient.copy()
    if columns:
        weights = _signed_least_squares(np.array(columns).T, gradient)
        for weight, (which, i, sign) in zip(weights, places, strict=True):
            found[which][i] += sign * weight
        remainder = gradient - np.array(columns).T @ weights
    return Optimality(
        float(np.linalg.norm(remainder)),
        remainder,
        max(group.violation() for group in groups),
        max(group.complementarity(multipliers) for group, multipliers in zip(groups, found, strict=True)),
        *found,
    )


def _signed_least_squares(normals: Array, gradient: Array) -> Array:
    """Weights >= 0 of the columns; each column has length 1 meanwhile, as constraints come in all units."""
    lengths = np.linalg.norm(normals, axis=0)
    size = float(np.linalg.norm(gradient))
    is_usable = lengths > _NO_DIRECTION * lengths.max(initial=0.0)
    weights = np.zeros(normals.shape[1])
    if size == 0.0 or not is_usable.any():
        return weights
    unit = normals[:, is_usable] / lengths[is_usable]
    try:
        found, _ = nnls(unit, gradient / size)
    except RuntimeError:  # it cycles where normals depend on each other to rounding; none is then no worse a bound
        return weights
    weights[is_usable] = size * found / lengths[is_usable]
    return weights


def _none(dim: int) -> Limited:
    nothing = np.empty(0)
    return Limited(nothing, np.empty((0, dim)), nothing, nothing, nothing)
