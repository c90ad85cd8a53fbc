"""Bayesian optimization: a surrogate, and a rule that picks the next point from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np
import torch

from eign.acquisition import (
    EI,
    EIGN,
    UCB,
    EIg,
    EIgBound,
    LogEI,
    SurrogateAcquisition,
    incumbent,
    stationary_incumbent,
)
from eign.arrays import Array
from eign.data import Observations
from eign.models import IndependentGradientGP
from eign.models.incumbent import best_observed
from eign.models.surrogates import Kind, Surrogate, with_stand_ins
from eign.search import maximize
from eign.space import contains
from eign.strategies.design import N_INIT, initial_proposal, is_initial
from eign.strategies.magnitudes import Computable
from eign.strategies.options import Option, at_least, fixed_hyperparameters, flag, noise_level, one_of, whole
from eign.strategies.strategy import Belief, Proposal, State, Strategy
from eign.strategies.surrogate_fit import fitted_surrogate, is_noisy
from eign.strategies.thompson import sampled_maximizer


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """What a rule picks the next point from.

    Attributes:
        model: The surrogate, with stand-ins for failed and pending points.
        options: Of the method.
        seed: For this proposal.
        noisy: Whether values scatter, so that the incumbent is the surrogate's and a point may be repeated.
    """

    model: Surrogate
    options: Mapping[str, Any]
    seed: int
    noisy: bool


class Pick(NamedTuple):
    """The next point `d`, and what it maximises, if that is an acquisition."""

    x: Array
    target: SurrogateAcquisition | None = None


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """How the next point is picked from a surrogate.

    Attributes:
        pick: Finds the point.
        gradient: Whether it looks at the posterior of the gradient; without any gradient the rule is `ei`.
        options: Its own options.
    """

    pick: Callable[[Choice], Pick]
    gradient: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)


def _by(acquisition: Callable[[Choice], SurrogateAcquisition]) -> Callable[[Choice], Pick]:
    """The rule that maximises an acquisition."""

    def pick(choice: Choice) -> Pick:
        best, _ = best_observed(choice.model, is_noisy=choice.noisy)
        found = maximize(
            acquisition(choice),
            seed=choice.seed,
            restarts=choice.options["restarts"],
            raw_samples=choice.options["raw_samples"],
            incumbents=best[None],
            is_noisy=choice.noisy,
            rescale=choice.options.get("rescale", True),
        )
        return Pick(found.x.numpy().copy(), found.target)

    return pick


def _best_f(choice: Choice) -> float:
    return best_observed(choice.model, is_noisy=choice.noisy)[1]


def _ei(choice: Choice) -> SurrogateAcquisition:
    return EI(choice.model, _best_f(choice))


def _log_ei(choice: Choice) -> SurrogateAcquisition:
    return LogEI(choice.model, _best_f(choice))


def _ei_xi(choice: Choice) -> SurrogateAcquisition:
    return EI(choice.model, _best_f(choice), xi=choice.options["xi"])


def _ucb(choice: Choice) -> SurrogateAcquisition:
    return UCB(choice.model, weight=choice.options["weight"])


def _ei_gn(choice: Choice) -> SurrogateAcquisition:
    _, best_f, best_grad = incumbent(choice.model, is_noisy=choice.noisy)
    return EIGN(choice.model, best_f, best_grad, alpha=choice.options["alpha"])


def _ei_g(choice: Choice) -> SurrogateAcquisition:
    alpha = choice.options["alpha"]
    _, best_f, best_grad = stationary_incumbent(choice.model, alpha, is_noisy=choice.noisy)
    return EIg(choice.model, best_f, best_grad, alpha=alpha)


def _ei_g_bound(choice: Choice) -> SurrogateAcquisition:
    _, best_f, best_grad = incumbent(choice.model, is_noisy=choice.noisy)
    alpha, samples = choice.options["alpha"], choice.options["samples"]
    return EIgBound(choice.model, best_f, best_grad, alpha=alpha, samples=samples, seed=choice.seed)


def _thompson(choice: Choice) -> Pick:
    assert isinstance(choice.model, IndependentGradientGP), "the registry has it on separate processes"
    return Pick(sampled_maximizer(choice.model, candidates=choice.options["candidates"], seed=choice.seed))


_SEARCH: Final = {
    "restarts": Option(None, whole(least=1), "local searches of the acquisition; None is the paper's table"),
    "raw_samples": Option(None, whole(least=1), "candidates they start from; None is the paper's table"),
}
_ALPHA: Final = {"alpha": Option(0.6, at_least(0.0), "weight of stationarity; 0 is ei")}
_STATIONARY: Final = {**_SEARCH, **_ALPHA}
_RESCALED: Final = {
    **_STATIONARY,
    "rescale": Option(True, flag, "rescale both terms over the candidates, as the paper"),
}
_SAMPLES: Final = {"samples": Option(256, whole(least=1), "Monte Carlo samples")}
_XI: Final = {"xi": Option(0.01, at_least(0.0), "margin, in standard deviations of y")}
_WEIGHT: Final = {"weight": Option(2.0, at_least(0.0), "of the standard deviation")}
_CANDIDATES: Final = {"candidates": Option(1024, whole(least=1), "points among which the sample's maximum is taken")}

RULES: Final[Mapping[str, Rule]] = {
    "ei": Rule(_by(_ei), options=_SEARCH),
    "log-ei": Rule(_by(_log_ei), options=_SEARCH),
    "ei-xi": Rule(_by(_ei_xi), options={**_SEARCH, **_XI}),
    "ucb": Rule(_by(_ucb), options={**_SEARCH, **_WEIGHT}),
    "thompson": Rule(_thompson, options=_CANDIDATES),
    "ei-gn": Rule(_by(_ei_gn), gradient=True, options=_RESCALED),
    "ei-g": Rule(_by(_ei_g), gradient=True, options=_STATIONARY),
    "ei-g-bound": Rule(_by(_ei_g_bound), gradient=True, options={**_RESCALED, **_SAMPLES}),
}
"""The rules by name; the registry combines them with a surrogate to methods."""

_KERNELS: Final = ("matern52", "rbf")
_JOINT_KERNELS: Final = (*_KERNELS, "additive", "additive+full", "two-additive+full")


@final
class Bayesian(Strategy):
    """The initial design, then the points that a rule picks from a surrogate.

    Without values there is nothing to model, so that the design goes on. Without gradients a rule that needs them is
    `ei`. How failed and pending points are seen by the surrogate, and what the memory holds: see `surrogate_fit`.
    """

    expects_improvement = True

    def __init__(self, rule: str, surrogate: Literal["independent", "joint"] = "independent") -> None:
        """A rule of `RULES` on separate processes of f and its partial derivatives, or on one joint process."""
        self._rule, self._is_joint = RULES[rule], surrogate == "joint"

    @property
    def options(self) -> Mapping[str, Option]:
        """Design, surrogate, and what the rule adds."""
        joint = self._is_joint
        surrogate = {
            "kernel": Option("matern52", one_of(*(_JOINT_KERNELS if joint else _KERNELS)), "of the surrogate"),
            "noise": Option(0.0, noise_level, 'variance in standardised units, or "learn"; None is no noise'),
            "hyperparameters": Option(
                None, fixed_hyperparameters, "lengthscale (unit cube) and outputscale (units of y) instead of fitting"
            ),
            "refit": Option(0.1 if joint else 0.0, at_least(0.0), "refit when the data have grown by this share"),
        }
        rows = {"rows": Option(1000, whole(least=1), "of the covariance matrix; gradients beyond are left out")}
        return {**N_INIT, **surrogate, **(rows if joint else {}), **self._rule.options}

    def contradiction(self, dim: int, options: Mapping[str, Any]) -> str | None:
        """Fixed hyperparameters are for this dimension, a kernel with one lengthscale a coordinate, and known noise."""
        if options["hyperparameters"] is None:
            return None
        lengths = options["hyperparameters"]["lengthscale"]
        if isinstance(lengths, list) and len(lengths) != dim:
            return f"hyperparameters have {len(lengths)} lengthscales, expected one for all or {dim}"
        if options["noise"] == "learn":
            return 'noise="learn" needs fitting; with hyperparameters give its variance, or leave it out'
        if options["kernel"] not in _KERNELS:
            return f"hyperparameters are for the kernels {', '.join(_KERNELS)}, got {options['kernel']!r}"
        return None

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """A point of the design, or what the rule picks."""
        if is_initial(state, data, pending) or not data.has_y.any():
            return initial_proposal(state)
        if state.options["hyperparameters"] is not None:  # they are in the units of y
            return self._proposed(state, data, pending)
        within = Computable(data)
        if not within.is_extreme:
            return self._proposed(state, data, pending)
        # A fit to fewer values may have been in other units altogether.
        anew = replace(state, options={**state.options, "refit": 0.0})
        proposal, learned = self._proposed(anew, within.data, pending)
        gain = float(within.outside(np.array(proposal.expected_improvement)))
        return proposal._replace(expected_improvement=gain), replace(learned, options=state.options)

    def _proposed(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """What the rule picks."""
        model, state = fitted_surrogate(self._kind(data), state, data)
        choice = self._choice(model, state, data, pending)
        point = self._pick(choice, data).x
        gain = float(_ei(choice)(torch.from_numpy(point)[None, None]).detach())
        reason = "repeat" if contains(data.x, point) else "model"
        return Proposal(point, reason, gain), replace(state, noisy=choice.noisy)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief | None:
        """The surrogate of what was told, and what the rule makes of it; also while the initial design lasts."""
        if not data.has_y.any():
            return None
        model, state = fitted_surrogate(self._kind(data), state, data)
        point, target = self._pick(self._choice(model, state, data, pending), data)
        return Belief(model, target, point)

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and a surrogate exists; otherwise the values."""
        has_surrogate = "fitted" in state.memory or state.options["hyperparameters"] is not None
        if not (is_noisy(data, state.options) and has_surrogate):
            return data.y
        within = Computable(data) if state.options["hyperparameters"] is None else None
        seen = data if within is None else within.data
        options = {**state.options, "refit": 0.0 if within is not None and within.is_extreme else np.inf}
        model, _ = fitted_surrogate(self._kind(seen), replace(state, options=options), seen)
        means = np.asarray(model.moments(torch.tensor(seen.x))[0].numpy())
        return means if within is None else within.outside(means)

    def _choice(self, model: Surrogate, state: State, data: Observations, pending: Array) -> Choice:
        seed = int(np.random.SeedSequence([state.seed, state.asked]).generate_state(1)[0])
        model = with_stand_ins(self._kind(data), model, data, pending)
        return Choice(model, state.options, seed, is_noisy(data, state.options))

    def _pick(self, choice: Choice, data: Observations) -> Pick:
        blind = self._rule.gradient and not data.has_grad.any()
        return (_by(_ei) if blind else self._rule.pick)(choice)

    def _kind(self, data: Observations) -> Kind:
        gradients = bool(data.has_grad.any()) and (self._is_joint or self._rule.gradient)
        return Kind(self._is_joint, gradients)
