"""What a user with hundreds of parameters would run instead, beside the programs of `eign_lab.rivals`."""

from itertools import count
from typing import Final

import numpy as np
from scipy.optimize import minimize

from eign.arrays import Array
from eign_lab.judge.many.cases import DESIGN, sobol_points
from eign_lab.rivals import CountedProblem
from eign_lab.rivals.programs import descend, evolve

_FIRST_STEP: Final = 0.25


def best_of_ten(problem: CountedProblem) -> None:
    """L-BFGS-B from the best of ten Sobol points, then from the next best, then from random ones."""
    starts = sobol_points(problem.dim, problem.seed, DESIGN)
    told = [problem.in_cube(u) for u in starts]
    seen: list[Array] = []
    for i in sorted(range(DESIGN), key=lambda i: -told[i][0]):
        descend(problem, starts[i], seen, first=told[i])
    _from_random_points(problem, seen)


def from_centre(problem: CountedProblem) -> None:
    """L-BFGS-B from the centre, then from random points."""
    seen: list[Array] = []
    descend(problem, np.full(problem.dim, 0.5), seen)
    _from_random_points(problem, seen)


def _from_random_points(problem: CountedProblem, seen: list[Array]) -> None:
    rng = np.random.default_rng([problem.seed, 1])
    while True:
        descend(problem, rng.random(problem.dim), seen)


def conjugate_gradients(problem: CountedProblem) -> None:
    """SciPy's nonlinear conjugate gradients from random points, in a cube that is reflected at its border.

    It knows no bounds: a coordinate beyond one goes back inside, and so does its derivative.
    """
    rng = np.random.default_rng([problem.seed, 8])
    while True:
        start = rng.random(problem.dim)
        unit = float(np.linalg.norm(problem.in_cube(start)[1])) / _FIRST_STEP or 1.0

        def reflected(v: Array, unit: float = unit) -> tuple[float, Array]:
            turned = np.mod(v, 2.0)
            value, gradient = problem.in_cube(np.where(turned > 1.0, 2.0 - turned, turned))
            return -value / unit, np.where(turned > 1.0, gradient, -gradient) / unit

        minimize(reflected, start, jac=True, method="CG", options={"gtol": 1e-7})


def adam(problem: CountedProblem) -> None:
    """Adam with a fixed step from a random point, clipped to the cube: one run for the whole budget."""
    step, u = float(problem.options["step"]), np.random.default_rng([problem.seed, 9]).random(problem.dim)
    mean, square = np.zeros(problem.dim), np.zeros(problem.dim)
    for number in count(1):
        gradient = -problem.in_cube(u)[1]
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        away = np.sqrt(square / (1.0 - 0.999**number)) + 1e-300
        u = np.clip(u - step * mean / (1.0 - 0.9**number) / away, 0.0, 1.0)


def cma_es(problem: CountedProblem) -> None:
    """CMA-ES from the centre with a population that doubles at each restart; values alone."""
    evolve(problem, np.full(problem.dim, 0.5), stream=10)
