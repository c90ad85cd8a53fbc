r"""Increase of the gradient's norm in NumPy, with derivatives by the moments; `gradient_norm` has the forms in torch.

| symbol | meaning |
|---|---|
| :math:`m_i, s_i^2` | means and variances of the partial derivatives, `m x d` |
| :math:`e, v, w` | mean excess, variance and mean of a standard normal beyond z |
"""

import numpy as np
from scipy import special

from eign.arrays import Array
from eign.formulas.improvement_numpy import ByMoments, improvement_beyond
from eign.formulas.normal_numpy import NormalTail, normal_tail


def orthant_gradient_increase(grad_mean: Array, grad_variance: Array, best_grad: Array) -> ByMoments:
    r"""EI_s-bar for independent partial derivatives, `m x d -> m`; its derivatives are `m x d`.

    .. math:: P\,Q, \quad P = \prod_i \Phi(-z_i), \quad Q = \sum_i \bigl( 2 g^+_i s_i e_i + s_i^2 (e_i^2 + v_i) \bigr)

    With t = dPQ/dz_i = P (dQ/dz_i - w_i Q) and dQ/dz_i = s_i^2 (z_i v_i - e_i) - 2 g_i s_i v_i (v = 1 - w e): the
    derivative by m_i is -t / s_i, and that by s_i^2 is P (g_i e_i / s_i + e_i^2 + v_i) - t z_i / (2 s_i^2).
    """
    sigma = np.sqrt(grad_variance)
    z = (best_grad - grad_mean) / sigma
    return _orthant_increase(sigma, z, np.multiply.reduce(special.ndtr(-z), axis=-1), normal_tail(z), best_grad)


def ei_gn(mean: Array, variance: Array, best: Array, weights: tuple[float, float]) -> ByMoments:
    r"""Weighted difference of EI_f and EI_s-bar of f and its partial derivatives, f first, `m x (d+1) -> m`.

    .. math:: \beta\,EI_f - \gamma\,\overline{EI}_s

    The tails of all components are found together. The derivatives are `m x (d+1)`; `best` is `d+1`.
    """
    sigma = np.sqrt(variance)
    z = (best - mean) / sigma
    (excess, spread, mills), probability = normal_tail(z), special.ndtr(-z)
    improvement = improvement_beyond(
        sigma[:, 0], probability[:, 0], NormalTail(excess[:, 0], spread[:, 0], mills[:, 0])
    )
    rest = NormalTail(excess[:, 1:], spread[:, 1:], mills[:, 1:])
    orthant = np.multiply.reduce(probability[:, 1:], axis=-1)
    increase = _orthant_increase(sigma[:, 1:], z[:, 1:], orthant, rest, best[1:])
    by_mean, by_variance = np.empty_like(mean), np.empty_like(mean)
    np.multiply(weights[0], improvement.by_mean, out=by_mean[:, 0])
    np.multiply(-weights[1], increase.by_mean, out=by_mean[:, 1:])
    np.multiply(weights[0], improvement.by_variance, out=by_variance[:, 0])
    np.multiply(-weights[1], increase.by_variance, out=by_variance[:, 1:])
    return ByMoments(weights[0] * improvement.value - weights[1] * increase.value, by_mean, by_variance)


def _orthant_increase(sigma: Array, z: Array, probability: Array, tail: NormalTail, best_grad: Array) -> ByMoments:
    e, v, w = tail
    second = e * e + v
    pulled = best_grad * e
    increase = np.add.reduce(sigma * (2.0 * pulled + sigma * second), axis=-1)
    by_z = sigma * (sigma * (z * v - e) - 2.0 * best_grad * v)
    by_z -= w * increase[:, None]
    tall = probability[:, None]
    along = tall * by_z / sigma
    return ByMoments(probability * increase, -along, tall * (pulled / sigma + second) - 0.5 * along * z / sigma)


def orthant_gradient_increase_full(grad_mean: Array, grad_chol: Array, best_grad: Array) -> ByMoments:
    r"""EI_s-bar for correlated partial derivatives, `m x d, m x d x d -> m`; derivatives by mean and covariance.

    `grad_chol` are the lower factors L of the covariances.

    .. math:: P\,Q, \quad Q = 2 g^{+\top} q + |q|^2 + \sum_i (L^\top L)_{ii} v_i, \quad q = L e,
        \quad z = L^{-1} (g^+ - m)

    With t = dPQ/dz: the derivative by m is -L^{-T} t, that by L is the lower triangle of
    P (2 (g + q) e' + 2 L diag(v)) - L^{-T} t z', and the one by the covariance follows from it as
    L^{-T} sym(L' dL) L^{-1}, where sym halves the diagonal of the lower triangle, mirrors it and halves the whole.
    """
    lower = grad_chol
    inverse = np.linalg.inv(lower)
    z = np.einsum("mij,mj->mi", inverse, best_grad - grad_mean)
    e, v, w = normal_tail(z)
    probability = special.ndtr(-z).prod(axis=-1)
    q = np.einsum("mij,mj->mi", lower, e)
    pull = 2.0 * (best_grad + q)
    squares = np.einsum("mji,mji->mi", lower, lower)
    increase = ((pull - q) * q + squares * v).sum(axis=-1)
    by_z = squares * w * (v - e * e) - np.einsum("mji,mj->mi", lower, pull) * v - w * increase[:, None]
    turned = np.einsum("mji,mj->mi", inverse, probability[:, None] * by_z)
    by_lower = pull[:, :, None] * e[:, None, :] + 2.0 * lower * v[:, None, :]
    by_lower = probability[:, None, None] * by_lower - turned[:, :, None] * z[:, None, :]
    inner = np.tril(lower.swapaxes(-1, -2) @ np.tril(by_lower))
    inner = 0.5 * (inner + inner.swapaxes(-1, -2))
    np.einsum("mii->mi", inner)[...] *= 0.5
    return ByMoments(probability * increase, -turned, inverse.swapaxes(-1, -2) @ inner @ inverse)
