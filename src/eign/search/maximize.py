"""The point of the unit cube where an acquisition is largest, as far as a multi-start search finds it."""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eign.acquisition import SurrogateAcquisition
from eign.acquisition.standardized_moments import value_moments
from eign.acquisition.with_gradients import TwoTermAcquisition
from eign.arrays import Array
from eign.numerics import lbfgs
from eign.numerics.threads import single_threaded_blas
from eign.search.candidates import boltzmann_starts, global_candidates, local_candidates
from eign.search.rescaling import is_flat, rescaled

Mask = NDArray[np.bool_]

CLOSEST: Final = 1e-9
"""A suggestion is farther than this, in some coordinate, from every point evaluated before."""

_LOCAL_SHARE: Final = 8
"""One candidate around the incumbents for so many over the whole cube."""

# Standard deviations that differ by less, relative to the largest, say the same.
_SAME_SIGMA: Final = 1e-12

# Progress is measured from this quantile of the candidates' values up to the best of them, then to the best so far. Of
# LogEI the lower ones are hundreds below, and say nothing about the height of a peak.
_LEVEL: Final = 0.9
_ROUGH: Final = lbfgs.Stopping(decrease=3e-2, gradient=1e-6, evaluations=10)
_FINE: Final = lbfgs.Stopping(decrease=1e-7, gradient=1e-8, evaluations=45)
# So many of the starts may go on to their tops: those that are not on the way to one that is known, and promise more
# than this share of what they are behind it.
_LEADERS: Final = 4
_MERGED: Final = 0.05
_HOPELESS: Final = 0.1
_MEMORY: Final = 8
_LONGEST_STEP: Final = 0.1


class Suggestion(NamedTuple):
    """Where to evaluate next.

    Attributes:
        x: A point of the unit cube, `d`.
        is_fallback: Whether the acquisition was flat, or left no new point, and the suggestion explores instead.
        target: What was maximised: the acquisition, with its terms rescaled where that was asked for.
        acquisition: As it was given, without rescaling.
    """

    x: Tensor
    is_fallback: bool
    target: SurrogateAcquisition
    acquisition: SurrogateAcquisition

    @property
    def value(self) -> float:
        """The acquisition at the point, without rescaling."""
        return float(self.acquisition.evaluate(self.x[None].numpy())[0])


class Effort(NamedTuple):
    """Restarts of the local search, and raw candidates they are drawn from."""

    restarts: int
    raw_samples: int


def default_effort(dim: int) -> Effort:
    """The paper's table, which has 4, 6, 7 and from 8 dimensions on.

    >>> default_effort(6)
    Effort(restarts=10, raw_samples=512)
    """
    if dim <= 4:
        return Effort(8, 256)
    return Effort(10, 512) if dim <= 7 else Effort(20, 1024)


def maximize(
    acquisition: SurrogateAcquisition,
    *,
    seed: int,
    restarts: int | None = None,
    raw_samples: int | None = None,
    incumbents: Tensor | None = None,
    avoid: Tensor | None = None,
    guesses: Array | None = None,
    apart: float = CLOSEST,
    is_noisy: bool = False,
    rescale: bool = True,
) -> Suggestion:
    """Maximise an acquisition over the unit cube; the same seed gives the same suggestion.

    Candidates over the whole cube and around the incumbents, starts drawn from them by their values, and a projected
    L-BFGS from each start, all in one batch.

    Args:
        acquisition: What to maximise.
        seed: Where all randomness comes from.
        restarts: Local searches; None takes the paper's number for the dimension, or all candidates if these are fewer.
        raw_samples: Candidates over the whole cube; None takes the paper's number, or one for each search if more.
        incumbents: Points to look around, `k x d`; None takes the best observed one.
        avoid: Points not to suggest again, `m x d`, beside those the model has observed.
        guesses: Further candidates, `k x d`.
        apart: How far a suggestion is from every point evaluated before, in some coordinate.
        is_noisy: Whether a second evaluation of a point is worth having, so that nothing is avoided.
        rescale: Whether the two terms of EI-GN and of the bound of EI_g are rescaled over the candidates.
    """
    seen, best = _evaluated(acquisition, avoid, incumbents)
    dim = seen.shape[1]
    default = default_effort(dim)
    count = max(default.raw_samples, restarts or 0) if raw_samples is None else raw_samples
    tries = min(default.restarts, count) if restarts is None else restarts
    if count < 1 or not 1 <= tries <= count:
        raise ValueError(f"restarts={tries} and raw_samples={count}, expected 1 <= restarts <= raw_samples")
    rng = np.random.default_rng(seed)
    raw = global_candidates(count, dim, rng)
    if len(best):
        raw = np.concatenate([raw, local_candidates(best, max(1, count // _LOCAL_SHARE), rng)])
    if guesses is not None:
        raw = np.concatenate([raw, guesses])
    forbidden = np.empty((0, dim)) if is_noisy else seen
    with single_threaded_blas():
        target, values = _pool(acquisition, raw, count=count, rescale=rescale)
        values = np.where(np.isfinite(values), values, -np.inf)
        found = None
        if np.isfinite(values).any() and not is_flat(finite := _finite(values)):
            ends, heights = _climb(target, raw[boltzmann_starts(finite, tries, rng)], finite)
            # The best candidate was a start. What it is above its end is what its value lacks in precision.
            reached = np.isfinite(heights)
            if reached.any():
                values = np.minimum(values, heights[reached].max())
            found = _best_new(np.concatenate([ends, raw]), np.concatenate([heights, values]), forbidden, apart)
        point = _explore(acquisition, raw, seen, forbidden, apart, rng) if found is None else found
    return Suggestion(torch.from_numpy(point), found is None, target, acquisition)


def _evaluated(
    acquisition: SurrogateAcquisition, avoid: Tensor | None, incumbents: Tensor | None
) -> tuple[Array, Array]:
    """Points that have been evaluated, and incumbents, `... x d` each."""
    observations = getattr(acquisition.model, "observations", None)
    given = [np.asarray(part.detach().to(torch.float64).numpy()) for part in (avoid, incumbents) if part is not None]
    if observations is None and not given:
        raise ValueError("the model does not say where it has observed f: pass avoid or incumbents, n x d")
    dim = observations.dim if observations is not None else given[0].shape[-1]
    for part in given:
        if part.ndim != 2 or part.shape[1] != dim:
            raise ValueError(f"avoid and incumbents must be n x {dim}, got shape {part.shape}")
    seen = [np.empty((0, dim))] if observations is None else [np.asarray(observations.x)]
    if avoid is not None:
        seen.append(given[0])
    if incumbents is not None:
        return np.concatenate(seen), given[-1]
    if observations is None or not observations.has_y.any():
        return np.concatenate(seen), np.empty((0, dim))
    y = np.where(observations.has_y, observations.y, -np.inf)
    return np.concatenate(seen), np.asarray(observations.x[y.argmax()][None])


def _pool(
    acquisition: SurrogateAcquisition, raw: Array, *, count: int, rescale: bool
) -> tuple[SurrogateAcquisition, Array]:
    """What is maximised, and its values at the candidates; the first `count` of them decide about rescaling."""
    if not (rescale and isinstance(acquisition, TwoTermAcquisition)):
        return acquisition, acquisition.evaluate(raw)
    terms = acquisition.pool_terms(raw)
    target = rescaled(acquisition, type(terms)(*(term[:count] for term in terms)))
    return target, target.combine(terms)


def _climb(target: SurrogateAcquisition, starts: Array, values: Array) -> tuple[Array, Array]:
    """Local maxima from the starts, `r x d`, and their heights; `values` are those of all candidates.

    All starts climb until little is left to gain, the highest goes on to its top, and then those that may get higher.
    """
    rank = int(_LEVEL * (len(values) - 1))
    level = float(np.partition(values, rank)[rank])
    rough = _ascend(target, starts, _ROUGH, scale=_spread(values, level))
    order = np.argsort(rough.value, kind="stable")
    # A narrow peak can be much higher than all candidates, and is then the better measure of progress.
    scale = _spread(-rough.value[order[:1]], level) or _spread(values, level)
    top = _ascend(target, rough, _FINE, rows=order[:1], scale=scale)
    apart = np.abs(rough.x - top.x).max(axis=-1) > _MERGED
    others = order[1:_LEADERS][apart[order[1:_LEADERS]]]
    behind = (rough.value[others] - top.value) / scale
    ends = [top, rough]
    if others.size:
        fine = replace(_FINE, decrease=np.maximum(_FINE.decrease, _HOPELESS * behind))
        ends.append(_ascend(target, rough, fine, rows=others, scale=scale))
    return np.concatenate([end.x for end in ends]), -np.concatenate([end.value for end in ends])


def _ascend(
    target: SurrogateAcquisition,
    start: Array | lbfgs.Minimum,
    stopping: lbfgs.Stopping,
    *,
    scale: float,
    rows: lbfgs.Index | None = None,
) -> lbfgs.Minimum:
    """Minimise the target's negative, in units of `scale`; the result is in its own units.

    `start` are points, or the end of an earlier ascent whose `rows` go on.
    """

    def objective(x: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        value, gradient = target.value_and_gradient(x)
        return lbfgs.ObjectiveValues(value / -scale, gradient / -scale)

    known = None
    memory: int | lbfgs.CurvaturePairs
    if isinstance(start, lbfgs.Minimum):
        memory = lbfgs.CurvaturePairs(start.memory.steps[rows], start.memory.changes[rows] / scale)
        known = lbfgs.ObjectiveValues(start.value[rows] / scale, start.gradient[rows] / scale)
        start = start.x[rows]
    else:
        memory = min(_MEMORY, start.shape[1] + 1)  # in few dimensions more say nothing new
    end = lbfgs.minimize(
        objective,
        start,
        lower=np.array(0.0),
        upper=np.array(1.0),
        stopping=stopping,
        memory=memory,
        longest_step=_LONGEST_STEP,
        known=known,
    )
    pairs = lbfgs.CurvaturePairs(end.memory.steps, end.memory.changes * scale)
    return replace(end, value=end.value * scale, gradient=end.gradient * scale, memory=pairs)


def _spread(values: Array, level: float) -> float:
    """How far the largest value is above a level, or above the smallest if the level is the largest."""
    return float(values.max() - level) or float(values.max() - values.min())


def _finite(values: Array) -> Array:
    """With the smallest finite value where there is none."""
    return np.where(np.isfinite(values), values, values[np.isfinite(values)].min())


def _best_new(points: Array, values: Array, forbidden: Array, apart: float) -> Array | None:
    """The point with the largest finite value among those that are not forbidden."""
    for index in np.argsort(-values, kind="stable"):
        if not np.isfinite(values[index]):
            return None
        if _is_new(points[index][None], forbidden, apart)[0]:
            return np.asarray(points[index])
    return None


def _is_new(points: Array, forbidden: Array, apart: float) -> Mask:
    """Which points `m x d` are farther than that from all forbidden ones, in some coordinate."""
    if not len(forbidden):
        return np.ones(len(points), dtype=np.bool_)
    distance = np.abs(points[:, None] - forbidden[None]).max(axis=-1)
    return np.asarray(distance.min(axis=1) > apart)


def _explore(
    acquisition: SurrogateAcquisition, raw: Array, seen: Array, forbidden: Array, apart: float, rng: np.random.Generator
) -> Array:
    """The new candidate where f is least known; of several where it is equally so, the farthest from all seen."""
    new = raw[_is_new(raw, forbidden, apart)]
    if not len(new):
        new = rng.random(raw.shape)  # almost surely new, if not so far apart
    with torch.no_grad():
        sigma = value_moments(acquisition.model, torch.from_numpy(new)).sigma.numpy()
    if np.isfinite(sigma).all():
        new = new[sigma >= (1.0 - _SAME_SIGMA) * sigma.max()]
    if not len(seen):
        return np.asarray(new[0])
    squared = np.stack([((new - point) ** 2).sum(axis=1) for point in seen])
    return np.asarray(new[squared.min(axis=0).argmax()])
