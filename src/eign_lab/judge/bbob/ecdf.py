"""How COCO scores: runtime distributions, pure functions of the distances to the optimum.

| name | shape | meaning |
|---|---|---|
| `distances` | runs x evaluations | smallest f - f_opt after each evaluation |
| `runtimes` | runs x targets | evaluations until a distance is at most the target; inf = never |
| `d` | | dimension: runtimes are drawn and integrated as log10(evaluations / d) |
"""

from typing import Final

import numpy as np

from eign.arrays import Array

TARGETS: Final = 10.0 ** (np.arange(10, -41, -1) / 5)
"""COCO's 51 targets, from 10^2 to 10^-8."""


def runtimes_to_targets(distances: Array, targets: Array = TARGETS) -> Array:
    """Evaluations that each run took to each target, `runs x evaluations -> runs x targets`; inf = never.

    >>> runtimes_to_targets(np.array([[50.0, 0.5, 0.5]]), np.array([100.0, 1.0, 0.1])).tolist()
    [[1.0, 2.0, inf]]
    """
    reached = np.asarray(distances)[:, None, :] <= np.asarray(targets)[:, None]
    return np.where(reached.any(axis=2), reached.argmax(axis=2) + 1.0, np.inf)


def share_reached(runtimes: Array, evaluations: Array) -> Array:
    """The share of runs and targets that are done after so many evaluations, `k -> k`: COCO's ECDF."""
    taken = np.sort(np.ravel(runtimes))
    return np.asarray(np.searchsorted(taken, evaluations, side="right") / len(taken))


def area_under(runtimes: Array, *, d: int, budget: int) -> float:
    r"""The mean share over log10(evaluations / d), from d evaluations, where COCO's axis begins, to the budget B.

    .. math:: \frac{1}{\log(B / d)} \int_{\log d}^{\log B} \text{share}(t)\, d\log t

    A target that is reached after t evaluations has the part from t to B.

    >>> round(area_under(np.array([[2.0, 20.0, np.inf]]), d=2, budget=200), 12)
    0.5
    """
    part = np.log(budget / np.clip(runtimes, d, budget)) / np.log(budget / d)
    return float(part.mean())
