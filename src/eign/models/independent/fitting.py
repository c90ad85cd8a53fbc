"""Maximum a posteriori hyperparameters of many independent Gaussian processes at once: starts, search, choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.models.independent.map_objective import LENGTHSCALE_PRIOR as LENGTHSCALE_PRIOR
from eign.models.independent.map_objective import NOISE_PRIOR as NOISE_PRIOR
from eign.models.independent.map_objective import OUTPUTSCALE_PRIOR as OUTPUTSCALE_PRIOR
from eign.models.independent.map_objective import FitProblem, Posterior, negative_log_prior, stacked_posterior
from eign.models.kernels import Correlation
from eign.numerics import lbfgs
from eign.numerics.cholesky import JITTERS, FactorizationError, larger_jitter, smaller_jitter
from eign.numerics.threads import map_threads

_LENGTHSCALE_BOUNDS: Final = (1e-2, 1e2)
_OUTPUTSCALE_BOUNDS: Final = (1e-4, 1e3)
_NOISE_BOUNDS: Final = (1e-8, 1e1)
# Stop when less than this is left to gain per datum: at n = 500 that is 0.1 posterior standard deviations in theta.
_DECREASE_PER_DATUM: Final = 1e-5
# Problems are evaluated together up to this many matrix elements: it saves interpreter time where that dominates.
_STACKED_ELEMENTS: Final = 25000
# Starts of a first fit: the prior mode, long, and for a partial derivative short along its own coordinate and long on
# the others. So it is for separable functions, and it is an optimum that the first two miss (by 95 nats on Ackley 14).
_START_LENGTHSCALES: Final = (0.25, 1.5)
_OWN_LENGTHSCALES: Final = (0.05, 4.0)
# Another local optimum is followed while it is at most this much worse: one more datum can make it the better one.
_RIVAL_EXCESS: Final = 5.0
_RIVAL_DISTANCE: Final = 0.5
_SECANT_PAIRS: Final = 8
FIRST_JITTER: Final = 1e-9
"""What a first fit has on its diagonals, as a share of the variance of the data: the paper's."""
LEAST_JITTER: Final = JITTERS[0]
"""What is left where many points close to each other agree: they are then likelier with less.

With 1e-9 an incumbent that has converged keeps a deviation of 3e-5, of which expected improvement is more than what the
rest of the box promises, and nearly all later suggestions repeat it: notes/surrogate.md.
"""
# Another jitter is believed if the data are so much likelier with it, in nats.
_CLEARLY: Final = 5.0
_EVALUATIONS: Final = 200
# Every fourth size one process gets a fresh start. A fit gives it no more evaluations than the warm ones need: further
# rounds for one process alone cost a small model more than all the others. The next fits go on where it ended, and
# before the next fresh start it has to have come close to stay as a rival.
_FRESH_EVERY: Final = 4
_FRESH_EVALUATIONS: Final = 3


class Fittable(Protocol):
    """A model whose hyperparameters can be fitted in place."""

    def fit_hyperparameters(self) -> object:
        """Start from the last fit if there was one."""


ModelT = TypeVar("ModelT", bound=Fittable)


def fit(model: ModelT) -> ModelT:
    """Maximum a posteriori hyperparameters, in place; returns the model.

    The first fit has several starts; later ones, also of a model that `append` made, start from the previous optimum.

    Raises:
        TypeError: It is no model of eign.
    """
    given: object = model
    if isinstance(given, type) or not hasattr(given, "fit_hyperparameters"):
        raise TypeError(_what_to_fit(given))
    model.fit_hyperparameters()
    return model


def _what_to_fit(given: object) -> str:
    """That this is not one of our models, with the call that was meant."""
    name = f"the class {given.__name__}" if isinstance(given, type) else f"an object of {type(given).__name__}"
    if hasattr(given, "models"):
        call = "for model in models.models: eign.models.fit(model)"
    elif hasattr(given, "likelihood"):
        call = "botorch.fit.fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))"
    else:
        call = "eign.models.fit(eign.models.JointGradientGP(X, Y, G))"
    return f"{name} is not a model that eign.models.fit fits; write {call}"


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """What a fit leaves to the next one; plain numbers, so that a study can store it.

    Attributes:
        theta: The optimum of each process, `B x p`.
        steps: Secant pairs of the last search, which save a quarter of the evaluations, `B x m x p`.
        changes: The gradient's changes along `steps`.
        rival_owner: Which process each rival belongs to, `R`; a rival is another local optimum, hardly worse.
        rival_theta: Where it is, `R x p`.
    """

    theta: Array
    steps: Array
    changes: Array
    rival_owner: lbfgs.Index
    rival_theta: Array

    @classmethod
    def at(cls, theta: Array) -> "WarmStart":
        """A start that knows an optimum and nothing else."""
        pairs = min(_SECANT_PAIRS, theta.shape[1] + 1)  # of few variables more say nothing new
        empty = np.zeros((len(theta), pairs, theta.shape[1]))
        return cls(theta, empty, empty, np.zeros(0, dtype=np.intp), np.zeros((0, theta.shape[1])))

    def checked(self, shape: tuple[int, ...]) -> "WarmStart":
        """Itself, if it is of so many processes and variables.

        Raises:
            ValueError: An array has another shape.
        """
        processes, variables = shape
        rivals = (len(self.rival_owner), variables)
        fits = (self.theta.shape, self.rival_theta.shape, self.changes.shape) == (shape, rivals, self.steps.shape)
        if not fits or (*self.steps.shape[:1], *self.steps.shape[2:]) != (processes, variables):
            raise ValueError(f"the warm start has theta of shape {self.theta.shape}, expected {shape}, or does not fit")
        return self

    def to_json(self) -> dict[str, Any]:
        """Plain lists, from which `from_json` builds an equal object."""
        return {name: getattr(self, name).tolist() for name in self.__slots__} | {"p": self.theta.shape[1]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "WarmStart":
        """The start that `to_json` described."""
        theta, steps, changes = (np.array(stored[name], dtype=np.float64) for name in ("theta", "steps", "changes"))
        owner = np.array(stored["rival_owner"], dtype=np.intp)
        return cls(theta, steps, changes, owner, np.array(stored["rival_theta"]).reshape(len(owner), stored["p"]))


@dataclass(frozen=True, slots=True)
class Fit:
    """The result for B problems.

    Attributes:
        theta: `B x p`.
        mean: The optimal constant means, `B`.
        value: J at theta, `B`.
        evaluations: Of J, all problems and starts together.
        converged: Whether the search of each problem met its stopping test, `B`.
        warm_start: For the next fit.
        jitter: What every evaluation of a problem had on its diagonal beside noise, `B`.
    """

    theta: Array
    mean: Array
    value: Array
    evaluations: int
    converged: NDArray[np.bool_]
    warm_start: WarmStart
    jitter: Array


def bounds(dim: int, *, learn_noise: bool) -> tuple[Array, Array]:
    """Lower and upper bounds of theta: wide enough that the priors, not they, decide."""
    noise = [_NOISE_BOUNDS] if learn_noise else []
    pairs = np.log([_LENGTHSCALE_BOUNDS] * dim + [_OUTPUTSCALE_BOUNDS, *noise])
    return pairs[:, 0], pairs[:, 1]


def fit_problems(
    problems: Sequence[FitProblem],
    kernel: Correlation,
    *,
    learn_noise: bool = False,
    warm: WarmStart | None = None,
    jitter: float = 0.0,
    last: Array | None = None,
) -> Fit:
    """The best theta found for each problem, with as little jitter as it takes.

    Jitter is fixed while a problem is fitted: with more of it J is another function. The fit begins again with ten
    times as much for a problem of which a factorisation failed. With a least jitter it begins with `FIRST_JITTER` or
    with what the previous fit took, and again with more for data that scatter so much that they are likelier with more,
    see `likelier_jitter`; with a tenth if that is the likelier. From the least it would not find its way up: there the
    lengthscales explain the scatter.

    Args:
        problems: See `_fit_at`.
        kernel: The correlation they share.
        learn_noise: Whether a noise variance is fitted for each.
        warm: What the previous fit left.
        jitter: The least of all problems. With 0, or with noise that is learned, only failures make it grow.
        last: What the previous fit took for each, where data that scatter made it grow.
    """
    follows_scatter = jitter > 0.0 and not learn_noise
    begun = np.zeros(len(problems)) if last is None else last
    levels = np.maximum(jitter, np.where(begun > 0.0, begun, FIRST_JITTER) if follows_scatter else 0.0)
    levels = np.broadcast_to(levels, len(problems))
    tried = {tuple(levels)}
    while True:
        found, failed, likelier = _fit_at(problems, kernel, levels, learn_noise=learn_noise, warm=warm)
        steps = np.where(failed, 1, likelier if follows_scatter else 0)
        larger = np.array([larger_jitter(level) for level in levels])
        smaller = np.maximum([smaller_jitter(level) for level in levels], jitter)
        levels = np.where(steps > 0, larger, np.where(steps < 0, smaller, levels))
        if tuple(levels) in tried:
            return found
        tried.add(tuple(levels))


def likelier_jitter(jitter: Array, precision: Array, misfit: Array) -> NDArray[np.int_]:
    r"""Whether the data are likelier with ten times the jitter (1), with a tenth of it (-1), or with neither (0), `B`.

    What the points that tell the jitter eta add to J is (m log eta + c / eta) / 2, if theta stays. From its first
    derivative, with m = eta tr K^{-1} and c / eta = eta |alpha|^2, it follows that J falls

    .. math:: \tfrac12 \bigl(0.9\, c/\eta - m \log 10\bigr) \ \text{with } 10\,\eta, \qquad
        \tfrac12 \bigl(m \log 10 - 9\, c/\eta\bigr) \ \text{with } \eta / 10 .

    A step up at which c / eta is 2.6 m ends where it is 0.26 m: neither is followed by the other. Functions without
    scatter ask for less jitter wherever points are close, and for no other where they are not.
    """
    count, square = jitter * precision, jitter * misfit
    more = 0.5 * (0.9 * square - np.log(10.0) * count)
    less = 0.5 * (np.log(10.0) * count - 9.0 * square)
    return np.where(more > _CLEARLY, 1, np.where(less > _CLEARLY, -1, 0))


def _fit_at(
    problems: Sequence[FitProblem], kernel: Correlation, jitter: Array, *, learn_noise: bool, warm: WarmStart | None
) -> tuple[Fit, NDArray[np.bool_], NDArray[np.int_]]:
    """The best theta found for each problem, whether a factorisation failed, and which jitter is likelier, `B`.

    A first fit has three starts for each problem. Later ones start at the previous optimum and at its rivals, and now
    and then one problem, in turn, also from scratch; this start is followed over several fits.

    Args:
        problems: The process of f and, if there are more, those of its partial derivatives in order; they may have
            different numbers of observations.
        kernel: The correlation they share.
        jitter: Of each problem, `B`.
        learn_noise: Whether a noise variance is fitted for each.
        warm: What the previous fit left.
    """
    count, dim = len(problems), problems[0].x.shape[1]
    if warm is None:
        fresh = _fresh_starts(count, dim, learn_noise=learn_noise)
        owner = np.tile(np.arange(count), len(fresh))
        warm = WarmStart.at(fresh[0])
        end = _descend(problems, kernel, np.concatenate(fresh), owner, warm, jitter=jitter)
        return _best_of(end, owner, warm, jitter)
    turn, passed = divmod(len(problems[0].y), _FRESH_EVERY)
    lap, challenged = divmod(turn, count)
    starts, owner = np.concatenate([warm.theta, warm.rival_theta]), np.append(np.arange(count), warm.rival_owner)
    if not passed:
        fresh = _fresh_starts(count, dim, learn_noise=learn_noise)
        start = fresh[lap % len(fresh)][challenged]
        starts, owner = np.append(starts, start[None], axis=0), np.append(owner, challenged)
    limits = np.full(len(owner), _EVALUATIONS)
    limits[count:][owner[count:] == challenged] = _FRESH_EVALUATIONS
    followed = challenged if passed < _FRESH_EVERY - 1 else None
    end = _descend(problems, kernel, starts, owner, warm, jitter=jitter, limits=limits)
    return _best_of(end, owner, warm, jitter, followed=followed)


def _fresh_starts(count: int, dim: int, *, learn_noise: bool) -> list[Array]:
    """Starts that know nothing of the data, each `B x p`."""
    rest = [0.0, *([NOISE_PRIOR[0]] if learn_noise else [])]
    starts = [np.tile([np.log(length)] * dim + rest, (count, 1)) for length in _START_LENGTHSCALES]
    own = np.tile([np.log(_OWN_LENGTHSCALES[1])] * dim + rest, (count, 1))
    own[0, :dim] = LENGTHSCALE_PRIOR[0]
    for k in range(count - 1):
        own[k + 1, k] = np.log(_OWN_LENGTHSCALES[0])
    return [*starts, own]


def _descend(
    problems: Sequence[FitProblem],
    kernel: Correlation,
    starts: Array,
    owner: lbfgs.Index,
    warm: WarmStart,
    *,
    jitter: Array,
    limits: int | lbfgs.Index = _EVALUATIONS,
) -> tuple[lbfgs.Minimum, Array, NDArray[np.bool_]]:
    """Minimise J from every start, `owner` says whose start it is.

    Also mean, precision and misfit at the ends, `3 x R`, and for which problems a factorisation failed.
    """
    dim = problems[0].x.shape[1]
    low, high = bounds(dim, learn_noise=starts.shape[1] > dim + 1)
    sizes = np.array([len(problem.y) for problem in problems])[owner]
    # Of equal size, all are stacked once instead of those of each evaluation anew.
    alike = (
        FitProblem(*(np.stack(part) for part in zip(*problems, strict=True))) if sizes.min() == sizes.max() else None
    )
    beside, lowest = np.zeros((3, len(starts))), np.full(len(starts), np.inf)
    failed = np.zeros(len(problems), dtype=np.bool_)
    fresh = not warm.steps.any()
    calls = 0

    def objective(thetas: Array, index: lbfgs.Index) -> lbfgs.ObjectiveValues:
        nonlocal calls
        # Near an optimum the curvature at the start is as good as that at each point, and the gradient is cheaper.
        curvature = calls == 0 or fresh
        calls += 1
        fits_one = alike is not None and len(index) * alike.y.shape[1] ** 2 <= _STACKED_ELEMENTS
        stacks = [np.arange(len(index))] if fits_one else _stacks(sizes[index])

        def evaluate(stack: lbfgs.Index) -> Posterior:
            members = owner[index[stack]]
            if alike is None:
                together = FitProblem(*(np.stack(part) for part in zip(*(problems[b] for b in members), strict=True)))
            else:
                together = FitProblem(alike.x[members], alike.y[members], alike.noise[members])
            return _safe_posterior(thetas[stack], together, kernel, jitter=jitter[members], curvature=curvature)

        results = [evaluate(stacks[0])] if fits_one else map_threads(evaluate, stacks, size=int(sizes.max()))
        found = results[0] if len(results) == 1 else _in_order(results, np.concatenate(stacks))
        value = found.value
        # The mean belongs to the point that the search keeps, not to a step that it rejects.
        kept = value <= lowest[index]
        failed[owner[index[np.isposinf(value)]]] = True
        lowest[index[kept]] = value[kept]
        for part, now in zip(beside, (found.mean, found.precision, found.misfit), strict=True):
            part[index[kept]] = now[kept]
        return lbfgs.ObjectiveValues(value, found.gradient, found.curvature)

    pairs = np.zeros((2, len(starts), *warm.steps.shape[1:]))
    pairs[0, : len(warm.theta)], pairs[1, : len(warm.theta)] = warm.steps, warm.changes
    stopping = lbfgs.Stopping(decrease=_DECREASE_PER_DATUM * np.maximum(sizes, 1), gradient=1e-9, evaluations=limits)
    memory = lbfgs.CurvaturePairs(*pairs)
    end = lbfgs.minimize(objective, starts, lower=low, upper=high, stopping=stopping, memory=memory, longest_step=2.0)
    return end, beside, failed


def _best_of(
    result: tuple[lbfgs.Minimum, Array, NDArray[np.bool_]],
    owner: lbfgs.Index,
    warm: WarmStart,
    jitter: Array,
    *,
    followed: int | None = None,
) -> tuple[Fit, NDArray[np.bool_], NDArray[np.int_]]:
    """The best end for each owner, and the rivals: the next best that is another optimum and not much worse.

    The process that is `followed` keeps the next two, however much worse: one of them may be on its way.
    """
    end, (means, precision, misfit), failed = result
    value = np.where(np.isfinite(end.value), end.value, np.inf)
    chosen, rivals = [], []
    for b in range(len(warm.theta)):
        mine = np.flatnonzero(owner == b)
        mine = mine[np.argsort(value[mine], kind="stable")]
        chosen.append(mine[0])
        apart = np.abs(end.x[mine] - end.x[mine[0]]).max(axis=-1) > _RIVAL_DISTANCE
        if b == followed:
            rivals += list(mine[apart & np.isfinite(value[mine])][:2])
        else:
            rivals += list(mine[apart & (value[mine] < value[mine[0]] + _RIVAL_EXCESS)][:1])
    best, others = np.array(chosen), np.array(rivals, dtype=np.intp)
    steps, changes = (part[best] for part in end.memory)
    left = WarmStart(end.x[best], steps, changes, owner[others], end.x[others])
    evaluations = int(end.evaluations.sum())
    found = Fit(end.x[best], means[best], end.value[best], evaluations, end.converged[best], left, jitter)
    return found, failed, likelier_jitter(jitter, precision[best], misfit[best])


def _in_order(results: Sequence[Posterior], positions: lbfgs.Index) -> Posterior:
    """One result from those of several stacks, whose members were at these positions."""
    order = np.argsort(positions)
    value, gradient, *beside = (np.concatenate(part)[order] for part in list(zip(*results, strict=True))[:5])
    bends = [result.curvature for result in results if result.curvature is not None]
    curvature = np.concatenate(bends)[order] if bends else None
    return Posterior(value, gradient, beside[0], beside[1], beside[2], curvature)


def _stacks(sizes: NDArray[np.int_]) -> list[lbfgs.Index]:
    """Positions of problems to evaluate together: of equal size, and few enough to stay in the cache."""
    stacks = []
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        length = max(1, _STACKED_ELEMENTS // max(1, int(size) ** 2))
        stacks += [members[first : first + length] for first in range(0, len(members), length)]
    return stacks


def _safe_posterior(
    theta: Array, problem: FitProblem, kernel: Correlation, *, jitter: Array, curvature: bool
) -> Posterior:
    """J of a stack, infinite for members that cannot be factorised; without observations it is the prior's."""
    if not problem.y.shape[-1]:
        value, slopes, bends = negative_log_prior(theta, problem.x.shape[-1])
        bend = bends[..., None] * np.eye(theta.shape[-1]) if curvature else None
        zero = np.zeros_like(value)
        return Posterior(value, slopes, zero, zero, zero, bend)
    try:
        return stacked_posterior(theta, problem, kernel, jitter=jitter, curvature=curvature)
    except FactorizationError:
        if len(theta) == 1:
            bend = np.eye(theta.shape[1])[None] if curvature else None
            zero = np.zeros(1)
            return Posterior(np.full(1, np.inf), np.zeros_like(theta), zero, zero, zero, bend)
    parts = [
        _safe_posterior(
            theta[one], FitProblem(*(part[one] for part in problem)), kernel, jitter=jitter[one], curvature=curvature
        )
        for one in (slice(c, c + 1) for c in range(len(theta)))
    ]
    return _in_order(parts, np.arange(len(theta)))
