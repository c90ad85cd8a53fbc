r"""EI, LogEI, EI-GN and EI_g under constraints, in the plain way: times the probability that all constraints hold.

| rule | what is maximised, with P the probability of feasibility |
|---|---|
| ei, ei-xi, ei-g | acquisition times P |
| log-ei | its logarithm plus log P |
| ei-gn, ei-g-bound | P EI_f minus alpha times the increase of the gradient norm |
| any | log P, as long as nothing is feasible |

Each constraint has a surrogate of the method's own kind; separate processes see its values alone. An equality is given
a tolerance of a hundredth of the constraint's scale.

With `lagrangian` EI-GN and EI_g look at :math:`f - \lambda^\top c`, less the multipliers of rows and bounds times x, at
the incumbent's multipliers: its gradient is zero at a constrained optimum, where that of f is not. With multipliers and
active set held fixed it is Gaussian with its gradient, and the formulas apply as they are. The KKT residual itself is a
projection, with multipliers that are the best for each gradient, and not Gaussian.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
import torch

from eign.acquisition import EI, EIGN, EIg, EIgBound, LogEI, SurrogateAcquisition
from eign.acquisition.feasibility import LogFeasibility
from eign.acquisition.with_gradients import Terms, TwoTermAcquisition
from eign.arrays import Array
from eign.data import Observations
from eign.formulas import expected_improvement
from eign.formulas.kkt_numpy import Limited, kkt
from eign.models.surrogates import Kind, Surrogate, with_stand_ins
from eign.search.maximize import default_effort
from eign.search.rescaling import rescaled
from eign.space import contains
from eign.strategies.constrained.region_search import best_new, candidates
from eign.strategies.constrained.standing import Standing
from eign.strategies.magnitudes import Computable
from eign.strategies.strategy import Belief, Proposal, State
from eign.strategies.surrogate_fit import computable, fitted_surrogate, is_noisy, learning_anew

# Of an equality, in scales of the constraint.
_EQUALITY: Final = 1e-2
# A limit is active for multipliers within this share of the scale.
_ACTIVE: Final = 0.05


@final
@dataclass(frozen=True, slots=True)
class _Computable:
    """What was told of all outputs, each in units in which its model can compute.

    Attributes:
        outputs: f first, then the constraints.
        limits: Of the constraints in these units, as a state has them.
        told: What was told.
    """

    outputs: tuple[Computable, ...]
    limits: list[list[float]]
    told: Observations

    @classmethod
    def of(cls, state: State, data: Observations) -> "_Computable":
        """What was told, and the limits of a state."""
        outputs = tuple(computable(state, one) for one in (data.objective, *data.constraints))
        pairs = zip(outputs[1:], state.limits, strict=True)
        return cls(outputs, [units.limits(np.array(pair)).tolist() for units, pair in pairs], data)

    @property
    def is_extreme(self) -> bool:
        """Whether anything differs from what was told."""
        return any(output.is_extreme for output in self.outputs)

    @property
    def data(self) -> Observations:
        """What the models see."""
        if not self.is_extreme:
            return self.told
        objective, *constraints = (output.data for output in self.outputs)
        return objective.with_constraints(constraints) if constraints else objective

    def state(self, state: State) -> State:
        """The state in these units: its surrogates are fitted to all data."""
        return replace(learning_anew(state), limits=self.limits) if self.is_extreme else state


@final
@dataclass(frozen=True, slots=True)
class _InToldUnits:
    """A surrogate whose moments are in the units of what was told."""

    model: Surrogate
    units: Computable

    def moments(self, X: torch.Tensor, /) -> tuple[torch.Tensor, ...]:
        """Mean and variance at `n x d` points, `n` each."""
        mean, variance = (part.detach().numpy() for part in self.model.moments(X)[:2])
        with np.errstate(over="ignore"):
            parts = self.units.outside(mean), self.units.outside(np.sqrt(variance)) ** 2
        return torch.from_numpy(parts[0]), torch.from_numpy(parts[1])


class Feasible:
    """An acquisition where the constraints hold; without one it is the log of the probability that they do."""

    def __init__(self, base: SurrogateAcquisition | None, constraints: Sequence[LogFeasibility]) -> None:
        """From an acquisition on the model of f, and one for each constraint."""
        self._base, self._constraints = base, constraints

    @property
    def is_log(self) -> bool:
        """Whether values are logarithms."""
        return self._base is None or isinstance(self._base, LogEI)

    def rescaled(self, raw: Array) -> "Feasible":
        """With the two terms of EI-GN in units of their spread over candidates, as the paper does."""
        if not isinstance(self._base, TwoTermAcquisition):
            return self
        terms = self._base.pool_terms(raw)
        weighted = Terms(terms.improvement * np.exp(self._log_probability(raw)[0]), terms.increase)
        return Feasible(rescaled(self._base, weighted), self._constraints)

    def evaluate(self, X: Array) -> Array:
        """Values, `n x d -> n`."""
        log_probability, _ = self._log_probability(X)
        if self._base is None:
            return log_probability
        if isinstance(self._base, TwoTermAcquisition):
            terms = self._base.terms(X)
            return self._base.combine(Terms(terms.improvement * np.exp(log_probability), terms.increase))
        value = self._base.evaluate(X)
        return value + log_probability if self.is_log else value * np.exp(log_probability)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values and derivatives by the point, `n x d -> n, n x d`."""
        log_probability, slope = self._log_probability(X, gradient=True)
        if self._base is None:
            return log_probability, slope
        if isinstance(self._base, TwoTermAcquisition):
            first, second = self._base.weights
            gain, gain_slope = self._base.weighted(first, 0.0).value_and_gradient(X)
            rest, rest_slope = self._base.weighted(0.0, second).value_and_gradient(X)
            probability = np.exp(log_probability)
            gradient = probability[:, None] * (gain_slope + gain[:, None] * slope) + rest_slope
            return probability * gain + rest, gradient
        value, gradient = self._base.value_and_gradient(X)
        if self.is_log:
            return value + log_probability, gradient + slope
        probability = np.exp(log_probability)
        return value * probability, probability[:, None] * (gradient + value[:, None] * slope)

    def _log_probability(self, X: Array, *, gradient: bool = False) -> tuple[Array, Array]:
        total, slope = np.zeros(len(X)), np.zeros(X.shape)
        for constraint in self._constraints:
            if not gradient:
                total += constraint.evaluate(X)
                continue
            value, by_point = constraint.value_and_gradient(X)
            total, slope = total + value, slope + by_point
        return total, slope


@final
@dataclass(frozen=True, slots=True)
class ConstrainedSurrogateSteps:
    """What `Bayesian` proposes after its design where there are constraints.

    Memory: `outputs`, what `surrogate_fit` remembers for f and each constraint, and `fitted`.

    Attributes:
        rule: Its name.
        is_joint: Whether surrogates are joint processes of value and gradient.
        looks_at_gradient: Whether the rule looks at the posterior of the gradient.
    """

    rule: str
    is_joint: bool
    looks_at_gradient: bool

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """Where the rule's acquisition is largest."""
        within = _Computable.of(state, data)
        if not within.is_extreme:
            return self._proposed(state, data, pending)
        proposal, learned = self._proposed(within.state(state), within.data, pending)
        if proposal.expected_improvement is not None:
            gain = float(within.outputs[0].outside(np.array(proposal.expected_improvement)))
            proposal = proposal._replace(expected_improvement=gain)
        return proposal, replace(learned, options=state.options, limits=state.limits)

    def _proposed(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            (model, *_), _, x, state = self._picked(state, data, pending)
        standing = Standing.of(state, data)
        gain = None
        if standing.best_feasible is not None:
            mean, variance = model.moments(torch.from_numpy(x[None].copy()))[:2]
            sigma = variance.clamp_min(1e-300).sqrt()
            gain = float(expected_improvement(mean, sigma, standing.best_feasible)[0])
        reason = "repeat" if contains(data.x, x) else "model"
        return Proposal(x, reason, gain), replace(state, noisy=is_noisy(data, state.options))

    def belief(self, state: State, data: Observations, pending: Array) -> Belief:
        """The surrogate of f, and what is maximised."""
        within = _Computable.of(state, data)
        models, target, x, _ = self._picked(within.state(state), within.data, pending)
        constraints = [_InToldUnits(model, units) for model, units in zip(models[1:], within.outputs[1:], strict=True)]
        return Belief(models[0], target, x, within.outputs[0].outside, tuple(constraints))

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter; otherwise the values."""
        if not is_noisy(data, state.options):
            return data.y
        within = computable(state, data.objective)
        kept = replace(state, options={**state.options, "refit": 0.0 if within.is_extreme else np.inf})
        models, _ = self._fitted(kept, [within.data])
        return within.outside(np.asarray(models[0].moments(torch.tensor(data.x))[0].numpy()))

    def _picked(
        self, state: State, data: Observations, pending: Array
    ) -> tuple[list[Surrogate], Feasible, Array, State]:
        standing = Standing.of(state, data)
        best = standing.best
        assert best is not None, "without a value the design goes on"
        seen = [_lagrangian(standing, best) if self._is_lagrangian(state) else data.objective, *data.constraints]
        models, state = self._fitted(state, seen)
        given = [
            with_stand_ins(self._kind(one, k), model, one if k == 0 else one[~one.failed], pending)
            for k, (model, one) in enumerate(zip(models, seen, strict=True))
        ]
        base = None
        if standing.best_feasible is not None:
            base = self._acquisition(given[0], seen[0], best, state.options)
        target = Feasible(base, _feasibilities(given[1:], standing))
        effort = default_effort(state.dim)
        raw_samples = state.options["raw_samples"] or effort.raw_samples
        rng = np.random.default_rng(np.random.SeedSequence([state.seed, state.asked]))
        raw = candidates(standing.region, data.x[best][None], raw_samples, rng)
        if state.options.get("rescale", True):
            target = target.rescaled(raw[:raw_samples])
        avoid = np.empty((0, state.dim)) if is_noisy(data, state.options) else np.concatenate([data.x, pending])
        restarts = state.options["restarts"] or effort.restarts
        unit = 1.0 if target.is_log else None
        x = best_new(target, standing.region, raw, avoid, rng, restarts=restarts, unit=unit)
        return models, target, x, state

    def _is_lagrangian(self, state: State) -> bool:
        return bool(state.options.get("lagrangian")) and self.looks_at_gradient

    def _fitted(self, state: State, seen: Sequence[Observations]) -> tuple[list[Surrogate], State]:
        """A surrogate for each output, and the state that remembers their fits."""
        stored = list(state.memory.get("outputs", ())) or [{}] * len(seen)
        models, memories = [], []
        for k, (one, memory) in enumerate(zip(seen, stored, strict=False)):
            known = one if one.has_y.any() else Observations(one.x, np.zeros(len(one)))
            model, after = fitted_surrogate(self._kind(known, k), replace(state, memory=memory), known)
            models.append(model)
            memories.append(dict(after.memory))
        return models, replace(state, memory={"outputs": memories, "fitted": len(seen[0])})

    def _kind(self, data: Observations, output: int) -> Kind:
        wanted = self.is_joint or (self.looks_at_gradient and output == 0)
        return Kind(self.is_joint, bool(data.has_grad.any()) and wanted)

    def _acquisition(
        self, model: Surrogate, data: Observations, best: int, options: Mapping[str, Any]
    ) -> SurrogateAcquisition:
        point, best_f = torch.tensor(data.x[best : best + 1]), float(data.y[best])
        if is_noisy(data, options):
            best_f = float(model.moments(point)[0][0])
        if not (self.looks_at_gradient and data.has_grad.any()):
            xi = options.get("xi", 0.0)
            return LogEI(model, best_f) if self.rule == "log-ei" else EI(model, best_f, xi=xi)
        slope = torch.tensor(data.grad[best])
        if not bool(torch.isfinite(slope).all()):
            expected = model.gradient_posterior(point).mean[0].detach()
            slope = torch.where(torch.isfinite(slope), slope, expected)
        kinds = {"ei-gn": EIGN, "ei-g": EIg, "ei-g-bound": EIgBound}
        return kinds[self.rule](model, best_f, slope, alpha=options["alpha"])


def _feasibilities(models: Sequence[Surrogate], standing: Standing) -> list[LogFeasibility]:
    """One for each constraint that was seen, equalities with their tolerance."""
    room = np.where(standing.lower == standing.upper, _EQUALITY * standing.scales, 0.0)
    return [
        LogFeasibility(model, float(standing.lower[j] - room[j]), float(standing.upper[j] + room[j]))
        for j, model in enumerate(models)
        if standing.data.constraints[j].has_y.any()
    ]


def _lagrangian(standing: Standing, best: int) -> Observations:
    r"""Observations of f - lambda'c - nu'x with the multipliers of the best point; of f where they are not known."""
    data = standing.data
    values, slopes = standing.values[best], [each.grad[best] for each in data.constraints]
    if not (np.isfinite(data.grad[best]).all() and np.isfinite(values).all() and np.isfinite(slopes).all()):
        return data.objective
    gradients = np.array(slopes).reshape(len(values), data.dim)
    limited = Limited(values, gradients, standing.lower, standing.upper, standing.scales)
    found = kkt(np.array(data.x[best]), data.grad[best], limited, _rows_at(standing, best), active=_ACTIVE)
    pushes = found.constraints
    normal = data.grad[best] - found.remainder - pushes @ gradients  # of rows and bounds
    y, grad = data.y - data.x @ normal, data.grad - normal
    y_var, grad_var = data.y_var, data.grad_var
    for push, each in zip(pushes, data.constraints, strict=True):
        if push != 0.0:
            y, grad = y - push * each.y, grad - push * each.grad
            y_var = y_var + push**2 * np.nan_to_num(each.y_var, nan=0.0)
            grad_var = grad_var + push**2 * np.nan_to_num(each.grad_var, nan=0.0)
    return Observations(data.x, y, grad, y_var, grad_var)


def _rows_at(standing: Standing, best: int) -> Limited | None:
    """The linear rows at the best point."""
    rows = standing.region.rows
    if not len(rows):
        return None
    return Limited(rows.A @ standing.data.x[best], rows.A, rows.lower, rows.upper, np.abs(rows.A).max(axis=1))
