"""Plain BoTorch making the suggestions that ours are timed against: EI-GN on its own models, `optimize_acqf`.

Two ways, as a researcher would write them today: one process a partial derivative (`botorch_fits`), and GPyTorch's
derivative kernel wrapped as a BoTorch model.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models.gpytorch import GPyTorchModel
from botorch.optim.optimize import optimize_acqf
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.distributions import MultitaskMultivariateNormal  # type: ignore[import-untyped]
from gpytorch.kernels import Matern52KernelGrad, ScaleKernel  # type: ignore[import-untyped]
from gpytorch.likelihoods import MultitaskGaussianLikelihood  # type: ignore[import-untyped]
from gpytorch.means import ConstantMeanGrad  # type: ignore[import-untyped]
from gpytorch.mlls import ExactMarginalLogLikelihood  # type: ignore[import-untyped]
from gpytorch.models import ExactGP  # type: ignore[import-untyped]
from gpytorch.priors import GammaPrior, LogNormalPrior  # type: ignore[import-untyped]
from torch import Tensor

from eign import formulas
from eign.models.independent.fitting import LENGTHSCALE_PRIOR, OUTPUTSCALE_PRIOR
from eign.search import Effort
from eign_lab.speed import botorch_fits
from eign_lab.speed.fits import Samples

Weights = tuple[float, float]
"""Of EI_f and EI_s-bar, in common standardised units."""

# Batched posteriors of the derivative kernel copy its covariance matrix for every point.
_BATCH_LIMIT = 64


class PeerSuggestion(NamedTuple):
    """A suggestion `d`, and what the next one starts from."""

    x: Tensor
    fitted: Any


class Suggest(Protocol):
    """Fit to the samples and suggest; `start` is what the last suggestion fitted, or None to begin cold.

    The weights of the two terms, which the paper takes from the spread over a pool, are given to BoTorch for nothing.
    """

    def __call__(self, seen: Samples, *, effort: Effort, weights: Weights, start: Any) -> PeerSuggestion:
        """The suggestion for the next evaluation."""


def independent(form: botorch_fits.Form) -> Suggest:
    """EI-GN on d + 1 processes, as a list of models or as one batched model."""

    def suggest(seen: Samples, *, effort: Effort, weights: Weights, start: Any) -> PeerSuggestion:
        peer = botorch_fits.build(seen.x, seen.standardized(), form, start=start)
        botorch_fits.fit(peer)
        deviation = seen.grad.std(dim=0) / seen.y.std()
        acquisition = _PeerEIGN(
            peer.model, _incumbent(seen), weights, lambda X: _diagonal(peer.model, X, seen, deviation)
        )
        return PeerSuggestion(_optimize(acquisition, effort, batch_limit=None), peer)

    return suggest


def joint(seen: Samples, *, effort: Effort, weights: Weights, start: Any) -> PeerSuggestion:
    """DEI-GN on GPyTorch's derivative kernel, with the full covariance of the gradient."""
    scale = seen.y.std()
    targets = torch.cat([(seen.y - seen.y.mean()) / scale, seen.grad / scale], dim=1)
    model = _DerivativeGP(seen.x, targets)
    if start is not None:
        model.load_state_dict(start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = _PeerEIGN(model, _incumbent(seen), weights, lambda X: _full(model, X))
        x = _optimize(acquisition, effort, batch_limit=_BATCH_LIMIT)
    return PeerSuggestion(x, model.state_dict())


class _Moments(NamedTuple):
    """In common standardised units: mean and deviation of f, `b`, mean of the gradient, `b x d`, and EI_s-bar of it."""

    mean: Tensor
    sigma: Tensor
    increase: Callable[[Tensor], Tensor]


class _Incumbent(NamedTuple):
    """The incumbent in common standardised units."""

    best: Tensor
    best_grad: Tensor


class _PeerEIGN(AcquisitionFunction):
    """EI-GN as a BoTorch acquisition on whatever gives the moments."""

    def __init__(
        self, model: Any, incumbent: _Incumbent, weights: Weights, moments: Callable[[Tensor], _Moments]
    ) -> None:
        super().__init__(model)
        self.incumbent: _Incumbent = incumbent
        self.weights, self.moments = weights, moments

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """`batch x 1 x d -> batch`."""
        mean, sigma, increase = self.moments(X)
        improvement = formulas.expected_improvement(mean, sigma, self.incumbent.best)
        return self.weights[0] * improvement - self.weights[1] * increase(self.incumbent.best_grad)


def _incumbent(seen: Samples) -> _Incumbent:
    best, scale = int(seen.y.argmax()), seen.y.std()
    return _Incumbent((seen.y[best, 0] - seen.y.mean()) / scale, seen.grad[best] / scale)


def _diagonal(model: Any, X: Tensor, seen: Samples, deviation: Tensor) -> _Moments:
    posterior = model.posterior(X)
    mean, sigma = posterior.mean.squeeze(-2), posterior.variance.clamp_min(1e-10).sqrt().squeeze(-2)
    grad_mean = seen.grad.mean(dim=0) / seen.y.std() + deviation * mean[..., 1:]

    def increase(best_grad: Tensor) -> Tensor:
        return formulas.orthant_gradient_increase(grad_mean, deviation * sigma[..., 1:], best_grad)

    return _Moments(mean[..., 0], sigma[..., 0], increase)


def _full(model: "_DerivativeGP", X: Tensor) -> _Moments:
    posterior: Any = model.posterior(X)
    normal = posterior.distribution
    mean, covariance = normal.mean.squeeze(-2), normal.covariance_matrix
    size = covariance.shape[-1]
    covariance = covariance + 1e-8 * torch.eye(size, dtype=covariance.dtype)

    def increase(best_grad: Tensor) -> Tensor:
        chol = torch.linalg.cholesky_ex(covariance[..., 1:, 1:])[0]
        return formulas.orthant_gradient_increase_full(mean[..., 1:], chol, best_grad)

    return _Moments(mean[..., 0], covariance[..., 0, 0].sqrt(), increase)


def _optimize(acquisition: "_PeerEIGN", effort: Effort, *, batch_limit: int | None) -> Tensor:
    dim = acquisition.incumbent.best_grad.shape[-1]
    bounds = torch.tensor([[0.0] * dim, [1.0] * dim], dtype=torch.float64)
    options = {} if batch_limit is None else {"init_batch_limit": batch_limit, "batch_limit": batch_limit}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, _ = optimize_acqf(
            acquisition,
            bounds,
            q=1,
            num_restarts=effort.restarts,
            raw_samples=effort.raw_samples,
            options={**options, "seed": 0},
        )
    return x[0]


_NUGGET: Final = 1e-6


class _DerivativeGP(ExactGP, GPyTorchModel):  # type: ignore[misc]
    """GPyTorch's model of (f, grad f), with the paper's priors and a fixed nugget, as a BoTorch model."""

    num_outputs = 1

    def __init__(self, x: Tensor, targets: Tensor) -> None:
        likelihood = MultitaskGaussianLikelihood(targets.shape[1], has_task_noise=False)
        super().__init__(x, targets, likelihood)
        self.mean_module = ConstantMeanGrad()
        prior = LogNormalPrior(*torch.tensor(LENGTHSCALE_PRIOR, dtype=torch.float64))
        inner = Matern52KernelGrad(ard_num_dims=x.shape[1], lengthscale_prior=prior)
        self.covar_module = ScaleKernel(inner, outputscale_prior=GammaPrior(*OUTPUTSCALE_PRIOR))
        self.double()
        inner.lengthscale = torch.full_like(inner.lengthscale, 0.4)
        likelihood.noise_covar = None
        likelihood.raw_noise_constraint.lower_bound.fill_(0.1 * _NUGGET)
        likelihood.noise = _NUGGET
        likelihood.raw_noise.requires_grad_(False)

    def forward(self, x: Tensor) -> MultitaskMultivariateNormal:
        """Prior at x."""
        return MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))
