"""`auto` after its design, from top to bottom: the policy, and the three sources that it chooses among.

| reason | the source |
|---|---|
| local | a search on the function around the best point, see `local_search` |
| global | the largest LogEI of the model, anywhere |
| restart | a search from elsewhere: from the top of a bowl, a good point that stands alone, or far from everything |

Each promises a gain. A source whose promises did not come true rests, the longer the more of them in a row; the unit of
a local search is what it has gained so far, that of a global step is a standard deviation of the values as the model
sees them.
"""

from dataclasses import replace
from typing import final

import numpy as np
import torch

from eign.acquisition import EI, LogEI, SurrogateAcquisition
from eign.arrays import LARGEST, Array, Mask
from eign.data import Observations
from eign.models.bowl import bowl_top
from eign.models.selection import SelectedModel, apart, fitted
from eign.models.transforms.directions import Directions, active_directions
from eign.numerics.threads import single_threaded_blas
from eign.search import maximize
from eign.search.candidates import best_along_coordinates
from eign.search.maximize import CLOSEST
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.auto.jumps import Step, is_worth_drawing, jump
from eign.strategies.auto.memory import Memory, Promise
from eign.strategies.auto.settings import SETTINGS, are_many
from eign.strategies.auto.views import SeenAcquisition
from eign.strategies.design import generator, initial_proposal
from eign.strategies.local_search import FIRST_STEP, LocalSearch, advance, begin, beside, best_row, first_step
from eign.strategies.strategy import Belief, Proposal, State


@final
class Steps:
    """What `Auto` proposes after its design, see this module's docstring. Memory: see `Memory`."""

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """What the policy chooses."""
        # Values over hundreds of decades overflow here and there; what is not finite is never chosen.
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return _proposed(state, data, pending)

    def belief(self, state: State, data: Observations, pending: Array) -> Belief:
        """The model in the units of y, and where a global step would look."""
        model = _model(state, data, _of_all_coordinates(Memory.from_json(state.memory)))
        step, target = _global_step(model.given(data, pending), state, data, pending)
        return Belief(model, SeenAcquisition(target, model.coordinates), step.x)

    def estimates(self, state: State, data: Observations) -> Array:
        """The posterior mean where values scatter and there is a model; otherwise the values."""
        memory = _of_all_coordinates(Memory.from_json(state.memory))
        if memory.fit is None:
            return data.y
        as_it_is = replace(SETTINGS.model, growth=np.inf)
        model = fitted(data, memory.fit, state.decades, state.options, as_it_is)
        return np.asarray(model.moments(torch.tensor(data.x))[0].numpy()) if model.noisy else data.y


def _proposed(state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
    """The policy.

    1. A restart that is under way goes on until it ends, or has no hope. In many dimensions a jump that promises more
       comes before it.
    2. Of the local and the global step the one that promises more is taken, unless it rests.
    3. If the global one is not worth it, the local search goes on to its end: the last digits.
    4. There global steps are taken all the same, and now and then a restart begins, see `_elsewhere`.
    """
    memory = Memory.from_json(state.memory).settled(data, pending)
    few = _few_directions(data) if state.options["directions"] else None
    has_jumps = few is None and are_many(data.dim) and _has_slopes(data)
    memory, near = _advanced(memory, data, pending, few)
    if near is not None and memory.is_resting("global"):
        return _remembered(state, memory, near, data)  # whatever a global step would promise: nobody asks
    if near is not None and near.reason == "restart":
        far = _jump(state, data, pending) if has_jumps else None
        is_near = far is None or far.gain <= _promised(near, memory)
        return _remembered(state, memory, near if is_near or far is None else far, data)
    if has_jumps:
        far, start, memory = _jump(state, data, pending), _best_point(data), _of_all_coordinates(memory)
    else:
        far, start, memory, state = _looked_around(state, memory, data, pending, few)
    can_search = memory.search is None and _has_slopes(data)
    if can_search and state.options["local"]:
        memory, near = _begun(memory, start, data, pending, few)
    if near is None and has_jumps and state.options["draws"] and is_worth_drawing(data, generator(state, 2)):
        return initial_proposal(replace(state, memory=memory.forgiving("global").to_json()))
    if near is not None and (not _is_worth_it(far, memory) or _promised(near, memory) >= _promised(far, memory)):
        return _remembered(state, memory, near, data, far.gain)
    if not _is_worth_it(far, memory):
        memory = replace(memory, idle=memory.idle + 1)
        elsewhere = _elsewhere(state, data, memory, far, few) if can_search and state.options["elsewhere"] else None
        if elsewhere is not None:
            memory, away = _begun(memory, elsewhere, data, pending, few)
            if away is not None:
                return _remembered(state, memory, away, data, far.gain)
        if memory.search is not None and are_many(data.dim) and (x := beside(memory.search, data, pending)) is not None:
            return Proposal(x, "restart" if memory.is_restart else "local"), replace(state, memory=memory.to_json())
    return _remembered(state, memory, far, data, far.gain)


def _jump(state: State, data: Observations, pending: Array) -> Step:
    """The global step where there are many dimensions: to the best place of a separable model, or anywhere."""
    rng = generator(state, 2)
    return jump(data, pending, rng) if state.options["jumps"] else Step(rng.random(data.dim), "global", 0.0, 1.0)


def _looked_around(
    state: State, memory: Memory, data: Observations, pending: Array, few: Directions | None
) -> tuple[Step, Array, Memory, State]:
    """The global step, the best point, and what was learned on the way."""
    if few is not None:
        return _looked_along(few, state, memory, data, pending)
    model = _model(state, data, memory := _of_all_coordinates(memory))
    far, _ = _global_step(model.given(data, pending), state, data, pending)
    best = model.coordinates.undo(model.incumbent.x.numpy())
    return far, best, replace(memory, fit=model.fit), replace(state, noisy=model.noisy)


def _looked_along(
    few: Directions, state: State, memory: Memory, data: Observations, pending: Array
) -> tuple[Step, Array, Memory, State]:
    """The same in the few directions along which a function of many coordinates changes."""
    rank, best, seen = len(few.axes), _best_point(data), few.seen(data)
    known = memory.fit if memory.rank == rank else None
    along = replace(state, dim=rank, decades=[])
    model = _model(along, seen, replace(memory, fit=known))
    waiting = few.coordinates(pending)
    waiting = np.clip(waiting[few.holds(waiting)], 0.0, 1.0)
    step, _ = _global_step(model.given(seen, waiting), along, seen, waiting)
    far = step._replace(x=few.lifted(step.x, best))
    # No point of the cube may have the coordinates that were asked for, and the nearest one be known.
    if nearest(np.concatenate([seen.x, waiting]), few.coordinates(far.x))[1] <= SETTINGS.model.resolution:
        far = Step(generator(state, 2).random(data.dim), "global", 0.0, step.unit)
    return far, best, replace(memory, fit=model.fit, rank=rank), replace(state, noisy=False)


def _of_all_coordinates(memory: Memory) -> Memory:
    """The memory without a model of few directions."""
    return replace(memory, fit=None, rank=0) if memory.rank else memory


def _best_point(data: Observations) -> Array:
    return np.array(data.x[int(np.where(data.has_y, data.y, -np.inf).argmax())])


def _few_directions(data: Observations) -> Directions | None:
    """What the gradients span, if these are so few directions that the model has room for them, and there are others.

    As many gradients more than directions as choose a model: a few gradients always span few directions.
    """
    if not are_many(data.dim) or not _has_slopes(data):
        return None
    room = int(data.has_y.sum()) - SETTINGS.model.fewest
    few = active_directions(
        data.grad[data.has_y], rest=SETTINGS.outside, most=min(room, int(np.sqrt(SETTINGS.model.rows)))
    )
    if few is None:
        return None
    return few.around(_best_point(data)) if len(few.axes) > 0 and not are_many(len(few.axes)) else None


def _changing(points: Array, few: Directions | None) -> Array:
    """Points in the coordinates along which the function changes, `n x d -> n x r`."""
    return points if few is None else few.coordinates(points)


def _away(points: Array, x: Array, few: Directions | None) -> float:
    """How far a point is from the nearest of others, in the coordinates along which the function changes."""
    return nearest(_changing(points, few), _changing(x, few))[1]


def _promised(step: Step, memory: Memory) -> float:
    """The gain that counts: none of a source that rests."""
    return 0.0 if memory.is_resting(step.reason) else step.gain


def _is_worth_it(step: Step, memory: Memory) -> bool:
    return _promised(step, memory) >= SETTINGS.small * step.unit


def _remembered(
    state: State, memory: Memory, step: Step, data: Observations, expected: float | None = None
) -> tuple[Proposal, State]:
    """The proposal and the state after it; `expected` is what the model expects of a global step."""
    promise = Promise(step.reason, step.x.tolist(), float(data.y[data.has_y].max()), step.gain)
    memory = replace(memory, open=(*memory.open, promise))
    return Proposal(step.x, step.reason, expected), replace(state, memory=memory.to_json())


def _model(state: State, data: Observations, memory: Memory) -> SelectedModel:
    """Of points that are apart, if a local search has the others; otherwise of all."""
    settings = replace(SETTINGS.model, thinned=_is_searched(state, data))
    return fitted(data, memory.fit, state.decades, state.options, settings)


def _is_searched(state: State, data: Observations) -> bool:
    """Whether a local search sees to the surroundings of the best point."""
    return bool(state.options["local"]) and _has_slopes(data)


def _global_step(
    model: SelectedModel, state: State, data: Observations, pending: Array
) -> tuple[Step, SurrogateAcquisition]:
    """The maximiser of LogEI, and its expected improvement.

    Where a search sees to the surroundings of the best point, a global step has to gain more than a little, and keeps
    away from all points. Without one every other step does, once little is expected: the last digits of one optimum,
    which the model's own error always promises, would take all that is left.
    """
    if _is_searched(state, data):
        return _best_place(model, state, data, pending, is_away=True)
    found = _best_place(model, state, data, pending, is_away=False)
    is_small = found[0].gain < SETTINGS.small * found[0].unit
    if model.noisy or not is_small or state.asked % 2:
        return found
    return _best_place(model, state, data, pending, is_away=True)


def _best_place(
    model: SelectedModel, state: State, data: Observations, pending: Array, *, is_away: bool
) -> tuple[Step, SurrogateAcquisition]:
    """The largest LogEI, away from all points, known or pending, or anywhere.

    Over what is expected of pending points, too: else the next point would be next to the best of them.
    """
    best = model.incumbent.best_f + SETTINGS.small * is_away
    target = LogEI(model.model, best)
    with single_threaded_blas():
        guess = best_along_coordinates(target.evaluate, model.incumbent.x.numpy(), places=SETTINGS.line)
    found = maximize(
        target,
        seed=int(np.random.SeedSequence([state.seed, state.asked]).generate_state(1)[0]),
        restarts=SETTINGS.starts,
        raw_samples=SETTINGS.candidates,
        incumbents=model.incumbent.x[None],
        avoid=torch.tensor(model.coordinates.points(np.concatenate([data.x, pending]))),
        guesses=guess[None],
        apart=SETTINGS.model.resolution if is_away else CLOSEST,
        is_noisy=model.noisy,
    )
    deviation = 1.0 / float(model.fit.output.slope(np.array(data.y[data.has_y].max())))
    gain = float(EI(model.model, best).evaluate(found.x.numpy()[None])[0]) * deviation
    x = model.coordinates.undo(found.x.numpy().copy())
    return Step(x, "global", min(gain, LARGEST), min(deviation, LARGEST)), found.target


def _has_slopes(data: Observations) -> bool:
    """Whether a search has gradients to go by: most are complete, and nobody said that there is noise.

    One that lacks a component is of a trial that went wrong, as at the root of 0, and is no reason to stop searching.
    """
    is_noisy = bool((data.y_var > 0).any() or (data.grad_var > 0).any())
    complete: Mask = np.asarray(data.has_grad[data.has_y].all(axis=1))
    return not is_noisy and bool(2 * complete.sum() > len(complete) or not len(complete))


def _begun(
    memory: Memory, start: Array, data: Observations, pending: Array, few: Directions | None
) -> tuple[Memory, Step | None]:
    """The first step of a search; None if one ended there before. It is no longer than the way to the next point."""
    if contains(memory.known_optima(data.dim), start):
        return memory, None
    others = data.x[np.abs(data.x - start).max(axis=1) > SAME_POINT]
    search = begin(start, step=min(first_step(data.dim), nearest(others, start)[1]))
    return _advanced(replace(memory, search=search, is_restart=True, idle=0), data, pending, few)


def _advanced(memory: Memory, data: Observations, pending: Array, few: Directions | None) -> tuple[Memory, Step | None]:
    """The next step of the search; None if there is none, it waits, or it has ended, which the memory then says.

    A search that has come to the best point is local from then on, and is given up when there is a better one.
    """
    if memory.search is None:
        return memory, None
    search = advance(memory.search, data)
    row = best_row(search, data)
    is_best = row is not None and bool(data.y[row] >= data.y[data.has_y].max())
    if not (is_best or memory.is_restart):
        return replace(memory, search=None), None
    if search.ended or (row is not None and not is_best and _is_hopeless(search, row, memory, data, few)):
        start = data.x[search.rows[0]] if search.rows else np.array(search.point)
        return memory.after_search([start] if row is None else [start, data.x[row]]), None
    memory = replace(memory, search=search, is_restart=not is_best)
    if contains(pending, x := np.array(search.point)):
        return memory, None
    gained = 0.0 if row is None else float(data.y[row] - data.y[search.rows[0]])
    return memory, Step(x, "local" if is_best else "restart", search.promise, gained)


def _is_hopeless(search: LocalSearch, row: int, memory: Memory, data: Observations, few: Directions | None) -> bool:
    r"""Whether a search, whose best is this row of the data, will not get above the best of all.

    It has come to a known optimum, or its gains shrink so fast that their sum stays below: if the last evaluations
    gained b and those before a > b, a geometric series has :math:`b^2 / (a - b)` left.
    """
    if _away(memory.known_optima(data.dim), data.x[row], few) < SETTINGS.basin:
        return True
    rows, window = [row for row in search.rows if data.has_y[row]], SETTINGS.window
    if len(rows) <= 2 * window:
        return False
    reached, best = np.maximum.accumulate(data.y[rows]), data.y[data.has_y].max()
    late, early = reached[-1] - reached[-1 - window], reached[-1 - window] - reached[-1 - 2 * window]
    return bool(late < early and reached[-1] + SETTINGS.hope * late * late / (early - late) < best)


def _elsewhere(state: State, data: Observations, memory: Memory, far: Step, few: Directions | None) -> Array | None:
    """Where a restart begins; None as long as global steps are worth a try.

    At the top of a bowl at once, if nobody has looked there. Elsewhere after as many global steps as it takes to choose
    a model: LogEI orders places also where it expects little, but not where it expects nothing; jumps order none.
    """
    top = _unknown_top(state, data, memory, few) if state.options["bowl"] else None
    if top is not None:
        return top
    dim = memory.rank or data.dim
    is_enough = memory.idle > dim + SETTINGS.model.fewest or far.gain == 0.0 or are_many(dim)
    return _new_start(data, memory, generator(state, 1), few) if is_enough else None


def _unknown_top(state: State, data: Observations, memory: Memory, few: Directions | None) -> Array | None:
    """The top of a bowl that the best points of all basins show, if there is one and no point is near to it."""
    if few is None:
        top = bowl_top(apart(data, state.decades, SETTINGS.basin))
    else:
        top = bowl_top(apart(few.seen(data), [], SETTINGS.basin))
        top = None if top is None else few.lifted(top, _best_point(data))
    known = np.concatenate([data.x, memory.known_optima(data.dim)])
    return None if top is None or _away(known, top, few) < SETTINGS.basin else top


def _new_start(data: Observations, memory: Memory, rng: np.random.Generator, few: Directions | None = None) -> Array:
    """By chance the best point with neither a better one nor a known optimum nearby, or one far from all points.

    Of many coordinates nothing is far from the border, and nearly all of the cube is worse than the best point: there
    it is a hop from that, reflected at the border.
    """
    y = np.where(data.has_y, data.y, -np.inf)
    order = np.argsort(-y, kind="stable")[: data.has_y.sum()]
    if rng.integers(2):
        u, optima = _changing(data.x, few), _changing(memory.known_optima(data.dim), few)
        for row in order:
            is_near = np.abs(u - u[row]).max(axis=1) <= SETTINGS.basin
            if not (y[is_near] > y[row]).any() and nearest(optima, u[row])[1] > SETTINGS.basin:
                return np.array(data.x[row])
    if are_many(data.dim):
        hop = np.abs(data.x[order[0]] + rng.uniform(-FIRST_STEP, FIRST_STEP, data.dim))
        return np.asarray(np.minimum(hop, 2.0 - hop))
    draws = rng.random((SETTINGS.candidates, data.dim))
    return np.array(max(draws, key=lambda x: nearest(data.x, x)[1]))
