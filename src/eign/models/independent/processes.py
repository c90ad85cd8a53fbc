r"""B independent Gaussian processes that share their inputs, conditioned on data in standardised units.

| symbol | meaning | shape |
|---|---|---|
| x, a = (x - 1/2) / l | inputs, and inputs in lengthscales | `n x d` |
| A = L^{-1} | whitener: K = L L' | `B x n x n` |
| alpha | K^{-1} (y - m) | `B x n` |
| k, V | covariance of a point with the data, and the slope matrix of `kernels` | `m x n` |

.. math::
    \mu(x) = m + k^\top \alpha, \qquad \sigma^2(x) = s - |A k|^2, \qquad
    \frac{\partial\mu}{\partial x_k} = -\frac{s}{l_k} \sum_j v_j \alpha_j (a_k - a_{jk}), \qquad
    \frac{\partial\sigma^2}{\partial x_k} = \frac{2s}{l_k} \sum_j v_j (K^{-1}k)_j (a_k - a_{jk})

A missing observation keeps its row, so that the batch stays rectangular: its covariance with everything is 0, its
variance 1 and its target 0, which leaves every formula above as if the row were not there.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eign.arrays import Array
from eign.models.independent.hyperparameters import Hyperparameters
from eign.models.kernels import Correlation, correlation_matrix, cross_correlation, torch_correlation
from eign.numerics.cholesky import Factor, FactorizationError, extend, factorize
from eign.numerics.lapack import rows_times
from eign.numerics.threads import map_threads

# Small processes are conditioned together up to this many matrix elements: it saves interpreter time.
_STACKED_ELEMENTS: Final = 25000

# Posterior variances are differences of numbers as large as the outputscale, of which so much is rounding.
_ROUNDING: Final = 2.0**-50


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Standardised observations: inputs `n x d`, targets `B x n` with NaN where missing, noise variances `B x n`."""

    x: Array
    targets: Array
    noise: Array

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which targets are present, `B x n`."""
        return np.isfinite(self.targets)

    def followed_by(self, new: "Data") -> "Data":
        """These observations and then the new ones."""
        return Data(
            np.concatenate([self.x, new.x]),
            np.concatenate([self.targets, new.targets], axis=1),
            np.concatenate([self.noise, new.noise], axis=1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Processes:
    """The conditioned processes; `condition` and `extended` make them.

    Attributes:
        kernel: The correlation.
        hyperparameters: Of the B processes.
        data: What they are conditioned on.
        factor: Of the covariances, whose jitters are multiples of `unit`.
        unit: The variance that jitters are relative to, `B`.
        alpha: `B x n`.
        floor: Of posterior variances, `B`, see `smallest_variance`.
    """

    kernel: Correlation
    hyperparameters: Hyperparameters
    data: Data
    factor: Factor
    unit: Array
    alpha: Array
    floor: Array


class Moments(NamedTuple):
    """Posterior means and variances of B processes at m points, `m x B` each."""

    mean: Array
    variance: Array


class Jacobians(NamedTuple):
    """Derivatives of `Moments` with respect to the point, `m x B x d` each."""

    mean: Array
    variance: Array


def condition(
    kernel: Correlation,
    hyperparameters: Hyperparameters,
    data: Data,
    *,
    jitter: Array | float = 0.0,
    unit: Array | None = None,
) -> Processes:
    """Factorise from scratch, O(B n^3).

    Args:
        kernel: The correlation.
        hyperparameters: Of the B processes, with their jitters.
        data: What to condition on.
        jitter: The least to begin with.
        unit: The variances that jitters are relative to, `B`; None is 1, as in standardised units.
    """
    size, count, observed = len(data.x), len(data.targets), data.observed
    noise = np.where(observed, data.noise + hyperparameters.noise[:, None], 1.0)
    first = np.maximum(hyperparameters.jitter, jitter)
    unit = np.ones(count) if unit is None else unit

    def factor(members: slice) -> Factor:
        matrices, _ = correlation_matrix(kernel, (data.x - 0.5) / hyperparameters.lengthscale[members, None])
        matrices *= hyperparameters.outputscale[members, None, None]
        seen = observed[members]
        if not seen.all():
            matrices *= seen[:, :, None] & seen[:, None, :]
        np.einsum("bii->bi", matrices)[...] += noise[members]
        return factorize(matrices, scale=np.where(seen, unit[members, None], 0.0), first=first[members])

    length = max(1, _STACKED_ELEMENTS // max(1, size**2))
    factors = map_threads(factor, [slice(first, first + length) for first in range(0, count, length)], size=size)
    joined = Factor(*(np.concatenate(parts) for parts in zip(*factors, strict=True)))
    return _with_weights(kernel, hyperparameters, data, joined, unit)


def extended(processes: Processes, new: Data) -> Processes:
    """With more observations and the same hyperparameters, O(B n^2) for each of them.

    Where the new rows need more jitter than the old ones, everything is factorised again.
    """
    kernel, hyperparameters, old = processes.kernel, processes.hyperparameters, processes.data
    cross, corner = [], []
    for b, scale in enumerate(hyperparameters.outputscale):
        a_old, a_new = _scaled(old.x, hyperparameters, b), _scaled(new.x, hyperparameters, b)
        between = scale * cross_correlation(kernel, a_old, a_new)[0]
        among = scale * correlation_matrix(kernel, a_new)[0]
        cross.append(_masked(between, old.observed[b], new.observed[b]))
        corner.append(_masked(among, new.observed[b], new.observed[b], _diagonal(new, hyperparameters, b)))
    unit = processes.unit
    try:
        factor = extend(
            processes.factor, np.stack(cross), np.stack(corner), scale=np.where(new.observed, unit[:, None], 0.0)
        )
    except FactorizationError:
        return condition(kernel, hyperparameters, old.followed_by(new), jitter=processes.factor.jitter, unit=unit)
    return _with_weights(kernel, hyperparameters, old.followed_by(new), factor, unit)


def moments(processes: Processes, x: Array) -> Moments:
    """Posterior means and variances, `m x d -> m x B`; variances are at least the floor."""
    count = len(processes.alpha)

    def one(b: int) -> tuple[Array, Array]:
        _, covariance, _ = _covariances(processes, x, b)
        whitened = _times_transpose(covariance, processes.factor.whitener[b])
        hyper = processes.hyperparameters
        variance = hyper.outputscale[b] - np.einsum("mn,mn->m", whitened, whitened)
        return hyper.mean[b] + covariance @ processes.alpha[b], variance

    results = map_threads(one, range(count), size=len(x) * len(processes.data.x) // 100)
    mean, variance = (np.stack(part, axis=1) for part in zip(*results, strict=True))
    return Moments(mean, np.maximum(variance, processes.floor))


def moments_and_jacobians(processes: Processes, x: Array) -> tuple[Moments, Jacobians]:
    """Posterior means and variances and their derivatives, `m x d -> m x B, m x B x d`.

    Where a variance is at its floor its derivative is 0.
    """
    count = len(processes.alpha)

    def one(b: int) -> tuple[Array, Array, Array, Array]:
        a, covariance, slope = _covariances(processes, x, b)
        hyper, whitener, alpha = processes.hyperparameters, processes.factor.whitener[b], processes.alpha[b]
        whitened = _times_transpose(covariance, whitener)
        variance = hyper.outputscale[b] - np.einsum("mn,mn->m", whitened, whitened)
        slope *= hyper.outputscale[b]
        a_data, inverse_length = _scaled(processes.data.x, hyper, b), 1.0 / hyper.lengthscale[b]
        mean_slope = -_weighted_differences(slope * alpha, a, a_data) * inverse_length
        solved = _times(whitened, whitener)
        solved *= slope
        variance_slope = 2.0 * _weighted_differences(solved, a, a_data) * inverse_length
        return hyper.mean[b] + covariance @ alpha, variance, mean_slope, variance_slope

    results = map_threads(one, range(count), size=len(x) * len(processes.data.x) // 50)
    mean, variance, mean_slope, variance_slope = (np.stack(part, axis=1) for part in zip(*results, strict=True))
    variance_slope[variance < processes.floor] = 0.0
    return Moments(mean, np.maximum(variance, processes.floor)), Jacobians(mean_slope, variance_slope)


def joint_normal(processes: Processes, b: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of process b at q points together, differentiable, `... x q x d -> ... x q, ... x q x q`."""
    hyper, data = processes.hyperparameters, processes.data
    length, scale = torch.from_numpy(hyper.lengthscale[b]), float(hyper.outputscale[b])
    a, a_data = (x - 0.5) / length, torch.from_numpy(_scaled(data.x, hyper, b))
    mask = torch.from_numpy(data.observed[b])
    cross = scale * torch_correlation(processes.kernel, a, a_data) * mask
    whitened = cross @ torch.from_numpy(processes.factor.whitener[b]).mT
    mean = float(hyper.mean[b]) + cross @ torch.from_numpy(processes.alpha[b])
    covariance = scale * torch_correlation(processes.kernel, a, a) - whitened @ whitened.mT
    diagonal = covariance.diagonal(dim1=-2, dim2=-1)
    floor = float(processes.floor[b])
    lift = torch.where(diagonal < floor, floor - diagonal.detach(), 0.0)
    return mean, covariance + torch.diag_embed(lift)


def _with_weights(
    kernel: Correlation, hyperparameters: Hyperparameters, data: Data, factor: Factor, unit: Array
) -> Processes:
    residual = np.where(data.observed, data.targets - hyperparameters.mean[:, None], 0.0)
    whitened = np.einsum("bij,bj->bi", factor.whitener, residual)
    alpha = np.einsum("bji,bj->bi", factor.whitener, whitened)
    floor = smallest_variance(hyperparameters, data, factor.jitter * unit)
    return Processes(kernel, hyperparameters, data, factor, unit, alpha, floor)


def smallest_variance(hyperparameters: Hyperparameters, data: Data, jitter: Array) -> Array:
    r"""The least that a posterior variance can be, `B`: below it there are only rounding errors.

    Of n observations whose noise variances are v and more none says more about f(x) than one at x itself would:

    .. math:: \sigma^2(x) \ge \frac{s v}{n s + v}, \qquad v = \min_i D_i,

    since K >= k k' / s; D has noise and jitter. So this floor changes no variance that is right.
    """
    scale, count = hyperparameters.outputscale, np.maximum(data.observed.sum(axis=1), 1)
    least = np.where(data.observed, data.noise, np.inf).min(axis=1, initial=np.inf)
    noise = jitter + hyperparameters.noise + np.where(np.isfinite(least), least, 0.0)
    return np.asarray(np.maximum(scale * noise / (count * scale + noise), _ROUNDING * scale))


def _scaled(x: Array, hyperparameters: Hyperparameters, b: int) -> Array:
    return np.asarray((x - 0.5) / hyperparameters.lengthscale[b])


def _diagonal(data: Data, hyperparameters: Hyperparameters, b: int) -> Array:
    return np.asarray(data.noise[b] + hyperparameters.noise[b])


def _masked(matrix: Array, rows: NDArray[np.bool_], columns: NDArray[np.bool_], noise: Array | None = None) -> Array:
    """Zero where a row or column is missing; with `noise`, that added to the diagonal and 1 there where missing."""
    if not (rows.all() and columns.all()):
        matrix *= rows[:, None] & columns
    if noise is not None:
        matrix.flat[:: len(matrix) + 1] += np.where(rows, noise, 1.0)
    return matrix


def _covariances(processes: Processes, x: Array, b: int) -> tuple[Array, Array, Array]:
    """Scaled points, covariances and slopes (per unit outputscale) with the data of process b."""
    hyper, data = processes.hyperparameters, processes.data
    a = _scaled(x, hyper, b)
    covariance, slope = cross_correlation(processes.kernel, a, _scaled(data.x, hyper, b))
    covariance *= hyper.outputscale[b]
    if not data.observed[b].all():
        covariance *= data.observed[b]
    return a, covariance, slope


def _weighted_differences(weights: Array, a: Array, a_data: Array) -> Array:
    """Sum over j of w_ij (a_i - a_j), `m x n, m x d, n x d -> m x d`."""
    return np.asarray(a * weights.sum(axis=1, keepdims=True) - weights @ a_data)


def _times_transpose(rows: Array, whitener: Array) -> Array:
    """R A' for rows R and a lower triangular A in C order: half the work of the full product."""
    if len(rows) < _TRIANGULAR_FROM:
        return np.asarray(rows @ whitener.T)
    product = rows.copy()
    rows_times(product, whitener, transposed=True)
    return product


def _times(rows: Array, whitener: Array) -> Array:
    """R A for rows R and a lower triangular A in C order."""
    if len(rows) < _TRIANGULAR_FROM:
        return np.asarray(rows @ whitener)
    product = rows.copy()
    rows_times(product, whitener)
    return product


_TRIANGULAR_FROM: Final = 16
