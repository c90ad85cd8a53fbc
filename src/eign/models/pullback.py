r"""Posterior moments of independent processes with what carries derivatives back to the point.

A function of the moments needs no Jacobians: with c and e its derivatives by mean and variance, each process adds

.. math:: \frac{s}{l_k} \sum_j v_j \bigl(2 e\,(K^{-1}k)_j - c\,\alpha_j\bigr) (a_k - a_{jk})

to the derivative by x_k (notation of `eign.models.processes`): one matrix product where the Jacobians take two, and no
`m x B x d` arrays. Small processes are stacked, since there the interpreter takes longer than the arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from eign.models.kernels import Correlation
from eign.models.processes import SMALLEST_VARIANCE, Moments, Processes
from eign.models.threads import map_threads

Array = NDArray[np.float64]
Pullback = Callable[[Array, Array], Array]
"""Derivatives by means and variances, `m x B` each, to the derivative by the points, `m x d`."""

# Elements of a stack of covariances: more do not stay in the cache through all passes over them.
_STACKED: Final = 1 << 15
# Points and observations from which a triangular product, process by process, beats one call for the whole stack.
_TRIANGULAR_FROM: Final = (16, 96)


@dataclass(frozen=True, slots=True, eq=False)
class ProcessStack:
    """B conditioned processes with what every evaluation needs, computed once.

    Attributes:
        kernel: The correlation.
        outputscale: s, `B x 1 x 1`.
        mean: m, `B x 1`.
        inverse_length: 1 / l, `B x 1 x d`.
        scaled: a of the data, `B x n x d`.
        right: The right factor of the squared distances, `B x (d + 2) x n`.
        whitener: A, `B x n x n`.
        alpha: `B x n`.
        observed: `B x 1 x n`, or None if nothing is missing.
        floor: Of the variances, `B x 1`.
    """

    kernel: Correlation
    outputscale: Array
    mean: Array
    inverse_length: Array
    scaled: Array
    right: Array
    whitener: Array
    alpha: Array
    observed: NDArray[np.bool_] | None
    floor: Array

    @classmethod
    def of(cls, processes: Processes, members: slice = slice(None)) -> "ProcessStack":
        """Those of the processes; by default all."""
        hyper, data = processes.hyperparameters, processes.data
        inverse_length = 1.0 / hyper.lengthscale[members, None, :]
        scaled = (data.x - 0.5) * inverse_length
        right = np.ones((len(scaled), scaled.shape[2] + 2, scaled.shape[1]))
        right[:, :-2] = scaled.swapaxes(-1, -2)
        right[:, -1] = np.einsum("bnk,bnk->bn", scaled, scaled)
        observed = data.observed[members]
        return cls(
            processes.kernel,
            hyper.outputscale[members, None, None],
            hyper.mean[members, None],
            inverse_length,
            scaled,
            right,
            processes.factor.whitener[members],
            processes.alpha[members],
            None if observed.all() else observed[:, None, :],
            np.full((len(scaled), 1), SMALLEST_VARIANCE),
        )

    def in_units(self, shift: Array, scale: Array) -> "ProcessStack":
        """The processes `shift + scale f`, one number of each for each process."""
        factor = scale[:, None]
        return replace(
            self,
            outputscale=self.outputscale * factor[..., None] ** 2,
            mean=shift[:, None] + factor * self.mean,
            whitener=self.whitener / factor[..., None],
            alpha=self.alpha / factor,
            floor=self.floor * factor**2,
        )

    def __len__(self) -> int:
        return len(self.alpha)

    def __getitem__(self, members: slice) -> "ProcessStack":
        return ProcessStack(
            self.kernel,
            self.outputscale[members],
            self.mean[members],
            self.inverse_length[members],
            self.scaled[members],
            self.right[members],
            self.whitener[members],
            self.alpha[members],
            None if self.observed is None else self.observed[members],
            self.floor[members],
        )

    def moments(self, x: Array) -> Moments:
        """Posterior means and variances, `m x d -> m x B`."""
        rows = max(16, _STACKED // max(1, self.alpha.shape[1]))

        def evaluate(stack: ProcessStack) -> tuple[Array, Array]:
            parts = [stack._evaluate(x[first : first + rows])[0] for first in range(0, len(x), rows)]
            mean, variance = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
            return mean, variance

        results = map_threads(evaluate, self._stacks(min(rows, len(x))), size=len(x) * self.alpha.shape[1] // 200)
        mean, variance = (np.concatenate(part).T for part in zip(*results, strict=True))
        return Moments(mean, np.maximum(variance, self.floor.T))

    def moments_and_pullback(self, x: Array) -> tuple[Moments, Pullback]:
        """The same, and what carries derivatives by them back to x; a variance at its floor does not move."""
        stacks = self._stacks(len(x))
        if len(stacks) == 1:
            (mean, variance), pull = self._evaluate(x)
            moves = variance > self.floor
            moments = Moments(mean.T, np.maximum(variance, self.floor).T)
            return moments, lambda by_mean, by_variance: pull(by_mean.T, by_variance.T * moves)
        size = len(x) * self.alpha.shape[1] // 60
        results = map_threads(lambda stack: stack._evaluate(x), stacks, size=size)
        mean, variance = (np.concatenate(part).T for part in zip(*(moments for moments, _ in results), strict=True))
        above_floor = variance > self.floor.T

        def pullback(by_mean: Array, by_variance: Array) -> Array:
            by_variance = np.where(above_floor, by_variance, 0.0).T
            by_mean = by_mean.T
            ends = np.cumsum([len(stack) for stack in stacks])
            slices = [slice(end - len(stack), end) for end, stack in zip(ends, stacks, strict=True)]

            def pull(index: int) -> Array:
                members = slices[index]
                return results[index][1](by_mean[members], by_variance[members])

            return np.asarray(sum(map_threads(pull, range(len(stacks)), size=size)))

        return Moments(mean, np.maximum(variance, self.floor.T)), pullback

    def _stacks(self, points: int) -> list["ProcessStack"]:
        """Groups that fit into the cache."""
        length = max(1, _STACKED // max(1, points * self.alpha.shape[1]))
        if length >= len(self):
            return [self]
        return [self[first : first + length] for first in range(0, len(self), length)]

    def _evaluate(self, x: Array) -> tuple[tuple[Array, Array], Pullback]:
        """Means and variances, `B x m`, and the pullback from their derivatives, `B x m` each."""
        covariance, slope, a = self._covariances(x)
        whitened = self._whitened(covariance)
        mean = self.mean + (covariance @ self.alpha[..., None])[..., 0]
        variance = self.outputscale[..., 0] - np.einsum("bmn,bmn->bm", whitened, whitened)

        def pullback(by_mean: Array, by_variance: Array) -> Array:
            weights = self._unwhitened(whitened)
            weights *= 2.0 * by_variance[..., None]
            weights -= by_mean[..., None] * self.alpha[:, None]
            weights *= slope
            total = a * weights.sum(axis=-1, keepdims=True) - weights @ self.scaled
            return np.asarray((total * (self.inverse_length * self.outputscale)).sum(axis=0))

        return (mean, variance), pullback

    def _covariances(self, x: Array) -> tuple[Array, Array, Array]:
        """With the data: covariances and slopes per unit outputscale, `B x m x n`; and the scaled points."""
        a = (x - 0.5) * self.inverse_length
        left = np.ones((len(self), len(x), x.shape[1] + 2))
        np.multiply(a, -2.0, out=left[..., :-2])
        np.einsum("bmk,bmk->bm", a, a, out=left[..., -2])
        squared = left @ self.right
        np.maximum(squared, 0.0, out=squared)
        covariance, slope = np.empty_like(squared), np.empty_like(squared)
        self.kernel(squared, covariance, slope)
        covariance *= self.outputscale
        if self.observed is not None:
            covariance *= self.observed
        return covariance, slope, a

    def _whitened(self, covariance: Array) -> Array:
        """Rows k to A k."""
        if covariance.shape[1] < _TRIANGULAR_FROM[0] or covariance.shape[2] < _TRIANGULAR_FROM[1]:
            return np.asarray(covariance @ self.whitener.swapaxes(-1, -2))
        return np.stack([_triangular_product(*pair, 1) for pair in zip(covariance, self.whitener, strict=True)])

    def _unwhitened(self, whitened: Array) -> Array:
        """Rows r to A' r, in new memory."""
        if whitened.shape[1] < _TRIANGULAR_FROM[0] or whitened.shape[2] < _TRIANGULAR_FROM[1]:
            return np.asarray(whitened @ self.whitener)
        return np.stack([_triangular_product(*pair, 0) for pair in zip(whitened, self.whitener, strict=True)])


def _triangular_product(rows: Array, whitener: Array, trans: int) -> Array:
    """Rows times A', or times A if `trans` is 0, for a lower triangular A in C order: half the work of the full one."""
    return np.asarray(blas.dtrmm(1.0, whitener.T, rows.T, lower=0, trans_a=trans).T)
