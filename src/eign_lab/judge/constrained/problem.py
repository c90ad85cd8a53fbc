"""A constrained problem: minimise f(x) over a box, lower <= c(x) <= upper, with known linear rows; all gradients exact.

| name | shape | meaning |
|---|---|---|
| `c` | m | values of the constraints that an evaluation shows |
| `scales` | m | units in which a violation is small: median distance from the nearer limit over the box |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import sympy as sp
from scipy.stats import qmc

from eign.arrays import Array
from eign.constraints import Limits, LinearRows
from eign.space import Box

FEASIBLE: Final = 1e-6
"""Share of its scale by which a constraint may be violated."""
_SPREAD_POINTS: Final = 512


class Evaluation(NamedTuple):
    """What one run of a simulator gives: value, gradient `d`, constraints `m` and their gradients `m x d`."""

    value: float
    gradient: Array
    constraints: Array
    jacobian: Array


Formula = Callable[[Array], Evaluation]


@final
@dataclass(frozen=True)
class ConstrainedProblem:
    """A problem to minimise.

    Attributes:
        name: In tables and results.
        bounds: The box.
        formula: Everything at one point `d` in user units.
        limits: Of the constraints that only an evaluation shows.
        linear: Known rows in user units.
    """

    name: str
    bounds: Box
    formula: Formula
    limits: Limits
    linear: LinearRows

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.bounds.dim

    @cached_property
    def _spread(self) -> tuple[Array, float]:
        points = qmc.Sobol(self.dim, rng=np.random.default_rng(6)).random(_SPREAD_POINTS)
        seen = [self.formula(x) for x in self.bounds.from_unit(points)]
        values, constraints = np.array([each.value for each in seen]), np.array([each.constraints for each in seen])
        away = np.minimum(np.abs(constraints - self.limits.lower), np.abs(constraints - self.limits.upper))
        return np.median(away, axis=0), float(np.std(values))

    @property
    def scales(self) -> Array:
        """Units of the constraints `m`."""
        return self._spread[0]

    @property
    def spread(self) -> float:
        """Standard deviation of the objective over the box."""
        return self._spread[1]

    @cached_property
    def row_scales(self) -> Array:
        """Units of the rows `k`: half the width of what they take over the box."""
        half = 0.5 * (self.bounds.upper - self.bounds.lower)
        return np.abs(self.linear.A) @ half if len(self.linear) else np.empty(0)

    def violation(self, x: Array, constraints: Array) -> float:
        """The largest violation of a constraint or row, each in its units; 0 if there is none."""
        parts = [self.limits.violation(constraints) / self.scales]
        if len(self.linear):
            parts.append(self.linear.violation(x) / self.row_scales)
        return float(np.max(np.concatenate(parts), initial=0.0))

    def over(self, box: Box) -> "ConstrainedProblem":
        """The same functions over another box."""
        return replace(self, bounds=box)


def state_problem(
    name: str,
    bounds: Sequence[tuple[float, float]],
    statement: Callable[..., tuple[Any, Sequence[Any]]],
) -> ConstrainedProblem:
    """A problem from symbolic expressions, with their derivatives; rows that are linear become known rows.

    >>> def statement(x, y):
    ...     return x * y, [(x**2 + y**2, None, 1), (x - y, 0, None)]
    >>> disk = state_problem("disk", [(-1.0, 1.0)] * 2, statement)
    >>> disk.formula(np.array([0.5, 0.2])).jacobian.tolist(), disk.linear
    ([[1.0, 0.4]], LinearRows(0 <= row 0))

    Args:
        name: Of the problem.
        bounds: A pair for each coordinate.
        statement: Takes a symbol for each coordinate and gives the objective and the constraints (expression, lower,
            upper), None where a side is open.
    """
    symbols = sp.symbols(f"x0:{len(bounds)}", real=True)
    objective, stated = statement(*symbols)
    constraints = [(sp.sympify(expression), *sides) for expression, *sides in stated]
    is_linear = [not any(sp.diff(c, s).free_symbols for s in symbols) for c, *_ in constraints]
    rows = [each for each, known in zip(constraints, is_linear, strict=True) if known]
    others = [each for each, known in zip(constraints, is_linear, strict=True) if not known]
    limits = Limits([f"c{i}" for i in range(len(others))], *_sides(others))
    formula = _compiled(symbols, sp.sympify(objective), [expression for expression, *_ in others])
    return ConstrainedProblem(name, Box(bounds), formula, limits, _linear(symbols, rows))


def _sides(constraints: Sequence[tuple[Any, ...]]) -> tuple[list[float], list[float]]:
    lower = [-np.inf if low is None else float(low) for _, low, _ in constraints]
    upper = [np.inf if high is None else float(high) for *_, high in constraints]
    return lower, upper


def _linear(symbols: Sequence[Any], rows: Sequence[tuple[Any, ...]]) -> LinearRows:
    if not rows:
        return LinearRows()
    matrix = [[float(sp.diff(expression, s)) for s in symbols] for expression, *_ in rows]
    constants = np.array([float(expression.subs(dict.fromkeys(symbols, 0))) for expression, *_ in rows])
    lower, upper = _sides(rows)
    return LinearRows(matrix, lower - constants, upper - constants)


def _compiled(symbols: Sequence[Any], objective: Any, constraints: Sequence[Any]) -> Formula:
    """One NumPy function of all expressions and derivatives, which share their common parts."""
    outputs = [objective, *constraints]
    derivatives = [sp.diff(output, s) for output in outputs for s in symbols]
    together = sp.lambdify([symbols], outputs + derivatives, modules="numpy", cse=True)
    count, d = len(outputs), len(symbols)

    def formula(x: Array) -> Evaluation:
        with np.errstate(all="ignore"):  # at the poles of one or the other, far from feasible points
            found = np.array(together(x), dtype=np.float64)
        slopes = found[count:].reshape(count, d)
        return Evaluation(float(found[0]), slopes[0], found[1:count], slopes[1:])

    return formula
