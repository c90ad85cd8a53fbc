"""What a picture needs of a run, whatever it is given as."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from eign.arrays import Array, as_floats
from eign.data import Observations
from eign.study import Optimizer
from eign.study.handle import handle


class Trajectory(NamedTuple):
    """The values of n evaluations `n` and their gradients `n x d`, NaN where they are missing."""

    values: Array
    gradients: Array
    maximize: bool

    @property
    def best(self) -> Array:
        """The best value so far, `n`; NaN before the first value."""
        return best_so_far(self.values, maximize=self.maximize)


def read_run(run: Any, *, maximize: bool | None = None) -> Trajectory:
    """A result, an optimizer, `Observations` or the plain values of the evaluations in their order.

    `maximize` says which values are better where the run does not; None is what the run says, or else minimising.
    """
    history, known = run, None
    if isinstance(run, Optimizer):
        history, known = run.history, handle(run).definition.maximize
    elif isinstance(run, Mapping) and "history" in run:
        history, known = run["history"], run.get("maximize")
    direction = bool(known) if maximize is None else maximize
    if isinstance(history, Observations):
        values, gradients = np.array(history.y), np.array(history.grad)
    else:
        values = as_floats(history, "run")
        if values.ndim != 1:
            raise ValueError(f"a run has one value an evaluation, shape (n,); got shape {values.shape}")
        gradients = np.full((len(values), 1), np.nan)
    values[~np.isfinite(values)] = np.nan
    return Trajectory(values, gradients, direction)


def best_so_far(values: Array, *, maximize: bool) -> Array:
    """The best of the values up to each evaluation along the last axis, `... x n -> ... x n`; NaN is not seen.

    >>> best_so_far(np.array([np.nan, 3.0, 4.0, np.nan, 1.0]), maximize=False)
    array([nan,  3.,  3.,  3.,  1.])
    """
    better = np.fmax if maximize else np.fmin
    return np.asarray(better.accumulate(values, axis=-1))
