"""What the constrained `auto` remembers between proposals."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, final

import numpy as np

from eign.arrays import Array

VERSION: Final = 2
FIRST_RADIUS: Final = 0.2


@final
@dataclass(frozen=True)
class Run:
    """Steps from a start of their own to a local optimum.

    Attributes:
        start: The first point, `d`.
        reason: Why it was begun: `local`, `global` or `restart`.
        radius: Of the trust region.
        gain: What the last step was to gain, in the units of the models.
        path: The points so far.
        misses: Steps one after the other that gained next to nothing.
        step: First step of SLSQP on the functions themselves, once the models are no use; 0 before that.
    """

    start: list[float]
    reason: str
    radius: float = FIRST_RADIUS
    gain: float = 0.0
    path: tuple[list[float], ...] = ()
    misses: int = 0
    step: float = 0.0


@final
@dataclass(frozen=True)
class Memory:
    """Plain data throughout.

    Attributes:
        fits: What was chosen for each output, f first.
        run: The run that is under way.
        optima: Where runs ended, `k x d`.
        penalty: Of violations, in the units of the models.
        spent: Runs begun for each reason.
    """

    fits: tuple[Any, ...] = ()
    run: Run | None = None
    optima: tuple[list[float], ...] = ()
    penalty: float = 10.0
    spent: Mapping[str, int] = field(default_factory=dict)

    def known_optima(self, dim: int) -> Array:
        """All of them, `k x d`."""
        return np.array(self.optima, dtype=np.float64).reshape(-1, dim)

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal object."""
        run = None if self.run is None else asdict(self.run) | {"path": list(self.run.path)}
        return {
            "version": VERSION,
            "fits": list(self.fits),
            "run": run,
            "optima": list(self.optima),
            "penalty": self.penalty,
            "spent": dict(self.spent),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Memory":
        """What `to_json` described; nothing, or that of another version, is the memory before the first proposal."""
        if stored.get("version") != VERSION or "fits" not in stored:
            return cls()
        run = stored["run"]
        return cls(
            fits=tuple(stored["fits"]),
            run=None if run is None else Run(**{**run, "path": tuple(run["path"])}),
            optima=tuple(stored["optima"]),
            penalty=stored["penalty"],
            spent=stored["spent"],
        )
