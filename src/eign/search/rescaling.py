"""The paper's rescaling of EI-GN: each term by its spread over the step's pool of candidates."""

from typing import Final

import numpy as np

from eign.acquisition.with_gradients import Terms, TwoTermAcquisition
from eign.arrays import LARGEST, Array

_ROUNDING: Final = 1e-14
_UNDERFLOW: Final = 1e-280


def is_flat(values: Array) -> bool:
    """Whether the values differ by no more than rounding, or by less than can be divided by."""
    spread = float(values.max() - values.min())
    return not spread > max(_UNDERFLOW, _ROUNDING * float(np.abs(values).max()))


def rescaled(acquisition: TwoTermAcquisition, terms: Terms) -> TwoTermAcquisition:
    r"""The acquisition with alpha in units of the spread of its terms over a pool, fixed for the step.

    .. math:: \alpha_\mathrm{eff} = \alpha\,\mathrm{std}(EI_f) / \mathrm{std}(\overline{EI}_s)

    The paper also subtracts means, which moves no maximum. Where the increase of the gradient norm is flat, what
    remains is EI; where EI is flat, it is the increase, to be minimised. alpha = 0 is left alone.
    """
    if acquisition.alpha == 0 or is_flat(terms.increase):
        return acquisition.weighted(1.0, 0.0)
    if is_flat(terms.improvement):
        return acquisition.weighted(0.0, 1.0)
    ratio = _deviation(terms.improvement) / _deviation(terms.increase)
    return acquisition.weighted(1.0, min(acquisition.alpha * ratio, LARGEST))


def _deviation(values: Array) -> float:
    """The standard deviation; in units of the values where their squares would leave the floats."""
    with np.errstate(over="ignore"):
        deviation = float(values.std())
    if 0.0 < deviation < np.inf:
        return deviation
    size = float(np.abs(values).max())
    return size * float((values / size).std())
