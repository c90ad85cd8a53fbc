"""How near the best point is to an optimum, from the gradients that were told there.

Without constraints that is the projected gradient. With constraints it is the residual of the conditions of Karush,
Kuhn and Tucker: what the multipliers of active limits leave of the gradient, and what they weigh limits with that are
not quite reached.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from eign.arrays import Array, Mask
from eign.data import constraint_gradients, constraint_values
from eign.formulas.optimality_numpy import projected_gradient

if TYPE_CHECKING:
    from eign.formulas.kkt_numpy import Optimality
    from eign.study.study import Study

# A limit may be active within this share of its constraint's scale: what it is short of counts as complementarity.
_ACTIVE: Final = 1e-3


class Multipliers(NamedTuple):
    """Lagrange multipliers at the best point, in the user's units and with the user's sign.

    The gradient of the objective plus the sum of multiplier times gradient over all constraints is 0 at an optimum
    inside the bounds, and d f / d limit is minus the multiplier.

    Attributes:
        constraints: Of the black-box constraints `m`; NaN where no gradient says.
        linear: Of the linear ones `k`.
    """

    constraints: Array
    linear: Array


def steepness(study: "Study") -> float:
    """How steep the way up is that nothing bars at the best point, in the unit cube; NaN if gradients are missing.

    With constraints the largest complementarity, in the units of f, is a bound from below.
    """
    row, data = study.best_row(), study.data
    if not study.is_constrained:
        return float(np.linalg.norm(projected_gradient(data.x[row], data.grad[row])))
    found = optimality(study)
    return np.nan if found is None else max(found.residual, found.complementarity)


def multipliers(study: "Study") -> Multipliers:
    """Those of the best point."""
    limits, linear, row = study.definition.constraints, study.definition.linear, study.best_row()
    found = optimality(study)
    if found is None:
        return Multipliers(np.full(len(limits), np.nan), np.full(len(linear), np.nan))
    # Inside, f is maximised and its gradient is the sum of multiplier times gradient.
    sign = -1.0 if study.definition.maximize else 1.0
    known = np.isfinite(constraint_gradients(study.data[row])[0]).all(axis=1)
    near = _near(study, row)
    return Multipliers(np.where(known | ~near, sign * found.constraints, np.nan), sign * found.rows)


def optimality(study: "Study") -> "Optimality | None":
    """The conditions at the best point, in the unit cube; None if the gradient of f, or a constraint, is not known."""
    from eign.formulas.kkt_numpy import Limited, kkt  # loads SciPy's optimizers

    row, data, definition = study.best_row(), study.data, study.definition
    u, gradient = data.x[row], data.grad[row]
    values = constraint_values(data)
    if not np.isfinite(gradient).all() or not np.isfinite(values[row]).all():
        return None
    limits, linear = definition.constraints, definition.linear
    constraints = Limited(
        values[row], constraint_gradients(data[row])[0], limits.lower, limits.upper, limits.scales(values)
    )
    rows = None
    if len(linear):
        A, lower, upper = study.box.linear_to_unit(linear.A, linear.lower, linear.upper)
        rows = Limited(A @ u, A, lower, upper, linear.scales(study.box.lower, study.box.upper))
    return kkt(u, gradient, constraints, rows, active=_ACTIVE)


def _near(study: "Study", row: int) -> Mask:
    """Which constraints are within the share of a limit that may be active, or beyond `m`."""
    limits, values = study.definition.constraints, constraint_values(study.data)
    slack = _ACTIVE * limits.scales(values)
    return np.asarray((values[row] <= limits.lower + slack) | (values[row] >= limits.upper - slack))
