"""From what a study knows to a surrogate: fitted when due, with stand-ins for what failed and what is pending.

| rows | what the surrogate is given there |
|---|---|
| told | what was told |
| failed | the worst value seen, and no gradient: the region is avoided, and a second thought remains possible |
| pending | its own prediction of value and gradient, so that the next point looks for something else |

Only rows that were told take part in fitting.

If the options give hyperparameters, nothing is fitted, and f is not standardised: its prior is the one given. Separate
processes of the partial derivatives have the same hyperparameters, after each is standardised as ever; a joint process
works in the units of y altogether.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.data import Observations, Standardization, standardize_independent
from eign.models import Hyperparameters, IndependentGradientGP, JointGradientGP, fit
from eign.models.joint_hyperparameters import JointHyperparameters
from eign.strategies.strategy import State, contains

Surrogate = IndependentGradientGP | JointGradientGP


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


def is_noisy(data: Observations, options: Mapping[str, Any]) -> bool:
    """Whether values scatter: a variance was told, or a noise level is assumed."""
    return options["noise"] == "learn" or bool(options["noise"]) or bool((data.y_var > 0).any())


def fitted_surrogate(kind: Kind, state: State, data: Observations) -> tuple[Surrogate, State]:
    """The surrogate of what was told, refitted if the data have grown enough, and the state that remembers the fit.

    Memory: `hyperparameters`, in standardised units, and `fitted`, the number of observations they were fitted to; both
    absent if hyperparameters are given.
    """
    if state.options["hyperparameters"] is not None:
        return _with_given(kind, state, data), state
    fitted = state.memory.get("fitted", 0)
    if len(data) > fitted and len(data) >= fitted * (1.0 + state.options["refit"]):
        model = fit(_model(kind, state, data, warm=_stored(kind, state)))
        memory = {"hyperparameters": model.hyperparameters.to_json(), "fitted": len(data)}
        return model, replace(state, memory=memory)
    # Standardised as it was when it was fitted: hyperparameters mean something in those units only.
    model = _model(kind, state, data[:fitted], warm=_stored(kind, state))
    return _appended(model, data[fitted:], with_gradient=kind.with_gradient), state


def with_stand_ins(kind: Kind, model: Surrogate, data: Observations, pending: Array) -> Surrogate:
    """The surrogate given also the worst value at failed points and its own prediction at pending ones.

    A point that failed and was told with a value later did not fail.
    """
    failed = np.array([x for x in data.x[data.failed] if not contains(data.x[data.has_y], x)])
    if len(failed):
        worst = np.full(len(failed), data.y[data.has_y].min())
        model = _appended(model, Observations(failed, worst), with_gradient=False)
    if not len(pending):
        return model
    points = torch.from_numpy(np.array(pending))
    with torch.no_grad():
        value = model.moments(points)[0].numpy()
        gradient = None
        if kind.with_gradient:
            # A partial derivative that was never seen stays unseen.
            seen = data.has_grad.any(axis=0)
            gradient = np.where(seen, model.gradient_posterior(points).mean.numpy(), np.nan)
    return _appended(model, Observations(pending, value, gradient), with_gradient=kind.with_gradient)


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


def _model(
    kind: Kind,
    state: State,
    data: Observations,
    *,
    warm: Hyperparameters | JointHyperparameters | None = None,
    units: Standardization | None = None,
) -> Surrogate:
    chosen = {"kernel": state.options["kernel"], "noise": state.options["noise"], "standardization": units}
    if kind.joint:
        rows = rows_of(within_row_budget(data, state.options["rows"]), with_gradient=kind.with_gradient)
        joint = JointGradientGP(rows.X, rows.Y, rows.G, Yvar=rows.Yvar, Gvar=rows.Gvar, **chosen)
        return joint.with_hyperparameters(warm) if isinstance(warm, JointHyperparameters) else joint
    rows = rows_of(data, with_gradient=kind.with_gradient)
    model = IndependentGradientGP(rows.X, rows.Y, rows.G, Yvar=rows.Yvar, Gvar=rows.Gvar, **chosen)
    return model.with_hyperparameters(warm) if isinstance(warm, Hyperparameters) else model


def _with_given(kind: Kind, state: State, data: Observations) -> Surrogate:
    """The surrogate with the hyperparameters that the options give, and f as it is."""
    given, dim = state.options["hyperparameters"], state.dim
    units = Standardization(0.0, 1.0, np.zeros(dim), np.ones(dim))
    if not kind.joint and kind.with_gradient:
        units = replace(standardize_independent(data), y_shift=0.0, y_scale=1.0)
    model = _model(kind, state, data, units=units)
    lengths, scale = np.broadcast_to(given["lengthscale"], dim), given["outputscale"]
    if isinstance(model, IndependentGradientGP):
        return model.with_hyperparameters(Hyperparameters.shared(dim, lengthscale=lengths, outputscale=scale))
    (term,) = model.hyperparameters.terms
    terms = (replace(term, lengthscale=np.array(lengths), outputscale=scale),)
    return model.with_hyperparameters(replace(model.hyperparameters, terms=terms))


def _stored(kind: Kind, state: State) -> Hyperparameters | JointHyperparameters | None:
    stored = state.memory.get("hyperparameters")
    if stored is None:
        return None
    return JointHyperparameters.from_json(stored) if kind.joint else Hyperparameters.from_json(stored)


def _appended(model: Surrogate, data: Observations, *, with_gradient: bool) -> Surrogate:
    if not len(data):
        return model
    rows = rows_of(data, with_gradient=with_gradient)
    return model.append(rows.X, rows.Y, rows.G, Yvar=rows.Yvar, Gvar=rows.Gvar)


class Rows(NamedTuple):
    """Observations as the models take them."""

    X: Tensor
    Y: Tensor
    G: Tensor | None
    Yvar: Tensor
    Gvar: Tensor | None


def rows_of(data: Observations, *, with_gradient: bool) -> Rows:
    """The tensors that a model is made from."""
    X, Y, Yvar = torch.tensor(data.x), torch.tensor(data.y)[:, None], torch.tensor(data.y_var)[:, None]
    if not with_gradient:
        return Rows(X, Y, None, Yvar, None)
    return Rows(X, Y, torch.tensor(data.grad), Yvar, torch.tensor(data.grad_var))
