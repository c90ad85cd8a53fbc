"""A constrained problem as runs see it: studies in user units, programs in the unit cube with everything scaled."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np

from eign import Optimizer
from eign.arrays import Array, Mask
from eign_lab.judge.constrained.problem import FEASIBLE, ConstrainedProblem, Evaluation
from eign_lab.rivals import Finished
from eign_lab.rivals.counted import Record
from eign_lab.runs.posed_problem import Answer


class PosedConstrained(NamedTuple):
    """What a run talks to. Its values are those of feasible points, so that others are no improvement."""

    problem: ConstrainedProblem

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.problem.dim

    def begin(self, method: str, seed: int, options: Mapping[str, Any]) -> Optimizer:
        """The optimizer that a user would get with these settings."""
        stated = {"constraints": self.problem.limits} if len(self.problem.limits) else {}
        known = {"linear": self.problem.linear} if len(self.problem.linear) else {}
        given: Any = {**stated, **known}
        return Optimizer(self.problem.bounds, method=method, seed=seed, options=options, check_gradients=False, **given)

    def answer(self, x: Array) -> Answer:
        """Value, gradient, constraints and their gradients at a point."""
        found = self.problem.formula(x)
        told: dict[str, Any] = {"y": found.value, "grad": found.gradient}
        if len(self.problem.limits):
            told |= {"constraints": found.constraints, "constraint_grads": found.jacobian}
        return Answer(told, feasible_value(self.problem, x, found))

    def true_value(self, x: Array, observed: float) -> float:  # noqa: ARG002  # there is no noise
        """What was observed."""
        return observed

    def counted(self, record: Record, *, seed: int, budget: int, options: Mapping[str, Any]) -> "CountedConstrained":
        """The problem as a program sees it."""
        return CountedConstrained(self.problem, record, seed=seed, budget=budget, options=options)


def feasible_value(problem: ConstrainedProblem, x: Array, found: Evaluation) -> float:
    """Minus the objective where all constraints hold; NaN elsewhere."""
    is_feasible = problem.violation(x, found.constraints) <= FEASIBLE
    return -found.value if is_feasible and np.isfinite(found.value) else np.nan


@final
class CountedConstrained:
    """Everything at a point of the unit cube, in units of its spread, until the run is over.

    All constraints are rows of one vector, those that are known and linear last. What is asked twice at a point is one
    evaluation.

    Attributes:
        dim: Number of coordinates.
        seed: Of the run.
        budget: Evaluations in all.
        options: Of the program.
        lower, upper: Limits of the constraints `m + k`.
        is_over: Whether the next evaluation would be one too many.
    """

    def __init__(
        self, problem: ConstrainedProblem, record: Record, *, seed: int, budget: int, options: Mapping[str, Any]
    ) -> None:
        """Each evaluation goes to `record`, which says when to stop."""
        self.dim, self.seed, self.budget, self.options = problem.dim, seed, budget, dict(options)
        self.is_over = False
        self._problem, self._record = problem, record
        self._known: dict[bytes, Evaluation] = {}
        self._idle_since: float | None = None
        box, rows, units = problem.bounds, problem.linear, problem.scales
        self._width = box.upper - box.lower
        k = len(rows)
        self._rows = (rows.A * self._width) / problem.row_scales[:, None] if k else np.empty((0, self.dim))
        offset = rows.A @ box.lower if k else np.empty(0)
        self.lower, self.upper = (
            np.concatenate([limit / units, (row_limit - offset) / problem.row_scales])
            for limit, row_limit in ((problem.limits.lower, rows.lower), (problem.limits.upper, rows.upper))
        )

    def evaluate(self, u: Array) -> Evaluation:
        """Value, gradient, all constraints and their gradients, scaled."""
        u = np.minimum(np.maximum(u, 0.0), 1.0)
        key = u.tobytes()
        if key not in self._known:
            self._known[key] = self._observe(u)
        return self._known[key]

    def _observe(self, u: Array) -> Evaluation:
        if self.is_over:
            raise Finished
        waited = np.nan if self._idle_since is None else time.perf_counter() - self._idle_since
        problem = self._problem
        x = problem.bounds.lower + u * self._width
        found = problem.formula(x)
        self.is_over = self._record(x, feasible_value(problem, x, found), waited)
        self._idle_since = time.perf_counter()
        units = problem.scales[:, None]
        return Evaluation(
            found.value / problem.spread,
            found.gradient * self._width / problem.spread,
            np.concatenate([found.constraints / units[:, 0], self._rows @ u]),
            np.concatenate([found.jacobian * self._width / units, self._rows]),
        )

    @property
    def is_equality(self) -> Mask:
        """Which constraints are equations."""
        return np.asarray(self.lower == self.upper)

    def excess(self, u: Array) -> tuple[Array, Array]:
        """Inequalities as g(u) <= 0 with their gradients: upper limits, then lower ones."""
        found, free = self.evaluate(u), ~self.is_equality
        above, below = free & np.isfinite(self.upper), free & np.isfinite(self.lower)
        values = np.concatenate([(found.constraints - self.upper)[above], (self.lower - found.constraints)[below]])
        return values, np.concatenate([found.jacobian[above], -found.jacobian[below]])

    def residual(self, u: Array) -> tuple[Array, Array]:
        """Equations as h(u) = 0 with their gradients."""
        found, equal = self.evaluate(u), self.is_equality
        return (found.constraints - self.upper)[equal], found.jacobian[equal]

    def violation(self, u: Array) -> float:
        """The largest violation at a point."""
        parts = np.concatenate([self.excess(u)[0], np.abs(self.residual(u)[0])])
        return float(max(parts.max(initial=0.0), 0.0))
