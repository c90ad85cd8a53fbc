"""Performance and data profiles of the judge's runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from eign.arrays import Array
from eign.plot.style import lines, tidy
from eign_lab.statistics import data_profile, performance_profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_profiles(costs: Mapping[str, Array], *, first: str) -> "Figure | None":
    """Share of the runs that are within 1 per cent of the scale: against the budget used, and relative to the best.

    Args:
        costs: For each method the share of the budget that each run took; inf = never.
        first: The method that is drawn last, on top of the others.
    """
    import matplotlib.pyplot as plt

    if not costs:
        return None
    shares, ratios = np.linspace(0.0, 1.0, 401), np.geomspace(1.0, 64.0, 400)
    relative = performance_profile(costs, ratios)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for (name, cost), style in zip(costs.items(), lines(), strict=False):
        look = {"color": style.colour, "linestyle": style.dash, "linewidth": 2.4 if name == first else 1.4}
        order = 3 if name == first else 2
        left.step(shares, data_profile(cost, shares), where="post", label=name, zorder=order, **look)
        right.step(ratios, relative[name], where="post", zorder=order, **look)
    right.set_xscale("log", base=2)
    tidy(left, x="share of the budget", y="share of the runs solved")
    tidy(right, x="evaluations relative to the fastest method", y="share of the runs solved")
    for axes in (left, right):
        axes.set_ylim(0.0, 1.0)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return figure
