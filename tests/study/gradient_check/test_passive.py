import numpy as np
import pytest

from eign import problems
from eign.data import Observations
from eign.strategies.design import design_point
from eign.study.gradient_check.passive import likely_fault


def bowl(x):
    """Smooth and coupled, with partial derivatives of different size."""
    value = (x[0] - 0.2) ** 2 + 3 * (x[1] - 0.7) ** 2 + x[0] * x[2] + np.sin(2 * x[2])
    return value, np.array([2 * (x[0] - 0.2) + x[2], 6 * (x[1] - 0.7), x[0] + 2 * np.cos(2 * x[2])])


def data(change=lambda grad: grad, count: int = 15, function=bowl) -> Observations:
    points = [design_point(0, 3, index) for index in range(count)]
    answers = [function(point) for point in points]
    return Observations(points, [value for value, _ in answers], [change(grad) for _, grad in answers])


def fault(observations: Observations, widths=1.0):
    return likely_fault(observations, np.broadcast_to(widths, observations.x.shape))


def test_correct_gradients_give_no_finding():
    assert fault(data()) is None


@pytest.mark.parametrize("i", [0, 1, 2])
def test_a_wrong_sign_is_found_and_named(i):
    found = fault(data(lambda grad: np.where(np.arange(3) == i, -grad, grad)))
    assert (found.kind, found.coordinates) == ("sign", (i,))
    assert found.factor == pytest.approx(-1.0, abs=0.3)


def test_all_signs():
    found = fault(data(lambda grad: -grad))
    assert (found.kind, found.coordinates) == ("sign", ())


@pytest.mark.parametrize("factor", [2.0, 0.5])
@pytest.mark.parametrize("i", [1, 2])
def test_a_factor_is_found_and_named(factor, i):
    found = fault(data(lambda grad: np.where(np.arange(3) == i, factor * grad, grad)))
    assert (found.kind, found.coordinates) == ("factor", (i,))
    assert found.factor == pytest.approx(1.0 / factor, rel=0.2)


@pytest.mark.parametrize("widths", [np.ones(3), np.array([1.0, 8.0, 1.0])])
def test_coordinates_swapped_in_user_units_are_found_and_named(widths):
    found = fault(data(lambda grad: (grad / widths)[[1, 0, 2]] * widths), widths)
    assert (found.kind, found.coordinates) == ("swap", (0, 1))


@pytest.mark.parametrize(
    "nothing",
    [
        Observations.empty(3),
        data(count=3),
        Observations(np.eye(3), [1.0, 2.0, 3.0]),
        data(function=lambda x: (1.0, np.zeros(3))),
        data(function=lambda x: (x[0], np.array([1.0, 0.0, 0.0]))),
        Observations(np.full((8, 3), 0.5), np.arange(8.0), np.arange(24.0).reshape(8, 3)),
    ],
    ids=["empty", "few", "no gradients", "constant", "linear", "one point again and again"],
)
def test_nothing_to_say(nothing):
    assert fault(nothing) is None


def test_a_linear_function_with_a_wrong_sign_is_found():
    found = fault(data(function=lambda x: (x[0] + 2 * x[1] + 3 * x[2], np.array([1.0, -2.0, 3.0]))))
    assert (found.kind, found.coordinates) == ("sign", (1,))


def test_known_noise_is_no_contradiction():
    rng = np.random.default_rng(0)
    clean = data()
    noisy = Observations(
        clean.x, clean.y + rng.normal(0, 0.5, 15), clean.grad + rng.normal(0, 2, (15, 3)), y_var=0.25, grad_var=4.0
    )
    assert fault(noisy) is None


def test_rough_functions_raise_no_alarm():
    """What the points cannot follow must not count against the gradients."""
    for name in ("rastrigin-6", "michalewicz-5", "griewank-10"):
        problem = problems.get(name)
        unit = np.array([design_point(1, problem.dim, index) for index in range(5 * problem.dim)])
        x = problem.bounds.from_unit(unit)
        y, grad = problem.evaluate(x)
        assert fault(Observations(unit, y, problem.bounds.times_unit_scale(grad, x))) is None
