r"""Posterior moments of f and grad f given observed rows, in standardised units.

With k the scaled covariances of what is asked with the rows, L L' = C the factored rows and a their weights:

.. math:: \mu = m\,[\text{values}] + k a, \qquad \Sigma = \text{prior} - (L^{-1} k^\top)^\top (L^{-1} k^\top)

Two paths with the same numbers: NumPy without a graph, with derivatives of mean and variance of f in closed form; and
torch, differentiable (once) in the points through the closed-form derivative of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eign.arrays import Array
from eign.models.derivative_kernels import (
    Term,
    covariance_blocks,
    covariance_blocks_vjp,
    prior_variances,
    weighted_profiles,
)
from eign.models.first_derivatives import first_derivatives_only
from eign.models.joint.covariance import covariance_matrix
from eign.models.joint.fitting import (
    FactoredRows,
    JointData,
    add_diagonal,
    factor_rows,
    solve_mean,
)
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.terms import term_pairs
from eign.numerics.large_cholesky import extend, unwhiten, whiten

SMALLEST_VARIANCE: Final = 1e-10
"""Added to every posterior variance, relative to the prior: what rounding leaves undecided in prior minus explained."""

# Rows of a covariance of what is asked with the observed rows that are worked on at once: they then stay in the cache.
_CHUNK: Final = 128


@dataclass(frozen=True)
class ConditionedRows:
    """The observed rows, factored, in the order of the factor.

    Attributes:
        x: Points n x d.
        row_point: The point of each row.
        row_component: The component of each row, 0 for a value.
        hyper: The hyperparameters.
        factored: Factor, mean and weights.
    """

    x: Array
    row_point: NDArray[np.intp]
    row_component: NDArray[np.intp]
    hyper: JointHyperparameters
    factored: FactoredRows

    @cached_property
    def slopes(self) -> bool:
        """Whether any row is a derivative."""
        return bool((self.row_component > 0).any())

    @cached_property
    def columns(self) -> NDArray[np.intp] | slice:
        """Where each row is among all components at all points, component first; a slice if the order is the same."""
        columns = self.row_component * len(self.x) + self.row_point
        return slice(None) if np.array_equal(columns, np.arange(self.column_count)) else columns

    @property
    def column_count(self) -> int:
        """Number of components at all points, of which the rows are some."""
        return len(self.x) * (self.x.shape[1] + 1 if self.slopes else 1)

    @cached_property
    def component_weights(self) -> Array:
        """The weight of each component at each point, with the rows as they are; 0 where there is no row."""
        weights = np.zeros(self.column_count)
        weights[self.columns] = self.row_scales * self.factored.weights
        return weights.reshape(-1, len(self.x))

    @cached_property
    def row_scales(self) -> Array:
        """The scale of each row."""
        return np.asarray(self.factored.scales[self.row_component])


class ValueRows(NamedTuple):
    """Mean and variance of f at m points, and their derivatives by the point, m x d."""

    mean: Array
    variance: Array
    mean_gradient: Array
    variance_gradient: Array


def condition(x: Array, data: JointData, hyper: JointHyperparameters) -> ConditionedRows:
    """Factor the rows of `data`, observed at the points x."""
    return ConditionedRows(x, data.pairs.row_point, data.pairs.row_component, hyper, factor_rows(data, hyper))


def extended(rows: ConditionedRows, x: Array, data: JointData) -> ConditionedRows:
    """With the rows of `data`, observed at the new points x, after the old ones: one block extension of the factor.

    Raises:
        FactorizationError: If the nugget of the old rows is not enough for the new ones.
    """
    old, hyper = rows.factored, rows.hyper
    component = data.pairs.row_component
    scales = old.scales[component]
    cross = cross_covariance(rows, x, slopes=True)[data.pairs.row_point, component] * scales[:, None]
    corner = covariance_matrix(term_pairs(hyper.terms, data.pairs, old.scales, order=2), data.pairs)
    corner = add_diagonal(corner, data, hyper, old.scales, old.nugget)
    lower = extend(old.lower, cross, corner)
    size = len(old.weights)
    below, last = lower[size:, :size], np.ascontiguousarray(lower[size:, size:])
    target = scales * np.stack([data.targets, np.where(component == 0, 1.0, 0.0)])
    effects = np.concatenate([old.effects, whiten(last, target - old.effects @ below.T)], axis=1)
    mean, weights = solve_mean(lower, effects)
    return ConditionedRows(
        np.concatenate([rows.x, x]),
        np.concatenate([rows.row_point, len(rows.x) + data.pairs.row_point]),
        np.concatenate([rows.row_component, component]),
        hyper,
        FactoredRows(lower, old.scales, effects, mean, weights, old.nugget),
    )


def cross_covariance(rows: ConditionedRows, x: Array, *, slopes: bool) -> Array:
    """Covariance of f (and grad f, if `slopes`) at m points with the scaled rows: m x (1 or d+1) x N."""
    return np.asarray(unscaled_cross_covariance(rows, x, slopes=slopes) * rows.row_scales)


def unscaled_cross_covariance(rows: ConditionedRows, x: Array, *, slopes: bool) -> Array:
    """The same with the rows as they are."""
    blocks = covariance_blocks(rows.hyper.terms, _differences(x, rows.x), left=slopes, right=rows.slopes)
    flat = blocks.transpose(2, 0, 1, 3).reshape(len(x), len(blocks), rows.column_count)
    return np.asarray(flat[:, :, rows.columns])


def value_moments(rows: ConditionedRows, x: Array) -> tuple[Array, Array]:
    """Mean and variance of f at m points."""
    prior = float(prior_variances(rows.hyper.terms)[0])
    mean, variance = np.empty(len(x)), np.empty(len(x))
    for part in _chunks(len(x), 1):
        cross = cross_covariance(rows, x[part], slopes=False)[:, 0]
        mean[part] = rows.factored.mean + cross @ rows.factored.weights
        whitened = whiten(rows.factored.lower, cross)
        variance[part] = prior - np.einsum("mr,mr->m", whitened, whitened)
    return mean, np.maximum(variance, 0.0) + SMALLEST_VARIANCE * prior


def value_moments_and_gradients(rows: ConditionedRows, x: Array) -> ValueRows:
    r"""Mean and variance of f with their gradients by the point.

    .. math:: \nabla\mu = (\nabla k)\, a, \qquad \nabla\sigma^2 = -2\, (\nabla k)\, C^{-1} k^\top
    """
    prior, size = float(prior_variances(rows.hyper.terms)[0]), (len(x), x.shape[1])
    result = ValueRows(np.empty(len(x)), np.empty(len(x)), np.empty(size), np.empty(size))
    for part in _chunks(len(x), 1):
        cross = cross_covariance(rows, x[part], slopes=False)[:, 0]
        result.mean[part] = rows.factored.mean + cross @ rows.factored.weights
        whitened = whiten(rows.factored.lower, cross)
        result.variance[part] = prior - np.einsum("mr,mr->m", whitened, whitened)
        solved = unwhiten(rows.factored.lower, whitened)
        weights = np.stack([np.broadcast_to(rows.factored.weights, solved.shape), -2.0 * solved])
        result.mean_gradient[part], result.variance_gradient[part] = _weighted_gradients(rows, x[part], weights)
    np.maximum(result.variance, 0.0, out=result.variance)
    result.variance[...] += SMALLEST_VARIANCE * prior
    return result


def mean_and_gradient(rows: ConditionedRows, x: Array) -> tuple[Array, Array]:
    r"""Mean of f and its gradient by the point alone, `m x d -> m, m x d`: linear in the rows, where variances are not.

    With a the weight of a value, b those of a gradient and :math:`t = b^\top D`, a full term gives for each point told

    .. math:: \phi a - \phi' t, \qquad (\phi' a - \phi'' t)\, D_k - \phi' b_k / l_k^2

    and an additive term the same for each coordinate on its own. What a local search on means calls, hundreds of times
    a step.
    """
    delta, weights = _differences(x, rows.x), rows.component_weights
    value, slopes = weights[0], weights[1:, None]
    mean, gradient = np.full(len(x), rows.factored.mean), np.zeros((x.shape[1], len(x)))
    for term in rows.hyper.terms:
        precision = term.precision[:, None, None]
        scaled = precision * delta
        phi, phi1, phi2 = weighted_profiles(term, delta, scaled, order=2)
        along = scaled * value
        if rows.slopes:
            turned = slopes * scaled
            turned = turned.sum(0, keepdims=True) if term.structure == "full" else turned
            mean += (phi * value - phi1 * turned).sum((0, 2))
            gradient += (phi1 * (along - precision * slopes) - phi2 * turned * scaled).sum(-1)
        else:
            mean += (phi * value).sum((0, 2))
            gradient += (phi1 * along).sum(-1)
    return mean, gradient.T


def joint_moments(rows: ConditionedRows, x: Array) -> tuple[Array, Array]:
    """Mean and covariance of (f, grad f) at each of m points: m x (d+1), m x (d+1) x (d+1)."""
    prior = prior_variances(rows.hyper.terms)
    mean, covariance = np.empty((len(x), len(prior))), np.empty((len(x), len(prior), len(prior)))
    for part in _chunks(len(x), len(prior)):
        cross = cross_covariance(rows, x[part], slopes=True)
        mean[part] = cross @ rows.factored.weights
        points, components, size = cross.shape
        whitened = whiten(rows.factored.lower, cross.reshape(points * components, size)).reshape(cross.shape)
        covariance[part] = -np.matmul(whitened, whitened.transpose(0, 2, 1))
    mean[:, 0] += rows.factored.mean
    return mean, covariance + (1.0 + SMALLEST_VARIANCE) * np.diag(prior)


def differentiable_values(rows: ConditionedRows, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of f at q points together, `... x q x d -> ... x q, ... x q x q`."""
    points = x.reshape(-1, x.shape[-1])
    cross = _differentiable_cross(rows, points, slopes=False)[:, 0]
    mean = rows.factored.mean + cross @ torch.from_numpy(rows.factored.weights)
    whitened: Tensor = _Whiten.apply(cross, rows.factored.lower)  # type: ignore[no-untyped-call]
    whitened = whitened.reshape(*x.shape[:-1], cross.shape[-1])
    delta = (x.unsqueeze(-2) - x.unsqueeze(-3)).movedim(-1, 0)
    prior: Tensor = _Blocks.apply(delta, rows.hyper.terms, False, False)  # type: ignore[no-untyped-call]
    floor = SMALLEST_VARIANCE * float(prior_variances(rows.hyper.terms)[0])
    covariance = prior[0, 0] - whitened @ whitened.mT
    return mean.reshape(x.shape[:-1]), covariance + _lift(covariance, torch.tensor(floor, dtype=torch.float64))


def differentiable_joint(rows: ConditionedRows, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of (f, grad f) at each point, `... x d -> ... x (d+1), ... x (d+1) x (d+1)`."""
    points = x.reshape(-1, x.shape[-1])
    cross = _differentiable_cross(rows, points, slopes=True)
    shift = torch.zeros(cross.shape[1], dtype=torch.float64)
    shift[0] = rows.factored.mean
    mean = shift + cross @ torch.from_numpy(rows.factored.weights)
    whitened: Tensor = _Whiten.apply(cross.flatten(0, 1), rows.factored.lower)  # type: ignore[no-untyped-call]
    whitened = whitened.reshape(cross.shape)
    prior = torch.from_numpy(prior_variances(rows.hyper.terms))
    covariance = torch.diag(prior) - whitened @ whitened.mT
    covariance = covariance + _lift(covariance, SMALLEST_VARIANCE * prior)
    size = len(prior)
    return mean.reshape(*x.shape[:-1], size), covariance.reshape(*x.shape[:-1], size, size)


def _lift(covariance: Tensor, floor: Tensor) -> Tensor:
    """What makes every variance positive: the floor, and what rounding took below zero."""
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    return torch.diag_embed(floor + (-variance.detach()).clamp_min(0.0))


def _differences(x: Array, z: Array) -> Array:
    """X - z for all pairs, component first: d x m x n."""
    return np.asarray(x.T[:, :, None] - z.T[:, None, :])


def _weighted_gradients(rows: ConditionedRows, x: Array, weights: Array) -> Array:
    """The gradients by x of sum_r weights_r k(x, row r) for several sets of weights, s x m x N -> s x m x d."""
    count, points, _ = weights.shape
    cotangent = np.zeros((count, points, rows.column_count))
    cotangent[:, :, rows.columns] = weights * rows.row_scales
    components = x.shape[1] + 1 if rows.slopes else 1
    by_component = cotangent.reshape(count, points, 1, components, len(rows.x)).transpose(2, 3, 0, 1, 4)
    gradient = covariance_blocks_vjp(rows.hyper.terms, _differences(x, rows.x)[:, None], by_component)
    return np.asarray(gradient.sum(-1).transpose(1, 2, 0))


def _differentiable_cross(rows: ConditionedRows, x: Tensor, *, slopes: bool) -> Tensor:
    """`cross_covariance`, differentiable in x."""
    delta = x.T[:, :, None] - torch.from_numpy(rows.x).T[:, None, :]
    blocks: Tensor = _Blocks.apply(delta, rows.hyper.terms, slopes, rows.slopes)  # type: ignore[no-untyped-call]
    flat = blocks.permute(2, 0, 1, 3).flatten(2)
    columns = rows.columns if isinstance(rows.columns, slice) else torch.from_numpy(rows.columns)
    return flat[:, :, columns] * torch.from_numpy(rows.row_scales)


def _chunks(points: int, components: int) -> list[slice]:
    """Slices of the points, each with few enough components in all."""
    step = max(1, _CHUNK // components)
    return [slice(start, start + step) for start in range(0, points, step)]


class _Blocks(torch.autograd.Function):
    """`covariance_blocks` of differences d x pairs, with its closed-form derivative."""

    @staticmethod
    def forward(ctx: Any, delta: Tensor, terms: Sequence[Term], left: bool, right: bool) -> Tensor:
        """Blocks (1 or d+1) x (1 or d+1) x pairs."""
        ctx.save_for_backward(delta)
        ctx.terms = terms
        return torch.from_numpy(covariance_blocks(terms, delta.detach().numpy(), left=left, right=right))

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None, None]:
        """The gradient by the differences."""
        (delta,) = ctx.saved_tensors
        gradient = covariance_blocks_vjp(ctx.terms, delta.numpy(), cotangent.numpy())
        return torch.from_numpy(gradient), None, None, None


class _Whiten(torch.autograd.Function):
    """L^{-1} applied to rows m x N, for a fixed L."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, lower: Array) -> Tensor:
        """Rows v with L v = row."""
        ctx.lower = lower
        return torch.from_numpy(whiten(lower, np.array(rows.detach().numpy(), order="C")))

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        """L^{-T} applied to the cotangent."""
        return torch.from_numpy(unwhiten(ctx.lower, np.array(cotangent.numpy(), order="C"))), None
