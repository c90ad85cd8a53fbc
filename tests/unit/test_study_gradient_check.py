import warnings

import numpy as np
import pytest

from eign import problems
from eign.data import Observations
from eign.strategies.design import design_point
from eign.study import GradientWarning, Optimizer
from eign.study.gradient_check import check_gradients, is_due


def bowl(x):
    """Smooth and coupled, with partial derivatives of different size."""
    value = (x[0] - 0.2) ** 2 + 3 * (x[1] - 0.7) ** 2 + x[0] * x[2] + np.sin(2 * x[2])
    return value, np.array([2 * (x[0] - 0.2) + x[2], 6 * (x[1] - 0.7), x[0] + 2 * np.cos(2 * x[2])])


def data(change=lambda grad: grad, count: int = 15, function=bowl) -> Observations:
    points = [design_point(0, 3, index) for index in range(count)]
    answers = [function(point) for point in points]
    return Observations(points, [value for value, _ in answers], [change(grad) for _, grad in answers])


def test_correct_gradients_give_no_finding():
    assert check_gradients(data()) is None


@pytest.mark.parametrize("i", [0, 1, 2])
def test_a_wrong_sign_is_found_and_named(i):
    finding = check_gradients(data(lambda grad: np.where(np.arange(3) == i, -grad, grad)))
    assert (finding.kind, finding.coordinates) == ("sign", (i,))
    assert finding.factor == pytest.approx(-1.0, abs=0.3)
    assert finding.message(["'a'", "'b'", "'c'"]).startswith(f"the partial derivative by '{'abc'[i]}' seems to have")


def test_all_signs():
    finding = check_gradients(data(lambda grad: -grad))
    assert (finding.kind, finding.coordinates) == ("sign", ())
    assert finding.message(["a", "b", "c"]).startswith("the gradient seems to have the wrong sign")


@pytest.mark.parametrize(
    ("factor", "text"), [(2.0, "too large by a factor of about 2"), (0.5, "too small by a factor")]
)
@pytest.mark.parametrize("i", [1, 2])
def test_a_factor_is_found_and_named(factor, text, i):
    finding = check_gradients(data(lambda grad: np.where(np.arange(3) == i, factor * grad, grad)))
    assert (finding.kind, finding.coordinates) == ("factor", (i,))
    assert finding.factor == pytest.approx(1.0 / factor, rel=0.2)
    assert text in finding.message(["a", "b", "c"])


def test_swapped_coordinates_are_found_and_named():
    finding = check_gradients(data(lambda grad: grad[[1, 0, 2]]))
    assert (finding.kind, finding.coordinates) == ("swap", (0, 1))
    assert finding.message(["a", "b", "c"]).startswith("the partial derivatives by a and by b seem to be swapped")


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
    assert check_gradients(nothing) is None


def test_a_linear_function_with_a_wrong_sign_is_found():
    wrong = data(function=lambda x: (x[0] + 2 * x[1] + 3 * x[2], np.array([1.0, -2.0, 3.0])))
    finding = check_gradients(wrong)
    assert (finding.kind, finding.coordinates) == ("sign", (1,))


def test_known_noise_is_no_contradiction():
    rng = np.random.default_rng(0)
    clean = data()
    noisy = Observations(
        clean.x, clean.y + rng.normal(0, 0.5, 15), clean.grad + rng.normal(0, 2, (15, 3)), y_var=0.25, grad_var=4.0
    )
    assert check_gradients(noisy) is None


def test_rough_functions_raise_no_alarm():
    """What the points cannot follow must not count against the gradients."""
    for name in ("rastrigin-6", "michalewicz-5", "griewank-10"):
        problem = problems.get(name)
        unit = np.array([design_point(1, problem.dim, index) for index in range(5 * problem.dim)])
        x = problem.bounds.from_unit(unit)
        y, grad = problem.evaluate(x)
        assert check_gradients(Observations(unit, y, problem.bounds.times_unit_scale(grad, x))) is None


def test_when_it_looks():
    assert [n for n in range(100) if is_due(n, 1)] == [4, 5, 8, 12]
    assert [n for n in range(100) if is_due(n, 2)] == [6, 8, 10, 16, 24]


def test_the_optimizer_warns_once_and_names_the_coordinate():
    opt = Optimizer({"a": (0, 1), "fixed": (2, 2), "b": (0, 1), "c": (0, 1)}, method="sobol", seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            x = opt.ask()
            value, grad = bowl(x[[0, 2, 3]])
            opt.tell(x, value, [grad[0], 0.0, -grad[1], grad[2]])
    assert [warning.category for warning in caught] == [GradientWarning]
    assert "the partial derivative by 'b' seems to have the wrong sign" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_many_points_told_at_once_are_checked():
    opt = Optimizer([(0, 1)] * 3, method="sobol", seed=0)
    wrong = data(lambda grad: -grad, count=40)
    with pytest.warns(GradientWarning, match="the gradient seems"):
        opt.tell(wrong.x, wrong.y, wrong.grad)
