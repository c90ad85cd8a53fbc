"""Every registered problem passes one suite; the registry and the border say what is wrong."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

from eign import problems
from eign.problems import Problem
from eign.problems.catalogue import michalewicz_maximiser
from eign.problems.registry import FAMILIES
from eign.space import Box

OTHER_DIMENSIONS = [f"{family.name}-{d}" for family in FAMILIES.values() for d in family.dims[:3]]
ALL = sorted({*problems.names(), *OTHER_DIMENSIONS})
POLICY_SEARCH = ["acrobot-6", "acrobot-ending-6", "cartpole-13", "cartpole-fixed-13"]
SOLVED = [name for name in ALL if name not in POLICY_SEARCH]
PAPER = {
    "shekel-4": (0, 10, 10.536443),
    "hartmann-6": (0, 1, 3.322368),
    "cosine-8": (-1, 1, 0.8),
    "griewank-10": (-10, 10, 0.0),
    "ackley-14": (-5, 5, 0.0),
    "holder-table-2": (-10, 10, 19.208503),
    "mixture-1": (0, 1, 0.957500),
}


def rows(problem, n=500, seed=0):
    return problem.bounds.from_unit(np.random.default_rng(seed).random((n, problem.dim)))


def rounding(problem):
    """Below four dimensions the weights of a GP sample, 2e5 in sum of magnitudes, cancel; all else has its digits."""
    return 1000.0 if problem.name in ("gp-sample-1", "gp-sample-2", "gp-sample-3") else 1.0


@pytest.mark.parametrize("name", ALL)
class TestConformance:
    def test_the_statement_is_complete(self, name):
        problem = problems.get(name)
        assert problem.name == name
        assert problem.dim == problem.bounds.dim == int(name.rpartition("-")[2])
        assert problem.summary
        assert not problem.summary.endswith((".", ","))
        if name in problems.names():
            assert problems.summaries()[name] == problem.summary

    def test_an_observation_is_the_evaluation_with_variances(self, name):
        problem = problems.get(name)
        x = rows(problem, 1)[0]
        value, gradient = problem(x)
        measured = problem.observe(x)
        assert measured.y == value
        np.testing.assert_array_equal(measured.grad, gradient)
        assert measured.grad_var.shape == (problem.dim,)
        assert (measured.y_var > 0) == problem.noisy

    def test_many_points_at_once_are_the_points_one_by_one(self, name):
        problem = problems.get(name)
        X = rows(problem, 7)
        values, gradients = problem.evaluate(X)
        assert values.shape == (7,)
        assert gradients.shape == (7, problem.dim)
        for x, value, gradient in zip(X, values, gradients, strict=True):
            one_value, one_gradient = problem(x)
            assert isinstance(one_value, float)
            tolerance = 1e-13 * rounding(problem)
            assert one_value == pytest.approx(value, rel=tolerance, abs=tolerance)
            np.testing.assert_allclose(one_gradient, gradient, rtol=tolerance, atol=tolerance * np.abs(gradient).max())

    def test_no_point_is_a_batch_too(self, name):
        problem = problems.get(name)
        values, gradients = problem.evaluate(np.empty((0, problem.dim)))
        assert values.shape == (0,)
        assert gradients.shape == (0, problem.dim)

    def test_the_points_given_are_left_alone(self, name):
        problem = problems.get(name)
        X = rows(problem, 3)
        before = X.copy()
        problem.evaluate(X)
        np.testing.assert_array_equal(X, before)

    def test_it_travels_to_other_processes(self, name):
        problem = problems.get(name)
        copy = pickle.loads(pickle.dumps(problem))
        X = rows(problem, 3)
        for mine, theirs in zip(problem.evaluate(X), copy.evaluate(X), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert (copy.name, copy.bounds, copy.optimum) == (problem.name, problem.bounds, problem.optimum)

    def test_bad_points_are_named(self, name):
        problem = problems.get(name)
        d, outside = problem.dim, problem.bounds.upper + 1.0
        with pytest.raises(ValueError, match=rf"{name}: x has shape \({d + 1},\), expected \({d},\)"):
            problem(np.zeros(d + 1))
        with pytest.raises(ValueError, match=r"many points at once: evaluate"):
            problem(np.zeros((1, d)))
        with pytest.raises(ValueError, match=rf"X has shape \({d},\), expected \(n, {d}\)"):
            problem.evaluate(np.zeros(d))
        with pytest.raises(ValueError, match=r"outside the box: .* for coordinate 0"):
            problem(outside)
        with pytest.raises(ValueError, match="outside the box: nan"):
            problem.evaluate(np.full((1, d), np.nan))
        with pytest.raises(TypeError, match="x: expected real numbers"):
            problem(["a"] * d)


@pytest.mark.parametrize("name", SOLVED)
class TestKnownOptimum:
    def test_nothing_is_random_and_optimizers_are_read_only(self, name):
        problem = problems.get(name)
        assert not problem.noisy
        assert (problem.grad_var == 0).all()
        with pytest.raises(ValueError, match="read-only"):
            problem.optimizers[0] = 0.0

    def test_the_optimum_is_attained_where_it_is_said_to_be(self, name):
        problem = problems.get(name)
        values, gradients = problem.evaluate(problem.optimizers)
        np.testing.assert_allclose(values, problem.optimum, rtol=0, atol=1e-12)
        # Only GP samples have maximisers on the border, where the slope points out of the box. The mixture is curved by
        # 1e4, so its last digit weighs 1e-12.
        outward = (problem.optimizers >= problem.bounds.upper) * 1.0 - (problem.optimizers <= problem.bounds.lower)
        assert (gradients * outward >= 0).all()
        np.testing.assert_allclose(np.where(outward == 0, gradients, 0.0), 0.0, rtol=0, atol=1e-11 * rounding(problem))

    def test_the_optimizers_differ(self, name):
        optimizers = problems.get(name).optimizers
        assert len(np.unique(optimizers, axis=0)) == len(optimizers)

    def test_no_climb_ends_above_the_optimum(self, name):
        """From each of the best random points, a monotone gradient ascent."""
        problem = problems.get(name)
        X = rows(problem, 4000)
        X = X[np.argsort(-problem.evaluate(X)[0])[:20]]
        step = np.full(len(X), 0.1)
        values, gradients = problem.evaluate(X)
        for _ in range(200):
            norms = np.linalg.norm(gradients, axis=1, keepdims=True)
            directions = gradients / np.where(norms > 0, norms, 1.0)
            trial = np.clip(X + step[:, None] * directions, problem.bounds.lower, problem.bounds.upper)
            trial_values, trial_gradients = problem.evaluate(trial)
            better = trial_values > values
            X, values = np.where(better[:, None], trial, X), np.where(better, trial_values, values)
            gradients = np.where(better[:, None], trial_gradients, gradients)
            step = np.where(better, 1.5, 0.5) * step
        assert values.max() <= problem.optimum + 1e-12 * rounding(problem)

    def test_nothing_exceeds_the_optimum_in_the_region(self, name):
        problem = problems.get(name)
        lowest, highest = problem.optimum_region
        width = problem.bounds.upper - problem.bounds.lower
        for widths in (1, 30):
            low = np.maximum(lowest, problem.bounds.lower - widths * width)
            high = np.minimum(highest, problem.bounds.upper + widths * width)
            X = low + (high - low) * np.random.default_rng(1).random((4000, problem.dim))
            assert problem.formula(X)[0].max() <= problem.optimum + 1e-12


@pytest.mark.parametrize(("name", "setting"), PAPER.items())
def test_the_settings_of_the_paper_are_reachable(name, setting):
    low, high, optimum = setting
    problem = problems.get(name)
    assert name in problems.names()
    assert problem.bounds == Box([(low, high)] * problem.dim)
    assert problem.optimum == pytest.approx(optimum, abs=1e-6)


def test_a_name_may_leave_the_dimension_out_or_give_it_apart():
    assert problems.get("hartmann").name == "hartmann-6"
    assert problems.get("holder-table").name == "holder-table-2"
    assert problems.get("holder-2").name == problems.get("holder").name == "holder-table-2"
    assert problems.get("ackley", d=3).name == problems.get("ackley-3").name == "ackley-3"
    assert problems.get("ackley-3", d=3).dim == 3
    assert problems.get("ackley", d=np.int64(3)).dim == 3


def test_names_are_sorted_and_differ():
    assert problems.names() == sorted(set(problems.names()))


@pytest.mark.parametrize("name", ["akley-14", "ackley-", "ackley-x", "ackley--3", "14", "", "Ackley"])
def test_an_unknown_name_lists_the_names(name):
    with pytest.raises(ValueError, match=rf"there is no problem '{name}'[.;].* Known: ackley-14, acrobot-6, .*d=3"):
        problems.get(name)


@pytest.mark.parametrize(
    ("name", "d", "allowed"),
    [
        ("powell", 6, "d = 4, 8, 12, ..."),
        ("hartmann", 4, "d = 3, 6"),
        ("shekel", 5, "d = 4"),
        ("rosenbrock", 1, "d = 2, 3, 4, ..."),
        ("ackley", 0, "d = 1, 2, 3, ..."),
        ("gp-sample", 21, "d = 1, 2, 3, ..."),
        ("acrobot", 7, "d = 6"),
    ],
)
def test_a_wrong_dimension_says_what_is_allowed(name, d, allowed):
    message = re.escape(f"{name} has no dimension {d}; allowed: {allowed}") + "$"
    with pytest.raises(ValueError, match=message):
        problems.get(name, d=d)
    with pytest.raises(ValueError, match=message):
        problems.get(f"{name}-{d}")


def test_two_dimensions_or_no_name_are_refused():
    with pytest.raises(ValueError, match=r"'ackley-14' has its dimension in the name, got d = 3 too"):
        problems.get("ackley-14", d=3)
    with pytest.raises(TypeError, match="expected the name of a problem"):
        problems.get(14)
    with pytest.raises(TypeError, match="integer"):
        problems.get("ackley", d=2.5)


def test_a_seed_is_for_what_is_random():
    with pytest.raises(ValueError, match=r"'ackley-14' is not random, got seed = 3; leave it out"):
        problems.get("ackley-14", seed=3)
    with pytest.raises(ValueError, match="seed: expected an integer >= 0, got -1"):
        problems.get("acrobot", seed=-1)
    with pytest.raises(TypeError, match="integer"):
        problems.get("gp-sample-7", seed=1.5)


def test_a_statement_that_contradicts_itself_is_refused():
    box, formula = Box([(0, 1)] * 2), problems.get("levy-2").formula
    with pytest.raises(ValueError, match="mine: optimizers without an optimum"):
        Problem("mine", box, formula=formula, optimizers=[[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"mine: optimizers has shape \(2,\), expected \(n, 2\)"):
        Problem("mine", box, formula=formula, optimum=1.0, optimizers=[0.5, 0.5])
    with pytest.raises(ValueError, match="outside the box"):
        Problem("mine", box, formula=formula, optimum=1.0, optimizers=[[0.5, 1.5]])


def test_kinks_have_a_finite_generalised_gradient():
    value, gradient = problems.get("ackley-14")(np.zeros(14))
    assert value == 0.0
    assert (gradient == 0.0).all()
    holder = problems.get("holder-table")
    # On the lines sin x1 = 0 and cos x2 = 0, on the circle r = pi, at the centre. The gradient lies between those on
    # either side of the kink.
    for x, across in [([0, 1], [1, 0]), ([1, np.pi / 2], [0, 1]), ([0, np.pi], [1, 0]), ([0, 0], [1, 1])]:
        gradient = holder(x)[1]
        before, after = (holder(np.array(x) + 1e-9 * sign * np.array(across))[1] for sign in (-1, 1))
        assert np.isfinite(gradient).all()
        assert (gradient >= np.minimum(before, after) - 1e-6).all()
        assert (gradient <= np.maximum(before, after) + 1e-6).all()


def test_digits_survive_next_to_the_optimum():
    """Textbook forms end in 1 - 1 here; to first order, these functions fall by known amounts."""
    tiny = 1e-9
    assert problems.get("ackley-1")([tiny])[0] == pytest.approx(-4 * tiny, rel=1e-7)
    assert problems.get("rastrigin-1")([tiny])[0] == pytest.approx(-(1 + 20 * np.pi**2) * tiny**2, rel=1e-7)


def test_michalewicz_maximisers_beat_a_fine_grid():
    x = np.linspace(0, np.pi, 200_001)
    for i in range(1, 11):
        best = michalewicz_maximiser(i)
        assert np.sin(best) * np.sin(i * best**2 / np.pi) ** 20 >= (np.sin(x) * np.sin(i * x**2 / np.pi) ** 20).max()


def test_the_import_is_light():
    code = "import sys, eign.problems; print([m for m in ('torch', 'scipy', 'botorch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
