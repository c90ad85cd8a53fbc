r"""The directions in which points differ, and gradients inside and outside of them.

| symbol | meaning |
|---|---|
| u = x / l | points divided by the lengthscales, coordinate by coordinate |
| gamma = l grad f | gradients by u |
| o | the origin, one of the points u |
| Q | orthonormal basis of the span of u_a - o, d x r, r <= min(n - 1, d) |
| R | coordinates in it: u_a = o + Q R_a, n x r |
| p_a, gamma_a^⊥ | Q' gamma_a, and gamma_a - Q p_a |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from eign.arrays import Array


class Position(NamedTuple):
    """Where m points are: u = o + Q R + t e.

    Attributes:
        inside: R, m x r.
        distance: t, the distance from the span, m.
        outward: e, the unit vector that leads away from the span, m x d; zero where t is.
    """

    inside: Array
    distance: Array
    outward: Array


@dataclass(frozen=True)
class Span:
    """An affine subspace of scaled coordinates.

    Attributes:
        origin: o, d.
        basis: Q, d x r.
    """

    origin: Array
    basis: Array

    @property
    def rank(self) -> int:
        """The dimension r."""
        return int(self.basis.shape[1])

    def locate(self, u: Array) -> Position:
        """Where scaled points `m x d` are. Projected twice, so that e is orthogonal to Q also for a tiny t."""
        if self.rank == len(self.origin):
            return Position((u - self.origin) @ self.basis, np.zeros(len(u)), np.zeros(u.shape))
        centred = u - self.origin
        inside = centred @ self.basis
        outside = centred - inside @ self.basis.T
        correction = outside @ self.basis
        outside -= correction @ self.basis.T
        distance = np.sqrt(np.einsum("mk,mk->m", outside, outside))
        return Position(inside + correction, distance, outside / np.maximum(distance, _TINY)[:, None])

    def with_direction(self, direction: Array) -> Span:
        """With one more, a unit vector orthogonal to the others."""
        return Span(self.origin, np.column_stack([self.basis, direction]))


_TINY = np.finfo(np.float64).tiny


def rounding(u: Array) -> float:
    """The distance of scaled points `n x d` from a subspace that rounding alone explains."""
    return float(4.0 * max(u.shape) * np.finfo(np.float64).eps * np.abs(u).max(initial=0.0))


def span_of(u: Array) -> Span:
    """The smallest affine subspace that contains the scaled points `n x d`, up to rounding; all of it for n > d.

    A larger one would do as well: whatever contains the points splits the likelihood. So it has one direction at least.
    """
    n, d = u.shape
    if n == 0:
        return Span(np.zeros(d), np.eye(d, 1))
    if n > d:
        return Span(u[0], np.eye(d))
    centred = u[1:] - u[0]
    if not centred.size:
        return Span(u[0], np.eye(d, 1))
    q, triangle, _ = linalg.qr(centred.T, mode="economic", pivoting=True, check_finite=False)
    rank = max(1, int((np.abs(np.diagonal(triangle)) > rounding(u)).sum()))
    return Span(u[0], np.ascontiguousarray(q[:, :rank]))
