"""GPyTorch's model of values and gradients, as its tutorial builds it: what the speed of ours is measured against."""

from typing import Any

import gpytorch  # type: ignore[import-untyped]
import torch
from torch import Tensor

from eign_lab.speed.fits import Samples

_NUGGET = 1e-6


class _DerivativeGP(gpytorch.models.ExactGP):  # type: ignore[misc]
    def __init__(self, x: Tensor, targets: Tensor, likelihood: Any) -> None:
        super().__init__(x, targets, likelihood)
        self.mean_module = gpytorch.means.ConstantMeanGrad()
        kernel = gpytorch.kernels.Matern52KernelGrad(ard_num_dims=x.shape[1])
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x: Tensor) -> Any:
        """The prior at some points."""
        return gpytorch.distributions.MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))


def peer_model(data: Samples) -> tuple[Any, Any]:
    """Model and likelihood of standardised data, in float64, with lengthscales that suit the dimension."""
    y = (data.y - data.y.mean()) / data.y.std()
    targets = torch.cat([y, data.grad / data.y.std()], dim=1)
    constraint = gpytorch.constraints.GreaterThan(1e-9)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(
        num_tasks=targets.shape[1], rank=0, has_task_noise=False, noise_constraint=constraint
    )
    model = _DerivativeGP(data.x, targets, likelihood).double()
    likelihood.double()
    likelihood.noise = torch.tensor(_NUGGET, dtype=torch.float64)
    model.covar_module.base_kernel.lengthscale = torch.tensor(0.4 * (data.x.shape[1] / 6.0) ** 0.5, dtype=torch.float64)
    model.train()
    likelihood.train()
    return model, likelihood
