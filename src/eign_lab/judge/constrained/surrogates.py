"""Constrained Bayesian optimization of other packages, which sees values and no gradients."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from eign.arrays import Array
from eign_lab.judge.constrained.counted import CountedConstrained
from eign_lab.judge.constrained.problem import FEASIBLE
from eign_lab.rivals import Finished, sobol_design

if TYPE_CHECKING:
    from torch import Tensor


def egobox(problem: CountedConstrained) -> None:
    """Egobox with its defaults, after 3 d points; equations are two inequalities with a tolerance of 1e-6.

    It is asked point by point: its own loop goes on when the run is over.
    """
    import egobox as egx

    points = list(sobol_design(problem.dim, problem.seed))
    outputs = [_outputs(problem, u) for u in points]
    specs: Any = [egx.CstrSpec.leq(0.0, tol=1e-6)] * (len(outputs[0]) - 1)
    search = egx.Egor([[0.0, 1.0]] * problem.dim, cstr_specs=specs, seed=problem.seed)
    while not problem.is_over:
        u = np.ravel(search.suggest(np.array(points), np.array(outputs)))
        outputs.append(_outputs(problem, u))
        points.append(u)
    raise Finished


def _outputs(problem: CountedConstrained, u: Array) -> list[float]:
    """The value, and the constraints as c <= 0."""
    residual = problem.residual(u)[0]
    return [problem.evaluate(u).value, *problem.excess(u)[0], *residual, *-residual]


def botorch(problem: CountedConstrained) -> None:
    """BoTorch's qLogEI with constraints, as its tutorial has it: one `SingleTaskGP` for each output, after 3 d points.

    Where nothing is feasible yet, the incumbent is the worst value seen, so that feasibility decides.
    """
    import torch

    points = list(sobol_design(problem.dim, problem.seed))
    outputs = [_outputs(problem, u) for u in points]
    while not problem.is_over:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(1000 * problem.seed + len(points))
            u = _qlogei_point(torch.tensor(np.array(points)), torch.tensor(np.array(outputs)))
        outputs.append(_outputs(problem, u))
        points.append(u)
    raise Finished


def _minus_value(samples: "Tensor", X: "Tensor | None" = None) -> "Tensor":  # noqa: ARG001  # BoTorch passes X
    return -samples[..., 0]


def _qlogei_point(x: "Tensor", y: "Tensor") -> Array:
    """The next point `d` after points `n x d` with outputs `n x (1 + m)`."""
    import torch
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.gp_regression import SingleTaskGP
    from botorch.models.model_list_gp_regression import ModelListGP
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import SumMarginalLogLikelihood  # type: ignore[import-untyped]

    outputs, d = y.shape[1], x.shape[1]
    model = ModelListGP(*(SingleTaskGP(x, y[:, i : i + 1], outcome_transform=Standardize(m=1)) for i in range(outputs)))
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    feasible = (y[:, 1:] <= FEASIBLE).all(dim=1)
    best = -y[feasible, 0].min() if feasible.any() else -y[:, 0].max()

    def below(i: int) -> Any:
        return lambda samples: samples[..., i]

    acquisition = qLogExpectedImprovement(
        model,
        best_f=best,
        objective=GenericMCObjective(_minus_value),
        constraints=[below(i) for i in range(1, outputs)] or None,
    )
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).to(x)
    found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=256)
    return np.asarray(found[0].numpy())
