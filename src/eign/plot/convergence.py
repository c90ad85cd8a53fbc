"""Best value against evaluations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from eign.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which stay apart for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def convergence(curves: Mapping[str, Array], *, optimum: float | None = None, axes: "Axes | None" = None) -> "Axes":
    """Mean and one standard error of the best value so far, one line for each name.

    Args:
        curves: For each name the best values so far, `runs x evaluations`.
        optimum: Drawn as a dashed line, if known.
        axes: Where to draw; None makes a new figure.
    """
    import matplotlib.pyplot as plt

    if axes is None:
        _, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (name, values), colour in zip(curves.items(), COLOURS * len(curves), strict=False):
        values = np.atleast_2d(values)
        evaluations = np.arange(1, values.shape[1] + 1)
        mean = values.mean(axis=0)
        axes.plot(evaluations, mean, color=colour, label=name, linewidth=1.8)
        if len(values) > 1:
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            axes.fill_between(evaluations, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
    if optimum is not None:
        axes.axhline(optimum, color="0.4", linestyle="--", linewidth=1, label="optimum")
    axes.set_xlabel("evaluations")
    axes.set_ylabel("best value so far")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return axes
