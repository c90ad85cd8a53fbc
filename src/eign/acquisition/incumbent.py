"""The incumbent of an acquisition: the observed point that improvement is measured from, with its gradient."""

from typing import NamedTuple

import torch
from torch import Tensor

from eign import formulas
from eign.acquisition.moments import SurrogateModel, value_moments
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
    if is_noisy:
        x, y, grad = _observed(model, rows, is_noisy=True)
        best = int(y.argmax())
        return Incumbent(x[best], float(y[best]), grad[best])
    best = int(rows.y.argmax())
    x, _, grad = _observed(model, rows[best], is_noisy=False)
    return Incumbent(x[0], float(rows.y[best]), grad[0])


def stationary_incumbent(model: SurrogateModel, alpha: float, *, is_noisy: bool = False) -> Incumbent:
    r"""The observed point with the best g = f - alpha |grad f|^2 in common standardised units; EI_g's incumbent.

    In the units of y that is :math:`f - (\alpha / \mathrm{std}(y))\,\|\nabla f\|^2`.
    """
    x, y, grad = _observed(model, _with_value(model), is_noisy=is_noisy)
    scale = model.standardization.y_scale
    best = int(formulas.auxiliary_objective(y / scale, grad / scale, alpha).argmax())
    return Incumbent(x[best], float(y[best]), grad[best])


def _with_value(model: SurrogateModel) -> Observations:
    """The usable observations that have one."""
    usable = model.observations.usable
    rows = usable if usable.has_y.all() else usable[usable.has_y]
    if not len(rows):
        raise ValueError("there is no incumbent: none of the observations has a value")
    return rows


def _observed(model: SurrogateModel, rows: Observations, *, is_noisy: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Points, values and gradients of the rows, without gaps."""
    x, y, grad = (torch.tensor(part) for part in (rows.x, rows.y, rows.grad))
    if is_noisy:
        y, _ = value_moments(model, x)
        y = model.standardization.y_shift + model.standardization.y_scale * y
    missing = grad.isnan() | is_noisy
    if missing.any():
        grad = torch.where(missing, model.gradient_posterior(x).mean, grad)
    return x, y, grad
