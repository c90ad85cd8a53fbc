"""A surrogate for a method that has one: fitted when due, its hyperparameters remembered in the state.

If the options give hyperparameters, nothing is fitted, and f is not standardised: its prior is the one given. Separate
processes of the partial derivatives have the same hyperparameters, after each is standardised as ever; a joint process
works in the units of y altogether.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from eign.data import Observations
from eign.models import Hyperparameters, IndependentGradientGP, JointGradientGP, fit
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.surrogates import Kind, Surrogate, appended, rows_of, within_row_budget
from eign.notices import warn_user
from eign.standardization import Standardization, standardize_independent
from eign.strategies.magnitudes import Computable
from eign.strategies.strategy import State

_EARLIER_NOISE: Final = 1e-6
"""What separate processes once assumed where nobody said that there is noise, in standardised units.

Studies begun then have None among their options, and keep it. Those begun since have 0.
"""
_REMARKABLE_JITTER: Final = 1e-6
LEARNED_FROM: Final = 500
"""Hyperparameters are learned from so many points at most: a fit takes the cube of them, and more change little."""


def is_noisy(data: Observations, options: Mapping[str, Any]) -> bool:
    """Whether values scatter: a variance was told, or a noise level is assumed."""
    return options["noise"] == "learn" or bool(options["noise"]) or bool((data.y_var > 0).any())


def computable(state: State, data: Observations) -> Computable:
    """What was told, for a model; hyperparameters that are given are in the units of y, which then stay."""
    given = state.options["hyperparameters"]
    return Computable(data, spread=None if given is None else math.sqrt(given["outputscale"]))


def learning_anew(state: State) -> State:
    """The state whose surrogate is fitted to all data: a fit to fewer may have been in other units altogether."""
    return replace(state, options={**state.options, "refit": 0.0})


def fitted_surrogate(kind: Kind, state: State, data: Observations) -> tuple[Surrogate, State]:
    """The surrogate of what was told, refitted if the data have grown enough, and the state that remembers the fit.

    Memory: `hyperparameters`, in standardised units, and `fitted`, the number of observations they were fitted to; both
    absent if hyperparameters are given. `jitter` has an entry [observations, largest jitter] for each fit of separate
    processes that took another jitter than the one before.
    """
    if state.options["hyperparameters"] is not None:
        return _with_given(kind, state, data), state
    fitted = state.memory.get("fitted", 0)
    if len(data) > fitted and len(data) >= fitted * (1.0 + state.options["refit"]):
        model = _fitted(kind, state, data)
        memory = {"hyperparameters": model.hyperparameters.to_json(), "fitted": len(data)}
        if isinstance(model, IndependentGradientGP):
            memory["jitter"] = _jitters(state, model.hyperparameters, len(data))
        return model, replace(state, memory=memory)
    # Standardised as it was when it was fitted: hyperparameters mean something in those units only.
    model = _model(kind, state, data[:fitted], warm=_stored(kind, state))
    return appended(model, data[fitted:], with_gradient=kind.with_gradient), state


def _fitted(kind: Kind, state: State, data: Observations) -> Surrogate:
    """The surrogate of all data, with hyperparameters learned from them or from a part of them evenly through time."""
    warm = _stored(kind, state)
    if len(data) <= LEARNED_FROM:
        return fit(_model(kind, state, data, warm=warm))
    rows = np.linspace(0, len(data) - 1, LEARNED_FROM).round().astype(np.intp)
    if data.has_y.any():
        rows = np.union1d(rows, [np.nanargmax(data.y)])
    learned = fit(_model(kind, state, data[rows], warm=warm))
    model = _model(kind, state, data)
    if isinstance(model, IndependentGradientGP) and isinstance(learned, IndependentGradientGP):
        return model.with_hyperparameters(learned.hyperparameters, learned.warm_start)
    assert isinstance(model, JointGradientGP)
    assert isinstance(learned, JointGradientGP)
    return model.with_hyperparameters(learned.hyperparameters)


def _model(
    kind: Kind,
    state: State,
    data: Observations,
    *,
    warm: Hyperparameters | JointHyperparameters | None = None,
    units: Standardization | None = None,
) -> Surrogate:
    noise = state.options["noise"]
    if noise is None and not kind.joint:
        noise = _EARLIER_NOISE
    chosen = {"kernel": state.options["kernel"], "noise": noise, "standardization": units}
    if kind.joint:
        rows = rows_of(within_row_budget(data, state.options["rows"]), with_gradient=kind.with_gradient)
        joint = JointGradientGP(rows.X, rows.Y, rows.G, Yvar=rows.Yvar, Gvar=rows.Gvar, **chosen)
        return joint.with_hyperparameters(warm) if isinstance(warm, JointHyperparameters) else joint
    rows = rows_of(data, with_gradient=kind.with_gradient)
    model = IndependentGradientGP(rows.X, rows.Y, rows.G, Yvar=rows.Yvar, Gvar=rows.Gvar, **chosen)
    return model.with_hyperparameters(warm) if isinstance(warm, Hyperparameters) else model


def _jitters(state: State, fitted: Hyperparameters, count: int) -> list[list[float]]:
    """The list in the memory with the jitter of this fit, and a warning when first that is as large as noise."""
    known, jitter = list(state.memory.get("jitter", ())), float(fitted.jitter.max())
    if jitter >= _REMARKABLE_JITTER > max((one for _, one in known), default=0.0):
        warn_user(
            f"the covariance matrix of {count} observations is nearly singular, and the model takes each to have noise "
            f"of {jitter:g} of their variance. Are points repeated with different values? Then tell the variance of "
            'the noise, or use options={"noise": "learn"}.',
            RuntimeWarning,
        )
    return known if known and known[-1][1] == jitter else [*known, [count, jitter]]


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
