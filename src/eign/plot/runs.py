"""What a picture needs of a run, whatever it is given as."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from eign.arrays import Array, Mask, as_floats
from eign.data import Observations
from eign.study import Optimizer
from eign.study.handle import handle


class Trajectory(NamedTuple):
    """The values of n evaluations `n` and their gradients `n x d`, NaN where they are missing, and what is feasible."""

    values: Array
    gradients: Array
    maximize: bool
    feasible: Mask

    @property
    def allowed(self) -> Array:
        """The values of feasible points `n`, NaN for all others."""
        return np.where(self.feasible, self.values, np.nan)

    @property
    def best(self) -> Array:
        """The best feasible value so far, `n`; NaN before the first."""
        return best_so_far(self.allowed, maximize=self.maximize)


def read_run(run: Any, *, maximize: bool | None = None) -> Trajectory:
    """A result, an optimizer, `Observations` or the plain values of the evaluations in their order.

    `maximize` says which values are better where the run does not; None is what the run says, or else minimising.
    """
    history, known, feasible = run, None, None
    if isinstance(run, Optimizer):
        history, known, feasible = run.history, handle(run).definition.maximize, handle(run).is_feasible()
    elif isinstance(run, Mapping) and "history" in run:
        history, known, feasible = run["history"], run.get("maximize"), run.get("feasible")
    direction = bool(known) if maximize is None else maximize
    if isinstance(history, Observations):
        values, gradients = np.array(history.y), np.array(history.grad)
    else:
        values = as_floats(history, "run")
        if values.ndim != 1:
            raise ValueError(f"a run has one value an evaluation, shape (n,); got shape {values.shape}")
        gradients = np.full((len(values), 1), np.nan)
    values[~np.isfinite(values)] = np.nan
    allowed = np.ones(len(values), dtype=np.bool_) if feasible is None else np.asarray(feasible)
    return Trajectory(values, gradients, direction, allowed)


def best_so_far(values: Array, *, maximize: bool) -> Array:
    """The best of the values up to each evaluation along the last axis, `... x n -> ... x n`; NaN is not seen.

    >>> best_so_far(np.array([np.nan, 3.0, 4.0, np.nan, 1.0]), maximize=False)
    array([nan,  3.,  3.,  3.,  1.])
    """
    better = np.fmax if maximize else np.fmin
    return np.asarray(better.accumulate(values, axis=-1))
