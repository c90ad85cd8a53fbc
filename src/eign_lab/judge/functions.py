r"""Small functions with one difficulty each and a proven maximum: `n x d -> n, n x d`, over the unit cube unless said.

Most are :math:`-\phi(s(x))` with s >= 0 zero at one point and an increasing :math:`\phi` that couples the coordinates,
so that the maximum is proven and no function is a sum over coordinates.
"""

from functools import partial

import numpy as np

from eign.arrays import Array
from eign.problems import Problem, get, mirrored, scaled, shifted
from eign.space import Box


def corner(X: Array) -> tuple[Array, Array]:
    r"""Waves that rise towards the corner 0: :math:`\exp(-\sum_i a_i (x_i + 0.3 \sin^2 3 \pi x_i))`, a = 0.3 to 0.8."""
    weights = np.linspace(0.3, 0.8, X.shape[1])
    values = np.exp(-((X + 0.3 * np.sin(3 * np.pi * X) ** 2) @ weights))
    return values, -values[:, None] * weights * (1 + 0.9 * np.pi * np.sin(6 * np.pi * X))


def boundary(X: Array) -> tuple[Array, Array]:
    r"""The first half z of the coordinates is best at the border 0, the rest y inside, on a tilted bowl.

    .. math:: -\log\bigl(1 + \sum_i (z_i + 0.2 \sin^2 2 \pi z_i) + 20 \sum_i 4^i t_i^2\bigr), \quad t = Q (y - 0.35)
    """
    half = X.shape[1] // 2
    z, tilt = X[:, :half], _rotation(X.shape[1] - half, seed=1)
    t, rates = (X[:, half:] - 0.35) @ tilt.T, 20 * 4.0 ** np.arange(X.shape[1] - half)
    s = 1 + (z + 0.2 * np.sin(2 * np.pi * z) ** 2).sum(axis=1) + (rates * t**2).sum(axis=1)
    slopes = np.hstack([1 + 0.4 * np.pi * np.sin(4 * np.pi * z), 2 * (rates * t) @ tilt])
    return -np.log(s), -slopes / s[:, None]


def sensitivities(X: Array) -> tuple[Array, Array]:
    r"""Curvatures from 1e-3 to 1e3: :math:`-\log(1 + \sum_i 10^{k_i} (x_i - c_i)^2)`, k = -3 to 3, optimum c inside."""
    rates, away = 10.0 ** np.linspace(-3, 3, X.shape[1]), X - _inside(X.shape[1], seed=2)
    s = 1 + (away**2) @ rates
    return -np.log(s), -2 * rates * away / s[:, None]


def plateau(X: Array) -> tuple[Array, Array]:
    r"""One hill of width 0.13 on flat ground: :math:`\exp(-\|x - c\|^2 / (2 \cdot 0.13^2))`; far away all is zero."""
    away = X - _inside(X.shape[1], seed=3)
    values = np.exp(-0.5 * (away**2).sum(axis=1) / 0.13**2)
    return values, -values[:, None] * away / 0.13**2


def terrace(X: Array) -> tuple[Array, Array]:
    r"""Terraces around c, level at their edges: :math:`-(s - \sin(2 \pi s) / 2 \pi)`, :math:`s = 4 \|x - c\|^2`."""
    away = X - _inside(X.shape[1], seed=4)
    s = 4 * (away**2).sum(axis=1)
    return -(s - np.sin(2 * np.pi * s) / (2 * np.pi)), -(8 * (1 - np.cos(2 * np.pi * s)))[:, None] * away


def ridge(X: Array) -> tuple[Array, Array]:
    r"""A narrow wavy ridge across the box: :math:`-t^2 - 0.1 \sin^2 3 \pi t - 1000 (\|x - c\|^2 - t^2)`, t along it."""
    away, along = X - _inside(X.shape[1], seed=5), _rotation(X.shape[1], seed=5)[0]
    t = away @ along
    values = -(t**2) - 0.1 * np.sin(3 * np.pi * t) ** 2 - 1000 * ((away**2).sum(axis=1) - t**2)
    slope = -2 * t - 0.3 * np.pi * np.sin(6 * np.pi * t) + 2000 * t
    return values, slope[:, None] * along - 2000 * away


def sharp_ridge(X: Array) -> tuple[Array, Array]:
    r"""A ridge with an edge: :math:`-t^2 - 10 \sqrt{10^{-6} + \|x - c\|^2 - t^2} + 0.01`, t along it."""
    away, along = X - _inside(X.shape[1], seed=6), _rotation(X.shape[1], seed=6)[0]
    t = away @ along
    across = away - t[:, None] * along
    distance = np.sqrt(1e-6 + (across**2).sum(axis=1))
    return -(t**2) - 10 * distance + 0.01, -2 * t[:, None] * along - 10 * across / distance[:, None]


def magnitudes(X: Array) -> tuple[Array, Array]:
    r"""A bowl in logarithms over a linear box: :math:`-\log(1 + \|R (\log_{10} x - m)\|^2)`, R = diag(1, 2, ...) Q."""
    d = X.shape[1]
    stretch = np.arange(1, d + 1)[:, None] * _rotation(d, seed=7)
    t = (np.log10(X) - np.linspace(-2.0, 0.5, d)) @ stretch.T
    s = 1 + (t**2).sum(axis=1)
    return -np.log(s), -2 * (t @ stretch) / (s[:, None] * X * np.log(10))


def over_logarithms(problem: Problem, *, decades: float) -> Problem:
    """The problem with u = log x in place of each unit coordinate, over a box that says so: x from 1e-4 up."""
    box = Box([(1e-4, 1e-4 * 10**decades)] * problem.dim, log=range(problem.dim))
    optimizers = None if problem.optimizers is None else box.from_unit(problem.bounds.to_unit(problem.optimizers))
    formula = partial(_through_logarithms, problem, box)
    return Problem(f"log({problem.name})", box, formula=formula, optimum=problem.optimum, optimizers=optimizers)


def _through_logarithms(problem: Problem, box: Box, X: Array) -> tuple[Array, Array]:
    x = problem.bounds.from_unit(box.to_unit(X))
    values, gradients = problem.formula(x)
    return values, gradients * problem.bounds.unit_scale(x) / box.unit_scale(X)


def unit_problem(name: str) -> Problem:
    """The problem of a formula of this module, by name and dimension: "ridge-8"; the maximum is computed at its place.

    >>> unit_problem("terrace-5").optimum
    0.0
    """
    family, d = name.rsplit("-", 1)[0], int(name.rsplit("-", 1)[1])
    formula, maximiser = {
        "corner": (corner, np.zeros(d)),
        "boundary": (boundary, np.append(np.zeros(d // 2), np.full(d - d // 2, 0.35))),
        "sensitivities": (sensitivities, _inside(d, seed=2)),
        "plateau": (plateau, _inside(d, seed=3)),
        "terrace": (terrace, _inside(d, seed=4)),
        "ridge": (ridge, _inside(d, seed=5)),
        "sharp-ridge": (sharp_ridge, _inside(d, seed=6)),
        "magnitudes": (magnitudes, 10 ** np.linspace(-2.0, 0.5, d)),
    }[family]
    bounds = Box([(1e-3, 10.0) if family == "magnitudes" else (0.0, 1.0)] * d)
    optimum = float(formula(maximiser[None])[0][0])
    problem = Problem(name, bounds, formula=formula, optimum=optimum, optimizers=maximiser[None])
    # The corner of a cube at 0 is where careless methods look first.
    return mirrored(problem, range(0, d, 2)) if family in ("corner", "boundary") else problem


def in_other_units(problem: Problem) -> Problem:
    """The problem with coordinates in units from 1e-3 to 1e3."""
    return scaled(problem, 10.0 ** np.linspace(-3, 3, problem.dim))


def shifted_hartmann() -> Problem:
    """Hartmann 6 away from its usual place."""
    return shifted(get("hartmann-6"), seed=2)


def _inside(d: int, *, seed: int) -> Array:
    return np.random.default_rng([7, seed]).uniform(0.2, 0.8, d)


def _rotation(d: int, *, seed: int) -> Array:
    q, r = np.linalg.qr(np.random.default_rng([8, seed]).standard_normal((d, d)))
    return np.asarray(q * np.sign(np.diag(r)))
