r"""Values of the acquisition formulas with their derivatives by the posterior moments, in NumPy, for our own search.

The formulas themselves are in `eign.formulas`; here are the same numbers, and partial derivatives that autograd would
find in many more operations. At twenty points every operation costs more than its arithmetic, and these run a thousand
times a suggestion.

| symbol | meaning |
|---|---|
| :math:`\mu, \sigma^2` | mean and variance of f, `m` |
| :math:`m_i, s_i^2` | means and variances of the partial derivatives, `m x d` |
| :math:`e, v, w` | mean excess, variance and mean of a standard normal beyond z |
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

# Left of it the definitions of e and v lose at most z^4 = 1.6e5 roundings; right of it these many levels of Laplace's
# continued fraction are exact to rounding.
_SWITCH: Final = 20.0
_LEVELS: Final = 9


class NormalTail(NamedTuple):
    """Of a standard normal Z beyond z: log P(Z > z), E[Z - z | Z > z], Var[Z | Z > z] and E[Z | Z > z]."""

    log_probability: Array
    excess: Array
    variance: Array
    mills: Array


class ByMoments(NamedTuple):
    """A function of the moments of f at m points: its values and derivatives by mean and variance, `m` each."""

    value: Array
    by_mean: Array
    by_variance: Array


def normal_tail(z: Array) -> NormalTail:
    """The tail of `eign.formulas.normal_tail`, element by element."""
    near = np.minimum(z, _SWITCH)
    mills = np.sqrt(2 / np.pi) / special.erfcx(near * np.sqrt(0.5))
    excess = mills - near
    variance = 1.0 - mills * excess
    is_far = z > _SWITCH
    if is_far.any():
        far = z[is_far]
        t3 = far
        for level in range(_LEVELS, 2, -1):
            t3 = far + level / t3
        t2 = far + 2 / t3
        excess[is_far], variance[is_far], mills[is_far] = 1 / t2, (2 - t3 / t2) / t2 / t3, far + 1 / t2
    return NormalTail(special.log_ndtr(-z), excess, variance, mills)


def expected_improvement(mean: Array, variance: Array, best: float) -> ByMoments:
    r"""EI_f.

    .. math:: \sigma\,\Phi(-z)\,e, \qquad \partial_\mu = \Phi(-z), \quad \partial_{\sigma^2} = \varphi(z) / (2\sigma),
        \qquad z = (f^+ - \mu)/\sigma
    """
    sigma = np.sqrt(variance)
    tail = normal_tail((best - mean) / sigma)
    probability = np.exp(tail.log_probability)
    return ByMoments(sigma * probability * tail.excess, probability, 0.5 * probability * tail.mills / sigma)


def log_expected_improvement(mean: Array, variance: Array, best: float) -> ByMoments:
    r"""Log of EI_f.

    .. math:: \log\sigma + \log\Phi(-z) + \log e, \qquad \partial_\mu = 1/(\sigma e), \quad
        \partial_{\sigma^2} = w / (2 \sigma^2 e)
    """
    sigma = np.sqrt(variance)
    tail = normal_tail((best - mean) / sigma)
    value = np.log(sigma) + tail.log_probability + np.log(tail.excess)
    return ByMoments(value, 1.0 / (sigma * tail.excess), 0.5 * tail.mills / (variance * tail.excess))


def upper_confidence_bound(mean: Array, variance: Array, weight: float) -> ByMoments:
    r"""The bound.

    .. math:: \mu + \beta\sigma, \qquad \partial_\mu = 1, \quad \partial_{\sigma^2} = \beta / (2\sigma)
    """
    sigma = np.sqrt(variance)
    return ByMoments(mean + weight * sigma, np.ones_like(mean), 0.5 * weight / sigma)


def orthant_gradient_increase(grad_mean: Array, grad_variance: Array, best_grad: Array) -> ByMoments:
    r"""EI_s-bar for independent partial derivatives, `m x d -> m`; its derivatives are `m x d`.

    .. math:: P\,Q, \quad P = \prod_i \Phi(-z_i), \quad Q = \sum_i \bigl( 2 g^+_i s_i e_i + s_i^2 (e_i^2 + v_i) \bigr)

    With t = dPQ/dz_i = P (dQ/dz_i - w_i Q) and dQ/dz_i = -2 g_i s_i v_i + s_i^2 (w_i (v_i - e_i^2) - 2 e_i v_i):
    the derivative by m_i is -t / s_i, and that by s_i is P (2 g_i e_i + 2 s_i (e_i^2 + v_i)) - t z_i / s_i.
    """
    sigma = np.sqrt(grad_variance)
    z = (best_grad - grad_mean) / sigma
    log_probability, e, v, w = normal_tail(z)
    probability = np.exp(log_probability.sum(axis=-1))
    step, square = sigma * e, e * e
    second = grad_variance * (square + v)
    increase = (2.0 * best_grad * step + second).sum(axis=-1)
    by_z = grad_variance * (w * (v - square) - 2.0 * e * v) - 2.0 * best_grad * sigma * v
    by_z = probability[:, None] * (by_z - w * increase[:, None])
    along = by_z / sigma
    by_sigma = 2.0 * probability[:, None] * (best_grad * e + second / sigma) - along * z
    return ByMoments(probability * increase, -along, 0.5 * by_sigma / sigma)
