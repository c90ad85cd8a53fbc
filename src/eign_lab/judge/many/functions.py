"""Functions of many coordinates with maxima that are known; each has instances, moved and turned by a number."""

import numpy as np

from eign.arrays import Array
from eign.problems import Problem, get, shifted
from eign.space import Box

_ACTIVE = 5
_REFLECTIONS = 8


def moved(name: str, d: int, instance: int) -> Problem:
    """A problem of the catalogue, shifted by up to a quarter of the box each way."""
    return shifted(get(name, d), seed=1000 + instance)


def quadratic(d: int, instance: int) -> Problem:
    """A quadratic function of condition 1e4 in turned coordinates, with its maximum in the middle half of the cube.

    Turned by reflections, as a random matrix of 1,000 rows takes seconds to make and milliseconds to apply.
    """
    rng = np.random.default_rng([d, instance, 1])
    top = rng.uniform(0.25, 0.75, d)
    normals = rng.standard_normal((_REFLECTIONS, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    weights = 1e4 ** np.linspace(0.0, 1.0, d)

    def formula(X: Array) -> tuple[Array, Array]:
        turned = X - top
        for normal in normals:
            turned = turned - 2.0 * np.outer(turned @ normal, normal)
        slopes = weights * turned
        for normal in normals[::-1]:
            slopes = slopes - 2.0 * np.outer(slopes @ normal, normal)
        return -0.5 * np.vecdot(weights * turned, turned), -slopes

    return Problem(f"quadratic-{d}", Box([(0.0, 1.0)] * d), formula=formula, optimum=0.0, optimizers=top[None])


def active_rastrigin(d: int, instance: int) -> Problem:
    """Rastrigin's function of five directions of the space: all others say nothing."""
    rng = np.random.default_rng([d, instance, 2])
    directions = np.linalg.qr(rng.standard_normal((d, _ACTIVE)))[0]
    top = rng.uniform(0.25, 0.75, d)

    def formula(X: Array) -> tuple[Array, Array]:
        z = 10.24 * (X - top) @ directions
        value = (z * z - 10.0 * np.cos(2.0 * np.pi * z) + 10.0).sum(axis=1)
        return -value, -10.24 * (2.0 * z + 20.0 * np.pi * np.sin(2.0 * np.pi * z)) @ directions.T

    box = Box([(0.0, 1.0)] * d)
    return Problem(f"rastrigin-{_ACTIVE}-of-{d}", box, formula=formula, optimum=0.0, optimizers=top[None])
