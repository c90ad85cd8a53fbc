"""BoTorch's acquisition functions and optimizer run on the joint model unchanged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler

from eign.models.joint.model import JointGradientGP
from joint_cases import observe, random_points

# BoTorch advises against its own ExpectedImprovement.
pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning")

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
SAMPLER = SobolQMCNormalSampler(torch.Size([32]), seed=0)

ACQUISITIONS: dict[str, tuple[Callable[[JointGradientGP], AcquisitionFunction], int]] = {
    "EI": (lambda gp: ExpectedImprovement(gp, best_f=6.0), 1),
    "LogEI": (lambda gp: LogExpectedImprovement(gp, best_f=6.0), 1),
    "UCB": (lambda gp: UpperConfidenceBound(gp, beta=4.0), 1),
    "qLogEI": (lambda gp: qLogExpectedImprovement(gp, best_f=6.0, sampler=SAMPLER), 3),
    "qLogNEI": (
        lambda gp: qLogNoisyExpectedImprovement(
            gp, X_baseline=torch.tensor(gp.observations.x), sampler=SAMPLER, prune_baseline=True
        ),
        2,
    ),
    "qKG": (lambda gp: qKnowledgeGradient(gp, num_fantasies=4), 2),
}


def model(kernel: str = "matern52") -> JointGradientGP:
    gp = JointGradientGP(*observe(8, 2), kernel=kernel)
    gp.fit_hyperparameters()
    return gp


@pytest.mark.parametrize("kernel", ["matern52", "rbf", "additive+full"])
@pytest.mark.parametrize("name", ACQUISITIONS)
def test_optimize_acqf(name: str, kernel: str) -> None:
    make, q = ACQUISITIONS[name]
    torch.manual_seed(0)
    acquisition = make(model(kernel))
    candidates, value = optimize_acqf(
        acquisition, BOUNDS, q=q, num_restarts=2, raw_samples=16, options={"maxiter": 10, "seed": 0}
    )
    assert candidates.shape == (q, 2)
    assert ((candidates >= 0) & (candidates <= 1)).all()
    # Better than any of a few random batches: the search has followed the gradient of the acquisition.
    batch = q + 4 if name == "qKG" else q
    with torch.no_grad():
        others = torch.stack([acquisition(random_points(1, batch, 2, seed=s)) for s in range(8)])
    assert value >= others.max() - 1e-6


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_gradients_of_acquisitions(name: str) -> None:
    make, q = ACQUISITIONS[name]
    acquisition = make(model())
    x = random_points(1, q + 4 if name == "qKG" else q, 2).requires_grad_()
    (gradient,) = torch.autograd.grad(acquisition(x).sum(), x)
    h = 1e-5
    for i in range(x.shape[1]):
        for k in range(2):
            step = torch.zeros_like(x)
            step[0, i, k] = h
            with torch.no_grad():
                numeric = (acquisition(x + step) - acquisition(x - step)) / (2 * h)
            torch.testing.assert_close(gradient[0, i, k], numeric[0], rtol=1e-4, atol=1e-6)


def test_fantasies_equal_appended_values() -> None:
    gp = JointGradientGP(*observe(8, 2))
    x, values = random_points(2, 2, seed=1), torch.tensor([[[1.0], [4.0]], [[2.0], [0.5]], [[0.0], [3.0]]]).double()
    conditioned = gp.condition_on_observations(x.expand(3, 2, 2), values)
    points = random_points(4, 2, seed=2)
    posterior = conditioned.posterior(points)
    assert posterior.mean.shape == (3, 4, 1)
    assert conditioned.batch_shape == torch.Size([3])
    # By hand: the joint normal of f at the points and at x, given values at x.
    together = gp.posterior(torch.cat([points, x]))
    mean, covariance = together.mean[:, 0], together.distribution.covariance_matrix
    gain = torch.linalg.solve(covariance[4:, 4:], covariance[4:, :4]).T
    expected = mean[:4] + (values[..., 0] - mean[4:]) @ gain.T
    torch.testing.assert_close(posterior.mean[..., 0], expected, rtol=1e-6, atol=1e-6)
    # The variance is that of an appended value; the mean is not, because append also updates the constant mean.
    torch.testing.assert_close(
        posterior.variance[0], gp.append(x, values[0]).posterior(points).variance, rtol=1e-6, atol=1e-7
    )
    again = gp.condition_on_observations(x[:1], values[:, :1]).condition_on_observations(x[1:], values[:, 1:])
    torch.testing.assert_close(again.posterior(points).mean, posterior.mean, rtol=1e-8, atol=1e-8)


def test_fantasize_samples_and_conditions() -> None:
    gp = JointGradientGP(*observe(8, 2))
    x = random_points(5, 1, 2, seed=3)
    fantasies = gp.fantasize(x, SobolQMCNormalSampler(torch.Size([6]), seed=1))
    posterior = fantasies.posterior(x)
    assert posterior.mean.shape == (6, 5, 1, 1)
    assert (posterior.variance < gp.posterior(x).variance).all()
    noisy = gp.fantasize(
        x, SobolQMCNormalSampler(torch.Size([6]), seed=1), observation_noise=torch.full((1, 1), 4.0).double()
    )
    assert (noisy.posterior(x).variance > posterior.variance).all()
    twice = fantasies.fantasize(x, SobolQMCNormalSampler(torch.Size([2]), seed=1))
    assert twice.posterior(x).mean.shape == (2, 6, 5, 1, 1)


def test_observation_noise() -> None:
    gp = JointGradientGP(*observe(8, 2), noise=0.01)
    x = random_points(3, 2)
    scale = gp.standardization.y_scale
    quiet, noisy = gp.posterior(x), gp.posterior(x, observation_noise=True)
    torch.testing.assert_close(
        noisy.variance - quiet.variance, torch.full((3, 1), 0.01 * scale**2).double(), rtol=1e-5, atol=0.0
    )
    given = gp.posterior(x, observation_noise=torch.full((3, 1), 2.0).double())
    torch.testing.assert_close(given.variance - quiet.variance, torch.full((3, 1), 2.0).double())


def test_samples_have_the_posterior_moments() -> None:
    gp = JointGradientGP(*observe(6, 2))
    posterior = gp.posterior(random_points(3, 2))
    samples = posterior.rsample(torch.Size([20_000]))
    deviation = posterior.variance.sqrt()
    # Five standard errors of a mean of 20,000.
    assert ((samples.mean(0) - posterior.mean).abs() < 5 * deviation / 20_000**0.5).all()


def test_values_alone_agree_with_botorch() -> None:
    """Without gradients, and with BoTorch's hyperparameters, it is BoTorch's model."""
    x, y, _ = observe(12, 2)
    gp = JointGradientGP(x, y, noise=1e-4)
    gp.fit_hyperparameters()
    units, term, rows = gp.standardization, gp.hyperparameters.terms[0], gp._conditioned()
    from gpytorch.kernels import MaternKernel, ScaleKernel

    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double()
    kernel.outputscale = term.outputscale
    kernel.base_kernel.lengthscale = torch.from_numpy(term.lengthscale)
    noise = torch.full_like(y, 1e-4 + rows.factored.nugget * term.outputscale)
    peer = SingleTaskGP(x, (y - units.y_shift) / units.y_scale, noise, covar_module=kernel, outcome_transform=None)
    peer.mean_module.constant = torch.tensor(rows.factored.mean).double()
    points = random_points(5, 2)
    posterior = peer.posterior(points)
    mean, variance = gp.moments(points)
    torch.testing.assert_close(mean, units.y_shift + units.y_scale * posterior.mean[:, 0], rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(variance, units.y_scale**2 * posterior.variance[:, 0], rtol=1e-6, atol=1e-7)
