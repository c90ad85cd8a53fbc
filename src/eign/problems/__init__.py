"""Problems to try an optimizer on, all to be maximised: value, gradient, bounds and known optimum.

>>> from eign import problems
>>> problem = problems.noisy(problems.shifted(problems.get("ackley-14"), seed=1), value_std=0.1, seed=2)
>>> value, gradient = problem(problem.bounds.lower)
>>> problem.name, problem.optimum, gradient.shape
('noisy(shifted(ackley-14))', 0.0, (14,))
"""

from eign.problems.problem import Measurement, Problem
from eign.problems.registry import get, names, summaries
from eign.problems.wrappers import (
    dropped_gradients,
    mirrored,
    noisy,
    rotated,
    scaled,
    shifted,
    without_gradients,
)

__all__ = [
    "Measurement",
    "Problem",
    "dropped_gradients",
    "get",
    "mirrored",
    "names",
    "noisy",
    "rotated",
    "scaled",
    "shifted",
    "summaries",
    "without_gradients",
]
