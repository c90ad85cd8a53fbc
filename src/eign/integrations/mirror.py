"""An optimizer for a study whose log is kept elsewhere: in Optuna's storage, in an Ax experiment.

The other package owns the evaluations and the pending points, and several processes may add to them. The mirror is told
all of them before each proposal, folds in what is new, and starts afresh where something it was told has changed.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, final

from eign.arrays import Array
from eign.space import Box
from eign.study import Optimizer
from eign.study.handle import handle

Numbers = tuple[float | None, ...]
"""One entry a coordinate; None where it is missing. Unlike NaN it equals itself, so that changes can be seen."""


class ReportedTrial(NamedTuple):
    """One evaluation in user units; without a value and a gradient it failed."""

    x: tuple[float, ...]
    y: float | None
    grad: Numbers
    y_var: float | None
    grad_var: Numbers
    constraints: Numbers = ()
    constraint_grads: tuple[Numbers, ...] = ()

    @classmethod
    def failed(cls, x: tuple[float, ...]) -> "ReportedTrial":
        """Nothing came of the point x."""
        missing = (None,) * len(x)
        return cls(x, None, missing, None, missing)


@final
class Mirror:
    """Follows one study and proposes points for it.

    >>> mirror = Mirror(Box([(0.0, 1.0)]), method="sobol", seed=0, maximize=False)
    >>> mirror.follow({"first": ReportedTrial.failed((0.5,))})
    >>> mirror.propose([(0.25,)], number=1).shape
    (1,)
    """

    def __init__(
        self,
        box: Box,
        *,
        method: str,
        seed: int,
        maximize: bool,
        options: Mapping[str, Any] | None = None,
        constraints: Sequence[str] = (),
    ) -> None:
        """Mirror an empty study; arguments as for `eign.Optimizer`, with names of constraints that are at most 0."""
        self._box = box
        self._settings: dict[str, Any] = {"method": method, "seed": seed, "maximize": maximize, "options": options}
        self._constraints = tuple(constraints)
        self._told: dict[Hashable, ReportedTrial] = {}
        self._optimizer = self._fresh()

    def matches(
        self,
        box: Box,
        *,
        method: str,
        seed: int,
        maximize: bool,
        options: Mapping[str, Any] | None,
        constraints: Sequence[str] = (),
    ) -> bool:
        """Whether it was made with these arguments."""
        given = {"method": method, "seed": seed, "maximize": maximize, "options": options}
        return self._box == box and self._settings == given and self._constraints == tuple(constraints)

    def follow(self, evaluations: Mapping[Hashable, ReportedTrial]) -> None:
        """Take over all evaluations of the study, each under a key of its own."""
        if any(evaluations.get(key) != told for key, told in self._told.items()):
            self._told, self._optimizer = {}, self._fresh()
        new = {key: evaluation for key, evaluation in evaluations.items() if key not in self._told}
        if new:
            *columns, values, gradients = (list(column) for column in zip(*new.values(), strict=True))
            self._optimizer.tell(*columns, **self._told_constraints(values, gradients))
            self._told |= new

    def _told_constraints(self, values: list[Numbers], gradients: list[tuple[Numbers, ...]]) -> dict[str, Any]:
        """What is told of constraints, None where a trial says nothing."""
        count, missing = len(self._constraints), (None,) * self._box.dim
        if not count:
            return {}
        return {
            "constraints": [given or (None,) * count for given in values],
            "constraint_grads": [given or (missing,) * count for given in gradients],
        }

    def propose(self, pending: Sequence[Sequence[float]], *, number: int) -> Array:
        """The next point (d,) of the study, its `number`-th, while the `pending` ones (m, d) are evaluated."""
        return handle(self._optimizer).propose(pending, number=number).x

    def withdraw(self) -> None:
        """Undo the last proposal, right after it: it will not be evaluated."""
        handle(self._optimizer).withdraw()

    def _fresh(self) -> Optimizer:
        # Passive: proposals here are the other package's trials, and none of them is spent on a check.
        limits = dict.fromkeys(self._constraints, (None, 0.0))
        return Optimizer(self._box, check_gradients="passive", constraints=limits or None, **self._settings)
