r"""What the points around a center say about a function to be minimised: BFGS's parabola, and a process of the rest.

In the coordinates u of `metric` the function is about :math:`\gamma \cdot u + |u|^2 / 2`, gamma its gradient at the
center. A Gaussian process of values and gradients takes what this leaves at the other points; its one lengthscale and
its outputscale are the likeliest. Where it knows nothing the model is the parabola: a lengthscale that is short is how
the data say that they have nothing to add to it.

| symbol | meaning |
|---|---|
| u_a, z_a | coordinates of the points, and what the parabola leaves of values and gradients there |
| l | the lengthscale, one of a few multiples of the median distance from the center |
| eta | the nugget, of the prior variance |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from eign.arrays import Array
from eign.models.derivative_kernels import Term
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.spanned.fitting import explained_by
from eign.models.spanned.moments import value_mean
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.split import SplitRows, split, split_negative_log_likelihood

LENGTHS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Lengthscales that are tried, in median distances of the points from the center."""
NUGGET: Final = 1e-12
"""eta. It is larger where the factorisation needs it; points nearby are few, so that it seldom does."""

# Of the largest value: below, what a parabola leaves is rounding.
_ROUNDING: Final = 1e-13


@dataclass(frozen=True)
class LocalModel:
    """The function around the center u = 0, above its value there.

    Attributes:
        slope: gamma, d.
        rest: The process of what the parabola leaves, coordinates in lengthscales; None if there is none.
        length: l.
        scale: Of the process's values.
        error: What the nugget lets pass, as a standard deviation in the units of f.
        offset: Value and gradient, `1 + d`, of the process at the center, where nothing is left.
    """

    slope: Array
    rest: SplitRows | None = None
    length: float = 1.0
    scale: float = 0.0
    error: float = 0.0
    offset: Array | None = None

    def __call__(self, u: Array) -> tuple[float, Array]:
        """Value and gradient at one point, `d`."""
        value, gradient = float(self.slope @ u + 0.5 * (u @ u)), self.slope + u
        if self.rest is None or self.offset is None:
            return value, gradient
        mean, slope = value_mean(self.rest, u[None] / self.length)
        slopes = slope[0] - self.offset[1:]
        value += self.scale * (float(mean[0]) - self.offset[0] - float(self.offset[1:] @ u) / self.length)
        return value, gradient + self.scale / self.length * slopes


def local_model(u: Array, values: Array, gradients: Array, slope: Array) -> LocalModel:
    """The likeliest model.

    Args:
        u: Coordinates of the points, `n x d`; those with a gradient come first.
        values: Above the center's, `n`.
        gradients: By u, `m x d`.
        slope: At the center.
    """
    rest = values - u @ slope - 0.5 * np.vecdot(u, u)
    slopes = gradients - slope - u[: len(gradients)]
    distances = np.sqrt(np.vecdot(u, u))
    extent = float(np.median(distances[distances > 0.0])) if distances.any() else 0.0
    scale = float(np.abs(rest).max(initial=0.0))
    rounding = _ROUNDING * float(np.abs(values).max(initial=0.0))
    plain = LocalModel(slope)
    if not (extent > 0.0 and rounding < scale < np.inf and np.isfinite(slopes).all()):
        return plain
    best, likeliest = plain, np.inf
    n, d = u.shape
    hyper = JointHyperparameters((Term("full", "rbf", np.ones(d)),))
    for length in extent * np.array(LENGTHS):
        data = SpannedData(u / length, rest / scale, slopes * (length / scale), np.zeros(n), np.zeros(gradients.shape))
        rows = split(data, hyper, eta=NUGGET)
        # The outputscale in closed form, as without noise it only scales the covariance.
        variance = max(explained_by(rows) / data.numbers, np.finfo(np.float64).tiny)
        unlikely = split_negative_log_likelihood(rows) + 0.5 * data.numbers * (np.log(variance) + 1.0 - variance)
        unlikely -= gradients.size * np.log(length)
        if unlikely < likeliest:
            likeliest = unlikely
            error = scale * float(np.sqrt(rows.inside.factored.nugget * variance))
            mean, gradient = value_mean(rows, np.zeros((1, d)))
            best = LocalModel(slope, rows, length, scale, error, np.concatenate([mean, gradient[0]]))
    return best
