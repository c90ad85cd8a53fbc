"""Plain BoTorch fitting the same d + 1 Gaussian processes: what the speed of ours is measured against."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.model_list_gp_regression import ModelListGP
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood  # type: ignore[import-untyped]
from gpytorch.settings import min_fixed_noise  # type: ignore[import-untyped]
from torch import Tensor

from eign.arrays import Array
from eign.models.independent.fitting import FIRST_JITTER
from eign_lab.rivals.botorch_loop import paper_kernel

Form = Literal["list", "batched"]
FORMS: Final[tuple[Form, ...]] = ("list", "batched")


@dataclass(frozen=True)
class PeerModel:
    """A BoTorch model of all processes, with what is needed to fit it and read its hyperparameters."""

    model: ModelListGP | SingleTaskGP
    form: Form

    @property
    def parts(self) -> Sequence[Any]:
        """The models that carry kernels: one a process, or one for all."""
        return [*self.model.models] if isinstance(self.model, ModelListGP) else [self.model]

    def theta(self) -> Array:
        """Logarithms of lengthscales and outputscale, `B x (d + 1)`."""
        rows = []
        for part in self.parts:
            kernel = part.covar_module
            length = kernel.base_kernel.lengthscale.detach().squeeze(-2).reshape(-1, kernel.base_kernel.ard_num_dims)
            scale = kernel.outputscale.detach().reshape(-1, 1)
            rows.append(torch.cat([length, scale], dim=1).log())
        return np.asarray(torch.cat(rows).numpy())


def build(x: Tensor, targets: Tensor, form: Form, *, start: PeerModel | None = None) -> PeerModel:
    """The processes on standardised targets, `n x d, n x B`, with our priors and, as noise, our jitter.

    Args:
        x: Points.
        targets: One column a process.
        form: A list of models, or one batched model.
        start: A fitted model to take the hyperparameters from; else BoTorch's start, the prior's mode.
    """
    if form == "batched":
        model = _single(x, targets, batch=targets.shape[1])
    else:
        model = ModelListGP(*(_single(x, targets[:, b : b + 1], batch=0) for b in range(targets.shape[1])))
    if start is not None:
        model.load_state_dict({**model.state_dict(), **_hyperparameters(start.model)})
    return PeerModel(model, form)


def fit(peer: PeerModel) -> None:
    """`fit_gpytorch_mll` as it comes."""
    mll_type = SumMarginalLogLikelihood if peer.form == "list" else ExactMarginalLogLikelihood
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(mll_type(peer.model.likelihood, peer.model))


def posterior_and_gradient(peer: PeerModel, points: Tensor) -> Tensor:
    """The derivative of the sum of all posterior means and variances at `m x d` points, by autograd."""
    x = points.clone().unsqueeze(-2).requires_grad_()
    posterior = peer.model.posterior(x)
    total = posterior.mean.sum() + posterior.variance.sum()
    return torch.autograd.grad(total, x)[0]


def _single(x: Tensor, targets: Tensor, *, batch: int) -> SingleTaskGP:
    kernel = paper_kernel(x.shape[-1], shape=torch.Size([batch] if batch > 1 else []))
    # GPyTorch takes no less than 1e-6 unless it is asked to.
    with warnings.catch_warnings(), min_fixed_noise(double_value=FIRST_JITTER):
        warnings.simplefilter("ignore")
        return SingleTaskGP(
            x, targets, train_Yvar=torch.full_like(targets, FIRST_JITTER), covar_module=kernel, outcome_transform=None
        ).to(torch.float64)


def _hyperparameters(model: ModelListGP | SingleTaskGP) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if "covar" in name or "mean" in name}
