"""Small problems under constraints with known optima, and the loop that asks and tells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eign import Optimizer
from eign.arrays import Array
from eign.constraints import Limits, LinearRows
from eign.data import Observations

Output = tuple[float, Array]


@dataclass(frozen=True)
class ConstrainedCase:
    """Minimise the first output; the others are constraints.

    Attributes:
        bounds: Of the coordinates.
        outputs: Value and gradient of each output at a point.
        limits: Of the constraints.
        linear: Known rows.
        best: The smallest feasible value.
    """

    bounds: list[tuple[float, float]]
    outputs: Callable[[Array], list[Output]]
    limits: Limits | None
    linear: LinearRows | None
    best: float

    def told(self, x: Array) -> Observations:
        """The evaluation at a point `d`."""
        (value, slope), *others = self.outputs(x)
        constraints = [Observations(x[None], [c], [g]) for c, g in others]
        return Observations(x[None], [value], [slope], constraints=constraints)

    def optimizer(self, method: str, **settings: Any) -> Optimizer:
        """A study of it."""
        given = {"seed": 1, "check_gradients": False, **settings}
        return Optimizer(self.bounds, method=method, constraints=self.limits, linear=self.linear, **given)

    def run(self, method: str, budget: int, **settings: Any) -> Optimizer:
        """So many evaluations."""
        opt = self.optimizer(method, **settings)
        for _ in range(budget):
            opt.tell(self.told(opt.ask()))
        return opt


def _disk(x: Array) -> list[Output]:
    """A linear objective in a disk: the optimum is on its border."""
    return [(float(x[0] + 2 * x[1]), np.array([1.0, 2.0])), (float(x @ x), 2 * x)]


def _curve(x: Array) -> list[Output]:
    """The point of a parabola nearest to another: an equality."""
    away = x - np.array([1.0, 0.0])
    return [(float(away @ away), 2 * away), (float(x[1] - x[0] ** 2), np.array([-2 * x[0], 1.0]))]


def _bowl(x: Array) -> list[Output]:
    return [(float(((x - 0.7) ** 2).sum()), 2 * (x - 0.7))]


def _magnitudes(x: Array) -> list[Output]:
    """Linear above a hyperbola: its constraint spans eight decades over the box, and is smooth in logarithms."""
    product = float(x[0] * x[1])
    return [(float(x[0] + 2 * x[1]), np.array([1.0, 2.0])), (3.0 / product, -3.0 / product / x)]


DISK = ConstrainedCase([(-2, 2)] * 2, _disk, Limits(["disk"], [-np.inf], [1.0]), None, -(5**0.5))
# At 2 x^3 + x = 1, whose root is 0.5897545123014584.
CURVE = ConstrainedCase([(-2, 2)] * 2, _curve, Limits(["curve"], [0.0], [0.0]), None, 0.2892734)
SIMPLEX = ConstrainedCase([(0, 1)] * 3, _bowl, None, LinearRows(np.ones((1, 3)), [1.0], [1.0]), 3 * (0.7 - 1 / 3) ** 2)
WEDGE = ConstrainedCase(
    [(0, 1)] * 3, _bowl, None, LinearRows([[1, 1, 1], [1.0, -1, 0]], [-np.inf, 0.2], [1.5, np.inf]), 0.14
)
# Where x = 2 y and x y = 3.
MAGNITUDES = ConstrainedCase(
    [(0.01, 100.0)] * 2, _magnitudes, Limits(["hyperbola"], [-np.inf], [1.0]), None, 2 * 6**0.5
)
CASES = {"disk": DISK, "curve": CURVE, "simplex": SIMPLEX, "wedge": WEDGE}
