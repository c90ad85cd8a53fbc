"""`auto`: what each evaluation is for, decided by what the model expects and by how well its expectations came true.

| reason | the point |
|---|---|
| initial | of the Sobol design, and the top of a bowl if the data show one |
| global | where LogEI is largest, anywhere |
| local | the best posterior mean in a trust region around the incumbent, or of a descent on the function from there |
| restart | of a climb on the model from elsewhere: a good point that stands alone, or anywhere |

docs/auto.md describes the method; the numbers of its rules are here.
"""

from dataclasses import replace
from typing import Final, NamedTuple, final

import numpy as np
import torch

from eign.acquisition import EI, EIGN, LogEI, SurrogateAcquisition
from eign.arrays import LARGEST, Array
from eign.data import Observations
from eign.models.selection import SelectedModel, are_likelier, are_many, fitted, is_chosen_anew
from eign.models.transforms.coordinates import Coordinates
from eign.search import maximize
from eign.search.maximize import Effort
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.auto.bowl import CLEAR, LIKELY, bowl_top
from eign.strategies.auto.climb import advance, is_above, told_rows
from eign.strategies.auto.memory import (
    FIRST_RADIUS,
    PATIENCE,
    RADIUS_AFTER_JUMP,
    SMALL,
    WORTH_A_STEP,
    Climb,
    Descent,
    Expectation,
    Memory,
    settled,
)
from eign.strategies.auto.steps import is_hopeless, local_step, new_start, unexplored
from eign.strategies.auto.views import SeenAcquisition, SeenModel
from eign.strategies.design import generator
from eign.strategies.multistart import replay
from eign.strategies.strategy import Belief, Proposal, State

# Below this an expected gain is nothing, and the best point an optimum.
_NOTHING: Final = 1e-7
# A global gain below this says that the model knows of no place to go. Small gains say less: of functions with a few
# narrow peaks LogEI finds the highest while it expects 1e-8.
_BLIND: Final = 1e-10
# Restarts then get so many times the evaluations of global steps.
_SHARE: Final = 2
# The model's errors are larger than what more candidates would find.
_SEARCH: Final = Effort(restarts=8, raw_samples=256)
_CONVERGED: Final = {"ftol": 1e-9, "gtol": 1e-6}
_FIRST_STEP: Final = (1e-3, 0.25)
# A pending point so close to the end of a local step, in lengths of the step, is the same step of another process.
_SAME_STEP: Final = 0.1
_TELLS_THE_SAME: Final = 1e-3
# Bowls are looked for until there are so many times d + 3 points, and their tops are new if no point is so close.
_LOOKS: Final = 2
_KNOWN_TOP: Final = 0.1
_DOUBT: Final = 2.0


class _Step(NamedTuple):
    """A point that could be next, why, and its gain in the model's units; 0 if it is not the model's."""

    x: Array
    reason: str
    gain: float


@final
class Steps:
    """What `Auto` proposes after its design, see this module's docstring. Memory: see `Memory`."""

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The next point of a descent, or the best step on the model."""
        memory = Memory.from_json(state.memory)
        before = _coordinates(state, logs=memory.logs)
        memory = settled(memory, before.seen(data), before.points(pending))
        memory = _in_likelier_coordinates(state, memory, data)
        coordinates = _coordinates(state, logs=memory.logs)
        # Values over hundreds of decades overflow here and there; what is not finite is never chosen.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            proposal, state = self._proposed(state, memory, coordinates.seen(data), coordinates.points(pending))
        return proposal._replace(x=coordinates.undo(proposal.x)), state

    def _proposed(self, state: State, memory: Memory, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The next point after the design; everything in the coordinates of the memory."""
        memory, going = _continued(memory, data)
        if going is not None and not contains(pending, going.x):
            return _remembered(state, memory, going)
        if memory.is_new and (top := _new_top(state, data, pending, None)) is not None:
            return _remembered(state, memory, top)
        model = fitted(data, memory.fit, state.options)
        # The model's own evaluations are those after the design: only they can show that it is no use.
        memory = replace(memory, fit=model.fit, rested=len(data) if memory.is_new else memory.rested)
        state = replace(state, noisy=model.noisy)
        memory, going = _climbed(model, memory, data, pending)
        if going is not None:
            return _remembered(state, memory, going)
        if (top := _new_top(state, data, pending, model)) is not None:
            return _remembered(state, memory, top)
        step, memory, expected = self._step(model, state, memory, data, pending)
        best = float(data.y[data.has_y].max())
        gain = min(expected / float(model.fit.output.slope(np.array(best))), LARGEST)
        return _remembered(state, memory, step, gain)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief:
        """The model in the units of y, and where a global step would look; also while the initial design lasts."""
        memory = _in_likelier_coordinates(state, Memory.from_json(state.memory), data)
        coordinates = _coordinates(state, logs=memory.logs)
        seen = coordinates.seen(data)
        model = fitted(seen, memory.fit, state.options)
        step, target = _global_step(model.given(seen, coordinates.points(pending)), state)
        return Belief(SeenModel(model, coordinates), SeenAcquisition(target, coordinates), coordinates.undo(step.x))

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and there is a model; otherwise the values."""
        memory = Memory.from_json(state.memory)
        if memory.fit is None:
            return data.y
        seen = _coordinates(state, logs=memory.logs).seen(data)
        model = fitted(seen, memory.fit, {**state.options, "refit": np.inf})
        return np.asarray(model.moments(torch.tensor(seen.x))[0].numpy()) if model.noisy else data.y

    def _step(
        self, model: SelectedModel, state: State, memory: Memory, data: Observations, pending: Array
    ) -> tuple[_Step, Memory, float]:
        """What is done next, and the expected improvement of the best global step, in the model's units."""
        best = _model_incumbent(model)
        step, _ = _global_step(model.given(data, pending), state)
        promise, expected = memory.trust["global"] * step.gain, step.gain
        if promise < SMALL and nearest(pending, step.x)[1] < _TELLS_THE_SAME:
            # Little is expected anywhere, least of all beside a point that is about to be told.
            step = _Step(unexplored(np.concatenate([data.x, pending]), generator(state, 2)), "global", 0.0)
        near, memory = _local_candidate(model, state, memory, best, pending)
        # Where one is under way it waits for an evaluation that is pending, and others are not begun.
        under_way = memory.climb is not None or memory.descent is not None
        restarts = state.options["climbs"] and _can_descend(data) and not under_way
        stalled = restarts and _is_stalled(model, memory, data)
        if not stalled:
            if near is not None and _comes_first(near, promise, memory.trust["local"]):
                return near, memory, expected
            if promise >= _BLIND or not (restarts and _has_share(memory)):
                return step, memory, expected
        begun = None
        if near is not None and near.gain >= WORTH_A_STEP:
            memory, begun = _handed_over(memory, data, pending)
        if begun is None:
            memory, begun = _restarted(model, state, memory, data, pending)
        return begun or step, memory, expected


def _in_likelier_coordinates(state: State, memory: Memory, data: Observations) -> Memory:
    """The memory in logarithms if the data are likelier in them, where there is a choice; else in the cube's own.

    Chosen when kernel and noise are, unless a climb or descent is under way or it takes long, but after the design.
    """
    own, logs = (_coordinates(state, logs=logs) for logs in (False, True))
    is_free = memory.climb is None and memory.descent is None and not logs.are_own
    is_due = memory.fit is None or (not are_many(data) and is_chosen_anew(data, memory.fit, state.options))
    if not (is_free and is_due) or are_likelier(data, logs, state.options) == memory.logs:
        return memory
    before, after = (logs, own) if memory.logs else (own, logs)
    return memory.in_others(lambda x: after.points(before.undo(x)))


def _coordinates(state: State, *, logs: bool) -> Coordinates:
    return Coordinates(state.decades, logs=logs and state.options["logs"])


def _comes_first(near: _Step, promise: float, trust: float) -> bool:
    """Whether a local step is better than a global one that promises so much."""
    return trust * near.gain >= promise or (promise < SMALL and near.gain >= WORTH_A_STEP)


class _Best(NamedTuple):
    """The incumbent `d` and its value in the model's units."""

    x: Array
    value: float


def _model_incumbent(model: SelectedModel) -> _Best:
    return _Best(model.incumbent.x.numpy().copy(), model.incumbent.best_f)


def _global_step(model: SelectedModel, state: State) -> tuple[_Step, SurrogateAcquisition]:
    """The maximiser of LogEI, or of EI-GN if stationarity has a weight, and its expected improvement.

    Over what is expected of pending points, too: else the next point would be next to the best of them.
    """
    best = _model_incumbent(model)
    acquisition: SurrogateAcquisition = LogEI(model.model, best.value + SMALL)
    if state.options["alpha"] > 0 and model.model.observations.has_grad.any():
        acquisition = EIGN(model.model, best.value, model.incumbent.best_grad, alpha=state.options["alpha"])
    seed = int(np.random.SeedSequence([state.seed, state.asked]).generate_state(1)[0])
    found = maximize(
        acquisition,
        seed=seed,
        restarts=_SEARCH.restarts,
        raw_samples=_SEARCH.raw_samples,
        incumbents=torch.from_numpy(best.x[None]),
        is_noisy=model.noisy,
    )
    x = found.x.numpy().copy()
    gain = float(EI(model.model, best.value + SMALL).evaluate(x[None])[0])
    return _Step(x, "global", gain), found.target


def _local_candidate(
    model: SelectedModel, state: State, memory: Memory, best: _Best, pending: Array
) -> tuple[_Step | None, Memory]:
    """The step in the trust region, if it promises anything; if not, the incumbent is an optimum."""
    waiting = any(one.reason == "local" for one in memory.open)
    if not state.options["local"] or waiting or memory.is_optimum(best.x):
        return None, memory
    near = local_step(model.model, best.x, memory.radius)
    if nearest(pending, near.x)[1] <= max(SAME_POINT, _SAME_STEP * float(np.abs(near.x - best.x).max())):
        return None, memory
    if near.gain < _NOTHING or contains(model.model.observations.x, near.x):
        return None, replace(memory, optima=(*memory.optima, best.x.tolist()))
    return _Step(near.x, "local", near.gain), memory


def _can_descend(data: Observations) -> bool:
    """Whether gradients are complete, and nobody said that there is noise."""
    is_noisy = bool((data.y_var > 0).any() or (data.grad_var > 0).any())
    return bool(np.all(data.has_grad[data.has_y])) and not is_noisy


def _has_share(memory: Memory) -> bool:
    """Whether restarts have had less than twice the evaluations of global steps."""
    return memory.spent.get("restart", 0) < _SHARE * memory.spent.get("global", 0)


def _is_stalled(model: SelectedModel, memory: Memory, data: Observations) -> bool:
    """Whether the model has had its share of evaluations since the last climb, and none gained more than a little."""
    seen = model.fit.output.values(np.where(data.has_y, data.y, -np.inf))
    reached = int(np.argmax(seen >= seen.max() - SMALL))
    patience = PATIENCE[0] if _is_wrong(model, memory) else memory.patience
    return len(data) - max(reached + 1, memory.rested) >= patience * (data.dim + 3)


def _new_top(state: State, data: Observations, pending: Array, model: SelectedModel | None) -> _Step | None:
    """The top of a bowl where nothing is known yet; None if there is none.

    Before there is a model the bowl must be clear; with one a likely one will do whose top is not below the best value
    by two of the model's standard deviations.
    """
    has_time = model is None or len(data) <= _LOOKS * (data.dim + 3)
    if not (has_time and state.options["bowl"] and state.options["gradients"]):
        return None
    top = bowl_top(data, evidence=CLEAR if model is None else LIKELY)
    if top is None or nearest(np.concatenate([data.x, pending]), top)[1] < _KNOWN_TOP:
        return None
    if model is not None:
        mean, variance = (float(part[0]) for part in model.model.moments(torch.from_numpy(top[None])))
        if mean + _DOUBT * np.sqrt(variance) < model.incumbent.best_f:
            return None
    return _Step(top, "initial", 0.0)


def _handed_over(memory: Memory, data: Observations, pending: Array) -> tuple[Memory, _Step | None]:
    """A descent on the function from the best point, as the model promises what does not come; None if it ended."""
    best = data.x[_best_row(data)]
    return _descended(memory, Descent(best.tolist(), float(np.clip(memory.radius, *_FIRST_STEP))), data, pending)


def _descended(memory: Memory, begun: Descent, data: Observations, pending: Array) -> tuple[Memory, _Step | None]:
    """The first step of a descent; None if it has ended or is pending."""
    first = replay(np.array(begun.start), data, _settings(begun)).needed
    if first is None or contains(pending, first):
        return memory, None
    return replace(memory, descent=begun), _Step(first, begun.reason, 0.0)


def _restarted(
    model: SelectedModel, state: State, memory: Memory, data: Observations, pending: Array
) -> tuple[Memory, _Step | None]:
    """The first step from elsewhere: of a climb on the model, or of a descent on the function if the model is wrong."""
    optima = np.concatenate([memory.known_optima(data.dim), data.x[_best_row(data)][None]])
    start = new_start(data, optima, generator(state, 1)).tolist()
    if _is_wrong(model, memory):
        return _descended(memory, Descent(start, FIRST_RADIUS, "restart"), data, pending)
    return _climbed(model, replace(memory, climb=Climb(start, FIRST_RADIUS)), data, pending)


def _is_wrong(model: SelectedModel, memory: Memory) -> bool:
    """Whether the function itself is a better guide than the model. Where values scatter it is not."""
    return memory.is_wrong and not model.noisy


def _best_row(data: Observations) -> int:
    return int(np.where(data.has_y, data.y, -np.inf).argmax())


def _climbed(model: SelectedModel, memory: Memory, data: Observations, pending: Array) -> tuple[Memory, _Step | None]:
    """The next step of the climb; None if there is none, it waits, or it has ended, which the memory then says."""
    climb = memory.climb
    if climb is None or (climb.path and contains(pending, np.array(climb.path[-1]))):
        return memory, None
    onward = advance(climb, model, data, memory.known_optima(data.dim))
    if onward is not None and not contains(pending, x := np.array(onward.path[-1])):
        return replace(memory, climb=onward), _Step(x, "restart", 0.0)
    rows = told_rows(climb, data)
    won = is_above(rows, data)
    # Where it came from is as well known as where it led, unless that is the best point now, which goes on.
    start = np.array(climb.start)
    ends = [start] if contains(data.x, start) and not won else []
    if len(rows) and not won:
        ends.append(data.x[rows[data.y[rows].argmax()]])
    return (
        replace(
            memory.with_optima(ends),
            climb=None,
            rested=len(data),
            radius=climb.radius if won else RADIUS_AFTER_JUMP,
            patience=memory.after_climb(won=won),
        ),
        None,
    )


def _settings(descent: Descent) -> dict[str, float]:
    return {**_CONVERGED, "first_step": descent.step}


def _continued(memory: Memory, data: Observations) -> tuple[Memory, _Step | None]:
    """The next step of the descent; None if there is none, or it has ended, which the memory then says."""
    if memory.descent is None:
        return memory, None
    start = np.array(memory.descent.start)
    needed, used = replay(start, data, _settings(memory.descent))
    rows = np.array(sorted(used), dtype=np.intp)
    others = np.delete(data.y, rows)
    best = float(others[np.isfinite(others)].max(initial=-np.inf))
    if needed is not None and not is_hopeless(data, rows, best, memory.known_optima(data.dim)):
        return memory, _Step(needed, memory.descent.reason, 0.0)
    known = rows[data.has_y[rows]]
    ends = [start, data.x[known[data.y[known].argmax()]]] if len(known) else [start]
    return replace(memory.with_optima(ends), descent=None, rested=len(data), radius=RADIUS_AFTER_JUMP), None


def _remembered(state: State, memory: Memory, step: _Step, gain: float | None = None) -> tuple[Proposal, State]:
    """The proposal and the state after it; `gain` is what the model expects of it, in the units of y."""
    spent = {**memory.spent, step.reason: memory.spent.get(step.reason, 0) + 1}
    tracked = (Expectation(step.x.tolist(), step.reason, step.gain),) if step.gain > 0 else ()
    memory = replace(memory, spent=spent, open=(*memory.open, *tracked))
    return Proposal(step.x, step.reason, gain), replace(state, memory=memory.to_json())
