"""Problems of the literature as expressions: CEC 2006, engineering designs, toys of constrained Bayesian optimization.

Names and numbers are those of the sources. Bounds keep away from poles where a source's box has one on its border.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import sympy as sp

from eign_lab.judge.constrained.problem import ConstrainedProblem, state_problem

Statement = tuple[Any, list[tuple[Any, Any, Any]]]


def _at_most_zero(*expressions: Any) -> list[tuple[Any, Any, Any]]:
    return [(expression, None, 0) for expression in expressions]


def _g01(*x: Any) -> Statement:
    a, b, c, d = x[:4]
    return 5 * sum(x[:4]) - 5 * sum(v**2 for v in x[:4]) - sum(x[4:]), _at_most_zero(
        2 * a + 2 * b + x[9] + x[10] - 10,
        2 * a + 2 * c + x[9] + x[11] - 10,
        2 * b + 2 * c + x[10] + x[11] - 10,
        -8 * a + x[9],
        -8 * b + x[10],
        -8 * c + x[11],
        -2 * d - x[4] + x[9],
        -2 * x[5] - x[6] + x[10],
        -2 * x[7] - x[8] + x[11],
    )


def _g02(*x: Any) -> Statement:
    """Keane's bump; the numerator is never negative for two coordinates and more."""
    bump = sum(sp.cos(v) ** 4 for v in x) - 2 * sp.prod([sp.cos(v) ** 2 for v in x])
    size = sp.sqrt(sum(i * v**2 for i, v in enumerate(x, start=1)))
    return -bump / size, [(sp.log(sp.prod(x)), np.log(0.75), None), (sum(x), None, 7.5 * len(x))]


def _g03(*x: Any) -> Statement:
    n = len(x)
    return -(sp.sqrt(n) ** n) * sp.prod(x), [(sum(v**2 for v in x), 1, 1)]


def _g04(a: Any, b: Any, c: Any, d: Any, e: Any) -> Statement:
    return 5.3578547 * c**2 + 0.8356891 * a * e + 37.293239 * a - 40792.141, [
        (85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e, 0, 92),
        (80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c**2, 90, 110),
        (9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d, 20, 25),
    ]


def _g05(a: Any, b: Any, c: Any, d: Any) -> Statement:
    return 3 * a + 1e-6 * a**3 + 2 * b + 2e-6 / 3 * b**3, [
        (c - d, -0.55, 0.55),
        (1000 * (sp.sin(-c - 0.25) + sp.sin(-d - 0.25)) + 894.8 - a, 0, 0),
        (1000 * (sp.sin(c - 0.25) + sp.sin(c - d - 0.25)) + 894.8 - b, 0, 0),
        (1000 * (sp.sin(d - 0.25) + sp.sin(d - c - 0.25)) + 1294.8, 0, 0),
    ]


def _g06(a: Any, b: Any) -> Statement:
    inner, outer = 100 - (a - 5) ** 2 - (b - 5) ** 2, (a - 6) ** 2 + (b - 5) ** 2 - 82.81
    return (a - 10) ** 3 + (b - 20) ** 3, _at_most_zero(inner, outer)


def _g07(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Statement:
    value = a**2 + b**2 + a * b - 14 * a - 16 * b + (c - 10) ** 2 + 4 * (d - 5) ** 2 + (e - 3) ** 2 + 2 * (f - 1) ** 2
    value += 5 * g**2 + 7 * (h - 11) ** 2 + 2 * (i - 10) ** 2 + (j - 7) ** 2 + 45
    return value, _at_most_zero(
        -105 + 4 * a + 5 * b - 3 * g + 9 * h,
        10 * a - 8 * b - 17 * g + 2 * h,
        -8 * a + 2 * b + 5 * i - 2 * j - 12,
        3 * (a - 2) ** 2 + 4 * (b - 3) ** 2 + 2 * c**2 - 7 * d - 120,
        5 * a**2 + 8 * b + (c - 6) ** 2 - 2 * d - 40,
        a**2 + 2 * (b - 2) ** 2 - 2 * a * b + 14 * e - 6 * f,
        0.5 * (a - 8) ** 2 + 2 * (b - 4) ** 2 + 3 * e**2 - f - 30,
        -3 * a + 6 * b + 12 * (i - 8) ** 2 - 7 * j,
    )


def _g08(a: Any, b: Any) -> Statement:
    value = -(sp.sin(2 * sp.pi * a) ** 3) * sp.sin(2 * sp.pi * b) / (a**3 * (a + b))
    return value, _at_most_zero(a**2 - b + 1, 1 - a + (b - 4) ** 2)


def _g09(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Statement:
    value = (a - 10) ** 2 + 5 * (b - 12) ** 2 + c**4 + 3 * (d - 11) ** 2 + 10 * e**6 + 7 * f**2 + g**4
    return value - 4 * f * g - 10 * f - 8 * g, _at_most_zero(
        -127 + 2 * a**2 + 3 * b**4 + c + 4 * d**2 + 5 * e,
        -282 + 7 * a + 3 * b + 10 * c**2 + d - e,
        -196 + 23 * a + b**2 + 6 * f**2 - 8 * g,
        4 * a**2 + b**2 - 3 * a * b + 2 * c**2 + 5 * f - 11 * g,
    )


def _g10(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Statement:
    return a + b + c, _at_most_zero(
        -1 + 0.0025 * (d + f),
        -1 + 0.0025 * (e + g - d),
        -1 + 0.01 * (h - e),
        -a * f + 833.33252 * d + 100 * a - 83333.333,
        -b * g + 1250 * e + b * d - 1250 * d,
        -c * h + 1250000 + c * e - 2500 * e,
    )


def _g11(a: Any, b: Any) -> Statement:
    return a**2 + (b - 1) ** 2, [(b - a**2, 0, 0)]


def _welded_beam(h: Any, l: Any, t: Any, b: Any) -> Statement:  # noqa: E741  # the source's symbol
    load, length, young, shear = 6000, 14, 30e6, 12e6
    cost = 1.10471 * h**2 * l + 0.04811 * t * b * (14 + l)
    arm = sp.sqrt(l**2 / 4 + ((h + t) / 2) ** 2)
    first = load / (sp.sqrt(2) * h * l)
    second = load * (length + l / 2) * arm / (2 * sp.sqrt(2) * h * l * (l**2 / 12 + ((h + t) / 2) ** 2))
    buckling = 4.013 * young * t * b**3 / 6 / length**2 * (1 - t / (2 * length) * sp.sqrt(young / (4 * shear)))
    return cost, [
        (sp.sqrt(first**2 + first * second * l / arm + second**2), None, 13600),
        (6 * load * length / (b * t**2), None, 30000),
        (h - b, None, 0),
        (0.10471 * h**2 + 0.04811 * t * b * (14 + l), None, 5),
        (4 * load * length**3 / (young * b * t**3), None, 0.25),
        (buckling, load, None),
    ]


def _pressure_vessel(shell: Any, head: Any, r: Any, l: Any) -> Statement:  # noqa: E741
    cost = 0.6224 * shell * r * l + 1.7781 * head * r**2 + 3.1661 * shell**2 * l + 19.84 * shell**2 * r
    volume = sp.pi * r**2 * l + sp.Rational(4, 3) * sp.pi * r**3
    return cost, [(0.0193 * r - shell, None, 0), (0.00954 * r - head, None, 0), (volume, 1296000, None)]


def _spring(d: Any, coil: Any, n: Any) -> Statement:
    shear = (4 * coil**2 - d * coil) / (12566 * (coil * d**3 - d**4)) + 1 / (5108 * d**2)
    return (n + 2) * coil * d**2, [
        (1 - coil**3 * n / (71785 * d**4), None, 0),
        (shear, None, 1),
        (1 - 140.45 * d / (coil**2 * n), None, 0),
        (coil + d, None, 1.5),
    ]


def _speed_reducer(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Statement:
    weight = 0.7854 * a * b**2 * (3.3333 * c**2 + 14.9334 * c - 43.0934) - 1.508 * a * (f**2 + g**2)
    weight += 7.4777 * (f**3 + g**3) + 0.7854 * (d * f**2 + e * g**2)
    return weight, [
        (27 / (a * b**2 * c), None, 1),
        (397.5 / (a * b**2 * c**2), None, 1),
        (1.93 * d**3 / (b * c * f**4), None, 1),
        (1.93 * e**3 / (b * c * g**4), None, 1),
        (sp.sqrt((745 * d / (b * c)) ** 2 + 16.9e6) / (110 * f**3), None, 1),
        (sp.sqrt((745 * e / (b * c)) ** 2 + 157.5e6) / (85 * g**3), None, 1),
        (b * c, None, 40),
        (5 * b - a, None, 0),
        (a - 12 * b, None, 0),
        (1.5 * f + 1.9 - d, None, 0),
        (1.1 * g + 1.9 - e, None, 0),
    ]


def _gramacy(x: Any, y: Any) -> Statement:
    return x + y, [(x + 2 * y + sp.sin(2 * sp.pi * (x**2 - 2 * y)) / 2, 1.5, None), (x**2 + y**2, None, 1.5)]


def _gardner_1(x: Any, y: Any) -> Statement:
    return sp.cos(2 * x) * sp.cos(y) + sp.sin(x), [(sp.cos(x) * sp.cos(y) - sp.sin(x) * sp.sin(y), None, 0.5)]


def _gardner_2(x: Any, y: Any) -> Statement:
    return sp.sin(x) + y, [(sp.sin(x) * sp.sin(y), None, -0.95)]


def _townsend(x: Any, y: Any) -> Statement:
    t = sp.atan2(x, y)
    heart = 2 * sp.cos(t) - sp.cos(2 * t) / 2 - sp.cos(3 * t) / 4 - sp.cos(4 * t) / 8
    value = -(sp.cos((x - 0.1) * y) ** 2) - x * sp.sin(3 * x + y)
    return value, [(x**2 + y**2 - heart**2 - 4 * sp.sin(t) ** 2, None, 0)]


def _rosenbrock_disk(x: Any, y: Any) -> Statement:
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2, [(x**2 + y**2, None, 2)]


_HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(*x: Any) -> Statement:
    """In a ball that has no unconstrained minimum: its squared radius is 0.5, that minimum's is 0.89."""
    hills = zip((1.0, 1.2, 3.0, 3.2), _HARTMANN_A, _HARTMANN_P, strict=True)
    value = -sum(
        height * sp.exp(-sum(float(s) * (v - float(p)) ** 2 for v, s, p in zip(x, rates, peak, strict=True)))
        for height, rates, peak in hills
    )
    return value, [(sum(v**2 for v in x), None, 0.5)]


def _ackley(*x: Any) -> Statement:
    """Eriksson and Poloczek's: the minimum is on the border of a half-space, within a ball."""
    n = len(x)
    bowl = -20 * sp.exp(-0.2 * sp.sqrt(sum(v**2 for v in x) / n))
    value = bowl - sp.exp(sum(sp.cos(2 * sp.pi * v) for v in x) / n) + 20 + sp.E
    return value, [(sum(x), None, 0), (sum(v**2 for v in x), None, 25)]


_Bounds = list[tuple[float, float]]
_STATED: Final[Mapping[str, tuple[_Bounds, Callable[..., Statement]]]] = {
    "g01": ([*[(0.0, 1.0)] * 9, *[(0.0, 100.0)] * 3, (0.0, 1.0)], _g01),
    "g02": ([(0.01, 10.0)] * 20, _g02),
    "g03": ([(0.0, 1.0)] * 10, _g03),
    "g04": ([(78.0, 102.0), (33.0, 45.0), *[(27.0, 45.0)] * 3], _g04),
    "g05": ([*[(0.0, 1200.0)] * 2, *[(-0.55, 0.55)] * 2], _g05),
    "g06": ([(13.0, 100.0), (0.0, 100.0)], _g06),
    "g07": ([(-10.0, 10.0)] * 10, _g07),
    "g08": ([(0.01, 10.0)] * 2, _g08),
    "g09": ([(-10.0, 10.0)] * 7, _g09),
    "g10": ([(100.0, 10000.0), *[(1000.0, 10000.0)] * 2, *[(10.0, 1000.0)] * 5], _g10),
    "g11": ([(-1.0, 1.0)] * 2, _g11),
    "welded-beam": ([(0.125, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)], _welded_beam),
    "pressure-vessel": ([*[(0.0625, 6.1875)] * 2, *[(10.0, 200.0)] * 2], _pressure_vessel),
    "spring": ([(0.05, 0.2), (0.25, 1.3), (2.0, 15.0)], _spring),
    "speed-reducer": (
        [(2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9), (5.0, 5.5)],
        _speed_reducer,
    ),
    "gramacy": ([(0.0, 1.0)] * 2, _gramacy),
    "gardner-1": ([(0.0, 6.0)] * 2, _gardner_1),
    "gardner-2": ([(0.0, 6.0)] * 2, _gardner_2),
    "townsend": ([(-2.25, 2.25), (-2.5, 1.75)], _townsend),
    "rosenbrock-disk": ([(-1.5, 1.5)] * 2, _rosenbrock_disk),
    "hartmann-6-ball": ([(0.0, 1.0)] * 6, _hartmann),
    "ackley-10-half": ([(-5.0, 10.0)] * 10, _ackley),
}

COLLECTION: Final[Mapping[str, Callable[[], ConstrainedProblem]]] = {
    name: partial(state_problem, name, bounds, statement) for name, (bounds, statement) in _STATED.items()
}
