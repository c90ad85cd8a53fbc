"""Pictures of runs and optimizers: matplotlib axes in, axes out. Needs matplotlib, which the extra `bench` brings."""

from eign.plot.comparison import compare
from eign.plot.contours import contour
from eign.plot.convergence import convergence, gradient_norm
from eign.plot.slices import slice  # noqa: A004  # used as eign.plot.slice

__all__ = ["compare", "contour", "convergence", "gradient_norm", "slice"]
