"""What is known to be allowed: the unit cube with linear rows, its points, and its border in user units."""

from eign.region.polytope import EmptyRegion, Region, region_in, region_of
from eign.region.rows import user_point

__all__ = ["EmptyRegion", "Region", "region_in", "region_of", "user_point"]
