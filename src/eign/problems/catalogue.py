"""The synthetic problems: bounds, allowed dimensions and what is known of the maximum of each function.

Maximisers without a closed form are given to all digits of a float, and the optimum is the function's value there.
Bounds are those of the paper where it uses the function, otherwise those of the literature.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array
from eign.problems import synthetic
from eign.problems.problem import Family, Formula, Problem
from eign.space import Box

Pair = tuple[float, float]
Maximisers = Callable[[int], ArrayLike]

EVERYWHERE: Pair = (-math.inf, math.inf)
_ENDLESS = sys.maxsize

_HARTMANN = {
    3: [[0.11458887665506895, 0.5556488946169301, 0.8525469846866774]],
    6: [
        [
            *(0.20168951100670543, 0.15001069182345797, 0.476873974221897),
            *(0.2753324304940561, 0.31165161660011326, 0.6573005340656204),
        ]
    ],
}
_HOLDER = np.array([8.055023475736563, 9.664590019241272]) * [[1, 1], [1, -1], [-1, 1], [-1, -1]]


def michalewicz_maximiser(i: int) -> float:
    r"""The maximiser of :math:`\sin x\,\sin^{20} u` with :math:`u = i x^2/\pi` over 0 <= x <= pi.

    The second sine has i lobes. The logarithm is concave in each of them, so its slope
    :math:`\cot x + 40\,u \cot(u) / x` has one root there, found by bisection; the best lobe wins.

    >>> round(michalewicz_maximiser(1), 8)
    2.20290552
    """
    lobes = np.arange(i)
    low, high = math.pi * np.sqrt(lobes / i), math.pi * np.sqrt((lobes + 1) / i)
    for _ in range(60):  # halves a lobe to below the spacing of floats
        x = 0.5 * (low + high)
        u = i * x**2 / math.pi
        rising = 1 / np.tan(x) + 40 * u / np.tan(u) / x > 0
        low, high = np.where(rising, x, low), np.where(rising, high, x)
    x = 0.5 * (low + high)
    return float(x[np.argmax(np.sin(x) * np.sin(i * x**2 / math.pi) ** 20)])


def _at(*coordinates: float) -> Maximisers:
    """One maximiser whose coordinates repeat: the same in every dimension."""
    return lambda d: [np.resize(coordinates, d)]


def _dixon_price_maximisers(d: int) -> Array:
    """x_i = 2**-(1 - 2**(1 - i)), in which the sign of the last coordinate is free."""
    x = 2.0 ** -(1 - 2.0 ** -np.arange(d))
    return np.array([x, np.append(x[:-1], -x[-1])])


def _michalewicz_maximisers(d: int) -> ArrayLike:
    return [[michalewicz_maximiser(i) for i in range(1, d + 1)]]


def _state(
    family: str,
    d: int,
    *,
    formula: Formula,
    bounds: Pair | list[Pair],
    maximisers: Maximisers,
    optimum: float | None,
    region: Pair | None,
) -> Problem:
    """The problem of dimension d; one pair as bounds or region is for every coordinate."""
    optimizers = np.asarray(maximisers(d), dtype=np.float64)
    return Problem(
        f"{family}-{d}",
        Box(bounds if isinstance(bounds, list) else [bounds] * d),
        formula=formula,
        optimum=float(formula(optimizers[:1])[0][0]) if optimum is None else optimum,
        optimizers=optimizers,
        optimum_region=None if region is None else np.repeat(np.array(region)[:, np.newaxis], d, axis=1),
        summary=_summary(formula),
    )


def _summary(formula: Formula) -> str:
    return (formula.__doc__ or "").split("\n")[0].rstrip(".")


def _family(
    name: str,
    formula: Formula,
    *,
    bounds: Pair | list[Pair],
    maximisers: Maximisers,
    standard: tuple[int, ...],
    dims: Sequence[int] | None = None,
    optimum: float | None = None,
    region: Pair | None = EVERYWHERE,
) -> Family:
    """A family of synthetic problems.

    Without `dims`, only the standard dimensions are allowed; without `optimum`, it is the value at the maximiser.
    """
    build = partial(_state, name, formula=formula, bounds=bounds, maximisers=maximisers, optimum=optimum, region=region)
    allowed = sorted(standard) if dims is None else dims
    return Family(name, build=build, dims=allowed, standard=standard, summary=_summary(formula))


# The region of each statement is where the optimum is proven to be the maximum. It is the whole space where the
# function is a bowl with bumps, or a sum of peaks with centres in the box (stepping towards all of them raises every
# peak). Michalewicz: a coordinate in [-pi, 0] or [pi, 2 pi] adds nothing positive. The mixture exceeds its peak only
# where -0.05 x does. Goldstein-Price is a product of two positive polynomials, both least at the maximiser. Holder
# table and Branin with a slope grow without end: their optimum is that of the box.
SYNTHETIC = (
    _family(
        "ackley",
        synthetic.ackley,
        bounds=(-5.0, 5.0),
        maximisers=_at(0.0),
        standard=(14,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "branin",
        synthetic.branin,
        bounds=[(-5.0, 10.0), (0.0, 15.0)],
        maximisers=lambda _: [[-math.pi, 12.275], [math.pi, 2.275], [3 * math.pi, 2.475]],
        standard=(2,),
    ),
    _family(
        "branin-forrester",
        synthetic.branin_forrester,
        bounds=[(-5.0, 10.0), (0.0, 15.0)],
        maximisers=_at(-3.6892852725610523, 13.629987728944895),
        standard=(2,),
        region=None,
    ),
    _family(
        "cosine",
        synthetic.cosine,
        bounds=(-1.0, 1.0),
        maximisers=_at(0.0),
        standard=(8,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "cosine-waves",
        synthetic.cosine_waves,
        bounds=(0.0, 5.0),
        maximisers=_at(0.3125),
        standard=(2,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "dixon-price",
        synthetic.dixon_price,
        bounds=(-10.0, 10.0),
        maximisers=_dixon_price_maximisers,
        standard=(4,),
        dims=range(2, _ENDLESS),
        optimum=0.0,
    ),
    _family(
        "g-sobol",
        synthetic.g_sobol,
        bounds=(-5.0, 5.0),
        maximisers=_at(0.5),
        standard=(10,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "goldstein-price",
        synthetic.goldstein_price,
        bounds=(-2.0, 2.0),
        maximisers=lambda _: [[0.0, -1.0]],
        standard=(2,),
    ),
    _family(
        "griewank",
        synthetic.griewank,
        bounds=(-10.0, 10.0),
        maximisers=_at(0.0),
        standard=(10,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "hartmann",
        synthetic.hartmann,
        bounds=(0.0, 1.0),
        maximisers=_HARTMANN.__getitem__,
        standard=(6, 3),
    ),
    _family(
        "holder-table",
        synthetic.holder_table,
        bounds=(-10.0, 10.0),
        maximisers=lambda _: _HOLDER,
        standard=(2,),
        region=None,
    ),
    _family(
        "levy",
        synthetic.levy,
        bounds=(-10.0, 10.0),
        maximisers=_at(1.0),
        standard=(6,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "michalewicz",
        synthetic.michalewicz,
        bounds=(0.0, math.pi),
        maximisers=_michalewicz_maximisers,
        standard=(5,),
        dims=range(1, _ENDLESS),
        region=(-math.pi, 2 * math.pi),
    ),
    _family(
        "mixture",
        synthetic.mixture,
        bounds=(0.0, 1.0),
        maximisers=_at(0.849994999999375),
        standard=(1,),
        region=(-18.0, math.inf),
    ),
    _family(
        "powell",
        synthetic.powell,
        bounds=(-4.0, 5.0),
        maximisers=_at(0.0),
        standard=(8,),
        dims=range(4, _ENDLESS, 4),
    ),
    _family(
        "rastrigin",
        synthetic.rastrigin,
        bounds=(-5.12, 5.12),
        maximisers=_at(0.0),
        standard=(6,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "rosenbrock",
        synthetic.rosenbrock,
        bounds=(-5.0, 10.0),
        maximisers=_at(1.0),
        standard=(4,),
        dims=range(2, _ENDLESS),
    ),
    _family(
        "shekel",
        synthetic.shekel,
        bounds=(0.0, 10.0),
        maximisers=_at(4.000746868270634, 3.9995094800857736),
        standard=(4,),
    ),
    _family(
        "six-hump-camel",
        synthetic.six_hump_camel,
        bounds=[(-3.0, 3.0), (-2.0, 2.0)],
        maximisers=lambda _: np.array([0.08984201310031807, -0.7126564030207396]) * [[1.0], [-1.0]],
        standard=(2,),
    ),
    _family(
        "styblinski-tang",
        synthetic.styblinski_tang,
        bounds=(-5.0, 5.0),
        maximisers=_at(-2.903534027771177),
        standard=(6,),
        dims=range(1, _ENDLESS),
    ),
    _family(
        "wang-freitas",
        synthetic.wang_freitas,
        bounds=(0.0, 1.0),
        maximisers=_at(0.9),
        standard=(1,),
    ),
)
