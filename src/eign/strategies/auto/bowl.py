r"""A bowl under the ripples: where the gradients of a whole design say that f rises to.

| symbol | meaning |
|---|---|
| x, g | points and their gradients |
| a, c | curvature of a bowl :math:`-\tfrac a2 \|x - c\|^2` and its top, whose gradient is a (c - x) |
| r | what it leaves of a gradient |

The fit minimises the sum of :math:`\|r\|`, not of its square: ripples are steep at a few points and hardly there at
the others, and these tell. It does not depend on rotations of the cube.
"""

from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign.data import Observations

# So much more likely, in natural logarithms, the gradients must be with a bowl than with a slope. Where there is none,
# as in samples of a Gaussian process, a design gains less than 3; where there is, 10 to 50.
_EVIDENCE: Final = 7.0
_FEWEST: Final = 4
_ITERATIONS: Final = 50
# Of the largest residual: the weight of a gradient that fits exactly stays finite.
_SMALLEST: Final = 1e-9


class _Fit(NamedTuple):
    """Curvature, gradient at the origin, `d`, and the sum of the residuals' lengths."""

    curvature: float
    slope: Array
    residual: float


def bowl_top(data: Observations) -> Array | None:
    r"""The top of the bowl in the cube, `d`, or None if the gradients show none.

    Residuals have the density :math:`\propto s^{-d} e^{-\|r\| / s}`, so that with the best s the bowl is more likely
    than a plane, which has no curvature, by :math:`n d \log(\sum\|r_0\| / \sum\|r\|)`.
    """
    complete = data.has_grad.all(axis=1)
    x, gradients = data.x[complete], data.grad[complete]
    largest = np.abs(gradients).max(initial=0.0)
    if len(x) < _FEWEST or largest == 0.0:
        return None
    scaled = gradients / largest
    plane, bowl = _fit(x, scaled, curved=False), _fit(x, scaled, curved=True)
    tiny = np.finfo(np.float64).tiny
    evidence = scaled.size * np.log(max(plane.residual, tiny) / max(bowl.residual, tiny))
    if bowl.curvature <= 0.0 or evidence < _EVIDENCE:
        return None
    return np.clip(bowl.slope / bowl.curvature, 0.0, 1.0)


def _fit(x: Array, gradients: Array, *, curved: bool) -> _Fit:
    """Iteratively reweighted least squares, which has a closed form: weights are the inverse lengths of residuals."""
    weights, curvature = np.ones(len(x)), 0.0
    for _ in range(_ITERATIONS):
        weights /= weights.sum()
        center, mean = weights @ x, weights @ gradients
        if curved:
            spread = float(weights @ ((x - center) ** 2).sum(axis=1))
            together = float(weights @ ((x - center) * (gradients - mean)).sum(axis=1))
            curvature = -together / max(spread, np.finfo(np.float64).tiny)
        slope = mean + curvature * center
        lengths = np.linalg.norm(gradients - slope + curvature * x, axis=1)
        if not lengths.any():
            break
        weights = 1.0 / np.maximum(lengths, _SMALLEST * lengths.max())
    return _Fit(curvature, slope, float(lengths.sum()))
