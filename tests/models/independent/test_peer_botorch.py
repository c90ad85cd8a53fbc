"""The independent model against BoTorch and GPyTorch in float64: same hyperparameters, same data, same numbers."""

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import Positive
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior, LogNormalPrior
from torch import Tensor

from eign.models import Hyperparameters, IndependentGradientGP, fit
from eign.models.independent.map_objective import FitProblem, negative_log_posterior
from eign.models.kernels import correlation

DIM = 3


def observed(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    x = torch.rand(n, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    y = (3 * x[:, 0]).sin() + x[:, 1] * x[:, 2] ** 2 + 0.3 * x.sum(1).cos()
    (grad,) = torch.autograd.grad(y.sum(), x)
    return x.detach(), y.detach().unsqueeze(-1), grad


def double(number: float) -> Tensor:
    return torch.tensor(number, dtype=torch.float64)


def peer(x: Tensor, y: Tensor, noise: Tensor, *, kernel: str, hyper: Hyperparameters, b: int) -> SingleTaskGP:
    """BoTorch's model with process b's hyperparameters and the paper's priors, in standardised units."""
    inner = MaternKernel(nu=2.5, ard_num_dims=DIM) if kernel == "matern52" else RBFKernel(ard_num_dims=DIM)
    inner.register_prior(
        "lengthscale_prior",
        LogNormalPrior(double(np.log(0.4)), double(0.7)),
        lambda module: module.lengthscale,
    )
    covariance = ScaleKernel(
        inner, outputscale_prior=GammaPrior(double(2.0), double(0.5)), outputscale_constraint=Positive()
    )
    model = SingleTaskGP(x, y, train_Yvar=noise, covar_module=covariance, outcome_transform=None, input_transform=None)
    model = model.to(torch.float64)
    inner.lengthscale = torch.from_numpy(hyper.lengthscale[b])
    covariance.outputscale = double(hyper.outputscale[b])
    model.mean_module.constant = double(hyper.mean[b])
    return model


def some_hyperparameters(seed: int = 1) -> Hyperparameters:
    rng = np.random.default_rng(seed)
    return Hyperparameters(
        np.exp(rng.normal(-0.5, 0.4, (DIM + 1, DIM))),
        np.exp(rng.normal(0, 0.4, DIM + 1)),
        rng.normal(size=DIM + 1),
        0.0,
    )


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("known_noise", [False, True])
def test_posteriors_equal_botorch(kernel: str, known_noise: bool) -> None:
    x, y, grad = observed(25)
    generator = torch.Generator().manual_seed(3)
    y_var = 0.01 + 0.05 * torch.rand(25, 1, dtype=torch.float64, generator=generator) if known_noise else None
    grad_var = 0.2 * torch.rand(25, DIM, dtype=torch.float64, generator=generator) + 0.1 if known_noise else None
    hyper = some_hyperparameters()
    gp = IndependentGradientGP(x, y, grad, Yvar=y_var, Gvar=grad_var, kernel=kernel, noise=1e-4)
    gp = gp.with_hyperparameters(hyper)
    units = gp.standardization
    points = torch.rand(4, 5, DIM, dtype=torch.float64, generator=generator)
    noise = torch.full_like(y, 1e-4) if y_var is None else y_var / units.y_scale**2
    theirs = peer(x, (y - units.y_shift) / units.y_scale, noise, kernel=kernel, hyper=hyper, b=0).posterior(points)
    ours = gp.posterior(points)
    # The condition number is about 1e6, so both carry errors of 1e-10 in standardised units.
    torch.testing.assert_close(ours.mean, units.y_shift + units.y_scale * theirs.mean, rtol=0, atol=1e-9)
    ours_covariance = ours.distribution.covariance_matrix
    theirs_covariance = units.y_scale**2 * theirs.distribution.covariance_matrix
    torch.testing.assert_close(ours_covariance, theirs_covariance, rtol=0, atol=1e-9)
    gradient = gp.gradient_posterior(points)
    for i in range(DIM):
        target = (grad[:, i : i + 1] - units.grad_shift[i]) / units.grad_scale[i]
        scale = float(units.grad_scale[i])
        noise = torch.full_like(y, 1e-4) if grad_var is None else grad_var[:, i : i + 1] / scale**2
        partial = peer(x, target, noise, kernel=kernel, hyper=hyper, b=i + 1).posterior(points)
        mean, variance = partial.mean.squeeze(-1), partial.variance.squeeze(-1)
        torch.testing.assert_close(gradient.mean[..., i], units.grad_shift[i] + scale * mean, rtol=0, atol=1e-8)
        torch.testing.assert_close(gradient.variance[..., i], scale**2 * variance, rtol=0, atol=1e-8)


def mll_with_gradient(model: SingleTaskGP) -> tuple[float, np.ndarray]:
    """GPyTorch's objective times n, negated, with its gradient by log l and log s."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    mll.train()
    scale, inner = model.covar_module, model.covar_module.base_kernel
    value = -mll(model(*model.train_inputs), model.train_targets) * len(model.train_targets)
    value.backward()

    def per_log(parameter: Tensor, raw: torch.nn.Parameter) -> Tensor:
        # raw -> softplus(raw) = value, so d value / d log value = value * d raw / d value = value / sigmoid(raw).
        assert raw.grad is not None
        return raw.grad.reshape(-1) * parameter.detach().reshape(-1) / torch.sigmoid(raw.detach().reshape(-1))

    gradient = [per_log(inner.lengthscale, inner.raw_lengthscale), per_log(scale.outputscale, scale.raw_outputscale)]
    constant = model.mean_module.raw_constant.grad
    assert abs(float(constant)) < 1e-6  # at the optimal mean
    return float(value.detach()), torch.cat(gradient).numpy()


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_objective_equals_gpytorch(kernel: str, seed: int) -> None:
    x, y, _ = observed(20, seed)
    y = (y - y.mean()) / y.std()
    rng = np.random.default_rng(seed)
    theta = np.append(rng.normal(-0.7, 0.5, DIM), rng.normal(0, 0.5))
    noise = rng.uniform(1e-3, 1e-2, 20)
    problem = FitProblem(x.numpy(), y.squeeze(-1).numpy(), noise)
    ours = negative_log_posterior(theta, problem, correlation(kernel))
    hyper = Hyperparameters.from_theta(np.tile(theta, (DIM + 1, 1)), np.full(DIM + 1, ours.mean))
    theirs, gradient = mll_with_gradient(peer(x, y, torch.from_numpy(noise)[:, None], kernel=kernel, hyper=hyper, b=0))
    assert ours.value == pytest.approx(theirs, rel=1e-9)
    np.testing.assert_allclose(ours.gradient, gradient, rtol=1e-7, atol=1e-7)


def test_fit_is_no_worse_than_botorch() -> None:
    from botorch.fit import fit_gpytorch_mll

    x, y, grad = observed(30, 4)
    gp = IndependentGradientGP(x, y, grad)
    result = gp.fit_hyperparameters()
    units = gp.standardization
    targets = torch.cat(
        [(y - units.y_shift) / units.y_scale, (grad - torch.tensor(units.grad_shift)) / torch.tensor(units.grad_scale)],
        1,
    )
    start = Hyperparameters.default(DIM)
    for b in range(DIM + 1):
        model = peer(x, targets[:, b : b + 1], torch.full_like(y, 1e-6), kernel="matern52", hyper=start, b=b)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        theta = torch.cat(
            [model.covar_module.base_kernel.lengthscale.reshape(-1), model.covar_module.outputscale.reshape(-1)]
        )
        problem = FitProblem(x.numpy(), targets[:, b].numpy().copy(), np.full(30, 1e-6))
        theirs = negative_log_posterior(theta.detach().log().numpy(), problem, correlation("matern52")).value
        assert result.value[b] <= theirs + 1e-4 * 30


def test_fit_returns_the_model() -> None:
    x, y, grad = observed(10)
    gp = IndependentGradientGP(x, y, grad)
    assert fit(gp) is gp
