"""Every number of `auto`, with its unit and the reason for it."""

from dataclasses import dataclass
from typing import Final, final

from eign.models.selection import ModelSettings


@final
@dataclass(frozen=True)
class Settings:
    """What can be tuned; gains are in standard deviations of what the model sees.

    Attributes:
        design: Points of the initial design: the better of two, and a local search begins.
        blind_design: Points for each coordinate where no gradient was told with the first of them.
        small: A gain that is not worth an evaluation elsewhere. Global steps look for more, so that they keep away from
            the optimum that was reached.
        memory: Weight of what was known of how far a source keeps its promises, when another was kept or not.
        starts: Searches for the largest LogEI: the model's errors are larger than what more would find.
        candidates: Points that they begin from.
        basin: Distance in the cube within which two points are taken to lead to the same optimum.
        window: Evaluations over which the gain of a restart is compared with the gain before.
        hope: How many times what a shrinking gain would add up to is granted.
        radius: First step of a local search in the cube.
        model: Of the model's choice. A refit takes 12 evaluations, as the next goes on from there; 600 rows are
            factored in ten milliseconds. Noise and logarithms gain up to 0.1 nats a number where there are none, and
            more than 0.2 where noise is a tenth of the spread.
    """

    design: int = 2
    blind_design: int = 3
    small: float = 1e-3
    memory: float = 0.6
    starts: int = 8
    candidates: int = 256
    basin: float = 0.1
    window: int = 3
    hope: float = 2.0
    radius: float = 0.2
    model: ModelSettings = ModelSettings(growth=0.1, fewest=3, resolution=0.01, rows=600, evaluations=12, doubt=0.1)


SETTINGS: Final = Settings()
