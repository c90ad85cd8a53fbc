r"""Posterior moments of independent processes with what carries derivatives back to the point.

A function of the moments needs no Jacobians: with c and e its derivatives by mean and variance, each process adds

.. math:: \frac{s}{l_k^2} \sum_j v_j \bigl(2 e\,(K^{-1}k)_j - c\,\alpha_j\bigr) (x_k - x_{jk})

to the derivative by x_k (notation of `processes`): one matrix product where the Jacobians take two, and no `m x B x d`
arrays. Small processes are stacked, since there the interpreter takes longer than the arithmetic, and what
can be done once for the model is not done at each evaluation: outputscales are in A and alpha, lengthscales in the
right factor of

.. math:: r_j^2 = \sum_k \bigl( x_k^2\, l_k^{-2} - 2 x_k\, x_{jk} l_k^{-2} + x_{jk}^2\, l_k^{-2} \bigr),

whose left factor (x, x^2, 1) then is the same for all processes; all x are counted from the middle of the cube.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.models.independent.processes import Moments, Processes
from eign.models.kernels import Correlation
from eign.numerics.lapack import rows_times
from eign.numerics.threads import map_threads

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
        outputscale: s, `B x 1`.
        mean: m, `B x 1`.
        precision: 1 / l^2, `B x 1 x d`.
        data: x and a column of ones, `n x (d + 1)`.
        right: The right factor of the squared distances, `B x (2d + 1) x n`.
        whitener: s A, `B x n x n`.
        alpha: s alpha, `B x n`.
        observed: `B x 1 x n`, or None if nothing is missing.
        floor: Of the variances, `B x 1`.
    """

    kernel: Correlation
    outputscale: Array
    mean: Array
    precision: Array
    data: Array
    right: Array
    whitener: Array
    alpha: Array
    observed: NDArray[np.bool_] | None
    floor: Array

    @classmethod
    def of(cls, processes: Processes, members: slice = slice(None)) -> "ProcessStack":
        """Those of the processes; by default all."""
        hyper, data = processes.hyperparameters, processes.data
        precision, outputscale = hyper.lengthscale[members, None, :] ** -2.0, hyper.outputscale[members, None]
        size, dim = data.x.shape
        points = np.ones((size, dim + 1))
        np.subtract(data.x, 0.5, out=points[:, :dim])
        centred, across = points[:, :dim].T, precision.swapaxes(-1, -2)
        right = np.empty((len(precision), 2 * dim + 1, size))
        np.multiply(across, -2.0 * centred, out=right[:, :dim])
        right[:, dim:-1] = across
        np.matmul(precision, centred * centred, out=right[:, -1:])
        observed = data.observed[members]
        return cls(
            processes.kernel,
            outputscale,
            hyper.mean[members, None],
            precision,
            points,
            right,
            processes.factor.whitener[members] * outputscale[..., None],
            processes.alpha[members] * outputscale,
            None if observed.all() else observed[:, None, :],
            processes.floor[members, None],
        )

    def in_units(self, shift: Array, scale: Array) -> "ProcessStack":
        """The processes `shift + scale f`, one number of each for each process."""
        factor = scale[:, None]
        return replace(
            self,
            outputscale=self.outputscale * factor**2,
            mean=shift[:, None] + factor * self.mean,
            whitener=self.whitener * factor[..., None],
            alpha=self.alpha * factor,
            floor=self.floor * factor**2,
        )

    def __len__(self) -> int:
        return len(self.alpha)

    def __getitem__(self, members: slice) -> "ProcessStack":
        return ProcessStack(
            self.kernel,
            self.outputscale[members],
            self.mean[members],
            self.precision[members],
            self.data,
            self.right[members],
            self.whitener[members],
            self.alpha[members],
            None if self.observed is None else self.observed[members],
            self.floor[members],
        )

    def moments(self, x: Array) -> Moments:
        """Posterior means and variances, `m x d -> m x B`."""
        rows = max(16, _STACKED // max(1, self.alpha.shape[1]))
        if len(x) <= rows and len(stacks := self._stacks(len(x))) == 1:
            (mean, variance), _ = stacks[0]._evaluate(x)
            return Moments(mean.T, np.maximum(variance, self.floor).T)

        def evaluate(stack: ProcessStack) -> tuple[Array, Array]:
            parts = [stack._evaluate(x[first : first + rows])[0] for first in range(0, len(x), rows)]
            mean, variance = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
            return mean, variance

        results = map_threads(evaluate, self._stacks(min(rows, len(x))), size=len(x) * self.alpha.shape[1] // 100)
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
        size = len(x) * self.alpha.shape[1] // 30
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
        centred = x - 0.5
        correlation, slope = self._correlations(centred)
        whitened = self._whitened(correlation)
        mean = self.mean + (correlation @ self.alpha[..., None])[..., 0]
        variance = self.outputscale - np.vecdot(whitened, whitened)

        def pullback(by_mean: Array, by_variance: Array) -> Array:
            weights = self._unwhitened(whitened)
            weights *= 2.0 * by_variance[..., None]
            weights -= by_mean[..., None] * self.alpha[:, None]
            weights *= slope
            sums = weights @ self.data
            total = centred * sums[..., -1:] - sums[..., :-1]
            return np.asarray(np.add.reduce(total * self.precision, axis=0))

        return (mean, variance), pullback

    def _correlations(self, centred: Array) -> tuple[Array, Array]:
        """Correlations with the data and slopes, `B x m x n`."""
        dim = centred.shape[1]
        left = np.ones((len(centred), 2 * dim + 1))
        left[:, :dim] = centred
        np.multiply(centred, centred, out=left[:, dim:-1])
        squared = left @ self.right
        np.maximum(squared, 0.0, out=squared)
        correlation, slope = np.empty_like(squared), np.empty_like(squared)
        self.kernel(squared, correlation, slope)
        if self.observed is not None:
            correlation *= self.observed
        return correlation, slope

    def _whitened(self, correlation: Array) -> Array:
        """Rows k / s to A k."""
        if correlation.shape[1] < _TRIANGULAR_FROM[0] or correlation.shape[2] < _TRIANGULAR_FROM[1]:
            return np.asarray(correlation @ self.whitener.swapaxes(-1, -2))
        return self._triangular_product(correlation, transposed=True)

    def _unwhitened(self, whitened: Array) -> Array:
        """Rows r to s A' r, in new memory."""
        if whitened.shape[1] < _TRIANGULAR_FROM[0] or whitened.shape[2] < _TRIANGULAR_FROM[1]:
            return np.asarray(whitened @ self.whitener)
        return self._triangular_product(whitened, transposed=False)

    def _triangular_product(self, rows: Array, *, transposed: bool) -> Array:
        """Rows of each process times its s A, or times the transpose of it."""
        product = rows.copy()
        for own, whitener in zip(product, self.whitener, strict=True):
            rows_times(own, whitener, transposed=transposed)
        return product
