"""CMA-ES by the `cma` package: from the best point of the initial design, restarted with a doubled population."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.design import N_INIT, generator, initial_proposal, is_initial
from eign.strategies.options import Option, more_than, whole
from eign.strategies.strategy import Proposal, State, Strategy


@final
class CMAES(Strategy):
    """Covariance matrix adaptation; gradients are not used.

    Each proposal replays the evolution over what was told: generations that are complete are learned from, and the
    first point of the current one that is neither told nor pending comes next. If all of them are pending, an extra
    point is drawn from the current distribution; it is evaluated and not learned from. A failed point ranks last.
    When a run has converged, the next starts at a random point with twice the population.

    Memory: `center`, the mean of the first generation.
    """

    def __init__(self) -> None:
        """Check that the package is there.

        Raises:
            ImportError: it is not.
        """
        _cma()

    @property
    def options(self) -> Mapping[str, Option]:
        """The design, the first step and the population."""
        return {
            **N_INIT,
            "sigma0": Option(0.25, more_than(0.0), "first standard deviation, in the unit cube"),
            "popsize": Option(None, whole(least=3), "points of a generation; None is 4 + 3 log d"),
        }

    def propose_one(self, state: State, data: Observations, pending: Array) -> tuple[Proposal, State]:
        """The next point of the current generation."""
        if is_initial(state, data, pending):
            return initial_proposal(state)
        if "center" not in state.memory:
            state = replace(state, memory={"center": _center(state, data).tolist()})
        run = 0
        while True:
            point = _next_of_run(run, state, data, pending)
            if point is not None:
                return Proposal(point, "restart" if run else "generation"), state
            run += 1


def _next_of_run(run: int, state: State, data: Observations, pending: Array) -> Array | None:
    """The point that this run needs, or None if it has ended."""
    # Streams of runs begin where no number of asked points can reach.
    rng = np.random.default_rng(np.random.SeedSequence([state.seed, 2**63, run]))
    center = np.array(state.memory["center"]) if run == 0 else rng.random(state.dim)
    popsize = (state.options["popsize"] or 4 + int(3 * np.log(state.dim))) * 2**run
    evolution = _cma().CMAEvolutionStrategy(
        center,
        state.options["sigma0"],
        # A NaN seed leaves NumPy's global generator alone.
        {
            "bounds": [0.0, 1.0],
            "popsize": popsize,
            "seed": np.nan,
            "randn": lambda *shape: rng.standard_normal(shape),
            "verbose": -9,
            # The package cannot shorten a step that is too long for the box in one dimension.
            **({"maxstd_boundrange": np.inf} if state.dim == 1 else {}),
        },
    )
    while not evolution.stop():
        generation = np.clip(np.array(evolution.ask()), 0.0, 1.0)
        rows = [row if distance <= SAME_POINT else -1 for row, distance in (nearest(data.x, x) for x in generation)]
        missing = [x for x, row in zip(generation, rows, strict=True) if row < 0]
        if missing:
            waiting = [x for x in missing if not contains(pending, x)]
            return waiting[0] if waiting else _extra(evolution, state)
        evolution.tell(list(generation), _costs(data.y[rows]))
    return None


def _costs(values: Array) -> list[float]:
    """What the package minimises; a failed point ranks behind the worst of its generation."""
    known = np.isfinite(values)
    worst = -values[known].min() if known.any() else 0.0
    return [float(-value) if ok else float(worst) + 1.0 for value, ok in zip(values, known, strict=True)]


def _extra(evolution: Any, state: State) -> Array:
    """A point of the current distribution that belongs to no generation."""
    rng = generator(state)
    return np.asarray(np.clip(rng.normal(evolution.result.xfavorite, np.mean(evolution.result.stds)), 0.0, 1.0))


def _center(state: State, data: Observations) -> Array:
    """The best point so far, or a random one."""
    if not data.has_y.any():
        return generator(state).random(state.dim)
    return np.array(data.x[np.nanargmax(np.where(data.has_y, data.y, np.nan))])


def _cma() -> Any:
    try:
        import cma
    except ImportError as error:
        raise ImportError(
            "method 'cma-es' needs the package cma: pip install 'eign[bench]' or pip install cma"
        ) from error
    return cma
