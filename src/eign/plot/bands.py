"""Many runs as one curve with a band: mean and standard error, and the same of regrets in logarithms."""

from typing import Final, NamedTuple

import numpy as np

from eign.arrays import Array

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


def regrets(best: Array, optimum: float) -> Array:
    """How far the best values are from the optimum, on either side of it, and at least `REGRET_FLOOR`.

    >>> regrets(np.array([3.0, 5.0]), 5.0)
    array([2.e+00, 5.e-09])
    """
    return np.asarray(np.maximum(np.abs(best - optimum), REGRET_FLOOR * max(1.0, abs(optimum))))


def regret_band(best: Array, optimum: float) -> Band:
    r"""The geometric mean of the regrets, and one standard error of their logarithms, `n x k -> k` each.

    .. math:: \exp\bigl(\overline{\log r} \pm \mathrm{SE}(\log r)\bigr)

    On a log scale the band is then symmetric and never leaves it, and no single run decides where the curve is.
    """
    return Band(*(np.exp(part) for part in mean_band(np.log(regrets(best, optimum)))))
