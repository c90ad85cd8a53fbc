"""A whole optimisation from the BoTorch-level pieces: model, acquisition, search."""

import numpy as np
import pytest
import torch
from botorch.test_functions import Branin
from torch import Tensor

from eign.acquisition import EIGN, LogEI, incumbent
from eign.models import IndependentGradientGP, JointGradientGP, fit
from eign.search import maximize
from eign.search.candidates import global_candidates

HIGHEST = -0.397887


def branin(x: Tensor) -> tuple[Tensor, Tensor]:
    """To be maximised over the unit cube, `n x 2 -> n x 1, n x 2`."""
    x = x.clone().requires_grad_()
    function = Branin(negate=True)
    low, high = function.bounds.to(torch.float64)
    y = function(low + (high - low) * x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return y.detach().unsqueeze(-1), gradient


@pytest.mark.parametrize(
    ("kind", "build", "evaluations"),
    [
        (JointGradientGP, lambda model, best: LogEI(model, best.best_f), 20),
        (JointGradientGP, lambda model, best: EIGN(model, best.best_f, best.best_grad), 15),
        (IndependentGradientGP, lambda model, best: LogEI(model, best.best_f), 30),
    ],
    ids=["d-log-ei", "d-ei-gn", "log-ei"],
)
def test_branin_is_solved(kind, build, evaluations):
    x = torch.from_numpy(global_candidates(6, 2, np.random.default_rng(0)))
    model = fit(kind(x, *branin(x)))
    for step in range(evaluations - 6):
        found = maximize(build(model, incumbent(model)), seed=step)
        model = fit(model.append(found.x[None], *branin(found.x[None])))
    points = torch.from_numpy(model.observations.x.copy())
    assert incumbent(model).best_f > HIGHEST - 0.01
    assert torch.pdist(points).min() > 1e-9
