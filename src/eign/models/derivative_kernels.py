r"""Covariance of (f, grad f) at pairs of points, and its derivatives in closed form.

Notation. A kernel is a sum of terms; a term is a function phi of s = r^2 / 2, with r^2 = sum_i delta_i^2 / l_i^2 and
delta = x - x' (structure "full"), or the mean over the coordinates of one-dimensional functions phi(s_i) with
s_i = delta_i^2 / (2 l_i^2) (structure "additive"), times an outputscale.

| symbol | meaning |
|---|---|
| `delta` | x - x', component first: d x pairs, so that every operation runs over contiguous pairs |
| D_i | delta_i / l_i^2, which is ds/dx_i |
| phi, phi', phi'', phi''' | the profile and its derivatives by s, not by r: none of them needs a case for r = 0 |
| component 0 | f |
| component i = 1 .. d | the partial derivative by x_i |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from eign.arrays import Array

Profile = Literal["matern52", "rbf"]
Structure = Literal["full", "additive"]

# Keeps phi''' of the Matern-5/2 finite at r = 0, where whatever it multiplies is exactly zero.
_SMALLEST_DISTANCE = 1e-100


@dataclass(frozen=True)
class Term:
    """One summand of a kernel, with its hyperparameters.

    Attributes:
        structure: "full" (a function of all coordinates) or "additive" (mean of functions of one coordinate each).
        profile: The function of the scaled distance.
        lengthscale: d lengthscales.
        outputscale: Prior variance of f from this term.
        median: Prior median of the lengthscales; where they start.
    """

    structure: Structure
    profile: Profile
    lengthscale: Array
    outputscale: float = 1.0
    median: float = 0.4

    @property
    def weight(self) -> float:
        """The factor of each profile in the covariance of f: outputscale, or outputscale / d for an additive term."""
        return self.outputscale / len(self.lengthscale) if self.structure == "additive" else self.outputscale

    @property
    def precision(self) -> Array:
        """1 / lengthscale^2."""
        return self.lengthscale**-2.0


_SUMMANDS: dict[str, tuple[tuple[Structure, Profile, float], ...]] = {
    "matern52": (("full", "matern52", 0.4),),
    "rbf": (("full", "rbf", 0.4),),
    "additive": (("additive", "matern52", 0.4),),
    "additive+full": (("full", "matern52", 0.4), ("additive", "matern52", 0.4)),
    # Slow and fast coordinate-wise variation apart: ripples on a bowl.
    "two-additive+full": (("full", "matern52", 0.4), ("additive", "matern52", 0.7), ("additive", "matern52", 0.1)),
    "two-additive+full-rbf": (("full", "rbf", 0.4), ("additive", "rbf", 0.7), ("additive", "rbf", 0.1)),
}
KERNELS = tuple(_SUMMANDS)
SELECTABLE = ("matern52", "two-additive+full", "rbf", "two-additive+full-rbf")
"""Those that the data may choose from, see `selection`."""


def default_terms(kernel: str, dimension: int) -> tuple[Term, ...]:
    """The terms of a named kernel, lengthscales at their prior medians, outputscales sharing a prior variance of 1.

    >>> [term.structure for term in default_terms("additive+full", 3)]
    ['full', 'additive']
    """
    if kernel not in _SUMMANDS:
        raise ValueError(f"kernel={kernel!r} is not known; choose one of {', '.join(KERNELS)}")
    summands = _SUMMANDS[kernel]
    return tuple(
        Term(structure, profile, np.full(dimension, median), 1.0 / len(summands), median)
        for structure, profile, median in summands
    )


def with_hyperparameters(terms: Sequence[Term], lengthscales: Array, outputscales: Array) -> tuple[Term, ...]:
    """The same terms with other hyperparameters: terms x d lengthscales, one outputscale each."""
    return tuple(
        replace(term, lengthscale=lengthscale, outputscale=float(outputscale))
        for term, lengthscale, outputscale in zip(terms, lengthscales, outputscales, strict=True)
    )


def profile_derivatives(profile: Profile, r2: Array, *, order: int) -> tuple[Array, ...]:
    r"""Phi and its first `order` (at most 3) derivatives by s = r^2/2.

    .. math::
        \text{RBF: } e^{-s}, -e^{-s}, e^{-s}, -e^{-s}; \qquad
        \text{Matern-5/2, } q = \sqrt5 r: \;
        (1 + q + q^2/3)\,e^{-q},\; -\tfrac53 (1 + q)\,e^{-q},\; \tfrac{25}3 e^{-q},\; -\tfrac{125}{3q} e^{-q}

    The last one is infinite at r = 0 but only ever occurs times delta_i delta_j; a tiny q stands in for zero.
    """
    if profile == "rbf":
        e = np.exp(-0.5 * r2)
        return (e, -e, e, -e)[: order + 1]
    q = np.sqrt(5.0 * r2)
    e = np.exp(-q)
    tail = (q + 1.0) * e
    derivatives: list[Array] = [tail + (q * q) * (e / 3.0), tail * (-5.0 / 3.0)]
    if order >= 2:
        derivatives.append(e * (25.0 / 3.0))
    if order >= 3:
        derivatives.append(e * (-125.0 / 3.0) / np.maximum(q, _SMALLEST_DISTANCE))
    return tuple(derivatives[: order + 1])


def slope_at_zero(profile: Profile) -> float:
    """-phi'(0): the prior variance of l_i df/dx_i for a term of outputscale 1."""
    return 1.0 if profile == "rbf" else 5.0 / 3.0


def prior_variances(terms: Sequence[Term]) -> Array:
    """Prior variance of each component of (f, grad f), which is the same at every point: d+1."""
    value = sum(term.outputscale for term in terms)
    slopes = sum(term.weight * slope_at_zero(term.profile) * term.precision for term in terms)
    return np.concatenate(([value], np.asarray(slopes)))


def covariance_blocks(terms: Sequence[Term], delta: Array, *, left: bool, right: bool) -> Array:
    r"""Covariance of the components at x with the components at x', for pairs of points.

    .. math::
        \begin{aligned}
        \mathrm{cov}(f, f') &= \phi, & \mathrm{cov}(f, \partial_j f') &= -\phi' D_j, \\
        \mathrm{cov}(\partial_i f, f') &= \phi' D_i, &
        \mathrm{cov}(\partial_i f, \partial_j f') &= -\phi'' D_i D_j - \delta_{ij}\, \phi' / l_i^2
        \end{aligned}

    Args:
        terms: The kernel; the formula is summed over its terms.
        delta: d x pairs, x - x' (pairs may be any shape).
        left: Whether to include the partial derivatives at x, otherwise f alone.
        right: The same at x'.

    Returns:
        (d+1 or 1) x (d+1 or 1) x pairs.
    """
    d, pairs = len(delta), delta.shape[1:]
    # In memory the blocks come just before the last index, so that a matrix with one row a left point is a view.
    fresh = np.empty if left and right and terms[0].structure == "full" else np.zeros
    stored = fresh((*pairs[:-1], 1 + d * left, 1 + d * right, *pairs[-1:]))
    blocks = np.moveaxis(stored, (len(pairs) - 1, len(pairs)), (0, 1)) if pairs else stored
    for term in terms:
        precision = _over_pairs(term.precision, delta)
        scaled = precision * delta
        phi, phi1, phi2 = weighted_profiles(term, delta, scaled, order=2)
        slope = phi1 * scaled
        if left and right and term.structure == "full" and term is terms[0]:
            # The first to write to these blocks, which have not been set to zero.
            blocks[0, 0], blocks[1:, 0] = phi.sum(0), slope
            np.negative(slope, out=blocks[0, 1:])
            np.multiply((phi2 * scaled)[:, None], -scaled, out=blocks[1:, 1:])
            np.einsum("ii...->i...", blocks[1:, 1:])[...] -= phi1 * precision
            continue
        blocks[0, 0] += phi.sum(0)
        if right:
            blocks[0, 1:] -= slope
        if left:
            blocks[1:, 0] += slope
        if left and right:
            curvature = phi2 * scaled
            if term.structure == "full":
                blocks[1:, 1:] -= curvature[:, None] * scaled
            else:
                np.einsum("ii...->i...", blocks[1:, 1:])[...] -= curvature * scaled
            np.einsum("ii...->i...", blocks[1:, 1:])[...] -= phi1 * precision
    return blocks


def covariance_blocks_vjp(terms: Sequence[Term], delta: Array, cotangent: Array) -> Array:
    r"""Gradient by delta of sum(cotangent * covariance_blocks(delta)): d x pairs.

    With G the cotangent of a pair, V_i = G_i0 - G_0i and M its gradient-gradient part, a full term gives

    .. math::
        Q D_k + l_k^{-2} \bigl( \phi' V_k - \phi'' ((M + M^\top) D)_k \bigr), \qquad
        Q = \phi' G_{00} + \phi'' \Bigl( V \cdot D - \sum_i M_{ii} / l_i^2 \Bigr) - \phi''' D^\top M D

    and an additive term the same for each coordinate on its own, with G_00 shared. The pairs of `cotangent` and `delta`
    broadcast, so that several cotangents share the profiles.
    """
    left, right = cotangent.shape[0] > 1, cotangent.shape[1] > 1
    shape = (len(delta), *np.broadcast_shapes(delta.shape[1:], cotangent.shape[2:]))
    total, mixed = np.zeros(shape), np.zeros(shape)
    if left:
        mixed += cotangent[1:, 0]
    if right:
        mixed -= cotangent[0, 1:]
    both = cotangent[1:, 1:] if left and right else None
    for term in terms:
        precision = _over_pairs(term.precision, delta)
        scaled = precision * delta
        _, phi1, phi2, phi3 = weighted_profiles(term, delta, scaled, order=3)
        full = term.structure == "full"
        along = mixed * scaled
        slope = phi1 * mixed
        if both is not None:
            diagonal = np.einsum("ii...->i...", both)
            if full:
                turned = np.einsum("ij...,j...->i...", both, scaled)
                quadratic = turned * scaled
                turned = turned + np.einsum("ji...,j...->i...", both, scaled)
            else:
                turned = 2.0 * diagonal * scaled
                quadratic = diagonal * scaled * scaled
            slope -= phi2 * turned
            along -= diagonal * precision
            total -= scaled * phi3 * (quadratic.sum(0) if full else quadratic)
        total += scaled * (phi1 * cotangent[0, 0] + phi2 * (along.sum(0) if full else along))
        total += precision * slope
    return total


def _over_pairs(coefficients: Array, delta: Array) -> Array:
    """One coefficient a coordinate, shaped to broadcast over d x pairs."""
    return coefficients.reshape(-1, *(1,) * (delta.ndim - 1))


def weighted_profiles(term: Term, delta: Array, scaled: Array, *, order: int) -> tuple[Array, ...]:
    """Profile derivatives times the term's weight: 1 x pairs for a full term, d x pairs for an additive one."""
    squared = delta * scaled
    r2 = squared.sum(0, keepdims=True) if term.structure == "full" else squared
    return tuple(term.weight * derivative for derivative in profile_derivatives(term.profile, r2, order=order))
