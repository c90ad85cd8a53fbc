"""COCO's picture: for each dimension the share of function-target pairs against log10(evaluations / dimension)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from eign.arrays import Array
from eign.plot.style import lines, tidy
from eign_lab.judge.bbob.ecdf import share_reached

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_distributions(
    runtimes: Mapping[int, Mapping[str, Array]], *, first: str, budget: Callable[[int], int]
) -> "Figure":
    """One panel a dimension, as COCO draws them.

    Args:
        runtimes: For each dimension and method `runs x targets`.
        first: The method that is drawn on top of the others.
        budget: Of a run in d dimensions.
    """
    import matplotlib.pyplot as plt

    labels = list(dict.fromkeys(label for of_methods in runtimes.values() for label in of_methods))
    styles = dict(zip(labels, lines(), strict=False))
    figure, grid = plt.subplots(
        1, len(runtimes), figsize=(3.6 * len(runtimes), 4.0), layout="constrained", sharey=True, squeeze=False
    )
    for axes, (d, of_methods) in zip(grid[0], runtimes.items(), strict=True):
        evaluations = np.arange(1.0, budget(d) + 1.0)
        for label, times in of_methods.items():
            look = {"color": styles[label].colour, "linestyle": styles[label].dash}
            width, order = (2.6, 3) if label == first else (1.5, 2)
            shares = share_reached(times, evaluations)
            axes.step(
                np.log10(evaluations / d), shares, where="post", label=label, linewidth=width, zorder=order, **look
            )
        tidy(axes, x="log10(evaluations / dimension)", y="")
        axes.set_xlim(0.0, np.log10(budget(d) / d))
        axes.set_ylim(0.0, 1.0)
        axes.grid(visible=True, linewidth=0.4)
        axes.set_title(f"bbob f1-f24, {d}-D", loc="left", fontsize=10)
    grid[0][0].set_ylabel("share of function, target pairs")
    grid[0][0].text(0.03, 0.97, "51 targets: 100..1e-08", transform=grid[0][0].transAxes, va="top", fontsize=9)
    drawn = (axes.get_legend_handles_labels() for axes in grid[0])
    handles = {label: handle for found in drawn for handle, label in zip(*found, strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False)
    return figure
