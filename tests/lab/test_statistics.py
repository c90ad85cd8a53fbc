"""Statistics against hand calculations, SciPy, and what must be true of them for any data."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from eign_lab.statistics import (
    Interval,
    Verdict,
    bootstrap_interval,
    combined,
    data_profile,
    evaluations_to_target,
    holm,
    judge_better,
    judge_not_worse,
    judge_similar,
    paired_interval,
    paired_wilcoxon,
    performance_profile,
    seeds_needed,
    share_at_optimum,
    similarity_margin,
    smallest_p,
)

numbers = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))
p_values = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


class TestWilcoxon:
    def test_against_scipy_without_ties(self):
        rng = np.random.default_rng(0)
        first, second = rng.normal(size=(2, 20))
        assert paired_wilcoxon(first, second) == pytest.approx(stats.wilcoxon(first, second, method="exact").pvalue)
        many, others = rng.normal(size=(2, 60))
        assert paired_wilcoxon(many, others) == stats.wilcoxon(many, others).pvalue

    def test_by_hand_with_ties(self):
        # |d| = 1, 1, 2 have ranks 1.5, 1.5, 3. W+ = 3 + 1.5; centre 3. Sums at least 1.5 away from it: 0, 1.5 (twice),
        # 4.5 (twice), 6: six of the eight combinations of signs.
        assert paired_wilcoxon(np.array([1.0, -1.0, 2.0]), np.zeros(3)) == 6 / 8

    @given(st.lists(numbers, min_size=1, max_size=9))
    def test_is_the_share_of_sign_patterns_that_are_as_extreme(self, differences):
        d = np.array(differences)
        kept = d[d != 0]
        ranks = stats.rankdata(np.abs(kept))
        away = abs(ranks[kept > 0].sum() - ranks.sum() / 2)
        patterns = [abs(np.dot(signs, ranks) - ranks.sum() / 2) >= away for signs in product((0, 1), repeat=len(kept))]
        assert paired_wilcoxon(d, np.zeros(len(d))) == pytest.approx(np.mean(patterns) if len(kept) else 1.0)

    @given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=15))
    def test_does_not_depend_on_the_order_of_the_methods_and_is_never_below_its_bound(self, pairs):
        first, second = np.array(pairs).T
        p = paired_wilcoxon(first, second)
        assert p == pytest.approx(paired_wilcoxon(second, first))
        assert smallest_p(len(pairs)) <= p <= 1

    def test_five_seeds_can_never_be_significant(self):
        assert paired_wilcoxon(np.arange(1.0, 6.0), np.zeros(5)) == smallest_p(5) == 0.0625
        assert seeds_needed(1) == 6

    def test_seeds_needed_are_enough_and_not_too_many(self):
        for tests in (1, 2, 5, 16, 40):
            n = seeds_needed(tests)
            assert smallest_p(n) * tests < 0.05 <= smallest_p(n - 1) * tests


class TestHolm:
    def test_by_hand(self):
        # Sorted .005, .01, .03, .04: times 4, 3, 2, 1 = .02, .03, .06, .04, then the running maximum.
        assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
        assert len(holm([])) == 0

    @given(p_values)
    def test_keeps_the_order_and_lies_between_no_correction_and_bonferroni(self, p):
        adjusted = holm(p)
        assert (adjusted >= np.array(p) - 1e-15).all()
        assert (adjusted <= np.minimum(1.0, len(p) * np.array(p)) + 1e-15).all()
        order = np.argsort(p, kind="stable")
        assert (np.diff(adjusted[order]) >= 0).all()

    @given(p_values, st.randoms())
    def test_does_not_depend_on_the_order_of_the_tests(self, p, random):
        shuffled = list(range(len(p)))
        random.shuffle(shuffled)
        assert_allclose(holm([p[k] for k in shuffled]), holm(p)[shuffled])


class TestSimilarity:
    def test_interval_by_hand(self):
        # Differences 1, 2, 3: mean 2, error 1 / sqrt(3), t(0.95; 2) = 2.91999.
        interval = paired_interval(np.array([1.0, 2.0, 3.0]), np.zeros(3))
        assert_allclose(interval, [2.0, 2.0 - 2.919986 / np.sqrt(3), 2.0 + 2.919986 / np.sqrt(3)], rtol=1e-6)

    def test_interval_against_scipy(self):
        first, second = np.random.default_rng(1).normal(size=(2, 8))
        peer = stats.ttest_rel(first, second).confidence_interval(0.9)
        assert_allclose(paired_interval(first, second)[1:], peer, rtol=1e-12)

    def test_one_pair_decides_nothing(self):
        assert judge_similar(paired_interval(np.ones(1), np.ones(1)), 10.0) is Verdict.OPEN

    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [
            *((-0.5, 0.9, "holds"), (0.0, 0.0, "holds"), (-1.0, 1.0, "holds")),
            *((1.1, 2.0, "does not hold"), (-3.0, -1.1, "does not hold")),
            *((0.5, 1.5, "not decided"), (-2.0, 2.0, "not decided")),
        ],
    )
    def test_within_outside_or_across_the_margin(self, low, high, verdict):
        assert judge_similar(Interval((low + high) / 2, low, high), 1.0) == verdict

    def test_margin_is_a_twentieth_of_what_there_was_to_gain(self):
        assert similarity_margin(10.0, np.array([0.0, 2.0, 7.0])) == pytest.approx(0.4)


class TestVerdicts:
    def test_direction_decides_between_better_and_worse(self):
        up, zero = np.arange(1.0, 9.0), np.zeros(8)
        assert judge_better(up, zero, 0.01) is Verdict.HOLDS
        assert judge_better(zero, up, 0.01) is Verdict.FAILS
        assert judge_better(up, zero, 0.05) is Verdict.OPEN

    def test_parts_combine(self):
        holds, fails, unknown = Verdict
        assert combined([holds, holds]) is holds
        assert combined([holds, fails, unknown]) is fails
        assert combined([holds, unknown]) is unknown
        assert combined([]) is unknown


class TestTargets:
    def test_share_at_optimum(self):
        assert share_at_optimum(np.array([9.95, 9.8, 10.0, 5.0]), 10.0, margin=0.1) == 0.5

    @given(st.lists(numbers, min_size=1, max_size=20), numbers)
    def test_evaluations_to_target_is_the_first_that_reaches_it(self, values, target):
        best = np.maximum.accumulate(values)
        (count,) = evaluations_to_target(best[None], target)
        if np.isinf(count):
            assert max(values) < target
        else:
            assert max(values[: int(count)]) >= target
            assert all(value < target for value in values[: int(count) - 1])

    def test_performance_profile_by_hand(self):
        costs = {"a": np.array([10.0, 20.0, np.inf, np.inf]), "b": np.array([20.0, 10.0, 40.0, np.inf])}
        profiles = performance_profile(costs, np.array([1.0, 2.0]))
        assert_allclose(profiles["a"], [0.25, 0.5])
        assert_allclose(profiles["b"], [0.5, 0.75])

    @given(st.lists(st.one_of(st.just(np.inf), st.floats(1, 100)), min_size=1, max_size=20))
    def test_data_profile_never_falls_and_ends_at_the_share_that_is_ever_solved(self, costs):
        profile = data_profile(np.array(costs), np.arange(0.0, 101.0))
        assert (np.diff(profile) >= 0).all()
        assert profile[0] == 0.0
        assert profile[-1] == np.isfinite(costs).mean()


class TestNotWorse:
    def test_the_interval_is_students_for_many_normal_values(self):
        values = np.random.default_rng(1).normal(3.0, 2.0, 400)
        found, expected = bootstrap_interval(values), paired_interval(values, np.zeros(400))
        # Both ends have a standard error of about 2 per cent of the width, from 10,000 draws.
        assert_allclose(found, expected, atol=0.05 * (expected.high - expected.low))

    def test_nothing_is_known_of_a_single_value(self):
        assert bootstrap_interval(np.array([2.0])) == Interval(2.0, -np.inf, np.inf)

    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [(-9, 1, Verdict.HOLDS), (-1, 1.1, Verdict.OPEN), (0.9, 2, Verdict.OPEN), (1.1, 2, Verdict.FAILS)],
    )
    def test_the_upper_end_decides(self, low, high, verdict):
        assert judge_not_worse(Interval(0.5, low, high), 1.0, seeds=10) is verdict
        assert judge_not_worse(Interval(0.5, low, high), 1.0, seeds=9) is Verdict.OPEN
