"""The 24 functions of BBOB as problems of an experiment: the seed of a run is the instance, as COCO counts trials.

Values are those of COCO's own code, minus f_opt and to be maximised: the maximum is 0. f_opt, up to 1000, would make
absolute tolerances of the rivals' relative ones. COCO has no gradients: they are differences, which are not counted.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

import numpy as np

from eign.arrays import Array
from eign.problems import Problem
from eign.space import Box
from eign_lab.runs.experiment import ProblemSpec

if TYPE_CHECKING:
    from cocoex import BareProblem

DIMENSIONS: Final = (2, 5, 10, 20)
GROUPS: Final = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multi-modal": range(15, 20),
    "weak structure": range(20, 25),
}
"""Functions by the names that COCO gives its groups."""
FUNCTIONS: Final = range(1, 25)
INSTANCES: Final = {"report": range(1, 6), "tuning": range(11, 16)}
LAST_TARGET: Final = 1e-8
"""COCO's last target: a run that has it ends."""

STEP: Final = 1e-8
"""Of the differences.

Smaller than for smooth functions: BBOB's oscillations shrink with the distance to the optimum, which at the last target
is 1e-7 along the stiffest axis of a condition of 1e6. With 1e-5, L-BFGS-B that starts near the optimum ends at 1e-3 on
f10 and f11 in 5-d, with 1e-7 at 1e-6, with 1e-8 at 1e-8. Rounding leaves errors of some 1e-8 (|f| + |f_opt|) in each
component: where curvatures are 1, a minimum of such a gradient is off by less than 1e-10.
"""


def budget(d: int) -> int:
    """Evaluations of a run in d dimensions, the default of `eign.minimize`.

    >>> budget(5)
    120
    """
    return 20 + 20 * d


@final
@dataclass(frozen=True)
class Task:
    """A function of BBOB in so many dimensions.

    >>> Task(10, 5).name, Task(10, 5).group
    ('bbob_f010_d05', 3)
    """

    function: int
    dim: int

    @property
    def name(self) -> str:
        """COCO's name without the instance."""
        return f"bbob_f{self.function:03d}_d{self.dim:02d}"

    @property
    def group(self) -> int:
        """From 1 to 5, in the order of `GROUPS`."""
        return next(number for number, group in enumerate(GROUPS.values(), start=1) if self.function in group)

    @property
    def spec(self) -> ProblemSpec:
        """The task as a problem of an experiment, whose seeds are the instances."""
        source, target = f"{__name__}:pose_bbob", -LAST_TARGET
        return ProblemSpec(self.name, None, budget(self.dim), source=source, seeded=True, target=target)


TASKS: Final = {task.name: task for task in (Task(function, d) for d in DIMENSIONS for function in FUNCTIONS)}


def pose_bbob(name: str, seed: int) -> Problem:
    """The problem of a task, in the instance of this number."""
    from cocoex import BareProblem

    task = TASKS[name]
    bare = BareProblem("bbob", task.function, task.dim, seed)
    formula = partial(_values_and_differences, bare)
    box = Box([(-5.0, 5.0)] * task.dim)
    return Problem(str(bare), box, formula=formula, optimum=0.0, optimizers=[bare.best_parameter()])


def _values_and_differences(bare: "BareProblem", X: Array) -> tuple[Array, Array]:
    """Minus f - f_opt, and its gradient by differences, all from one call of COCO."""
    n, d = X.shape
    # Beyond the border f5 is flat, so that there both points of a difference are within: second order, one-sided.
    side = np.where(np.abs(X) + STEP > 5.0, -np.sign(X), 0.0)[:, None] * np.eye(d)
    ahead, behind = (STEP * np.where(side == 0.0, s * np.eye(d), t * side) for s, t in ((1.0, 1.0), (-1.0, 2.0)))
    points = np.concatenate([X[:, None], X[:, None] + ahead, X[:, None] + behind], axis=1)
    values = bare(points.reshape(-1, d)).reshape(n, 2 * d + 1)
    here, first, second = values[:, :1], values[:, 1 : d + 1], values[:, d + 1 :]
    inward = side.sum(axis=2)
    slopes = np.where(inward == 0.0, first - second, inward * (4 * first - second - 3 * here)) / (2 * STEP)
    return bare.best_value() - here[:, 0], -slopes
