"""How time and memory of both models grow with points and dimensions.

Up to a size the measure is a refit. The joint model's matrix has n (d + 1) rows, and beyond some ten thousand a single
evaluation of the MAP objective takes minutes; then that is measured, with its gradient, and the factorisation, a
posterior, one more observation, and the memory the whole process takes.
"""

import multiprocessing
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch

from eign.models.independent.fitting import fit
from eign.models.independent.model import IndependentGradientGP
from eign.models.joint.model import JointGradientGP
from eign_lab.speed.fits import limited_threads, samples

ModelName = Literal["independent", "joint"]

GROWTH_SIZES: Final = (
    *((10, n) for n in (50, 100, 200, 500, 1000, 2000)),
    *((dim, 100) for dim in (2, 5, 20, 50)),
)
MOST_ROWS: Final = 12000
"""Of the joint model's matrix, up to which a refit is measured."""

_MODELS: Final[dict[ModelName, Any]] = {"independent": IndependentGradientGP, "joint": JointGradientGP}
_FITTED_POINTS: Final = 100
_POSTERIOR_POINTS: Final = 20


@dataclass(frozen=True)
class Growth:
    """Cost of one model at one size: seconds of a refit after one more point, and its peak of allocated megabytes."""

    model: ModelName
    dim: int
    n: int
    seconds: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.model:<12} d {self.dim:>3}  n {self.n:>5}  {self.seconds:9.3f} s  {self.megabytes:7.0f} MB"


@dataclass(frozen=True)
class StepCosts:
    """The joint model at a size where it is not refitted: seconds of single steps, in a process of their own.

    Attributes:
        model: "joint".
        dim: Dimensions.
        n: Points.
        evaluation_seconds: One evaluation of the MAP objective with gradient and curvature; a refit takes several.
        factor_seconds: Covariance matrix and factorisation.
        posterior_seconds: Mean and variance of f with their gradients, at 20 points.
        append_seconds: One more observation, the factor extended.
        gigabytes: Peak of resident memory of the process, Python and PyTorch included.
    """

    model: ModelName
    dim: int
    n: int
    evaluation_seconds: float
    factor_seconds: float
    posterior_seconds: float
    append_seconds: float
    gigabytes: float

    def __str__(self) -> str:
        return (
            f"{self.model:<12} d {self.dim:>3}  n {self.n:>5}  no refit, {self.n * (self.dim + 1)} rows:\n"
            f"  one MAP evaluation with gradient {self.evaluation_seconds:.3g} s, factor {self.factor_seconds:.3g} s,\n"
            f"  posterior of {_POSTERIOR_POINTS} points with gradient {self.posterior_seconds:.3g} s,\n"
            f"  one more observation {self.append_seconds:.3g} s, resident memory {self.gigabytes:.1f} GB"
        )


def measure_growth(model: ModelName, dim: int, n: int) -> Growth:
    """The refit of a model after one more point, warm from a fit to at most 100 points."""
    data = samples(dim, n + 1)
    kind = _MODELS[model]
    small = fit(kind(*data.first(min(n, _FITTED_POINTS))))
    with limited_threads(2):
        before = fit(kind(*data.first(n)).with_hyperparameters(small.hyperparameters))
        grown = before.append(*data.only(n))
        seconds = _seconds(lambda: fit(grown))
        tracemalloc.start()
        fit(before.append(*data.only(n))).posterior(data.x[:1])
        megabytes = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return Growth(model, dim, n, seconds, megabytes)


def measure_steps(dim: int, n: int) -> StepCosts:
    """Single steps of the joint model with the hyperparameters of at most 100 points, in a new process.

    The peak of resident memory is that of a process since it began, so that each size gets its own.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_steps, dim, n).result()


def _steps(dim: int, n: int) -> StepCosts:
    data = samples(dim, n + 1)
    points = torch.rand(_POSTERIOR_POINTS, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    small = fit(JointGradientGP(*data.first(min(n, _FITTED_POINTS))))
    with limited_threads(2):
        model = JointGradientGP(*data.first(n)).with_hyperparameters(small.hyperparameters)
        evaluation = _seconds(model.negative_log_posterior)
        factor = _seconds(model.conditioned)
        posterior = _seconds(lambda: model.moments_and_gradients(points))
        grown = model.append(*data.only(n))
        append = _seconds(grown.conditioned)
    return StepCosts("joint", dim, n, evaluation, factor, posterior, append, _peak_gigabytes())


def _peak_gigabytes() -> float:
    """Of resident memory, since the process began; Linux counts in kilobytes, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
