"""Where constraints end, over two coordinates."""

from typing import TYPE_CHECKING, Final

import numpy as np

from eign.arrays import Array
from eign.plot.style import BEST, DATA
from eign.study import Optimizer
from eign.study.outlook import Outlook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HATCH: Final = "////"


def draw_limits(
    axes: "Axes", optimizer: Optimizer, outlook: Outlook, points: Array, sides: tuple[Array, Array]
) -> None:
    """Hatch what linear constraints forbid, and draw where surrogates of the others are at their limits.

    Args:
        axes: Where to draw.
        optimizer: The study.
        outlook: Its surrogates.
        points: The grid `n x d`, user units.
        sides: Its coordinates along both axes.
    """
    shape = (len(sides[1]), len(sides[0]))
    rows = optimizer.linear
    if len(rows):
        values = points @ rows.A.T
        # By how much a row is beyond its limit: an equality is a line, the border of an inequality is exact.
        for row in np.flatnonzero(~rows.is_equality):
            beyond = np.maximum(rows.lower[row] - values[:, row], values[:, row] - rows.upper[row]).reshape(shape)
            if beyond.max() > 0.0:
                axes.contourf(*sides, beyond, levels=[0.0, np.inf], colors="none", hatches=[_HATCH])
                axes.contour(*sides, beyond, levels=[0.0], colors=DATA, linewidths=1.0)
        for row in np.flatnonzero(rows.is_equality):
            axes.contour(*sides, values[:, row].reshape(shape), levels=[rows.lower[row]], colors=DATA, linewidths=1.4)
    for i, believed in enumerate(outlook.predict_constraints(points)):
        finite = sorted({float(side) for side in (optimizer.constraints.lower[i], optimizer.constraints.upper[i])})
        levels = [level for level in finite if believed.mean.min() < level < believed.mean.max()]
        if levels:
            axes.contour(*sides, believed.mean.reshape(shape), levels=levels, colors=BEST, linestyles="dotted")
