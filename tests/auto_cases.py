"""Data for the tests of `auto`: smooth functions in the unit cube, to be maximised, with their gradients."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eign import problems
from eign.data import Observations
from eign.strategies import strategy
from eign.strategies.design import design_point

Function = Callable[[Tensor], Tensor]


def options(**chosen: object) -> Mapping[str, Any]:
    """Of `auto`, checked and complete."""
    return strategy("auto").checked_options(1, chosen)


def observe(function: Function, points: np.ndarray) -> Observations:
    """Values and gradients of a function of tensors `n x d -> n`."""
    x = torch.tensor(points, requires_grad=True)
    y = function(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    return Observations(points, y.detach().numpy(), grad.numpy())


def design(count: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.array([design_point(seed, dim, index) for index in range(count)])


def additive(x: Tensor) -> Tensor:
    """A sum of functions of one coordinate each."""
    return (torch.sin(7 * x + torch.arange(x.shape[-1])) - (x - 0.4) ** 2).sum(dim=-1)


def coupled(x: Tensor) -> Tensor:
    """A wave along the diagonal: nothing of it is a sum of functions of one coordinate."""
    weights = torch.linspace(1, 2, x.shape[-1], dtype=x.dtype)
    return torch.sin(4 * (x @ weights)) + torch.cos(3 * (x[..., 0] - x[..., -1]))


def on_hartmann(noise: float = 0.0, seed: int = 0) -> Observations:
    """Hartmann's function at 10 points of the design and 20 around the best of them, as a search leaves them.

    Noise is in standard deviations of the values and of each derivative.
    """
    problem = problems.get("hartmann-6")
    rng = np.random.default_rng(seed)
    x = design(10, 6, seed)
    best = x[problem.evaluate(x)[0].argmax()]
    x = np.concatenate([x, np.clip(best + 0.1 * rng.standard_normal((20, 6)), 0, 1)])
    y, grad = problem.evaluate(x)
    return Observations(
        x,
        y + noise * y.std() * rng.standard_normal(y.shape),
        grad + noise * grad.std(axis=0) * rng.standard_normal(grad.shape),
    )
