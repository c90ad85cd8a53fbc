r"""Two points next to each other tell whether a gradient is wrong.

Between neighbours a and b the gradients h told must explain the values by the trapezoid rule,

.. math:: y_b - y_a = \sum_i \delta_i \bar h_i + r, \qquad \delta = b - a, \quad \bar h = \tfrac12 (h_a + h_b),
          \qquad |r| \le \tfrac12 \sum_i |\delta_i| \, |h_{b,i} - h_{a,i}|

The bound holds wherever the partial derivatives are monotone between the points, at a kink too. A fault predicts
another difference of the values. A pair rejects every fault, and the gradient as told, that misses its difference by
more than the bound and the noise. There is an alarm when a few pairs reject the gradient and one fault explains all.
"""

from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array, Mask
from eign.data import Observations
from eign.study.gradient_check.faults import Fault, common_faults, hidden_changes, one_or_all, repaired_bounds, scaling

NEAR: Final = 5e-4
"""Neighbours differ by at most this in every coordinate: ten waves across the box change a slope by 3 per cent then."""
GRADIENT_ERROR: Final = 0.01
"""Gradients are trusted to this share: an adjoint that is somewhat inexact is no fault."""
DEVIATIONS: Final = 4.0
"""Standard deviations of known noise that count as its bound."""
TINY: Final = 1e-300
"""Keeps a quotient finite."""

# Values are trusted to this share of themselves, as solvers with a tolerance give them, and of the largest of all.
_VALUE_ERROR: Final = 1e-6
_ROUNDING: Final = 1e-12
# What a fault predicts may be missed by this share, as the gradient is inexact on top of it.
_FAULT_ERROR: Final = 0.05
# Pairs that must reject the gradient, one more if the factor is estimated from them: with two, noise that nobody told
# gave an alarm in one of 300 studies. One coordinate leaves two probes within five evaluations, and has few faults.
_REJECTIONS: Final = 3
_REJECTIONS_IN_ONE_COORDINATE: Final = 2
# A fault must explain all but this share of what the gradient as told does not: none does so with untold noise.
_UNEXPLAINED: Final = 0.1
_NO_FAULT: Final = scaling((), 1.0)
# A fault explains pairs clearly better than another if it misses a quarter of what the other misses, beyond a share of
# the differences.
_CLEARLY: Final = 4.0
_MISFIT: Final = 1e-3
# Estimated factors outside the first range are noise, those inside the second are inexact gradients.
_FACTORS: Final = (0.1, 10.0)
_CLOSE_TO_ONE: Final = (0.7, 1.4)
# PointPairs that are looked at for each coordinate: a search that has converged makes more than are needed.
_PAIRS: Final = 10


class PointPairs(NamedTuple):
    """Neighbours: `step` from one to the other, mean `slope` and half its change `bend`, all `m x d`.

    `rise` is the difference of the values and `noise` the bound of its error, `m`.
    """

    step: Array
    slope: Array
    bend: Array
    rise: Array
    noise: Array

    @property
    def scale(self) -> Array:
        """The sum of what the coordinates add, without signs, `m`."""
        return np.asarray(np.abs(self.step * self.slope).sum(axis=1))

    @property
    def residual(self) -> Array:
        """What the gradient as told does not explain, `m`."""
        return np.asarray(self.rise - (self.step * self.slope).sum(axis=1))


class Finding(NamedTuple):
    """What the neighbours say.

    Attributes:
        rejections: PointPairs that the gradient as told does not explain.
        alive: Which of `common_faults` explain every pair, `k`.
        found: Faults to tell the user; if there are several, any of them.
    """

    rejections: int
    alive: Mask
    found: tuple[Fault, ...]


@final
class NearPairs:
    """Which points are neighbours, found as they are told: each point is looked at once, and never again.

    A pair is a point that has a value and slopes, and the nearest earlier one, if that is near enough. The first that
    are found are enough, see `_PAIRS`, so that a study that has converged costs no more than one that searches.
    """

    def __init__(self) -> None:
        """No points yet."""
        self._seen = 0
        self._found: list[tuple[int, int]] = []

    def among(self, x: Array) -> NDArray[np.intp]:
        """The pairs of rows, the earlier first, `m x 2`.

        Args:
            x: The informative points, `n x d`: those of the last call and new ones, or the first of them.
        """
        most = _PAIRS * (1 + x.shape[1])
        for row in range(max(1, self._seen), len(x)):
            if len(self._found) >= most:
                break
            distance = np.abs(x[:row] - x[row]).max(axis=1)
            nearest = int(distance.argmin())
            if distance[nearest] <= NEAR:
                self._found.append((nearest, row))
        self._seen = max(self._seen, len(x))
        found = [pair for pair in self._found if pair[1] < len(x)]
        return np.array(found, dtype=np.intp).reshape(-1, 2)


def judge(data: Observations, widths: Array, known: NearPairs | None = None) -> Finding:
    """What the neighbours among the observations say of the gradients.

    Args:
        data: All that was told, in the unit cube.
        widths: What the cube's units are in the user's at each point, `n x d`: coordinates are swapped in those.
        known: The neighbours of earlier calls with the first of these observations; it learns of the new ones.
    """
    pairs = neighbours(data, widths, known or NearPairs())
    bound = (np.abs(pairs.step) * pairs.bend).sum(axis=1) + pairs.noise
    rejected = np.abs(pairs.residual) > bound + GRADIENT_ERROR * pairs.scale
    hidden = hidden_changes(pairs.step, pairs.slope)
    missed = np.abs(pairs.residual[:, None] - hidden)
    bounds = repaired_bounds(pairs.step, pairs.bend) + pairs.noise[:, None]
    # Coordinates along which the user tells no slope have none that could be wrong.
    faults, unknown = common_faults(data.dim), set(np.flatnonzero(~data.has_grad.any(axis=0)).tolist())
    possible = np.array([unknown.isdisjoint(fault.coordinates) for fault in faults])
    alive: Mask = possible & np.asarray(np.all(missed <= bounds + _FAULT_ERROR * np.abs(hidden), axis=0))
    candidates = [fault for fault, lives in zip(faults, alive, strict=True) if lives]
    rejecting = PointPairs(*(part[rejected] for part in pairs))
    return Finding(int(rejected.sum()), alive, _convincing(candidates, pairs, rejecting))


def neighbours(data: Observations, widths: Array, known: NearPairs) -> PointPairs:
    """Each point that has a value and slopes with the nearest earlier one, if that is near enough; in user units."""
    rows = is_informative(data)
    data, widths = data[rows], widths[rows]
    a, b = known.among(data.x).T
    step = data.x[b] - data.x[a]
    told = data.has_grad[a] & data.has_grad[b]
    # A coordinate without slope is no obstacle where the pair does not move along it.
    usable = (told | (step == 0.0)).all(axis=1)
    a, b, step, told = a[usable], b[usable], step[usable], told[usable]
    slope = np.where(told, 0.5 * data.grad[a] + 0.5 * data.grad[b], 0.0)
    bend = np.where(told, 0.5 * np.abs(data.grad[b] - data.grad[a]), 0.0)
    variance = known_variance(data.y_var[a]) + known_variance(data.y_var[b])
    variance += 0.25 * (step**2 * (known_variance(data.grad_var[a]) + known_variance(data.grad_var[b]))).sum(axis=1)
    error = value_error(data)
    noise = DEVIATIONS * np.sqrt(variance) + np.maximum(error[a], error[b])
    return PointPairs(step * widths[a], slope / widths[a], bend / widths[a], data.y[b] - data.y[a], noise)


def is_informative(data: Observations) -> Mask:
    """Which rows have a value and at least one partial derivative, `n`."""
    return np.asarray(data.has_y & data.has_grad.any(axis=1))


def value_error(rows: Observations) -> Array:
    """By how much the values may be wrong without anybody having said so, `n`."""
    size = np.abs(rows.y)
    return np.asarray(_VALUE_ERROR * size + _ROUNDING * size.max(initial=0.0))


def known_variance(variance: Array) -> Array:
    """The variance of noise, 0 where nobody told it."""
    return np.where(np.isnan(variance), 0.0, variance)


def _convincing(candidates: list[Fault], pairs: PointPairs, rejecting: PointPairs) -> tuple[Fault, ...]:
    """The faults that explain the pairs about as well as the best, if that is enough for an alarm."""
    count, dim = rejecting.step.shape
    needed = _REJECTIONS if dim > 1 else _REJECTIONS_IN_ONE_COORDINATE
    if count > needed and not candidates:
        candidates = [fault for fault in _fitted_factors(rejecting) if _explains(fault, pairs)]
    if count < needed or not candidates:
        return ()
    misfits = np.array([_misfit(fault, rejecting) for fault in candidates])
    if misfits.min() > _UNEXPLAINED * _misfit(_NO_FAULT, rejecting):
        return ()
    enough = _CLEARLY * misfits.min() + _MISFIT
    # A gradient that is a little too large or small everywhere may look like a large error of one coordinate.
    inexact = _fitted((), rejecting)
    if _is_close_to_one(inexact) and _misfit(inexact, rejecting) <= enough:
        return ()
    return tuple(fault for fault, misfit in zip(candidates, misfits, strict=True) if misfit <= enough)


def _explains(fault: Fault, pairs: PointPairs) -> bool:
    """Whether a fault misses no pair's difference by more than its bound."""
    hidden = _hidden_change(fault, pairs)
    bound = (np.abs(pairs.step) * np.abs(fault.repaired(pairs.bend))).sum(axis=1) + pairs.noise
    return bool((np.abs(pairs.residual - hidden) <= bound + _FAULT_ERROR * np.abs(hidden)).all())


def _misfit(fault: Fault, pairs: PointPairs) -> float:
    """Root mean square of what the fault leaves unexplained, as a share of the differences."""
    missed = (pairs.residual - _hidden_change(fault, pairs)) / (pairs.scale + TINY)
    return float(np.sqrt(np.mean(missed**2)))


def _hidden_change(fault: Fault, pairs: PointPairs) -> Array:
    return np.asarray((pairs.step * (fault.repaired(pairs.slope) - pairs.slope)).sum(axis=1))


def _fitted_factors(pairs: PointPairs) -> list[Fault]:
    """Plausible factors of one coordinate or of all."""
    fitted = [_fitted(coordinates, pairs) for coordinates in one_or_all(pairs.step.shape[1])]
    low, high = _FACTORS
    return [fault for fault in fitted if low <= abs(fault.factor) <= high and not _is_close_to_one(fault)]


def _fitted(coordinates: tuple[int, ...], pairs: PointPairs) -> Fault:
    """The factor of one coordinate, or of all, that explains the pairs best, each measured by its own size."""
    parts = pairs.step * pairs.slope
    part = (parts[:, coordinates] if coordinates else parts).sum(axis=1) / (pairs.scale + TINY)
    factor = 1.0 + float(part @ (pairs.residual / (pairs.scale + TINY))) / (float(part @ part) + TINY)
    return scaling(coordinates, factor)


def _is_close_to_one(fault: Fault) -> bool:
    return _CLOSE_TO_ONE[0] <= fault.factor <= _CLOSE_TO_ONE[1]
