"""What the result of a run says of the constraints."""

from typing import Any

import numpy as np

from eign.study.handle import handle
from eign.study.optimality import Multipliers, multipliers
from eign.study.optimizer import Optimizer


def constraint_fields(optimizer: Optimizer) -> dict[str, Any]:
    """Further fields of a result, none without constraints; NaN where nothing is known.

    `feasible` says of each evaluation whether it was; all others are of the best point.
    """
    if not handle(optimizer).is_constrained:
        return {}
    limits, dim = optimizer.constraints, optimizer.box.dim
    values, gradients, worst = np.full(len(limits), np.nan), np.full((len(limits), dim), np.nan), np.nan
    found = Multipliers(np.full(len(limits), np.nan), np.full(len(optimizer.linear), np.nan))
    if optimizer.history.has_y.any():
        best, found = optimizer.best, multipliers(handle(optimizer))
        values, gradients, worst = best.constraints, best.constraint_grads, best.violation
    return {
        "constr": values,
        "constr_jac": gradients,
        "constr_names": limits.names,
        "constr_violation": worst,
        "maxcv": worst,
        "multipliers": found.constraints,
        "linear_multipliers": found.linear,
        "feasible": handle(optimizer).is_feasible(),
    }


def least_violation(optimizer: Optimizer) -> str:
    """In words, how far the best point is from being feasible, by the constraint that is violated most."""
    study = handle(optimizer)
    names, violations, scales = study.violations()
    row = study.best_row()
    if np.isnan(violations[row]).any():
        return "at no point are the values of all constraints known"
    which = int(np.argmax(violations[row] / scales))
    return f"the least violated point is {violations[row, which]:.3g} outside {names[which]!r}"
