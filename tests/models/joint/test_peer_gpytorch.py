"""The joint model against GPyTorch's derivative kernels: same data, same hyperparameters, float64."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.kernels import Matern52KernelGrad, RBFKernelGrad, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.priors import GammaPrior, LogNormalPrior
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eign.models.derivative_kernels import Array, covariance_blocks, default_terms, with_hyperparameters
from eign.models.joint.fitting import JointData, factor_rows, negative_log_posterior
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.model import JointGradientGP
from example_counts import examples
from joint_cases import observe, random_points

KERNEL_CLASSES = {"matern52": Matern52KernelGrad, "rbf": RBFKernelGrad}


class PeerGP(gpytorch.models.ExactGP):
    """GPyTorch's model of (f, grad f), as in its tutorial, with a constant mean of f and the paper's priors."""

    def __init__(self, x: Tensor, targets: Tensor, kernel: str, likelihood: gpytorch.likelihoods.Likelihood) -> None:
        super().__init__(x, targets, likelihood)
        self.mean_module = gpytorch.means.ConstantMeanGrad()
        # From tensors, here and below, because GPyTorch takes plain numbers in single precision.
        location, width = torch.tensor([math.log(0.4), 0.7], dtype=torch.float64)
        base = KERNEL_CLASSES[kernel](ard_num_dims=x.shape[1], lengthscale_prior=LogNormalPrior(location, width))
        self.covar_module = ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.5))
        self.double()

    def forward(self, x: Tensor) -> MultitaskMultivariateNormal:
        return MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))


def set_hyperparameters(model: PeerGP, hyper: JointHyperparameters, mean: float) -> None:
    (term,) = hyper.terms
    model.covar_module.outputscale = torch.tensor(term.outputscale, dtype=torch.float64)
    model.covar_module.base_kernel.lengthscale = torch.from_numpy(term.lengthscale)
    model.mean_module.initialize(constant=torch.tensor(mean, dtype=torch.float64))


def random_hyperparameters(kernel: str, d: int, seed: int) -> JointHyperparameters:
    rng = np.random.default_rng(seed)
    terms = with_hyperparameters(default_terms(kernel, d), rng.uniform(0.2, 1.5, (1, d)), rng.uniform(0.3, 3.0, 1))
    return JointHyperparameters(terms)


def by_point(matrix: Array, n: int, d: int) -> Array:
    """GPyTorch orders rows point by point, components inside: the same as (d+1) x (d+1) x n x n blocks."""
    return matrix.reshape(n, d + 1, n, d + 1).transpose(1, 3, 0, 2)


@pytest.mark.parametrize("kernel", KERNEL_CLASSES)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 5))
@examples(25)
def test_kernels(kernel: str, seed: int, d: int) -> None:
    hyper = random_hyperparameters(kernel, d, seed)
    x = torch.from_numpy(np.random.default_rng(seed).random((5, d)))
    peer = PeerGP(x, torch.zeros(5, d + 1).double(), kernel, gpytorch.likelihoods.MultitaskGaussianLikelihood(d + 1))
    set_hyperparameters(peer, hyper, 0.0)
    expected = by_point(peer.covar_module(x).to_dense().detach().numpy(), 5, d)
    delta = (x.numpy()[:, None] - x.numpy()[None]).transpose(2, 0, 1)
    actual = covariance_blocks(hyper.terms, delta, left=True, right=True)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNEL_CLASSES)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_joint_posterior(kernel: str, d: int) -> None:
    n, noise = 9, 1e-4
    x, y, g = observe(n, d)
    gp = JointGradientGP(x, y, g, kernel=kernel, noise=noise)
    gp = gp.with_hyperparameters(JointHyperparameters(random_hyperparameters(kernel, d, 3).terms, (noise, noise)))
    rows, units = gp._conditioned(), gp.standardization
    targets = torch.cat([(y - units.y_shift), g], dim=1) / units.y_scale
    likelihood = FixedNoiseGaussianLikelihood(
        torch.from_numpy(noise + rows.factored.nugget * rows.factored.scales**-2.0).repeat(n)
    )
    peer = PeerGP(x, targets, kernel, gpytorch.likelihoods.MultitaskGaussianLikelihood(d + 1))
    set_hyperparameters(peer, gp.hyperparameters, rows.factored.mean)
    points = random_points(3, d)
    # Conditioning by hand on GPyTorch's covariance: its multitask likelihoods know no noise of single rows.
    together = peer.covar_module(torch.cat([x, points])).to_dense().detach()
    prior_mean = peer.mean_module(torch.cat([x, points])).detach().reshape(-1)
    seen, new = slice(0, n * (d + 1)), slice(n * (d + 1), None)
    gain = torch.linalg.solve(together[seen, seen] + torch.diag(likelihood.noise), together[seen, new])
    mean = prior_mean[new] + gain.T @ (targets.reshape(-1) - prior_mean[seen])
    covariance = together[new, new] - together[new, seen] @ gain
    actual = gp.joint_posterior(points)
    shift = torch.zeros(d + 1).double()
    shift[0] = units.y_shift
    torch.testing.assert_close(actual.mean, shift + units.y_scale * mean.reshape(3, d + 1), rtol=1e-9, atol=1e-9)
    for i in range(3):
        own = slice(i * (d + 1), (i + 1) * (d + 1))
        expected = units.y_scale**2 * covariance[own, own]
        torch.testing.assert_close(actual.covariance[i], expected, rtol=1e-8, atol=1e-8)
    values = gp.posterior(points).distribution.covariance_matrix
    torch.testing.assert_close(values, units.y_scale**2 * covariance[:: d + 1, :: d + 1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNEL_CLASSES)
def test_posterior_of_the_tutorial_model(kernel: str) -> None:
    """GPyTorch's own prediction, with one noise for all rows and no nugget of ours."""
    n, d, noise = 8, 2, 1e-3
    x, y, g = observe(n, d)
    hyper = JointHyperparameters(random_hyperparameters(kernel, d, 5).terms, (noise, noise))
    gp = JointGradientGP(x, y, g, kernel=kernel, noise=noise).with_hyperparameters(hyper)
    units = gp.standardization
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(d + 1, has_task_noise=False).double()
    likelihood.noise = torch.tensor([noise], dtype=torch.float64)
    peer = PeerGP(x, torch.cat([(y - units.y_shift), g], dim=1) / units.y_scale, kernel, likelihood)
    set_hyperparameters(peer, hyper, gp._conditioned().factored.mean)
    peer.eval()
    points = random_points(4, d)
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        posterior = peer(points)
    actual = gp.joint_posterior(points)
    mean = units.y_scale * posterior.mean
    mean[:, 0] += units.y_shift
    # The nugget of 1e-8 relative to prior variances up to 1e2 is 1e-3 of the noise.
    torch.testing.assert_close(actual.mean, mean, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(actual.variance, units.y_scale**2 * posterior.variance, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kernel", KERNEL_CLASSES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_map_objective_value_and_gradient(kernel: str, seed: int) -> None:
    n, d, noise = 8, 3, 1e-3
    x, y, g = observe(n, d, seed=seed)
    targets = torch.cat([(y - y.mean()), g], dim=1) / y.std()
    hyper = JointHyperparameters(random_hyperparameters(kernel, d, seed).terms, (noise, noise))
    data = JointData.of(x.numpy(), targets.numpy(), np.full((n, d + 1), np.nan))
    mean = factor_rows(data, hyper, eta=0.0).mean
    ours = negative_log_posterior(hyper.theta, data, hyper, eta=0.0)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(d + 1, has_task_noise=False).double()
    likelihood.noise = torch.tensor([noise], dtype=torch.float64)
    peer = PeerGP(x, targets, kernel, likelihood)
    set_hyperparameters(peer, hyper, mean)
    peer.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, peer)
    with gpytorch.settings.fast_computations(False, False, False):
        value = -mll(peer(x), targets) * n * (d + 1)
    value.backward()
    assert ours.value == pytest.approx(value.item(), rel=1e-11)
    base = peer.covar_module.base_kernel
    # Theirs is by the raw parameter, ours by the logarithm: both chain rules go through the parameter itself.
    lengthscale, outputscale = base.lengthscale.detach()[0], peer.covar_module.outputscale.detach()
    by_length = base.raw_lengthscale.grad[0] / torch.sigmoid(base.raw_lengthscale.detach()[0])
    by_scale = peer.covar_module.raw_outputscale.grad / torch.sigmoid(peer.covar_module.raw_outputscale.detach())
    expected = torch.cat([by_length * lengthscale, (by_scale * outputscale)[None]])
    np.testing.assert_allclose(ours.gradient, expected.numpy(), rtol=1e-8, atol=1e-8)
    # The closed-form mean is where GPyTorch's gradient by its learned mean vanishes.
    assert abs(peer.mean_module.constant.grad.item()) < 1e-8
