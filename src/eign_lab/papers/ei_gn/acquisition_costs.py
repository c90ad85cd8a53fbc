"""What EI-GN's own formula costs beside the posterior of the processes that it needs: the seventeenth claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import torch

from eign.formulas import gradient_norm_numpy
from eign.models import IndependentGradientGP
from eign.models.independent.pullback import ProcessStack
from eign.numerics.threads import single_threaded_blas
from eign_lab.papers.ei_gn.judgements import Judgement
from eign_lab.speed.formula_costs import fastest
from eign_lab.statistics import Verdict

SIZES: Final = ((4, 125, 256), (6, 150, 512), (10, 300, 1024), (14, 500, 1024))
"""Dimensions, observations and candidates of the synthetic problems at the end of their budgets."""

NEGLIGIBLE: Final = 0.1
"""The formula's share of the time of the posterior; twice as much is not negligible."""


@final
@dataclass(frozen=True, slots=True)
class AcquisitionCost:
    """Milliseconds for the candidates of one step: of the posterior with its derivatives, and of EI-GN from it."""

    dim: int
    observations: int
    candidates: int
    posterior: float
    formula: float

    @property
    def share(self) -> float:
        """Of the formula in the posterior's time."""
        return self.formula / self.posterior


def measure_acquisition_cost(dim: int, observations: int, candidates: int, *, seconds: float = 0.2) -> AcquisitionCost:
    """Time both on one thread; the fastest of the repetitions that fit into `seconds`. The data are noise."""
    rng = np.random.default_rng(dim)
    X, Y, G = (
        torch.from_numpy(rng.random(shape)) for shape in ((observations, dim), (observations, 1), (observations, dim))
    )
    stack = ProcessStack.of(IndependentGradientGP(X, Y, G).conditioned(), slice(None))
    points = rng.random((candidates, dim))
    best = np.zeros(dim + 1)
    with single_threaded_blas():
        mean, variance = stack.moments(points)
        posterior = fastest(lambda: stack.moments_and_pullback(points)[1](mean, variance), seconds)
        formula = fastest(lambda: gradient_norm_numpy.ei_gn(mean, variance, best, (1.0, 0.6)), seconds)
    return AcquisitionCost(dim, observations, candidates, 1e3 * posterior, 1e3 * formula)


def judge_costs(costs: Sequence[AcquisitionCost]) -> Judgement:
    """Negligible at every size."""
    numbers = "; ".join(
        f"d = {cost.dim}, n = {cost.observations}: {cost.formula:.2g} of {cost.posterior:.3g} ms, {cost.share:.1%}"
        for cost in costs
    )
    largest = max(cost.share for cost in costs)
    if largest <= NEGLIGIBLE:
        return Judgement(Verdict.HOLDS, numbers)
    return Judgement(Verdict.FAILS if largest > 2 * NEGLIGIBLE else Verdict.OPEN, numbers)


def judge_acquisition_costs() -> Judgement:
    """The seventeenth claim, measured on this machine."""
    return judge_costs([measure_acquisition_cost(*size) for size in SIZES])
