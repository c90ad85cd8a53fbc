"""The paper's surrogate: one Gaussian process for f and one for each partial derivative, all independent."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.data import Observations
from eign.models.first_derivatives import first_derivatives_only
from eign.models.independent.fitting import LEAST_JITTER, Fit, WarmStart, fit_problems
from eign.models.independent.hyperparameters import Hyperparameters
from eign.models.independent.map_objective import FitProblem
from eign.models.independent.processes import (
    Data,
    Processes,
    condition,
    extended,
    joint_normal,
    moments,
    moments_and_jacobians,
)
from eign.models.kernels import correlation
from eign.models.posteriors import GradientPosterior
from eign.models.tensors import as_observations, as_points, as_rows
from eign.models.value_model import ObservedModel, check_noise
from eign.numerics.threads import single_threaded_blas
from eign.standardization import Standardization, standardize_independent


class ValueAndGradientMoments(NamedTuple):
    """Posterior moments at m points in the units given: of f, `m`, and of its gradient, `m x d`."""

    mean: Tensor
    variance: Tensor
    grad_mean: Tensor
    grad_variance: Tensor


class MomentJacobians(NamedTuple):
    """Derivatives of `ValueAndGradientMoments` with respect to the point: `m x d` for f, `m x d x d` for its gradient.

    The last dimension is the coordinate of the point.
    """

    mean: Tensor
    variance: Tensor
    grad_mean: Tensor
    grad_variance: Tensor


@final
class IndependentGradientGP(ObservedModel):
    """Independent Gaussian processes for f and its d partial derivatives, as a BoTorch model of f.

    It standardises inside and answers in the units given. `eign.models.fit` finds the hyperparameters; until then they
    are the prior's. The gradient does not inform the posterior of f: for that there is `JointGradientGP`.
    """

    def __init__(
        self,
        X: Tensor,
        Y: Tensor,
        G: Tensor | None = None,
        *,
        Yvar: Tensor | None = None,
        Gvar: Tensor | None = None,
        kernel: Literal["matern52", "rbf"] = "matern52",
        noise: float | Literal["learn"] | None = None,
        standardization: Standardization | None = None,
    ) -> None:
        """Take the data; nothing is fitted yet.

        Args:
            X: Points in the unit cube, `n x d`.
            Y: Values, `n x 1`; NaN = missing.
            G: Gradients with respect to the unit cube, `n x d`; NaN = missing, component by component.
            Yvar: Known noise variances of the values, `n x 1`; NaN = unknown.
            Gvar: Known noise variances of the gradients, `n x d`; NaN = unknown.
            kernel: The correlation of all processes.
            noise: A variance in standardised units, below which no noise variance goes, or "learn" to add a fitted one
                for each process. None and 0 are no noise, but for `jitter`.
            standardization: The units the processes work in; None takes them from the data at each fit.
        """
        super().__init__()
        check_noise(noise)
        self.kernel = kernel
        self.noise = noise
        self._correlation = correlation(kernel)
        self._observations = as_observations(X, Y, G, Yvar=Yvar, Gvar=Gvar)
        self._given_standardization = standardization
        self._standardization = standardization or standardize_independent(self._observations)
        self._hyperparameters = Hyperparameters.default(self._observations.dim)
        self._warm_start: WarmStart | None = None
        self._fitted_data: Data | None = None
        self._processes: Processes | None = None
        self._extends: IndependentGradientGP | None = None

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Of f first, then of its partial derivatives, in standardised units."""
        return self._hyperparameters

    @property
    def jitter(self) -> Array:
        """What each process has on its diagonal beside noise, as a share of the variance of its data, `d + 1`.

        With given units it is a share of the prior variance. Without noise it is 1e-12; after a fit it
        is 1e-9, less if points close to each other agree, and more if they do not or if a factorisation failed. With an
        assumed level of noise it is 0, or more after a failure.
        """
        return self._conditioned().factor.jitter

    @property
    def is_fitted(self) -> bool:
        """As the base class says."""
        return self._warm_start is not None

    @property
    def learns_noise(self) -> bool:
        """As the base class says."""
        return self.noise == "learn"

    @property
    def warm_start(self) -> WarmStart | None:
        """What the last fit left to the next one; None before the first."""
        return self._warm_start

    def with_hyperparameters(
        self, hyperparameters: Hyperparameters, warm_start: WarmStart | None = None
    ) -> "IndependentGradientGP":
        """The same data with these hyperparameters; a later fit starts from them, or from what an earlier one left."""
        shape = (self._observations.dim + 1, self._observations.dim)
        if hyperparameters.lengthscale.shape != shape:
            raise ValueError(f"lengthscales have shape {hyperparameters.lengthscale.shape}, expected {shape}")
        model = self._copy(self._observations)
        model._hyperparameters = hyperparameters
        theta = hyperparameters.theta(learn_noise=self.learns_noise)
        model._warm_start = WarmStart.at(theta) if warm_start is None else warm_start
        return model

    def fit_hyperparameters(self) -> Fit:
        """Maximise the posterior of all processes' hyperparameters, in place; `eign.models.fit` calls this."""
        if self._given_standardization is None:
            self._standardization = standardize_independent(self._observations)
        self._processes = self._extends = None
        data = self._fitted_data = self._data(self._observations)
        problems = [
            FitProblem(data.x[seen], target[seen], noise[seen])
            for target, noise, seen in zip(data.targets, data.noise, data.observed, strict=True)
        ]
        with single_threaded_blas():
            result = fit_problems(
                problems,
                self._correlation,
                learn_noise=self.learns_noise,
                warm=self._warm_start,
                jitter=self._least_jitter,
                last=self._hyperparameters.jitter,
            )
        self._warm_start = result.warm_start
        self._hyperparameters = Hyperparameters.from_theta(result.theta, result.mean, result.jitter)
        return result

    def standardized_normal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance of f at q points, `... x q x d -> ... x q, ... x q x q`; gradients take no part."""
        return joint_normal(self._conditioned(), 0, X)

    def standardized_noise(self) -> float:
        """What was assumed, what was learned, and the jitter."""
        processes = self._conditioned()
        jitter = float(processes.factor.jitter[0] * processes.unit[0])
        return self._assumed_noise + float(self._hyperparameters.noise[0]) + jitter

    def gradient_posterior(self, X: Tensor) -> GradientPosterior:
        """The posterior of each partial derivative at each point, `... x d -> ... x d`; differentiable once."""
        points = as_points(X, self.dim)
        flat = points.reshape(-1, points.shape[-1])
        mean, variance = _PartialDerivatives.apply(flat, self)  # type: ignore[no-untyped-call]
        return GradientPosterior(mean.reshape(points.shape), variance.reshape(points.shape))

    def moments(self, X: Tensor) -> ValueAndGradientMoments:
        """The moments of f and its gradient at each point, without autograd, `m x d -> m, m, m x d, m x d`."""
        mean, variance = moments(self._conditioned(), as_rows(X, self.dim))
        return ValueAndGradientMoments(*self._in_given_units(mean, variance))

    def moments_and_jacobians(self, X: Tensor) -> tuple[ValueAndGradientMoments, MomentJacobians]:
        """The same and the derivatives with respect to each point, in closed form."""
        points = as_rows(X, self.dim)
        (mean, variance), (mean_slope, variance_slope) = moments_and_jacobians(self._conditioned(), points)
        units = self._standardization
        grad_scale = torch.from_numpy(np.array(units.grad_scale))[:, None]
        slope, bend = torch.from_numpy(mean_slope), torch.from_numpy(variance_slope)
        jacobians = MomentJacobians(
            units.y_scale * slope[:, 0],
            units.y_scale**2 * bend[:, 0],
            grad_scale * slope[:, 1:],
            grad_scale.square() * bend[:, 1:],
        )
        return ValueAndGradientMoments(*self._in_given_units(mean, variance)), jacobians

    def conditioned(self) -> Processes:
        """The factorised processes in standardised units; the same object until the next fit."""
        return self._conditioned()

    @property
    def _assumed_noise(self) -> float:
        return 0.0 if self.noise is None or self.noise == "learn" else float(self.noise)

    @property
    def _least_jitter(self) -> float:
        return 0.0 if self._assumed_noise else LEAST_JITTER

    def _conditioned(self) -> Processes:
        """The factorised processes, made when first needed: a refit right after `append` needs no extension."""
        if self._processes is not None:
            return self._processes
        older, self._extends = self._extends, None
        with single_threaded_blas():
            if older is None:
                data = self._fitted_data or self._data(self._observations)
                hyper = self._hyperparameters
                unit = None if self._given_standardization is None else hyper.outputscale
                self._processes = condition(self._correlation, hyper, data, jitter=self._least_jitter, unit=unit)
            else:
                new = self._observations[len(older.observations) :]
                self._processes = extended(older._conditioned(), self._data(new))
        return self._processes

    def _data(self, observations: Observations) -> Data:
        """Standardised, the process of f first."""
        usable = self._standardization.apply(observations.usable)
        targets = np.concatenate([usable.y[:, None], usable.grad], axis=1).T
        known = np.concatenate([usable.y_var[:, None], usable.grad_var], axis=1).T
        noise = np.maximum(np.where(np.isnan(known), 0.0, known), self._assumed_noise)
        return Data(np.array(usable.x), np.ascontiguousarray(targets), np.ascontiguousarray(noise))

    def _extended_by(self, observations: Observations) -> "IndependentGradientGP":
        model = self._copy(observations)
        model._extends = self
        return model

    def _copy(self, observations: Observations) -> "IndependentGradientGP":
        model = object.__new__(IndependentGradientGP)
        ObservedModel.__init__(model)
        for name in ("kernel", "noise", "_correlation", "_given_standardization", "_hyperparameters", "_warm_start"):
            setattr(model, name, getattr(self, name))
        model._observations, model._standardization = observations, self._standardization
        model._processes = model._extends = model._fitted_data = None
        return model

    def _learned(self) -> dict[str, Array]:
        numbers = {name: getattr(self._hyperparameters, name) for name in Hyperparameters.__slots__}
        if self._warm_start is not None:
            numbers |= {f"warm_start.{name}": getattr(self._warm_start, name) for name in WarmStart.__slots__}
        return numbers

    def _relearn(self, numbers: Mapping[str, Array], units: Standardization, *, is_fitted: bool) -> None:
        hyperparameters = Hyperparameters(**{name: numbers[name] for name in Hyperparameters.__slots__})
        theta = hyperparameters.theta(learn_noise=self.learns_noise)
        warm_start = WarmStart.at(theta) if is_fitted else None
        parts: dict[str, Any] = {name: numbers.get(f"warm_start.{name}") for name in WarmStart.__slots__}
        if is_fitted and all(part is not None for part in parts.values()):
            parts["rival_owner"] = parts["rival_owner"].astype(np.intp)
            warm_start = WarmStart(**parts).checked(theta.shape)
        self._hyperparameters, self._warm_start, self._standardization = hyperparameters, warm_start, units
        self._processes = self._extends = self._fitted_data = None

    def _in_given_units(self, mean: Array, variance: Array) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        units = self._standardization
        parts = (
            units.y_shift + units.y_scale * mean[:, 0],
            units.y_scale**2 * variance[:, 0],
            units.grad_shift + units.grad_scale * mean[:, 1:],
            units.grad_scale**2 * variance[:, 1:],
        )
        first, second, third, fourth = (torch.from_numpy(part) for part in parts)
        return first, second, third, fourth


class _PartialDerivatives(torch.autograd.Function):
    """Mean and variance of the partial derivatives at `m x d` points, with their Jacobians in closed form."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, model: IndependentGradientGP) -> tuple[Tensor, Tensor]:
        """Moments, `m x d` each; the Jacobians only if they will be needed."""
        if not ctx.needs_input_grad[0]:
            result = model.moments(x)
            return result.grad_mean, result.grad_variance
        result, jacobians = model.moments_and_jacobians(x)
        ctx.save_for_backward(jacobians.grad_mean, jacobians.grad_variance)
        return result.grad_mean, result.grad_variance

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, mean: Tensor, variance: Tensor) -> tuple[Tensor, None]:
        """Row vectors times Jacobians."""
        mean_jacobian, variance_jacobian = ctx.saved_tensors
        product = torch.einsum("mi,mij->mj", mean, mean_jacobian)
        return product + torch.einsum("mi,mij->mj", variance, variance_jacobian), None
