r"""Maximum a posteriori hyperparameters of the split model: one lengthscale for all coordinates, or one for each.

| symbol | meaning |
|---|---|
| lambda_k = log l_k, b | log lengthscales, and their mean |
| z | what is searched: b, log w and, if learned, log nu, log nu_g; for "each" lambda_1 .. lambda_d instead of b |

.. math::
    -\log p = \tfrac12 \Bigl(\frac{b - \mu_d}{\sigma}\Bigr)^2 + \frac1{2\tau^2} \sum_k (\lambda_k - b)^2
        + d \log \tau + \beta w - (a - 1)\log w + \dots, \qquad \mu_d = \log(\text{median}\,\sqrt{\max(1, d/6)})

The distance of two random points of the cube grows with the root of d, and so does the lengthscale that sees the same
function at such distances.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from eign.arrays import Array
from eign.models.independent.map_objective import LENGTHSCALE_PRIOR, NOISE_PRIOR, OUTPUTSCALE_PRIOR
from eign.models.joint.hyperparameters import LENGTHSCALE_BOUNDS, NOISE_BOUNDS, OUTPUTSCALE_BOUNDS, JointHyperparameters
from eign.models.spanned.map_objective import Likelihood, negative_log_likelihood_and_gradient
from eign.models.spanned.rows import SpannedData
from eign.models.spanned.split import SplitRows, split, split_negative_log_likelihood
from eign.numerics import lbfgs

Lengthscales = Literal["one", "each"]

SHRINKAGE: Final = 0.1
"""tau: how far, in natural logarithms, a lengthscale strays from the others, a priori.

On the cases of `local` errors are 0.51 and 0.37 with 0.1, 0.55 and 0.34 with 0.3, 0.54 and 0.38 with 1, and 1.3 and
0.72 with one lengthscale: where coordinates differ the data say so, whatever the prior.
"""
_START_FACTORS: Final = (1.0, 0.35, 2.5, 8.0)
_DECREASE_PER_NUMBER: Final = 5e-6
_EVALUATIONS_OF_ONE: Final = 12
_USUAL_DIMENSION: Final = 6.0


def root_of_dimension(dimension: int) -> float:
    """The factor by which lengthscales are larger in many dimensions, 1 up to 6."""
    return float(np.sqrt(max(1.0, dimension / _USUAL_DIMENSION)))


def theta_of(z: Array, dimension: int, lengthscales: Lengthscales) -> Array:
    """All log lengthscales and the rest."""
    return z if lengthscales == "each" else np.concatenate([np.full(dimension, z[0]), z[1:]])


def reduced(by_theta: Array, dimension: int, lengthscales: Lengthscales) -> Array:
    """Derivatives by theta as derivatives by z."""
    return by_theta if lengthscales == "each" else np.append(by_theta[:dimension].sum(), by_theta[dimension:])


def negative_log_prior(theta: Array, hyper: JointHyperparameters, *, shrinkage: float = SHRINKAGE) -> Likelihood:
    """-log p of this module's docstring and its gradient by theta; constants that no choice depends on are left out."""
    d = hyper.dimension
    lengths, location = theta[:d], np.log(hyper.terms[0].median * root_of_dimension(d))
    level, stray = lengths.mean(), lengths - lengths.mean()
    width = LENGTHSCALE_PRIOR[1]
    value = 0.5 * ((level - location) / width) ** 2 + 0.5 * float(stray @ stray) / shrinkage**2
    gradient = np.empty(len(theta))
    gradient[:d] = (level - location) / width**2 / d + stray / shrinkage**2
    concentration, rate = OUTPUTSCALE_PRIOR
    pull = rate * np.exp(theta[d])
    value += pull - (concentration - 1.0) * theta[d]
    gradient[d] = pull - (concentration - 1.0)
    noise = (theta[d + 1 :] - NOISE_PRIOR[0]) / NOISE_PRIOR[1]
    gradient[d + 1 :] = noise / NOISE_PRIOR[1]
    return Likelihood(float(value + 0.5 * noise @ noise), gradient)


def negative_log_posterior(data: SpannedData, hyper: JointHyperparameters) -> Likelihood:
    """What a fit minimises, at these hyperparameters, with its gradient by theta."""
    likelihood = negative_log_likelihood_and_gradient(data, hyper)
    prior = negative_log_prior(hyper.theta, hyper)
    return Likelihood(likelihood.value + prior.value, likelihood.gradient + prior.gradient)


def fit_hyperparameters(
    data: SpannedData, hyper: JointHyperparameters, *, lengthscales: Lengthscales, warm: bool, evaluations: int
) -> tuple[JointHyperparameters, lbfgs.Minimum]:
    """The best hyperparameters found, and how the search ended.

    Args:
        data: The observations.
        hyper: Where to start if `warm`; otherwise only its kernel and kind of noise count.
        lengthscales: One for all coordinates, or one for each.
        warm: Start from `hyper`. If not, from the best of several starts.
        evaluations: Limit on the evaluations.
    """
    d = hyper.dimension
    first = [LENGTHSCALE_BOUNDS] * (d if lengthscales == "each" else 1)
    pairs = np.log([*first, OUTPUTSCALE_BOUNDS, *[NOISE_BOUNDS] * (2 * hyper.learned)])
    pairs[: len(first), 1] += np.log(root_of_dimension(d))

    def objective(points: Array, _: lbfgs.Index) -> lbfgs.ObjectiveValues:
        results = [negative_log_posterior(data, hyper.at(theta_of(z, d, lengthscales))) for z in points]
        gradients = [reduced(result.gradient, d, lengthscales) for result in results]
        return lbfgs.ObjectiveValues(np.array([result.value for result in results]), np.stack(gradients))

    theta = hyper.theta if warm else _best_start(data, hyper)
    if not warm and lengthscales == "each":
        # A common length is found in a few evaluations, and is a better start for each than any guess.
        common, _ = fit_hyperparameters(
            data, hyper.at(theta), lengthscales="one", warm=True, evaluations=_EVALUATIONS_OF_ONE
        )
        theta = common.theta
    start = theta if lengthscales == "each" else np.append(theta[:d].mean(), theta[d:])
    stopping = lbfgs.Stopping(decrease=_DECREASE_PER_NUMBER * data.numbers, gradient=1e-9, evaluations=evaluations)
    end = lbfgs.minimize(
        objective,
        np.clip(start, pairs[:, 0], pairs[:, 1])[None],
        lower=pairs[:, 0],
        upper=pairs[:, 1],
        stopping=stopping,
        longest_step=1.0,
    )
    return hyper.at(theta_of(end.x[0], d, lengthscales)), end


def _best_start(data: SpannedData, hyper: JointHyperparameters) -> Array:
    """The most likely of the starts, each with its best outputscale: exact without noise, and close with little."""
    d, best = hyper.dimension, (np.inf, hyper.theta)
    for factor in _START_FACTORS:
        theta = hyper.theta
        theta[:d] = np.log(factor * hyper.terms[0].median * root_of_dimension(d))
        theta[d], theta[d + 1 :] = 0.0, NOISE_PRIOR[0]
        rows = split(data, hyper.at(theta))
        explained = max(explained_by(rows), np.finfo(np.float64).tiny)
        step = float(np.clip(np.log(explained / max(data.numbers, 1)), *np.log(OUTPUTSCALE_BOUNDS)))
        theta[d] = step
        value = split_negative_log_likelihood(rows) + 0.5 * (explained * np.expm1(-step) + data.numbers * step)
        value += negative_log_prior(theta, hyper).value
        best = min(best, (value, theta), key=lambda entry: entry[0])
    return best[1]


def explained_by(rows: SplitRows) -> float:
    """The sum z' K^{-1} z over all rows, the mean taken off."""
    gradients = rows.data.grad * rows.lengthscale
    residual = rows.data.y - rows.mean
    return float(residual @ rows.value_weights + np.vdot(gradients, rows.slope_weights))
