"""What Bayesian methods do once there is something to model: a surrogate, and a rule that picks a point from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final

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
from eign.strategies.strategy import Belief, Proposal, State
from eign.strategies.surrogate_fit import computable, fitted_surrogate, is_noisy, learning_anew
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


PICKS: Final[Mapping[str, Callable[[Choice], Pick]]] = {
    "ei": _by(_ei),
    "log-ei": _by(_log_ei),
    "ei-xi": _by(_ei_xi),
    "ucb": _by(_ucb),
    "thompson": _thompson,
    "ei-gn": _by(_ei_gn),
    "ei-g": _by(_ei_g),
    "ei-g-bound": _by(_ei_g_bound),
}
"""How each rule finds its point."""


@final
@dataclass(frozen=True, slots=True)
class SurrogateSteps:
    """What `Bayesian` proposes and believes after its design.

    Attributes:
        rule: One of `PICKS`.
        is_joint: Whether the surrogate is one joint process.
        looks_at_gradient: Whether the rule looks at the posterior of the gradient.
    """

    rule: str
    is_joint: bool
    looks_at_gradient: bool

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """What the rule picks."""
        within = computable(state, data)
        if not within.is_extreme:
            return self._proposed(state, data, pending)
        proposal, learned = self._proposed(learning_anew(state), within.data, pending)
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

    def belief(self, state: State, data: Observations, pending: Array) -> Belief:
        """The surrogate of what was told, and what the rule makes of it."""
        within = computable(state, data)
        data, state = within.data, learning_anew(state) if within.is_extreme else state
        model, state = fitted_surrogate(self._kind(data), state, data)
        point, target = self._pick(self._choice(model, state, data, pending), data)
        return Belief(model, target, point, within.outside)

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter; otherwise the values."""
        if not is_noisy(data, state.options):
            return data.y
        within = computable(state, data)
        options = {**state.options, "refit": 0.0 if within.is_extreme else np.inf}
        model, _ = fitted_surrogate(self._kind(within.data), replace(state, options=options), within.data)
        return within.outside(np.asarray(model.moments(torch.tensor(data.x))[0].numpy()))

    def _choice(self, model: Surrogate, state: State, data: Observations, pending: Array) -> Choice:
        seed = int(np.random.SeedSequence([state.seed, state.asked]).generate_state(1)[0])
        model = with_stand_ins(self._kind(data), model, data, pending)
        return Choice(model, state.options, seed, is_noisy(data, state.options))

    def _pick(self, choice: Choice, data: Observations) -> Pick:
        blind = self.looks_at_gradient and not data.has_grad.any()
        return PICKS["ei" if blind else self.rule](choice)

    def _kind(self, data: Observations) -> Kind:
        gradients = bool(data.has_grad.any()) and (self.is_joint or self.looks_at_gradient)
        return Kind(self.is_joint, gradients)
