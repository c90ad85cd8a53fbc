r"""The polytope of the unit cube and linear rows: whether it is empty, its middle, the nearest of its points.

| symbol | in code | meaning |
|---|---|---|
| u | `u` | a point of the cube, `d` |
| G u <= h | `_normals`, `_offsets` | all one-sided rows and the cube's, of length 1: slack is a distance |
| E u = e | | rows that hold with equality everywhere, by their limits or because the others leave no room |
| Z | `basis` | orthonormal basis of the null space of E, `d x q` |
| w | `w` | reduced coordinates, u = origin + Z w, in which the polytope has an interior, `q` |

Without equalities w is u itself, to the last bit.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, final

import numpy as np

from eign.arrays import Array, Mask
from eign.constraints import LinearRows
from eign.region.programs import NoPoint, deepest_nearby, deepest_point, room, smallest_conflict, within_bounds
from eign.region.sampling import Sampler
from eign.space import Box

# Rows that leave less room than this in the cube leave none: the linear programs are solved to 1e-10.
_FLAT: Final = 1e-9
_RANK: Final = 1e-12
# Rows that miss each other by less do not conflict.
_HOLDS: Final = 1e-12
# What rounding leaves of a row that holds.
ROUNDING: Final = 1e-13
_PROJECTION_TRIES: Final = 50


class EmptyRegion(ValueError):  # noqa: N818  # what it is, as users read it
    """The linear rows and the bounds leave no point; the message names rows that conflict."""


class _Sides(NamedTuple):
    """One-sided rows G u <= h with what they are called, and which of the two-sided rows they are of (-1: bounds)."""

    normals: Array
    offsets: Array
    labels: list[str]
    rows: Array


@final
class Region:
    """The points of the unit cube that satisfy linear rows.

    Attributes:
        dim: Coordinates of the cube, d.
        center: A point in the middle, `d`.
        origin: Where reduced coordinates are 0, `d`.
        basis: Z, `d x q`.
        lower: Bounds of the reduced coordinates, `q`.
        upper: `q`.
        matrix: The rows that are left in reduced coordinates, matrix w <= limit, `p x q`; of length 1.
        limit: `p`.
    """

    def __init__(self, rows: LinearRows | None, dim: int, *, names: Sequence[str] | None = None) -> None:
        """Find the interior.

        Args:
            rows: In the unit cube; None is the cube itself.
            dim: Coordinates of the cube.
            names: Of the coordinates, for errors.

        Raises:
            EmptyRegion: There is no point.
        """
        self.dim = dim
        self._rows = rows if rows is not None else LinearRows()
        if len(self._rows) and self._rows.A.shape[1] != dim:
            raise ValueError(f"rows have {self._rows.A.shape[1]} coordinates, expected {dim}")
        self._names = [f"coordinate {i}" for i in range(dim)] if names is None else [repr(name) for name in names]
        sides, equalities = self._one_sided()
        self._flat_rows: Mask = self._rows.is_equality
        if not len(self._rows):
            self.center, self._normals, self._offsets = np.full(dim, 0.5), sides.normals, sides.offsets
            self._reduce(np.empty((0, dim)), np.full(dim, 0.5))
            return
        self._normals, self._offsets = sides.normals, sides.offsets
        self.center, equal = self._interior(sides, equalities)
        self._reduce(equal, self.center)

    @cached_property
    def is_cube(self) -> bool:
        """Whether no row restricts the cube."""
        return not len(self.matrix) and self.basis.shape[0] == self.basis.shape[1]

    @property
    def rows(self) -> LinearRows:
        """The rows, in the cube."""
        return self._rows

    def is_flat(self, rows: LinearRows) -> Mask:
        """Which of the rows hold with equality everywhere, `k`; the rows may be in user units."""
        assert len(rows) == len(self._flat_rows), "the rows are those of the region"
        return self._flat_rows

    def excess(self, u: Array) -> Array:
        """The largest distance beyond a row or bound, `... x d -> ...`; at most about 0 inside."""
        beyond = (u @ self._normals.T - self._offsets).max(axis=-1)
        off_plane = np.abs((u - self.origin) - ((u - self.origin) @ self.basis) @ self.basis.T).max(axis=-1)
        return np.asarray(np.maximum(beyond, off_plane if self.basis.shape[1] < self.dim else -np.inf))

    def contains(self, u: Array, *, slack: float = 1e-12) -> Mask:
        """Whether points are inside but for a distance, `... x d -> ...`."""
        return np.asarray(self.excess(u) <= slack)

    def reduced(self, u: Array) -> Array:
        """Reduced coordinates of points of the region, `... x d -> ... x q`."""
        return u if self._is_whole else np.asarray((u - self.origin) @ self.basis)

    def restored(self, w: Array) -> Array:
        """The inverse of `reduced`, `... x q -> ... x d`."""
        return np.asarray(np.clip(w if self._is_whole else self.origin + w @ self.basis.T, 0.0, 1.0))

    def project(self, u: Array) -> Array:
        """The nearest point, `... x d -> ... x d`; a point inside stays as it is, to the last bit."""
        points = np.atleast_2d(u)
        is_out = self.excess(points) > ROUNDING
        if not is_out.any():
            return u
        moved = points.copy()
        moved[is_out] = [self._nearest(one) for one in points[is_out]]
        return moved.reshape(u.shape)

    def longest_step(self, u: Array, direction: Array) -> float:
        """How far one can go from a point inside along a direction, `d, d -> scalar`; infinite along none."""
        rate = self._normals @ direction
        slack = np.maximum(self._offsets - self._normals @ u, 0.0)
        return float(np.min(slack[rate > 0] / rate[rate > 0], initial=np.inf))

    def samples(self, count: int, rng: np.random.Generator) -> Array:
        """Points spread over the region about uniformly, `count x d`."""
        return self.project(self.restored(self._sampler.samples(count, rng)))

    def design_point(self, seed: int, index: int) -> Array:
        """Point `index` of a sequence that fills the region evenly, `d`."""
        return self.project(self.restored(self._sampler.design_point(seed, index)))

    @cached_property
    def _sampler(self) -> Sampler:
        low, high = within_bounds(self.matrix, self.limit, self.lower, self.upper)
        return Sampler(self.matrix, self.limit, low, high, self.reduced(self.center))

    @property
    def _is_whole(self) -> bool:
        return self.basis.shape[0] == self.basis.shape[1]

    def _one_sided(self) -> tuple[_Sides, Array]:
        """All rows and bounds as G u <= h, and the equalities among the rows, E e side by side."""
        matrix, identity = self._rows.A.reshape(-1, self.dim), np.eye(self.dim)
        lengths = np.linalg.norm(matrix, axis=1)
        for row in np.flatnonzero(lengths == 0.0):
            if not self._rows.lower[row] <= 0.0 <= self._rows.upper[row]:
                raise EmptyRegion(f"{self._rows.labels[row]} cannot be satisfied: no free coordinate is in it")
        is_equal = self._rows.is_equality & (lengths > 0.0)
        unit = matrix / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        normals, offsets = [identity, -identity], [np.ones(self.dim), np.zeros(self.dim)]
        labels = [f"{name} <= its upper bound" for name in self._names]
        labels += [f"{name} >= its lower bound" for name in self._names]
        places = [np.full(2 * self.dim, -1)]
        for sign, limit, word in ((1.0, self._rows.upper, "upper"), (-1.0, self._rows.lower, "lower")):
            one_sided = np.flatnonzero(np.isfinite(limit) & ~is_equal & (lengths > 0.0))
            normals.append(sign * unit[one_sided])
            offsets.append(sign * limit[one_sided] / lengths[one_sided])
            labels += [f"{self._rows.labels[row]} ({word} limit)" for row in one_sided]
            places.append(one_sided)
        sides = _Sides(np.concatenate(normals), np.concatenate(offsets), labels, np.concatenate(places))
        equal = np.column_stack([unit[is_equal], self._rows.lower[is_equal] / lengths[is_equal]])
        return sides, equal

    def _interior(self, sides: _Sides, equalities: Array) -> tuple[Array, Array]:
        """A point in the middle, and all equalities, also those that inequalities amount to."""
        equal_labels = [self._rows.labels[row] for row in np.flatnonzero(self._rows.is_equality)]
        try:
            center, depth = deepest_point(sides.normals, sides.offsets, equalities)
        except NoPoint:
            depth = -np.inf
        if depth < -_FLAT:
            raise EmptyRegion(self._conflict(sides, equalities, equal_labels))
        equal = equalities
        if depth <= _FLAT:
            flat = room(sides.normals, sides.offsets, equalities) <= _FLAT
            self._flat_rows = self._flat_rows.copy()
            self._flat_rows[sides.rows[flat & (sides.rows >= 0)].astype(np.intp)] = True
            center = deepest_nearby(sides.normals, sides.offsets, equalities, center)
            equal = np.concatenate([equal, np.column_stack([sides.normals[flat], sides.normals[flat] @ center])])
        if len(equalities):
            off = equalities[:, -1] - equalities[:, :-1] @ center
            center = center + np.linalg.lstsq(equalities[:, :-1], off, rcond=_RANK)[0]
            off = np.abs(equalities[:, :-1] @ center - equalities[:, -1])
            if off.max() > _HOLDS:
                raise EmptyRegion(self._conflict(sides, equalities, equal_labels))
        if (sides.normals @ center - sides.offsets).max() > _HOLDS:
            raise EmptyRegion(self._conflict(sides, equalities, equal_labels))
        return center, equal

    def _conflict(self, sides: _Sides, equalities: Array, equal_labels: list[str]) -> str:
        rows = smallest_conflict(sides.normals, sides.offsets, equalities)
        labels = [*sides.labels, *equal_labels]
        names = [labels[row] for row in rows]
        which = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "the rows"
        return f"the linear constraints leave no point: {which} cannot hold together; leave one out or widen its limit"

    def _reduce(self, equal: Array, center: Array) -> None:
        """Reduced coordinates, and the rows in them; the center is moved to the middle of what is left."""
        self.origin, self.basis = np.zeros(self.dim), np.eye(self.dim)
        bounds = 2 * self.dim
        if not len(equal):
            self.lower, self.upper = np.zeros(self.dim), np.ones(self.dim)
            self.matrix, self.limit = self._normals[bounds:], self._offsets[bounds:]
            return
        _, sizes, directions = np.linalg.svd(equal[:, :-1])
        rank = int((sizes > _RANK * sizes.max(initial=1.0)).sum())
        self.origin, self.basis = center, directions[rank:].T.copy()
        matrix = self._normals @ self.basis
        lengths = np.linalg.norm(matrix, axis=1)
        kept = lengths > _FLAT
        self.matrix = matrix[kept] / lengths[kept, None]
        self.limit = (self._offsets[kept] - self._normals[kept] @ center) / lengths[kept]
        count = self.basis.shape[1]
        self.lower, self.upper = np.full(count, -np.inf), np.full(count, np.inf)
        if count:
            middle, _ = deepest_point(self.matrix, self.limit, np.empty((0, count + 1)))
            self.origin = center + self.basis @ middle
            self.limit = self.limit - self.matrix @ middle
            self.lower, self.upper = within_bounds(self.matrix, self.limit, self.lower, self.upper)
        self.center = np.clip(self.origin, 0.0, 1.0)

    def _nearest(self, u: Array) -> Array:
        """The nearest point of one outside, `d -> d`, by least-distance programming: NNLS of the dual problem."""
        from scipy.optimize import nnls

        if self._is_whole and self.excess(clipped := np.clip(u, 0.0, 1.0)) <= ROUNDING:
            return clipped
        w = self.reduced(u)
        middle = self.reduced(self.center)
        matrix, limit = self.matrix, self.limit
        if self._is_whole:
            matrix, limit = self._normals, self._offsets
        slack = limit - matrix @ w
        if slack.min(initial=0.0) < 0.0:
            # min |z|^2 with matrix z <= slack: of E = [-matrix' ; -slack'], NNLS(E, (0, 1)) gives z by its residual.
            dual = np.concatenate([-matrix.T, -slack[None]])
            target = np.append(np.zeros(len(w)), 1.0)
            try:
                weights, _ = nnls(dual, target, maxiter=_PROJECTION_TRIES * dual.shape[1])
                residual = dual @ weights - target
                moved = w - residual[:-1] / residual[-1] if residual[-1] < 0.0 else middle
            except RuntimeError:  # too many iterations: the point on the way to the middle is inside, too
                moved = w
            w = moved if np.isfinite(moved).all() else middle
        if self.excess(restored := self.restored(w)) <= ROUNDING:
            return restored
        # What rounding left is pulled towards the middle, from where each row is some way off.
        away = matrix @ (w - middle)
        depth = limit - matrix @ middle
        ratio = np.where(away > depth, depth / np.where(away > 0.0, away, 1.0), 1.0)
        share = float(np.clip(ratio.min(initial=1.0), 0.0, 1.0))
        return self.restored(w if share == 1.0 else middle + share * (1.0 - ROUNDING) * (w - middle))


def region_in(box: Box, rows: LinearRows) -> Region:
    """The region of rows in user units, with their labels and the names of the coordinates in errors."""
    if not len(rows):
        return Region(None, box.free_dim)
    names = None if box.names is None else tuple(name for name, free in zip(box.names, box.free, strict=True) if free)
    in_cube = box.linear_to_unit(rows.A, rows.lower, rows.upper)
    return _cached_region(_as_key(*in_cube), box.free_dim, rows.labels, names)


def region_of(stored: Mapping[str, Any] | None, dim: int) -> Region:
    """The region of rows as a state stores them: A, lower and upper in the cube; the same object for the same rows."""
    if stored is None:
        return _cached_region(None, dim)
    return _cached_region(_as_key(*(np.array(stored[name]) for name in ("A", "lower", "upper"))), dim)


_Key = tuple[bytes, bytes, bytes]


def _as_key(A: Array, lower: Array, upper: Array) -> _Key:
    matrix, low, high = (np.ascontiguousarray(part, dtype=np.float64).tobytes() for part in (A, lower, upper))
    return matrix, low, high


@lru_cache(maxsize=32)
def _cached_region(
    key: _Key | None, dim: int, labels: tuple[str, ...] = (), names: tuple[str, ...] | None = None
) -> Region:
    if key is None:
        return Region(None, dim)
    matrix, lower, upper = (np.frombuffer(part) for part in key)
    return Region(LinearRows(matrix.reshape(len(lower), dim), lower, upper, labels), dim, names=names)
