r"""From the values a user gives to those the model sees: a monotone map that may compress one end.

A function that falls to -1e6 away from its optimum, or one with a few high peaks over a plain, is no sample of a
stationary process, but its logarithm from one end may be. With z = (y - y_0) / u

| shape | w(z) | y_0 |
|---|---|---|
| linear | z | 0 |
| top | -log(1 - z) below 0, z above: low values are compressed | the largest value |
| bottom | log(1 + z) above 0, z below: high values are compressed | the smallest value |

and the model sees (w - center) / spread, with mean 0 and deviation 1.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations

Shape = Literal["linear", "top", "bottom"]

UNITS: Final = (0.1, 1.0, 10.0)
"""Where a compression sets in, in interquartile ranges of the values."""

# Nodes and weights of the normal expectation of a smooth function; 20 are exact to polynomials of degree 39.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)


@final
@dataclass(frozen=True)
class Output:
    """The map of this module's docstring."""

    shape: Shape = "linear"
    origin: float = 0.0
    unit: float = 1.0
    center: float = 0.0
    spread: float = 1.0

    def values(self, y: Array) -> Array:
        """What the model sees for y."""
        return np.asarray((self._warped(y) - self.center) / self.spread)

    def slope(self, y: Array) -> Array:
        """Its derivative by y."""
        z = self._z(y)
        bent = np.where(_bent(self.shape, z), 1.0 + np.abs(z), 1.0)
        return np.asarray(1.0 / (bent * self.unit * self.spread))

    def apply(self, data: Observations) -> Observations:
        """The observations as the model sees them; gradients and noise to first order."""
        slope = self.slope(np.where(data.has_y, data.y, self.origin))
        return Observations(
            data.x,
            self.values(data.y),
            data.grad * slope[:, None],
            data.y_var * slope**2,
            data.grad_var * slope[:, None] ** 2,
        )

    def undo(self, values: Array) -> Array:
        """The y for which the model sees these values."""
        w = self.center + self.spread * values
        with np.errstate(over="ignore"):
            z = np.where(_bent(self.shape, w), np.sign(w) * np.expm1(np.abs(w)), w)
        return np.asarray(self.origin + self.unit * z)

    def undo_moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance of y where the model's value is normal, by quadrature."""
        if self.shape == "linear":
            scale = self.unit * self.spread
            return self.undo(mean), variance * scale**2
        deviation = np.sqrt(np.maximum(variance, 0.0))
        y = self.undo(mean + deviation * _NODES[:, None])
        weights = _WEIGHTS[:, None] / _WEIGHTS.sum()
        first = (weights * y).sum(axis=0)
        return first, (weights * (y - first) ** 2).sum(axis=0)

    def log_jacobian(self, data: Observations) -> float:
        """Log of the density of the data over that of what the model sees: each number observed is multiplied."""
        slope = self.slope(np.where(data.has_y, data.y, self.origin))
        return float((np.log(slope) * (data.has_y + data.has_grad.sum(axis=1))).sum())

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal map."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Output":
        """The map that `to_json` described."""
        return cls(**stored)

    def _z(self, y: Array) -> Array:
        return np.asarray(y / self.unit - self.origin / self.unit)

    def _warped(self, y: Array) -> Array:
        z = self._z(y)
        return np.where(_bent(self.shape, z), np.sign(z) * np.log1p(np.abs(z)), z)


def outputs(data: Observations, *, compressed: bool = True) -> list[Output]:
    """The maps to choose from, for observations of which at least one has a value; the linear one is the first."""
    y = data.y[data.has_y]
    low, middle, high = (float(value) for value in np.quantile(y, [0.25, 0.5, 0.75]))
    shapes = [Output("linear", middle, _power_of_two(float(np.abs(y - middle).max())))]
    # A gradient without a value has no place on a curve.
    placed = not (data.has_grad.any(axis=1) & ~data.has_y).any()
    if compressed and placed and high > low:
        for unit in UNITS:
            width = unit * (high - low)
            shapes += [Output("top", float(y.max()), width), Output("bottom", float(y.min()), width)]
    return [_standardized(shape, y, data) for shape in shapes]


def _standardized(output: Output, y: Array, data: Observations) -> Output:
    w = output._warped(y)
    center, spread = float(w.mean()), float(w.std(ddof=1)) if len(w) > 1 else 0.0
    if not spread > np.finfo(np.float64).eps * float(np.abs(w).max(initial=0.0)):
        # Equal values: the gradients say how much f varies over the cube, and without a slope any unit will do.
        slopes = np.where(data.has_grad, data.grad, 0.0) / output.unit
        spread = float(np.sqrt((slopes**2).mean(axis=0).sum() / 12.0)) or 1.0
    return replace(output, center=center, spread=spread)


def _power_of_two(size: float) -> float:
    """Near the size, so that dividing by it changes no digits."""
    return float(np.ldexp(1.0, int(np.frexp(size)[1]))) if np.isfinite(size) and size > 0 else 1.0


def _bent(shape: Shape, z: Array) -> Any:
    if shape == "linear":
        return np.zeros(np.shape(z), dtype=np.bool_)
    return z < 0 if shape == "top" else z > 0
