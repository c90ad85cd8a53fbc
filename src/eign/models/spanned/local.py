"""The model around a point of a long run, of the observations nearest to it.

From about 60 points on the split model has n^2 rows again. But a stationary process does not gain from all points of a
run: the values of the first ones may be thousands of times those of the last, and lengthscales that suit the end are
wrong about the way there. Errors in predicting the next three evaluations of L-BFGS-B in 200 dimensions, relative to
the change of value and of gradient since the last one (geometric means of 72 cases: seven functions, three seeds, after
40, 60, 90 and 120 evaluations, without converged and restarted runs; Matern-5/2):

| nearest to the incumbent | hyperparameters of | error of values | of gradients | seconds of a core |
|---|---|---|---|---|
| 10 | these | 0.62 | 0.45 | 0.07 |
| 20 | these | 0.51 | 0.37 | 0.18 |
| 30 | these | 0.63 | 0.51 | 0.72 |
| 40 | these | 0.42 | 0.44 | 2.95 |
| 40 | 20 nearest | 0.83 | 0.65 | 0.21 |
| 60 | 20 nearest | 1.0 | 0.95 | 0.45 |
| 20 and 10 of the design | these | 0.58 | 0.61 | 0.75 |
| 20, one lengthscale for all coordinates | these | 1.3 | 0.72 | 0.08 |
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.spanned.model import SpannedGradientGP
from eign.models.surrogates import rows_of

Kernel = Literal["matern52", "rbf"]
Noise = float | Literal["learn"] | None

COUNT: Final = 20
"""Points of a local model: 400 rows at most, whatever the dimension, and 10 ms an evaluation of the MAP objective."""


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
    count: int = COUNT,
    kernel: Kernel = "matern52",
    noise: Noise = None,
    start: JointHyperparameters | None = None,
    evaluations: int = 25,
) -> SpannedGradientGP:
    """The fitted model of the observations around a center.

    Args:
        data: All observations, in the unit cube.
        center: Such as the incumbent, d.
        count: How many are kept.
        kernel: "matern52" or "rbf".
        noise: See `SpannedGradientGP`.
        start: Hyperparameters for values in the units given, see `in_given_units`, which the search starts from.
        evaluations: Limit on the evaluations of the MAP objective.
    """
    X, Y, G, Yvar, Gvar = rows_of(nearest_observations(data, center, count), with_gradient=True)
    model = SpannedGradientGP(X, Y, G, Yvar=Yvar, Gvar=Gvar, kernel=kernel, noise=noise)
    if start is not None:
        model = model.with_hyperparameters(start.rescaled(1.0, model.standardization.y_scale))
    model.fit_hyperparameters(evaluations=evaluations)
    return model


def in_given_units(model: SpannedGradientGP) -> JointHyperparameters:
    """The hyperparameters of a model for values in the units given, from which the next `local_model` can start."""
    return model.hyperparameters.rescaled(model.standardization.y_scale, 1.0)
