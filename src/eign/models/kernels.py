r"""Stationary correlations with ARD lengthscales, and their derivatives in closed form.

| symbol | meaning |
|---|---|
| a = x / l | inputs divided by the lengthscales, coordinate by coordinate |
| r^2 | squared distance of two scaled inputs, sum_k (a_k - a'_k)^2 |
| c(r^2) | correlation, c(0) = 1 |
| v(r^2) = -2 dc/dr^2 | slope, positive; all first derivatives are multiples of it |

.. math::
    \frac{\partial c}{\partial \log l_k} = v\,(a_k - a'_k)^2, \qquad
    \frac{\partial c}{\partial x_k} = -v\,(a_k - a'_k) / l_k .
"""

import math
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.models.first_derivatives import first_derivatives_only

KernelName = Literal["matern52", "rbf"]
Correlation = Callable[[Array, Array, Array], None]
"""Writes c and v, its second and third argument, for the r^2 of its first, which it may use up."""

_ROOT_5: Final = math.sqrt(5.0)
# Elements per block of rows: blocks of a hundred kilobytes stay in the cache through all passes over them.
_BLOCK: Final = 24576


def matern52(squared_distance: Array, value: Array, slope: Array) -> None:
    r"""Matern-5/2 correlation and slope.

    .. math:: c = (1 + u + u^2/3)\,e^{-u}, \qquad v = \tfrac53 (1 + u)\,e^{-u}, \qquad u = \sqrt5\, r
    """
    np.sqrt(squared_distance, out=slope)
    slope *= _ROOT_5
    np.negative(slope, out=value)
    np.exp(value, out=value)
    slope += 1.0
    slope *= value
    squared_distance *= 5.0 / 3.0
    value *= squared_distance
    value += slope
    slope *= 5.0 / 3.0


def rbf(squared_distance: Array, value: Array, slope: Array) -> None:
    r"""Squared-exponential correlation and slope.

    .. math:: c = e^{-r^2/2}, \qquad v = e^{-r^2/2}
    """
    squared_distance *= -0.5
    np.exp(squared_distance, out=value)
    slope[...] = value


CORRELATIONS: Final[dict[str, Correlation]] = {"matern52": matern52, "rbf": rbf}


def correlation(name: str) -> Correlation:
    """The correlation of that name.

    Raises:
        ValueError: If there is none.
    """
    if name not in CORRELATIONS:
        raise ValueError(f"kernel={name!r} is unknown; choose one of {', '.join(map(repr, CORRELATIONS))}")
    return CORRELATIONS[name]


def _augmented(a: Array, factor: float, *, norm: int) -> Array:
    r"""Rows times a factor with two more columns, squared norm and 1, so that distances are one matrix product.

    .. math:: r_{ij}^2 = |a_i|^2 + |b_j|^2 - 2\, a_i^\top b_j

    The rounding error is of the order of 1e-16 (|a|^2 + |b|^2), which can make it negative.
    """
    dim = a.shape[-1]
    wide = np.ones((*a.shape[:-1], dim + 2))
    np.multiply(a, factor, out=wide[..., :dim])
    np.einsum("...k,...k->...", a, a, out=wide[..., norm])
    return wide


def cross_correlation(
    kernel: Correlation, a: Array, b: Array, *, out: tuple[Array, Array] | None = None
) -> tuple[Array, Array]:
    """Correlation and slope between two sets of scaled inputs, `... x m x d, ... x n x d -> ... x m x n` each.

    Args:
        kernel: The correlation.
        a: Scaled inputs of the rows.
        b: Scaled inputs of the columns.
        out: Where to write the result. Fresh memory of a few megabytes costs as much as the arithmetic on it.
    """
    shape = (*a.shape[:-1], b.shape[-2])
    value, slope = out or (np.empty(shape), np.empty(shape))
    left, right = _augmented(a, -2.0, norm=-2), _augmented(b, 1.0, norm=-1).swapaxes(-1, -2)
    rows = max(1, _BLOCK // max(1, value[..., :1, :].size))
    for first in range(0, shape[-2], rows):
        block = (..., slice(first, first + rows), slice(None))
        squared = left[block] @ right
        np.maximum(squared, 0.0, out=squared)
        kernel(squared, value[block], slope[block])
    return value, slope


def correlation_matrix(kernel: Correlation, a: Array, *, out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Correlation and slope among scaled inputs, `... x n x d -> ... x n x n` each; the diagonal of the first is 1."""
    value, slope = cross_correlation(kernel, a, a, out=out)
    index = np.arange(a.shape[-2])
    value[..., index, index] = 1.0
    return value, slope


def weighted_squared_differences(weights: Array, a: Array) -> Array:
    r"""Sum of w_ij (a_ik - a_jk)^2 over all pairs, for every coordinate k, `... x n x n, ... x n x d -> ... x d`.

    .. math:: \sum_i a_{ik}^2 \Bigl(\sum_j w_{ij} + \sum_j w_{ji}\Bigr) - 2 \sum_i a_{ik} (W a)_{ik}

    Matrix products instead of d temporaries of size n x n. `weights` need not be symmetric: one triangle will do.
    """
    both = weights.sum(axis=-2) + weights.sum(axis=-1)
    return np.asarray(((both[..., None] * a - 2.0 * (weights @ a)) * a).sum(axis=-2))


def squared_differences_product(slope: Array, a: Array, vector: Array) -> Array:
    r"""The products (dC / d log l_k) q for every coordinate k, `... x n x n, ... x n x d, ... x n -> ... x n x d`.

    .. math:: \sum_j v_{ij} (a_{ik} - a_{jk})^2 q_j
        = a_{ik}^2 (V q)_i - 2 a_{ik} (V (a_k \circ q))_i + (V (a_k^2 \circ q))_i
    """
    dim = a.shape[-1]
    columns = np.empty((*a.shape[:-1], 2 * dim + 1))
    columns[..., 0] = vector
    np.multiply(a, vector[..., None], out=columns[..., 1 : dim + 1])
    np.multiply(a, columns[..., 1 : dim + 1], out=columns[..., dim + 1 :])
    product = slope @ columns
    linear = a * product[..., :1] - 2.0 * product[..., 1 : dim + 1]
    return np.asarray(a * linear + product[..., dim + 1 :])


class _DifferentiableCorrelation(torch.autograd.Function):
    """c(r^2) with the closed-form derivative: autograd through the square root would give NaN at r = 0."""

    @staticmethod
    def forward(ctx: Any, squared_distance: Tensor, kernel: Correlation) -> Tensor:
        """The correlation, element by element."""
        used = squared_distance.detach().clone(memory_format=torch.contiguous_format)
        value, slope = torch.empty_like(used), torch.empty_like(used)
        kernel(used.numpy(), value.numpy(), slope.numpy())
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The slope times -1/2."""
        (slope,) = ctx.saved_tensors
        return gradient * slope * -0.5, None


def torch_correlation(kernel: Correlation, a: Tensor, b: Tensor) -> Tensor:
    """Correlation of scaled inputs, differentiable once, `... x m x d, ... x n x d -> ... x m x n`."""
    norms = a.square().sum(-1, keepdim=True) + b.square().sum(-1).unsqueeze(-2)
    squared_distance = (norms - 2.0 * a @ b.mT).clamp_min(0.0)
    result: Tensor = _DifferentiableCorrelation.apply(squared_distance, kernel)  # type: ignore[no-untyped-call]
    return result
