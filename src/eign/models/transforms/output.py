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

from eign.arrays import LARGEST, Array
from eign.data import Observations
from eign.standardization import standardize_joint

Shape = Literal["linear", "top", "bottom"]

UNITS: Final = (0.1, 1.0, 10.0)
"""Where a compression sets in, in interquartile ranges of the values."""

# Nodes and weights of the normal expectation of a smooth function; 20 are exact to polynomials of degree 39.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
# Values that differ by so many roundings are equal.
_ROUNDINGS: Final = 4 * float(np.finfo(np.float64).eps)
# Slopes in deviations of the values; fourth powers exist.
_STEEPEST: Final = 1e50


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
        with np.errstate(over="ignore"):
            return np.clip((self._warped(y) - self.center) / self.spread, -LARGEST, LARGEST)

    def slope(self, y: Array) -> Array:
        """Its derivative by y."""
        z = self._z(y)
        bent = np.where(_bent(self.shape, z), 1.0 + np.abs(z), 1.0)
        # In this order, as the product of unit and spread may be too large for a number.
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / np.minimum(bent * self.spread, LARGEST) / self.unit)

    def apply(self, data: Observations) -> Observations:
        """The observations as the model sees them; gradients and noise to first order.

        Those beyond any relation to the values are as large as that can be: their squares must exist.
        """
        slope = self.slope(np.where(data.has_y, data.y, self.origin))
        with np.errstate(over="ignore"):
            grad = np.clip(data.grad * slope[:, None], -_STEEPEST, _STEEPEST)
            y = np.clip(self.values(data.y), -_STEEPEST, _STEEPEST)
            y_var = np.minimum(data.y_var * slope * slope, _STEEPEST**2)
            grad_var = np.minimum(data.grad_var * slope[:, None] * slope[:, None], _STEEPEST**2)
        return Observations(data.x, y, grad, y_var, grad_var)

    def undo(self, values: Array) -> Array:
        """The y for which the model sees these values, or the largest number."""
        w = self.center + self.spread * values
        with np.errstate(over="ignore"):
            z = np.where(_bent(self.shape, w), np.sign(w) * np.expm1(np.abs(w)), w)
            return np.clip(self.origin + self.unit * z, -LARGEST, LARGEST)

    def undo_moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance of y where the model's value is normal, by quadrature."""
        deviation = np.sqrt(np.maximum(variance, 0.0))
        with np.errstate(over="ignore"):
            if self.shape == "linear":
                first, second = self.undo(mean), (deviation * self.spread * self.unit) ** 2
            else:
                y = self.undo(mean + deviation * _NODES[:, None])
                weights = _WEIGHTS[:, None] / _WEIGHTS.sum()
                first = np.clip((weights * y).sum(axis=0), -LARGEST, LARGEST)
                second = (weights * (y - first) ** 2).sum(axis=0)
        return first, np.minimum(second, LARGEST)

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
        # Halves, as a difference may be twice the largest number.
        with np.errstate(over="ignore"):
            return np.clip((0.5 * y - 0.5 * self.origin) / (0.5 * self.unit), -LARGEST, LARGEST)

    def _warped(self, y: Array) -> Array:
        z = self._z(y)
        return np.where(_bent(self.shape, z), np.sign(z) * np.log1p(np.abs(z)), z)


def outputs(data: Observations, *, compressed: bool = True) -> list[Output]:
    """The maps to choose from, for observations of which at least one has a value; the linear one is the first."""
    y = data.y[data.has_y]
    # In units in which differences are numbers, too.
    size = _power_of_two(float(np.abs(y).max()))
    low, middle, high = np.quantile(y / size, [0.25, 0.5, 0.75])
    farthest = float(np.abs(y / size - middle).max())
    linear = Output("linear", float(middle * size), _power_of_two(min(farthest, LARGEST / size) * size))
    # A gradient without a value has no place on a curve.
    placed = not (data.has_grad.any(axis=1) & ~data.has_y).any()
    width = float(high - low)
    bent: list[Output] = []
    # The second number keeps the units, relative to the largest value, far from underflow.
    if compressed and placed and width > max(_ROUNDINGS * abs(middle), 1e-300):
        for unit in UNITS:
            unit = min(unit * width, LARGEST / size) * size
            bent += [Output("top", float(y.max()), unit), Output("bottom", float(y.min()), unit)]
    standardized = [_standardized(shape, y) for shape in (linear, *bent)]
    first = standardized[0] or _for_equal_values(linear.origin, data)
    return [first, *(shape for shape in standardized[1:] if shape is not None)]


def _standardized(output: Output, y: Array) -> Output | None:
    """With mean 0 and deviation 1; None if the values are equal, up to rounding or beyond the smallest number."""
    w = output._warped(y)
    center, spread = float(w.mean()), float(w.std(ddof=1)) if len(w) > 1 else 0.0
    rounding = _ROUNDINGS * abs(output.origin) / output.unit
    if spread <= rounding or spread * output.unit < np.finfo(np.float64).tiny:
        return None
    return replace(output, center=center, spread=spread)


def _for_equal_values(y: float, data: Observations) -> Output:
    """The gradients say how much f varies over the cube; without a slope any unit will do."""
    return Output("linear", y, standardize_joint(Observations(data.x, None, data.grad)).y_scale)


def _power_of_two(size: float) -> float:
    """At most the size, and more than half of it, so that dividing by it changes no digits; 1 for 0."""
    return float(np.ldexp(1.0, max(int(np.frexp(size)[1]) - 1, -1022))) if size > 0 else 1.0


def _bent(shape: Shape, z: Array) -> Any:
    if shape == "linear":
        return np.zeros(np.shape(z), dtype=np.bool_)
    return z < 0 if shape == "top" else z > 0
