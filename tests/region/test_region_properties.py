"""Random polytopes: thin, flat, with equalities and many rows, at scales from 1e-6 to 1e12."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eign.arrays import Array
from eign.constraints import LinearRows
from eign.region import EmptyRegion, Region, region_in, user_point
from eign.region.rows import EQUALITY, row_excess, row_scales
from eign.space import Box


@st.composite
def polytopes(draw: st.DrawFn) -> tuple[Box, LinearRows]:
    """Rows through or near a point of the box, so that most are not empty; some of them equalities, some thin."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dim = draw(st.integers(1, 6))
    count = draw(st.sampled_from([1, 1, 2, 3, 8, 40]))
    scale = 10.0 ** rng.integers(-6, 13, size=dim)
    low = scale * rng.choice([0.0, -1.0, 1.0, 1e3], size=dim)
    high = low + scale
    inside = low + rng.random(dim) * (high - low)
    matrix = rng.normal(size=(count, dim)) * 10.0 ** rng.integers(-6, 7, size=(count, 1)) / scale
    matrix[rng.random(matrix.shape) < 0.3] = 0.0
    if draw(st.booleans()):
        matrix = np.round(matrix, 1)
    value = matrix @ inside
    spread = np.abs(matrix) @ (high - low)
    room = spread * 10.0 ** rng.choice([-1.0, -1.0, -3.0, -6.0, -11.0], size=count)
    lower, upper = value - room * rng.random(count), value + room * rng.random(count)
    kind = rng.random(count)
    lower[kind < 0.5] = -np.inf
    equal = kind > draw(st.sampled_from([0.7, 0.9, 2.0]))
    equal[np.cumsum(equal) >= dim] = False
    lower[equal] = upper[equal] = value[equal]
    return Box(np.column_stack([low, high])), LinearRows(matrix, lower, upper)


def _exact_excess(rows: LinearRows, row: int, x: Array) -> Fraction:
    value = sum((Fraction(a) * Fraction(b) for a, b in zip(rows.A[row].tolist(), x.tolist(), strict=True)), Fraction(0))
    low, high = float(rows.lower[row]), float(rows.upper[row])
    beyond = [Fraction(low) - value] if np.isfinite(low) else []
    return max([*beyond, value - Fraction(high)] if np.isfinite(high) else [*beyond, Fraction(-1)])


@given(polytopes(), st.integers(0, 10**6))
def test_what_is_handed_out_satisfies_all_rows(polytope: tuple[Box, LinearRows], seed: int) -> None:
    """Designs, samples and projections: inequalities exactly, in rationals and in NumPy; equalities to 1e-12."""
    box, rows = polytope
    try:
        region = region_in(box, rows)
    except EmptyRegion:
        return
    rng = np.random.default_rng(seed)
    points = [region.design_point(seed, 0), *region.samples(3, rng), region.project(rng.normal(0.5, 1.0, box.free_dim))]
    flat = region.is_flat(rows)
    for u in points:
        x = user_point(u, rows, box, region)
        assert box.contains(x)
        for row in range(len(rows)):
            excess = _exact_excess(rows, row, x)
            if flat[row]:
                assert excess <= EQUALITY * row_scales(rows, box)[row]
            else:
                assert excess <= 0
                assert row_excess(rows, x)[row] <= 0.0


@given(polytopes())
def test_an_empty_region_is_empty(polytope: tuple[Box, LinearRows]) -> None:
    """These rows were drawn around a point, which rounding alone can make a conflict: by less than 1e-8 of the cube."""
    box, rows = polytope
    try:
        region_in(box, rows)
    except EmptyRegion:
        A, lower, upper = box.linear_to_unit(rows.A, rows.lower, rows.upper)
        room = 1e-8 * np.abs(A).sum(axis=1)
        Region(LinearRows(A, lower - room, upper + room), box.free_dim)


@given(polytopes(), st.integers(0, 10**6))
def test_projections_stay_and_do_not_move_points_inside(polytope: tuple[Box, LinearRows], seed: int) -> None:
    """A projection is inside; projecting it again, or any point inside, changes nothing beyond rounding."""
    box, rows = polytope
    try:
        region = region_in(box, rows)
    except EmptyRegion:
        return
    outside = np.random.default_rng(seed).normal(0.5, 1.0, size=(4, box.free_dim))
    once = region.project(outside)
    # Reduced coordinates and back: some roundings of numbers of size 1.
    assert region.contains(once, slack=1e-12).all()
    assert np.abs(region.project(once) - once).max() < 1e-12
