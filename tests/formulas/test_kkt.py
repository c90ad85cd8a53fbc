"""Multipliers and residuals against SciPy's solvers and against the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from eign.formulas.kkt_numpy import Limited, kkt
from eign.formulas.optimality_numpy import projected_gradient


def test_without_constraints_it_is_the_projected_gradient() -> None:
    """At corners, sides and inside."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, gradient = rng.choice([0.0, 0.3, 1.0], size=4), rng.normal(size=4)
        found = kkt(u, gradient)
        assert np.allclose(found.remainder, projected_gradient(u, gradient), atol=1e-14)
        assert found.residual == pytest.approx(np.linalg.norm(projected_gradient(u, gradient)), abs=1e-14)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 6))
def test_multipliers_are_the_signed_least_squares(seed: int, dim: int, count: int) -> None:
    """The residual is that of SciPy's bounded least squares, in any units of the constraints."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.integers(-6, 7, size=count)
    gradients, gradient = rng.normal(size=(count, dim)), rng.normal(size=dim)
    kind = rng.choice(["upper", "lower", "equal", "idle"], size=count)
    lower = np.where(kind == "lower", 0.0, np.where(kind == "equal", 0.0, -1.0))
    upper = np.where(kind == "upper", 0.0, np.where(kind == "equal", 0.0, 1.0))
    limited = Limited(np.zeros(count), units[:, None] * gradients, units * lower, units * upper, units)
    found = kkt(np.full(dim, 0.5), gradient, limited)
    least = np.where((kind == "lower") | (kind == "equal"), -np.inf, 0.0)
    most = np.where((kind == "upper") | (kind == "equal"), np.inf, 0.0)
    used = least < most
    peer = np.linalg.norm(gradient)
    if used.any():
        # Tolerances near rounding, as lsq_linear is iterative.
        solved = lsq_linear(gradients[used].T, gradient, (least[used], most[used]), tol=1e-14, lsq_solver="exact")
        peer = np.sqrt(2.0 * solved.cost)
    assert found.residual == pytest.approx(peer, abs=1e-6)
    assert (found.constraints[kind == "upper"] >= 0).all()
    assert (found.constraints[kind == "lower"] <= 0).all()
    assert (found.constraints[kind == "idle"] == 0).all()
    assert found.complementarity == 0.0


def test_multipliers_say_what_a_limit_is_worth() -> None:
    """Of the optimum of a small problem: d f / d limit by solving it again with another limit."""

    def best(limit: float) -> tuple[np.ndarray, float]:
        end = minimize(
            lambda x: (x[0] - 1) ** 2 + (x[1] - 0.8) ** 2,
            [0.3, 0.3],
            jac=lambda x: 2 * (x - np.array([1, 0.8])),
            bounds=[(0, 1)] * 2,
            constraints=[{"type": "ineq", "fun": lambda x: limit - x @ x, "jac": lambda x: -2 * x}],
            options={"ftol": 1e-15},
        )
        return end.x, -end.fun

    x, _ = best(0.5)
    limited = Limited(np.array([x @ x]), 2 * x[None], np.array([-np.inf]), np.array([0.5]), np.array([1.0]))
    found = kkt(x, -2 * (x - np.array([1, 0.8])), limited)
    assert found.residual < 1e-6
    slope = (best(0.5 + 1e-4)[1] - best(0.5 - 1e-4)[1]) / 2e-4
    assert found.constraints[0] == pytest.approx(slope, rel=1e-3)


def test_violation_and_rows() -> None:
    """A row that bars the way, and a constraint that is violated by a tenth of its scale."""
    rows = Limited(np.array([1.0]), np.array([[1.0, 1.0]]), np.array([-np.inf]), np.array([1.0]), np.array([1.0]))
    broken = Limited(np.array([2.2]), np.array([[0.0, 0.0]]), np.array([-np.inf]), np.array([2.0]), np.array([2.0]))
    found = kkt(np.array([0.5, 0.5]), np.array([3.0, 3.0]), broken, rows)
    assert found.residual == pytest.approx(0.0, abs=1e-14)
    assert found.rows.tolist() == pytest.approx([3.0])
    assert found.violation == pytest.approx(0.1)
