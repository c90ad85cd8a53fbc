r"""Improvement of f in NumPy, with derivatives by the posterior moments; `improvement` has the forms in torch.

Our own search evaluates these a thousand times a suggestion, at some twenty points. There every operation costs more
than its arithmetic, and autograd would need many more of them.

| symbol | meaning |
|---|---|
| :math:`\mu, \sigma^2` | mean and variance of f, `m` |
| :math:`e, w` | mean excess and mean of a standard normal beyond z |
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from eign.arrays import Array
from eign.formulas.normal_numpy import NormalTail, normal_tail


class ByMoments(NamedTuple):
    """A function of the moments of f at m points: its values and derivatives by mean and variance, `m` each."""

    value: Array
    by_mean: Array
    by_variance: Array


def expected_improvement(mean: Array, variance: Array, best: float) -> ByMoments:
    r"""EI_f.

    .. math:: \sigma\,\Phi(-z)\,e, \qquad \partial_\mu = \Phi(-z), \quad \partial_{\sigma^2} = \varphi(z) / (2\sigma),
        \qquad z = (f^+ - \mu)/\sigma
    """
    sigma = np.sqrt(variance)
    z = (best - mean) / sigma
    return improvement_beyond(sigma, special.ndtr(-z), normal_tail(z))


def improvement_beyond(sigma: Array, probability: Array, tail: NormalTail) -> ByMoments:
    """EI_f from what is known of the tail beyond z."""
    return ByMoments(sigma * probability * tail.excess, probability, 0.5 * probability * tail.mills / sigma)


def log_expected_improvement(mean: Array, variance: Array, best: float) -> ByMoments:
    r"""Log of EI_f.

    .. math:: \log\sigma + \log\Phi(-z) + \log e, \qquad \partial_\mu = 1/(\sigma e), \quad
        \partial_{\sigma^2} = w / (2 \sigma^2 e)
    """
    sigma = np.sqrt(variance)
    z = (best - mean) / sigma
    tail = normal_tail(z)
    value = np.log(sigma) + special.log_ndtr(-z) + np.log(tail.excess)
    return ByMoments(value, 1.0 / (sigma * tail.excess), 0.5 * tail.mills / (variance * tail.excess))


def upper_confidence_bound(mean: Array, variance: Array, weight: float) -> ByMoments:
    r"""The bound.

    .. math:: \mu + \beta\sigma, \qquad \partial_\mu = 1, \quad \partial_{\sigma^2} = \beta / (2\sigma)
    """
    sigma = np.sqrt(variance)
    return ByMoments(mean + weight * sigma, np.ones_like(mean), 0.5 * weight / sigma)
