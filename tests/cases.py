"""Boxes that tests of several rooms search in."""

from eign.space import Box


def cube(dim: int) -> Box:
    """The unit cube as a box."""
    return Box([(0.0, 1.0)] * dim)
