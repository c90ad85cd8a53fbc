"""Where acquisitions are high on the paper's one-dimensional mixture: the first figure, and the first claim.

The data are ten scrambled Sobol points that do not show the narrow peak: none within three of its widths. Whether a
landscape looks like the paper's depends on the ten points, so that the claim is judged on many designs; the figure
shows the first of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from eign.arrays import Array
from eign.campaign.judgements import Judgement
from eign.campaign.statistics import Verdict, combined
from eign.plot import slice as draw_slice
from eign.plot.regions import high_regions
from eign.problems import get
from eign.study import Optimizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM: Final = "mixture-1"
METHODS: Final = {"EI": "ei", "EI-GN": "ei-gn"}
POINTS, DESIGNS = 10, 12
NARROW_PEAK: Final = 0.85
CLEARANCE: Final = 0.03

HIGH: Final = 0.5
"""A region is high above this share of the range of the acquisition."""

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
        regions: The number of separate high regions.
        distance: From its maximum to the incumbent.
    """

    nearly_zero: float
    regions: int
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
        len(high_regions(score, share=HIGH)),
        float(abs(x[score.argmax()] - told.best.x[0])),
    )


def judge(landscapes: dict[str, Sequence[Landscape]]) -> Judgement:
    """The first claim: each of its three statements must be true of most designs, and of more than few to be open."""
    statements: dict[str, tuple[str, Callable[[Landscape], bool]]] = {
        f"EI is nearly zero on {MOST:.0%} of the domain": ("EI", lambda one: one.nearly_zero >= MOST),
        f"EI is largest within {BESIDE} of the incumbent": ("EI", lambda one: one.distance <= BESIDE),
        "EI-GN has several high regions": ("EI-GN", lambda one: one.regions > 1),
    }
    numbers, verdicts = [], []
    for text, (method, is_true) in statements.items():
        true = sum(is_true(one) for one in landscapes[method])
        share = true / len(landscapes[method])
        numbers.append(f"{text}: {true} of {len(landscapes[method])} designs")
        verdicts.append(Verdict.HOLDS if share >= MOST else Verdict.FAILS if share <= 1 - MOST else Verdict.OPEN)
    return Judgement(combined(verdicts), "; ".join(numbers))


def judge_landscapes() -> Judgement:
    """The first claim on `DESIGNS` designs."""
    return judge({method: [measure(method, seed) for seed in designs()] for method in METHODS})


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
        drawn = draw_slice(optimizer(method, seed), truth=truth, high=HIGH, resolution=1001, axes=list(axes[:, column]))
        drawn.posterior.set_title(method, loc="left")
        # The legend would cover the narrow peak where matplotlib puts it, and one is enough.
        drawn.posterior.legend(frameon=False, fontsize="small", loc=(0.47, 0.5)).set_visible(column == 0)
    axes[1, 0].autoscale(axis="y")
    for beside in axes[:, 1:].flat:
        beside.set_ylabel("")
    return figure
