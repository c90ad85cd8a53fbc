"""Bayesian optimization as BoTorch's tutorials write it: `SingleTaskGP`, EI or LogEI, `optimize_acqf`.

An independent implementation of whole runs: nothing of ours but the initial design and the values of two priors. By
default everything is as the paper states it. The other settings are for the question which of them its numbers may
come from:

| option | default | instead |
|---|---|---|
| `noise` | 1e-9, a fixed variance in the model's units | another; "learned": BoTorch's likelihood with its prior |
| `priors` | "paper": Matern-5/2, LogNormal(log 0.4, 0.7) and Gamma(2, 0.5) | "botorch": `SingleTaskGP` as it comes |
| `standardize` | True | False: values as they are |
| `normalize` | True: the unit cube | False: user units |
| `precision` | "double" | "single" |
| `incumbent` | "observed" | "standardized": in other units than the model unless values are so, a likely slip |
"""

import warnings
from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import ExpectedImprovement, LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim.optimize import optimize_acqf
from gpytorch.constraints import GreaterThan  # type: ignore[import-untyped]
from gpytorch.kernels import MaternKernel, ScaleKernel  # type: ignore[import-untyped]
from gpytorch.mlls import ExactMarginalLogLikelihood  # type: ignore[import-untyped]
from gpytorch.priors import GammaPrior, LogNormalPrior  # type: ignore[import-untyped]
from gpytorch.settings import min_fixed_noise  # type: ignore[import-untyped]
from torch import Tensor

from eign.arrays import Array
from eign.models.independent.map_objective import LENGTHSCALE_PRIOR, OUTPUTSCALE_PRIOR
from eign_lab.rivals.counted import CountedProblem, sobol_design

Acquisition = Literal["ei", "log-ei"]
_ACQUISITIONS: Final = {"ei": ExpectedImprovement, "log-ei": LogExpectedImprovement}
_JITTER: Final = 1e-9  # the paper's
_DEFAULTS: Final[dict[str, Any]] = {
    "restarts": 10,
    "raw_samples": 512,
    "noise": _JITTER,
    "priors": "paper",
    "standardize": True,
    "normalize": True,
    "precision": "double",
    "incumbent": "observed",
}


def optimize_with_botorch(problem: CountedProblem, acquisition: Acquisition) -> None:
    """Evaluate the design that all methods of a seed share, and then one suggestion after the other."""
    if unknown := set(problem.options) - set(_DEFAULTS):
        raise ValueError(f"there is no option {min(unknown)!r}; expected some of {', '.join(_DEFAULTS)}")
    settings = {**_DEFAULTS, **problem.options}
    dtype = torch.float64 if settings["precision"] == "double" else torch.float32
    box = problem.box
    points = sobol_design(problem.dim, problem.seed)
    values = [problem.in_cube(u)[0] for u in points]
    bounds = np.stack([np.zeros(problem.dim), np.ones(problem.dim)])
    if not settings["normalize"]:
        points, bounds = box.from_unit(points), np.stack([box.lower, box.upper])
    for number in range(len(points), problem.budget):
        x, y = torch.tensor(points, dtype=dtype), torch.tensor(values, dtype=dtype)[:, None]
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(1000 * problem.seed + number)
            new = _suggest(x, y, torch.tensor(bounds, dtype=dtype), acquisition, settings).double().numpy()
        values.append((problem.in_cube(new) if settings["normalize"] else problem.observe(new))[0])
        points = np.concatenate([points, new[None]])


def acquisition_and_point(
    points: Array, values: Array, acquisition: Acquisition, options: Mapping[str, Any]
) -> tuple[AcquisitionFunction, Array]:
    """Of points `n x d` in the unit cube: the acquisition on BoTorch's model of them, and its maximiser, as found."""
    x, y = torch.tensor(points, dtype=torch.float64), torch.tensor(values, dtype=torch.float64)[:, None]
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, x.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target, found = _searched(x, y, bounds, acquisition, {**_DEFAULTS, **options})
    return target, found.numpy()


def _suggest(x: Tensor, y: Tensor, bounds: Tensor, acquisition: Acquisition, settings: dict[str, Any]) -> Tensor:
    """The next point `d`."""
    return _searched(x, y, bounds, acquisition, settings)[1]


def _searched(
    x: Tensor, y: Tensor, bounds: Tensor, acquisition: Acquisition, settings: dict[str, Any]
) -> tuple[AcquisitionFunction, Tensor]:
    """The acquisition and the next point `d`."""
    model = _model(x, y, settings)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    best = y.max() if settings["incumbent"] == "observed" else (y.max() - y.mean()) / y.std()
    target = _ACQUISITIONS[acquisition](model, best_f=best)
    found, _ = optimize_acqf(
        target,
        bounds,
        q=1,
        num_restarts=settings["restarts"],
        raw_samples=settings["raw_samples"],
    )
    return target, found[0]


def _model(x: Tensor, y: Tensor, settings: dict[str, Any]) -> SingleTaskGP:
    transform = Standardize(m=1) if settings["standardize"] else None
    kernel = paper_kernel(x.shape[1]) if settings["priors"] == "paper" else None
    if settings["noise"] == "learned":
        return SingleTaskGP(x, y, covar_module=kernel, outcome_transform=transform).to(x)
    # GPyTorch takes no less than 1e-6 unless it is asked to.
    variance = settings["noise"] * (float(y.var()) if settings["standardize"] else 1.0)
    with min_fixed_noise(double_value=_JITTER, float_value=_JITTER):
        return SingleTaskGP(
            x, y, train_Yvar=torch.full_like(y, variance), covar_module=kernel, outcome_transform=transform
        ).to(x)


def paper_kernel(d: int, *, shape: torch.Size = torch.Size([])) -> ScaleKernel:  # noqa: B008  # it is immutable
    """Matern-5/2 with a lengthscale for each coordinate and the paper's priors."""
    prior = LogNormalPrior(*LENGTHSCALE_PRIOR)
    inner = MaternKernel(
        nu=2.5,
        ard_num_dims=d,
        batch_shape=shape,
        lengthscale_prior=prior,
        lengthscale_constraint=GreaterThan(1e-2, transform=None, initial_value=prior.mode),
    )
    return ScaleKernel(inner, batch_shape=shape, outputscale_prior=GammaPrior(*OUTPUTSCALE_PRIOR))
