"""What a user tells of constraints, by number or by name, as observations of the points told."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eign.arrays import Array, as_floats
from eign.checks import not_among
from eign.constraints import Limits
from eign.data import Observations
from eign.space import Box


def with_told_constraints(
    told: Observations,
    box: Box,
    limits: Limits,
    *,
    values: Any = None,
    gradients: Any = None,
    variances: Any = None,
    gradient_variances: Any = None,
    single: bool = True,
) -> Observations:
    """The observations with their constraints.

    Args:
        told: Of the objective, n points in user units.
        box: The bounds.
        limits: Of the m constraints.
        values: (m,) for one point, (n, m) for many, or a dict by name of a number or (n,); NaN or None is missing.
        gradients: (m, d) or (n, m, d), or a dict by name of (d,), (n, d) or a dict by coordinate.
        variances: Of the noise on the values, as those, or one number for all.
        gradient_variances: Of the noise on the gradients, as those, or one number for all.
        single: Whether this is one point without a leading axis.

    Raises:
        ValueError: a shape or a name is wrong.
    """
    if all(part is None for part in (values, gradients, variances, gradient_variances)):
        return told
    if not len(limits):
        raise ValueError(
            "this study has no constraints; give their limits when it begins: constraints={'stress': (None, 250.0)}"
        )
    parts = [
        _by_constraint(values, limits, "constraints", single=single),
        _by_constraint(gradients, limits, "constraint_grads", single=single),
        _by_constraint(variances, limits, "constraint_vars", single=single),
        _by_constraint(gradient_variances, limits, "constraint_grad_vars", single=single),
    ]
    slopes = [[by_coordinate(each, box, "constraint_grads") for each in parts[1]]]
    slopes += [[by_coordinate(each, box, "constraint_grad_vars") for each in parts[3]]]
    x = told.x[0] if single else told.x
    outputs = []
    for name, y, grad, y_var, grad_var in zip(limits.names, parts[0], slopes[0], parts[2], slopes[1], strict=True):
        try:
            outputs.append(Observations.empty(box.dim).append(x, y, grad, y_var, grad_var))
        except (TypeError, ValueError) as error:
            raise type(error)(f"constraint {name!r}: {error}") from None
    return told.with_constraints(outputs)


def by_coordinate(values: Any, box: Box, what: str) -> Any:
    """What a dict gives by name, in the order of the coordinates; anything else as it is."""
    if not isinstance(values, Mapping):
        return values
    if not (names := box.names):
        raise ValueError(f"{what} is a dict, and this box has no names; give {box.dim} numbers, or bounds as a dict")
    if unknown := [name for name in values if name not in names]:
        raise ValueError(f"{what} has unknown names {unknown}, expected some of {list(names)}")
    return [values.get(name) for name in names]


def _by_constraint(given: Any, limits: Limits, what: str, *, single: bool) -> Sequence[Any]:
    """For each constraint what was given for it, None if nothing was."""
    count = len(limits)
    if given is None:
        return [None] * count
    if isinstance(given, Mapping):
        for name in given:
            if name not in limits.names:
                raise ValueError(not_among(f"{what}: there is no constraint", name, limits.names))
        return [given.get(name) for name in limits.names]
    if _is_number(given) and (what.endswith("vars") or count == 1):
        return [as_floats(given, what)] * count
    if single:
        rows = [given] if count == 1 and _is_one_gradient(given, what) else list(given)
        if len(rows) != count:
            expected = f"{count}, one for each of {list(limits.names)}, or a dict by name"
            raise ValueError(f"{what}: got {len(rows)}, expected {expected}; None or NaN where one is missing")
        return rows
    return _columns(given, count, what)


def _is_one_gradient(given: Any, what: str) -> bool:
    """Whether a gradient (d,) was given for the only constraint, where (1, d) is meant."""
    return "grad" in what and all(each is None or _is_number(each) for each in given)


def _is_number(given: Any) -> bool:
    return not isinstance(given, list | tuple | Mapping) and np.ndim(given) == 0


def _columns(given: Any, count: int, what: str) -> list[Array]:
    array: Array = as_floats(given, what)
    if array.ndim == 1 and count == 1:
        array = array[:, None]
    if array.ndim < 2 or array.shape[1] != count:
        expected = f"(n, {count}, d)" if "grad" in what else f"(n, {count})"
        raise ValueError(f"{what} has shape {array.shape}, expected {expected}, or a dict by name")
    return [array[:, i] for i in range(count)]
