"""Polytopes with a known answer: membership, the nearest point, the middle, and which rows conflict."""

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from eign.constraints import LinearRows
from eign.region import EmptyRegion, Region, region_in, region_of, user_point
from eign.space import Box


def rows_of(A: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> LinearRows:
    """Rows with one limit for all, or one each."""
    count = len(np.asarray(A))
    return LinearRows(
        A, np.broadcast_to(np.asarray(lower, float), count), np.broadcast_to(np.asarray(upper, float), count)
    )


SIMPLEX = rows_of(np.ones((1, 4)), 1.0, 1.0)


def test_without_rows_the_region_is_the_cube_to_the_last_bit() -> None:
    """Points inside stay, points outside are clipped."""
    region = Region(None, 3)
    inside = np.array([0.1, 1.0 / 3.0, 1.0])
    assert region.is_cube
    assert (region.project(inside) == inside).all()
    assert region.project(np.array([-0.5, 0.5, 2.0])).tolist() == [0.0, 0.5, 1.0]


def test_the_nearest_point_is_that_of_a_general_solver() -> None:
    """Least-distance programming against SLSQP, whose accuracy sets the tolerance."""
    rng = np.random.default_rng(4)
    rows = rows_of(rng.normal(size=(6, 4)), -np.inf, rng.uniform(0.2, 0.8, size=6))
    region = Region(rows, 4)
    for u in rng.normal(0.5, 1.0, size=(20, 4)):
        limits = {"type": "ineq", "fun": lambda x: rows.upper - rows.A @ x, "jac": lambda _: -rows.A}
        peer = minimize(
            lambda x, u=u: (((x - u) ** 2).sum(), 2 * (x - u)),
            region.center,
            jac=True,
            bounds=[(0, 1)] * 4,
            constraints=[limits],
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        found = region.project(u)
        assert region.contains(found)
        # The distance is flat at the optimum: SLSQP's point is good to the root of its 1e-14.
        assert np.abs(found - peer.x).max() < 1e-6


@pytest.mark.parametrize(
    ("matrix", "lower", "upper", "words"),
    [
        ([[1, 1], [1, 1], [1, -1]], [-np.inf, 0.9, -1], [0.5, np.inf, 1], {"a", "b"}),
        ([[1, 1], [1, -1]], [2.5, -1], [np.inf, 1], {"a", "coordinate 0", "coordinate 1"}),
        ([[1, 1], [1, 1], [1, -1]], [0.5, 0.6, 0], [0.5, 0.6, 0], {"a", "b"}),
        ([[1, 0], [0, 1], [1, 1]], [0.6, 0.6, -1], [2, 2, 1.1], {"a", "b", "c"}),
    ],
)
def test_an_empty_region_names_the_rows_that_conflict_and_no_others(
    matrix: list[list[float]], lower: list[float], upper: list[float], words: set[str]
) -> None:
    """An irreducible subset: each of these is needed, and the rest is not mentioned."""
    labels = ("a", "b", "c")[: len(matrix)]
    with pytest.raises(EmptyRegion) as caught:
        Region(LinearRows(np.array(matrix, float), np.array(lower, float), np.array(upper, float), labels), 2)
    named = str(caught.value).split(": ")[1].split("cannot")[0]
    every = {*labels, "coordinate 0", "coordinate 1"}
    assert {word for word in every if f"{word} " in named} == words


def test_rows_that_leave_no_room_are_equalities() -> None:
    """x + y <= 0 in the cube is one point; a row and its opposite are a line; a fixed coordinate stays fixed."""
    point = Region(rows_of([[1.0, 1.0]], -np.inf, 0.0), 2)
    assert point.basis.shape == (2, 0)
    assert point.project(np.array([0.7, 0.2])).tolist() == [0.0, 0.0]
    line = Region(rows_of([[1.0, 1.0], [-1.0, -1.0]], -np.inf, [1.0, -1.0]), 2)
    assert line.basis.shape == (2, 1)
    assert np.allclose(line.project(np.array([0.9, 0.9])), 0.5, atol=1e-14)


def test_equalities_are_eliminated() -> None:
    """Samples of the simplex are in its plane to rounding, and uniform: their mean is its middle."""
    region = Region(SIMPLEX, 4)
    points = region.samples(2000, np.random.default_rng(1))
    assert np.abs(points.sum(axis=1) - 1.0).max() < 1e-14
    # The standard deviation of a coordinate is 0.19, that of the mean of 2,000 0.0043.
    assert np.abs(points.mean(axis=0) - 0.25).max() < 0.02
    # Dirichlet(1, 1, 1, 1) has variance 3/80; its standard error over 2,000 points is about 0.0015.
    assert np.abs(points.var(axis=0) - 3 / 80).max() < 0.007


def test_designs_are_prefixes_of_one_sequence() -> None:
    """A longer design begins like a shorter one, in another process too."""
    for rows in (SIMPLEX, rows_of(np.ones((1, 4)), -np.inf, 2.0)):
        long, short = Region(rows, 4), Region(rows, 4)
        later = [long.design_point(3, index).tolist() for index in range(40)]
        assert [short.design_point(3, index).tolist() for index in (0, 5, 17)] == [later[0], later[5], later[17]]
        assert long.contains(np.array(later)).all()


def test_fixed_coordinates_go_into_the_limits() -> None:
    """A row of fixed coordinates alone holds or does not."""
    box = Box([(0, 2), (3, 3)])
    region = region_in(box, rows_of([[1.0, 1.0], [0.0, 1.0]], -np.inf, [4.0, 3.0]))
    assert region.project(np.array([0.9])).tolist() == pytest.approx([0.5], abs=1e-12)
    with pytest.raises(EmptyRegion, match="row 0"):
        region_in(box, rows_of([[0.0, 1.0]], 4.0, np.inf))


def test_limits_far_from_zero_keep_their_digits() -> None:
    """Bounds of 1e12 with a width of 1: the row in the cube is exact, where floating point would have 1e-4."""
    box = Box([(1e12, 1e12 + 1), (1e12, 1e12 + 1)])
    _, _, upper = box.linear_to_unit([[1.0, 1.0]], [-np.inf], [2e12 + 0.75])
    assert upper.tolist() == [0.75]


def test_equal_states_have_the_same_region() -> None:
    """What takes some linear programs is done once."""
    stored = {"A": [[1.0, 2.0]], "lower": [-np.inf], "upper": [1.0]}
    assert region_of(stored, 2) is region_of(dict(stored), 2)
    assert region_of(None, 2).is_cube


def test_a_point_on_a_row_is_pulled_in_no_farther_than_rounding() -> None:
    """A tenth is no float: three of them are more than 0.3, and the point handed out is not."""
    box = Box([(0, 1)] * 3)
    rows = rows_of(np.ones((1, 3)), -np.inf, 0.3)
    region = region_in(box, rows)
    x = user_point(np.full(3, 0.1), rows, box, region)
    assert sum(x.tolist()) <= 0.3
    assert np.abs(x - 0.1).max() < 1e-14
