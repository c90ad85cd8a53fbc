"""What values and gradients in many dimensions cost: the split model beside the dense one and GPyTorch's.

All in seconds of one core, by CPU time, each size and model in a process of its own, so that the peak of memory is its
own too. A model that would need more rows than it can have is left out: the dense one has n (d + 1).
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from eign.models.joint.model import JointGradientGP
from eign.models.spanned.iterative import IterativePosterior
from eign.models.spanned.model import SpannedGradientGP
from eign.models.spanned.rows import SpannedData
from eign_lab.speed.fits import Samples, limited_threads, samples

ManyModel = Literal["spanned", "joint", "gpytorch"]
Costs = TypeVar("Costs")

MANY_SIZES: Final = (
    *((100, n) for n in (10, 20, 50)),
    *((200, n) for n in (10, 20, 50)),
    *((500, n) for n in (10, 20, 50)),
    *((1000, n) for n in (10, 20, 50)),
)
"""Dimensions and points of the split model."""
ITERATIVE_SIZES: Final = ((50, 100), (200, 150), (50, 500), (1000, 150))
MOST_ROWS: Final[dict[ManyModel, int]] = {"spanned": 3000, "joint": 5200, "gpytorch": 2100}
_POINTS: Final = 20
_CLUSTER: Final = 1e-2


@dataclass(frozen=True)
class ManyCosts:
    """One model at one size.

    Attributes:
        model: Which.
        dim: Dimensions.
        n: Points.
        rows: Of its largest matrix.
        evaluation_seconds: The MAP objective with its gradient by d + 1 hyperparameters.
        posterior_seconds: Mean and variance of f with their gradients, at 20 points, the rows factored before.
        append_seconds: One more observation; NaN for GPyTorch's.
        gigabytes: Peak of resident memory of the process, Python and PyTorch included.
    """

    model: ManyModel
    dim: int
    n: int
    rows: int
    evaluation_seconds: float
    posterior_seconds: float
    append_seconds: float
    gigabytes: float

    def __str__(self) -> str:
        return (
            f"{self.model:<9} d {self.dim:>4}  n {self.n:>3}  {self.rows:>5} rows: MAP objective with gradient"
            f" {self.evaluation_seconds:.3f} s,"
            f" posterior of {_POINTS} points with gradient {self.posterior_seconds:.3f} s,"
            f" one more observation {self.append_seconds:.3f} s, resident memory {self.gigabytes:.2f} GB"
        )


@dataclass(frozen=True)
class IterativeCosts:
    """The posterior of all points by conjugate gradients, half of them within 1e-2 of one place.

    Attributes:
        dim: Dimensions.
        n: Points.
        iterations: For the weights of the mean.
        converged: Whether they ended below the tolerance.
        weights_seconds: CPU seconds for them.
        variance_seconds: CPU seconds for one variance, the mean over the points.
        mean_error: Largest error of a mean in prior standard deviations, against a factorisation; NaN if too large.
        deviation_error: The same of a standard deviation.
        gigabytes: Peak of resident memory before the factorisation.
    """

    dim: int
    n: int
    iterations: int
    converged: bool
    weights_seconds: float
    variance_seconds: float
    mean_error: float
    deviation_error: float
    gigabytes: float

    def __str__(self) -> str:
        state = "" if self.converged else " (not converged)"
        return (
            f"iterative d {self.dim:>4}  n {self.n:>3}  weights {self.weights_seconds:.2f} s"
            f" in {self.iterations} iterations{state},"
            f" a variance {self.variance_seconds:.2f} s, error of mean {self.mean_error:.1e}"
            f" and of deviation {self.deviation_error:.1e}, resident memory {self.gigabytes:.2f} GB"
        )


def rows_of_model(model: ManyModel, dim: int, n: int) -> int:
    """Of its largest matrix: n (r + 1) with r = min(n - 1, d) for the split model, n (d + 1) for the others.

    >>> rows_of_model("spanned", 500, 50), rows_of_model("joint", 500, 50)
    (2500, 25050)
    """
    return n * (min(n - 1, dim) + 1) if model == "spanned" else n * (dim + 1)


def measure_many(model: ManyModel, dim: int, n: int) -> ManyCosts:
    """One model at one size, in a new process."""
    return _apart(_measure_many, model, dim, n)


def measure_iterative(dim: int, n: int) -> IterativeCosts:
    """The iterative posterior at one size, in a new process."""
    return _apart(_measure_iterative, dim, n)


def clustered_samples(dim: int, n: int) -> Samples:
    """Ackley at scrambled Sobol points, half of them moved to within 1e-2 of the first in each coordinate."""
    from botorch.test_functions.synthetic import Ackley

    x = samples(dim, n).x.clone()
    x[n // 2 :] = (x[0] + _CLUSTER * (2.0 * x[n // 2 :] - 1.0)).clamp(0.0, 1.0)
    x.requires_grad_()
    y = Ackley(dim, negate=True, bounds=[(-5.0, 5.0)] * dim)(10.0 * x - 5.0)
    (grad,) = torch.autograd.grad(y.sum(), x)
    return Samples(x.detach(), y.detach().unsqueeze(-1), grad)


def _apart(function: Callable[..., Costs], *arguments: object) -> Costs:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _measure_many(model: ManyModel, dim: int, n: int) -> ManyCosts:
    data = samples(dim, n + 1)
    points = torch.rand(_POINTS, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with limited_threads(1):
        if model == "gpytorch":
            evaluation, posterior, append = _measure_peer(data.first(n), points)
        else:
            kind = SpannedGradientGP if model == "spanned" else JointGradientGP
            gp = kind(*data.first(n)).with_hyperparameters(SpannedGradientGP(*data.first(n)).hyperparameters)
            evaluation = _cpu_seconds(gp.negative_log_posterior)
            gp.conditioned()
            posterior = _cpu_seconds(lambda: gp.moments_and_gradients(points))
            append = _cpu_seconds(gp.append(*data.only(n)).conditioned)
    return ManyCosts(model, dim, n, rows_of_model(model, dim, n), evaluation, posterior, append, _peak_gigabytes())


def _measure_peer(data: Samples, points: Tensor) -> tuple[float, float, float]:
    """The same by GPyTorch's derivative kernel and autograd."""
    import gpytorch  # type: ignore[import-untyped]

    from eign_lab.speed.gpytorch_derivatives import peer_model

    model, likelihood = peer_model(data)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def evaluate() -> None:
        (-mll(model(data.x), model.train_targets)).backward()

    def predict() -> None:
        x = points.clone().requires_grad_()
        f = model(x)
        (f.mean[:, 0].sum() + f.variance[:, 0].sum()).backward()

    settings = gpytorch.settings
    with settings.fast_computations(False, False, False), settings.max_cholesky_size(10**6):
        evaluation = _cpu_seconds(evaluate)
        model.eval()
        model(points[:1])  # factors
        posterior = _cpu_seconds(predict)
    return evaluation, posterior, float("nan")


def _measure_iterative(dim: int, n: int) -> IterativeCosts:
    data = clustered_samples(dim, n)
    few = Samples(*(torch.cat([part[: n // 2][:15], part[n // 2 :][:15]]) for part in data))
    fitted = SpannedGradientGP(*few, lengthscales="one")
    fitted.fit_hyperparameters()
    model = SpannedGradientGP(*data, standardization=fitted.standardization)
    rows, hyper = SpannedData.of(fitted.standardization.apply(model.observations)), fitted.hyperparameters
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random((2, dim)), data.x[-2:].numpy() + 1e-3])
    with limited_threads(1):
        started = time.process_time()
        posterior = IterativePosterior.of(rows, hyper)
        weights_seconds = time.process_time() - started
        started = time.process_time()
        mean, variance = posterior.mean_and_gradient(points)[0], posterior.variance(points)
        variance_seconds = (time.process_time() - started) / len(points)
        gigabytes = _peak_gigabytes()
        errors = (float("nan"), float("nan"))
        if rows_of_model("spanned", dim, n) <= MOST_ROWS["joint"]:
            exact = model.with_hyperparameters(hyper)
            expected_mean, expected_variance = (part.numpy() for part in exact.moments(torch.from_numpy(points)))
            scale, prior = fitted.standardization.y_scale, hyper.terms[0].outputscale ** 0.5
            expected_mean = (expected_mean - fitted.standardization.y_shift) / scale
            deviation = np.sqrt(expected_variance) / scale
            errors = (
                float(np.abs(mean - expected_mean).max() / prior),
                float(np.abs(np.sqrt(variance) - deviation).max() / prior),
            )
    return IterativeCosts(
        dim,
        n,
        posterior.solution.iterations,
        posterior.solution.converged,
        weights_seconds,
        variance_seconds,
        *errors,
        gigabytes,
    )


def _peak_gigabytes() -> float:
    """Of resident memory, since the process began; Linux counts in kilobytes, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _cpu_seconds(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started
