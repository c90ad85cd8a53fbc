"""What makes a surrogate a BoTorch model of f: posterior, conditioning and fantasies from one joint normal."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.posterior import Posterior
from botorch.sampling.base import MCSampler
from torch import Tensor

from eign.arrays import Array
from eign.data import Observations
from eign.models.posteriors import ValuePosterior, condition_normal
from eign.models.stored_state import WORDS, as_tensors, check_words, read_numbers, read_units
from eign.models.tensors import as_double, as_noise, as_observations, as_points
from eign.standardization import Standardization


class ValueModel(Model, ABC):
    """A BoTorch model with the one output f; subclasses say how f is distributed in standardised units."""

    num_outputs: int = 1

    @property
    @abstractmethod
    def dim(self) -> int:
        """Coordinates of a point."""

    @property
    @abstractmethod
    def standardization(self) -> Standardization:
        """The map between the units given and those of `standardized_normal`."""

    @abstractmethod
    def standardized_normal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance of f at q points together, differentiable, `... x q x d -> ... x q, ... x q x q`."""

    @abstractmethod
    def standardized_noise(self) -> float:
        """Noise variance of a new value of which nothing else is known."""

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of f at q points in the units given, `batch x q x d -> batch x q x 1`.

        Args:
            X: The points, in the unit cube.
            output_indices: None or [0].
            observation_noise: True adds the model's noise variance, a tensor `... x q x 1` adds those.
            posterior_transform: Applied to the result.
        """
        if output_indices not in (None, [0]):
            raise ValueError(f"output_indices={output_indices}, but the model has the one output f")
        mean, covariance = self.standardized_normal(as_points(X, self.dim, q=True))
        if observation_noise is not False:
            noise = self.noise_variances(None if observation_noise is True else observation_noise)
            covariance = covariance + torch.diag_embed(noise.expand(mean.shape))
        units = self.standardization
        posterior = ValuePosterior(mean, covariance, shift=units.y_shift, scale=units.y_scale)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **unknown: Any
    ) -> "ConditionedGP":
        """The model of f given also values Y, `... x k x 1`, at X, `... x k x d`; their batches broadcast.

        Args:
            X: The points, in the unit cube.
            Y: Their values.
            noise: Variances of the noise on Y, which broadcast to it; None is the model's own.
            **unknown: Nothing: gradients go to `append`.

        Raises:
            TypeError: there are other arguments.
            ValueError: a shape is wrong, or a variance is negative.
        """
        if unknown:
            raise TypeError(
                f"condition_on_observations takes X, Y and noise, got {', '.join(unknown)}; append(X, Y, G) of the "
                "model takes gradients too, and Yvar and Gvar"
            )
        return ConditionedGP(self, X, Y, noise=noise)

    def fantasize(
        self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **_: Any
    ) -> "ConditionedGP":
        """Condition on values sampled with noise at X, `batch x k x d`; gradients pass through the samples."""
        noisy = self.posterior(X, observation_noise=True if observation_noise is None else observation_noise)
        return ConditionedGP(self, X, sampler(noisy), noise=observation_noise)

    def noise_variances(self, noise: Tensor | None) -> Tensor:
        """Noise variances in the units given, `... x k x 1`, standardised, `... x k`; None is the model's own."""
        if noise is None:
            return torch.tensor([self.standardized_noise()], dtype=torch.float64)
        return noise.to(torch.float64).squeeze(-1) / self.standardization.y_scale**2


# Where GPyTorch's models keep what ours have elsewhere.
_OF_GPYTORCH = {
    # `model` is what fit_gpytorch_mll looks for in a likelihood.
    **dict.fromkeys(("likelihood", "prior", "model"), "eign.models.fit(model) fits it"),
    **dict.fromkeys(("train_inputs", "train_targets"), "the data are model.observations"),
    **dict.fromkeys(("covar_module", "mean_module"), "kernel and mean are in model.hyperparameters"),
}


class ObservedModel(ValueModel):
    """A model of f, given values and gradients of f; subclasses set what they observed and how it is standardised."""

    kernel: str
    lengthscales: str = "each"
    _observations: Observations
    _standardization: Standardization
    _given_standardization: Standardization | None

    # A module looks for parameters in what it is given, which takes longer than all of `append`; there are none here.
    __setattr__ = object.__setattr__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """Nothing: attributes that are not there, with where to look."""
        hint = f"; {_OF_GPYTORCH[name]}" if name in _OF_GPYTORCH else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: this is one model."""
        return torch.Size()

    def __repr__(self) -> str:
        """What it is: data, kernel, noise, fitted or not."""
        data, noise = self._observations, ", noise='learn'" if self.learns_noise else ""
        seen = f"n={len(data)}, dim={data.dim}, gradients={int(data.has_grad.any(axis=1).sum())}"
        return f"{type(self).__name__}({seen}, kernel={self.kernel!r}{noise}, fitted={self.is_fitted})"

    @property
    def dim(self) -> int:
        """As the base class says."""
        return self._observations.dim

    @property
    def observations(self) -> Observations:
        """The data, in the units given."""
        return self._observations

    @property
    def standardization(self) -> Standardization:
        """The map between the units given and those of the hyperparameters."""
        return self._standardization

    def append(
        self,
        X: Tensor,
        Y: Tensor,
        G: Tensor | None = None,
        *,
        Yvar: Tensor | None = None,
        Gvar: Tensor | None = None,
    ) -> Self:
        """A new model with more observations, the same hyperparameters and standardisation.

        Its factor extends this model's, in O(n^2), when it is first needed: not if a fit comes before.
        """
        return self._extended_by(self._observations.followed_by(as_observations(X, Y, G, Yvar=Yvar, Gvar=Gvar)))

    @property
    @abstractmethod
    def is_fitted(self) -> bool:
        """Whether the hyperparameters come from a fit, and not from the prior: a fit then starts from them."""

    @property
    @abstractmethod
    def learns_noise(self) -> bool:
        """Whether noise is one of the hyperparameters."""

    @abstractmethod
    def _extended_by(self, observations: Observations) -> Self:
        """The model of these observations, which begin with its own."""

    @abstractmethod
    def _learned(self) -> dict[str, Array]:
        """The hyperparameters by their keys in `state_dict`."""

    @abstractmethod
    def _relearn(self, numbers: Mapping[str, Array], units: Standardization, *, is_fitted: bool) -> None:
        """Take hyperparameters, in their units, in place."""

    def _words(self) -> dict[str, Any]:
        """What a state has to agree in, and whether it is fitted."""
        return {
            "model": type(self).__name__,
            "kernel": self.kernel,
            "lengthscales": self.lengthscales,
            "noise": "learned" if self.learns_noise else "given",
            "dimension": self._observations.dim,
            "is_fitted": self.is_fitted,
        }

    # The hooks of `state_dict` and `load_state_dict`, with their own names for the arguments.
    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:  # noqa: ARG002
        tensors = as_tensors(self._learned(), self._standardization)
        destination.update({prefix + name: value for name, value in tensors.items()})
        destination[prefix + WORDS] = self._words()

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,  # noqa: ARG002
        strict: bool,  # noqa: ARG002
        missing_keys: list[str],  # noqa: ARG002
        unexpected_keys: list[str],  # noqa: ARG002
        error_msgs: list[str],
    ) -> None:
        """All or nothing: a part of a state means nothing, also if `strict` is False."""
        stored = {name.removeprefix(prefix): value for name, value in state_dict.items() if name.startswith(prefix)}
        try:
            check_words(stored, self._words())
            own = as_tensors(self._learned(), self._standardization)
            required = {name: value.numpy() for name, value in own.items() if not name.startswith("warm_start.")}
            numbers = read_numbers(stored, required)
            units = read_units(numbers, self._given_standardization)
            self._relearn(numbers, units, is_fitted=bool(stored[WORDS]["is_fitted"]))
        except ValueError as error:
            error_msgs.append(str(error))


def check_noise(noise: object) -> None:
    """Refuse what is no noise of a model.

    Raises:
        ValueError: it is neither a variance, "learn" nor None.
    """
    if noise not in (None, "learn") and not (isinstance(noise, float | int) and 0 <= noise < float("inf")):
        raise ValueError(f'noise={noise!r}, expected a variance in standardised units, "learn" or None')


@final
class ConditionedGP(ValueModel):
    """Another model given further values of f, possibly a batch of them.

    The further points join each posterior and are conditioned on there; the other model's factor stays as it is.
    """

    def __init__(self, model: ValueModel, X: Tensor, Y: Tensor, *, noise: Tensor | None = None) -> None:
        """From values Y, `... x k x 1`, at X, `... x k x d`, with noise variances like Y (None: the model's own)."""
        super().__init__()
        x, y = as_points(X, model.dim, q=True), as_double(Y, "Y")
        if y.shape[-2:] != (x.shape[-2], 1):
            raise ValueError(f"Y has shape {tuple(Y.shape)}, expected (..., {X.shape[-2]}, 1) for X {tuple(X.shape)}")
        self._model = model
        self._x, self._y = x, y.squeeze(-1)
        self._given_noise = None if noise is None else as_noise(noise, x, y)

    def __repr__(self) -> str:
        """What was conditioned on what."""
        batch = f", batch_shape={tuple(self.batch_shape)}" if self.batch_shape else ""
        return f"{type(self).__name__}(n={self._x.shape[-2]}{batch}, model={self._model!r})"

    @property
    def batch_shape(self) -> torch.Size:
        """Of the values conditioned on: fantasies first."""
        return torch.Size(torch.broadcast_shapes(self._x.shape[:-2], self._y.shape[:-1]))

    @property
    def dim(self) -> int:
        """That of the model underneath."""
        return self._model.dim

    @property
    def standardization(self) -> Standardization:
        """That of the model underneath."""
        return self._model.standardization

    def standardized_normal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """As the base class says, with the batch of the values in front of that of X."""
        # Here and not before: a fit changes the units of the model underneath, and so does a state that it loads.
        units, noise = self.standardization, self._model.noise_variances(self._given_noise)
        # Values may be a batch at the same points, which costs one factor; noise that differs costs one for each.
        batch = torch.broadcast_shapes(X.shape[:-2], self._x.shape[:-2], noise.shape[:-1])
        together = torch.cat([part.expand(*batch, *part.shape[-2:]) for part in (X, self._x)], dim=-2)
        mean, covariance = self._model.standardized_normal(together)
        return condition_normal(mean, covariance, observed=(self._y - units.y_shift) / units.y_scale, noise=noise)

    def standardized_noise(self) -> float:
        """That of the model underneath."""
        return self._model.standardized_noise()
