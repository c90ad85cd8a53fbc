"""Real work with many parameters: gradients by adjoint, milliseconds an evaluation. An instance is another data set."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

from eign.arrays import Array
from eign.problems import Problem
from eign.space import Box

_ATOMS = 20
_PLATE = 20
_CONTROLS = 120


def _one_by_one(single: Callable[[Array], tuple[float, Array]]) -> Callable[[Array], tuple[Array, Array]]:
    """A formula of many points from one of a single point."""

    def formula(X: Array) -> tuple[Array, Array]:
        found = [single(x) for x in X]
        return np.array([value for value, _ in found]), np.array([gradient for _, gradient in found])

    return formula


def lennard_jones(instance: int) -> Problem:
    """Minus the energy of twenty atoms; the best of all is 77.177043. Pairs closer than 0.7 repel linearly.

    The first three atoms fix the frame, as in the smaller one of the judge of `auto`. An instance moves the box.
    """
    rng = np.random.default_rng([instance, 3])
    size = 2.5
    pairs = [(0.0, size), (-size, size), (0.0, size), *[(-size, size)] * (3 * _ATOMS - 9)]
    shift = rng.uniform(-0.2, 0.2, len(pairs)) * (instance > 0)
    box = Box([(low + by, high + by) for (low, high), by in zip(pairs, shift.tolist(), strict=True)])
    i, j = np.triu_indices(_ATOMS, 1)

    def energy(x: Array) -> tuple[float, Array]:
        atoms = np.zeros((_ATOMS, 3))
        atoms[1, 0], atoms[2, :2], atoms[3:] = x[0], x[1:3], x[3:].reshape(-1, 3)
        away = atoms[i] - atoms[j]
        r = np.sqrt((away**2).sum(axis=1))
        held = np.maximum(r, 0.7)
        slope = 4 * (-12 * held**-13 + 6 * held**-7)
        pulls = (slope / np.where(r > 0, r, 1.0))[:, None] * away
        forces = np.zeros_like(atoms)
        np.add.at(forces, i, pulls)
        np.add.at(forces, j, -pulls)
        total = float((4 * (held**-12 - held**-6) + slope * (r - held)).sum())
        return -total, -np.concatenate([forces[1, :1], forces[2, :2], forces[3:].ravel()])

    return Problem(f"lennard-jones-{3 * _ATOMS - 6}", box, formula=_one_by_one(energy), optimum=77.177043)


def heat(instance: int) -> Problem:
    r"""The logarithms m of 400 conductivities of a plate from 64 temperatures under four heaters, by adjoint.

    .. math:: K(m)\,u_k = q_k, \qquad
        J = \tfrac12 \sum_k |S u_k - t_k|^2 + \tfrac\beta2 |D m|^2, \qquad
        \partial J / \partial m_i = -\sum_k p_k^\top (\partial_i K) u_k + \beta (D^\top D m)_i, \quad
        K p_k = S^\top (S u_k - t_k)

    with D the differences of neighbours, and edges that conduct by the mean of their ends.
    """
    n = _PLATE * _PLATE
    cell = np.arange(n).reshape(_PLATE, _PLATE)
    edges = np.concatenate(
        [np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], 1), np.stack([cell[:-1].ravel(), cell[1:].ravel()], 1)]
    )
    rng = np.random.default_rng([instance, 4])
    place = (np.indices((_PLATE, _PLATE)).reshape(2, -1).T + 0.5) / _PLATE
    bumps = rng.uniform(0.15, 0.85, (3, 2))
    truth = 1.2 * sum(
        sign * np.exp(-((place - at) ** 2).sum(axis=1) / 0.05) for sign, at in zip((1, -1, 1), bumps, strict=True)
    )
    sensors = cell[2::5, 2::5].ravel()
    sources = np.zeros((n, 4))
    sources[[cell[3, 3], cell[3, -4], cell[-4, 3], cell[-4, -4]], range(4)] = 20.0
    differences = _incidence(edges, n)

    def solver(m: Array) -> tuple[Array, Callable[[Array], Array]]:
        conductivity = np.exp(m)
        edge = 0.5 * (conductivity[edges[:, 0]] + conductivity[edges[:, 1]])
        # The plate loses a little everywhere, so that temperatures are determined.
        matrix = differences.T @ (differences * edge[:, None]) + csr_array(np.diag(np.full(n, 0.05)))
        factor = splu(matrix.tocsc())
        return factor.solve(sources), factor.solve

    readings = solver(truth)[0][sensors] + 0.01 * rng.standard_normal((len(sensors), 4))

    def misfit(m: Array) -> tuple[float, Array]:
        u, solve = solver(m)
        error = np.zeros_like(u)
        error[sensors] = u[sensors] - readings
        p = solve(error)
        rough = differences @ m
        per_edge = ((differences @ u) * (differences @ p)).sum(axis=1)
        by_cell = np.bincount(edges.ravel(), weights=np.repeat(-0.5 * per_edge, 2), minlength=n) * np.exp(m)
        value = 0.5 * float((error**2).sum()) + 0.01 * float(rough @ rough)
        return -value, -(by_cell + 0.02 * (differences.T @ rough))

    return Problem(f"heat-{n}", Box([(-2.0, 2.0)] * n), formula=_one_by_one(misfit))


def _incidence(edges: Array, n: int) -> csr_array:
    """Differences along the edges, `edges x n`."""
    rows = np.repeat(np.arange(len(edges)), 2)
    return csr_array((np.tile([1.0, -1.0], len(edges)), (rows, edges.ravel())), shape=(len(edges), n))


def network(instance: int) -> Problem:
    """The 300 weights of a network with eight inputs, twenty hidden units and six classes: penalised log likelihood."""
    rng = np.random.default_rng([instance, 5])
    Z = rng.standard_normal((240, 8))
    teacher = np.tanh(Z @ rng.standard_normal((8, 12))) @ rng.standard_normal((12, 6))
    wanted = np.eye(6)[(teacher + 0.3 * rng.standard_normal(teacher.shape)).argmax(axis=1)]

    def loss(w: Array) -> tuple[float, Array]:
        first, bias, last = w[:160].reshape(8, 20), w[160:180], w[180:].reshape(20, 6)
        hidden = np.tanh(Z @ first + bias)
        scores = hidden @ last
        scores = scores - scores.max(axis=1, keepdims=True)
        normal = np.exp(scores).sum(axis=1, keepdims=True)
        value = float((np.log(normal[:, 0]) - (scores * wanted).sum(axis=1)).mean()) + 5e-4 * float(w @ w)
        delta = (np.exp(scores) / normal - wanted) / len(Z)
        inner = (delta @ last.T) * (1.0 - hidden**2)
        gradient = np.concatenate([(Z.T @ inner).ravel(), inner.sum(axis=0), (hidden.T @ delta).ravel()])
        return -value, -(gradient + 1e-3 * w)

    return Problem("network-300", Box([(-3.0, 3.0)] * 300), formula=_one_by_one(loss))


def penalties(instance: int) -> Problem:
    r"""Logarithms of 100 ridge penalties, one for each feature, by the held-out error and its hypergradient.

    With :math:`A = Z^\top Z + \operatorname{diag} e^h`, :math:`w = A^{-1} Z^\top y` and the adjoint
    :math:`p = A^{-1} Z_*^\top e` the gradient of :math:`|e|^2/2` is :math:`-e^h\, p\, w`.
    """
    rng = np.random.default_rng([instance, 6])
    true = rng.standard_normal(100) * (rng.random(100) < 0.2)
    Z, Z_new = rng.standard_normal((80, 100)), rng.standard_normal((80, 100))
    y, y_new = (data @ true + 0.5 * rng.standard_normal(80) for data in (Z, Z_new))

    def held_out(h: Array) -> tuple[float, Array]:
        A = Z.T @ Z + np.diag(np.exp(h))
        w = np.linalg.solve(A, Z.T @ y)
        error = Z_new @ w - y_new
        p = np.linalg.solve(A, Z_new.T @ error)
        total = float(error @ error)
        return -0.5 * np.log(total / 80), np.exp(h) * p * w / total

    return Problem("penalties-100", Box([(-4.0, 6.0)] * 100), formula=_one_by_one(held_out))


def control(instance: int) -> Problem:
    """The 120 torques that swing a pendulum up and hold it, by adjoint of 120 steps of 0.05 s; torques are limited."""
    rng = np.random.default_rng([instance, 7])
    start = np.array([np.pi + 0.2 * rng.standard_normal(), 0.0])
    gravity, damping, step = 9.8 * rng.uniform(0.9, 1.1), 0.1, 0.05

    def cost(torques: Array) -> tuple[float, Array]:
        states = np.empty((_CONTROLS + 1, 2))
        states[0] = start
        for k in range(_CONTROLS):
            angle, speed = states[k]
            speed = speed + step * (gravity * np.sin(angle) - damping * speed + torques[k])
            states[k + 1] = angle + step * speed, speed
        away = 1.0 - np.cos(states[1:, 0])
        value = step * float(away.sum() + 0.01 * (states[1:, 1] ** 2).sum() + 0.01 * (torques**2).sum())
        adjoint, gradient = np.zeros(2), 0.02 * step * torques
        for k in reversed(range(_CONTROLS)):
            adjoint = adjoint + step * np.array([np.sin(states[k + 1, 0]), 0.02 * states[k + 1, 1]])
            by_speed = adjoint[1] + step * adjoint[0]
            gradient[k] += step * by_speed
            bent = step * gravity * np.cos(states[k, 0])
            adjoint = np.array([adjoint[0] + bent * by_speed, (1.0 - step * damping) * by_speed])
        return -value, -gradient

    return Problem(f"control-{_CONTROLS}", Box([(-6.0, 6.0)] * _CONTROLS), formula=_one_by_one(cost))
