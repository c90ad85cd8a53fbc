"""The tail of a standard normal in NumPy: the numbers of `normal.normal_tail`, which is its form in torch."""

import math
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from eign.arrays import Array

# Left of it the definitions of e and v lose at most z^4 = 1.6e5 roundings; right of it these many levels of Laplace's
# continued fraction are exact to rounding.
_SWITCH: Final = 20.0
_LEVELS: Final = 9
_ROOT_2_PI: Final = math.sqrt(2 / math.pi)
_ROOT_HALF: Final = math.sqrt(0.5)


class NormalTail(NamedTuple):
    """Of a standard normal Z beyond z: E[Z - z | Z > z], Var[Z | Z > z] and E[Z | Z > z]."""

    excess: Array
    variance: Array
    mills: Array


def normal_tail(z: Array) -> NormalTail:
    """The tail of `eign.formulas.normal_tail`, element by element; its probability is SciPy's `ndtr(-z)`."""
    near = np.minimum(z, _SWITCH)
    mills = _ROOT_2_PI / special.erfcx(near * _ROOT_HALF)
    excess = mills - near
    variance = 1.0 - mills * excess
    is_far = z > _SWITCH
    if np.count_nonzero(is_far):
        far = z[is_far]
        t3 = far
        for level in range(_LEVELS, 2, -1):
            t3 = far + level / t3
        t2 = far + 2 / t3
        excess[is_far], variance[is_far], mills[is_far] = 1 / t2, (2 - t3 / t2) / t2 / t3, far + 1 / t2
    return NormalTail(excess, variance, mills)
