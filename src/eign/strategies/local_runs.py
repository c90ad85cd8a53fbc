"""Local searches on the function itself, several of them: which one goes on, and where the next one starts.

A local search is a program that calls the function; here the function is called by others. So each proposal runs it
again over the evaluations that exist, until it needs one that does not: that is the next point. Nothing but the starts
has to be remembered, each evaluation counts as one, and while a point is pending another run goes on. A run that has
ended is not run again: the rows it has been through are remembered.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.region import region_of
from eign.space import contains, nearest
from eign.strategies.design import generator, initial_proposal, is_initial
from eign.strategies.strategy import Proposal, State

# A run from a point so close to another run's would repeat that run: such points were told to check the gradient.
_SAME_RUN = 1e-3
# A known budget is at least so many times the design: in many dimensions it would have no evaluations left for runs.
_RUNS_PER_DESIGN = 10
# Where linear constraints leave a single point, every start is one that is known: after so many there is no other.
_MOST_STARTS = 32


class Replay(NamedTuple):
    """How far a run has come.

    Attributes:
        needed: The point whose evaluation it needs next, `d`; None if it has ended.
        used: Rows of the data that it has been through.
    """

    needed: Array | None
    used: frozenset[int]


def next_point(
    state: State,
    data: Observations,
    pending: Array,
    replay: Callable[[Array], Replay],
    *,
    order: Sequence[int] | None = None,
) -> tuple[Proposal, State]:
    """The initial design, and then the point that the first run which is not waiting for a pending one needs.

    Runs start at the points told, best first, and then at uniform random points. `order` are all rows of the data from
    the best to the worst, where that is not decided by the values alone. Where there is no point left that is not known
    or pending, one of them is proposed again.

    Memory: `starts`, the starting points of the runs so far, and `ended`, for each run the rows of the data that it has
    been through, or None while it goes on.
    """
    if _has_share(state, data, pending) and is_initial(state, data, pending):
        return initial_proposal(state)
    starts = list(state.memory.get("starts", ()))
    ended = list(state.memory.get("ended", [None] * len(starts)))
    used: set[int] = set()
    last = len(starts) + _MOST_STARTS
    for run in count():
        if run == len(starts):
            starts.append(_next_start(state, data, pending, used, runs=run, order=order).tolist())
            ended.append(None)
        if ended[run] is not None:
            used.update(ended[run])
            continue
        needed, rows = replay(np.array(starts[run]))
        used |= rows
        if needed is None:
            ended[run] = sorted(rows)
        if run == last or (needed is not None and not contains(pending, needed)):
            needed = np.array(starts[run]) if needed is None else needed
            memory = {**state.memory, "starts": starts, "ended": ended}
            return Proposal(needed, "local" if rows else "restart"), replace(state, memory=memory)
    raise AssertionError("there is always another run")


def _has_share(state: State, data: Observations, pending: Array) -> bool:
    """Whether a design may go on: unless its size was set, it has at most a tenth of a budget that is known."""
    if state.budget is None or state.options["n_init"] is not None:
        return True
    return len(data) + len(pending) < max(1, state.budget // _RUNS_PER_DESIGN)


def _next_start(
    state: State, data: Observations, pending: Array, used: set[int], *, runs: int, order: Sequence[int] | None
) -> Array:
    """The best point told that no run has been through or close to, or a new random one."""
    seen = data.x[sorted(used)]
    ranked = np.argsort(np.where(data.has_y, -data.y, np.inf), kind="stable").tolist() if order is None else order
    for row in ranked:
        if data.has_y[row] and nearest(seen, data.x[row])[1] > _SAME_RUN:
            return np.array(data.x[row])
    for attempt in range(_MOST_STARTS):
        # The number of runs is part of the seed, as one proposal may begin several.
        rng = generator(state, runs + attempt)
        point = rng.random(state.dim) if state.rows is None else region_of(state.rows, state.dim).samples(1, rng)[0]
        if not contains(pending, point) and not contains(data.x, point):
            break
    return np.asarray(point)
