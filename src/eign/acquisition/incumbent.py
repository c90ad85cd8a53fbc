"""The incumbent of an acquisition: the observed point that improvement is measured from, with its gradient."""

from typing import NamedTuple

import torch
from torch import Tensor

from eign import formulas
from eign.acquisition.moments import SurrogateModel, value_moments


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
    x, y, grad = _observed(model, is_noisy=is_noisy)
    best = int(y.argmax())
    return Incumbent(x[best], float(y[best]), grad[best])


def stationary_incumbent(model: SurrogateModel, alpha: float, *, is_noisy: bool = False) -> Incumbent:
    r"""The observed point with the best g = f - alpha |grad f|^2 in common standardised units; EI_g's incumbent.

    In the units of y that is :math:`f - (\alpha / \mathrm{std}(y))\,\|\nabla f\|^2`.
    """
    x, y, grad = _observed(model, is_noisy=is_noisy)
    scale = model.standardization.y_scale
    best = int(formulas.auxiliary_objective(y / scale, grad / scale, alpha).argmax())
    return Incumbent(x[best], float(y[best]), grad[best])


def _observed(model: SurrogateModel, *, is_noisy: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Points with a value, values and gradients without gaps."""
    usable = model.observations.usable
    rows = usable[usable.has_y]
    if not len(rows):
        raise ValueError("there is no incumbent: none of the observations has a value")
    x, y, grad = (torch.tensor(part) for part in (rows.x, rows.y, rows.grad))
    if is_noisy:
        y, _ = value_moments(model, x)
        y = model.standardization.y_shift + model.standardization.y_scale * y
    missing = grad.isnan() | is_noisy
    if missing.any():
        grad = torch.where(missing, model.gradient_posterior(x).mean, grad)
    return x, y, grad
