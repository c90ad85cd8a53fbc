"""Problems from real work with gradients by adjoint or sensitivity, milliseconds an evaluation."""

from functools import lru_cache

import numpy as np

from eign.arrays import Array
from eign.problems import Problem
from eign.space import Box

_RATES = np.array([1.1, 0.6, 0.9, 0.4, 1.5, 0.7])
_STEP, _STEPS, _EVERY = 0.1, 100, 5
_LARGEST = 3.5


def lotka_volterra() -> Problem:
    """Four rates and two initial sizes of hares x and lynxes y from their logarithms at 20 times; exact data.

    The value is minus the mean squared error, so that the maximum is 0 at the rates that made the data.
    """
    box = Box([(0.2, 5.0)] * 6, log=range(6))
    return Problem("lotka-volterra-6", box, formula=_misfit, optimum=0.0, optimizers=_RATES[None])


def _misfit(X: Array) -> tuple[Array, Array]:
    found = _trajectory(X)
    away = found[..., 0] - _data()
    values = -(away**2).mean(axis=(0, 2))
    return values, -2 * (away[..., None] * found[..., 1:]).sum(axis=(0, 2)) / (2 * len(away))


@lru_cache
def _data() -> Array:
    return _trajectory(_RATES[None])[..., 0]


def _trajectory(X: Array) -> Array:
    """Log sizes and their derivatives by the six parameters, `times x n x 2 x (1 + 6)`: Runge and Kutta's steps.

    The sensitivities take the same steps, so that they are the derivatives of what is computed.
    """
    now = np.zeros((len(X), 2, 7))
    now[..., 0] = np.log(X[:, 4:6])
    now[:, [0, 1], [5, 6]] = 1 / X[:, 4:6]
    seen = []
    for step in range(1, _STEPS + 1):
        a = _slope(X, now)
        b = _slope(X, now + (0.5 * _STEP) * a)
        c = _slope(X, now + (0.5 * _STEP) * b)
        e = _slope(X, now + _STEP * c)
        now = now + (_STEP / 6) * (a + 2 * (b + c) + e)
        if step % _EVERY == 0:
            seen.append(now)
    return np.array(seen)


def _slope(X: Array, now: Array) -> Array:
    r"""U' = a - b e^v, v' = d e^u - c for the logarithms u, v, and what follows for the derivatives.

    Sizes are capped where no fit of the data comes near, so that wild rates overflow nowhere.
    """
    sizes = np.exp(np.minimum(now[..., 0], _LARGEST))
    pulls = sizes * X[:, [3, 1]] * [1.0, -1.0]  # of hares on lynxes, of lynxes on hares
    change = ((now[..., 0] < _LARGEST) * pulls)[:, ::-1, None] * now[:, ::-1]
    change[..., 0] = pulls[:, ::-1] + X[:, [0, 2]] * [1.0, -1.0]
    change[:, 0, 1] += 1
    change[:, 0, 2] -= sizes[:, 1]
    change[:, 1, 3] -= 1
    change[:, 1, 4] += sizes[:, 0]
    return change


def lennard_jones() -> Problem:
    """Minus the energy of six atoms; the maximum is that of the octahedron, 12.712062.

    The first atom is at the origin, the second on the first axis and the third in a plane with it: twelve coordinates.
    Pairs closer than 0.7 repel linearly, as anyone would cap them: no minimum is near.
    """
    pairs = [(0.0, 2.0), (-2.0, 2.0), (0.0, 2.0), *[(-2.0, 2.0)] * 9]
    return Problem("lennard-jones-12", Box(pairs), formula=_cluster, optimum=12.712062256)


def _cluster(X: Array) -> tuple[Array, Array]:
    atoms = np.zeros((len(X), 6, 3))
    atoms[:, 1, 0] = X[:, 0]
    atoms[:, 2, :2] = X[:, 1:3]
    atoms[:, 3:] = X[:, 3:].reshape(-1, 3, 3)
    i, j = np.triu_indices(6, 1)
    away = atoms[:, i] - atoms[:, j]
    r = np.sqrt((away**2).sum(axis=2))
    held = np.maximum(r, 0.7)
    energy, slope = 4 * (held**-12 - held**-6), 4 * (-12 * held**-13 + 6 * held**-7)
    energy += slope * (r - held)
    pulls = (slope / np.where(r > 0, r, 1.0))[..., None] * away
    forces = np.zeros_like(atoms)
    for k, (first, second) in enumerate(zip(i, j, strict=True)):
        forces[:, first] += pulls[:, k]
        forces[:, second] -= pulls[:, k]
    gradient = np.hstack([forces[:, 1, :1], forces[:, 2, :2], forces[:, 3:].reshape(-1, 9)])
    return -energy.sum(axis=1), -gradient


def kernel_ridge() -> Problem:
    """Five lengthscales and the ridge of a kernel regression, by the error on held-out data and its hypergradient.

    Two of the five inputs say nothing. The optimum is the best known value.
    """
    box = Box([*[(0.05, 20.0)] * 5, (1e-5, 10.0)], log=range(6))
    return Problem("kernel-ridge-6", box, formula=_held_out)


@lru_cache
def _regression() -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(11)
    Z = rng.uniform(-1, 1, (120, 5))
    y = np.sin(5 * Z[:, 0]) + Z[:, 1] ** 2 + np.cos(4 * Z[:, 1] * Z[:, 2]) + 0.2 * rng.standard_normal(120)
    y -= y.mean()
    return Z[:60], y[:60], Z[60:], y[60:]


def _held_out(X: Array) -> tuple[Array, Array]:
    results = [_held_out_at(x) for x in X]
    return np.array([value for value, _ in results]), np.array([gradient for _, gradient in results])


def _held_out_at(x: Array) -> tuple[float, Array]:
    r"""Minus :math:`\tfrac12 \log` of the mean squared error of :math:`K_* (K + \lambda I)^{-1} y` and its gradient.

    With the error e and the adjoint :math:`p = (K + \lambda I)^{-1} K_*^\top e`, a change of the kernels moves
    :math:`\|e\|^2 / 2` by :math:`e^\top dK_* w - p^\top (dK + d\lambda) w`.
    """
    Z, y, Z_new, y_new = _regression()
    squares = (Z[:, None] - Z[None]) ** 2
    squares_new = (Z_new[:, None] - Z[None]) ** 2
    K, K_new = (np.exp(-0.5 * (s / x[:5] ** 2).sum(axis=2)) for s in (squares, squares_new))
    A = K + x[5] * np.eye(len(K))
    w = np.linalg.solve(A, y)
    e = K_new @ w - y_new
    p = np.linalg.solve(A, K_new.T @ e)
    moved = np.einsum("ij,ijk->k", K_new * np.outer(e, w), squares_new) - np.einsum(
        "ij,ijk->k", K * np.outer(p, w), squares
    )
    total = float(e @ e)
    gradient = np.append(moved / x[:5] ** 3, -(p @ w)) / total
    return -0.5 * np.log(total / len(e)), -gradient
