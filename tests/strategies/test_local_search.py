"""The local search: digits, bounds, pending and failed points, plain data."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, rosen, rosen_der
from scipy.stats import ortho_group

from eign.arrays import Array
from eign.data import Observations
from eign.numerics.threads import single_threaded_blas
from eign.strategies.local_search import LocalSearch, advance, begin, best_row

Function = Callable[[Array], tuple[float, Array]]


def _parabola(curvature: Array, top: Array) -> Function:
    return lambda x: (float(0.5 * (x - top) @ curvature @ (x - top)), curvature @ (x - top))


def _quadratic(d: int, condition: float) -> Function:
    turn = ortho_group.rvs(d, random_state=d)
    return _parabola(turn.T @ np.diag(condition ** np.linspace(0.0, 1.0, d)) @ turn, np.full(d, 0.6))


def _rosenbrock(x: Array) -> tuple[float, Array]:
    z = 4.0 * (x - 0.5)
    return float(rosen(z)), np.asarray(4.0 * rosen_der(z))


def _run(
    f: Function, start: Array, budget: int, around: Observations | None = None
) -> tuple[LocalSearch, Observations]:
    """Minimise f, beside what was told before; what is told is its negative."""
    search = begin(start)
    told: list[tuple[Array, float, Array]] = []
    if around is not None:
        told = list(zip(around.x, around.y, around.grad, strict=True))
    budget += len(told)
    while len(told) < budget and not search.ended:
        x = np.array(search.point)
        value, gradient = f(x)
        told.append((x, -value, -gradient))
        data = Observations(*(np.array(part) for part in zip(*told, strict=True)))
        search = advance(search, data)
    return search, data


def _lbfgsb(f: Function, start: Array, target: float) -> int:
    values: list[float] = []

    def noted(x: Array) -> tuple[float, Array]:
        value, gradient = f(x)
        values.append(value)
        return value, gradient

    tight = {"ftol": 0.0, "gtol": 0.0, "maxfun": 2000}
    minimize(  # type: ignore[call-overload]  # the stubs want one-dimensional arrays by type
        noted, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(start), options=tight
    )
    return next((number for number, value in enumerate(values, 1) if value <= target), 2000)


@pytest.mark.parametrize(
    ("f", "d"), [(_quadratic(3, 1e6), 3), (_quadratic(10, 1e6), 10), (_quadratic(60, 1e2), 60), (_rosenbrock, 4)]
)
def test_nine_digits_in_no_more_evaluations_than_lbfgsb(f: Function, d: int) -> None:
    start = np.linspace(0.1, 0.9, d)
    target = 1e-9 * f(start)[0]
    search, data = _run(f, start, 200)
    needed = int(np.argmax(-data.y <= target)) + 1
    assert (-data.y).min() <= target
    assert needed <= _lbfgsb(f, start, target)
    assert search.ended
    assert best_row(search, data) == int(data.y.argmax())


def test_promises_are_in_the_units_of_y() -> None:
    # Of a parabola that BFGS knows exactly after one step along each of two axes, what is promised is what comes.
    search, data = _run(lambda x: (50.0 * float((x - 0.5) @ (x - 0.5)), 100.0 * (x - 0.5)), np.full(2, 0.1), 2)
    gain = -50.0 * float((np.array(search.point) - 0.5) @ (np.array(search.point) - 0.5)) - data.y.max()
    assert search.promise == pytest.approx(gain, rel=1e-6)


def test_an_optimum_on_the_border_is_found_exactly_there() -> None:
    top, weights = np.array([-0.3, 0.4, 1.2]), np.array([1.0, 30.0, 1000.0])
    search, data = _run(lambda x: (float(weights @ (x - top) ** 2), 2.0 * weights * (x - top)), np.full(3, 0.5), 40)
    np.testing.assert_allclose(data.x[data.y.argmax()], [0.0, 0.4, 1.0], atol=1e-7)
    assert search.ended
    assert (data.x >= 0.0).all()
    assert (data.x <= 1.0).all()


def test_a_narrow_valley_beside_a_bound_is_followed_to_its_end() -> None:
    # Clipped at the bound, a step across a valley of condition 1e6 leads up its side: the search used to end there.
    turn = ortho_group.rvs(5, random_state=1)
    curvature = turn.T @ np.diag([1e6, 1.0, 1.0, 1.0, 1.0]) @ turn
    top = np.array([0.4, 0.05, 0.25, 0.4, 0.001])
    f = _parabola(curvature, top)
    start = np.array([0.3, 0.6, 0.1, 0.7, 0.3])
    _, data = _run(f, start, 60)
    assert (-data.y).min() < 1e-9 * f(start)[0]


@pytest.mark.parametrize("d", [4, 30])
def test_an_optimum_at_bounds_of_a_coupled_function_is_found(d: int) -> None:
    # With its top outside of the box in half of the coordinates; what is best within it says SciPy.
    rng = np.random.default_rng(d)
    root = rng.normal(size=(2 * d, d)) * np.logspace(0, 1.5, d)
    top = rng.uniform(0.1, 0.9, d) + rng.choice([0.0, -0.5, 0.5], d)
    f = _parabola(root.T @ root, top)
    inside = lsq_linear(root, root @ top, bounds=(0.0, 1.0), method="bvls", tol=1e-14)
    _, data = _run(f, np.full(d, 0.5), 40 + 5 * d)
    start = f(np.full(d, 0.5))[0]
    assert ((inside.x == 0.0) | (inside.x == 1.0)).sum() >= d // 4
    assert (-data.y).min() - f(inside.x)[0] < 1e-9 * (start - f(inside.x)[0])


def test_gradients_around_the_start_show_the_curvature() -> None:
    f = _parabola(np.diag([1.0, 1e4]), np.array([0.4, 0.6]))
    corners = np.array([[0.3, 0.5], [0.5, 0.5], [0.3, 0.7], [0.5, 0.7]])
    values, gradients = zip(*(f(x) for x in corners), strict=True)
    around = Observations(corners, -np.array(values), -np.array(gradients))
    start = np.array([0.9, 0.61])
    _, alone = _run(f, start, 6)
    _, data = _run(f, start, 3, around)
    # With secants along both axes the second step is next to the optimum; without them it takes seven.
    assert (-data.y[4:]).min() < 1e-6 * f(start)[0]
    assert (-alone.y).min() > 1e-3 * f(start)[0]


def test_it_is_plain_data_that_goes_on_from_json_as_it_would_have() -> None:
    f = _quadratic(5, 100.0)
    search, data = _run(f, np.full(5, 0.2), 6)
    again = LocalSearch.from_json(json.loads(json.dumps(search.to_json())))
    assert again == search
    assert advance(again, data) == search  # its point is not told yet: it waits
    assert search.promise > 0.0
    assert LocalSearch.from_json(json.loads(json.dumps(begin(np.zeros(2)).to_json()))) == begin(np.zeros(2))


def test_points_that_others_told_are_used_without_asking() -> None:
    f = _quadratic(2, 10.0)
    _, data = _run(f, np.full(2, 0.1), 5)
    search = advance(begin(np.full(2, 0.1)), data)
    assert search.rows == (0,)
    # What they say is part of the model: the step is another one than that of a search which knows its start alone.
    assert search.point != advance(begin(np.full(2, 0.1)), data[:1]).point


def test_a_failed_trial_makes_the_next_step_shorter() -> None:
    f = _quadratic(3, 10.0)
    search, data = _run(f, np.full(3, 0.1), 3)
    failed = data.followed_by(Observations(np.array([search.point]), [np.nan], np.full((1, 3), np.nan)))
    after = advance(search, failed)
    center = data.x[data.y.argmax()]
    assert not after.ended
    assert np.linalg.norm(after.point - center) < 0.5 * np.linalg.norm(search.point - center)


@pytest.mark.parametrize("gradient", [[np.nan, 1.0], [0.0, 0.0]])
def test_without_a_gradient_or_slope_it_ends(gradient: list[float]) -> None:
    data = Observations([[0.5, 0.5]], [1.0], [gradient])
    assert advance(begin(np.full(2, 0.5)), data).ended
    assert best_row(replace(begin(np.full(2, 0.5)), rows=()), data) is None


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_of_the_function_do_not_matter(size: float) -> None:
    plain, scaled = (
        _run(lambda x, u=unit: tuple(u * part for part in _quadratic(3, 50.0)(x)), np.full(3, 0.2), 12)[1]  # type: ignore[misc]
        for unit in (1.0, size)
    )
    np.testing.assert_allclose(scaled.x[:4], plain.x[:4], atol=1e-6)
    assert (-scaled.y).min() <= 1e-9 * size


@pytest.mark.parametrize("seed", range(5))
def test_it_ends_where_values_scatter_by_more_than_slopes_explain(seed):
    """It used to halve its steps down to rounding among values of noise."""
    rng = np.random.default_rng(seed)

    def noisy(x: np.ndarray) -> tuple[float, np.ndarray]:
        away = x - 0.4
        return float(-away @ away + 1e-3 * rng.normal()), -2.0 * away + 1e-2 * rng.normal(size=3)

    search, told = begin(np.array([0.9, 0.1, 0.6])), []
    data = Observations(np.empty((0, 3)), np.empty(0), np.empty((0, 3)))
    while not search.ended and len(data) < 60:
        told.append((np.array(search.point), *noisy(np.array(search.point))))
        x, y, grad = (np.array(column) for column in zip(*told, strict=True))
        data = Observations(x, y, grad)
        search = advance(search, data)
    assert search.ended
    assert len(data) < 25
    # It is there by then, up to what noise of 1e-3 hides.
    assert np.abs(data.x[data.y.argmax()] - 0.4).max() < 0.1


def test_it_does_not_end_on_a_slope_because_its_step_leads_to_a_known_point():
    """First steps of `auto` are as long as the way to the nearest point, so that they often lead exactly there."""
    steepest = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        waves, shifts = rng.uniform(3.0, 15.0, 4), rng.uniform(0.0, 2.0 * np.pi, 4)
        told = Observations(*_waves(rng.random((12, 1)), waves, shifts))
        start = told.x[np.sort(np.abs(told.x - told.x.T), axis=1)[:, 1].argmax()]
        nearest_one = np.sort(np.abs(told.x - start)[:, 0])[1]
        search = advance(begin(start, step=nearest_one), told)
        while not search.ended and len(told) < 60:
            told = told.followed_by(Observations(*_waves(np.array([search.point]), waves, shifts)))
            search = advance(search, told)
        row = best_row(search, told)
        assert search.ended
        is_inside = 0.0 < told.x[row, 0] < 1.0
        steepest.append(np.abs(told.grad[row, 0]) if is_inside else 0.0)
    assert np.max(steepest) < 1e-5


def _waves(x: Array, waves: Array, shifts: Array) -> tuple[Array, Array, Array]:
    phases = waves * x + shifts
    return x, np.sin(phases).sum(axis=1), (waves * np.cos(phases)).sum(axis=1, keepdims=True)


def _atoms(x: Array) -> tuple[float, Array]:
    """Energy of atoms that attract each other and cannot pass through each other, and its gradient."""
    place = 6.0 * x.reshape(-1, 3)
    away = place[:, None] - place[None]
    square = (away**2).sum(axis=2) + np.eye(len(place)) + 0.05
    off = 1.0 - np.eye(len(place))
    slope = 4.0 * (-6.0 * square**-7 + 3.0 * square**-4) * off
    energy = 2.0 * ((square**-6 - square**-3) * off).sum()
    return float(energy), 6.0 * 2.0 * (slope[:, :, None] * away).sum(axis=1).ravel()


@pytest.mark.parametrize("seed", [0, 2, 5, 9, 11, 13])
def test_a_step_across_a_wall_is_neither_the_end_nor_a_curvature(seed: int) -> None:
    """From these starts it ended after two evaluations, or crept with the curvature of a wall."""
    with single_threaded_blas():
        search, data = _run(_atoms, np.random.default_rng(seed).uniform(0.2, 0.8, 15), 150)
    assert search.ended
    assert np.abs(data.grad[data.y.argmax()]).max() < 1e-3


def _terrace(x: Array) -> tuple[float, Array]:
    """Down along a gentle slope to a steep wall, behind which it is fifty higher and as gentle."""
    wall = 1.0 / (1.0 + np.exp(np.clip((0.5 - x[0]) / 1e-4, -500.0, 500.0)))
    value = -x[0] + (x[1] - 0.5) ** 2 + 50.0 * wall
    return float(value), np.array([-1.0 + 50.0 * wall * (1.0 - wall) / 1e-4, 2.0 * (x[1] - 0.5)])


def test_one_step_across_a_wall_is_no_scatter() -> None:
    """The value jumps by far more than the slopes at both ends explain, as noise does; but the next step is shorter."""
    _, data = _run(_terrace, np.array([0.3, 0.4]), 40)
    assert data.y.min() < -40.0, "a step has led across the wall"
    assert 0.48 < data.x[data.y.argmax(), 0] < 0.5
