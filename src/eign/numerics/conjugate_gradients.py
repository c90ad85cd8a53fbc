"""Linear systems with a positive definite matrix that is only known by its products."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eign.arrays import Array

LinearMap = Callable[[Array], Array]


class Solution(NamedTuple):
    """What conjugate gradients found.

    Attributes:
        x: The solution, shaped as the right-hand side.
        iterations: Products with the matrix.
        error: The last (r'P^{-1}r)^{1/2} for the residual r and the preconditioner P.
        converged: Whether it is below the tolerance.
    """

    x: Array
    iterations: int
    error: float
    converged: bool


def solve(product: LinearMap, precondition: LinearMap, target: Array, *, tolerance: float, iterations: int) -> Solution:
    r"""Preconditioned conjugate gradients for K x = b from x = 0, until :math:`(r^\top P^{-1} r)^{1/2}` is small.

    For a covariance matrix K this is the measure that counts. By Cauchy and Schwarz the posterior mean k'x of anything
    with a prior variance of 1 is wrong by at most :math:`(r^\top K^{-1} r)^{1/2}`, and P stands for K.
    """
    x, residual = np.zeros(target.shape), target.copy()
    conditioned = precondition(residual)
    direction = conditioned.copy()
    square = float(np.vdot(residual, conditioned))
    for iteration in range(iterations):
        if square <= tolerance**2:
            return Solution(x, iteration, float(np.sqrt(max(square, 0.0))), True)
        image = product(direction)
        step = square / float(np.vdot(direction, image))
        x += step * direction
        residual -= step * image
        conditioned = precondition(residual)
        last, square = square, float(np.vdot(residual, conditioned))
        direction *= square / last
        direction += conditioned
    return Solution(x, iterations, float(np.sqrt(max(square, 0.0))), square <= tolerance**2)
