"""Many runs as one curve with a band: mean and standard error, and the same of regrets in logarithms."""

from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign.notices import warn_user

REGRET_FLOOR: Final = 1e-9
"""Regrets below this share of the optimum, or of 1 if that is larger, are drawn at it: rounding is no progress."""


class MeanAndError(NamedTuple):
    """Of a sample along its first axis; the error of a single value is NaN."""

    mean: Array
    error: Array


class Band(NamedTuple):
    """A curve and what lies one standard error below and above."""

    middle: Array
    low: Array
    high: Array


def mean_and_error(values: Array) -> MeanAndError:
    r"""The mean and its standard error, `n x ... -> ..., ...`.

    .. math:: \bar v = \frac1n\sum_i v_i, \qquad \sqrt{\frac{\sum_i (v_i - \bar v)^2}{n (n - 1)}}

    >>> mean, error = mean_and_error(np.array([1.0, 2.0, 3.0]))
    >>> float(mean), round(float(error) ** 2, 12)
    (2.0, 0.333333333333)
    """
    values = np.asarray(values, dtype=np.float64)
    n, mean = len(values), values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(mean.shape, np.nan)
    return MeanAndError(np.asarray(mean), np.asarray(error))


def mean_band(values: Array) -> Band:
    """Mean and one standard error to either side, `n x k -> k` each; a single run has no width."""
    mean, error = mean_and_error(values)
    error = np.nan_to_num(error)
    return Band(mean, mean - error, mean + error)


def regrets(best: Array, optimum: float, *, maximize: bool | None = None) -> Array:
    """How far values are from the optimum, at least `REGRET_FLOOR`. Values beyond it are none, and a warning says so.

    >>> regrets(np.array([3.0, 5.0]), 5.0)
    array([2.e+00, 5.e-09])

    Args:
        best: Values, or best values so far along the last axis.
        optimum: As somebody states it; with noise, single values may be beyond.
        maximize: Whether larger values are better; None looks at whether best values rise.
    """
    best, floor = np.asarray(best, dtype=np.float64), REGRET_FLOOR * max(1.0, abs(optimum))
    change = np.nansum(np.diff(best, axis=-1)) or np.nansum(optimum - best)
    distance = optimum - best if (change > 0.0 if maximize is None else maximize) else best - optimum
    if (furthest := float(np.nanmin(distance, initial=0.0))) < -floor:
        warn_user(
            f"values are beyond the optimum of {optimum:g}, by up to {-furthest:.3g}: either it is stated wrongly, or "
            "they are noisy; they are drawn as if they were at it"
        )
    return np.asarray(np.maximum(distance, floor))


def regret_band(best: Array, optimum: float, *, maximize: bool | None = None) -> Band:
    r"""The geometric mean of the regrets, and one standard error of their logarithms, `n x k -> k` each.

    .. math:: \exp\bigl(\overline{\log r} \pm \mathrm{SE}(\log r)\bigr)

    On a log scale the band is then symmetric and never leaves it, and no single run decides where the curve is.
    """
    return Band(*(np.exp(part) for part in mean_band(np.log(regrets(best, optimum, maximize=maximize)))))
