"""Bayesian optimization: the initial design, then what a rule picks from a surrogate.

Nothing here needs torch, so that a study begins, and its first points are asked and told, without waiting for it; what
does is in `surrogate_steps`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

from eign.arrays import Array
from eign.data import Observations
from eign.strategies.design import N_INIT, initial_proposal, is_initial
from eign.strategies.options import Option, at_least, fixed_hyperparameters, flag, noise_level, one_of, whole
from eign.strategies.strategy import Belief, Proposal, State, Strategy

if TYPE_CHECKING:
    from eign.strategies.constrained.rules import ConstrainedSurrogateSteps
    from eign.strategies.surrogate_steps import SurrogateSteps


@final
class Rule(NamedTuple):
    """How the next point is picked from a surrogate; `surrogate_steps.PICKS` has the function of the same name.

    Attributes:
        options: Its own options.
        gradient: Whether it looks at the posterior of the gradient; without any gradient the rule is `ei`.
    """

    options: Mapping[str, Option]
    gradient: bool = False


_SEARCH: Final = {
    "restarts": Option(None, whole(least=1), "local searches of the acquisition; None is the paper's table"),
    "raw_samples": Option(None, whole(least=1), "candidates they start from; None is the paper's table"),
}
_ALPHA: Final = {"alpha": Option(0.6, at_least(0.0), "weight of stationarity; 0 is ei")}
_STATIONARY: Final = {**_SEARCH, **_ALPHA}
_LAGRANGIAN: Final = {
    "lagrangian": Option(False, flag, "under constraints: stationarity of f less multipliers times constraints")
}
_RESCALED: Final = {
    **_STATIONARY,
    **_LAGRANGIAN,
    "rescale": Option(True, flag, "rescale both terms over the candidates, as the paper"),
}
_SAMPLES: Final = {"samples": Option(256, whole(least=1), "Monte Carlo samples")}
_XI: Final = {"xi": Option(0.01, at_least(0.0), "margin, in standard deviations of y")}
_WEIGHT: Final = {"weight": Option(2.0, at_least(0.0), "of the standard deviation")}
_CANDIDATES: Final = {"candidates": Option(1024, whole(least=1), "points among which the sample's maximum is taken")}

RULES: Final[Mapping[str, Rule]] = {
    "ei": Rule(_SEARCH),
    "log-ei": Rule(_SEARCH),
    "ei-xi": Rule({**_SEARCH, **_XI}),
    "ucb": Rule({**_SEARCH, **_WEIGHT}),
    "thompson": Rule(_CANDIDATES),
    "ei-gn": Rule(_RESCALED, gradient=True),
    "ei-g": Rule({**_STATIONARY, **_LAGRANGIAN}, gradient=True),
    "ei-g-bound": Rule({**_RESCALED, **_SAMPLES}, gradient=True),
}
"""The rules by name; the registry combines them with a surrogate to methods."""

# The others have no product with a probability that means something.
_CONSTRAINED: Final = frozenset({"ei", "log-ei", "ei-xi", "ei-gn", "ei-g", "ei-g-bound"})
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
        self._name, self._is_joint = rule, surrogate == "joint"
        self.handles_constraints = self.handles_linear = rule in _CONSTRAINED

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
        return {**N_INIT, **surrogate, **(rows if joint else {}), **RULES[self._name].options}

    def contradiction(self, dim: int, options: Mapping[str, Any]) -> str | None:
        """Searches are no more than candidates. Fixed hyperparameters suit dimension and kernel, and noise is known."""
        searches, candidates = options.get("restarts"), options.get("raw_samples")
        if searches is not None and candidates is not None and searches > candidates:
            return f"restarts={searches} and raw_samples={candidates}, expected restarts <= raw_samples"
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
        return self._steps_for(state).propose_one(state, data, pending)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief | None:
        """The surrogate of what was told, and what the rule makes of it; also while the initial design lasts."""
        return self._steps_for(state).belief(state, data, pending) if data.has_y.any() else None

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and a surrogate exists; otherwise the values."""
        has_surrogate = "fitted" in state.memory or state.options["hyperparameters"] is not None
        return self._steps_for(state).estimates(state, data) if has_surrogate else data.y

    def _steps_for(self, state: State) -> "SurrogateSteps | ConstrainedSurrogateSteps":
        return self._constrained_steps if state.limits or state.rows is not None else self._steps

    @cached_property
    def _constrained_steps(self) -> "ConstrainedSurrogateSteps":
        from eign.strategies.constrained.rules import ConstrainedSurrogateSteps

        return ConstrainedSurrogateSteps(self._name, self._is_joint, RULES[self._name].gradient)

    @cached_property
    def _steps(self) -> "SurrogateSteps":
        from eign.strategies.surrogate_steps import SurrogateSteps  # and with it torch

        return SurrogateSteps(self._name, self._is_joint, RULES[self._name].gradient)
