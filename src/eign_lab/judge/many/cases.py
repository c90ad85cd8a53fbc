"""The problems of the judge in many dimensions, with budgets and what is known of them.

Report is on instance 0 of each, seeds 0 to 9; tuning on instance 1, another shift, rotation or data set, seeds from 100
on. Runs know their budget, as those of `eign.minimize` do. Neither `auto` nor a rival looks at it: one run, of the last
budget, is read at all of them. The method `l-bfgs` does look: its design has at most a tenth of the last budget. Two
problems are as published for another derivative GP: the functions as they are, maximum at the centre or near it, with
30 Sobol points told first. Programs begin where they like, so that these two are for registered methods, beside the
published numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Final, final

import numpy as np

from eign import Optimizer
from eign.arrays import Array
from eign.problems import Problem, get
from eign_lab.judge.many import functions, real_work
from eign_lab.runs.experiment import ProblemSpec
from eign_lab.runs.posed_problem import PosedProblem

SEEDS: Final = {"report": range(10), "tuning": range(100, 103)}
GROUPS: Final = {1: "functions with many optima", 2: "valleys and bowls", 3: "real work", 4: "as published"}
CONVERGED: Final = 1e-6
"""Share of the scale below which a regret counts as none: the run ends."""
DESIGN: Final = 10
"""Points of the designs that make the scale, and of the rivals that begin with one."""
_TOLD: Final = 30
_FIRST_TUNING_SEED: Final = 100


@final
@dataclass(frozen=True)
class Case:
    """A problem of the judge.

    Attributes:
        name: In tables and results.
        group: From 1 to 4.
        build: Makes an instance.
        budgets: Evaluations after which a run is read, from few to many; a run has the last of them.
        best_known: Maxima of the instances, where the problem states none: the best of long runs.
        published: The regret at the end that was published, read off a plot; None if there is none.
    """

    name: str
    group: int
    build: Callable[[int], Problem]
    budgets: tuple[int, ...] = (150, 300)
    best_known: tuple[float, ...] = ()
    published: float | None = None

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.problem(0).dim

    def problem(self, instance: int) -> Problem:
        """One of its instances."""
        return _built(self.name, instance)

    def optimum(self, instance: int) -> float:
        """The maximum, or the best value known."""
        stated = self.best_known[instance] if self.best_known else self.problem(instance).optimum
        assert stated is not None, f"{self.name} has no known optimum"
        return stated

    @cached_property
    def scales(self) -> tuple[float, float]:
        """What there is to gain on each instance: its optimum minus the median of the best of 10 points, 20 seeds."""
        return _scale(self, 0), _scale(self, 1)

    @property
    def spec(self) -> ProblemSpec:
        """The case as a problem of an experiment; a run ends when it has converged."""
        is_sure = not self.best_known
        target = self.optimum(0) - CONVERGED * min(self.scales) if is_sure else None
        design = f"{__name__}:told_first" if self.published is not None else ""
        source = f"{__name__}:pose_many"
        return ProblemSpec(self.name, None, self.budgets[-1], source=source, seeded=True, design=design, target=target)


def instance_of(seed: int) -> int:
    """Which instance the runs of a seed are on."""
    return int(seed >= _FIRST_TUNING_SEED)


def pose_many(name: str, seed: int) -> PosedProblem:
    """The instance that runs of a seed see, with the budget they know."""
    case = CASES[name]
    problem = case.problem(instance_of(seed))
    return PosedProblem(problem, problem, case.budgets[-1])


def told_first(name: str, seed: int) -> Array:
    """The Sobol points that are told first, `30 x d` in user units."""
    problem = CASES[name].problem(instance_of(seed))
    return np.asarray(problem.bounds.from_unit(sobol_points(problem.dim, seed, _TOLD)))


def sobol_points(d: int, seed: int, count: int) -> Array:
    """The first points of the design that registered methods of a seed share, `count x d` in the unit cube."""
    return Optimizer([(0.0, 1.0)] * d, method="sobol", seed=seed, check_gradients=False).ask(count)


@lru_cache
def _built(name: str, instance: int) -> Problem:
    return CASES[name].build(instance)


def _scale(case: Case, instance: int) -> float:
    problem = case.problem(instance)
    designs = [problem.bounds.from_unit(sobol_points(problem.dim, seed, DESIGN)) for seed in range(20)]
    return case.optimum(instance) - float(np.median([problem.evaluate(points)[0].max() for points in designs]))


def _as_it_is(name: str, d: int, _: int) -> Problem:
    return get(name, d)


_ALL: Final = (
    Case("levy-200", 1, partial(functions.moved, "levy", 200)),
    Case("ackley-200", 1, partial(functions.moved, "ackley", 200)),
    Case("styblinski-tang-100", 1, partial(functions.moved, "styblinski-tang", 100)),
    Case("ackley-30", 1, partial(functions.moved, "ackley", 30), (500,)),
    Case("rastrigin-5-of-50", 1, partial(functions.active_rastrigin, 50), (500,)),
    Case("rosenbrock-100", 2, partial(functions.moved, "rosenbrock", 100)),
    Case("quadratic-100", 2, partial(functions.quadratic, 100)),
    Case("quadratic-1000", 2, partial(functions.quadratic, 1000)),
    Case("lennard-jones-54", 3, real_work.lennard_jones),
    Case("heat-400", 3, real_work.heat, best_known=(-0.1039627431195109, -0.07942571227442112)),
    Case("network-300", 3, real_work.network, best_known=(-0.15149311502469803, -0.1573261485329016)),
    Case("penalties-100", 3, real_work.penalties, best_known=(0.8251131642237612, 0.8585019840409615)),
    Case("control-120", 3, real_work.control, best_known=(-3.3824121052039047, -3.382196001835807)),
    Case("levy-200-published", 4, partial(_as_it_is, "levy", 200), (150,), published=145.0),
    Case("ackley-200-published", 4, partial(_as_it_is, "ackley", 200), (150,), published=2.2),
)
CASES: Final = {case.name: case for case in _ALL}
