"""What a user would run instead of `auto`, each within the same evaluations, and how a run is recorded.

One evaluation is one pair of value and gradient. All methods work in the unit cube of the box, on which log scales are
linear. The programs that descend need whole gradients: components that are missing come from forward differences, and
each difference is an evaluation, as SciPy would do it. Methods of the registry get the gradients as they are.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, final

import numpy as np
from scipy.optimize import basinhopping, dual_annealing, minimize

import eign
from eign.arrays import Array
from eign_lab.judge.cases import Case, design

CONVERGED: Final = 1e-6
"""Share of the scale below which a regret counts as none: the run ends, for no score can change after it."""

_DIFFERENCE: Final = 1e-6
_FIRST_STEP: Final = 0.25
_LOCAL: Final = {"ftol": 1e-9, "gtol": 1e-6 * _FIRST_STEP}


class Finished(Exception):  # noqa: N818  # no error: this is how a run leaves another program's loop
    """The budget is used, or the optimum found."""


@final
@dataclass
class RivalRun:
    """The evaluations of one run, counted and timed.

    The regret is that of the best *observed* point: with noise, the regret without noise of the point whose noisy value
    is the highest so far, which may rise again; then a run never ends early. Neither does it where the optimum is only
    the best value known. `cut` says that the time was up before the budget.
    """

    case: Case
    seed: int
    seconds: float = np.inf
    regrets: list[tuple[int, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    evaluations: int = 0
    cut: bool = False

    def __post_init__(self) -> None:
        self.problem = self.case.seen(self.seed)
        self.box = self.problem.bounds
        self.dim = self.box.dim
        may_end = not self.problem.noisy and self.case.best_known is None
        self._enough = CONVERGED * self.case.scale if may_end else -np.inf
        self._best = -np.inf
        self._width = self.box.upper - self.box.lower
        self._idle_since = time.perf_counter()
        self._end = np.inf

    def observe(self, x: Array) -> tuple[float, Array]:
        """Value and gradient at a point in user units; NaN components are missing."""
        if self.evaluations >= self.case.budget or (self.regrets and self.regrets[-1][1] <= self._enough):
            raise Finished
        if time.process_time() > self._end:
            self.cut = True
            raise Finished
        if self.evaluations:
            self.waits.append(time.perf_counter() - self._idle_since)
        else:  # before it, the method was imported; processor time, for a busy machine should cut nobody short
            self._end = time.process_time() + self.seconds
        values, gradients = self.problem.formula(x[None])  # without the checks, which cost more than the function
        value = float(values[0])
        self.evaluations += 1
        if value > self._best:
            self._best = value
            self.regrets.append((self.evaluations, self.case.optimum - self._true_value(x, value)))
        self._idle_since = time.perf_counter()
        return value, gradients[0]

    def _true_value(self, x: Array, observed: float) -> float:
        return float(self.case.problem.formula(x[None])[0][0]) if self.case.disturbed else observed

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


def _from_registry(method: str, run: RivalRun, options: Mapping[str, Any]) -> None:
    """A method of `eign.methods()`, asked and told."""
    optimizer = eign.Optimizer(
        run.box, method=method, seed=run.seed, maximize=True, options=options, check_gradients=False
    )
    while True:
        x = optimizer.ask()
        optimizer.tell(x, *run.observe(x))


def _multistart(run: RivalRun, *, designed: bool) -> None:
    """The algorithm of the method `l-bfgs` without its replays, which take seconds: see `eign.strategies.multistart`.

    Runs from the points of the design, best first, that no run came close to, and then from uniform random points.
    """
    rng = np.random.default_rng([run.seed, 1])
    starts = list(design(run.dim, run.seed)) if designed else []
    told = [run.in_cube(u) for u in starts]
    order = sorted(range(len(starts)), key=lambda i: -told[i][0])
    seen: list[Array] = []
    for i in order:
        if not seen or float(np.abs(np.array(seen) - starts[i]).max(axis=1).min()) > 1e-3:
            _descend(run, starts[i], seen, first=told[i])
    while True:
        _descend(run, rng.random(run.dim), seen)


def _descend(run: RivalRun, start: Array, seen: list[Array], *, first: tuple[float, Array] | None = None) -> None:
    """One run of L-BFGS-B, scaled by the gradient at its start; `first` is what is known there already."""
    value, gradient = run.in_cube(start) if first is None else first
    gradient = run.completed(start, value, gradient)
    scale = _FIRST_STEP / (float(np.linalg.norm(gradient)) or 1.0)
    known = {start.tobytes(): (value, gradient)}

    def objective(u: Array) -> tuple[float, Array]:
        seen.append(u.copy())
        found = known.pop(u.tobytes(), None) or run.whole_gradient(u)
        return -scale * (found[0] - value), -scale * found[1]

    minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * run.dim, options=_LOCAL)


def _mlsl(run: RivalRun) -> None:
    """NLopt's multi-level single linkage with its L-BFGS, over pseudo-random points.

    The form with a low-discrepancy sequence has no seed and begins near the centre of the box: on Ackley 14, whose
    maximum is there, it was at 1e-5 in every run.
    """
    import nlopt

    rng = np.random.default_rng([run.seed, 2])
    finished = False

    def objective(u: Array, gradient: Array) -> float:
        nonlocal finished
        try:
            value, slope = run.descent(u)
        except Finished:
            finished = True
            raise nlopt.ForcedStop from None
        if gradient.size:
            gradient[:] = slope
        return value

    local = nlopt.opt(nlopt.LD_LBFGS, run.dim)
    local.set_ftol_rel(1e-9)
    local.set_xtol_rel(1e-6)
    while not finished:
        search = nlopt.opt(nlopt.GD_MLSL, run.dim)
        search.set_local_optimizer(local)
        search.set_lower_bounds(0.0)
        search.set_upper_bounds(1.0)
        search.set_min_objective(objective)
        search.set_maxeval(10 * run.case.budget)
        nlopt.srand(int(rng.integers(1, 2**31)))
        try:
            search.optimize(rng.random(run.dim))
        except (nlopt.ForcedStop, nlopt.RoundoffLimited, nlopt.runtime_error):
            continue  # a failed line search: it begins anew, at another point


def _basin_hopping(run: RivalRun) -> None:
    """SciPy's basin-hopping with its defaults, but steps of a quarter of the cube, reflected at the border."""
    rng = np.random.default_rng([run.seed, 3])

    def step(u: Array) -> Array:
        moved = np.abs(u + rng.uniform(-0.25, 0.25, run.dim))
        return np.asarray(np.where(moved > 1.0, 2.0 - moved, moved))

    local = {"method": "L-BFGS-B", "jac": True, "bounds": [(0.0, 1.0)] * run.dim}
    while True:
        basinhopping(run.descent, rng.random(run.dim), take_step=step, minimizer_kwargs=local, niter=10**6, rng=rng)


def _dual_annealing(run: RivalRun) -> None:
    """SciPy's dual annealing with its defaults; its local searches are L-BFGS-B with the gradient.

    It asks for value and gradient by separate calls: the pair at a point is one evaluation.
    """
    known: dict[bytes, tuple[float, Array]] = {}
    whole: dict[bytes, Array] = {}

    def value(u: Array) -> float:
        key = u.tobytes()
        if key not in known:
            known[key] = run.in_cube(u)
        return -known[key][0]

    def slope(u: Array) -> Array:
        key = u.tobytes()
        value(u)
        if key not in whole:
            whole[key] = run.completed(u, *known[key])
        return -whole[key]

    for part in count():
        rng = np.random.default_rng([run.seed, 4, part])
        local = {"method": "L-BFGS-B", "jac": slope, "bounds": [(0.0, 1.0)] * run.dim}
        dual_annealing(value, [(0.0, 1.0)] * run.dim, minimizer_kwargs=local, maxiter=10**6, rng=rng)


def _cma_es(run: RivalRun) -> None:
    """The algorithm of the method `cma-es` without its replays: see `eign.strategies.evolution`."""
    import cma

    points = design(run.dim, run.seed)
    center = points[int(np.argmax([run.in_cube(u)[0] for u in points]))]
    for part in count():
        rng = np.random.default_rng([run.seed, 5, part])
        settings = {
            "bounds": [0.0, 1.0],
            "popsize": (4 + int(3 * np.log(run.dim))) * 2**part,
            "seed": np.nan,
            "randn": lambda *shape, rng=rng: rng.standard_normal(shape),
            "verbose": -9,
        }
        evolution = cma.CMAEvolutionStrategy(rng.random(run.dim) if part else center, 0.25, settings)
        while not evolution.stop():
            generation = np.clip(np.array(evolution.ask()), 0.0, 1.0)
            evolution.tell(list(generation), [-run.in_cube(u)[0] for u in generation])


PROGRAMS: Final[Mapping[str, Callable[[RivalRun], None]]] = {
    "l-bfgs": lambda run: _multistart(run, designed=True),
    "l-bfgs-random": lambda run: _multistart(run, designed=False),
    "mlsl": _mlsl,
    "basin-hopping": _basin_hopping,
    "dual-annealing": _dual_annealing,
    "cma-es": _cma_es,
}
MODELS: Final = ("d-log-ei", "d-ei-gn", "ei-gn", "log-ei")
RIVALS: Final = (*PROGRAMS, *MODELS)


def perform(case: Case, method: str, seed: int, options: Mapping[str, Any], *, seconds: float = np.inf) -> RivalRun:
    """One run of a rival, or of any method of the registry; cut after so many seconds of the processor."""
    run = RivalRun(case, seed, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if method in PROGRAMS and not options:
                PROGRAMS[method](run)
            else:
                _from_registry(method, run, options)
        except Finished:
            pass
    return run
