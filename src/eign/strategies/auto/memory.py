"""What `auto` remembers between proposals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import numpy as np

from eign.arrays import Array
from eign.models.selection import Selection
from eign.space import contains
from eign.strategies.local_search import LocalSearch

VERSION: Final = 2 + 1
"""Of what is stored: to be counted up where fields change."""


@final
@dataclass(frozen=True)
class Memory:
    """What `auto` carries from one proposal to the next, plain data but for the fit.

    Attributes:
        fit: The model's choices.
        search: The local search that is under way; None if there is none.
        optima: Points where a search ended, or began and need not begin again, `k x d`.
        shared: Evaluations by reason while the model promised nothing.
        credit: By reason, how much of what its steps promised came true, the last ones most.
        open: Steps that were not told yet: reason, point, the best value before and the promised gain.
    """

    fit: Selection | None = None
    search: LocalSearch | None = None
    optima: tuple[list[float], ...] = ()
    shared: Mapping[str, int] = field(default_factory=dict)
    credit: Mapping[str, float] = field(default_factory=dict)
    open: tuple[tuple[str, list[float], float, float], ...] = ()

    def known_optima(self, dim: int) -> Array:
        """All of them, `k x d`."""
        return np.array(self.optima, dtype=np.float64).reshape(-1, dim)

    def is_optimum(self, x: Array) -> bool:
        """Whether a search ended at this point."""
        return contains(self.known_optima(len(x)), x)

    def ended(self, points: Iterable[Array]) -> "Memory":
        """After the search, which led to these points."""
        optima = list(self.optima)
        for x in points:
            if not contains(np.array(optima, dtype=np.float64).reshape(-1, len(x)), x):
                optima.append(x.tolist())
        return replace(self, search=None, optima=tuple(optima))

    def after(self, reason: str) -> "Memory":
        """After an evaluation that was shared out."""
        return replace(self, shared={**self.shared, reason: self.shared.get(reason, 0) + 1})

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal object."""
        return {
            "version": VERSION,
            "fit": None if self.fit is None else self.fit.to_json(),
            "search": None if self.search is None else self.search.to_json(),
            "optima": list(self.optima),
            "shared": dict(self.shared),
            "credit": dict(self.credit),
            "open": [list(one) for one in self.open],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Memory":
        """What `to_json` described; nothing is the memory before the first proposal, and so is that of another version.

        A memory saves time and says what was tried; with the data alone the method goes on, as after points told.
        """
        if stored.get("version") != VERSION:
            return cls()
        fit = None if stored["fit"] is None else Selection.from_json(stored["fit"])
        search = None if stored["search"] is None else LocalSearch.from_json(stored["search"])
        return cls(fit, search, tuple(stored["optima"]), stored["shared"], stored["credit"], tuple(tuple(one) for one in stored["open"]))
