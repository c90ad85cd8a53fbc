"""Every wrapper passes one suite over every problem; then what each promises on its own."""

import pickle

import numpy as np
import pytest

from eign import problems
from eign.problems import Problem
from eign.space import Box

# Of the random problems one GP sample stands for all; policy search is in test_control.py.
DRAWN = ("acrobot", "cartpole", "gp-sample-8", "gp-sample-9")
NAMES = [name for name in problems.names() if not name.startswith(DRAWN)]
UNKNOWN_OUTSIDE = ("holder-table-2", "branin-forrester-2", "gp-sample-7")


def everything(problem):
    moved = problems.mirrored(problems.rotated(problems.shifted(problem, seed=1), seed=2), [0])
    return problems.dropped_gradients(problems.noisy(problems.scaled(moved, 1e3), value_std=0.1, seed=3), 0.5, seed=4)


def noise_beneath(problem):
    return problems.rotated(problems.noisy(problem, value_std=0.1, grad_std=0.2, seed=3), seed=2)


WRAPPERS = {
    "shifted": lambda problem: problems.shifted(problem, seed=5),
    "rotated": lambda problem: problems.rotated(problem, seed=5),
    "mirrored": lambda problem: problems.mirrored(problem, [0]),
    "scaled": lambda problem: problems.scaled(problem, np.logspace(-3, 3, problem.dim), output=2.0, offset=3.0),
    "noisy": lambda problem: problems.noisy(problem, value_std=0.1, grad_std=0.2, seed=5),
    "without_gradients": problems.without_gradients,
    "dropped_gradients": lambda problem: problems.dropped_gradients(problem, 0.3, seed=5),
    "everything": everything,
    "noise beneath": noise_beneath,
}


def rows(problem, n=500, seed=0):
    return problem.bounds.from_unit(np.random.default_rng(seed).random((n, problem.dim)))


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("name", NAMES)
class TestConformance:
    def test_many_points_at_once_are_the_points_one_by_one(self, name, wrap):
        problem = wrap(problems.get(name))
        X = rows(problem, 5)
        values, gradients = problem.evaluate(X)
        assert values.shape == (5,)
        assert gradients.shape == (5, problem.dim)
        for x, value, gradient in zip(X, values, gradients, strict=True):
            one_value, one_gradient = problem(x)
            assert one_value == pytest.approx(value, rel=1e-12, abs=1e-12)
            np.testing.assert_array_equal(np.isnan(one_gradient), np.isnan(gradient))
            size = np.nanmax(np.abs(gradient), initial=0.0)
            np.testing.assert_allclose(one_gradient, gradient, rtol=1e-12, atol=1e-12 * size)

    def test_what_is_said_of_the_optimum_is_true(self, name, wrap):
        problem = wrap(problems.get(name))
        if problem.optimum is None:
            assert problem.optimizers is None
            return
        span = 1e-12 * (1 + abs(problem.optimum))
        noise = 6 * np.sqrt(problem.y_var)
        attained, _ = problem.evaluate(problem.optimizers)
        np.testing.assert_allclose(attained, problem.optimum, rtol=0, atol=100 * span + noise)
        assert problem.evaluate(rows(problem, 1000))[0].max() <= problem.optimum + span + noise

    def test_it_is_checked_pickled_and_named(self, name, wrap):
        inner = problems.get(name)
        problem = wrap(inner)
        assert name in problem.name
        assert problem.name.endswith(")")
        assert problem.dim == inner.dim
        X = rows(problem, 3)
        for mine, theirs in zip(problem.evaluate(X), pickle.loads(pickle.dumps(problem)).evaluate(X), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        values, gradients = problem.evaluate(X[:0])
        assert values.shape == (0,)
        assert gradients.shape == (0, problem.dim)
        with pytest.raises(ValueError, match="outside the box"):
            problem(problem.bounds.upper + 1.0)


class TestShifted:
    def test_the_function_moves_and_the_box_stays(self):
        levy = problems.get("levy-2")
        problem = problems.shifted(levy, [1.0, -2.0])
        assert problem.bounds == levy.bounds
        assert problem.optimum == 0.0
        np.testing.assert_allclose(problem.optimizers, [[2.0, -1.0]])
        assert problem([3.5, 0.5])[0] == levy([2.5, 2.5])[0]

    def test_a_maximiser_that_leaves_takes_the_optimum_along(self):
        problem = problems.shifted(problems.get("levy-2"), [9.5, 0.0])
        assert problem.optimum is None
        assert problem.optimizers is None

    def test_of_several_maximisers_those_inside_remain(self):
        problem = problems.shifted(problems.get("branin"), [2.0, 0.0])
        np.testing.assert_allclose(problem.optimizers, [[2 - np.pi, 12.275], [2 + np.pi, 2.275]])
        assert problem.optimum == problems.get("branin").optimum

    def test_new_ground_that_may_be_higher_makes_the_optimum_unknown(self):
        """Holder table grows beyond its box: two of its maximisers stay inside, and are no longer the highest."""
        problem = problems.shifted(problems.get("holder-table"), [-1.5, -1.5])
        assert problem.optimum is None
        assert problem.evaluate(rows(problem, 20000))[0].max() > problems.get("holder-table").optimum

    @pytest.mark.parametrize("name", [name for name in NAMES if name not in UNKNOWN_OUTSIDE])
    def test_a_random_shift_keeps_the_optimum_known(self, name):
        inner = problems.get(name)
        width = inner.bounds.upper - inner.bounds.lower
        for seed in range(20):
            problem = problems.shifted(inner, seed=seed)
            assert problem.optimum == inner.optimum
            steps = problem.optimizers[0] - inner.optimizers
            assert (np.abs(steps) <= 0.25 * width).all(axis=1).any()
        centre = 0.5 * (inner.bounds.lower + inner.bounds.upper)
        assert len({problems.shifted(inner, seed=seed)(centre)[0] for seed in range(20)}) == 20

    def test_what_is_known_of_the_ground_beyond_the_box_moves_along(self):
        mixture = problems.get("mixture-1")
        np.testing.assert_allclose(problems.shifted(mixture, [0.1]).optimum_region, [[-17.9], [np.inf]])
        np.testing.assert_allclose(problems.mirrored(mixture).optimum_region, [[-np.inf], [19.0]])
        np.testing.assert_allclose(problems.scaled(mixture, 10.0).optimum_region, [[-180.0], [np.inf]])
        assert problems.shifted(problems.scaled(mixture, 1e3), seed=0).optimum == mixture.optimum

    def test_a_quarter_of_the_box_is_used(self):
        inner = problems.get("ackley-1")
        steps = [problems.shifted(inner, seed=seed).optimizers[0, 0] for seed in range(100)]
        assert -2.5 <= min(steps) < -2.3
        assert 2.3 < max(steps) <= 2.5

    def test_seeds_of_one_and_of_several_numbers_are_told_apart(self):
        seeds = [0, (0, 0), (0, 0, 0), 2**32, (0, 1)]
        assert len({problems.shifted(problems.get("ackley-1"), seed=s).optimizers[0, 0] for s in seeds}) == len(seeds)

    def test_one_of_shift_and_seed_is_needed(self):
        with pytest.raises(ValueError, match="either a shift or a seed"):
            problems.shifted(problems.get("branin"))
        with pytest.raises(ValueError, match="either a shift or a seed"):
            problems.shifted(problems.get("branin"), [1.0, 1.0], seed=1)
        with pytest.raises(ValueError, match=r"shift has shape \(3,\), expected \(2,\)"):
            problems.shifted(problems.get("branin"), [1.0, 1.0, 1.0])
        with pytest.raises(ValueError, match="shift must be finite"):
            problems.shifted(problems.get("branin"), [1.0, np.nan])


class TestRotated:
    def test_distances_to_the_centre_stay(self):
        levy, centre = problems.get("levy-6"), np.zeros(6)
        problem = problems.rotated(levy, seed=3)
        assert problem.optimum == levy.optimum
        assert (problem.optimizers != levy.optimizers).all()
        np.testing.assert_allclose(np.linalg.norm(problem.optimizers), np.linalg.norm(levy.optimizers))
        assert problem(centre)[0] == levy(centre)[0]
        assert np.linalg.norm(problem(centre)[1]) == pytest.approx(np.linalg.norm(levy(centre)[1]))

    def test_one_coordinate_cannot_turn(self):
        """A rotation has determinant 1; mirror images are made by `mirrored`."""
        mixture = problems.get("mixture-1")
        for seed in range(10):
            assert problems.rotated(mixture, seed=seed)([0.2])[0] == mixture([0.2])[0]

    def test_a_maximiser_turned_out_of_the_box_is_not_claimed(self):
        """Styblinski-Tang has its maximiser towards a corner: most rotations in six dimensions take it outside."""
        known = [problems.rotated(problems.get("styblinski-tang-6"), seed=seed).optimum for seed in range(50)]
        assert None in known
        assert problems.get("styblinski-tang-6").optimum in known

    def test_rotation_and_scaling_may_come_in_either_order(self):
        factors = [1e3, 1e-3, 1.0]
        one = problems.rotated(problems.scaled(problems.get("levy-3"), factors), seed=3)
        other = problems.scaled(problems.rotated(problems.get("levy-3"), seed=3), factors)
        X = rows(one, 20)
        for mine, theirs in zip(one.evaluate(X), other.evaluate(X), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
        np.testing.assert_allclose(one.optimizers, other.optimizers)

    def test_fixed_coordinates_stay(self):
        seen = []

        def formula(X):
            seen.append(X)
            return X.sum(axis=1), np.ones_like(X)

        inner = Problem("mine", Box([(0, 1), (0.25, 0.25), (0, 1)]), formula=formula)
        _, gradient = problems.rotated(inner, seed=3)([0.1, 0.25, 0.3])
        assert seen[0][0, 1] == 0.25
        assert (seen[0][0, ::2] != [0.1, 0.3]).all()
        assert gradient[1] == 1.0

    def test_ground_beyond_the_old_box_makes_the_optimum_unknown(self):
        assert problems.rotated(problems.get("holder-table"), seed=0).optimum is None

    def test_unequal_gradient_noise_is_turned(self):
        quiet = problems.get("levy-2")
        problem = problems.rotated(problems.noisy(quiet, grad_std=[1.0, 0.0], seed=0), seed=1)
        X = rows(problem, 4000)
        errors = problem.evaluate(X)[1] - problems.rotated(quiet, seed=1).evaluate(X)[1]
        # Four standard errors of a variance from 4000 draws.
        np.testing.assert_allclose(errors.var(axis=0), problem.grad_var, rtol=4 * np.sqrt(2 / 4000))
        assert problem.grad_var.sum() == pytest.approx(1.0)


class TestMirrored:
    def test_twice_is_once_less(self):
        hartmann = problems.get("hartmann-6")
        problem = problems.mirrored(problems.mirrored(hartmann, [0, 3]), [0, 3])
        X = rows(hartmann, 10)
        np.testing.assert_allclose(problem.evaluate(X)[1], hartmann.evaluate(X)[1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(problem.optimizers, hartmann.optimizers, rtol=1e-14)

    def test_only_the_given_coordinates_turn(self):
        branin = problems.get("branin")
        problem = problems.mirrored(branin, [1])
        value, gradient = problem([1.0, 4.0])
        expected_value, expected_gradient = branin([1.0, 11.0])
        assert value == expected_value
        np.testing.assert_array_equal(gradient, expected_gradient * [1, -1])

    def test_even_holder_table_keeps_its_optimum(self):
        holder = problems.get("holder-table")
        assert problems.mirrored(holder).optimum == holder.optimum
        assert len(problems.mirrored(holder).optimizers) == 4

    @pytest.mark.parametrize("index", [2, -1])
    def test_an_unknown_coordinate_is_named(self, index):
        with pytest.raises(ValueError, match=f"no coordinate {index}; expected an index from 0 to 1"):
            problems.mirrored(problems.get("branin"), [index])


class TestScaled:
    def test_units_of_inputs_and_output_change(self):
        branin = problems.get("branin")
        problem = problems.scaled(branin, [1e3, 1e-3], output=2.0, offset=1.0)
        np.testing.assert_allclose(problem.bounds.upper, [1e4, 15e-3])
        value, gradient = problem([2e3, 3e-3])
        expected_value, expected_gradient = branin([2.0, 3.0])
        assert value == pytest.approx(2 * expected_value + 1)
        np.testing.assert_allclose(gradient, 2 * expected_gradient / [1e3, 1e-3])
        assert problem.optimum == 2 * branin.optimum + 1

    def test_variances_follow(self):
        noisy = problems.noisy(problems.get("branin"), value_std=3.0, grad_std=[1.0, 2.0], seed=0)
        problem = problems.scaled(noisy, [10.0, 0.1], output=2.0)
        assert problem.y_var == 36.0
        np.testing.assert_allclose(problem.grad_var, [4 / 100, 16 * 100])

    def test_scales_and_names_of_the_box_stay(self):
        box = Box({"a": (1, 10), "b": (0, 1)}, log=["a"])
        inner = Problem("mine", box, formula=problems.get("levy-2").formula)
        assert problems.scaled(inner, 2.0).bounds == Box({"a": (2, 20), "b": (0, 2)}, log=["a"])

    def test_an_optimum_without_maximisers_stays_known_where_the_ground_stays(self):
        inner = Problem("mine", Box([(0, 1)] * 2), formula=problems.get("levy-2").formula, optimum=0.5)
        assert problems.scaled(inner, 3.0, output=2.0).optimum == 1.0
        assert problems.mirrored(inner).optimum == 0.5
        assert problems.shifted(inner, [0.1, 0.0]).optimum is None

    def test_factors_are_positive(self):
        branin = problems.get("branin")
        with pytest.raises(ValueError, match=r"inputs must be positive.*use mirrored"):
            problems.scaled(branin, [1.0, -1.0])
        with pytest.raises(ValueError, match="expected output > 0"):
            problems.scaled(branin, output=-1.0)
        with pytest.raises(ValueError, match="finite offset"):
            problems.scaled(branin, offset=np.inf)


class TestNoisy:
    def test_the_noise_has_the_stated_variance_and_no_bias(self):
        exact = problems.get("levy-2")
        problem = problems.noisy(exact, value_std=0.5, grad_std=[1.0, 2.0], seed=7)
        assert problem.y_var == 0.25
        np.testing.assert_array_equal(problem.grad_var, [1.0, 4.0])
        X, n = rows(problem, 4000), 4000
        (values, gradients), (true_values, true_gradients) = problem.evaluate(X), exact.evaluate(X)
        errors = np.column_stack([values - true_values, gradients - true_gradients])
        deviations = np.array([0.5, 1.0, 2.0])
        assert (np.abs(errors.mean(axis=0)) <= 4 * deviations / np.sqrt(n)).all()
        np.testing.assert_allclose(errors.var(axis=0), deviations**2, rtol=4 * np.sqrt(2 / n))
        correlations = np.corrcoef(errors.T)[np.triu_indices(3, 1)]
        assert (np.abs(correlations) <= 4 / np.sqrt(n)).all()

    def test_negative_zero_is_zero(self):
        problem = problems.noisy(problems.get("cosine-2"), value_std=1.0, seed=0)
        assert problem([0.0, -0.0])[0] == problem([0.0, 0.0])[0]

    def test_seeds_are_told_apart(self):
        seeds = [0, 1, (0, 1), (1, 0), (0, 0), 2**40]
        drawn = [problems.noisy(problems.get("branin"), value_std=1.0, seed=seed)([1, 1])[0] for seed in seeds]
        assert len(set(drawn)) == len(seeds)
        assert problems.noisy(problems.get("branin"), value_std=1.0, seed=(1,))([1, 1])[0] == drawn[1]

    def test_the_optimum_is_that_of_the_function(self):
        assert problems.noisy(problems.get("branin"), value_std=9.0, seed=0).optimum == problems.get("branin").optimum

    def test_bad_noise_is_refused(self):
        branin = problems.get("branin")
        with pytest.raises(ValueError, match="standard deviations must be >= 0"):
            problems.noisy(branin, value_std=-1.0, seed=0)
        with pytest.raises(ValueError, match=r"grad_std has shape \(3,\)"):
            problems.noisy(branin, grad_std=[1.0, 1.0, 1.0], seed=0)
        with pytest.raises(ValueError, match="noisy already"):
            problems.noisy(problems.noisy(branin, value_std=1.0, seed=0), grad_std=1.0, seed=1)
        for seed in (-1, ()):
            with pytest.raises(ValueError, match="seed: expected an integer >= 0"):
                problems.noisy(branin, value_std=1.0, seed=seed)
        with pytest.raises(TypeError):
            problems.noisy(branin, value_std=1.0, seed=1.5)


class TestMissingGradients:
    def test_all_or_given_coordinates(self):
        branin = problems.get("branin")
        value, gradient = problems.without_gradients(branin)([1.0, 2.0])
        assert value == branin([1.0, 2.0])[0]
        assert np.isnan(gradient).all()
        gradients = problems.without_gradients(branin, [1]).evaluate(rows(branin, 10))[1]
        assert np.isfinite(gradients[:, 0]).all()
        assert np.isnan(gradients[:, 1]).all()

    def test_the_share_is_the_share_for_every_component(self):
        problem, n = problems.dropped_gradients(problems.get("hartmann-6"), 0.3, seed=1), 4000
        missing = np.isnan(problem.evaluate(rows(problem, n))[1])
        np.testing.assert_allclose(missing.mean(axis=0), 0.3, atol=4 * np.sqrt(0.3 * 0.7 / n))

    @pytest.mark.parametrize(("share", "expected"), [(0, 0.0), (1, 1.0)])
    def test_none_and_all(self, share, expected):
        problem = problems.dropped_gradients(problems.get("hartmann-6"), share, seed=1)
        assert np.isnan(problem.evaluate(rows(problem, 50))[1]).mean() == expected

    def test_what_is_left_is_the_gradient(self):
        exact = problems.get("hartmann-6")
        X = rows(exact, 50)
        gradients, kept = exact.evaluate(X)[1], problems.dropped_gradients(exact, 0.5, seed=1).evaluate(X)[1]
        np.testing.assert_array_equal(kept[~np.isnan(kept)], gradients[~np.isnan(kept)])

    def test_a_missing_component_spares_the_others_unless_turned(self):
        hidden = problems.without_gradients(problems.get("hartmann-6"), [2])
        for wrapped in (problems.shifted(hidden, seed=1), problems.mirrored(hidden), problems.scaled(hidden, 2.0)):
            assert np.flatnonzero(np.isnan(wrapped(np.full(6, 0.5))[1])).tolist() == [2]
        assert np.isnan(problems.rotated(hidden, seed=1)(np.full(6, 0.5))[1]).all()

    @pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
    def test_a_share_is_between_0_and_1(self, share):
        with pytest.raises(ValueError, match="expected a share between 0 and 1"):
            problems.dropped_gradients(problems.get("branin"), share, seed=0)
