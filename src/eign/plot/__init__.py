"""Pictures of results: matplotlib axes in, axes out. Needs matplotlib, which the extra `bench` brings."""

from eign.plot.convergence import convergence

__all__ = ["convergence"]
