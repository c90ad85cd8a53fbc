"""Objectives: a function that returns a number becomes one that returns value and gradient, as `eign.minimize` wants.

| | one evaluation costs |
|---|---|
| `from_torch`, `from_jax` | the function and one backward pass: a few times the function, whatever d |
| `from_finite_differences` | 1 + d calls of the function, or 1 + 2 d |

The results are plain objects that pickle if the function does, so that they can be sent to workers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from scipy.optimize import approx_fprime

from eign.arrays import Array, as_floats
from eign.space import Box

Point = Array | Mapping[str, float]
Gradient = Array | dict[str, float]

# Steps, as a share of the box, at which rounding and truncation errors of a smooth function balance.
_STEPS: Final = {
    "forward": float(np.finfo(np.float64).eps ** (1 / 2)),
    "central": float(np.finfo(np.float64).eps ** (1 / 3)),
}


@final
@dataclass(frozen=True, slots=True)
class TorchObjective:
    """Value and gradient of a function of torch tensors; made by `from_torch`."""

    fun: Callable[..., Any]

    def __call__(self, x: Point, *args: Any) -> tuple[float, Gradient]:
        """Value and gradient at one point."""
        import torch

        named = _named(x)
        with torch.enable_grad():
            leaves = {name: torch.tensor(part, dtype=torch.float64, requires_grad=True) for name, part in named.items()}
            value = self.fun(_unnamed(leaves, x), *args)
            if not isinstance(value, torch.Tensor):
                raise TypeError(
                    f"the function returned {type(value).__name__}, expected a torch tensor with one number"
                )
            _check_one_number(tuple(value.shape))
            if not value.requires_grad:
                raise ValueError(
                    "the function returned a tensor without gradient: .item(), .detach(), NumPy and torch.no_grad() "
                    "cut it off from its argument"
                )
            # A coordinate that the function does not look at has no slope.
            slopes = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True)
        return value.item(), _gradient(dict(zip(leaves, slopes, strict=True)), x)


@final
@dataclass(frozen=True, slots=True)
class JaxObjective:
    """Value and gradient of a function of JAX arrays; made by `from_jax`."""

    fun: Callable[..., Any]

    def __call__(self, x: Point, *args: Any) -> tuple[float, Gradient]:
        """Value and gradient at one point."""
        import jax
        import jax.numpy as jnp

        # JAX rounds to single precision unless it is told otherwise.
        with jax.enable_x64(True):
            leaves = {name: jnp.asarray(part, dtype=jnp.float64) for name, part in _named(x).items()}
            value, pullback = jax.vjp(lambda named: self.fun(_unnamed(named, x), *args), leaves)
            if not (hasattr(value, "shape") and jnp.issubdtype(value.dtype, jnp.floating)):
                kind = getattr(value, "dtype", type(value).__name__)
                raise TypeError(f"the function returned {kind}, expected a JAX array with one real number")
            _check_one_number(value.shape)
            (slopes,) = pullback(jnp.ones_like(value))
        return float(value.reshape(())), _gradient(slopes, x)


@final
@dataclass(frozen=True, slots=True)
class DifferencesObjective:
    """Value and gradient by differences of values; made by `from_finite_differences`.

    Attributes:
        fun: The user's function.
        box: Where it is defined.
        named: Whether it takes dicts.
        scheme: "forward" or "central".
        step: As a share of the box.
    """

    fun: Callable[..., Any]
    box: Box
    named: bool
    scheme: str
    step: float

    @property
    def cost(self) -> int:
        """Calls of the function for one evaluation."""
        return 1 + self.box.free_dim * (2 if self.scheme == "central" else 1)

    def __call__(self, x: Point, *args: Any) -> tuple[float, Gradient | None]:
        """Value and gradient at one point; a failed value (None or NaN) has no gradient, and costs one call."""
        point = self.box.from_dict(x) if isinstance(x, Mapping) else as_floats(x, "x")
        known: dict[bytes, float] = {}

        def value(free: Array) -> float:
            if free.tobytes() not in known:
                moved = point.copy()
                moved[self.box.free] = free
                given = self.fun(self.box.as_dict(moved) if self.named else moved, *args)
                known[free.tobytes()] = _single(given)
            return known[free.tobytes()]

        here = point[self.box.free]
        if not np.isfinite(value(here)):
            return value(here), None
        gradient = np.full(self.box.dim, np.nan)
        gradient[self.box.free] = np.mean([approx_fprime(here, value, step) for step in self._steps(point)], axis=0)
        return value(here), self.box.as_dict(gradient) if self.named else gradient

    def _steps(self, x: Array) -> list[Array]:
        """Steps along the free coordinates, turned round where they would leave the box; both ways if central."""
        low, here, high = (ends[self.box.free] for ends in (self.box.lower, x, self.box.upper))
        length = np.maximum(self.step * self.box.unit_scale(x), 2.0 * np.spacing(np.abs(here)))
        # On a log scale the derivative of x may be longer than the way to either end.
        length = np.minimum(length, np.maximum(high - here, here - low))
        up = np.where(length <= high - here, length, -length)
        if self.scheme == "forward":
            return [up]
        return [up, np.where(length <= here - low, -length, length)]


def from_torch(fun: Callable[..., Any]) -> TorchObjective:
    """A function that computes its value from torch tensors, with its gradient by autograd.

    >>> import torch, eign
    >>> rosenbrock = from_torch(lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)
    >>> rosenbrock(np.array([0.0, 1.0]))
    (101.0, array([ -2., 200.]))

    Args:
        fun: Takes a float64 tensor (d,), or a dict of tensors () where the bounds are a dict, and returns a tensor with
            one number.
    """
    return TorchObjective(_function(fun))


def from_jax(fun: Callable[..., Any]) -> JaxObjective:
    """A function that computes its value from JAX arrays, with its gradient by JAX; in double precision.

    The function may be compiled: pass `jax.jit(fun)`. Constants that it makes in single precision stay single.

    Args:
        fun: Takes a float64 array (d,), or a dict of arrays () where the bounds are a dict, and returns one number.
    """
    return JaxObjective(_function(fun))


def from_finite_differences(
    fun: Callable[..., Any], bounds: Any, *, scheme: str = "forward", step: float | None = None
) -> DifferencesObjective:
    """A function whose gradient is taken from differences: the last resort, at d or 2 d further calls a point.

    With a budget of n evaluations the function is called n (1 + d) or n (1 + 2 d) times, see `cost`. A method that
    needs no gradients may do better for the same calls.

    >>> objective = from_finite_differences(lambda x: x[0] ** 2, [(0.0, 4.0)], scheme="central")
    >>> value, gradient = objective(np.array([3.0]))
    >>> objective.cost, value, gradient.round(6)
    (3, 9.0, array([6.]))

    Args:
        fun: Takes an array (d,), or a dict if `bounds` is one, and returns a number; None or NaN where it fails.
        bounds: As for `eign.minimize`; no point outside is evaluated.
        scheme: "forward", d further calls, error proportional to the step; or "central", 2 d, to its square.
        step: As a share of the box, of its logarithm on log scales. None suits functions that are exact to all digits;
            if only the first k digits are, take about 10 ** (-k / 2) for "forward" and 10 ** (-k / 3) for "central".

    Raises:
        ValueError: the scheme is unknown, or the step is not between 0 and 0.5.
    """
    if scheme not in _STEPS:
        raise ValueError(f"scheme={scheme!r}, expected one of {', '.join(_STEPS)}")
    share = _STEPS[scheme] if step is None else float(step)
    if not 0.0 < share <= 0.5:
        raise ValueError(f"step={step!r}, expected a share of the box above 0 and at most 0.5")
    box = bounds if isinstance(bounds, Box) else Box(bounds)
    return DifferencesObjective(_function(fun), box, isinstance(bounds, Mapping), scheme, share)


def _function(fun: Any) -> Callable[..., Any]:
    if not callable(fun):
        raise TypeError(f"fun: expected a function, got {fun!r}")
    return fun  # type: ignore[no-any-return]


def _named(x: Point) -> dict[str, Any]:
    """The parts of a point that have a gradient of their own: all at once, or one for each name."""
    return dict(x) if isinstance(x, Mapping) else {"": as_floats(x, "x")}


def _unnamed(leaves: Mapping[str, Any], x: Point) -> Any:
    return leaves if isinstance(x, Mapping) else leaves[""]


def _gradient(slopes: Mapping[str, Any], x: Point) -> Gradient:
    if isinstance(x, Mapping):
        return {name: float(slope) for name, slope in slopes.items()}
    return as_floats(slopes[""], "gradient")


def _check_one_number(shape: tuple[int, ...]) -> None:
    if np.prod(shape, dtype=int) != 1:
        raise ValueError(f"the function returned an array of shape {shape}, expected one number; sum or average it")


def _single(value: Any) -> float:
    array = as_floats(value, "value")
    _check_one_number(array.shape)
    return float(array.reshape(()))
