"""Where feasible improvement is most to be expected, anywhere in the region; at first, where feasibility is."""

from typing import Final, NamedTuple, final

import numpy as np

from eign.arrays import Array
from eign.formulas import improvement_numpy
from eign.formulas.feasibility_numpy import log_probability_of_feasibility
from eign.numerics import lbfgs
from eign.numerics.threads import single_threaded_blas
from eign.region import Region
from eign.search.candidates import boltzmann_starts, local_candidates
from eign.space import contains
from eign.strategies.constrained.outputs import Outputs

_RAW: Final = 256
_AROUND: Final = 32
_RESTARTS: Final = 6
_STOPPING: Final = lbfgs.Stopping(decrease=1e-3, gradient=1e-5, evaluations=25)
# A point so far beyond a row loses so many nats: 1 at a distance of 0.01. What is found is then moved inside.
_WALL: Final = 1e4


class GlobalStep(NamedTuple):
    """The point, the expected improvement that is feasible there, and its probability, in the models' units."""

    x: Array
    gain: float
    probability: float


@final
class FeasibleImprovement:
    """Log of the expected improvement times the probability of feasibility; of the latter alone without a best value.

    Args:
        outputs: The models.
        best: What is to be improved, in the units of the model of f; None is nothing, as long as nothing is feasible.
        tolerance: Of equality constraints, in the units of their models.
    """

    def __init__(self, outputs: Outputs, best: float | None, tolerance: float) -> None:
        """See the class."""
        self.outputs, self._best = outputs, best
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
        moments = self.outputs.moments(x[None], gradients=False)
        log_probability = 0.0
        for j in range(len(self._lower)):
            log_probability += float(self._feasible(moments.mean[:, j + 1], moments.variance[:, j + 1], j).value[0])
        if self._best is None:
            return 0.0, float(np.exp(log_probability))
        found = improvement_numpy.expected_improvement(moments.mean[:, 0], moments.variance[:, 0], self._best)
        return float(found.value[0]), float(np.exp(log_probability))

    def _feasible(self, mean: Array, variance: Array, j: int) -> improvement_numpy.ByMoments:
        return log_probability_of_feasibility(mean, variance, float(self._lower[j]), float(self._upper[j]))

    def _combined(self, X: Array, *, gradients: bool) -> tuple[Array, Array]:
        moments = self.outputs.moments(X, gradients=gradients)
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
    region, seen = target.outputs.standing.region, target.outputs.objective.model.observations.x
    raw = region.samples(_RAW, rng)
    if len(incumbents):
        raw = np.concatenate([raw, region.project(local_candidates(incumbents, _AROUND, rng))])
    with single_threaded_blas(), np.errstate(all="ignore"):
        values = target.evaluate(raw)
        values = np.where(np.isfinite(values), values, -1e300)
        ends = _climb(target, region, raw[boltzmann_starts(values, _RESTARTS, rng)])
        heights = target.evaluate(ends)
    points, heights = np.concatenate([ends, raw]), np.concatenate([heights, values])
    for index in np.argsort(-np.where(np.isfinite(heights), heights, -np.inf), kind="stable"):
        if not contains(seen, points[index]):
            return GlobalStep(points[index], *target.parts(points[index]))
    return GlobalStep(raw[0], 0.0, 0.0)


def _climb(target: FeasibleImprovement, region: Region, starts: Array) -> Array:
    """Local maxima from the starts, `k x d`, in reduced coordinates; rows are walls that give way a little."""

    def objective(w: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = target.value_and_gradient(region.restored(w))
        beyond = np.maximum(w @ region.matrix.T - region.limit, 0.0)
        wall = _WALL * (beyond**2).sum(axis=1)
        slope = -(gradient @ region.basis) + 2.0 * _WALL * beyond @ region.matrix
        return lbfgs.ObjectiveValues(-value + wall, slope)

    if not region.basis.shape[1]:
        return starts
    end = lbfgs.minimize(
        objective,
        region.reduced(starts),
        lower=region.lower,
        upper=region.upper,
        stopping=_STOPPING,
        memory=min(8, region.basis.shape[1] + 1),
        longest_step=0.1,
    )
    return region.project(region.restored(end.x))
