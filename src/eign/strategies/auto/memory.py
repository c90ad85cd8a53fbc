"""What `auto` remembers between proposals, and what it learns from what was told."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, final

import numpy as np

from eign.arrays import Array
from eign.data import Observations
from eign.models.selection import Selection
from eign.space import SAME_POINT, contains, nearest

# Expected gains in standard deviations of what the model sees. Global steps look for more than the first, so that they
# stay away from an optimum that was reached; if they expect less, there is room for other things: a local step that
# gains more than the second; then restarts, and smaller local steps.
SMALL: Final = 1e-3
WORTH_A_STEP: Final = 1e-4
# A new ratio of what came to what was expected counts one fifth; a kind of step is never ruled out.
_MEMORY: Final = 0.8
_TRUST: Final = (0.05, 1.5)
# A model is wrong if trust in both kinds of steps is below these: near and far it promises what does not come. Far
# alone says little, as of most functions with many optima global steps bring less than a tenth of what they promise.
_DISTRUST: Final = {"global": 0.1, "local": 0.5}
_FAILED: Final = 0.1
_AS_EXPECTED: Final = 0.7
FIRST_RADIUS: Final = 0.2
# Of what is stored: to be counted up where fields change.
VERSION: Final = 2
_RADIUS: Final = (1e-6, 0.5)
RADIUS_AFTER_JUMP: Final = 0.1
# With a model that gains nothing, in times d + 3 evaluations: half of it is left after a climb that led above the best
# point, one and a half times after one that did not.
PATIENCE: Final = (0.5, 3.0)
_PATIENCE_AFTER: Final = {True: 0.5, False: 1.5}


@final
@dataclass(frozen=True)
class Expectation:
    """A point that was proposed, and by how much it was to be better than the best value, in the model's units."""

    x: list[float]
    reason: str
    gain: float


@final
@dataclass(frozen=True)
class Descent:
    """L-BFGS-B on the function: where it began, the length of its first step, and why: `local` or `restart`."""

    start: list[float]
    step: float
    reason: str = "local"


@final
@dataclass(frozen=True)
class Climb:
    """Steps on the model from a start of their own: the trust region, the last step's gain, and the points so far."""

    start: list[float]
    radius: float
    gain: float = 0.0
    path: tuple[list[float], ...] = ()


@final
@dataclass(frozen=True)
class Memory:
    """What `auto` carries from one proposal to the next, plain data but for the fit.

    Attributes:
        fit: The model's choices.
        trust: In "global" and "local" steps: how much of the gain that was expected came true.
        radius: Of the trust region.
        spent: Points proposed for each reason.
        open: What was proposed and not told yet.
        descent: The descent on the function that is under way; None if there is none.
        climb: The climb that is under way; None if there is none.
        rested: Observations when the last descent or climb ended, or the design.
        patience: With a model that gains nothing, in times d + 3 evaluations.
        optima: Points where a search ended, `k x d`.
        logs: Whether the model and all points here are in logarithms, see `Coordinates`.
    """

    fit: Selection | None = None
    trust: Mapping[str, float] = field(default_factory=lambda: {"global": 1.0, "local": 1.0})
    radius: float = FIRST_RADIUS
    spent: Mapping[str, int] = field(default_factory=dict)
    open: tuple[Expectation, ...] = ()
    descent: Descent | None = None
    climb: Climb | None = None
    rested: int = 0
    patience: float = PATIENCE[1]
    optima: tuple[list[float], ...] = ()
    logs: bool = False

    def is_optimum(self, x: Array) -> bool:
        """Whether a search ended at this point."""
        return contains(self.known_optima(len(x)), x)

    def known_optima(self, dim: int) -> Array:
        """All of them, `k x d`."""
        return np.array(self.optima, dtype=np.float64).reshape(-1, dim)

    def with_optima(self, points: Iterable[Array]) -> "Memory":
        """With further points where a search ended, or began and need not begin again."""
        optima = list(self.optima)
        for x in points:
            if not contains(np.array(optima, dtype=np.float64).reshape(-1, len(x)), x):
                optima.append(x.tolist())
        return replace(self, optima=tuple(optima))

    @property
    def is_new(self) -> bool:
        """Whether no point has been proposed by the model yet."""
        return self.rested == 0

    @property
    def is_wrong(self) -> bool:
        """Whether the model promises what does not come, near and far."""
        return all(self.trust[kind] < limit for kind, limit in _DISTRUST.items())

    def after_climb(self, *, won: bool) -> float:
        """The patience after a climb that led above the best point, or did not."""
        return float(np.clip(self.patience * _PATIENCE_AFTER[won], *PATIENCE))

    def in_others(self, convert: Callable[[Array], Array]) -> "Memory":
        """The memory in the other coordinates, when no climb or descent is under way; radii are as good there."""

        def moved(x: list[float]) -> list[float]:
            return list(convert(np.array(x)[None])[0].tolist())

        return replace(
            self,
            logs=not self.logs,
            fit=None,
            open=tuple(replace(one, x=moved(one.x)) for one in self.open),
            optima=tuple(moved(x) for x in self.optima),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal object."""
        return {
            "version": VERSION,
            "fit": None if self.fit is None else self.fit.to_json(),
            "trust": dict(self.trust),
            "radius": self.radius,
            "spent": dict(self.spent),
            "open": [[one.x, one.reason, one.gain] for one in self.open],
            "descent": None if self.descent is None else [self.descent.start, self.descent.step, self.descent.reason],
            "climb": None if self.climb is None else asdict(self.climb) | {"path": list(self.climb.path)},
            "rested": self.rested,
            "patience": self.patience,
            "optima": list(self.optima),
            "logs": self.logs,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Memory":
        """What `to_json` described; nothing is the memory before the first proposal, and so is that of another version.

        A memory saves time and says what was tried; with the data alone the method goes on, as after points told.
        """
        if stored.get("version") != VERSION:
            return cls()
        fit = None if stored["fit"] is None else Selection.from_json(stored["fit"])
        climb = stored["climb"]
        read = {
            "fit": fit,
            "open": tuple(Expectation(*one) for one in stored["open"]),
            "descent": None if stored["descent"] is None else Descent(*stored["descent"]),
            "climb": None if climb is None else Climb(**{**climb, "path": tuple(climb["path"])}),
            "optima": tuple(stored["optima"]),
        }
        return cls(**{**{name: part for name, part in stored.items() if name != "version"}, **read})


def settled(memory: Memory, data: Observations, pending: Array) -> Memory:
    """The memory after what was told: how far expectations came true, and how far steps may go.

    Of points that were neither told nor are pending nothing is expected: they were proposed and given up.
    """
    left: list[Expectation] = []
    trust, radius, optima = dict(memory.trust), memory.radius, list(memory.optima)
    for one in memory.open:
        row, distance = nearest(data.x, np.array(one.x))
        if distance > SAME_POINT:
            left += [one] if contains(pending, np.array(one.x)) else []
            continue
        if one.reason not in trust or memory.fit is None:
            continue
        before = data[:row]
        best = float(before.y[before.has_y].max()) if before.has_y.any() else -np.inf
        output = memory.fit.output
        came = -np.inf
        if data.has_y[row]:
            came = float(output.values(data.y[row : row + 1])[0] - output.values(np.array([best]))[0])
        ratio = came / max(one.gain, np.finfo(np.float64).tiny)
        if one.gain >= SMALL:
            mixed = _MEMORY * trust[one.reason] + (1 - _MEMORY) * np.clip(ratio, 0, 2)
            trust[one.reason] = float(np.clip(mixed, *_TRUST))
        elif one.reason == "local" and ratio < _FAILED and one.gain < WORTH_A_STEP:
            # The model does not resolve what is left.
            optima.append(before.x[np.where(before.has_y, before.y, -np.inf).argmax()].tolist())
        if one.reason == "local":
            radius = next_radius(radius, ratio)
        elif ratio > 0:
            radius = max(radius, RADIUS_AFTER_JUMP)
    return replace(memory, open=tuple(left), trust=trust, radius=radius, optima=tuple(optima))


def next_radius(radius: float, ratio: float) -> float:
    """Twice as far after a step as good as expected, a third after one that was not; `ratio` is what came of it."""
    factor = 1 / 3 if ratio < _FAILED else 2.0 if ratio > _AS_EXPECTED else 1.0
    return float(np.clip(radius * factor, *_RADIUS))
