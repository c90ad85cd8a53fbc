"""Where a study starts: scrambled Sobol points, the same for every method of a seed, so that comparisons are paired."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from eign.arrays import Array, read_only
from eign.data import Observations
from eign.region import region_of
from eign.strategies.options import Option, whole
from eign.strategies.strategy import Proposal, State

N_INIT: Mapping[str, Option] = {
    "n_init": Option(None, whole(least=0), "points of the initial design; None is 3 for each coordinate")
}


def design_point(seed: int, dim: int, index: int) -> Array:
    """Point `index` of the scrambled Sobol sequence of this seed, `d`.

    >>> bool((design_point(7, 2, 3) == design_point(7, 2, 3)).all())
    True
    """
    return np.array(_sobol(seed, dim, max(4, index.bit_length()))[index])


def initial_proposal(state: State) -> tuple[Proposal, State]:
    """The next point of the initial design, as `Strategy.propose_one` returns it."""
    return Proposal(spread_point(state), "initial"), state


def spread_point(state: State) -> Array:
    """The next point of the sequence of this seed that fills what linear constraints leave of the cube, `d`."""
    if state.rows is None:
        return design_point(state.seed, state.dim, state.asked)
    return region_of(state.rows, state.dim).design_point(state.seed, state.asked)


def generator(state: State, *purpose: int) -> np.random.Generator:
    """Random numbers from (seed, points asked so far); `purpose` separates independent streams of one proposal."""
    return np.random.default_rng(np.random.SeedSequence([state.seed, state.asked, *purpose]))


def is_initial(state: State, data: Observations, pending: Array) -> bool:
    """Whether the next point belongs to the initial design: there are fewer points than `n_init` so far.

    Points that were told and never asked count: who brings data needs no design.
    """
    n_init = state.options["n_init"]
    return len(data) + len(pending) < (3 * state.dim if n_init is None else n_init)


@lru_cache(maxsize=32)
def _sobol(seed: int, dim: int, log_count: int) -> Array:
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    from scipy.stats import qmc  # half a second, for the first point alone

    return read_only(qmc.Sobol(dim, scramble=True, rng=rng).random_base2(log_count))
