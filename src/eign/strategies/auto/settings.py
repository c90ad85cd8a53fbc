"""Every number of `auto`, with its unit and the reason for it. Nothing here needs torch."""

from dataclasses import dataclass, field
from typing import Final, final

from eign.models.selection.settings import ModelSettings


def _model_settings() -> ModelSettings:
    return ModelSettings(growth=0.1, fewest=3, resolution=0.01, rows=600, evaluations=12, doubt=0.1)


@final
@dataclass(frozen=True)
class Settings:
    """What can be tuned.

    Attributes:
        design: Points of the initial design: a gradient is enough for a local search to begin with.
        blind_design: The same for each coordinate, where no gradient was told with the first points.
        small: Standard deviations of the values, as the model sees them, below which a global gain is not worth an
            evaluation as long as there is something else. Global steps look for more than that, so that they keep away
            from the best point.
        starts: Ascents to the largest LogEI. The model's errors are larger than what more would find.
        candidates: Points that these begin from, or restarts.
        basin: Distance in the cube within which two points are taken to lead to the same optimum.
        window: Evaluations over which the gain of a restart is compared with the gain before.
        hope: How many times is granted what gains that shrink like these add up to.
        line: Points along a coordinate at which LogEI is looked at, from the best point on: ten waves are seen.
        places: Points along a coordinate that a jump looks at; between them a local search finds the rest.
        outside: Share of a gradient, in length, that may lie outside of the directions that those of all points span.
        kept: So many of the best points, and so many of the latest, make the model of a jump, which costs d n^3.
        drawn: So many points that lie apart tell a jump enough of each coordinate; half as many, whether to go on.
        apart: Root mean square of the differences of coordinates beyond which points lie apart; of two drawn ones 0.4.
        model: Of the model. Data that have grown by a tenth are fitted again, by 12 evaluations of the posterior
            density, as the next fit goes on from there. d + 3 points are the fewest that tell kernels apart, and what
            is closer than a hundredth of the cube is a local search's. 600 rows are factored in ten milliseconds.
            Noise and logarithms gain up to 0.1 nats a number where there are none, and 0.2 where noise is a tenth of
            the spread.
    """

    design: int = 1
    blind_design: int = 3
    small: float = 1e-3
    starts: int = 8
    candidates: int = 256
    basin: float = 0.05
    window: int = 3
    hope: float = 2.0
    line: int = 33
    places: int = 129
    outside: float = 1e-3
    kept: int = 40
    drawn: int = 16
    apart: float = 0.25
    model: ModelSettings = field(default_factory=_model_settings)


SETTINGS: Final = Settings()


def are_many(dim: int) -> bool:
    """Whether there are so many dimensions that the model has no room for d gradients, and knows little of the cube.

    >>> are_many(23), are_many(25)
    (False, True)
    """
    return dim * (dim + 1) > SETTINGS.model.rows
