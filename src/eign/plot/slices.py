"""What an optimizer believes along one coordinate."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from eign.arrays import Array
from eign.plot.cuts import Cut, read_cut
from eign.plot.regions import high_regions
from eign.plot.style import BEST, DATA, MODEL, TARGET, TRUTH, faded, tidy
from eign.study import Optimizer
from eign.study.handle import handle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TANGENT: Final = 0.025
"""Half the length of a tangent, in the unit cube."""
_SHOWN: Final = 0.75
"""The share of the acquisition's values that its axis may leave out."""


class SliceAxes(NamedTuple):
    """Where a slice was drawn; no acquisition if there was no room for it, or the method has none."""

    posterior: "Axes"
    acquisition: "Axes | None"


def slice(  # noqa: A001  # used as eign.plot.slice
    optimizer: Optimizer,
    coordinate: int | str = 0,
    *,
    at: Any = None,
    truth: Callable[[Array], float] | None = None,
    high: float | None = None,
    resolution: int = 401,
    axes: "Axes | Sequence[Axes] | None" = None,
) -> SliceAxes:
    """The posterior of f along one coordinate with a band of two standard deviations, and the acquisition below.

    Observed values carry their partial derivative as a small tangent; the farther a point is from the cut, the paler
    it is. With constraints infeasible points are crosses, and what the linear ones forbid is grey. Everything is in
    user units, with the user's sign; the acquisition is always to be maximised.

    Args:
        optimizer: Of a method with a surrogate.
        coordinate: Index or name of the coordinate.
        at: The point through which the cut goes (d,), or a dict; None is the best point.
        truth: The function itself, if it is known, drawn as a dashed line.
        high: Shade where the acquisition is above this share of its range along the cut.
        resolution: Points along the cut.
        axes: One axes for the posterior, or two, the second for the acquisition; None makes a new figure.
    """
    cut, outlook = read_cut(optimizer, (coordinate,), at), optimizer.outlook()
    top, bottom = _two_axes(axes)
    grid = cut.grid(resolution)
    x = grid[:, cut.coordinates[0]]
    mean, deviation = outlook.predict(grid)
    band = (mean - 2 * deviation, mean + 2 * deviation)
    top.fill_between(x, *band, color=MODEL, alpha=0.15, linewidth=0, label="± 2 standard deviations")
    top.plot(x, mean, color=MODEL, linewidth=2, label="posterior mean")
    if truth is not None:
        top.plot(x, [truth(point) for point in grid], color=TRUTH, linestyle="--", linewidth=1.2, label="function")
    _shade_forbidden(top, optimizer, grid, x)
    _draw_observations(top, optimizer, cut)
    _frame(top, cut, y="value")
    top.legend(frameon=False, fontsize="small")
    if bottom is None:
        return SliceAxes(top, None)
    if (score := outlook.acquisition(grid)) is None:
        bottom.set_visible(False)
        return SliceAxes(top, None)
    top.set_xlabel("")
    _draw_acquisition(bottom, x, score, high)
    _frame(bottom, cut, y="acquisition")
    return SliceAxes(top, bottom)


def _shade_forbidden(axes: "Axes", optimizer: Optimizer, grid: Array, x: Array) -> None:
    """What linear constraints forbid along the cut."""
    if not len(optimizer.linear):
        return
    forbidden = np.asarray((optimizer.linear.violation(grid) > 0.0).any(axis=1), dtype=np.float64)
    for part in high_regions(forbidden, share=0.5):
        axes.axvspan(x[part.start], x[part.stop - 1], color=TRUTH, alpha=0.25, linewidth=0)


def _draw_observations(axes: "Axes", optimizer: Optimizer, cut: Cut) -> None:
    """Values as dots, paler the farther away, and tangents that are straight in the unit cube."""
    from matplotlib.collections import LineCollection

    (k,), seen = cut.coordinates, optimizer.history
    strength, slopes = cut.strengths(seen.x), cut.slopes(optimizer)
    shown = seen.has_y
    feasible = handle(optimizer).is_feasible()
    inside, outside = shown & feasible, shown & ~feasible
    axes.scatter(seen.x[inside, k], seen.y[inside], s=22, color=faded(DATA, strength[inside]), linewidths=0, zorder=4)
    if outside.any():
        crosses = faded(BEST, strength[outside])
        axes.scatter(seen.x[outside, k], seen.y[outside], s=22, marker="x", color=crosses, linewidths=1.2, zorder=4)
    known = shown & np.isfinite(slopes[:, 0])
    ends = []
    for side in (-_TANGENT, _TANGENT):
        moved = cut.moved(seen.x[known], np.full((known.sum(), 1), side))
        steps = (cut.box.to_unit(moved) - cut.box.to_unit(seen.x[known]))[:, cut.free[0]]
        ends.append(np.column_stack([moved[:, k], seen.y[known] + slopes[known, 0] * steps]))
    tangents = LineCollection(
        list(np.stack(ends, axis=1)), colors=faded(DATA, strength[known]), linewidths=1.6, zorder=3
    )
    axes.add_collection(tangents, autolim=False)
    best = optimizer.best
    axes.plot(
        best.x[k], best.y, "*", color=BEST, markersize=13, markeredgecolor="white", zorder=5, linewidth=0, label="best"
    )


def _draw_acquisition(axes: "Axes", x: Array, score: Array, high: float | None) -> None:
    axes.plot(x, score, color=TARGET, linewidth=1.8)
    if high is not None:
        for region in high_regions(score, share=high):
            axes.axvspan(x[region.start], x[region.stop - 1], color=TARGET, alpha=0.2, linewidth=0)
    highest, upper = int(np.nanargmax(score)), float(np.nanquantile(score, _SHOWN))
    # A logarithm falls without end where nothing is expected, and would flatten the peaks.
    lowest = max(float(score.min()), upper - 2.0 * (score[highest] - upper))
    if score[highest] > lowest:
        axes.set_ylim(lowest - 0.05 * (score[highest] - lowest), score[highest] + 0.1 * (score[highest] - lowest))
    axes.plot(x[highest], score[highest], "v", color=TARGET, markersize=7, clip_on=False)


def _frame(axes: "Axes", cut: Cut, *, y: str) -> None:
    (k,) = cut.coordinates
    if cut.box.log[k]:
        axes.set_xscale("log")
    axes.set_xlim(cut.box.lower[k], cut.box.upper[k])
    tidy(axes, x=cut.labels[0], y=y)


def _two_axes(axes: "Axes | Sequence[Axes] | None") -> "tuple[Axes, Axes | None]":
    import matplotlib.pyplot as plt

    if axes is None:
        _, (top, bottom) = plt.subplots(
            2, 1, figsize=(6.4, 5.0), layout="constrained", sharex=True, height_ratios=(3, 1.2)
        )
        return top, bottom
    if isinstance(axes, Sequence | np.ndarray):
        top, bottom = axes
        return top, bottom
    return axes, None
