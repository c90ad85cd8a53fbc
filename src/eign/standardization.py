"""The standardisation that each model works in: observations in its units, and the way back."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eign.arrays import LARGEST, Array, Factor, as_floats, read_only, times_power
from eign.data import Observations

# A spread of at most this many roundings of the largest value is no information: the values count as constant.
_CONSTANT_ULPS: Final = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class Standardization:
    """The affine map from observations in the unit cube to what a model works in, and its inverse.

    A model's value is (y - y_shift) / y_scale and its partial derivative i is (grad_i - grad_shift_i) / grad_scale_i.
    To compare values and gradients in an acquisition, both are taken in common units, that is over y_scale: f then is
    the model's value, and a gradient is `common_grad_shift + common_grad_scale *` the model's.

    Attributes:
        y_shift: what is subtracted from y.
        y_scale: what y - y_shift is divided by.
        grad_shift: what is subtracted from each partial derivative (d,).
        grad_scale: what each partial derivative is then divided by (d,).
    """

    y_shift: float
    y_scale: float
    grad_shift: Array
    grad_scale: Array

    def __post_init__(self) -> None:
        for name in ("grad_shift", "grad_scale"):
            object.__setattr__(self, name, read_only(as_floats(getattr(self, name), name)))
        scales = np.append(self.grad_scale, self.y_scale)
        if not (np.isfinite(scales).all() and (scales > 0).all()):
            raise ValueError(
                f"scales must be positive and finite, got {self.y_scale} for y, {self.grad_scale} for grad"
            )

    @property
    def common_grad_shift(self) -> Array:
        """grad_shift / y_scale (d,)."""
        return times_power(self.grad_shift, _split(self.y_scale), -1)

    @property
    def common_grad_scale(self) -> Array:
        """grad_scale / y_scale (d,)."""
        return times_power(self.grad_scale, _split(self.y_scale), -1)

    def apply(self, obs: Observations) -> Observations:
        """The observations in the model's units; what is missing stays missing."""
        y = _standardized(obs.y, self.y_shift, self.y_scale)
        grad = _standardized(obs.grad, self.grad_shift, self.grad_scale)
        y_var, grad_var = _scaled_variance(obs.y_var, self.y_scale), _scaled_variance(obs.grad_var, self.grad_scale)
        return Observations._of(obs.x, y, grad, y_var, grad_var)

    def undo(self, obs: Observations) -> Observations:
        """The observations in the units of y again."""
        y, grad = self.undo_y(obs.y), self.undo_grad(obs.grad)
        return Observations(obs.x, y, grad, self.undo_y_var(obs.y_var), self.undo_grad_var(obs.grad_var))

    def undo_y(self, y: ArrayLike) -> Array:
        """y_scale * y + y_shift."""
        return _unstandardized(as_floats(y, "y"), self.y_shift, self.y_scale)

    def undo_grad(self, grad: ArrayLike) -> Array:
        """grad_scale * grad + grad_shift, `... x d -> ... x d`."""
        return _unstandardized(as_floats(grad, "grad"), self.grad_shift, self.grad_scale)

    def undo_y_var(self, y_var: ArrayLike) -> Array:
        """y_scale^2 * y_var."""
        return times_power(as_floats(y_var, "y_var"), _split(self.y_scale), 2)

    def undo_grad_var(self, grad_var: ArrayLike) -> Array:
        """grad_scale^2 * grad_var, `... x d -> ... x d`."""
        return times_power(as_floats(grad_var, "grad_var"), _split(self.grad_scale), 2)


def standardize_independent(obs: Observations) -> Standardization:
    """For one GP for f and one a partial derivative: y and each partial derivative by its own mean and deviation.

    A partial derivative without spread is divided by y_scale, the one number that has its units and varies with them.
    """
    usable = obs.usable
    mean, deviation = _column_moments(np.concatenate([usable.y[:, None], usable.grad], axis=1))
    y_scale = _scale(usable, float(deviation[0]))
    return Standardization(float(mean[0]), y_scale, mean[1:], np.where(deviation[1:] > 0, deviation[1:], y_scale))


def standardize_joint(obs: Observations) -> Standardization:
    """For one GP for f and its gradient: y by mean and deviation, the gradient over std(y) and not shifted.

    A shift would make it the gradient of another function than the standardised y.
    """
    usable = obs.usable
    mean, deviation = _column_moments(usable.y[:, None])
    y_scale = _scale(usable, float(deviation[0]))
    return Standardization(float(mean[0]), y_scale, np.zeros(obs.dim), np.full(obs.dim, y_scale))


def _scale(obs: Observations, deviation: float) -> float:
    """The sample deviation of y, or a stand-in where there is none.

    Without spread in y (one point, a plateau, no value at all) the gradients still say how much f varies: the stand-in
    is the deviation over the unit cube of a linear function with this gradient, |grad| / sqrt(12). It carries the units
    of y, so that a change of units changes nothing in the model. With no slope either it is 1, as in BoTorch.
    """
    return deviation or _linear_deviation(obs.grad) or 1.0


def _column_moments(values: Array) -> tuple[Array, Array]:
    """Mean and sample standard deviation (ddof = 1) of the finite entries of each column, `n x k -> k, k`.

    The deviation is 0 where there is none beyond rounding. Everything is taken in units of the largest magnitude, so
    that no square overflows or vanishes, and from the smallest value, so that equal values have exactly their mean.
    """
    known = np.isfinite(values)
    count = known.sum(axis=0)
    values, exponent = _in_own_units(np.where(known, values, 0.0))
    least = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    least = np.where(count > 0, least, 0.0)
    excess = np.where(known, values - least, 0.0)
    mean = excess.sum(axis=0) / np.maximum(count, 1)
    square = np.where(known, excess - mean, 0.0) ** 2
    deviation = np.sqrt(square.sum(axis=0) / np.maximum(count - 1, 1))
    rounding = np.finfo(np.float64).eps * np.abs(values).max(axis=0, initial=0.0)
    deviation = np.where(deviation > _CONSTANT_ULPS * rounding, deviation, 0.0)
    return np.ldexp(least + mean, exponent), _in_given_units(deviation, exponent)


def _linear_deviation(grad: Array) -> float:
    """sqrt(sum_j mean_i grad_ij^2 / 12), the mean over what is known; 0 if no slope is."""
    known = np.isfinite(grad)
    grad, exponent = _in_own_units(np.where(known, grad, 0.0), axis=None)
    mean_square = (grad**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return float(_in_given_units(np.sqrt(mean_square.sum() / 12.0), exponent))


def _in_own_units(values: Array, *, axis: int | None = 0) -> tuple[Array, NDArray[np.int32]]:
    """Values divided by the power of two above the largest magnitude, and that power."""
    exponent = np.frexp(np.abs(values).max(axis=axis, initial=0.0))[1]
    return np.ldexp(values, -exponent), exponent


def _in_given_units(deviation: Array, exponent: NDArray[np.int32]) -> Array:
    """Deviation times 2**exponent: at most the largest float, and 0 where it is too small to divide by."""
    with np.errstate(over="ignore"):
        scaled = np.minimum(np.ldexp(deviation, exponent), LARGEST)
    return np.where(scaled >= np.finfo(np.float64).tiny, scaled, 0.0)


def _scaled_variance(variance: Array, scale: ArrayLike) -> Array:
    """Variance / scale^2; mostly none is known, and there is nothing to do."""
    if np.count_nonzero(np.isnan(variance)) == variance.size:
        return variance
    return times_power(variance, _split(scale), -2)


def _split(scale: ArrayLike) -> Factor:
    return np.frexp(np.asarray(scale, dtype=np.float64))


def _standardized(values: Array, shift: ArrayLike, scale: ArrayLike) -> Array:
    """(values - shift) / scale, by halves because the difference of two large floats can overflow."""
    mantissa, exponent = _split(scale)
    return times_power(0.5 * values - 0.5 * np.asarray(shift), (mantissa, exponent - 1), -1)


def _unstandardized(values: Array, shift: ArrayLike, scale: ArrayLike) -> Array:
    """Scale * values + shift, by halves as in `_standardized`."""
    mantissa, exponent = _split(scale)
    with np.errstate(over="ignore"):
        half = times_power(values, (mantissa, exponent - 1), 1) + 0.5 * np.asarray(shift)
    return np.where(np.isfinite(values), 2.0 * np.clip(half, -0.5 * LARGEST, 0.5 * LARGEST), values)
