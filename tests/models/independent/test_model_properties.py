"""Whatever the data: the fast path and the BoTorch path agree, derivatives are derivatives, variances are positive."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from eign.models import Hyperparameters, IndependentGradientGP
from eign.models.independent.map_objective import FitProblem, negative_log_posterior
from eign.models.kernels import correlation
from example_counts import examples

SEEDS = st.integers(0, 2**32 - 1)
KERNELS = st.sampled_from(["matern52", "rbf"])


def model(seed: int, kernel: str, *, dim: int, n: int, missing: float) -> IndependentGradientGP:
    rng = np.random.default_rng(seed)
    grad = rng.normal(size=(n, dim))
    grad[rng.random((n, dim)) < missing] = np.nan
    hyper = Hyperparameters(
        np.exp(rng.normal(-0.5, 0.7, (dim + 1, dim))),
        np.exp(rng.normal(0, 0.7, dim + 1)),
        rng.normal(size=dim + 1),
        rng.uniform(0, 0.1, dim + 1),
    )
    tensors = (torch.from_numpy(part) for part in (rng.random((n, dim)), rng.normal(size=(n, 1)), grad))
    return IndependentGradientGP(*tensors, kernel=kernel, noise=1e-4).with_hyperparameters(hyper)


@examples(40)
@given(
    seed=SEEDS, kernel=KERNELS, dim=st.integers(1, 5), n=st.integers(1, 40), missing=st.sampled_from([0.0, 0.3, 1.0])
)
def test_fast_path_equals_botorch_path(seed: int, kernel: str, dim: int, n: int, missing: float) -> None:
    gp = model(seed, kernel, dim=dim, n=n, missing=missing)
    x = torch.rand(20, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed % 2**31)).requires_grad_()
    fast, jacobians = gp.moments_and_jacobians(x)
    posterior = gp.posterior(x.unsqueeze(-2))
    scale = gp.standardization.y_scale
    torch.testing.assert_close(fast.mean, posterior.mean.flatten(), rtol=1e-9, atol=1e-10 * scale)
    torch.testing.assert_close(fast.variance, posterior.variance.flatten(), rtol=1e-9, atol=1e-10 * scale**2)
    for slow, quick, unit in (
        (posterior.mean, jacobians.mean, scale),
        (posterior.variance, jacobians.variance, scale**2),
    ):
        (gradient,) = torch.autograd.grad(slow.sum(), x, retain_graph=True)
        torch.testing.assert_close(quick, gradient, rtol=1e-8, atol=1e-8 * unit)
    plain = gp.moments(x)
    for mine, other in zip(plain, fast, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)
    assert all((part > 0).all() for part in (plain.variance, plain.grad_variance))


@examples(25)
@given(seed=SEEDS, kernel=KERNELS, dim=st.integers(1, 4))
def test_gradient_posterior_is_differentiable(seed: int, kernel: str, dim: int) -> None:
    gp = model(seed, kernel, dim=dim, n=12, missing=0.2)
    x = torch.rand(2, 3, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed % 2**31))
    # Steps of 1e-6 across the kink of the Matern's third derivative keep central differences to about 1e-6.
    assert torch.autograd.gradcheck(gp.gradient_posterior, (x.requires_grad_(),), atol=1e-4, rtol=1e-4)
    flat = gp.moments(x.detach().reshape(-1, dim))
    torch.testing.assert_close(gp.gradient_posterior(x).mean.reshape(-1, dim), flat.grad_mean, rtol=1e-12, atol=0)


@examples(40)
@given(seed=SEEDS, kernel=KERNELS, dim=st.integers(1, 6), n=st.integers(2, 30), learn=st.booleans())
def test_gradient_of_the_map_objective(seed: int, kernel: str, dim: int, n: int, learn: bool) -> None:
    rng = np.random.default_rng(seed)
    problem = FitProblem(rng.random((n, dim)), rng.normal(size=n), rng.uniform(1e-2, 1e-1, n))
    theta = rng.normal(-0.3, 0.6, dim + (2 if learn else 1))
    direction = rng.normal(size=len(theta))
    here = negative_log_posterior(theta, problem, correlation(kernel))
    ahead, behind = (
        negative_log_posterior(theta + step * direction, problem, correlation(kernel)).value for step in (1e-5, -1e-5)
    )
    slope = (ahead - behind) / 2e-5
    assert abs(here.gradient @ direction - slope) <= 1e-5 * (1 + np.abs(here.gradient).sum())
    assert np.linalg.eigvalsh(here.curvature).min() > 0
