"""What can be tuned about the choice of a model. Nothing here needs torch."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class ModelSettings:
    """The numbers of the choice; who asks for a model gives them.

    Attributes:
        growth: Share by which the data grow until the next refit.
        fewest: Points beyond the dimension before anything is chosen: fewer speak for everything.
        resolution: Distance in the cube within which points are neighbours: their values tell noise from structure.
        rows: Of the covariance matrix, at most: a value is one, a gradient d.
        evaluations: Of the posterior density in a fit, at most; the next one goes on from there.
        doubt: What noise and logarithms have to gain, each, in nats for each number observed.
        thinned: Whether the best of neighbours stands for the others, where nothing scatters: what a local search
            leaves behind is no sample of a stationary process, and would be taken for noise.
        doubts_slopes: Whether gradients may turn out to say nothing about f. Without them a model has no curvature
            that local steps could use.
    """

    growth: float
    fewest: int
    resolution: float
    rows: int
    evaluations: int
    doubt: float
    thinned: bool = True
    doubts_slopes: bool = True
