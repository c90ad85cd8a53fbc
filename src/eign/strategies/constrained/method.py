"""`auto` under constraints: runs of local steps on models of all outputs, and where the next run begins.

| reason | the point |
|---|---|
| initial | of the design, inside what linear constraints leave |
| local | the best merit in a trust region around the best point of a run, as the models see it |
| global | where improvement that is feasible is most to be expected, the start of a run |
| restart | the start of a run far from all points told |

A run goes on until it has converged, its models promise nothing that the best feasible point has not, or it comes to an
optimum that is known. Where the models' promises do not come true SLSQP on the functions themselves goes on.
"""

from dataclasses import replace
from typing import Final, Literal, NamedTuple, final

import numpy as np
import torch

from eign.arrays import Array
from eign.data import Observations
from eign.formulas.improvement_numpy import expected_improvement
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.constrained.descent import replay
from eign.strategies.constrained.global_step import FeasibleImprovement, GlobalStep, global_step
from eign.strategies.constrained.local_step import LocalStep, local_step
from eign.strategies.constrained.memory import Memory, Run
from eign.strategies.constrained.outputs import Outputs, fit_as_before, fit_outputs
from eign.strategies.constrained.standing import Index, Standing
from eign.strategies.design import generator
from eign.strategies.local_runs import next_point
from eign.strategies.strategy import Belief, Proposal, State

# Gains in standard deviations of what was told. Below the first a run has converged; a global step looks for more than
# the second, so that it stays away from optima that were reached.
_CONVERGED: Final = 1e-7
_SMALL: Final = 1e-3
# Of what a step was to gain came less than the first share: too far; more than the second: farther next time.
_FAILED: Final = 0.1
_AS_EXPECTED: Final = 0.7
_RADIUS: Final = (1e-5, 0.5)
_MISSES: Final = 3
_DESCENT: Final = {"first_step": 0.25, "ftol": 1e-10}
# How far ahead a run is judged, and how many standard deviations of f it is granted there.
_OUTLOOK: Final = 0.3
_HOPE: Final = 2.0
_SAME_OPTIMUM: Final = 0.02
_DRAWS: Final = 64
# A penalty follows from how much value feasibility costs, where a step brings more than so much of it.
_RELIEF: Final = 1e-7
_LARGEST_PENALTY: Final = 1e5
_EQUALITY: Final = (0.3, 0.93, 1e-3)
# With more, a model of each output with all gradients takes seconds or minutes to fit.
_MANY_PARAMETERS: Final = 60


Ending = Literal["converged", "known", "hopeless"]
"""Of a run: at an optimum, on the way to one that is known, or with nothing better in sight than the best point."""


class _Step(NamedTuple):
    x: Array
    reason: str


@final
class ConstrainedSteps:
    """What `auto` proposes after its design where there are constraints. Memory: see `Memory`."""

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The next step of a run, or the start of another; of SLSQP on the functions where parameters are many."""
        if state.dim > _MANY_PARAMETERS:
            return _without_models(state, data, pending)
        # Values over hundreds of decades overflow here and there; what is not finite is never chosen.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            memory, outputs = _learned(state, data)
            memory, step = _continued(memory, outputs, pending)
            if step is None:
                memory, step = _begun(memory, outputs, state, pending)
            gain = _expected(outputs, step.x)
        return Proposal(step.x, step.reason, gain), replace(state, memory=memory.to_json(), noisy=outputs.is_noisy)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief:
        """The model of f in the units of y, and where a global step would look."""
        _, outputs = _learned(state, data)
        target = _improvement(outputs.given(pending), state)
        known = tuple(model for model in outputs.models[1:] if model is not None)
        constraints = known if len(known) == len(state.limits) else ()
        return Belief(outputs.objective, target, _global(outputs, state, pending).x, constraints=constraints)

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean of f where its values scatter; otherwise the values."""
        if not state.noisy:
            return data.y
        fits = Memory.from_json(state.memory).fits
        model = fit_as_before(Standing.of(state, data), fits, state.options).objective
        return np.asarray(model.moments(torch.tensor(data.x))[0].numpy()) if model.noisy else data.y


def _without_models(state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
    """Multi-start SLSQP from what was told, best first."""
    standing = Standing.of(state, data)
    begun = replace(state, options={**state.options, "n_init": 0})
    proposal, after = next_point(
        begun, data, pending, lambda start: replay(start, standing, _DESCENT), order=standing.order.tolist()
    )
    return proposal, replace(after, options=state.options)


def _learned(state: State, data: Observations) -> tuple[Memory, Outputs]:
    """The models of what was told, and the memory with their fits."""
    memory = Memory.from_json(state.memory)
    outputs, fits = fit_outputs(Standing.of(state, data), memory.fits, state.options)
    return replace(memory, fits=tuple(fits)), outputs


def _continued(memory: Memory, outputs: Outputs, pending: Array) -> tuple[Memory, _Step | None]:
    """The next step of the run; None if there is none, it waits, or it has ended, which the memory then says."""
    run, data = memory.run, outputs.standing.data
    if run is None or (run.path and contains(pending, np.array(run.path[-1]))):
        return memory, None
    rows = _told_rows(run, data)
    if not len(rows):
        return replace(memory, run=None), None
    if run.step > 0.0:
        return _descended(memory, run, outputs, pending)
    merit = outputs.merit(memory.penalty)
    center = int(rows[merit[rows].argmax()])
    run = _judged(run, rows, merit, data)
    if run.misses >= _MISSES and not outputs.is_noisy and _is_complete(data):
        start = data.x[center].tolist()
        return _descended(memory, replace(run, start=start, path=(), step=max(run.radius, 1e-3)), outputs, pending)
    step = local_step(outputs, center, run.radius, memory.penalty)
    memory = _with_enough_penalty(memory, step)
    ending = _ending(memory, outputs, center, run, step)
    if ending is not None or contains(pending, step.x):
        ends = [data.x[center].tolist()] if ending in ("converged", "hopeless") else []
        return replace(memory, run=None, optima=(*memory.optima, *ends)), None
    run = replace(run, gain=step.gain(memory.penalty), path=(*run.path, step.x.tolist()))
    return replace(memory, run=run), _Step(step.x, "local")


def _is_complete(data: Observations) -> bool:
    """Whether SLSQP can work on what was told: gradients are complete."""
    return all(bool(np.all(each.has_grad[each.has_y])) for each in (data, *data.constraints))


def _told_rows(run: Run, data: Observations) -> Index:
    known = np.flatnonzero(data.has_y)
    found = (nearest(data.x[known], np.array(x)) for x in run.path)
    return known[[row for row, distance in found if distance <= SAME_POINT]]


def _judged(run: Run, rows: Index, merit: Array, data: Observations) -> Run:
    """With the radius that follows from what came of the last step; nothing came of one that failed."""
    if len(run.path) < 2 or run.gain <= 0.0:
        return run
    last, distance = nearest(data.x, np.array(run.path[-1]))
    others = rows[rows != last]
    came = -np.inf
    if distance <= SAME_POINT and len(others):
        came = float(merit[last] - merit[others].max()) / run.gain
    factor = 1 / 3 if came < _FAILED else 2.0 if came > _AS_EXPECTED else 1.0
    misses = run.misses + 1 if came < _FAILED else 0
    return replace(run, radius=float(np.clip(run.radius * factor, *_RADIUS)), misses=misses)


def _with_enough_penalty(memory: Memory, step: LocalStep) -> Memory:
    """With a penalty under which a step that comes closer to feasibility, at the cost of value, is a gain."""
    if step.rise >= 0.0 or step.relief <= _RELIEF:
        return memory
    needed = min(2.0 * -step.rise / step.relief, _LARGEST_PENALTY)
    return replace(memory, penalty=max(memory.penalty, needed))


def _ending(memory: Memory, outputs: Outputs, center: int, run: Run, step: LocalStep) -> Ending | None:
    """Why a run ends here, if it does: one from or at the best point goes on until it has converged."""
    standing = outputs.standing
    if step.gain(memory.penalty) < _CONVERGED or contains(standing.data.x[np.isfinite(outputs.merit(0.0))], step.x):
        return "converged"
    if run.reason == "local" or center == standing.best:
        return None
    optima = memory.known_optima(len(step.x))
    if nearest(optima, step.x)[1] < _SAME_OPTIMUM:
        return "known"
    best = standing.best_feasible
    if best is None:
        return None
    goal = float(outputs.objective.fit.output.values(np.array([best]))[0])
    if step.value > goal:
        return None
    far = local_step(outputs, center, max(_OUTLOOK, run.radius), memory.penalty)
    if nearest(optima, far.x)[1] < _SAME_OPTIMUM:
        return "known"
    variance = float(outputs.moments(far.x[None], gradients=False).variance[0, 0])
    return "hopeless" if far.value + _HOPE * np.sqrt(variance) < goal + _SMALL else None


def _descended(memory: Memory, run: Run, outputs: Outputs, pending: Array) -> tuple[Memory, _Step | None]:
    """The next point of SLSQP on the functions."""
    standing = outputs.standing
    found = replay(np.array(run.start), standing, {**_DESCENT, "first_step": run.step})
    if found.needed is None or contains(pending, found.needed):
        rows = sorted(found.used)
        merit = outputs.merit(memory.penalty)
        ends = [standing.data.x[max(rows, key=lambda row: float(merit[row]))].tolist()] if rows else []
        return replace(memory, run=None, optima=(*memory.optima, *ends)), None
    run = replace(run, path=(*run.path, found.needed.tolist()))
    return replace(memory, run=run), _Step(found.needed, "local")


def _begun(memory: Memory, outputs: Outputs, state: State, pending: Array) -> tuple[Memory, _Step]:
    """A new run: from the best point if none has ended there, else from where most is expected, or far from all."""
    standing, rng = outputs.standing, generator(state, 1)
    best = standing.data.x[int(np.argmax(outputs.merit(memory.penalty)))]
    if memory.run is None and not contains(memory.known_optima(state.dim), best):
        begun, step = _continued(_spending(memory, "local", best), outputs, pending)
        if step is not None:
            return begun, step
        memory = begun
    found = _global(outputs, state, pending)
    reason, x = "global", found.x
    promise = found.probability * (found.gain if standing.best_feasible is not None else 1.0)
    is_blind = promise < _SMALL
    if is_blind and memory.spent.get("restart", 0) <= memory.spent.get("global", 0):
        reason, x = "restart", _unexplored(standing, pending, rng)
    begun = _spending(memory, reason, x)
    # A run may wait for a pending evaluation: then this is a point beside it.
    return (begun if memory.run is None else replace(begun, run=memory.run)), _Step(x, reason)


def _spending(memory: Memory, reason: str, start: Array) -> Memory:
    """With a run from this start."""
    spent = {**memory.spent, reason: memory.spent.get(reason, 0) + 1}
    return replace(memory, run=Run(start.tolist(), reason, path=(start.tolist(),)), spent=spent)


def _improvement(outputs: Outputs, state: State) -> FeasibleImprovement:
    """What global steps maximise; the tolerance of equalities shrinks with each evaluation."""
    best = outputs.standing.best_feasible
    goal = None if best is None else float(outputs.objective.fit.output.values(np.array([best]))[0]) + _SMALL
    first, factor, least = _EQUALITY
    tolerance = max(first * factor ** (len(outputs.standing.data) - state.dim), least)
    return FeasibleImprovement(outputs, goal, tolerance, None if goal is None else outputs.multipliers())


def _global(outputs: Outputs, state: State, pending: Array) -> GlobalStep:
    standing = outputs.standing
    incumbents = standing.data.x[standing.order[:3]]
    return global_step(_improvement(outputs.given(pending), state), incumbents, generator(state))


def _unexplored(standing: Standing, pending: Array, rng: np.random.Generator) -> Array:
    """Of some points anywhere in the region the one that is farthest from those told."""
    seen = np.concatenate([standing.data.x, pending])
    return np.array(max(standing.region.samples(_DRAWS, rng), key=lambda x: nearest(seen, x)[1]))


def _expected(outputs: Outputs, x: Array) -> float | None:
    """The expected improvement of f alone over the best feasible value, in the units of y; None without one."""
    best = outputs.standing.best_feasible
    if best is None:
        return None
    mean, variance = (float(part[0]) for part in outputs.objective.moments(torch.from_numpy(x[None].copy())))
    found = expected_improvement(np.array([mean]), np.array([max(variance, 1e-300)]), best)
    return float(found.value[0])
