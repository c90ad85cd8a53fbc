"""How all pictures look: colours that stay apart for colour-blind readers, new axes, frames."""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from eign.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, without the yellow that is too pale for lines on white."""

DASHES: Final = ("solid", "dashed", "dotted")
"""Names that matplotlib knows; `interactive` translates them."""

MODEL, DATA, TARGET, BEST, TRUTH = COLOURS[0], "#000000", COLOURS[2], COLOURS[1], "#767676"
"""What is believed, what was observed, what is maximised next, the best point, and what is known to be true."""

MAP: Final = "cividis"
"""Colours of contours, even in lightness for every kind of colour vision."""


EVALUATIONS: Final = "evaluations"
"""What most pictures have along their first axis."""


class Line(NamedTuple):
    """Colour and dash of one curve."""

    colour: str
    dash: str


def lines() -> Iterator[Line]:
    """One style after the other: all colours, then the same dashed, then dotted.

    >>> styles = lines()
    >>> [next(styles).dash for _ in range(8)][-1]
    'dashed'
    """
    return (Line(colour, dash) for dash, colour in product(DASHES, COLOURS))


def shades(count: int) -> list[Line]:
    """Styles for curves with an order, such as the values of a parameter: from violet over green to yellow.

    >>> [line.colour for line in shades(2)]
    ['#440154', '#9bd93c']
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The end of the map is too pale for a line on white.
    return [Line(to_hex(colormaps["viridis"](0.85 * k / max(1, count - 1))), "solid") for k in range(count)]


def legend(axes: "Axes") -> None:
    """Names of the curves, on a ground of their own: a line that runs through them would make them hard to read."""
    axes.legend(edgecolor="none", framealpha=0.85, borderpad=0.2)


def faded(colour: str, strength: Array) -> list[tuple[float, float, float, float]]:
    """The colour at each strength: red, green, blue and opacity."""
    from matplotlib.colors import to_rgb

    return [(*to_rgb(colour), float(opacity)) for opacity in strength]


def new_axes(*, width: float = 6.4, height: float = 4.0) -> "Axes":
    """The axes of a new figure, in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def tidy(axes: "Axes", *, x: str, y: str) -> None:
    """Labels, no frame on the sides that carry no numbers, and no half evaluations."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    if x == EVALUATIONS:
        axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True))
