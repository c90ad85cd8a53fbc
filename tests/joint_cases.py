"""Observations for the tests of the joint model: smooth functions with their gradients, some of it missing."""

from __future__ import annotations

import torch
from torch import Tensor


def smooth(x: Tensor) -> Tensor:
    """A function that is neither additive nor quadratic, of size 5 around 3."""
    weights = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    return 3.0 + 5.0 * torch.sin(x @ weights) + 2.0 * x[..., 0] ** 2 * x[..., -1]


def observe(n: int, d: int, *, seed: int = 0, missing: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """X n x d, Y n x 1, G n x d of `smooth` at random points, a share of all numbers missing."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, d, dtype=torch.float64, generator=generator).requires_grad_()
    y = smooth(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    y, g = y.detach().unsqueeze(-1), g.clone()
    y[torch.rand(y.shape, generator=generator) < missing] = torch.nan
    g[torch.rand(g.shape, generator=generator) < missing] = torch.nan
    return x.detach(), y, g


def random_points(*shape: int, seed: int = 9) -> Tensor:
    """Uniform in the unit cube."""
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
