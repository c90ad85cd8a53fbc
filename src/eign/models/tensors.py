"""The tensors that users of BoTorch pass, checked: in float64 on the CPU, and as observations."""

from functools import cache
from typing import Final

import numpy as np
import torch
from botorch.exceptions.warnings import InputDataWarning
from numpy.typing import NDArray
from torch import Tensor

from eign.data import Observations
from eign.notices import warn_user

_SINGLE: Final = (torch.float32, torch.float16, torch.bfloat16)
# So far outside the unit cube a point may lie, as for BoTorch's own models.
_OUTSIDE: Final = 1e-2


def as_double(X: Tensor, name: str = "X", *, role: str = "points") -> Tensor:
    """The tensor in float64, with its graph; of single precision it is said once that this is so.

    Raises:
        TypeError: It is no tensor, or one of truth values or complex numbers.
        ValueError: It is elsewhere than on the CPU.
    """
    given: object = X
    if not isinstance(given, Tensor):
        kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
        raise TypeError(f"{name} is a {kind}, expected a tensor: torch.as_tensor({name}, dtype=torch.float64)")
    if X.device.type != "cpu":
        advice = "and that device holds no numbers" if X.is_meta else f"pass {name}.cpu()"
        raise ValueError(f"{name} is on the device {X.device}; the models compute on the CPU, {advice}")
    if X.dtype == torch.bool or X.is_complex():
        raise TypeError(f"{name} has the dtype {X.dtype}, expected real numbers: torch.float64")
    if X.dtype in _SINGLE:
        _say_that_double_is_used(role, X.dtype)
    return X.to(torch.float64)


def as_points(X: Tensor, dim: int, name: str = "X", *, q: bool = False) -> Tensor:
    """Points `... x d` of a model with so many coordinates, or `... x q x d`, in float64 and with their graph.

    Raises:
        TypeError: As of `as_double`.
        ValueError: The shape is wrong, or they are elsewhere than on the CPU.
    """
    points = as_double(X, name)
    if points.ndim < 1 + q or points.shape[-1] != dim:
        expected = f"(..., q, {dim})" if q else f"(..., {dim})"
        advice = f"; one point is {name}[None]" if q and points.shape == (dim,) else ""
        raise ValueError(f"{name} has shape {tuple(X.shape)}, expected {expected}: the model has d = {dim}{advice}")
    return points


def as_rows(X: Tensor, dim: int, name: str = "X") -> NDArray[np.float64]:
    """Points `m x d` without their graph; errors as of `as_points`."""
    points = as_points(X, dim, name, q=True)
    if points.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(X.shape)}, expected (m, {dim}): this takes no batches")
    return np.asarray(points.detach().numpy())


def as_array(X: Tensor, name: str = "X", *, role: str = "points") -> NDArray[np.float64]:
    """The numbers of a tensor in float64, without its graph; errors as of `as_double`."""
    return np.asarray(as_double(X, name, role=role).detach().numpy())


def as_noise(noise: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Noise variances of values `... x k x 1` at `... x k x d`, in float64 and with their graph.

    Raises:
        TypeError: As of `as_double`.
        ValueError: They do not broadcast to the values, or one is negative or not finite.
    """
    variances, values = as_double(noise, "noise", role="data"), torch.broadcast_shapes(y.shape, (*x.shape[:-1], 1))
    if not _broadcasts_to(variances.shape, values):
        raise ValueError(
            f"noise has shape {tuple(noise.shape)}, expected variances of the values Y, {tuple(y.shape)}; "
            "gradients go to append(X, Y, G)"
        )
    wrong = variances[~((variances >= 0) & torch.isfinite(variances))]
    if len(wrong):
        raise ValueError(f"noise has the variance {wrong[0].item():g}, expected finite numbers that are not negative")
    return variances


def _broadcasts_to(shape: torch.Size, expected: torch.Size) -> bool:
    """Whether a tensor of a shape can be expanded to the other."""
    try:
        return bool(torch.broadcast_shapes(shape, expected) == expected)
    except RuntimeError:
        return False


def as_observations(
    X: Tensor, Y: Tensor, G: Tensor | None, *, Yvar: Tensor | None = None, Gvar: Tensor | None = None
) -> Observations:
    """X `n x d`, Y `n x 1`, G `n x d` and their variances as observations; of X outside the unit cube it is said once.

    Raises:
        TypeError: Something is no tensor.
        ValueError: A shape is wrong, or something is elsewhere than on the CPU.
    """
    x, y = (as_array(part, name, role="data") for part, name in ((X, "X"), (Y, "Y")))
    if x.ndim != 2 or y.shape != (len(x), 1):
        raise ValueError(f"X has shape {x.shape} and Y {y.shape}, expected (n, d) and (n, 1); one point is X[None]")
    grad, grad_var, y_var = (
        None if part is None else as_array(part, name, role="data")
        for part, name in ((G, "G"), (Gvar, "Gvar"), (Yvar, "Yvar"))
    )
    if y_var is not None and y_var.shape != y.shape:
        raise ValueError(f"Yvar has shape {y_var.shape}, expected that of Y, {y.shape}")
    if ((x < -_OUTSIDE) | (x > 1.0 + _OUTSIDE)).any():
        _say_that_the_cube_is_expected()
    return Observations(x, y[:, 0], grad, None if y_var is None else y_var[:, 0], grad_var)


@cache
def _say_that_double_is_used(role: str, given: torch.dtype) -> None:
    """Once in a process, at the line of the user; apart for points, as BoTorch's searches swallow warnings."""
    warn_user(
        f"the models compute in float64 and answer in it, and were given {role} in {given}; "
        "make them with dtype=torch.float64, as converting does not bring back digits (this is said once)"
    )


@cache
def _say_that_the_cube_is_expected() -> None:
    """Once in a process: nothing fails, but priors of lengthscales are for the cube, and the fit is a poor one."""
    warn_user(
        "X should be in the unit cube, for which the priors of the models are made, and is not: with "
        "box = eign.Box(bounds) pass box.to_unit(x) and box.times_unit_scale(gradient, x) (this is said once)",
        InputDataWarning,
    )
