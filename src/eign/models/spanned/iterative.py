r"""The posterior of all points by conjugate gradients: for more points than a factorisation can take.

A mean is one solution of K w = z - mu a, and a variance one of K w = k for each point; a matrix of n (d + 1) rows is
never formed, and memory is a few n x n matrices. It pays for a few answers from many points: with 500 points in 50
dimensions the mean takes a second of a core. For a search, which asks for thousands of variances, there are
the points around it in `SpannedGradientGP`.

The constant mean mu, 1 in the rows a of values, is that of generalised least squares, under which :math:`a^\top w = 0`:
it is the multiplier of this constraint, and conjugate gradients whose directions are projected onto it find both at
once.

It converges for the Matern-5/2. The RBF is so smooth that its covariance is singular to the nugget in directions which
the preconditioner does not know; then the `solution` says that it did not converge.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import profile_derivatives
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.moments import SMALLEST_VARIANCE
from eign.models.spanned.moments import weighted_mean
from eign.models.spanned.preconditioner import CovarianceProducts, Preconditioner, densest_point
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.split import slope_noise, slope_scale, squared_distances
from eign.numerics.conjugate_gradients import Solution, solve
from eign.numerics.large_cholesky import nugget
from eign.numerics.threads import map_threads, single_threaded_blas

# In prior standard deviations, by the preconditioner's estimate. Against factorisations (500 points in 50 dimensions,
# half of them within 1e-2 of one place; points that close in on one place) means and standard deviations came out right
# to 5e-6; with 3e-5 for the mean one was wrong by 1.2e-5.
MEAN_TOLERANCE: Final = 1e-5
VARIANCE_TOLERANCE: Final = 5e-6
MOST_ITERATIONS: Final = 600


@dataclass(frozen=True)
class IterativePosterior:
    """The posterior of f given all points, by conjugate gradients; one solution for the mean, one for each variance.

    Attributes:
        hyper: Kernel and noise.
        origin: The centre, in scaled coordinates.
        products: The covariance.
        precondition: Its preconditioner.
        mean: The constant mean of generalised least squares.
        weights: alpha, n, and A, n x d.
        solution: Of the targets.
    """

    hyper: JointHyperparameters
    origin: Array
    products: CovarianceProducts
    precondition: Preconditioner
    mean: float
    weights: tuple[Array, Array]
    solution: Solution

    @classmethod
    def of(cls, data: SpannedData, hyper: JointHyperparameters, *, eta: float | None = None) -> IterativePosterior:
        """Solve for the weights. The point with the most others around it is the centre.

        Raises:
            ValueError: A point has no gradient.
        """
        n = len(data.x)
        if data.gradients != n or n == 0:
            raise ValueError(f"{data.gradients} of {n} points have a whole gradient, expected all of them")
        term = hyper.terms[0]
        scaled = data.x / term.lengthscale
        origin = scaled[densest_point(scaled, term)]
        eta = nugget(data.numbers) if eta is None else eta
        scales = np.array([term.outputscale**-0.5, slope_scale(term)])
        noise = np.column_stack([data.y_noise + hyper.noise[0], slope_noise(hyper, data.grad_noise)])
        products = CovarianceProducts.of(scaled - origin, term, eta + noise * scales**2)
        preconditioner = Preconditioner.of(products)
        targets = np.column_stack([scales[0] * data.y, scales[1] * (data.grad * term.lengthscale)])
        constant = np.zeros(targets.shape)
        constant[:, 0] = scales[0]
        turned = preconditioner(constant)
        across = turned / float(np.vdot(constant, turned))

        def projected(rows: Array) -> Array:
            """Directions that leave the sum of the values' weights at 0."""
            return np.asarray(preconditioner(rows) - float(np.vdot(across, rows)) * turned)

        size = float(np.sqrt(np.vdot(targets[:, 0], targets[:, 0]) / n))
        found = solve(products, projected, targets / size, tolerance=MEAN_TOLERANCE, iterations=MOST_ITERATIONS)
        weights = found.x * size
        mean = float(np.vdot(across, targets - products(weights)))
        parts = weights[:, 0] * scales[0], weights[:, 1:] * scales[1]
        return cls(hyper, origin, products, preconditioner, mean, parts, found)

    def mean_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """The posterior mean of f and its gradient by x, `m x d -> m, m x d`."""
        term = self.hyper.terms[0]
        v = x / term.lengthscale - self.origin
        r2 = squared_distances(v, self.products.u)
        mean, gradient = weighted_mean(term, v, self.products.u, self.weights, r2)
        return self.mean + mean, gradient / term.lengthscale

    def variance(self, x: Array) -> Array:
        """The posterior variance of f, `m x d -> m`: a solution for each point, side by side on threads."""
        term = self.hyper.terms[0]
        points = list(x / term.lengthscale - self.origin)
        with single_threaded_blas() if len(points) > 1 else nullcontext():  # A single point has all threads.
            explained = map_threads(self._explained, points, size=self.products.u.size)
        return np.asarray(term.outputscale * (np.maximum(1.0 - np.array(explained), 0.0) + SMALLEST_VARIANCE))

    def _explained(self, v: Array) -> float:
        r"""The variance at one point that the rows explain, :math:`2 k^\top w - w^\top K w`.

        Wrong by :math:`(w - K^{-1}k)^\top K (w - K^{-1}k)`, and never too large: so is :math:`k^\top w` before
        rounding. The solution begins at 0, or where that leaves less, at the expansion around the nearest point: a
        seventh of the iterations at 1e-3 from the points of a cluster.
        """
        target, start = self._covariances(v), self._expansion(v)
        rest = target - self.products(start)
        if np.vdot(rest, self.precondition(rest)) >= np.vdot(target, self.precondition(target)):
            start, rest = np.zeros(target.shape), target
        tolerance, iterations = VARIANCE_TOLERANCE, MOST_ITERATIONS
        found = solve(self.products, self.precondition, rest, tolerance=tolerance, iterations=iterations)
        weights = start + found.x
        return float(2.0 * np.vdot(target, weights) - np.vdot(weights, self.products(weights)))

    def _covariances(self, v: Array) -> Array:
        """Of f at one point with the rows, n x (d+1)."""
        delta = v - self.products.u
        phi, phi1 = profile_derivatives(self.hyper.terms[0].profile, np.einsum("ak,ak->a", delta, delta), order=1)
        return np.column_stack([phi, -phi1[:, None] * delta * self.products.slope**-0.5])

    def _expansion(self, v: Array) -> Array:
        """Weights with which the value and the gradient of the nearest point give f at v to first order, n x (d+1)."""
        delta = v - self.products.u
        nearest = int(np.argmin(np.vecdot(delta, delta)))
        weights = np.zeros((len(delta), len(v) + 1))
        weights[nearest] = [1.0, *(self.products.slope**0.5 * delta[nearest])]
        return weights
