"""What is known to be allowed: the unit cube with linear rows, its points, and its border in user units."""

from eign.region.polytope import EmptyRegion, Region, region_of
from eign.region.rows import Rows, rows_in_cube, user_point

__all__ = ["EmptyRegion", "Region", "Rows", "region_of", "rows_in_cube", "user_point"]
