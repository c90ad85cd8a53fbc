"""Numbers: read from what users pass, arrays closed for writing, products without overflow."""

import operator
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Factor = tuple[Array, NDArray[np.int32]]
"""A positive number as `np.frexp` splits it: mantissa in [0.5, 1) and power of two."""

LARGEST = float(np.finfo(np.float64).max)


def as_floats(values: object, what: str) -> Array:
    """A new float64 array of the numbers in `values`; None and what is masked are NaN, `what` names them in errors.

    >>> as_floats([1, None, 2.5], "y")
    array([1. , nan, 2.5])
    """
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
    except ValueError as error:
        expected = "one number" if _is_value_and_gradient(values) else "rows of equal length"
        raise ValueError(f"{what}: expected {expected}, got {reprlib.repr(values)}{_advice(values)}") from error
    except RuntimeError as error:  # a torch tensor that requires grad; its own message says what to do
        raise TypeError(f"{what}: expected numbers: {error}") from error
    numeric = array.dtype.kind in "iuf"
    if array.dtype.kind == "O":
        numeric = all(value is None or hasattr(value, "__float__") for value in array.flat)
    if not numeric:
        got = f"{reprlib.repr(values)} ({array.dtype}){_advice(values)}"
        raise TypeError(f"{what}: expected real numbers, got {got}")
    try:
        return array.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{what}: expected float64 numbers, got {reprlib.repr(values)}: {error}") from error


def _advice(values: object) -> str:
    """What to write instead of what is often given where numbers belong."""
    if _is_value_and_gradient(values):
        return ", a pair of a value and a gradient: pass jac=True to minimize, or tell(x, *fun(x))"
    rows = [row for row in values if isinstance(row, tuple | list)] if isinstance(values, tuple | list) else []
    if any(isinstance(entry, str) and entry == "log" for row in rows for entry in row):
        return "; a log scale is said beside the pairs (low, high): eign.Box(bounds, log=[0]), or its names"
    return ""


def _is_value_and_gradient(values: object) -> bool:
    """Whether it is what a function with a gradient returns."""
    if not (isinstance(values, tuple) and len(values) == 2):
        return False
    value, gradient = values
    is_number = isinstance(value, float | int) or getattr(value, "ndim", None) == 0
    # A tuple would be a pair of bounds in the wrong place.
    return is_number and hasattr(gradient, "__len__") and not isinstance(gradient, tuple | str)


def whole_number(value: Any, *, least: int) -> int | None:
    """The whole number that a user passed; None if it is none, or too small. Truth values are none.

    >>> whole_number(np.int64(3), least=1), whole_number(0, least=1), whole_number(2.0, least=1)
    (3, None, None)
    """
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return None if isinstance(value, bool) or number < least else number


def read_only(array: Array) -> Array:
    """The same array, closed for writing."""
    array.flags.writeable = False
    return array


def times_power(values: Array, factor: Factor, power: int) -> Array:
    """The product values * factor**power, in which no intermediate overflows and a finite value stays finite.

    A result beyond the largest float becomes that float, because an infinite gradient would count as missing.

    >>> float(times_power(np.array(1e-300), np.frexp(np.array(1e200)), 2))
    1e+100
    """
    mantissa, exponent = factor
    value_mantissa, value_exponent = np.frexp(values)
    # A true quotient for negative powers, so that a value divided by itself is exactly 1.
    value_mantissa = value_mantissa / mantissa**-power if power < 0 else value_mantissa * mantissa**power
    with np.errstate(over="ignore"):
        product = np.ldexp(value_mantissa, value_exponent + power * exponent)
    return np.where(np.isfinite(values), np.clip(product, -LARGEST, LARGEST), product)
