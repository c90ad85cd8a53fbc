"""Gradients against finite differences, for every problem, every wrapper and points that hypothesis picks."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eign import problems

# Central differences of sixth order: offsets in steps, weights of f(x + k h) - f(x - k h).
WEIGHTS = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
STEP = 1e-4
SEEDS = st.integers(0, 2**32)


def ackley_kink(x):
    return np.linalg.norm(x)


def holder_kink(x):
    to_sine = np.abs(x[0] - np.pi * np.round(x[0] / np.pi))
    to_cosine = np.abs(x[1] - np.pi * (np.round(x[1] / np.pi - 0.5) + 0.5))
    return min(to_sine, to_cosine, abs(np.hypot(*x) - np.pi), np.hypot(*x))


def wedge_kink(x):
    return np.abs(x - 0.5).min()


# The gradient of policy search is an estimate; test_control.py is about it.
NAMES = [name for name in problems.names() if not name.startswith(("acrobot", "cartpole"))]
KINKS = {"ackley-14": ackley_kink, "holder-table-2": holder_kink, "g-sobol-10": wedge_kink}


def assert_gradient_is_the_slope(problem, x, *, size=1.0):
    """The tolerance follows the gradient nearby, and the rounding of f, or of its terms up to `size`, over the step."""
    width = problem.bounds.upper - problem.bounds.lower
    steps = STEP * np.diag(width)
    slopes, scale = np.zeros(problem.dim), np.zeros(problem.dim)
    for k, weight in WEIGHTS.items():
        (ahead, grad_ahead), (behind, grad_behind) = problem.formula(x + k * steps), problem.formula(x - k * steps)
        slopes += weight * (ahead - behind) / (STEP * width)
        scale = np.maximum(scale, np.abs(grad_ahead).max(axis=0) + np.abs(grad_behind).max(axis=0))
    value, gradient = problem(x)
    assert (np.abs(gradient - slopes) <= 1e-7 * scale + 1e-10 * (size + abs(value)) / width).all()


@st.composite
def points(draw, problem):
    unit = draw(st.lists(st.floats(0, 1), min_size=problem.dim, max_size=problem.dim))
    return problem.bounds.from_unit(unit)


def smooth(problem, x, kink):
    """Whether the kink is far enough for differences: the error falls with the sixth power of step / distance."""
    return kink is None or kink(x) > 30 * STEP * (problem.bounds.upper - problem.bounds.lower).max()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_the_gradient_is_the_slope(name, data):
    problem = problems.get(name)
    x = data.draw(points(problem))
    assume(smooth(problem, x, KINKS.get(name)))
    assert_gradient_is_the_slope(problem, x)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_the_gradient_is_the_slope_at_the_corners(name, data):
    problem = problems.get(name)
    corner = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=problem.dim, max_size=problem.dim))
    x = problem.bounds.from_unit(corner)
    assert_gradient_is_the_slope(problem, x)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_nothing_exceeds_the_optimum_and_all_is_finite(name, data):
    problem = problems.get(name)
    value, gradient = problem(data.draw(points(problem)))
    assert value <= problem.optimum + 1e-12
    assert np.isfinite(gradient).all()


@st.composite
def moved(draw, problem):
    """A chain of wrappers that move the problem, in any order."""
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["shift", "rotate", "mirror", "scale"]))
        if kind == "shift":
            problem = problems.shifted(problem, seed=draw(SEEDS))
        elif kind == "rotate":
            problem = problems.rotated(problem, seed=draw(SEEDS))
        elif kind == "mirror":
            problem = problems.mirrored(problem, draw(st.sets(st.integers(0, problem.dim - 1))))
        else:
            factors = [10.0 ** draw(st.integers(-3, 3)) for _ in range(problem.dim)]
            problem = problems.scaled(
                problem, factors, output=10.0 ** draw(st.integers(-3, 3)), offset=draw(st.floats(-3, 3))
            )
    return problem


@pytest.mark.parametrize("name", ["branin-2", "hartmann-3", "michalewicz-2", "styblinski-tang-3", "mixture-1"])
@given(data=st.data())
def test_moved_problems_keep_every_promise(name, data):
    problem = data.draw(moved(problems.get(name)))
    unit = np.random.default_rng(data.draw(SEEDS)).random((200, problem.dim))
    values, gradients = problem.evaluate(problem.bounds.from_unit(unit))
    span = 1e-12 * (1 + np.abs(values).max())
    assert np.isfinite(gradients).all()
    if problem.optimum is not None:
        assert problem.bounds.contains(problem.optimizers).all()
        attained, _ = problem.evaluate(problem.optimizers)
        np.testing.assert_allclose(attained, problem.optimum, rtol=0, atol=100 * span)
        assert values.max() <= problem.optimum + span


@pytest.mark.parametrize("name", ["branin-2", "hartmann-3", "powell-4", "levy-3", "mixture-1"])
@given(data=st.data())
def test_the_gradient_of_a_moved_problem_is_its_slope(name, data):
    problem = data.draw(moved(problems.get(name)))
    size = np.abs(
        problem.evaluate(problem.bounds.from_unit(np.random.default_rng(0).random((50, problem.dim))))[0]
    ).max()
    assert_gradient_is_the_slope(problem, data.draw(points(problem)), size=size)


@given(x=st.lists(st.floats(0, 1), min_size=3, max_size=3), seed=SEEDS, number=st.integers(0, 100))
def test_noise_is_a_function_of_seed_and_point(x, seed, number):
    exact = problems.get("hartmann-3")
    problem = problems.noisy(exact, value_std=0.1, grad_std=0.2, seed=(seed, number))
    value, gradient = problem(x)
    assert (value, gradient.tolist()) == (problem(x)[0], problem(x)[1].tolist())
    among_others = problem.evaluate([[0.5, 0.5, 0.5], x])
    np.testing.assert_allclose(among_others[0][1], value, rtol=1e-13)
    other = problems.noisy(exact, value_std=0.1, grad_std=0.2, seed=(seed, number + 1))
    assert value != other(x)[0]
