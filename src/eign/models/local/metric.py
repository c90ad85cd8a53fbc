r"""Coordinates in which a function to be minimised is round, as far as its gradients have shown: those of BFGS.

| symbol | meaning |
|---|---|
| s, y | steps, and the changes of the gradient along them |
| B | the curvature that BFGS makes of them, from :math:`\sigma I` |
| J, C | factors :math:`B = J J^\top`, :math:`C = J^{-\top}`, so that :math:`B^{-1} = C C^\top` |
| u | :math:`J^\top (x - c)`, the coordinates; gradients by u are :math:`C^\top g` |
| W | orthonormal basis of all s and y, d x p; outside of it J is :math:`\sqrt\sigma I` |

.. math:: J \leftarrow J + \frac{(y - J w)\, w^\top}{s^\top y}, \qquad
    w = \sqrt{\frac{s^\top y}{|J^\top s|^2}}\; J^\top s

Half of |u|^2 is what BFGS takes the function to rise by: u has the unit of the root of f, whatever that of x is.

**Sweeps.** An update makes B the nearest curvature, in the divergence of Kullback and Leibler, with B s = y for its own
pair; those before it are met no longer. Repeated in turn, these projections lead to the nearest curvature that meets
all of them: of a parabola d pairs are enough, where BFGS, pair after pair, needs many times as many in a narrow valley.
Pairs of a function that is none contradict each other, and sweeps make it worse. So they are made if with them the last
pairs, held out, are foretold better. How far a pair is from being met is

.. math:: \log \frac{(s^\top B s)(y^\top B^{-1} y)}{(s^\top y)^2} \ge 0 .
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg.blas import dger

from eign.arrays import Array

# Below this cosine of s and y the pair says nothing about the curvature.
_SMALLEST_COSINE: Final = 1e-10
_SWEEPS: Final = 5
_HELD_OUT: Final = 3


@dataclass(frozen=True)
class Metric:
    """The linear map between x - c and u.

    Attributes:
        scale: The root of sigma.
        basis: W, d x p.
        forward: J' in the basis, p x p.
        backward: C' in the basis, p x p.
    """

    scale: float
    basis: Array
    forward: Array
    backward: Array

    def coordinates(self, differences: Array) -> Array:
        """The coordinates u of x - c, `... x d`."""
        return self._mapped(differences, self.scale, self.forward)

    def differences(self, coordinates: Array) -> Array:
        """The difference x - c of u, `... x d`."""
        return self._mapped(coordinates, 1.0 / self.scale, self.backward.T)

    def gradients(self, gradients: Array) -> Array:
        """Derivatives by u of those by x, `... x d`."""
        return self._mapped(gradients, 1.0 / self.scale, self.backward)

    def curvature(self) -> Array:
        """B, `d x d`."""
        inside = self.forward.T @ self.forward - self.scale**2 * np.eye(len(self.forward))
        return np.asarray(self.scale**2 * np.eye(len(self.basis)) + self.basis @ inside @ self.basis.T)

    def _mapped(self, vectors: Array, factor: float, inside: Array) -> Array:
        along = vectors @ self.basis
        return np.asarray(factor * vectors + (along @ inside.T - factor * along) @ self.basis.T)


def bfgs_metric(steps: Array, changes: Array, sigma: float) -> Metric:
    """The metric of steps and changes of the gradient, `m x d` each, oldest first.

    The curvature where nothing is known is that of the last pair, |y| / |s|; without a pair it is sigma.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        inner, lengths = np.vecdot(steps, changes), np.vecdot(steps, steps) * np.vecdot(changes, changes)
        # Changes whose squares vanish or overflow say nothing.
        curved = np.isfinite(lengths) & (lengths > 0.0) & (inner > _SMALLEST_COSINE * np.sqrt(lengths))
    s, y, inner = steps[curved], changes[curved], inner[curved]
    if len(s):
        # The geometric mean of the two curvatures that a pair has, s'y / s's and y'y / s'y: with the larger one, which
        # L-BFGS takes, directions that no step has tried yet look too steep where conditions are bad.
        sigma = float(np.linalg.norm(y[-1]) / np.linalg.norm(s[-1]))
    scale = float(np.sqrt(sigma))
    d = steps.shape[1]
    basis = np.linalg.qr(np.concatenate([s, y]).T)[0] if 2 * len(s) < d else np.eye(d)
    pairs = list(zip(s @ basis, y @ basis, inner.tolist(), strict=True))
    identity = np.eye(basis.shape[1])
    before, held = pairs[:-_HELD_OUT], pairs[-_HELD_OUT:]
    early, _ = _updated(_Factors(scale * identity, identity / scale), before)
    factors, missed = _updated(early, held)
    if before and _updated(_swept(early, before[-d:]), held)[1] < missed:
        factors = _swept(factors, pairs[-d:])
    return Metric(scale, basis, factors.forward.T, factors.backward.T)


# s and y in the basis, `p`, and their inner product.
_Pair = tuple[Array, Array, float]


class _Factors(NamedTuple):
    """J and C, `p x p`."""

    forward: Array
    backward: Array


def _swept(factors: _Factors, pairs: list[_Pair]) -> _Factors:
    """After the same pairs again and again, as long as less is missed."""
    least = np.inf
    for _ in range(_SWEEPS):
        again, missed = _updated(factors, pairs)
        if not missed < least:
            break
        factors, least = again, missed
    return factors


def _updated(factors: _Factors, pairs: list[_Pair]) -> tuple[_Factors, float]:
    """After an update for each pair in turn, and how much each missed before its own, in all."""
    J, C = factors.forward.copy(), factors.backward.copy()
    missed = 0.0
    for step, change, product in pairs:
        v, u = step @ J, change @ C
        missed += float(np.log((v @ v) / product * (u @ u) / product))
        w = np.sqrt(product / (v @ v)) * v
        p = (change - J @ w) / product
        # By the Sherman-Morrison formula for the transpose of J, whose inverse C is. So C'p is (C'y - w) / s'y.
        q = (u - w) / product
        dger(-1.0 / (1.0 + w @ q), q, C @ w, a=C.T, overwrite_a=True)
        dger(1.0, w, p, a=J.T, overwrite_a=True)
    return _Factors(J, C), missed
