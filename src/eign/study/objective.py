"""The user's function behind one signature: a point in, value and gradient out, errors that say what to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from eign.arrays import Array, as_floats
from eign.space import Box

Jacobian = bool | Callable[..., Any] | None
"""True: the function returns (value, gradient). A function of its own. None or False: no gradients."""


@final
@dataclass(frozen=True, slots=True)
class Objective:
    """A function with its gradient.

    Attributes:
        fun: The user's function.
        jac: Where its gradient comes from.
        args: Further arguments of both.
        box: Where it is defined.
        named: Whether points are given to it as dicts.
    """

    fun: Callable[..., Any]
    jac: Jacobian
    args: tuple[Any, ...]
    box: Box
    named: bool

    def __post_init__(self) -> None:
        if not callable(self.fun):
            raise TypeError(f"fun: expected a function, got {self.fun!r}")
        if not (self.jac is None or isinstance(self.jac, bool) or callable(self.jac)):
            raise TypeError(f"jac={self.jac!r}, expected True, None, or a function that returns the gradient")

    def call(self, x: Array) -> tuple[Any, Any]:
        """What the user's functions return at x `d`: whatever they raise is theirs."""
        point = self.box.as_dict(x) if self.named else x
        answer = self.fun(point, *self.args)
        return answer, (self.jac(point, *self.args) if callable(self.jac) else None)

    def read(self, answer: Any, gradient: Any) -> tuple[float, Any]:
        """Value and gradient from what `call` gave; None or NaN where something is missing.

        Raises:
            TypeError: there is a value alone where value and gradient were promised.
            ValueError: there is no single value.
        """
        if self.jac is True:
            answer, gradient = _pair(answer)
        if isinstance(gradient, Mapping) or gradient is None:
            return _number(answer), gradient
        return _number(answer), as_floats(gradient, "gradient")


def _pair(answer: Any) -> tuple[Any, Any]:
    if isinstance(answer, tuple | list) and len(answer) == 2:
        return answer[0], answer[1]
    raise TypeError(
        f"return (value, gradient) or pass jac=None: with jac=True the function returned {type(answer).__name__}"
    )


def _number(value: Any) -> float:
    """The value as a float, NaN for None."""
    array = np.asarray(as_floats(value, "value"))
    if array.size != 1:
        raise ValueError(f"the function returned a value of shape {array.shape}, expected one number")
    return float(array.reshape(()))
