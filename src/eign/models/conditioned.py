"""A model of f given further values that were never observed: fantasies, one set or a batch of sets."""

from __future__ import annotations

from typing import Any, Protocol, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.posterior import Posterior
from botorch.sampling.base import MCSampler
from torch import Tensor

from eign.data import Standardization
from eign.models.posteriors import condition_normal


class ValueModel(Protocol):
    """What a model must tell about f to be conditioned."""

    @property
    def standardization(self) -> Standardization:
        """The map between the units given and the model's."""

    def joint_normal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Standardised mean and covariance of f at q points, `... x q x d -> ... x q, ... x q x q`."""

    def standardized_noise(self, noise: Tensor | None) -> Tensor:
        """Noise variances of values, `... x q x 1` in the units given -> `... x q`; None is the model's own."""

    def value_posterior(
        self,
        mean: Tensor,
        covariance: Tensor,
        *,
        output_indices: list[int] | None,
        observation_noise: bool | Tensor,
        posterior_transform: PosteriorTransform | None,
    ) -> Posterior:
        """Standardised moments as a posterior in the units given."""


@final
class ConditionedGP(Model):
    """f of a model given further values.

    The further points join each posterior and are conditioned on there, so that gradients pass through them, batches
    broadcast, and the factor of the data stays as it is.
    """

    num_outputs: int = 1

    def __init__(self, parent: ValueModel, X: Tensor, Y: Tensor, *, noise: Tensor | None = None) -> None:
        """From values Y, `... x q x 1`, at X, `... x q x d`, with noise variances like Y (None: the parent's)."""
        super().__init__()
        if Y.shape[-2:] != (X.shape[-2], 1):
            raise ValueError(f"Y has shape {tuple(Y.shape)}, expected (..., {X.shape[-2]}, 1) for X {tuple(X.shape)}")
        units = parent.standardization
        self._parent = parent
        self._x = X.to(torch.float64)
        self._y = (Y.to(torch.float64).squeeze(-1) - units.y_shift) / units.y_scale
        self._noise = _for_points(parent.standardized_noise(noise), X.shape[-2])

    @property
    def batch_shape(self) -> torch.Size:
        """Of the values conditioned on: fantasies first."""
        return _broadcast(self._x.shape[:-2], self._y.shape[:-1])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of f at q points, `batch x q x d -> (fantasies x) batch x q x 1`."""
        mean, covariance = self._parent.joint_normal(_concatenated(X.to(torch.float64), self._x))
        mean, covariance = condition_normal(mean, covariance, observed=self._y, noise=self._noise)
        return self._parent.value_posterior(
            mean,
            covariance,
            output_indices=output_indices,
            observation_noise=observation_noise,
            posterior_transform=posterior_transform,
        )

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **_: Any) -> ConditionedGP:
        """The posterior given also values Y, `... x q x 1`, at X, `... x q x d`."""
        units = self._parent.standardization
        old = (self._y * units.y_scale + units.y_shift).unsqueeze(-1)
        model = ConditionedGP(self._parent, _concatenated(self._x, X.to(torch.float64)), _concatenated(old, Y))
        added = _for_points(self._parent.standardized_noise(noise), X.shape[-2])
        model._noise = _concatenated(self._noise.unsqueeze(-1), added.unsqueeze(-1)).squeeze(-1)
        return model

    def fantasize(
        self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **_: Any
    ) -> ConditionedGP:
        """Condition on values sampled at X, `batch x q x d`, from the posterior with noise."""
        return fantasize(self, X, sampler, observation_noise)


def fantasize(model: Any, X: Tensor, sampler: MCSampler, noise: Tensor | None) -> ConditionedGP:
    """Condition a model on values sampled from its posterior with noise; gradients pass through the samples."""
    values = sampler(model.posterior(X, observation_noise=True if noise is None else noise))
    conditioned: ConditionedGP = model.condition_on_observations(X, values, noise=noise)
    return conditioned


def _concatenated(first: Tensor, second: Tensor) -> Tensor:
    """Along the points, the batches broadcast."""
    batch = _broadcast(first.shape[:-2], second.shape[:-2])
    return torch.cat([part.expand(*batch, *part.shape[-2:]) for part in (first, second)], dim=-2)


def _for_points(noise: Tensor, count: int) -> Tensor:
    """One variance a point, with no more batch dimensions than were given."""
    return noise.expand(*noise.shape[:-1], count)


def _broadcast(*shapes: torch.Size) -> torch.Size:
    shape: torch.Size = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return shape
