"""The problems of the judge with what is known of them, and copies to tune on.

Reports are on the problems as the literature states them, seeds 0 to 9. Tuning is on copies, one a seed from 100 on:
the same functions over a smaller box around the best known point, each side cut by up to 30 per cent of the way to it.
So optima and scales are known, and everything else lies elsewhere in the cube.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, final

import numpy as np

from eign.arrays import Array
from eign.space import Box
from eign_lab.judge.constrained.collection import COLLECTION
from eign_lab.judge.constrained.counted import PosedConstrained
from eign_lab.judge.constrained.cutest import CUTEST
from eign_lab.judge.constrained.problem import ConstrainedProblem
from eign_lab.judge.constrained.real_work import cooling, steering, truss
from eign_lab.runs.experiment import ProblemSpec

SEEDS: Final = {"report": range(10), "tuning": range(100, 110)}
_FIRST_COPY: Final = 100
_MOST_CUT: Final = 0.3
CONVERGED: Final = 1e-6
"""Share of the scale below which a regret counts as none: the run ends."""

_BUILDERS: Final = {**COLLECTION, **CUTEST, "cooling-6": cooling, "truss-10": truss, "steering-10": steering}
_GROUPS: Final = {
    1: [name for name in COLLECTION if name.startswith(("g0", "g1"))],
    2: ["welded-beam", "pressure-vessel", "spring", "speed-reducer"],
    3: ["gramacy", "gardner-1", "gardner-2", "townsend", "rosenbrock-disk", "hartmann-6-ball", "ackley-10-half"],
    4: list(CUTEST),
    5: ["cooling-6", "truss-10", "steering-10"],
}
GROUPS: Final = {
    1: "CEC 2006",
    2: "engineering designs",
    3: "toys of Bayesian optimization",
    4: "Hock and Schittkowski",
    5: "real work",
}


@final
@dataclass(frozen=True)
class Case:
    """A problem of the judge.

    Attributes:
        name: In tables and results.
        dim: Number of coordinates.
        group: From 1 to 5.
        best: The least feasible value known.
        minimizer: A point that has it `d`.
        scale: What there is to gain: the median over 20 Sobol designs of 3 d points of the distance between the best
            known value and that of the design's best point (feasible, or else the least violated).
    """

    name: str
    dim: int
    group: int
    best: float
    minimizer: Array
    scale: float

    @property
    def budget(self) -> int:
        """Evaluations of a run, the default of `eign.minimize`."""
        return 20 + 20 * self.dim

    @property
    def problem(self) -> ConstrainedProblem:
        """The problem as it is stated."""
        return _build(self.name)

    def copy(self, seed: int) -> ConstrainedProblem:
        """The problem over a smaller box that has the best known point."""
        box = self.problem.bounds
        cut = _MOST_CUT * np.random.default_rng([seed, 13]).random((2, self.dim))
        lower = box.lower + cut[0] * (self.minimizer - box.lower)
        upper = box.upper - cut[1] * (box.upper - self.minimizer)
        return self.problem.over(Box(list(zip(lower.tolist(), upper.tolist(), strict=True))))

    @property
    def spec(self) -> ProblemSpec:
        """The case as a problem of an experiment."""
        target = -(self.best + CONVERGED * self.scale)
        source = f"{__name__}:pose_constrained"
        return ProblemSpec(self.name, None, self.budget, source=source, seeded=True, target=target)


@cache
def _build(name: str) -> ConstrainedProblem:
    return _BUILDERS[name]()


def pose_constrained(name: str, seed: int) -> PosedConstrained:
    """The problem of a case for the report seeds, a copy of it for others."""
    case = CASES[name]
    return PosedConstrained(case.problem if seed < _FIRST_COPY else case.copy(seed))


def _read() -> Mapping[str, Case]:
    known: Mapping[str, Any] = json.loads(files(__package__).joinpath("best_known.json").read_text("utf-8"))
    group_of = {name: group for group, names in _GROUPS.items() for name in names}
    return {
        name: Case(name, len(found["x"]), group_of[name], found["value"], np.array(found["x"]), found["scale"])
        for name, found in known.items()
    }


CASES: Final = _read()
