"""The check of the user's gradients: how it is switched, when it asks for a probe and when it warns.

Everything follows from what was told, in the order it was told: a study that goes on from a file asks for the same
probes and does not warn again.
"""

from typing import Final, Literal, get_args

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.study.gradient_check.faults import Fault, GradientWarning, message
from eign.study.gradient_check.neighbours import NearPairs, judge
from eign.study.gradient_check.probe import is_probed, propose_probe

__all__ = ["PROBE", "GradientCheck", "GradientWarning", "checked_mode", "message", "new_faults", "probe_point"]

PROBE = "gradient check"
"""The reason for a point that is asked for to check the gradient."""

GradientCheck = Literal["probe", "passive", False]
"""How gradients are checked.

"probe": by neighbouring points, and if there are none by one or two points more that are asked for, four if they
    contradict the gradient.
"passive": by a model of the points that the search asks for anyway; misses more.
False: not at all.
"""

# Evaluations for each coordinate after which the passive check looks.
_LOOKS: Final = (3, 4, 5, 8, 12)


def checked_mode(mode: object) -> GradientCheck:
    """The mode, if it is one.

    Raises:
        ValueError: it is none.
    """
    for known in get_args(GradientCheck):
        if mode is known or (isinstance(mode, str) and mode == known):
            return known  # type: ignore[no-any-return]  # get_args knows nothing of what it lists
    raise ValueError(f"check_gradients={mode!r}, expected 'probe', 'passive' or False")


def probe_point(
    mode: GradientCheck,
    data: Observations,
    widths: Array,
    pending: Array,
    number: int,
    near: NearPairs | None = None,
) -> Array | None:
    """The point `d` of the unit cube to ask for instead of the method's, if the check needs one.

    Args:
        mode: How gradients are checked.
        data: All that was told.
        widths: What the cube's units are in the user's at each point told, `n x d`.
        pending: Points that were asked and not told, `m x d`. One next to a point that was told may be a probe, and
            then there is no other.
        number: Probes asked for so far.
        near: The neighbours that are known, see `judge`.
    """
    if mode != "probe" or not data.has_grad.any() or is_probed(data, pending):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return propose_probe(data, widths, np.concatenate([data.x, pending]), number, near)


def new_faults(
    mode: GradientCheck, data: Observations, widths: Array, before: int, near: NearPairs | None = None
) -> tuple[Fault, ...]:
    """What is wrong with the gradients, if the observations from row `before` on are the first to show it."""
    if mode == "probe":
        found = _by_neighbours(data, widths, near)
        return () if found and _by_neighbours(data[:before], widths[:before], near) else found
    looks = sorted({max(4, factor * data.dim) for factor in _LOOKS})
    if mode == "passive" and any(before < count <= len(data) for count in looks):
        from eign.study.gradient_check.passive import likely_fault  # needs torch

        fault = likely_fault(data, widths)
        earlier = (likely_fault(data[:count], widths[:count]) for count in looks if count <= before)
        return () if fault is None or any(known is not None for known in earlier) else (fault,)
    return ()


def _by_neighbours(data: Observations, widths: Array, near: NearPairs | None) -> tuple[Fault, ...]:
    if not data.has_grad.any():
        return ()
    with np.errstate(over="ignore", invalid="ignore"):
        return judge(data, widths, near).found
