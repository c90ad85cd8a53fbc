import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der

from eign.numerics.lbfgs import ObjectiveValues, Stopping, minimize


def rosenbrock(x: np.ndarray, index: np.ndarray) -> ObjectiveValues:
    return ObjectiveValues(np.array([rosen(row) for row in x]), np.array([rosen_der(row) for row in x]))


def random_quadratics(batch: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(batch, dim, dim))
    return root @ root.swapaxes(1, 2) + 0.1 * np.eye(dim), rng.normal(size=(batch, dim))


def quadratic(hessian: np.ndarray, centre: np.ndarray, *, curvature: bool = False):
    def objective(x: np.ndarray, index: np.ndarray) -> ObjectiveValues:
        gradient = np.einsum("bij,bj->bi", hessian[index], x - centre[index])
        value = 0.5 * np.einsum("bi,bi->b", x - centre[index], gradient)
        return ObjectiveValues(value, gradient, hessian[index] if curvature else None)

    return objective


@pytest.mark.parametrize("curvature", [False, True])
def test_bounded_quadratics_reach_scipys_minima(curvature: bool) -> None:
    hessian, centre = random_quadratics(12, 5, seed=0)
    start = np.zeros((12, 5))
    end = minimize(
        quadratic(hessian, centre, curvature=curvature),
        start,
        lower=np.full(5, -0.5),
        upper=np.full(5, 0.7),
        stopping=Stopping(gradient=1e-10, evaluations=2000),
    )
    for b in range(12):
        theirs = scipy_minimize(
            lambda x, b=b: 0.5 * (x - centre[b]) @ hessian[b] @ (x - centre[b]),
            start[b],
            jac=lambda x, b=b: hessian[b] @ (x - centre[b]),
            bounds=[(-0.5, 0.7)] * 5,
            options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 1000},
        )
        assert end.value[b] == pytest.approx(theirs.fun, abs=1e-9)


def test_exact_curvature_needs_one_step() -> None:
    hessian, centre = random_quadratics(6, 4, seed=1)
    wide = np.full(4, 100.0)
    end = minimize(quadratic(hessian, centre, curvature=True), np.zeros((6, 4)), lower=-wide, upper=wide)
    np.testing.assert_allclose(end.x, centre, atol=1e-8)
    assert (end.evaluations <= 3).all()
    assert end.converged.all()


def test_rosenbrock_is_solved_in_about_as_many_evaluations_as_scipy_takes() -> None:
    rng = np.random.default_rng(2)
    start = rng.uniform(-1.5, 1.5, (8, 6))
    bounds = np.full(6, 2.0)
    end = minimize(rosenbrock, start, lower=-bounds, upper=bounds, stopping=Stopping(gradient=1e-7))
    theirs = [
        scipy_minimize(rosen, row, jac=rosen_der, method="L-BFGS-B", bounds=[(-2, 2)] * 6, options={"gtol": 1e-7})
        for row in start
    ]
    assert end.converged.all()
    # From some starts both end in the local minimum near (-1, 1, ..., 1), value 3.97 for six variables.
    assert np.isin(np.round(end.value, 2), [0.0, 3.97]).all()
    assert end.evaluations.mean() < 2 * np.mean([result.nfev for result in theirs])


def test_problems_do_not_influence_each_other() -> None:
    start = np.random.default_rng(3).uniform(-1, 1, (5, 4))
    bounds = np.full(4, 2.0)
    together = minimize(rosenbrock, start, lower=-bounds, upper=bounds)
    for b in range(5):
        alone = minimize(rosenbrock, start[b : b + 1], lower=-bounds, upper=bounds)
        np.testing.assert_array_equal(alone.x[0], together.x[b])
        assert alone.evaluations[0] == together.evaluations[b]


def test_finished_problems_are_not_evaluated_again() -> None:
    hessian, centre = random_quadratics(2, 3, seed=4)
    centre[0] = 0.0  # starts at its minimum
    seen: list[int] = []
    inner = quadratic(hessian, centre)

    def objective(x: np.ndarray, index: np.ndarray) -> ObjectiveValues:
        seen.extend(index)
        return inner(x, index)

    wide = np.full(3, 100.0)
    end = minimize(objective, np.zeros((2, 3)), lower=-wide, upper=wide)
    assert seen.count(0) == 1 == end.evaluations[0]
    assert seen.count(1) == end.evaluations[1] > 2


def test_steps_to_where_the_value_is_not_finite_are_shortened() -> None:
    def objective(x: np.ndarray, index: np.ndarray) -> ObjectiveValues:
        with np.errstate(all="ignore"):
            value = np.where(x[:, 0] > 0, x[:, 0] - np.log(x[:, 0]), np.nan)
            return ObjectiveValues(value, 1 - 1 / x)

    end = minimize(objective, np.array([[10.0], [0.01]]), lower=np.array(-100.0), upper=np.array(100.0))
    np.testing.assert_allclose(end.x, 1.0, atol=1e-5)


def test_a_start_without_a_finite_slope_stays_where_it_is() -> None:
    asked = []

    def objective(x, index):
        asked.append(x.copy())
        return ObjectiveValues(0.5 * (x**2).sum(-1), np.where(x > 2.0, np.nan, x))

    end = minimize(objective, np.array([[3.0], [1.0]]), lower=np.array(-5.0), upper=np.array(5.0))
    np.testing.assert_allclose(end.x, [[3.0], [0.0]], atol=1e-6)
    assert all(np.isfinite(points).all() for points in asked)


def test_a_start_outside_the_box_is_clipped_and_a_point_interval_stays() -> None:
    end = minimize(rosenbrock, np.array([[9.0, 9.0]]), lower=np.array([0.5, 0.3]), upper=np.array([2.0, 0.3]))
    assert end.x[0, 1] == 0.3
    assert 0.5 <= end.x[0, 0] <= 2.0


def test_memory_of_an_earlier_search_saves_evaluations() -> None:
    start = np.random.default_rng(5).uniform(-1, 1, (6, 8))
    bounds = np.full(8, 3.0)
    first = minimize(rosenbrock, start, lower=-bounds, upper=bounds)
    moved = first.x + 0.05
    plain = minimize(rosenbrock, moved, lower=-bounds, upper=bounds)
    carried = minimize(rosenbrock, moved, lower=-bounds, upper=bounds, memory=first.memory)
    assert carried.evaluations.sum() < plain.evaluations.sum()
    np.testing.assert_allclose(carried.value, plain.value, atol=1e-8)
