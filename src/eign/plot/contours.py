"""What an optimizer believes over two coordinates."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eign.arrays import Array
from eign.plot.cuts import Cut, read_cut
from eign.plot.limits import draw_limits
from eign.plot.style import BEST, DATA, MAP, TARGET, faded, new_axes
from eign.study import Optimizer
from eign.study.handle import handle
from eign.study.outlook import Outlook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ARROW: Final = 0.09
"""The length of the arrow of the steepest gradient, in the unit cube."""

_HIGH: Final = (0.8, 0.95, 0.99)
"""The lines of the acquisition, as shares of the picture below them: the same for an acquisition and its logarithm."""


def contour(
    optimizer: Optimizer,
    coordinates: tuple[int | str, int | str] = (0, 1),
    *,
    at: Any = None,
    acquisition: bool = False,
    arrows: bool = True,
    resolution: int = 81,
    axes: "Axes | None" = None,
) -> "Axes":
    """The posterior mean of f over two coordinates, the points observed and their gradients as arrows.

    Brighter is better, whether f is minimised or maximised. Arrows point uphill with respect to the unit cube, which is
    what the picture shows; their lengths grow with the root of the slope. The farther a point is from the cut, the
    paler it is. The star is the best point. With constraints infeasible points are crosses, what linear constraints
    forbid is hatched, and dotted lines are where the surrogates of the other constraints reach their limits.

    Args:
        optimizer: Of a method with a surrogate.
        coordinates: Indices or names of the two coordinates.
        at: The point through which the cut goes (d,), or a dict; None is the best point.
        acquisition: Add lines around the 20, 5 and 1 per cent of the picture where the acquisition is highest.
        arrows: Whether gradients are drawn.
        resolution: Points along either side.
        axes: Where to draw; None makes a new figure.
    """
    cut, outlook = read_cut(optimizer, coordinates, at), optimizer.outlook()
    axes = new_axes(width=6.0, height=4.8) if axes is None else axes
    i, j = cut.coordinates
    points = cut.grid(resolution)
    x, y = points[:resolution, i], points[::resolution, j]
    mean = outlook.predict(points).mean.reshape(resolution, resolution)
    filled = axes.contourf(x, y, mean, levels=24, cmap=MAP if handle(optimizer).definition.maximize else f"{MAP}_r")
    axes.figure.colorbar(filled, ax=axes, label="posterior mean")
    if acquisition:
        _draw_high_lines(axes, outlook, x, y, points)
    if arrows:
        _draw_arrows(axes, optimizer, cut)
    draw_limits(axes, optimizer, outlook, points, (x, y))
    seen, best, feasible = optimizer.history, optimizer.best, handle(optimizer).is_feasible()
    strength = cut.strengths(seen.x)
    dots = faded(DATA, strength[feasible]), faded("white", strength[feasible])
    inside, outside = seen.x[feasible], seen.x[~feasible]
    axes.scatter(inside[:, i], inside[:, j], s=26, color=dots[0], edgecolors=dots[1], linewidths=0.8, zorder=4)
    if len(outside):
        axes.scatter(outside[:, i], outside[:, j], s=26, marker="x", color=faded(BEST, strength[~feasible]), zorder=4)
    axes.plot(best.x[i], best.x[j], "*", color=BEST, markersize=16, markeredgecolor="white", zorder=5)
    _frame(axes, cut)
    return axes


def _draw_high_lines(axes: "Axes", outlook: Outlook, x: Array, y: Array, points: Array) -> None:
    score = outlook.acquisition(points)
    if score is None or len(levels := np.unique(np.quantile(score, _HIGH))) < len(_HIGH):
        return
    heights = score.reshape(len(y), len(x))
    axes.contour(x, y, heights, levels=levels, colors=TARGET, linewidths=(1.0, 1.6, 2.4), linestyles="solid")


def _draw_arrows(axes: "Axes", optimizer: Optimizer, cut: Cut) -> None:
    slopes, x = cut.slopes(optimizer), optimizer.history.x
    length = np.linalg.norm(slopes, axis=1)
    known = np.isfinite(length) & (length > 0)
    if not known.any():
        return
    steepest = float(length[known].max())
    steps = _ARROW * slopes / np.sqrt(length * steepest)[:, None]
    ends, strength = cut.moved(x[known], steps[known]), cut.strengths(x[known])
    for start, end, alpha in zip(x[known], ends, strength, strict=True):
        style = {"arrowstyle": "-|>", "color": "white", "alpha": alpha, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.2}
        axes.annotate("", end[list(cut.coordinates)], start[list(cut.coordinates)], arrowprops=style, zorder=3)


def _frame(axes: "Axes", cut: Cut) -> None:
    i, j = cut.coordinates
    if cut.box.log[i]:
        axes.set_xscale("log")
    if cut.box.log[j]:
        axes.set_yscale("log")
    axes.set_xlim(cut.box.lower[i], cut.box.upper[i])
    axes.set_ylim(cut.box.lower[j], cut.box.upper[j])
    axes.set_xlabel(cut.labels[0])
    axes.set_ylabel(cut.labels[1])
