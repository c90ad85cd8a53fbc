"""One Gaussian process of f and its gradient: a gradient observation informs f, and a value informs the gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Final, Literal, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.data import Observations
from eign.models.derivative_kernels import default_terms
from eign.models.independent.map_objective import NOISE_PRIOR
from eign.models.joint.fitting import (
    JointData,
    LogPosterior,
    fit_hyperparameters,
    negative_log_likelihood,
    negative_log_posterior,
    profile_log_likelihoods,
)
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.moments import (
    ConditionedRows,
    condition,
    differentiable_joint,
    differentiable_values,
    extended,
    joint_moments,
    mean_and_gradient,
    value_moments,
    value_moments_and_gradients,
)
from eign.models.tensors import as_observations, as_points, as_rows
from eign.models.value_model import ObservedModel, check_noise
from eign.numerics.cholesky import FactorizationError
from eign.numerics.lbfgs import Minimum
from eign.numerics.threads import single_threaded_blas
from eign.standardization import Standardization, standardize_joint

# Below, a second BLAS thread costs more in synchronisation than it computes.
_ROWS_WORTH_THREADS: Final = 1000


class VectorPosterior(NamedTuple):
    """Normal distribution of a vector at each point.

    Attributes:
        mean: `... x k`.
        covariance: `... x k x k`.
    """

    mean: Tensor
    covariance: Tensor

    @property
    def variance(self) -> Tensor:
        """`... x k`."""
        return self.covariance.diagonal(dim1=-2, dim2=-1)


class ValueMomentsAndGradients(NamedTuple):
    """Mean and variance of f at m points, `m`, and their derivatives with respect to the point, `m x d`."""

    mean: Tensor
    variance: Tensor
    mean_gradient: Tensor
    variance_gradient: Tensor


@final
class JointGradientGP(ObservedModel):
    """The exact joint Gaussian process of f and its gradient, as a BoTorch model of f.

    Any subset of values and partial derivatives may be observed. It standardises inside and answers in the units given.
    `eign.models.fit` finds the hyperparameters; until then they are the prior's. The constant mean is not one of them:
    it is the generalised least squares estimate, which follows the data in `append` too.
    """

    def __init__(
        self,
        X: Tensor,
        Y: Tensor,
        G: Tensor | None = None,
        *,
        Yvar: Tensor | None = None,
        Gvar: Tensor | None = None,
        kernel: str = "matern52",
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
            kernel: "matern52", "rbf", "additive" (mean of one-dimensional Matern-5/2), "additive+full" (the sum of the
                first and the third), "two-additive+full" (with a slow and a fast additive part), or
                "two-additive+full-rbf" (the same with RBF for Matern-5/2).
            noise: A noise variance for every row in standardised units beside what is known, or "learn" to fit one for
                values and one for gradients. None is no noise, but for a nugget relative to the prior variance.
            standardization: The units the process works in; None takes them from the data at each fit.
        """
        super().__init__()
        check_noise(noise)
        self.kernel = kernel
        self._observations = as_observations(X, Y, G, Yvar=Yvar, Gvar=Gvar)
        self._given_standardization = standardization
        self._standardization = standardization or standardize_joint(self._observations)
        terms = default_terms(kernel, self._observations.dim)
        level = float(np.exp(NOISE_PRIOR[0])) if noise == "learn" else float(noise or 0.0)
        self._hyperparameters = JointHyperparameters(terms, (level, level), noise == "learn")
        self._warm = False
        self._rows: ConditionedRows | None = None
        # Factored rows of the first so many observations, which the others extend when rows are first needed.
        self._base: tuple[ConditionedRows, int] | None = None

    @property
    def hyperparameters(self) -> JointHyperparameters:
        """Kernel and noise in standardised units."""
        return self._hyperparameters

    @property
    def is_fitted(self) -> bool:
        """As the base class says."""
        return self._warm

    @property
    def learns_noise(self) -> bool:
        """As the base class says."""
        return self._hyperparameters.learned

    @property
    def mean(self) -> float:
        """The constant mean, in the units given."""
        return self._standardization.y_shift + self._standardization.y_scale * self._conditioned().factored.mean

    @property
    def jitter(self) -> float:
        """What each row has on its diagonal beside noise, as a share of its prior variance."""
        return self._conditioned().factored.nugget

    def with_hyperparameters(self, hyperparameters: JointHyperparameters) -> JointGradientGP:
        """The same data with these hyperparameters; a later fit starts from them."""
        dimension = len(hyperparameters.terms[0].lengthscale)
        if dimension != self._observations.dim:
            raise ValueError(f"hyperparameters are for {dimension} coordinates, expected {self._observations.dim}")
        model = self._copy(self._observations)
        model._hyperparameters, model._warm = hyperparameters, True
        return model

    def fit_hyperparameters(self, *, restart: bool = False, evaluations: int = 60) -> Minimum:
        """Maximise the posterior of the hyperparameters, in place; `eign.models.fit` calls this.

        A first fit looks at several starts. A later one, also of a model that `append` made, starts from the last.

        Args:
            restart: Whether a later fit also looks at the starts of a first one, and takes the better end.
            evaluations: Limit on the evaluations of the objective in a descent.

        Returns:
            How the search ended, with the negative log posterior in standardised units.
        """
        if self._given_standardization is None:
            units = standardize_joint(self._observations)
            self._hyperparameters = self._hyperparameters.rescaled(self._standardization.y_scale, units.y_scale)
            self._standardization = units
        self._rows = self._base = None
        data = self._data(self._observations)[1]
        modes = [True, False] if self._warm and restart else [self._warm]
        with single_threaded_blas() if data.pairs.rows < _ROWS_WORTH_THREADS else nullcontext():
            ends = [
                fit_hyperparameters(data, self._hyperparameters, warm=warm, evaluations=evaluations) for warm in modes
            ]
        self._hyperparameters, end = min(ends, key=lambda result: float(result[1].value[0]))
        self._warm = True
        return end

    def log_likelihood(self) -> float:
        """Log density of all observed numbers in the units given, at the hyperparameters and the mean of the model.

        It is comparable between kernels, and between transformed outputs once the Jacobian is added.
        """
        rows = self._conditioned()
        return -negative_log_likelihood(rows.factored, rows.row_component) - len(rows.row_component) * float(
            np.log(self._standardization.y_scale)
        )

    def profile_log_likelihoods(self, alternatives: Sequence[Observations]) -> Array:
        """Log density of other values and gradients in the same rows, each at its best mean and outputscale.

        Cheap beside a fit: all share the factorisations. A model that was never fitted takes the best over the starts.
        """
        data = self._data(self._observations)[1]
        targets = np.stack([self._data(other)[1].targets for other in alternatives])
        constant = data.pairs.rows * float(np.log(self._standardization.y_scale))
        with single_threaded_blas() if data.pairs.rows < _ROWS_WORTH_THREADS else nullcontext():
            found = profile_log_likelihoods(data, targets, self._hyperparameters, warm=self._warm)
        return np.asarray(found - constant)

    def negative_log_posterior(self) -> LogPosterior:
        """What a fit minimises, at the hyperparameters of the model, with gradient and curvature; standardised units.

        One matrix of all rows is allocated, and everything happens in it.
        """
        data = self._data(self._observations)[1]
        return negative_log_posterior(self._hyperparameters.theta, data, self._hyperparameters)

    def standardized_normal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance of f at q points together, `... x q x d -> ... x q, ... x q x q`; differentiable once."""
        return differentiable_values(self._conditioned(), X)

    def standardized_noise(self) -> float:
        """The noise of values, and the nugget."""
        factored = self._conditioned().factored
        return self._hyperparameters.noise[0] + float(factored.nugget / factored.scales[0] ** 2)

    def joint_posterior(self, X: Tensor) -> VectorPosterior:
        """Of (f, grad f) at each point, `... x d -> ... x (d+1), ... x (d+1) x (d+1)`; differentiable once in X."""
        mean, covariance = differentiable_joint(self._conditioned(), as_points(X, self.dim))
        return self._vectors_in_given_units(mean, covariance)

    def gradient_posterior(self, X: Tensor) -> VectorPosterior:
        """Of grad f at each point, `... x d -> ... x d, ... x d x d`; differentiable once in X."""
        mean, covariance = self.joint_posterior(X)
        return VectorPosterior(mean[..., 1:], covariance[..., 1:, 1:])

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f at each point, without autograd, `m x d -> m, m`."""
        mean, variance = value_moments(self._conditioned(), as_rows(X, self.dim))
        units = self._standardization
        return torch.from_numpy(units.y_shift + units.y_scale * mean), torch.from_numpy(units.y_scale**2 * variance)

    def moments_and_gradients(self, X: Tensor) -> ValueMomentsAndGradients:
        """The same and the derivatives with respect to each point, in closed form, `m x d -> m, m, m x d, m x d`."""
        moments = value_moments_and_gradients(self._conditioned(), as_rows(X, self.dim))
        units = self._standardization
        return ValueMomentsAndGradients(
            torch.from_numpy(units.y_shift + units.y_scale * moments.mean),
            torch.from_numpy(units.y_scale**2 * moments.variance),
            torch.from_numpy(units.y_scale * moments.mean_gradient),
            torch.from_numpy(units.y_scale**2 * moments.variance_gradient),
        )

    def mean_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of f and its gradient by the point, `m x d -> m, m x d`; without variances, and faster by far."""
        mean, gradient = mean_and_gradient(self._conditioned(), as_rows(X, self.dim))
        units = self._standardization
        return torch.from_numpy(units.y_shift + units.y_scale * mean), torch.from_numpy(units.y_scale * gradient)

    def joint_moments(self, X: Tensor) -> VectorPosterior:
        """`joint_posterior` at m points without autograd, `m x d -> m x (d+1), m x (d+1) x (d+1)`."""
        mean, covariance = joint_moments(self._conditioned(), as_rows(X, self.dim))
        return self._vectors_in_given_units(torch.from_numpy(mean), torch.from_numpy(covariance))

    def conditioned(self) -> ConditionedRows:
        """The factored rows in standardised units; the same object until the next fit."""
        return self._conditioned()

    def _conditioned(self) -> ConditionedRows:
        """The factored rows, made when first needed."""
        if self._rows is None and self._base is not None:
            rows, count = self._base
            # Where the nugget is not enough for the new rows, all of them are factored below.
            with suppress(FactorizationError):
                self._rows = extended(rows, *self._data(self._observations[count:]))
        if self._rows is None:
            self._rows = condition(*self._data(self._observations), self._hyperparameters)
        self._base = None
        return self._rows

    def _data(self, observations: Observations) -> tuple[Array, JointData]:
        """Points and rows, standardised."""
        usable = self._standardization.apply(observations.usable)
        observed = np.column_stack([usable.y, usable.grad])
        return np.array(usable.x), JointData.of(usable.x, observed, np.column_stack([usable.y_var, usable.grad_var]))

    def _extended_by(self, observations: Observations) -> JointGradientGP:
        model = self._copy(observations)
        model._base = self._base if self._rows is None else (self._rows, len(self._observations))
        return model

    def _copy(self, observations: Observations) -> JointGradientGP:
        model = object.__new__(JointGradientGP)
        ObservedModel.__init__(model)
        for name in ("kernel", "_given_standardization", "_standardization", "_hyperparameters", "_warm"):
            setattr(model, name, getattr(self, name))
        model._observations, model._rows, model._base = observations, None, None
        return model

    def _learned(self) -> dict[str, Array]:
        return self._hyperparameters.to_arrays()

    def _relearn(self, numbers: Mapping[str, Array], units: Standardization, *, is_fitted: bool) -> None:
        self._hyperparameters = self._hyperparameters.with_arrays(numbers)
        self._warm, self._standardization = is_fitted, units
        self._rows = self._base = None

    def _vectors_in_given_units(self, mean: Tensor, covariance: Tensor) -> VectorPosterior:
        units = self._standardization
        shift = torch.zeros(mean.shape[-1], dtype=torch.float64)
        shift[0] = units.y_shift
        return VectorPosterior(shift + units.y_scale * mean, units.y_scale**2 * covariance)
