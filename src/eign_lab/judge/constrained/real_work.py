"""Constrained problems from real work, with the gradients that adjoints give: cooling, a truss, steering."""

from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from eign.arrays import Array
from eign.constraints import Limits, LinearRows
from eign.space import Box
from eign_lab.judge.constrained.problem import ConstrainedProblem, Evaluation

_GRID: Final = 14
_SHARP: Final = 60.0
_SINK_WIDTH, _SINK_POWER = 0.09, 400.0
_SOURCES: Final = ((0.2, 0.25, 60.0), (0.75, 0.2, 90.0), (0.55, 0.75, 120.0), (0.15, 0.8, 50.0))
_CHIP: Final = (0.75, 0.2, 0.15)
"""Centre and half width of the part that must stay cool."""
_COOL: Final = 0.12


def cooling() -> ConstrainedProblem:
    r"""Where three heat sinks go on a plate with four sources: least mean temperature, one part below a limit.

    .. math:: -\Delta T + \sum_i h_i(x)\, T = q, \qquad T = 0 \text{ on the border}

    The hottest point of the part is a smooth maximum. Value and limit have an adjoint each, from one factorization.
    """
    limits = Limits(["temperature"], [-np.inf], [_COOL])
    return ConstrainedProblem("cooling-6", Box([(0.05, 0.95)] * 6), _cool, limits, LinearRows())


@lru_cache
def _plate() -> tuple[Array, Array, Array, Array]:
    """The points of the grid `n x 2`, minus its Laplacian `n x n`, the heat `n`, and which points are the part."""
    axis = np.arange(1, _GRID + 1) / (_GRID + 1)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    second = (_GRID + 1) ** 2 * (2 * np.eye(_GRID) - np.eye(_GRID, k=1) - np.eye(_GRID, k=-1))
    laplacian = np.kron(second, np.eye(_GRID)) + np.kron(np.eye(_GRID), second)
    heat = sum(power * np.exp(-((points - [x, y]) ** 2).sum(axis=1) / (2 * 0.07**2)) for x, y, power in _SOURCES)
    part = np.abs(points - _CHIP[:2]).max(axis=1) <= _CHIP[2]
    return points, laplacian, np.asarray(heat), part


def _cool(x: Array) -> Evaluation:
    points, laplacian, heat, part = _plate()
    away = points[:, None] - x.reshape(3, 2)  # n x 3 x 2
    sinks = _SINK_POWER * np.exp(-(away**2).sum(axis=2) / (2 * _SINK_WIDTH**2))
    factor = cho_factor(laplacian + np.diag(sinks.sum(axis=1)))
    warm = cho_solve(factor, heat)
    largest = warm[part].max()
    weights = np.where(part, np.exp(_SHARP * np.minimum(warm - largest, 0.0)), 0.0)
    hottest = largest + np.log(weights.sum() / part.sum()) / _SHARP
    loads = np.stack([np.full(len(heat), 1 / len(heat)), weights / weights.sum()], axis=1)
    adjoints = cho_solve(factor, loads)
    # dT = -K^-1 dK T, and dK is the diagonal of the sinks' changes.
    turned = sinks[..., None] * away / _SINK_WIDTH**2
    slopes = -np.einsum("na,n,nsk->ask", adjoints, warm, turned).reshape(2, 6)
    return Evaluation(float(warm.mean()), slopes[0], np.array([hottest]), slopes[1:])


_NODES: Final = 360.0 * np.array([[2, 1], [2, 0], [1, 1], [1, 0], [0, 1], [0, 0]])
_BARS: Final = ((4, 2), (2, 0), (5, 3), (3, 1), (2, 3), (0, 1), (4, 3), (5, 2), (2, 1), (3, 0))
_YOUNG, _DENSITY, _LOAD, _STRESS, _SWAY = 1e7, 0.1, 1e5, 25e3, 2.0


def truss() -> ConstrainedProblem:
    """The cantilever of ten bars: least weight by their sections, stresses of 25 ksi, displacements of 2 in.

    Known optimum 5060.85 lb.
    """
    stresses, moves = [f"stress {i}" for i in range(10)], [f"move {i}" for i in range(8)]
    reach = np.array([_STRESS] * 10 + [_SWAY] * 8)
    limits = Limits([*stresses, *moves], -reach, reach)
    return ConstrainedProblem("truss-10", Box([(0.1, 35.0)] * 10), _carry, limits, LinearRows())


@lru_cache
def _bars() -> tuple[Array, Array]:
    """Lengths of the bars `10`, and by how much each is stretched by unit displacements of the free nodes `10 x 8`."""
    lengths, stretch = np.empty(10), np.zeros((10, 12))
    for i, (a, b) in enumerate(_BARS):
        along = _NODES[b] - _NODES[a]
        lengths[i] = np.linalg.norm(along)
        stretch[i, 2 * a : 2 * a + 2], stretch[i, 2 * b : 2 * b + 2] = -along / lengths[i], along / lengths[i]
    return lengths, stretch[:, :8]


def _carry(x: Array) -> Evaluation:
    lengths, stretch = _bars()
    stiffness = (stretch.T * (_YOUNG * x / lengths)) @ stretch
    load = np.zeros(8)
    load[[3, 7]] = -_LOAD  # down on the two lower free nodes
    factor = cho_factor(stiffness)
    moved = cho_solve(factor, load)
    strain = stretch @ moved / lengths
    # K du/dx_i = -dK/dx_i u = -stretch_i (E / L_i) stretch_i' u.
    sway = -cho_solve(factor, stretch.T * (_YOUNG * strain))
    stress = _YOUNG * (stretch @ sway) / lengths[:, None]
    weight = _DENSITY * lengths
    return Evaluation(
        float(weight @ x), weight, np.concatenate([_YOUNG * strain, moved]), np.concatenate([stress, sway])
    )


_GOAL: Final = np.array([1.0, 0.15])
_POSTS: Final = np.array([(0.35, 0.05), (0.6, 0.3), (0.65, -0.2)])
_PACE, _ROOM, _BEND, _NEAR = 0.12, 0.15, 0.05, 300.0


def steering() -> ConstrainedProblem:
    """Optimal control with path constraints: ten headings of a vehicle between three posts, to a goal behind them.

    The constraints are smooth minima over the path of the squared distances from the posts.
    """
    limits = Limits([f"post {i}" for i in range(3)], [_ROOM**2] * 3, [np.inf] * 3)
    return ConstrainedProblem("steering-10", Box([(-1.5, 1.5)] * 10), _steer, limits, LinearRows())


def _steer(x: Array) -> Evaluation:
    ways = _PACE * np.stack([np.cos(x), np.sin(x)], axis=1)
    path = np.cumsum(ways, axis=0)
    turned = np.stack([-ways[:, 1], ways[:, 0]], axis=1)  # d(step k) / d(heading k)
    bends, miss = np.diff(x), path[-1] - _GOAL
    gradient = 20 * turned @ miss
    gradient[1:] += 2 * _BEND * bends
    gradient[:-1] -= 2 * _BEND * bends
    away = path - _POSTS[:, None]  # posts x steps x 2
    squared = (away**2).sum(axis=2)
    nearest = squared.min(axis=1, keepdims=True)
    weights = np.exp(-_NEAR * (squared - nearest))
    distances = nearest[:, 0] - np.log(weights.sum(axis=1)) / _NEAR
    weights /= weights.sum(axis=1, keepdims=True)
    # A heading moves its own step and all after it.
    pulls: Any = np.cumsum((2 * weights[..., None] * away)[:, ::-1], axis=1)[:, ::-1]
    jacobian = np.einsum("psk,sk->ps", pulls, turned)
    return Evaluation(float(10 * miss @ miss + _BEND * bends @ bends), gradient, distances, jacobian)
