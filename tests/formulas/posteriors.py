"""Hypothesis strategies for posteriors of a value and its gradient."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

few_dimensions = st.integers(1, 12)
magnitudes = st.floats(-2, 2).map(lambda e: 10.0**e)
seeds = st.integers(0, 2**32 - 1)


def tensor(x) -> Tensor:
    return torch.as_tensor(np.asarray(x, dtype=float))


@dataclass(frozen=True)
class Posterior:
    """f ~ N(mean, sigma^2), G ~ N(grad_mean, grad_cov), cov(f, G) = cross, and an incumbent."""

    mean: float
    sigma: float
    grad_mean: np.ndarray
    grad_cov: np.ndarray
    cross: np.ndarray
    best: float
    best_grad: np.ndarray
    alpha: float

    @property
    def d(self) -> int:
        return len(self.grad_mean)

    @property
    def grad_sigma(self) -> np.ndarray:
        return np.sqrt(np.diag(self.grad_cov))

    @property
    def best_g(self) -> float:
        return self.best - self.alpha * float(self.best_grad @ self.best_grad)

    @property
    def joint_mean(self) -> np.ndarray:
        return np.append(self.mean, self.grad_mean)

    @property
    def joint_cov(self) -> np.ndarray:
        return np.block([[np.atleast_2d(self.sigma**2), self.cross[None]], [self.cross[:, None], self.grad_cov]])


@st.composite
def posteriors(draw, *, dims=few_dimensions, correlated: bool = False) -> Posterior:
    """Posteriors of order one in g, with gradients and their uncertainty over several orders of magnitude."""
    d, rng = draw(dims), np.random.default_rng(draw(seeds))
    size = draw(magnitudes)
    grad_mean = size * rng.standard_normal(d)
    spread = size * draw(magnitudes) * 10 ** rng.uniform(-1, 1, d)
    sigma = draw(magnitudes)
    if correlated:
        # rows of independent normals give a positive definite joint covariance
        factor = rng.standard_normal((d + 1, d + 3))
        factor /= np.linalg.norm(factor, axis=1, keepdims=True)
        joint = np.append(sigma, spread)[:, None] * (factor @ factor.T) * np.append(sigma, spread)
    else:
        joint = np.diag(np.append(sigma, spread) ** 2)
    alpha = draw(st.sampled_from([0.01, 0.6, 3.0])) * sigma / float(grad_mean @ grad_mean + spread @ spread)
    best_grad = size * draw(magnitudes) * rng.standard_normal(d)
    best = sigma * rng.standard_normal()
    return Posterior(0.0, sigma, grad_mean, joint[1:, 1:], joint[0, 1:], best, best_grad, alpha)
