"""The incumbent of an acquisition: the observed point that improvement is measured from, with its gradient."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eign import formulas
from eign.arrays import Array
from eign.data import Observations
from eign.models.surrogates import Surrogate


class Incumbent(NamedTuple):
    """An observed point `d`, its value and its gradient `d` with respect to the unit cube, in the units given."""

    x: Tensor
    best_f: float
    best_grad: Tensor


def best_observed(model: Surrogate, *, is_noisy: bool = False) -> tuple[Tensor, float]:
    """The incumbent without its gradient, which costs a posterior where it was not observed: `d`, and its value."""
    rows, y, best = _best_row(model, is_noisy=is_noisy)
    return torch.from_numpy(rows.x[best].copy()), float(y[best])


def incumbent(model: Surrogate, *, is_noisy: bool = False) -> Incumbent:
    """The best of the observed values; the incumbent of EI, EI-GN and the lower bound of EI_g.

    Components of its gradient that are missing are the posterior mean's. With noisy evaluations values and gradients
    are all the posterior mean's, at the observed points.

    Raises:
        ValueError: If no value has been observed.
    """
    rows, y, best = _best_row(model, is_noisy=is_noisy)
    row = rows[best]
    return _as_incumbent(row.x[0], y[best], _gradients(model, row, is_noisy=is_noisy)[0])


def stationary_incumbent(model: Surrogate, alpha: float, *, is_noisy: bool = False) -> Incumbent:
    r"""The observed point with the best g = f - alpha |grad f|^2 in common standardised units; EI_g's incumbent.

    In the units of y that is :math:`f - (\alpha / \mathrm{std}(y))\,\|\nabla f\|^2`.
    """
    rows = _with_value(model)
    y, grad = _values(model, rows, is_noisy=is_noisy), _gradients(model, rows, is_noisy=is_noisy)
    scale = model.standardization.y_scale
    value, slope = torch.from_numpy(y / scale), torch.from_numpy(grad / scale)
    best = int(formulas.auxiliary_objective(value, slope, alpha).argmax())
    return _as_incumbent(rows.x[best], y[best], grad[best])


def _best_row(model: Surrogate, *, is_noisy: bool) -> tuple[Observations, Array, int]:
    """The observations with a value, their values as they count, and which of them is the best."""
    rows = _with_value(model)
    y = _values(model, rows, is_noisy=is_noisy)
    return rows, y, int(y.argmax())


def _as_incumbent(x: Array, y: float, grad: Array) -> Incumbent:
    return Incumbent(torch.from_numpy(x.copy()), float(y), torch.from_numpy(grad.copy()))


def _with_value(model: Surrogate) -> Observations:
    """The usable observations that have one."""
    usable = model.observations.usable
    rows = usable if usable.has_y.all() else usable[usable.has_y]
    if not len(rows):
        raise ValueError("there is no incumbent: none of the observations has a value")
    return rows


def _values(model: Surrogate, rows: Observations, *, is_noisy: bool) -> Array:
    """What was observed, or the posterior mean there, `n`."""
    return np.asarray(model.moments(torch.tensor(rows.x))[0].numpy()) if is_noisy else rows.y


def _gradients(model: Surrogate, rows: Observations, *, is_noisy: bool) -> Array:
    """What was observed, or the posterior mean there and where components are missing, `n x d`."""
    missing = np.isnan(rows.grad) | is_noisy
    if not np.count_nonzero(missing):
        return rows.grad
    expected = model.gradient_posterior(torch.tensor(rows.x)).mean.numpy()
    return np.where(missing, expected, rows.grad)
