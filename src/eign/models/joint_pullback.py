r"""Posterior moments of (f, grad f) with what carries derivatives by them back to the point, without a graph.

With k the covariances of the components at x with the rows, V = k L^{-T}, a the weights of the rows, and c, E the
derivatives of some function by mean and covariance (notation of `eign.models.joint_moments`), the derivative of that
function by k is :math:`c a^\top - 2 E V L^{-1}`, and the closed-form derivative of the kernel takes it to x.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eign.models.derivative_kernels import Array, covariance_blocks_vjp, prior_variances
from eign.models.joint_factor import unwhiten, whiten
from eign.models.joint_moments import SMALLEST_VARIANCE, ConditionedRows, cross_covariance

JointPullback = Callable[[Array, Array], Array]
"""Derivatives by mean, `m x (d+1)`, and symmetric ones by covariance, `m x (d+1) x (d+1)`, to those by x, `m x d`."""


class JointNormals(NamedTuple):
    """Mean `m x (d+1)` and covariance `m x (d+1) x (d+1)` of (f, grad f) at m points, in standardised units."""

    mean: Array
    covariance: Array


def joint_moments_and_pullback(rows: ConditionedRows, x: Array) -> tuple[JointNormals, JointPullback]:
    """Moments at m points, `m x d`, and the pullback; for a few points, as a local search asks for."""
    prior = prior_variances(rows.hyper.terms)
    cross = cross_covariance(rows, x, slopes=True)
    shape, weights, lower = cross.shape, rows.factored.weights, rows.factored.lower
    mean = cross @ weights
    mean[:, 0] += rows.factored.mean
    whitened = whiten(lower, cross.reshape(-1, shape[2])).reshape(shape)
    covariance = -(whitened @ whitened.swapaxes(-1, -2))
    diagonal = np.einsum("mii->mi", covariance)
    diagonal += prior
    diagonal += SMALLEST_VARIANCE * prior + np.maximum(-diagonal, 0.0)

    def pullback(by_mean: Array, by_covariance: Array) -> Array:
        turned = -2.0 * (by_covariance @ whitened)
        by_cross = unwhiten(lower, turned.reshape(-1, shape[2])).reshape(shape)
        by_cross += by_mean[..., None] * weights
        cotangent = np.zeros((shape[0], shape[1], rows.column_count))
        cotangent[:, :, rows.columns] = by_cross * rows.row_scales
        blocks = cotangent.reshape(shape[0], shape[1], -1, len(rows.x)).transpose(1, 2, 0, 3)
        differences = x.T[:, :, None] - rows.x.T[:, None, :]
        return np.asarray(covariance_blocks_vjp(rows.hyper.terms, differences, blocks).sum(-1).T)

    return JointNormals(mean, covariance), pullback
