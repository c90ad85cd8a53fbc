"""The model around a point of a long run: which observations it keeps, and from which its hyperparameters come.

From about 60 points on the split model has n^2 rows again. But a stationary process does not gain from all points of a
run: the values of the first ones are thousands of times those of the last, and with the lengthscales of the end they
are wrong about the way there. Predictions of the next evaluations of L-BFGS-B in 200 dimensions (five functions, two
seeds, after 60 and after 120 evaluations), relative to the change of value and gradient:

| kept | hyperparameters of | error of values | of gradients | seconds of a core: fit, factorisation |
|---|---|---|---|---|
| 20 latest | these | 0.26 | 0.40 | 0.15, 0.003 |
| 40 latest | 20 latest | 0.19 | 0.36 | 0.15, 0.03 |
| 40 latest | these | 0.13 | 0.28 | 2.2, 0.03 |
| 40 latest, moved into their 20 leading directions | 20 latest | 0.17 | 0.37 | 0.15, 0.01 |
| 50 latest | 20 latest | 1.4 | 1.6 | 0.15, 0.12 |
| 20 latest and 10 of the design | these | 0.16 | 0.37 | 0.6, 0.02 |
| 30 latest and 10 of the design | 20 latest | 38 | 25 | 0.15, 0.03 |
| all, moved into 20 directions | 20 latest | 25 | 18 | 0.15, 0.1 |

(Geometric means; moving a point corrects its value by its gradient, and adds the noise that this leaves.) What is kept
must be what the hyperparameters describe.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from eign.arrays import Array
from eign.data import Observations, Standardization
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.spanned.model import SpannedGradientGP
from eign.models.surrogates import rows_of

Kernel = Literal["matern52", "rbf"]
Noise = float | Literal["learn"] | None

KEPT: Final = 40
"""Points of the model: 1,600 rows at most, whatever the dimension."""
FITTED: Final = 20
"""Points that hyperparameters are learned from: an evaluation with 400 rows takes 10 ms, with 1,600 ten times that."""


def nearest_observations(data: Observations, center: Array, count: int) -> Observations:
    """The usable ones with a value that are nearest to the center, in the order they came in.

    >>> data = Observations([[0.0], [0.5], [0.4], [1.0]], [1.0, 2.0, 3.0, 4.0])
    >>> nearest_observations(data, np.array([0.5]), 2).y.tolist()
    [2.0, 3.0]
    """
    usable = data.usable
    usable = usable[np.flatnonzero(usable.has_y)]
    distances = np.einsum("ak,ak->a", usable.x - center, usable.x - center)
    return usable[np.sort(np.argsort(distances, kind="stable")[:count])]


def local_model(
    data: Observations,
    center: Array,
    *,
    kernel: Kernel = "matern52",
    noise: Noise = None,
    start: JointHyperparameters | None = None,
    evaluations: int = 25,
) -> SpannedGradientGP:
    """The model of the observations around a center, with hyperparameters of the nearest of them.

    Args:
        data: All observations, in the unit cube.
        center: Such as the incumbent, d.
        kernel: "matern52" or "rbf".
        noise: See `SpannedGradientGP`.
        start: Hyperparameters for values in the units given, see `in_given_units`, which the search starts from.
        evaluations: Limit on the evaluations of the MAP objective.
    """
    near = nearest_observations(data, center, KEPT)
    few = _model(nearest_observations(near, center, FITTED), kernel, noise, None)
    if start is not None:
        few = few.with_hyperparameters(start.rescaled(1.0, few.standardization.y_scale))
    few.fit_hyperparameters(evaluations=evaluations)
    return _model(near, kernel, noise, few.standardization).with_hyperparameters(few.hyperparameters)


def in_given_units(model: SpannedGradientGP) -> JointHyperparameters:
    """The hyperparameters of a model for values in the units given, from which the next `local_model` can start."""
    return model.hyperparameters.rescaled(model.standardization.y_scale, 1.0)


def _model(data: Observations, kernel: Kernel, noise: Noise, units: Standardization | None) -> SpannedGradientGP:
    X, Y, G, Yvar, Gvar = rows_of(data, with_gradient=True)
    return SpannedGradientGP(X, Y, G, Yvar=Yvar, Gvar=Gvar, kernel=kernel, noise=noise, standardization=units)
