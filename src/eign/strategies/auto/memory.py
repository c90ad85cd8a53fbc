"""What `auto` remembers between proposals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.models.selection import Selection
from eign.space import SAME_POINT, contains, nearest
from eign.strategies.local_search import LocalSearch

VERSION: Final = 6
"""Of what is stored: to be counted up where fields change."""

_LONGEST: Final = 30.0
"""A guard: of more broken promises in a row others would have more evaluations than there are numbers for."""


class Promise(NamedTuple):
    """A point that was proposed, why, the best value before, and the gain over it that was expected."""

    reason: str
    x: list[float]
    best: float
    gain: float


@final
@dataclass(frozen=True)
class Memory:
    """What `auto` carries from one proposal to the next, plain data but for the fit and the search.

    Attributes:
        fit: The model's choices.
        rank: Of how many directions the model is; 0 is of all coordinates.
        search: The local search that is under way; None if there is none.
        is_restart: Whether the search has not come to the best point yet.
        optima: Points where a search ended, or began and need not begin again, `k x d`.
        idle: Global steps that were not worth it, since the last search began.
        doubt: For each reason, how many of its promises in a row were broken, see `settled`.
        rest: For each reason, the evaluations that others have first.
        open: Promises that are neither kept nor broken yet.
    """

    fit: Selection | None = None
    rank: int = 0
    search: LocalSearch | None = None
    is_restart: bool = False
    optima: tuple[list[float], ...] = ()
    idle: int = 0
    doubt: Mapping[str, float] = field(default_factory=dict)
    rest: Mapping[str, float] = field(default_factory=dict)
    open: tuple[Promise, ...] = ()

    def is_resting(self, reason: str) -> bool:
        """Whether others come first, as its last promises were broken."""
        return self.rest.get(reason, 0.0) >= 1.0

    def known_optima(self, dim: int) -> Array:
        """All of them, `k x d`."""
        return np.array(self.optima, dtype=np.float64).reshape(-1, dim)

    def forgiving(self, reason: str) -> "Memory":
        """Without doubt about a source, whose model learns anew."""
        return replace(self, doubt={**self.doubt, reason: 0.0}, rest={**self.rest, reason: 0.0})

    def after_search(self, points: Iterable[Array]) -> "Memory":
        """After the search, which led to these points."""
        optima = list(self.optima)
        for x in points:
            if not contains(np.array(optima, dtype=np.float64).reshape(-1, len(x)), x):
                optima.append(x.tolist())
        return replace(self, search=None, optima=tuple(optima))

    def settled(self, data: Observations, pending: Array) -> "Memory":
        r"""After what was told: how far promises were kept.

        Of a promise that was kept to the share k, doubt w is :math:`(1 - k)(w + 1)` afterwards, which counts those in a
        row that were broken. Then others have the next :math:`2^w - 1` evaluations: a source that always fails takes
        the logarithm of the budget, however much it promises, and one that keeps more than half never rests.

        Of points that were neither told nor are pending nothing is expected: they were proposed and given up.
        """
        left: list[Promise] = []
        doubt, rest = dict(self.doubt), dict(self.rest)
        for one in self.open:
            x = np.array(one.x)
            row, distance = nearest(data.x, x)
            if distance > SAME_POINT:
                left += [one] if contains(pending, x) else []
                continue
            came = float(data.y[row]) - one.best if data.has_y[row] else 0.0
            kept = min(max(came / one.gain, 0.0), 1.0) if one.gain > 0.0 else 0.0
            doubt[one.reason] = (1.0 - float(kept)) * (doubt.get(one.reason, 0.0) + 1.0)
            rest = {reason: count - 1.0 for reason, count in rest.items() if count > 1.0}
            rest[one.reason] = 2.0 ** min(doubt[one.reason], _LONGEST) - 1.0
        return replace(self, doubt=doubt, rest=rest, open=tuple(left))

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal object."""
        return {
            "version": VERSION,
            "rank": self.rank,
            "fit": None if self.fit is None else self.fit.to_json(),
            "search": None if self.search is None else self.search.to_json(),
            "is_restart": self.is_restart,
            "optima": list(self.optima),
            "idle": self.idle,
            "doubt": dict(self.doubt),
            "rest": dict(self.rest),
            "open": [list(one) for one in self.open],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Memory":
        """What `to_json` described; nothing is the memory before the first proposal, and so is that of another version.

        A memory saves time and says what was tried; with the data alone the method goes on, as after points told.
        """
        if stored.get("version") != VERSION:
            return cls()
        return cls(
            fit=None if stored["fit"] is None else Selection.from_json(stored["fit"]),
            search=None if stored["search"] is None else LocalSearch.from_json(stored["search"]),
            rank=stored["rank"],
            is_restart=stored["is_restart"],
            optima=tuple(stored["optima"]),
            idle=stored["idle"],
            doubt=stored["doubt"],
            rest=stored["rest"],
            open=tuple(Promise(*one) for one in stored["open"]),
        )
