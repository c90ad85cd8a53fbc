"""What a program that runs its own loop calls: one evaluation is one pair of value and gradient, counted and timed."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import numpy as np

from eign import Optimizer
from eign.arrays import Array
from eign.problems import Problem

_DIFFERENCE: Final = 1e-6

Record = Callable[[Array, float, float], bool]
"""Takes a point, its value and the seconds that were spent on proposing it; whether the run is over."""


class Finished(Exception):  # noqa: N818  # no error: this is how a run leaves another program's loop
    """Whoever asks for one more evaluation when the run is over gets this."""


@final
class CountedProblem:
    """A problem as a program sees it: in the unit cube, on which log scales are linear, until the run is over.

    Programs that descend need whole gradients: components that are missing come from forward differences, and each
    difference is an evaluation, as SciPy would do it.

    Attributes:
        dim: Number of coordinates.
        seed: Of the run.
        budget: Evaluations in all.
        options: Of the program.
        is_over: Whether the next evaluation would be one too many.
    """

    def __init__(
        self, problem: Problem, record: Record, *, seed: int, budget: int, options: Mapping[str, Any] | None = None
    ) -> None:
        """Each evaluation goes to `record`, which says when to stop."""
        self.dim, self.seed, self.budget, self.options = problem.dim, seed, budget, dict(options or {})
        self.is_over = False
        self.box = problem.bounds
        self._problem, self._record = problem, record
        self._width = self.box.upper - self.box.lower
        self._idle_since: float | None = None

    def observe(self, x: Array) -> tuple[float, Array]:
        """Value and gradient at a point in user units; NaN components are missing."""
        if self.is_over:
            raise Finished
        # Before the first evaluation, the program was imported.
        waited = np.nan if self._idle_since is None else time.perf_counter() - self._idle_since
        values, gradients = self._problem.formula(x[None])  # without the checks, which cost more than the function
        value = float(values[0])
        self.is_over = self._record(x, value, waited)
        self._idle_since = time.perf_counter()
        return value, gradients[0]

    def in_cube(self, u: Array) -> tuple[float, Array]:
        """Value and gradient at a point of the unit cube."""
        u = np.minimum(np.maximum(u, 0.0), 1.0)
        if self.box.log.any():
            x = self.box.from_unit(u)
            value, gradient = self.observe(x)
            return value, gradient * self.box.unit_scale(x)
        value, gradient = self.observe(self.box.lower + u * self._width)
        return value, gradient * self._width

    def whole_gradient(self, u: Array) -> tuple[float, Array]:
        """The same, with differences for what is missing."""
        value, gradient = self.in_cube(u)
        return value, self.completed(u, value, gradient)

    def completed(self, u: Array, value: float, gradient: Array) -> Array:
        """The gradient with forward differences, away from the border, for what is missing."""
        gradient = gradient.copy()
        for i in np.flatnonzero(np.isnan(gradient)):
            step = _DIFFERENCE if u[i] <= 0.5 else -_DIFFERENCE
            moved = u.copy()
            moved[i] += step
            gradient[i] = (self.in_cube(moved)[0] - value) / step
        return gradient

    def descent(self, u: Array) -> tuple[float, Array]:
        """What programs that minimise call."""
        value, gradient = self.whole_gradient(u)
        return -value, -gradient


@final
class FlatAfterwards:
    """`CountedProblem.descent` for programs that swallow exceptions: a flat function once the run is over.

    Attributes:
        ended: What ended the run; None while it goes on.
    """

    def __init__(self, problem: CountedProblem) -> None:
        """Nothing is evaluated yet."""
        self.ended: Exception | None = None
        self._problem = problem

    def __call__(self, u: Array) -> tuple[float, Array]:
        """Value and gradient to descend along."""
        if self.ended is None:
            try:
                return self._problem.descent(u)
            except (Finished, InterruptedError) as error:
                self.ended = error
        return 0.0, np.zeros(self._problem.dim)


def sobol_design(d: int, seed: int) -> Array:
    """The initial design that all registered methods of a seed share, `3 d x d` in the unit cube."""
    return Optimizer([(0.0, 1.0)] * d, method="sobol", seed=seed, check_gradients=False).ask(3 * d)
