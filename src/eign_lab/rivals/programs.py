"""Searches of other packages, as a user would call them, within the same evaluations."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

import numpy as np
from scipy.optimize import basinhopping, dual_annealing, minimize

from eign.arrays import Array
from eign_lab.rivals.counted import CountedProblem, FlatAfterwards, sobol_design
from eign_lab.rivals.tiktak import search_by_tiktak

Program = Callable[[Any], None]
"""Evaluates a `CountedProblem`, or what a judge has in its place, until `Finished` is raised."""

_FIRST_STEP: Final = 0.25
_GTOL: Final = 1e-6 * _FIRST_STEP


def _multistart(problem: CountedProblem, *, designed: bool) -> None:
    """The algorithm of the method `l-bfgs` without its replays, which take seconds: see `eign.strategies.multistart`.

    Runs from the points of the design, best first, that no run came close to, and then from uniform random points.
    """
    rng = np.random.default_rng([problem.seed, 1])
    starts = list(sobol_design(problem.dim, problem.seed)) if designed else []
    told = [problem.in_cube(u) for u in starts]
    order = sorted(range(len(starts)), key=lambda i: -told[i][0])
    seen: list[Array] = []
    for i in order:
        if not seen or float(np.abs(np.array(seen) - starts[i]).max(axis=1).min()) > 1e-3:
            descend(problem, starts[i], seen, first=told[i])
    while True:
        descend(problem, rng.random(problem.dim), seen)


def descend(
    problem: CountedProblem, start: Array, seen: list[Array], *, first: tuple[float, Array] | None = None
) -> None:
    """One run of L-BFGS-B, scaled by the gradient at its start; `first` is what is known there already."""
    value, gradient = problem.in_cube(start) if first is None else first
    gradient = problem.completed(start, value, gradient)
    scale = _FIRST_STEP / (float(np.linalg.norm(gradient)) or 1.0)
    known = {start.tobytes(): (value, gradient)}

    def objective(u: Array) -> tuple[float, Array]:
        seen.append(u.copy())
        found = known.pop(u.tobytes(), None) or problem.whole_gradient(u)
        return -scale * (found[0] - value), -scale * found[1]

    cube = [(0.0, 1.0)] * problem.dim
    tolerances: Any = {"ftol": problem.options.get("ftol", 1e-9), "gtol": problem.options.get("gtol", _GTOL)}
    minimize(objective, start, jac=True, method="L-BFGS-B", bounds=cube, options=tolerances)


def _mlsl(problem: CountedProblem) -> None:
    """NLopt's multi-level single linkage with its L-BFGS, over pseudo-random points.

    The form with a low-discrepancy sequence has no seed and begins near the centre of the box: on Ackley 14, whose
    maximum is there, it was at 1e-5 in every run.
    """
    import nlopt

    local = nlopt.opt(nlopt.LD_LBFGS, problem.dim)
    local.set_ftol_rel(problem.options.get("ftol", 1e-9))
    local.set_xtol_rel(problem.options.get("xtol", 1e-6))
    _search_by_nlopt(problem, nlopt.GD_MLSL, 2, local)


def _stogo(problem: CountedProblem) -> None:
    """NLopt's StoGO, which splits boxes and descends in them, in the form that draws its points at random."""
    import nlopt

    _search_by_nlopt(problem, nlopt.GD_STOGO_RAND, 6)


def _search_by_nlopt(problem: CountedProblem, algorithm: Any, stream: int, local: Any = None) -> None:
    """One of NLopt's global searches with gradients, from a random point; it begins anew whenever it ends."""
    import nlopt

    rng, descent = np.random.default_rng([problem.seed, stream]), FlatAfterwards(problem)
    while descent.ended is None:
        search = nlopt.opt(algorithm, problem.dim)

        def objective(u: Array, gradient: Array, search: Any = search) -> float:
            value, slope = descent(u)
            if descent.ended is not None:
                search.force_stop()
            if gradient.size:
                gradient[:] = slope
            return value

        if local is not None:
            search.set_local_optimizer(local)
        search.set_lower_bounds(0.0)
        search.set_upper_bounds(1.0)
        search.set_min_objective(objective)
        search.set_maxeval(10 * problem.budget)
        nlopt.srand(int(rng.integers(1, 2**31)))
        try:
            search.optimize(rng.random(problem.dim))
        except (nlopt.ForcedStop, nlopt.RoundoffLimited, nlopt.runtime_error):
            continue  # over, or a failed line search: it begins anew, at another point
    raise descent.ended


def _basin_hopping(problem: CountedProblem) -> None:
    """SciPy's basin-hopping with its defaults, but steps of a quarter of the cube, reflected at the border."""
    rng = np.random.default_rng([problem.seed, 3])

    def step(u: Array) -> Any:
        moved = np.abs(u + rng.uniform(-0.25, 0.25, problem.dim))
        return np.where(moved > 1.0, 2.0 - moved, moved)

    descent: Any = problem.descent  # its stubs know of no objective that gives the gradient too
    local: Any = {"method": "L-BFGS-B", "jac": True, "bounds": [(0.0, 1.0)] * problem.dim, "options": problem.options}
    while True:
        basinhopping(descent, rng.random(problem.dim), take_step=step, minimizer_kwargs=local, niter=10**6, rng=rng)


def _dual_annealing(problem: CountedProblem) -> None:
    """SciPy's dual annealing with its defaults; its local searches are L-BFGS-B with the gradient.

    It asks for value and gradient by separate calls: the pair at a point is one evaluation.
    """
    known: dict[bytes, tuple[float, Array]] = {}
    whole: dict[bytes, Array] = {}

    def value(u: Array) -> float:
        key = u.tobytes()
        if key not in known:
            known[key] = problem.in_cube(u)
        return -known[key][0]

    def slope(u: Array) -> Array:
        key = u.tobytes()
        value(u)
        if key not in whole:
            whole[key] = problem.completed(u, *known[key])
        return -whole[key]

    for part in count():
        rng = np.random.default_rng([problem.seed, 4, part])
        local: Any = {"method": "L-BFGS-B", "jac": slope, "bounds": [(0.0, 1.0)] * problem.dim}
        dual_annealing(value, [(0.0, 1.0)] * problem.dim, minimizer_kwargs=local, maxiter=10**6, rng=rng)


def _cma_es(problem: CountedProblem) -> None:
    """The algorithm of the method `cma-es` without its replays: see `eign.strategies.evolution`."""
    points = sobol_design(problem.dim, problem.seed)
    evolve(problem, points[int(np.argmax([problem.in_cube(u)[0] for u in points]))], stream=5)


def evolve(problem: CountedProblem, start: Array, *, stream: int) -> None:
    """CMA-ES from here, then from random points with a population that doubles; its numbers are of a `stream`."""
    import cma

    for part in count():
        rng = np.random.default_rng([problem.seed, stream, part])
        settings = {
            "bounds": [0.0, 1.0],
            "popsize": (4 + int(3 * np.log(problem.dim))) * 2**part,
            "seed": np.nan,
            "randn": lambda *shape, rng=rng: rng.standard_normal(shape),
            "verbose": -9,
        }
        evolution = cma.CMAEvolutionStrategy(rng.random(problem.dim) if part else start, 0.25, settings)
        while not evolution.stop():
            generation = np.clip(np.array(evolution.ask()), 0.0, 1.0)
            evolution.tell(list(generation), [-problem.in_cube(u)[0] for u in generation])


def _botorch_ei(problem: CountedProblem) -> None:
    from eign_lab.rivals.botorch_loop import optimize_with_botorch

    optimize_with_botorch(problem, "ei")


def _botorch_log_ei(problem: CountedProblem) -> None:
    from eign_lab.rivals.botorch_loop import optimize_with_botorch

    optimize_with_botorch(problem, "log-ei")


PROGRAMS: Final[Mapping[str, Program]] = {
    "scipy/l-bfgs-b": lambda problem: _multistart(problem, designed=True),
    "scipy/l-bfgs-b-random": lambda problem: _multistart(problem, designed=False),
    "scipy/basin-hopping": _basin_hopping,
    "scipy/dual-annealing": _dual_annealing,
    "nlopt/mlsl": _mlsl,
    "nlopt/stogo": _stogo,
    "optimagic/tiktak": search_by_tiktak,
    "pycma/cma-es": _cma_es,
    "botorch/ei": _botorch_ei,
    "botorch/log-ei": _botorch_log_ei,
}
"""By the package and what it calls the search."""

PROGRAM_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "botorch/ei": ("restarts", "raw_samples"),
    "botorch/log-ei": ("restarts", "raw_samples"),
}
"""Settings of a problem that programs take, as registered methods do."""
