"""The surrogates that methods choose from, given what a study knows: stand-ins for what failed and what is pending.

| rows | what the surrogate is given there |
|---|---|
| told | what was told |
| failed | the worst value seen, and no gradient: the region is avoided, and a second thought remains possible |
| pending | its own prediction of value and gradient, so that the next point looks for something else |

Only rows that were told take part in fitting.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array, Mask
from eign.data import Observations
from eign.models.independent.model import IndependentGradientGP
from eign.models.joint.model import JointGradientGP
from eign.models.spanned.model import SpannedGradientGP
from eign.space import contains

Surrogate = IndependentGradientGP | JointGradientGP | SpannedGradientGP


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """Which surrogate.

    Attributes:
        joint: One process of f and its gradient, or separate ones.
        with_gradient: Whether gradients are modelled at all.
    """

    joint: bool
    with_gradient: bool


def with_stand_ins(kind: Kind, model: Surrogate, data: Observations, pending: Array) -> Surrogate:
    """The surrogate given also the worst value at failed points and its own prediction at pending ones.

    A point that failed and was told with a value later did not fail.
    """
    failed = np.array([x for x in data.x[data.failed] if not contains(data.x[data.has_y], x)])
    if len(failed):
        worst = np.full(len(failed), data.y[data.has_y].min())
        model = appended(model, Observations(failed, worst), with_gradient=False)
    if not len(pending):
        return model
    return with_predictions(model, pending, seen=np.asarray(data.has_grad.any(axis=0) & kind.with_gradient))


def with_predictions(model: Surrogate, pending: Array, *, seen: Mask) -> Surrogate:
    """The surrogate given also its own prediction of the values at points `n x d`, and of the gradients.

    Args:
        model: The surrogate.
        pending: The points.
        seen: Which partial derivatives have been observed, `d`; one that never was stays unseen.
    """
    points, gradient = torch.from_numpy(np.array(pending)), None
    with torch.no_grad():
        value = model.moments(points)[0].numpy()
        if seen.any():
            gradient = np.where(seen, model.gradient_posterior(points).mean.numpy(), np.nan)
    return appended(model, Observations(pending, value, gradient), with_gradient=gradient is not None)


def appended(model: Surrogate, data: Observations, *, with_gradient: bool) -> Surrogate:
    """The surrogate with further observations."""
    if not len(data):
        return model
    rows = rows_of(data, with_gradient=with_gradient)
    return model.append(rows.X, rows.Y, rows.G, Yvar=rows.Yvar, Gvar=rows.Gvar)


def within_row_budget(data: Observations, rows: int) -> Observations:
    """All values, and the gradients of as many points as `rows` rows leave room for: of the best and of the latest.

    A gradient is d rows, and the cost grows with the cube of the rows. The best points are where the optimum is looked
    for, the latest where the search is now; half of the room goes to either.

    >>> data = Observations(np.linspace(0, 1, 4)[:, None], [9, 1, 2, 3], np.ones((4, 1)))
    >>> within_row_budget(data, 6).has_grad[:, 0].tolist()
    [True, False, False, True]
    """
    room = max(0, rows - len(data)) // data.dim
    if len(data) <= room:
        return data
    order = np.argsort(np.where(data.has_y, -data.y, np.inf), kind="stable")
    kept = np.zeros(len(data), dtype=np.bool_)
    kept[order[: (room + 1) // 2]] = True
    latest = np.flatnonzero(~kept)[::-1]
    kept[latest[: room - int(kept.sum())]] = True
    return Observations(data.x, data.y, np.where(kept[:, None], data.grad, np.nan), data.y_var, data.grad_var)


class ModelRows(NamedTuple):
    """Observations as the models take them."""

    X: Tensor
    Y: Tensor
    G: Tensor | None
    Yvar: Tensor
    Gvar: Tensor | None


def rows_of(data: Observations, *, with_gradient: bool) -> ModelRows:
    """The tensors that a model is made from."""
    X, Y, Yvar = torch.tensor(data.x), torch.tensor(data.y)[:, None], torch.tensor(data.y_var)[:, None]
    if not with_gradient:
        return ModelRows(X, Y, None, Yvar, None)
    return ModelRows(X, Y, torch.tensor(data.grad), Yvar, torch.tensor(data.grad_var))
