"""Constraints for random sequences: limits of all kinds, rows through boxes of all sizes, values over 600 decades."""

from typing import Any, NamedTuple

import numpy as np

from eign.arrays import LARGEST
from eign.constraints import Limits, LinearRows
from eign.region import EmptyRegion, Region, region_in
from eign.space import Box
from eign.strategies.registry import strategy

_SHARE = 0.4


class Constrained(NamedTuple):
    """What a study has beside its box; None where it has no such constraints."""

    limits: Limits | None = None
    rows: LinearRows | None = None
    region: Region | None = None

    def arguments(self) -> dict[str, Any]:
        """Those of `Optimizer`."""
        given = {"constraints": self.limits, "linear": self.rows}
        return {name: part for name, part in given.items() if part is not None}


def random_constraints(box: Box, method: str, rng: np.random.Generator) -> Constrained:
    """Some for a share of the studies whose method takes them."""
    able = strategy(method)
    if rng.random() >= _SHARE or not (able.handles_constraints and able.handles_linear):
        return Constrained()
    limits = _limits(rng) if rng.random() < 0.7 else None
    # Rows over logarithmic scales are refused, as they are no planes there.
    if box.log.any() or rng.random() < 0.4:
        return Constrained(limits)
    rows = _rows(box, rng)
    try:
        return Constrained(limits, rows, region_in(box, rows))
    except EmptyRegion:
        return Constrained(limits)


def _limits(rng: np.random.Generator) -> Limits:
    """One to three constraints: at most, at least, between, equal."""
    count = int(rng.choice([1, 2, 3], p=[0.5, 0.3, 0.2]))
    lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
    for i in range(count):
        size = float(rng.choice([0.0, 1.0, 10.0 ** rng.uniform(-300, 300)], p=[0.5, 0.3, 0.2]))
        match rng.choice(["most", "least", "between", "equal"], p=[0.5, 0.2, 0.2, 0.1]):
            case "most":
                upper[i] = size
            case "least":
                lower[i] = -size
            case "between":
                lower[i], upper[i] = -size, size + 1.0
            case _:
                lower[i] = upper[i] = size
    return Limits([f"c{i}" for i in range(count)], lower, upper)


def _rows(box: Box, rng: np.random.Generator) -> LinearRows:
    """Rows around a point of the box, which leave much room, little or none."""
    count = int(rng.integers(1, 4))
    inside = box.from_unit(rng.random(box.free_dim))
    width = np.where(box.free, 0.5 * box.upper - 0.5 * box.lower, 1.0)
    matrix = rng.normal(size=(count, box.dim)) / np.clip(width, 1.0 / LARGEST, None)
    matrix[rng.random(matrix.shape) < 0.3] = 0.0
    value = matrix @ inside
    room = np.abs(matrix) @ np.where(box.free, width, 0.0) * 10.0 ** rng.choice([0.0, -1.0, -6.0], size=count)
    lower, upper = value - room * rng.random(count), value + room * rng.random(count)
    lower[rng.random(count) < 0.5] = -np.inf
    if rng.random() < 0.1:
        lower[0] = upper[0] = value[0]
    return LinearRows(matrix, lower, upper)
