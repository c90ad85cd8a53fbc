"""The joint Gaussian process of f and its gradient for many dimensions, as a BoTorch model of f."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Final, Literal, final

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.data import Observations
from eign.models.derivative_kernels import default_terms
from eign.models.independent.map_objective import NOISE_PRIOR
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.joint.model import ValueMomentsAndGradients
from eign.models.posteriors import GradientPosterior
from eign.models.spanned.appending import appended
from eign.models.spanned.fitting import Lengthscales, fit_hyperparameters, negative_log_posterior, root_of_dimension
from eign.models.spanned.map_objective import Likelihood
from eign.models.spanned.moments import (
    differentiable_values,
    gradient_moments,
    value_mean,
    value_moments,
    value_moments_and_gradients,
)
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.split import SplitRows, split, split_negative_log_likelihood
from eign.models.tensors import as_observations, as_points, as_rows
from eign.models.value_model import ObservedModel, check_noise
from eign.numerics.lbfgs import Minimum
from eign.numerics.threads import single_threaded_blas
from eign.standardization import Standardization, standardize_joint

# Below, a second BLAS thread costs more in synchronisation than it computes.
_ROWS_WORTH_THREADS: Final = 1000


@final
class SpannedGradientGP(ObservedModel):
    """The exact joint Gaussian process of f and its gradient, for fewer points than dimensions.

    The same process as `JointGradientGP` with a kernel of all coordinates, in n + n r rows instead of n (d + 1), r the
    number of directions in which the points differ: 2,500 instead of 25,050 for 50 points in 500 dimensions. It
    standardises inside and answers in the units given.

    What it asks for: a gradient is used if it is complete, and a point if it has a value. Noise of gradients is taken
    to have no direction in scaled coordinates, see `eign.models.spanned.split.slope_noise`: with one lengthscale and
    one variance for all components of a gradient that is what was told; otherwise it is their mean.
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
        lengthscales: Lengthscales = "each",
        noise: float | Literal["learn"] | None = None,
        standardization: Standardization | None = None,
    ) -> None:
        """Take the data; nothing is fitted yet.

        Args:
            X: Points in the unit cube, `n x d`.
            Y: Values, `n x 1`; a point without one (NaN) is left out.
            G: Gradients with respect to the unit cube, `n x d`; one with a missing component (NaN) is left out.
            Yvar: Known noise variances of the values, `n x 1`; NaN = unknown.
            Gvar: Known noise variances of the gradients, `n x d`; NaN = unknown.
            kernel: "matern52" or "rbf".
            lengthscales: One for "each" coordinate, with a prior that keeps them together, or "one" for all.
            noise: A noise variance for every number in standardised units beside what is known, or "learn" to fit one
                for values and one for gradients. None is no noise, but for a nugget relative to the prior variance.
            standardization: The units the process works in; None takes them from the data at each fit.
        """
        super().__init__()
        check_noise(noise)
        if kernel not in ("matern52", "rbf"):
            raise ValueError(f'kernel={kernel!r}, expected "matern52" or "rbf": a sum of terms does not split')
        if lengthscales not in ("one", "each"):
            raise ValueError(f'lengthscales={lengthscales!r}, expected "one" or "each"')
        self.kernel: str = kernel
        self.lengthscales: Lengthscales = lengthscales
        self._observations = as_observations(X, Y, G, Yvar=Yvar, Gvar=Gvar)
        self._given_standardization = standardization
        self._standardization = standardization or standardize_joint(self._observations)
        level = float(np.exp(NOISE_PRIOR[0])) if noise == "learn" else float(noise or 0.0)
        (term,) = default_terms(kernel, self._observations.dim)
        terms = (replace(term, lengthscale=term.lengthscale * root_of_dimension(self._observations.dim)),)
        self._hyperparameters = JointHyperparameters(terms, (level, level), noise == "learn")
        self._warm = False
        self._rows: SplitRows | None = None
        # Factored rows of the first so many observations, which the others extend when rows are first needed.
        self._base: tuple[SplitRows, int] | None = None

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
        return self._standardization.y_shift + self._standardization.y_scale * self.conditioned().mean

    def with_hyperparameters(self, hyperparameters: JointHyperparameters) -> SpannedGradientGP:
        """The same data with these hyperparameters; a later fit starts from them."""
        if hyperparameters.dimension != self._observations.dim or len(hyperparameters.terms) != 1:
            raise ValueError(
                f"hyperparameters are for {len(hyperparameters.terms)} terms in {hyperparameters.dimension} "
                f"coordinates, expected one term in {self._observations.dim}"
            )
        model = self._copy(self._observations)
        model._hyperparameters, model._warm = hyperparameters, True
        return model

    def fit_hyperparameters(self, *, restart: bool = False, evaluations: int = 30) -> Minimum:
        """Maximise the posterior of the hyperparameters, in place; `eign.models.fit` calls this.

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
        data = self._data(self._observations)
        modes = [True, False] if self._warm and restart else [self._warm]
        rows = len(data.y) + data.gradients * min(len(data.y), self._observations.dim)
        with single_threaded_blas() if rows < _ROWS_WORTH_THREADS else nullcontext():
            ends = [
                fit_hyperparameters(
                    data, self._hyperparameters, lengthscales=self.lengthscales, warm=warm, evaluations=evaluations
                )
                for warm in modes
            ]
        self._hyperparameters, end = min(ends, key=lambda result: float(result[1].value[0]))
        self._warm = True
        return end

    def log_likelihood(self) -> float:
        """Log density of all observed numbers in the units given, at the hyperparameters and the mean of the model."""
        rows = self.conditioned()
        return -split_negative_log_likelihood(rows) - rows.data.numbers * float(np.log(self._standardization.y_scale))

    def negative_log_posterior(self) -> Likelihood:
        """What a fit minimises, at the hyperparameters of the model, with its gradient by theta; standardised units."""
        return negative_log_posterior(self._data(self._observations), self._hyperparameters)

    def standardized_normal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance of f at q points together, `... x q x d -> ... x q, ... x q x q`; differentiable once."""
        return differentiable_values(self.conditioned(), X)

    def standardized_noise(self) -> float:
        """The noise of values, and the nugget."""
        rows = self.conditioned()
        return self._hyperparameters.noise[0] + float(rows.inside.factored.nugget) * rows.hyper.terms[0].outputscale

    def gradient_posterior(self, X: Tensor) -> GradientPosterior:
        """Mean and variance of each partial derivative, without autograd, `... x d -> ... x d, ... x d`."""
        points = as_points(X, self.dim).detach().numpy().reshape(-1, self.dim)
        mean, variance = gradient_moments(self.conditioned(), points)
        units = self._standardization
        return GradientPosterior(
            torch.from_numpy(units.y_scale * mean).reshape(X.shape),
            torch.from_numpy(units.y_scale**2 * variance).reshape(X.shape),
        )

    def mean_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The posterior mean of f and of its gradient alone, `m x d -> m, m x d`, in O(n d) a point."""
        mean, gradient = value_mean(self.conditioned(), as_rows(X, self.dim))
        units = self._standardization
        return torch.from_numpy(units.y_shift + units.y_scale * mean), torch.from_numpy(units.y_scale * gradient)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f at each point, without autograd, `m x d -> m, m`."""
        mean, variance = value_moments(self.conditioned(), as_rows(X, self.dim))
        units = self._standardization
        return torch.from_numpy(units.y_shift + units.y_scale * mean), torch.from_numpy(units.y_scale**2 * variance)

    def moments_and_gradients(self, X: Tensor) -> ValueMomentsAndGradients:
        """The same and the derivatives with respect to each point, in closed form, `m x d -> m, m, m x d, m x d`."""
        moments = value_moments_and_gradients(self.conditioned(), as_rows(X, self.dim))
        units = self._standardization
        return ValueMomentsAndGradients(
            torch.from_numpy(units.y_shift + units.y_scale * moments.mean),
            torch.from_numpy(units.y_scale**2 * moments.variance),
            torch.from_numpy(units.y_scale * moments.mean_gradient),
            torch.from_numpy(units.y_scale**2 * moments.variance_gradient),
        )

    def conditioned(self) -> SplitRows:
        """The factored rows in standardised units, made when first needed; the same object until the next fit."""
        if self._rows is None and self._base is not None:
            rows, count = self._base
            self._rows = appended(rows, self._data(self._observations[count:]))
        elif self._rows is None:
            self._rows = split(self._data(self._observations), self._hyperparameters)
        self._base = None
        return self._rows

    def _data(self, observations: Observations) -> SpannedData:
        return SpannedData.of(self._standardization.apply(observations))

    def _extended_by(self, observations: Observations) -> SpannedGradientGP:
        model = self._copy(observations)
        model._base = self._base if self._rows is None else (self._rows, len(self._observations))
        return model

    def _learned(self) -> dict[str, Array]:
        return self._hyperparameters.to_arrays()

    def _relearn(self, numbers: Mapping[str, Array], units: Standardization, *, is_fitted: bool) -> None:
        self._hyperparameters = self._hyperparameters.with_arrays(numbers)
        self._warm, self._standardization = is_fitted, units
        self._rows = self._base = None

    def _copy(self, observations: Observations) -> SpannedGradientGP:
        model = object.__new__(SpannedGradientGP)
        ObservedModel.__init__(model)
        for name in (
            "kernel",
            "lengthscales",
            "_given_standardization",
            "_standardization",
            "_hyperparameters",
            "_warm",
        ):
            setattr(model, name, getattr(self, name))
        model._observations, model._rows, model._base = observations, None, None
        return model
