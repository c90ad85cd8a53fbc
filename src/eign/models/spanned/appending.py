r"""One more observation for the split rows, with their factors extended instead of made anew.

A new point outside of the span adds the direction e. Along it the m derivatives so far were one of the copies outside:
independent of the inside, with the factor B of S_1^2 K-perp. They move inside as they are,

.. math:: \begin{pmatrix} L & \\ & B \end{pmatrix},

and then the value of the new point and its r + 1 derivatives extend both factors: O(N^2 r) for N rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import profile_derivatives
from eign.models.joint.fitting import FactoredRows, solve_mean
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.moments import ConditionedRows, extended
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.span import Span, rounding
from eign.models.spanned.split import (
    SplitRows,
    inside_data,
    outside_gradients,
    slope_noise,
    squared_distances,
    unit_term,
    with_weights,
)
from eign.numerics.large_cholesky import extend, whiten


def appended(rows: SplitRows, new: SpannedData) -> SplitRows:
    """With further observations, one after the other."""
    data, span, inside, outside = rows.data, rows.span, rows.inside, rows.outside
    for number in range(len(new.x)):
        one = _only(new, number)
        u = one.x / rows.lengthscale
        where = span.locate(u)
        if where.distance[0] > rounding(np.concatenate([u, span.origin[None]])):
            gamma = outside_gradients(span, rows.lengthscale, data.grad)
            inside = _with_direction(inside, outside, rows.slope_scale * (gamma @ where.outward[0]))
            span = span.with_direction(where.outward[0])
        place = data.gradients if one.gradients else len(data.x)
        outside = _with_outside_row(rows.hyper, inside.x, outside, span, one, inside.factored.nugget)
        inside = _moved(extended(inside, (u - span.origin) @ span.basis, inside_data(span, rows.hyper, one)), place)
        data = _joined(data, one, place)
    return with_weights(rows.hyper, data, span, inside, outside)


def _only(data: SpannedData, number: int) -> SpannedData:
    """One of the observations."""
    one = slice(number, number + 1)
    return SpannedData(data.x[one], data.y[one], data.grad[one], data.y_noise[one], data.grad_noise[one])


def _joined(data: SpannedData, one: SpannedData, place: int) -> SpannedData:
    """With one more observation, in that place of the points."""
    return SpannedData(
        np.insert(data.x, place, one.x, axis=0),
        np.insert(data.y, place, one.y),
        np.concatenate([data.grad, one.grad]),
        np.insert(data.y_noise, place, one.y_noise),
        np.concatenate([data.grad_noise, one.grad_noise]),
    )


def _with_direction(inside: ConditionedRows, outside: Array, targets: Array) -> ConditionedRows:
    """With the derivatives along one more direction, of which the points have the coordinate 0; targets are scaled."""
    old, size, more = inside.factored, len(inside.row_point), len(outside)
    rank = inside.x.shape[1] + 1
    lower = np.zeros((size + more, size + more))
    lower[:size, :size], lower[size:, size:] = old.lower, outside
    effects = np.zeros((2, size + more))
    effects[:, :size] = old.effects
    effects[0, size:] = whiten(outside, targets[None].copy())[0] if more else ()
    scales = np.append(old.scales, old.scales[-1])
    mean, weights = solve_mean(lower, effects)
    return ConditionedRows(
        np.column_stack([inside.x, np.zeros(len(inside.x))]),
        np.append(inside.row_point, np.arange(more)),
        np.append(inside.row_component, np.full(more, rank)),
        replace(inside.hyper, terms=(unit_term(inside.hyper.terms[0], rank),)),
        FactoredRows(lower, scales, effects, mean, weights, old.nugget),
    )


def _with_outside_row(
    hyper: JointHyperparameters, points: Array, outside: Array, span: Span, one: SpannedData, eta: float
) -> Array:
    """The factor of the outside with one more point, if that has a gradient."""
    if not one.gradients:
        return outside
    term, m = hyper.terms[0], len(outside)
    place = (one.x / term.lengthscale - span.origin) @ span.basis
    scale = float(-profile_derivatives(term.profile, np.zeros(1), order=1)[1][0])
    r2 = squared_distances(place, points[:m])
    cross = -profile_derivatives(term.profile, r2, order=1)[1] / scale
    noise = slope_noise(hyper, one.grad_noise) / (term.outputscale * scale)
    return extend(outside, cross, np.atleast_2d(1.0 + eta + noise))


def _moved(inside: ConditionedRows, place: int) -> ConditionedRows:
    """With the last point in another place; the order of the rows, and so their factor, stays."""
    last = len(inside.x) - 1
    point = inside.row_point + (inside.row_point >= place)
    point[inside.row_point == last] = place
    x = np.insert(inside.x[:last], place, inside.x[last], axis=0)
    return replace(inside, x=x, row_point=point)
