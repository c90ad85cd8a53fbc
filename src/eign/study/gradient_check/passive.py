r"""Do the user's gradients agree with the values, as far as the points of the search itself can tell?

For points a and b the values must differ by the line integral of the gradient,

.. math:: y_b - y_a = \sum_i s_i I_i, \qquad I_i = (b_i - a_i) \int_0^1 \partial_i f(a + t (b - a))\,dt, \qquad s_i = 1

The n - 1 pairs are the shortest tree through the points. Each partial derivative has a Gaussian process of its own, so
that nothing is assumed of how they belong together; it gives mean and variance of the integrals I_i. Factors s that
explain the values much better than any permitted ones are a finding:

| finding | permitted | found |
|---|---|---|
| sign of i, or of all | 0 <= s <= 1.25 | s_i < 0 |
| too small by a factor | 0 <= s <= 1.25 | s_i > 1.5 |
| i and j swapped | 0 <= s <= 1.25 | the same with the two exchanged |
| too large by a factor | 0.8 <= s <= 1.25 | s_i between 0.27 and 0.65 |

Where f varies faster than the points can follow, the integrals are guesses and s comes out between 0 and 1 for correct
gradients too. So that range is permitted, and a factor that makes gradients too large is found only between points near
to each other, or where almost all of the variation is followed.
"""

from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.sparse.csgraph import minimum_spanning_tree

from eign.arrays import Array, times_power
from eign.data import Observations
from eign.models import Hyperparameters, IndependentGradientGP, fit
from eign.strategies.magnitudes import Computable
from eign.study.gradient_check.faults import Fault, scaling

_NODES, _WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(7))
_NODES = _NODES + 0.5

# Evidence beyond which a finding is told: above all that correct gradients of our problems give over 20 seeds, which is
# 1.8, 9.1, 5.9 and 0.65 a pair. The benchmark gradient_check.py measures both kinds of error.
_WRONG_SIGN: Final = 3.5
_TOO_SMALL: Final = 11.0
_SWAP: Final = 8.0
_TOO_LARGE: Final = 3.5
_TOO_LARGE_PER_PAIR: Final = 0.75
# Pairs that differ by less in every coordinate are also looked at alone: hardly anything happens between them.
_NEAR: Final = 0.1
_FEWEST_PAIRS: Final = 3
# Of partial derivatives, in standardised units: the thresholds were found with it.
_LEAST_NOISE: Final = 1e-6
# Degrees of freedom by which the processes' own variances are trusted.
_TRUST: Final = 4.0
# Mean square of the residuals, in standard deviations, up to which values count as explained.
_EXPLAINED: Final = 4.0
# Coordinates whose widths have a larger ratio than this are not taken for each other.
_WIDEST: Final = 1e50
# So many of the most likely swaps are examined in full.
_SWAPS_EXAMINED: Final = 10


class _Finding(NamedTuple):
    """A fault and the log likelihood ratio that speaks for it."""

    fault: Fault
    evidence: float


class _Pairs(NamedTuple):
    """Differences along the tree, for m pairs: of values `m`, of points `m x d`, and mean derivatives between them.

    `noise` is the known variance of the values' differences.
    """

    rise: Array
    step: Array
    slope: Array
    slope_var: Array
    noise: Array


class _Explained(NamedTuple):
    """How well factors s explain the differences of values: what remains, in standard deviations, and these, `m`."""

    factors: Array
    residual: Array
    deviation: Array

    def evidence(self, *permitted: "_Explained") -> float:
        r"""Log likelihood ratio against the best of others, without the pairs that speak for it most.

        .. math:: \log p = -\tfrac{\nu + m}2 \log\Bigl(\nu + \sum_p r_p^2\Bigr) - \sum_p \log \sigma_p

        is a Student distribution: the processes may misjudge all variances by a common factor. A tenth of the pairs,
        and one more, are left out: a single peak between two points must not decide. There is no evidence for what
        does not explain the values either, as with noise that nobody told.
        """
        return min(self._against(other) for other in permitted)

    def _against(self, other: "_Explained") -> float:
        gain = 0.5 * (other.residual**2 - self.residual**2) + np.log(other.deviation / self.deviation)
        kept = np.argsort(gain, kind="stable")[: len(gain) - 1 - len(gain) // 10]
        mine, theirs = (_TRUST + float((part.residual[kept] ** 2).sum()) for part in (self, other))
        if mine > _TRUST + _EXPLAINED * len(kept):
            return -np.inf
        scale = float(np.log(other.deviation[kept] / self.deviation[kept]).sum())
        return 0.5 * (_TRUST + len(kept)) * float(np.log(theirs / mine)) + scale


def likely_fault(data: Observations, widths: Array) -> Fault | None:
    """The most likely error in the gradients, if there is strong evidence for one.

    Only complete observations are looked at, and there must be at least two for each coordinate and four in all.

    Args:
        data: All that was told, in the unit cube.
        widths: What the cube's units are in the user's at each point, `n x d`: coordinates are swapped in those.
    """
    rows = data.has_y & data.has_grad.all(axis=1)
    complete = Computable(data[rows]).data if rows.any() else data[rows]
    spread = float(np.std(complete.y)) if len(complete) else 0.0
    if len(complete) < max(4, 2 * data.dim) or not spread > 0.0 or not complete.grad.any():
        return None
    start, end = _tree(complete.x)
    pairs = _in_user_units(_integrate(complete, start, end), _comparable(widths[rows])[start])
    is_near = np.abs(complete.x[end] - complete.x[start]).max(axis=1) <= _NEAR
    near = _Pairs(*(part[is_near] for part in pairs))
    findings: list[_Finding] = []
    for some, needed in ((pairs, max(_TOO_LARGE, _TOO_LARGE_PER_PAIR * len(pairs.rise))), (near, _TOO_LARGE)):
        if len(some.rise) >= _FEWEST_PAIRS:
            findings += _wrong_signs_and_factors(some, spread) + _swaps(some, spread)
            findings += _too_large(some, spread, needed)
    return max(findings, key=lambda finding: finding.evidence).fault if findings else None


def _tree(x: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows at both ends of the pairs of the shortest tree."""
    distance = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=-1))
    tree = minimum_spanning_tree(distance).tocoo()
    return tree.row.astype(np.int64), tree.col.astype(np.int64)


def _comparable(widths: Array) -> Array:
    """Widths whose squares exist: in units of the largest, as only their ratios matter, and of ratios that do exist."""
    if widths.max() <= _WIDEST and widths.min() >= 1.0 / _WIDEST:
        return widths
    return np.maximum(times_power(widths, np.frexp(widths.max()), -1), 1.0 / _WIDEST)


def _in_user_units(pairs: _Pairs, widths: Array) -> _Pairs:
    """Where coordinates are swapped; all that is not swapped stays the same."""
    slope, variance = pairs.slope / widths, pairs.slope_var / widths**2
    return pairs._replace(step=pairs.step * widths, slope=slope, slope_var=variance)


def _integrate(data: Observations, start: NDArray[np.int64], end: NDArray[np.int64]) -> _Pairs:
    """The line integrals of each partial derivative between points, with their variances."""
    x, dim = np.array(data.x), data.dim
    step = x[end] - x[start]
    nodes = torch.from_numpy(x[start][:, None] + _NODES[None, :, None] * step[:, None])
    points, grads = torch.from_numpy(x), torch.tensor(data.grad)
    variances = torch.tensor(data.grad_var)
    values = torch.tensor(data.y)[:, None]
    together = fit(IndependentGradientGP(points, values, grads, Gvar=variances, noise=_LEAST_NOISE))
    slope, slope_var = np.empty_like(step), np.empty_like(step)
    weights = torch.from_numpy(_WEIGHTS)
    for i in range(dim):
        # The process of the partial derivative i, as the process of a value.
        row, of = np.full(dim + 1, i + 1), together.hyperparameters
        same = Hyperparameters(of.lengthscale[row], of.outputscale[row], of.mean[row], of.noise[row])
        process = IndependentGradientGP(points, grads[:, i : i + 1], Yvar=variances[:, i : i + 1], noise=_LEAST_NOISE)
        with torch.no_grad():
            mean, covariance = process.with_hyperparameters(same).standardized_normal(nodes)
        units = process.standardization
        slope[:, i] = units.y_shift + units.y_scale * (mean @ weights).numpy()
        slope_var[:, i] = units.y_scale**2 * ((covariance @ weights) @ weights).clamp_min(0.0).numpy()
    known = np.where(np.isnan(data.y_var), 0.0, data.y_var)
    return _Pairs(data.y[end] - data.y[start], step, slope, slope_var, known[start] + known[end])


def _wrong_signs_and_factors(pairs: _Pairs, spread: float) -> list[_Finding]:
    parts = pairs.step * pairs.slope
    total, dim = parts.sum(axis=1, keepdims=True), parts.shape[1]
    permitted = [_explain(pairs, part, spread, (0.0, 1.25)) for part in (parts, total)]
    found: list[_Finding] = []
    for low, high, needed in ((-1.25, 0.0, _WRONG_SIGN), (1.5, 4.0, _TOO_SMALL)):
        whole = _explain(pairs, total, spread, (low, high))
        candidates = [_Finding(scaling((), float(whole.factors[0])), whole.evidence(*permitted))]
        for i in range(dim):
            one = _explain(pairs, parts, spread, (0.0, 1.25), {i: (low, high)})
            candidates.append(_Finding(scaling((i,), float(one.factors[i])), one.evidence(*permitted)))
        # A factor at the end of its range would like to be larger still: noise, and no error that people make.
        plausible = [finding for finding in candidates if low < finding.fault.factor < high]
        found += [_all_if_one(finding, dim) for finding in plausible if finding.evidence > needed]
    return found


def _swaps(pairs: _Pairs, spread: float) -> list[_Finding]:
    parts, dim = pairs.step * pairs.slope, pairs.step.shape[1]
    permitted = [_explain(pairs, part, spread, (0.0, 1.25)) for part in (parts, parts.sum(axis=1, keepdims=True))]
    found = []
    for i, j in _likely_swaps(pairs):
        order = np.arange(dim)
        order[[i, j]] = j, i
        swapped = pairs._replace(slope=pairs.slope[:, order], slope_var=pairs.slope_var[:, order])
        other = _explain(swapped, swapped.step * swapped.slope, spread, (0.0, 1.25))
        found.append(_Finding(Fault("swap", (i, j), 1.0), other.evidence(*permitted)))
    return [finding for finding in found if finding.evidence > _SWAP]


def _likely_swaps(pairs: _Pairs) -> list[tuple[int, int]]:
    """The swaps that lower the squared residual most, at the factors 1 of a correct gradient."""
    step, slope = pairs.step, pairs.slope
    weight = 1.0 / ((step**2 * pairs.slope_var).sum(axis=1) + 1e-4 * (step * slope).sum(axis=1) ** 2 + 1e-300)
    residual = pairs.rise - (step * slope).sum(axis=1)

    def cost(pair: tuple[int, int]) -> float:
        i, j = pair
        change = (step[:, i] - step[:, j]) * (slope[:, j] - slope[:, i])
        return float((weight * (residual - change) ** 2).sum())

    return sorted(combinations(range(step.shape[1]), 2), key=cost)[:_SWAPS_EXAMINED]


def _too_large(pairs: _Pairs, spread: float, needed: float) -> list[_Finding]:
    parts = pairs.step * pairs.slope
    total, dim = parts.sum(axis=1, keepdims=True), parts.shape[1]
    permitted = _explain(pairs, parts, spread, (0.8, 1.25))
    whole = _explain(pairs, total, spread, (0.0, 0.65))
    found = [_Finding(scaling((), float(whole.factors[0])), whole.evidence(permitted))]
    for i in range(dim):
        one = _explain(pairs, parts, spread, (0.8, 1.25), {i: (0.0, 0.65)})
        found.append(_Finding(scaling((i,), float(one.factors[i])), one.evidence(permitted)))
    return [_all_if_one(finding, dim) for finding in found if finding.evidence > needed and finding.fault.factor > 0.27]


def _all_if_one(finding: _Finding, dim: int) -> _Finding:
    """With one coordinate, all of them are that one."""
    return finding if dim > 1 else finding._replace(fault=scaling((0,), finding.fault.factor))


def _explain(
    pairs: _Pairs,
    parts: Array,
    spread: float,
    bounds: tuple[float, float],
    others: dict[int, tuple[float, float]] | None = None,
) -> _Explained:
    """Fit the factors of `parts`, `m x k`, by weighted least squares within bounds; `others` are of single factors."""
    width = parts.shape[1]
    low, high = np.full(width, bounds[0]), np.full(width, bounds[1])
    for i, (least, most) in (others or {}).items():
        low[i], high[i] = least, most
    integrals = pairs.step * pairs.slope
    # Quadrature and the model are not trusted beyond a hundredth of the integrals, nor 1e-4 of the spread of y.
    floor = 1e-4 * (integrals**2).sum(axis=1) + (1e-4 * spread) ** 2
    deviation = np.sqrt((pairs.step**2 * pairs.slope_var).sum(axis=1) + pairs.noise + floor)
    fitted = lsq_linear(parts / deviation[:, None], pairs.rise / deviation, (low, high), method="bvls")
    return _Explained(fitted.x, np.asarray(fitted.fun), deviation)
