"""Where a search begins: candidates over the whole cube, candidates around incumbents, and starts drawn from both."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from eign.arrays import Array

Index = NDArray[np.intp]

# Around an incumbent about this many coordinates change, each by a normal step of a size from this range.
_CHANGED_COORDINATES: Final = 5.0
_STEP_SIZES: Final = (1e-3, 0.2)
# Of the coordinates of a Sobol point, in torch.
_BITS: Final = 30


def global_candidates(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Scrambled Sobol points of the unit cube with a random digital shift, `count x dim`.

    The shift changes bits of all points alike, which keeps how evenly they lie, and is drawn ten times faster than
    another scrambling.
    """
    shift = rng.integers(1 << _BITS, size=dim)
    return np.asarray(((_scrambled_sobol(count, dim) ^ shift) + 0.5) * 2.0**-_BITS)


@lru_cache(maxsize=16)
def _scrambled_sobol(count: int, dim: int) -> NDArray[np.int64]:
    """One scrambling, as whole numbers of `_BITS` bits."""
    points = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0).draw(count, dtype=torch.float64)
    return np.asarray(np.ldexp(points.numpy(), _BITS).astype(np.int64))


def local_candidates(incumbents: Array, count: int, rng: np.random.Generator) -> Array:
    """Sparse perturbations of the incumbents `k x d` in turn, reflected into the cube, `count x d`.

    In many dimensions a step that changes every coordinate is almost surely for the worse.
    """
    around = incumbents[np.arange(count) % len(incumbents)]
    dim = around.shape[1]
    changed = rng.random(around.shape) < _CHANGED_COORDINATES / dim
    changed[np.arange(count), rng.integers(dim, size=count)] = True
    low, high = np.log(_STEP_SIZES)
    size = np.exp(rng.uniform(low, high, size=(count, 1)))
    moved = around + np.where(changed, size * rng.standard_normal(around.shape), 0.0)
    return np.clip(1.0 - np.abs(1.0 - np.abs(moved)), 0.0, 1.0)


def best_along_coordinates(values: Callable[[Array], Array], start: Array, *, places: int) -> Array:
    """From a point `d` along one coordinate after the other to the best of so many even places; `values` of `m x d`.

    Of a sum of functions of one coordinate each it is the maximum, however many local ones there are: with five waves
    along each of eight coordinates 400,000, among which no sample of the cube finds the highest.
    """
    x = np.array(start)
    for i in range(len(x)):
        line = np.tile(x, (places + 1, 1))
        line[1:, i] = np.linspace(0.0, 1.0, places)
        found = values(line)
        x = line[int(np.where(np.isfinite(found), found, -np.inf).argmax())]
    return x


def boltzmann_starts(values: Array, count: int, rng: np.random.Generator, *, inverse_temperature: float = 1.0) -> Index:
    r"""Positions of candidates drawn without replacement with probability proportional to exp(eta z), best first.

    Here z are the values in their own standard deviations, those below the median as if they were there: of LogEI they
    are hundreds lower, and would make all others alike. The candidate with the best value is always among them. Adding
    Gumbel noise to eta z and taking the largest is the same as drawing one after the other.
    """
    middle = len(values) // 2
    floored = np.maximum(values, np.partition(values, middle)[middle])
    spread = floored.std()
    z = floored / spread if spread > 0 else np.zeros_like(values)
    keys = inverse_temperature * z + rng.gumbel(size=values.shape)
    best = int(values.argmax())
    keys[best] = np.inf
    drawn = np.argpartition(-keys, min(count, len(keys)) - 1)[:count]
    return drawn[np.argsort(-values[drawn], kind="stable")]
