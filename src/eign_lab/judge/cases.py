"""What `auto` is judged on: five groups of problems as data, with budgets of 20 to 36 evaluations for each coordinate.

Shifts, rotations and samples are fixed, one draw a problem, so that all seeds see one function: a seed is a start, and
the noise. Shifts reach up to a quarter of the box each way, and the maximum stays inside and known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Final, final

import numpy as np
from scipy.stats import qmc

from eign.arrays import Array
from eign.problems import Problem, dropped_gradients, get, noisy, rotated, shifted, without_gradients
from eign_lab.judge.functions import in_other_units, over_logarithms, shifted_hartmann, unit_problem
from eign_lab.judge.real_work import kernel_ridge, lennard_jones, lotka_volterra
from eign_lab.rivals import sobol_design
from eign_lab.runs.experiment import ProblemSpec
from eign_lab.runs.posed_problem import PosedProblem

GROUPS = {
    1: "the paper's functions and shifted copies",
    2: "rotated and coupled functions, Gaussian process samples",
    3: "borders, scales, plateaus, ridges",
    4: "noise and missing gradients",
    5: "real work",
}
SCALE_SEEDS = range(20)
CONVERGED: Final = 1e-6
"""Share of the scale below which a regret counts as none: the run ends, for no score can change after it."""

Disturbance = Callable[[Problem, int], Problem]
"""What a run of a seed sees of a problem."""


@final
@dataclass(frozen=True)
class Case:
    """A problem of the judge.

    Attributes:
        name: In tables and results.
        group: From 1 to 5.
        budget: Evaluations of a run.
        build: Makes the problem, without noise and with all gradients.
        disturbed: What a run sees instead, if anything.
        best_known: The optimum, where the problem states none: the best value ever seen.
    """

    name: str
    group: int
    budget: int
    build: Callable[[], Problem]
    disturbed: Disturbance | None = None
    best_known: float | None = None

    @cached_property
    def problem(self) -> Problem:
        """The problem itself: regrets are those of its values."""
        return self.build()

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.problem.dim

    def seen(self, seed: int) -> Problem:
        """The problem as a run of this seed sees it."""
        return self.problem if self.disturbed is None else self.disturbed(self.problem, seed)

    @property
    def optimum(self) -> float:
        """The maximum, or the best value known."""
        stated = self.problem.optimum if self.best_known is None else self.best_known
        assert stated is not None, f"{self.name} has no known optimum"
        return stated

    @cached_property
    def scale(self) -> float:
        """What there is to gain: the optimum minus the median of the best of 3 d Sobol points over 20 seeds."""
        designs = [self.problem.bounds.from_unit(sobol_design(self.problem.dim, seed)) for seed in SCALE_SEEDS]
        best = [float(self.problem.evaluate(points)[0].max()) for points in designs]
        return self.optimum - float(np.median(best))

    @property
    def spec(self) -> ProblemSpec:
        """The case as a problem of an experiment.

        A run ends when it has converged, unless there is noise, so that the regret may rise again, or the optimum is
        only the best value known.
        """
        is_sure = self.best_known is None and not self.seen(0).noisy
        target = self.optimum - CONVERGED * self.scale if is_sure else None
        seeded = self.disturbed is not None
        return ProblemSpec(self.name, None, self.budget, source=f"{__name__}:pose_case", seeded=seeded, target=target)


def pose_case(name: str, seed: int = 0) -> PosedProblem:
    """The problem of a case, as the runs of a seed see it and as it is."""
    case = CASES[name]
    return PosedProblem(case.seen(seed), case.problem)


def _noise(share: float, problem: Problem, seed: int) -> Problem:
    """Noise at this share of the spread of values, and of each gradient component, over the box; nobody is told."""
    value_std, grad_std = _spread(problem)
    return noisy(problem, value_std=share * value_std, grad_std=share * grad_std, seed=(4, seed))


@lru_cache
def _spread(problem: Problem) -> tuple[float, Array]:
    points = qmc.Sobol(problem.dim, rng=np.random.default_rng(4)).random_base2(12)
    values, gradients = problem.evaluate(problem.bounds.from_unit(points))
    return float(values.std()), gradients.std(axis=0)


def _half_missing(problem: Problem, seed: int) -> Problem:
    return dropped_gradients(problem, 0.5, seed=(5, seed))


def _one_missing(problem: Problem, _: int) -> Problem:
    return without_gradients(problem, [1])


def _all_missing(problem: Problem, _: int) -> Problem:
    return without_gradients(problem)


def _moved(name: str, seed: int) -> Problem:
    return shifted(get(name), seed=seed)


def _turned(name: str, seed: int) -> Problem:
    """Turned around the centre after it was shifted away from it: a maximum at the centre would stay there."""
    return rotated(_moved(name, seed), seed=seed)


def _only_turned(name: str, seed: int) -> Problem:
    return rotated(get(name), seed=seed)


_PAPER = {"shekel-4": 125, "hartmann-6": 150, "cosine-8": 200, "griewank-10": 300, "ackley-14": 500}
_SHIFTS = {name: seed for seed, name in enumerate(_PAPER, start=11)}


def _moved_case(name: str, ending: str, disturbed: Disturbance) -> Case:
    return Case(f"{name}-{ending}", 4, _PAPER[name], partial(_moved, name, _SHIFTS[name]), disturbed)


_GROUP_1 = [
    *(Case(name, 1, budget, partial(get, name)) for name, budget in _PAPER.items()),
    *(Case(f"{name}-shifted", 1, budget, partial(_moved, name, _SHIFTS[name])) for name, budget in _PAPER.items()),
]
_GROUP_2 = [
    *(Case(f"{n}-rotated", 2, _PAPER[n], partial(_turned, n, 3)) for n in ("ackley-14", "griewank-10", "cosine-8")),
    Case("rosenbrock-6", 2, 150, partial(get, "rosenbrock", 6)),
    Case("shekel-4-rotated", 2, 125, partial(_only_turned, "shekel-4", 3)),
    Case("hartmann-6-rotated", 2, 150, partial(_only_turned, "hartmann-6", 3)),
    Case("michalewicz-5-coupled", 2, 125, partial(_only_turned, "michalewicz-5", 1)),
    *(Case(f"gp-sample-{d}", 2, 25 * d, partial(get, "gp-sample", d, seed=1)) for d in (4, 8, 12)),
]
_GROUP_3 = [
    *(
        Case(name, 3, budget, partial(unit_problem, name))
        for name, budget in {
            "corner-6": 150,
            "boundary-6": 150,
            "sensitivities-7": 175,
            "magnitudes-4": 100,
            "plateau-4": 100,
            "terrace-5": 125,
            "ridge-8": 200,
            "sharp-ridge-6": 150,
        }.items()
    ),
    Case("hartmann-6-units", 3, 150, lambda: in_other_units(shifted_hartmann())),
    Case("hartmann-6-logs", 3, 150, lambda: over_logarithms(shifted_hartmann(), decades=6)),
]
_GROUP_4 = [
    _moved_case("hartmann-6", "noise-1", partial(_noise, 0.01)),
    _moved_case("griewank-10", "noise-1", partial(_noise, 0.01)),
    _moved_case("hartmann-6", "noise-10", partial(_noise, 0.1)),
    _moved_case("cosine-8", "noise-10", partial(_noise, 0.1)),
    _moved_case("hartmann-6", "half-missing", _half_missing),
    _moved_case("griewank-10", "half-missing", _half_missing),
    _moved_case("hartmann-6", "one-missing", _one_missing),
    _moved_case("cosine-8", "one-missing", _one_missing),
    _moved_case("hartmann-6", "no-gradients", _all_missing),
    _moved_case("shekel-4", "no-gradients", _all_missing),
]
_GROUP_5 = [
    Case("lotka-volterra-6", 5, 150, lotka_volterra),
    Case("lennard-jones-12", 5, 300, lennard_jones),
    Case("kernel-ridge-6", 5, 150, kernel_ridge, best_known=0.85107850800304),
    Case("acrobot-6", 5, 120, partial(get, "acrobot-6"), best_known=-0.08007147005532),
    Case("cartpole-13", 5, 260, partial(get, "cartpole-13"), best_known=-0.6783174123891),
]

CASES = {case.name: case for case in (*_GROUP_1, *_GROUP_2, *_GROUP_3, *_GROUP_4, *_GROUP_5)}
COUNTED = [f"{name}{copy}" for name in list(_PAPER)[:4] for copy in ("", "-shifted")]
"""The eight problems on which runs at the global optimum are counted."""
SHEKELS = ["shekel-4", "shekel-4-shifted", "shekel-4-rotated"]
"""Shekel's function and its copies, which must be solved early."""
