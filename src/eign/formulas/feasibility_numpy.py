r"""How probable it is that a constraint holds, in NumPy with derivatives by the moments; `feasibility` is in torch.

| symbol | in code | meaning |
|---|---|---|
| :math:`\mu, \sigma^2` | `mean`, `variance` | of the constraint c at a point |
| l, u | `lower`, `upper` | its limits, infinite where open |
| a, b | `a`, `b` | standardised limits, :math:`(l - \mu)/\sigma` and :math:`(u - \mu)/\sigma` |
| m, w | `middle`, `width` | their middle and their distance |

An equality has no probability: it is given a tolerance on both sides, which shrinks as one likes. The forms below keep
their digits for an interval of any width at any distance.
"""

from typing import Final

import numpy as np
from scipy import special

from eign.arrays import Array
from eign.formulas.improvement_numpy import ByMoments
from eign.formulas.normal_numpy import normal_tail

# Of an interval with w max(1, |m|) below this the density is a polynomial: the first term left out is below 1e-16.
_NARROW: Final = 3e-2
_LOG_ROOT_TWO_PI: Final = 0.5 * float(np.log(2.0 * np.pi))


def log_probability_of_feasibility(mean: Array, variance: Array, lower: float, upper: float) -> ByMoments:
    r"""Log of P(l <= c <= u) for c ~ N(mean, variance).

    .. math:: \log(\Phi(b) - \Phi(a)), \qquad
        \partial_\mu = \frac{\varphi(a) - \varphi(b)}{\sigma P}, \quad
        \partial_{\sigma^2} = \frac{a\,\varphi(a) - b\,\varphi(b)}{2 \sigma^2 P}

    >>> float(log_probability_of_feasibility(np.array([0.0]), np.array([1.0]), -np.inf, 0.0).value[0])
    -0.6931471805599453
    """
    sigma = np.sqrt(variance)
    a, b = (lower - mean) / sigma, (upper - mean) / sigma
    if lower == -np.inf or upper == np.inf:
        sign, beyond = (1.0, a) if upper == np.inf else (-1.0, -b)
        mills = normal_tail(beyond).mills
        return ByMoments(special.log_ndtr(-beyond), sign * mills / sigma, 0.5 * beyond * mills / variance)
    # Mirrored, so that the interval is on the right of 0 or around it: the upper tail is what has digits there.
    is_left = a + b < 0.0
    near, far = np.where(is_left, -b, a), np.where(is_left, -a, b)
    value, by_near, by_far = _between(near, far)
    by_a, by_b = np.where(is_left, -by_far, by_near), np.where(is_left, -by_near, by_far)
    return ByMoments(value, -(by_a + by_b) / sigma, -0.5 * (a * by_a + b * by_b) / variance)


def _between(a: Array, b: Array) -> tuple[Array, Array, Array]:
    r"""Log of Phi(b) - Phi(a) and its derivatives by a and b, for a + b >= 0."""
    middle, width = 0.5 * (a + b), b - a
    is_narrow = width * np.maximum(1.0, np.abs(middle)) < _NARROW
    # Elsewhere harmless numbers: both branches are computed for all.
    log_tail, tail = special.log_ndtr(-a), normal_tail(np.where(is_narrow, 0.0, a))
    beyond = np.where(is_narrow, -1.0, special.log_ndtr(-b) - log_tail)
    share = -np.expm1(np.minimum(beyond, -np.finfo(np.float64).tiny))
    value = log_tail + np.log(share)
    by_a = -tail.mills / share
    by_b = normal_tail(np.where(is_narrow, 0.0, b)).mills * np.exp(beyond) / share
    # Around 0 the tails are small beside what is between them.
    around = special.ndtr(a) + special.ndtr(-b)
    value = np.where((a < 0.0) & ~is_narrow, np.log1p(-np.minimum(around, 0.999)), value)
    if not is_narrow.any():
        return value, by_a, by_b
    narrow, by_middle, by_width = _narrow(middle, np.where(is_narrow, width, 1.0))
    return (
        np.where(is_narrow, narrow, value),
        np.where(is_narrow, 0.5 * by_middle - by_width, by_a),
        np.where(is_narrow, 0.5 * by_middle + by_width, by_b),
    )


def _narrow(middle: Array, width: Array) -> tuple[Array, Array, Array]:
    r"""Log of the integral of phi over a narrow interval and its derivatives by middle and width.

    .. math:: \log\varphi(m) + \log w
        + \log\Bigl(1 + \tfrac{w^2}{24}(m^2 - 1) + \tfrac{w^4}{1920}(m^4 - 6 m^2 + 3) + \dots\Bigr)
    """
    m2, w2 = middle * middle, width * width
    third = m2 * m2 * m2 - 15 * m2 * m2 + 45 * m2 - 15
    series = w2 / 24 * (m2 - 1) + w2 * w2 / 1920 * (m2 * m2 - 6 * m2 + 3) + w2 * w2 * w2 / 322560 * third
    by_m = w2 / 12 * middle + w2 * w2 / 1920 * (4 * m2 - 12) * middle
    by_w = width / 12 * (m2 - 1) + w2 * width / 480 * (m2 * m2 - 6 * m2 + 3)
    value = -0.5 * m2 - _LOG_ROOT_TWO_PI + np.log(width) + np.log1p(series)
    return value, -middle + by_m / (1.0 + series), 1.0 / width + by_w / (1.0 + series)
