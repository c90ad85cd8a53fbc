"""Where feasible improvement is most to be expected, anywhere in the region; at first, where feasibility is."""

from typing import Final, NamedTuple, final

import numpy as np

from eign.arrays import Array
from eign.formulas import improvement_numpy
from eign.formulas.feasibility_numpy import log_probability_of_feasibility
from eign.strategies.constrained.outputs import Moments, Outputs
from eign.strategies.constrained.region_search import best_new, candidates

_RAW: Final = 256
_RESTARTS: Final = 6


class GlobalStep(NamedTuple):
    """The point, the expected improvement that is feasible there, and its probability, in the models' units."""

    x: Array
    gain: float
    probability: float


@final
class FeasibleImprovement:
    """Log of the expected improvement times the probability of feasibility; of the latter alone without a best value.

    Improvement is that of f less multipliers times what equality constraints are off: within a tolerance f alone would
    always improve beside an optimum, on the side that costs feasibility. With fixed multipliers that is Gaussian too.

    Args:
        outputs: The models.
        best: What is to be improved, in the units of the model of f; None is nothing, as long as nothing is feasible.
        tolerance: Of equality constraints, in the units of their models.
        multipliers: Of the constraints at the best point, in the units of the models, `m`; None is none.
    """

    def __init__(
        self, outputs: Outputs, best: float | None, tolerance: float, multipliers: Array | None = None
    ) -> None:
        """See the class."""
        self.outputs, self._best = outputs, best
        is_equal = outputs.limits[0] == outputs.limits[1]
        given = np.zeros(len(is_equal)) if multipliers is None else multipliers
        self._pushes = np.where(is_equal, given, 0.0)
        lower, upper = outputs.limits
        room = np.maximum(tolerance - 0.5 * np.where(np.isfinite(upper - lower), upper - lower, np.inf), 0.0)
        self._lower, self._upper = lower - room, upper + room

    def evaluate(self, X: Array) -> Array:
        """Values, `n x d -> n`."""
        return self._combined(X, gradients=False)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values and derivatives by the point, `n x d -> n, n x d`."""
        return self._combined(X, gradients=True)

    def parts(self, x: Array) -> tuple[float, float]:
        """Expected improvement and probability of feasibility at one point, `d`."""
        moments = self._moments(x[None], gradients=False)
        log_probability = 0.0
        for j in range(len(self._lower)):
            log_probability += float(self._feasible(moments.mean[:, j + 1], moments.variance[:, j + 1], j).value[0])
        if self._best is None:
            return 0.0, float(np.exp(log_probability))
        found = improvement_numpy.expected_improvement(moments.mean[:, 0], moments.variance[:, 0], self._best)
        return float(found.value[0]), float(np.exp(log_probability))

    def _moments(self, X: Array, *, gradients: bool) -> Moments:
        """Of all outputs; the first is f less multipliers times what equality constraints are off."""
        found = self.outputs.moments(X, gradients=gradients)
        for j in np.flatnonzero(self._pushes):
            push, limit = self._pushes[j], self.outputs.limits[0][j]
            found.mean[:, 0] -= push * (found.mean[:, j + 1] - limit)
            found.variance[:, 0] += push**2 * found.variance[:, j + 1]
            if gradients:
                found.mean_gradient[:, 0] -= push * found.mean_gradient[:, j + 1]
                found.variance_gradient[:, 0] += push**2 * found.variance_gradient[:, j + 1]
        return found

    def _feasible(self, mean: Array, variance: Array, j: int) -> improvement_numpy.ByMoments:
        return log_probability_of_feasibility(mean, variance, float(self._lower[j]), float(self._upper[j]))

    def _combined(self, X: Array, *, gradients: bool) -> tuple[Array, Array]:
        moments = self._moments(X, gradients=gradients)
        terms: list[tuple[int, improvement_numpy.ByMoments]] = []
        if self._best is not None:
            mean, variance = moments.mean[:, 0], moments.variance[:, 0]
            terms.append((0, improvement_numpy.log_expected_improvement(mean, variance, self._best)))
        for j in range(len(self._lower)):
            if np.isfinite(self._lower[j]) or np.isfinite(self._upper[j]):
                terms.append((j + 1, self._feasible(moments.mean[:, j + 1], moments.variance[:, j + 1], j)))
        value, gradient = np.zeros(len(X)), np.zeros(X.shape)
        for k, term in terms:
            value += term.value
            if gradients:
                gradient += term.by_mean[:, None] * moments.mean_gradient[:, k]
                gradient += term.by_variance[:, None] * moments.variance_gradient[:, k]
        return value, gradient


def global_step(target: FeasibleImprovement, incumbents: Array, rng: np.random.Generator) -> GlobalStep:
    """The maximiser that is no point told, as far as a multi-start search finds it."""
    region, seen = target.outputs.standing.region, target.outputs.seen
    raw = candidates(region, incumbents, _RAW, rng)
    x = best_new(target, region, raw, seen, rng, restarts=_RESTARTS, unit=1.0)
    return GlobalStep(x, *target.parts(x))
