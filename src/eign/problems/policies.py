r"""Policies: the mean action for what is observed, and the score, the derivative of the log-likelihood.

The action is :math:`a = \mu_w(o) + \sigma \varepsilon` with standard normal :math:`\varepsilon`, so that

.. math:: \nabla_w \log \pi_w(a \mid o) = \frac{a - \mu_w(o)}{\sigma^2} \nabla_w \mu_w(o)

Shapes: observations are `... x k x n x m` for m rollouts of each of n parameter vectors w, which are `n x p`; mean
actions are `... x n x m`. Sums run over the leading axes row by row, so that no rollout depends on its neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from eign.arrays import Array

HIDDEN = 2


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """A family of policies.

    Attributes:
        mean: Mean actions of parameters at observations, `n x p, ... x k x n x m -> ... x n x m`.
        pullback: For parameters, observations `t x k x n x m` and factors `t x n x m`, the sums over t of factor
            times gradient of the mean action with respect to the parameters, `n x p x m`.
        parameters: How many parameters there are for k observed numbers.
    """

    mean: Callable[[Array, Array], Array]
    pullback: Callable[[Array, Array, Array], Array]
    parameters: Callable[[int], int]


def linear_mean(w: Array, observations: Array) -> Array:
    r"""The mean :math:`\tanh(o^\top w)`."""
    return np.asarray(np.tanh(np.add.reduce(w.T[:, :, np.newaxis] * observations, axis=-3)))


def linear_pullback(w: Array, observations: Array, factors: Array) -> Array:
    r"""Sums of factor times :math:`(1 - \mu^2)\, o`."""
    inner = factors * (1.0 - linear_mean(w, observations) ** 2)
    return np.asarray(np.einsum("tnm,tknm->nkm", inner, observations))


def relu_mean(w: Array, observations: Array) -> Array:
    r"""The mean :math:`\tanh(\mathrm{ReLU}(o^\top w_1 + b_1)^\top w_2 + b_2)` with two hidden units.

    The parameters are w_1 (k x 2, row by row), b_1, w_2, b_2 in this order.
    """
    _, _, w2, b2 = _relu_parts(w)
    return np.asarray(np.tanh(np.add.reduce(w2 * _hidden(w, observations), axis=-3) + b2))


def relu_pullback(w: Array, observations: Array, factors: Array) -> Array:
    r"""Sums of factor times :math:`(1 - \mu^2)\,(o\, h'^\top, h', h, 1)` with h' = w_2 where a unit is active."""
    _, _, w2, _ = _relu_parts(w)
    hidden = _hidden(w, observations)
    inner = factors * (1.0 - relu_mean(w, observations) ** 2)
    through = inner[:, np.newaxis] * np.where(hidden > 0.0, w2, 0.0)
    into_w1 = np.einsum("tknm,tjnm->nkjm", observations, through)
    parts = [
        into_w1.reshape(len(w), HIDDEN * observations.shape[1], into_w1.shape[-1]),
        np.moveaxis(through.sum(axis=0), 0, 1),
        np.einsum("tnm,tjnm->njm", inner, hidden),
        inner.sum(axis=0)[:, np.newaxis],
    ]
    return np.concatenate(parts, axis=1)


def _hidden(w: Array, observations: Array) -> Array:
    """The two hidden units, `... x k x n x m -> ... x 2 x n x m`."""
    w1, b1, _, _ = _relu_parts(w)
    sums = np.add.reduce(w1 * observations[..., np.newaxis, :, :], axis=-4)
    return np.asarray(np.maximum(sums + b1, 0.0))


def _relu_parts(w: Array) -> tuple[Array, Array, Array, Array]:
    """w_1 `k x 2 x n x 1`, b_1 and w_2 `2 x n x 1`, and b_2 `n x 1`."""
    columns = np.ascontiguousarray(w.T)[:, :, np.newaxis]
    w1, b1, w2, b2 = np.split(columns, [-5, -3, -1])
    return w1.reshape(len(w1) // HIDDEN, HIDDEN, *w1.shape[1:]), b1, w2, b2[0]


def linear_parameters(observed: int) -> int:
    """One weight for each observed number."""
    return observed


def relu_parameters(observed: int) -> int:
    """Weights into the hidden units and their biases, weights out of them and a bias.

    >>> relu_parameters(4)
    13
    """
    return (observed + 2) * HIDDEN + 1


LINEAR = Policy(linear_mean, linear_pullback, linear_parameters)
RELU = Policy(relu_mean, relu_pullback, relu_parameters)
