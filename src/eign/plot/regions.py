"""Where a curve is high."""

import numpy as np

from eign.arrays import Array


def high_regions(values: Array, *, share: float) -> list[slice]:
    """The runs of consecutive points whose value is above `share` of the way from the least to the largest.

    >>> high_regions(np.array([0.0, 1.0, 0.9, 0.1, 0.0, 0.8]), share=0.5)
    [slice(1, 3, None), slice(5, 6, None)]
    """
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if not high > low:
        return []
    above = np.concatenate([[False], values > low + share * (high - low), [False]])
    edges = np.flatnonzero(above[1:] != above[:-1])
    return [slice(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
