"""`auto`, read from top to bottom: a model of f, four sources of points, and the policy that chooses among them.

| reason | the source |
|---|---|
| initial | the Sobol design |
| global | the largest LogEI, anywhere |
| local | a search on the function around the incumbent |
| restart | the same from elsewhere: a good point that stands alone, or anywhere |
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np
import torch

from eign.acquisition import EI, LogEI, SurrogateAcquisition
from eign.arrays import LARGEST, Array
from eign.data import Observations
from eign.models.selection import KERNELS, SelectedModel, fitted
from eign.search import maximize
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.auto.memory import Memory
from eign.strategies.auto.settings import SETTINGS, Settings
from eign.strategies.auto.views import SeenAcquisition
from eign.strategies.design import generator, initial_proposal
from eign.strategies.local_search import LocalSearch, advance, begin, best_row
from eign.strategies.options import Option, flag, noise_level, one_of, whole
from eign.strategies.strategy import Belief, Proposal, State, Strategy


class Step(NamedTuple):
    """A point that could be next, why, and its expected gain in standard deviations of what the model sees."""

    x: Array
    reason: str
    gain: float


@final
class Auto(Strategy):
    """The default method, see this module's docstring. Memory: see `Memory`."""

    expects_improvement = True

    @property
    def options(self) -> Mapping[str, Option]:
        """Nothing has to be set; each part can be left out, to see what it is good for."""
        return {
            "n_init": Option(
                None, whole(least=0), "points of the initial design; None is d + 3, without gradients 3 d"
            ),
            "kernel": Option("choose", one_of("choose", *KERNELS), "of the model; choose takes the more likely"),
            "compress": Option(True, flag, "let the model see logarithms of y where they are more likely"),
            "logs": Option(True, flag, "let it see logarithms of positive coordinates where they are more likely"),
            "gradients": Option(True, flag, "let the model see gradients"),
            "noise": Option(None, noise_level, 'variance in standardised units, or "learn"; None decides by the data'),
            "local": Option(True, flag, "search locally around the best point"),
            "restarts": Option(True, flag, "search locally from elsewhere where the model knows no place to go"),
        }

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """A point of the design, or what the policy chooses."""
        if _is_initial(state, data, pending) or not data.has_y.any():
            return initial_proposal(state)
        # Values over hundreds of decades overflow here and there; what is not finite is never chosen.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return _proposed(state, data, pending)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief | None:
        """The model in the units of y, and where a global step would look; also while the initial design lasts."""
        if not data.has_y.any():
            return None
        model = _model(state, data, Memory.from_json(state.memory))
        step, target = _global_step(model.given(data, pending), state)
        return Belief(model, SeenAcquisition(target, model.coordinates), step.x)

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and there is a model; otherwise the values."""
        memory = Memory.from_json(state.memory)
        if memory.fit is None:
            return data.y
        as_it_is = replace(SETTINGS.model, growth=np.inf)
        model = _model(state, data, memory, replace(SETTINGS, model=as_it_is))
        return np.asarray(model.moments(torch.tensor(data.x))[0].numpy()) if model.noisy else data.y


def _proposed(state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
    """The policy: which source has the next evaluation.

    1. A restart that is under way goes on: it is cheap, and half of a descent says nothing.
    2. The source that promises more, the local search or the global step, as long as one promises anything.
    3. The local search, to its end: digits cost little there.
    4. Then nothing is promised, and global steps and restarts share the evaluations.
    """
    memory = Memory.from_json(state.memory)
    memory, going = _advanced(memory, data, pending)
    if going is not None and going.reason == "restart":
        return _remembered(state, memory, going)
    model = _model(state, data, memory)
    memory, state = replace(memory, fit=model.fit), replace(state, noisy=model.noisy)
    far, _ = _global_step(model.given(data, pending), state)
    expected = min(far.gain / _slope(model, data), LARGEST)
    near = going
    if near is None and memory.search is None and state.options["local"] and _has_slopes(data):
        memory, near = _begun(memory, _incumbent(model), data, pending)
    memory = _settled(memory, data, pending)
    if near is not None and _credit(memory, "local") * near.gain >= SETTINGS.small * _gained(memory.search, data):
        return _remembered(state, _expecting(memory, near, data), near, expected)
    if _credit(memory, "global") * far.gain >= SETTINGS.small:
        return _remembered(state, _expecting(memory, far._replace(gain=expected), data), far, expected)
    if near is not None:
        return _remembered(state, _expecting(memory, near, data), near, expected)
    if memory.search is None and _has_slopes(data) and state.options["restarts"]:
        shared = memory.shared
        if shared.get("restart", 0) < shared.get("global", 0):
            memory, away = _begun(memory, _new_start(data, memory, generator(state, 1)), data, pending)
            if away is not None:
                return _remembered(state, memory, away, expected)
    return _remembered(state, memory.after("global"), far, expected)


def _credit(memory: Memory, reason: str) -> float:
    return memory.credit.get(reason, 1.0)


def _expecting(memory: Memory, step: Step, data: Observations) -> Memory:
    best = float(data.y[data.has_y].max())
    return replace(memory, open=(*memory.open, (step.reason, step.x.tolist(), best, step.gain)))


def _settled(memory: Memory, data: Observations, pending: Array) -> Memory:
    """The memory after what was told: how far promises came true."""
    left, credit = [], dict(memory.credit)
    for one in memory.open:
        reason, x, best, gain = one
        row, distance = nearest(data.x, np.array(x))
        if distance > SAME_POINT:
            left += [one] if contains(pending, np.array(x)) else []
            continue
        came = float(data.y[row]) - best if data.has_y[row] else 0.0
        kept = float(np.clip(came / gain, 0.0, 1.0)) if gain > 0 else 0.0
        credit[reason] = SETTINGS.memory * _credit(memory, reason) + (1.0 - SETTINGS.memory) * kept
    return replace(memory, credit=credit, open=tuple(left))


def _remembered(state: State, memory: Memory, step: Step, gain: float | None = None) -> tuple[Proposal, State]:
    """The proposal and the state after it; `gain` is what the model expects of it, in the units of y."""
    if step.reason == "restart":
        memory = memory.after("restart")
    return Proposal(step.x, step.reason, gain), replace(state, memory=memory.to_json())


def _is_initial(state: State, data: Observations, pending: Array) -> bool:
    return len(data) + len(pending) < _design_size(state, data)


def _design_size(state: State, data: Observations) -> int:
    """Points of the design; without gradients a model needs more of them to start with."""
    count: int | None = state.options["n_init"]
    if count is not None:
        return count
    blind = len(data) > 0 and not data.has_grad.any()
    return SETTINGS.blind_design * state.dim if blind else SETTINGS.design


def _model(state: State, data: Observations, memory: Memory, settings: Settings = SETTINGS) -> SelectedModel:
    return fitted(data, memory.fit, state.decades, state.options, settings.model)


def _incumbent(model: SelectedModel) -> Array:
    return model.coordinates.undo(model.incumbent.x.numpy().copy())


def _gained(search: LocalSearch | None, data: Observations) -> float:
    """What a search has gained since its start."""
    row = None if search is None else best_row(search, data)
    return 0.0 if row is None else float(data.y[row] - data.y[search.rows[0]])


def _slope(model: SelectedModel, data: Observations) -> float:
    """Of the output at the best value."""
    return float(model.fit.output.slope(np.array(data.y[data.has_y].max())))


def _global_step(model: SelectedModel, state: State) -> tuple[Step, SurrogateAcquisition]:
    """The maximiser of LogEI, and its expected improvement.

    Over what is expected of pending points, too: else the next point would be next to the best of them.
    """
    best = model.incumbent.best_f + SETTINGS.small
    seed = int(np.random.SeedSequence([state.seed, state.asked]).generate_state(1)[0])
    found = maximize(
        LogEI(model.model, best),
        seed=seed,
        restarts=SETTINGS.starts,
        raw_samples=SETTINGS.candidates,
        incumbents=model.incumbent.x[None],
        is_noisy=model.noisy,
    )
    gain = float(EI(model.model, best).evaluate(found.x.numpy()[None])[0])
    return Step(model.coordinates.undo(found.x.numpy().copy()), "global", gain), found.target


def _has_slopes(data: Observations) -> bool:
    """Whether gradients are complete, and nobody said that there is noise."""
    is_noisy = bool((data.y_var > 0).any() or (data.grad_var > 0).any())
    return bool(np.all(data.has_grad[data.has_y])) and not is_noisy


def _begun(memory: Memory, start: Array, data: Observations, pending: Array) -> tuple[Memory, Step | None]:
    """The first step of a local search; None if it ended there before."""
    if memory.is_optimum(start):
        return memory, None
    others = data.x[np.abs(data.x - start).max(axis=1) > 1e-9]
    step = min(0.25, nearest(others, start)[1] if len(others) else 0.25)
    return _advanced(replace(memory, search=begin(start, step=step)), data, pending)


def _advanced(memory: Memory, data: Observations, pending: Array) -> tuple[Memory, Step | None]:
    """The next step of the local search; None if there is none, it waits, or it has ended, which the memory says.

    A search that has been overtaken goes on as a restart, unless it has no hope to catch up.
    """
    if memory.search is None:
        return memory, None
    search = advance(memory.search, data)
    row = best_row(search, data)
    is_best = row is not None and data.y[row] >= data.y[data.has_y].max()
    if not search.ended and (row is None or is_best or not _is_hopeless(data, search, row, memory)):
        memory = replace(memory, search=search)
        if contains(pending, x := np.array(search.point)):
            return memory, None
        return memory, Step(x, "local" if is_best else "restart", search.promise)
    ends = [data.x[search.rows[0]]] if search.rows else [np.array(search.point)]
    return memory.ended(ends if row is None else [*ends, data.x[row]]), None


def _new_start(data: Observations, memory: Memory, rng: np.random.Generator) -> Array:
    """Where nothing is known: the best point with neither a better one nor an optimum nearby, or anywhere, by chance."""
    y = np.where(data.has_y, data.y, -np.inf)
    optima = memory.known_optima(data.dim)
    draws = rng.random((64, data.dim))
    if rng.random() < 1 / 2:
        for row in np.argsort(-y, kind="stable")[: data.has_y.sum()]:
            x = data.x[row]
            is_near = np.abs(data.x - x).max(axis=1) <= SETTINGS.basin
            if not (is_near & (y > y[row])).any() and nearest(optima, x)[1] > SETTINGS.basin:
                return np.array(x)
    return np.array(max(draws, key=lambda x: nearest(data.x, x)[1]))


def _is_hopeless(data: Observations, search: LocalSearch, row: int, memory: Memory) -> bool:
    r"""Whether a restart, whose best is this row of the data, will not get above the best of all.

    It has come to a known optimum, or its gains shrink so fast that their sum stays below: if the last evaluations
    gained b and those before a > b, a geometric series has :math:`b^2 / (a - b)` left.
    """
    window, rows = SETTINGS.window, [row for row in search.rows if data.has_y[row]]
    if nearest(memory.known_optima(data.dim), data.x[row])[1] < SETTINGS.basin / 3:
        return True
    if len(rows) <= 2 * window:
        return False
    reached, best = np.maximum.accumulate(data.y[rows]), data.y[data.has_y].max()
    late, early = reached[-1] - reached[-1 - window], reached[-1 - window] - reached[-1 - 2 * window]
    return bool(late < early and reached[-1] + SETTINGS.hope * late * late / (early - late) < best)
