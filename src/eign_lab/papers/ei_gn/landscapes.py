"""Where acquisitions are high on the paper's one-dimensional mixture: the first figure, and the first claim.

The data are ten scrambled Sobol points that do not show the narrow peak: none within three of its widths. Whether a
landscape looks like the paper's depends on the ten points, so that the claim is judged on many designs; the figure
shows the first of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from eign.arrays import Array
from eign.plot import slice as draw_slice
from eign.plot.regions import high_regions
from eign.problems import get
from eign.study import Optimizer
from eign_lab.papers.ei_gn.judgements import Judgement
from eign_lab.statistics import Verdict, combined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM: Final = "mixture-1"
METHODS: Final = {"EI": "ei", "EI-GN": "ei-gn"}
POINTS, DESIGNS = 10, 12
NARROW_PEAK: Final = 0.85
CLEARANCE: Final = 0.03

HIGH: Final = (0.25, 0.5, 0.75)
"""A region is high above one of these shares of the range of the acquisition. The paper does not say which, and the
number of EI-GN's regions depends on it: in most designs several at a quarter and one at a half. All are asked."""

SHADED: Final = 0.5
"""Of these shares the one in the figure."""

NEARLY_ZERO: Final = 0.01
"""Of the maximum."""

MOST: Final = 0.75
"""Of the domain, and of the designs."""

BESIDE: Final = 0.1
"""As near as this to the incumbent, an acquisition sits at it."""


@final
@dataclass(frozen=True, slots=True)
class Landscape:
    """One acquisition on one design.

    Attributes:
        nearly_zero: The share of the domain where it is at most `NEARLY_ZERO` of its maximum.
        regions: The number of separate high regions, for each share in `HIGH`.
        distance: From its maximum to the incumbent.
    """

    nearly_zero: float
    regions: tuple[int, ...]
    distance: float


@cache
def designs(count: int = DESIGNS) -> tuple[int, ...]:
    """The first seeds whose design does not show the narrow peak."""
    return tuple(seed for seed, _ in zip(_blind_seeds(), range(count), strict=False))


def _blind_seeds() -> Iterator[int]:
    seed = 0
    while True:
        points = Optimizer(get(PROBLEM).bounds, method="sobol", seed=seed).ask(POINTS)
        if np.abs(points - NARROW_PEAK).min() > CLEARANCE:
            yield seed
        seed += 1


def optimizer(method: str, seed: int) -> Optimizer:
    """An optimizer that was told the design of the seed."""
    problem = get(PROBLEM)
    made = Optimizer(problem.bounds, method=METHODS[method], seed=seed, maximize=True, options={"n_init": POINTS})
    for point in made.ask(POINTS):
        made.tell(point, *problem(point))
    return made


def measure(method: str, seed: int, *, resolution: int = 2001) -> Landscape:
    """The landscape of a method on the design of a seed."""
    told = optimizer(method, seed)
    x = np.linspace(0.0, 1.0, resolution)
    score = told.outlook().acquisition(x[:, None])
    assert score is not None
    return Landscape(
        float(np.mean(score <= NEARLY_ZERO * score.max())),
        tuple(len(high_regions(score, share=share)) for share in HIGH),
        float(abs(x[score.argmax()] - told.best.x[0])),
    )


def judge_measured(landscapes: Mapping[str, Sequence[Landscape]]) -> Judgement:
    """The first claim: each of its three statements is true of most designs, or of few, or neither.

    What is said of high regions must be so for every share in `HIGH`; where they disagree, it is not decided.
    """
    ei, ei_gn = landscapes["EI"], landscapes["EI-GN"]
    flat, beside = [one.nearly_zero >= MOST for one in ei], [one.distance <= BESIDE for one in ei]
    several = [[one.regions[k] > 1 for one in ei_gn] for k in range(len(HIGH))]
    counts = ", ".join(f"{sum(true)} above {share:.0%}" for share, true in zip(HIGH, several, strict=True))
    numbers = (
        f"{len(ei)} designs; EI is nearly zero on {MOST:.0%} of the domain in {sum(flat)}, and largest within {BESIDE} "
        f"of the incumbent in {sum(beside)}; EI-GN has several regions in {counts} of its range"
    )
    of_regions = {_of_designs(true) for true in several}
    regions = of_regions.pop() if len(of_regions) == 1 else Verdict.OPEN
    return Judgement(combined([_of_designs(flat), _of_designs(beside), regions]), numbers)


def _of_designs(true: Sequence[bool]) -> Verdict:
    share = sum(true) / len(true)
    return Verdict.HOLDS if share >= MOST else Verdict.FAILS if share <= 1 - MOST else Verdict.OPEN


def judge_landscapes() -> Judgement:
    """The first claim on `DESIGNS` designs."""
    return judge_measured({method: [measure(method, seed) for seed in designs()] for method in METHODS})


def draw_landscapes(seed: int | None = None) -> "Figure":
    """Posterior above, acquisition below with its high regions shaded, one column for each method."""
    import matplotlib.pyplot as plt

    seed = designs()[0] if seed is None else seed
    problem = get(PROBLEM)

    def truth(x: Array) -> float:
        return problem(x)[0]

    figure, axes = plt.subplots(
        2, len(METHODS), figsize=(10.0, 5.0), layout="constrained", sharex=True, sharey="row", height_ratios=(2, 1.2)
    )
    for column, method in enumerate(METHODS):
        drawn = draw_slice(
            optimizer(method, seed), truth=truth, high=SHADED, resolution=1001, axes=list(axes[:, column])
        )
        drawn.posterior.set_title(method, loc="left")
        # The legend would cover the narrow peak where matplotlib puts it, and one is enough.
        drawn.posterior.legend(frameon=False, fontsize="small", loc=(0.39, 0.5)).set_visible(column == 0)
    axes[1, 0].autoscale(axis="y")
    for beside in axes[:, 1:].flat:
        beside.set_ylabel("")
    return figure
