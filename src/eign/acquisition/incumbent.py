"""The incumbent of an acquisition: the observed point that improvement is measured from, with its gradient."""

from typing import NamedTuple

import torch
from torch import Tensor

from eign import formulas
from eign.acquisition.moments import SurrogateModel
from eign.data import Observations


class Incumbent(NamedTuple):
    """An observed point `d`, its value and its gradient `d` with respect to the unit cube, in the units given."""

    x: Tensor
    best_f: float
    best_grad: Tensor


def incumbent(model: SurrogateModel, *, is_noisy: bool = False) -> Incumbent:
    """The best of the observed values; the incumbent of EI, EI-GN and the lower bound of EI_g.

    Components of its gradient that are missing are the posterior mean's. With noisy evaluations values and gradients
    are all the posterior mean's, at the observed points.

    Raises:
        ValueError: If no value has been observed.
    """
    rows = _with_value(model)
    y = _values(model, rows, is_noisy=is_noisy)
    best = int(y.argmax())
    row = rows[best]
    return Incumbent(torch.tensor(row.x[0]), float(y[best]), _gradients(model, row, is_noisy=is_noisy)[0])


def stationary_incumbent(model: SurrogateModel, alpha: float, *, is_noisy: bool = False) -> Incumbent:
    r"""The observed point with the best g = f - alpha |grad f|^2 in common standardised units; EI_g's incumbent.

    In the units of y that is :math:`f - (\alpha / \mathrm{std}(y))\,\|\nabla f\|^2`.
    """
    rows = _with_value(model)
    y, grad = _values(model, rows, is_noisy=is_noisy), _gradients(model, rows, is_noisy=is_noisy)
    scale = model.standardization.y_scale
    best = int(formulas.auxiliary_objective(y / scale, grad / scale, alpha).argmax())
    return Incumbent(torch.tensor(rows.x[best]), float(y[best]), grad[best])


def _with_value(model: SurrogateModel) -> Observations:
    """The usable observations that have one."""
    usable = model.observations.usable
    rows = usable if usable.has_y.all() else usable[usable.has_y]
    if not len(rows):
        raise ValueError("there is no incumbent: none of the observations has a value")
    return rows


def _values(model: SurrogateModel, rows: Observations, *, is_noisy: bool) -> Tensor:
    """What was observed, or the posterior mean there."""
    return model.moments(torch.tensor(rows.x))[0] if is_noisy else torch.tensor(rows.y)


def _gradients(model: SurrogateModel, rows: Observations, *, is_noisy: bool) -> Tensor:
    """What was observed, or the posterior mean there and where components are missing."""
    grad = torch.tensor(rows.grad)
    missing = grad.isnan() | is_noisy
    if missing.any():
        grad = torch.where(missing, model.gradient_posterior(torch.tensor(rows.x)).mean, grad)
    return grad
