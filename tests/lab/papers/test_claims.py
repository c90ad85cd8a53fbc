"""The claims as data fit the experiments; the verdicts follow from made-up runs of known quality."""

from dataclasses import replace

import numpy as np
import pytest

from eign_lab.papers.ei_gn.acquisition_costs import AcquisitionCost, judge_costs, measure_acquisition_cost
from eign_lab.papers.ei_gn.claims import CLAIMS, Claim, Part, Relation
from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.papers.ei_gn.judgements import Judgement, judge_claims
from eign_lab.papers.ei_gn.landscapes import Landscape, designs, judge_measured, measure
from eign_lab.papers.ei_gn.published import PUBLISHED
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec
from eign_lab.runs.outcomes import ExperimentOutcome, MethodRuns, ProblemOutcome, gather
from eign_lab.runs.run_log import Timing
from eign_lab.statistics import Verdict, seeds_needed

from ..report_cases import made_up_results, small_experiment

HOLDS, FAILS, OPEN = Verdict


def parts():
    return [pytest.param(part, id=str(part)) for claim in CLAIMS for part in claim.parts]


class TestTheClaimsAsData:
    def test_there_are_eighteen_in_order(self):
        assert [claim.number for claim in CLAIMS] == list(range(1, 19))
        assert all(bool(claim.parts) != bool(claim.measured) for claim in CLAIMS)

    @pytest.mark.parametrize("part", parts())
    def test_every_part_can_be_looked_up(self, part):
        for name in filter(None, (part.experiment, part.second_experiment)):
            experiment = EXPERIMENTS[name]
            problem = {spec.label: spec for spec in experiment.problems}[part.problem]
            assert part.evaluations <= problem.budget
            methods = {spec.label for spec in experiment.methods}
            assert part.first in methods
            assert part.second in methods or part.relation is Relation.NEAR

    def test_published_numbers_are_at_checkpoints_of_experiments(self):
        specs = {(problem.label, method.label): problem for e in EXPERIMENTS.values() for problem, method in e.pairs()}
        for key, row in PUBLISHED.items():
            assert set(row) == set(specs[key].checkpoints)


def outcome(curves, *, seeds=None, optimum=10.0, initial=1):
    """An experiment with one problem: for each method the best values, `runs x evaluations`."""
    curves = {method: np.maximum.accumulate(np.array(best, dtype=float), axis=1) for method, best in curves.items()}
    budget = max(best.shape[1] for best in curves.values())
    problem = ProblemSpec("branin-2", initial, budget, label="p")
    runs = {
        method: MethodRuns(tuple(seeds or range(len(best))), best, (Timing(1.0, 0.1, 0.2),) * len(best))
        for method, best in curves.items()
    }
    experiment = Experiment("e", "", (problem,), tuple(MethodSpec(method, "sobol") for method in curves))
    return {"e": ExperimentOutcome(experiment, {"p": ProblemOutcome(problem, optimum, runs)}, ())}


def verdict_of(relation, curves, *, second="b", evaluations=0, **settings):
    part = Part(relation, "e", "p", "a", second, evaluations)
    (judged,) = judge_claims(outcome(curves, **settings), {}, [Claim(1, "", (part,))])
    return judged.judgement


def ends(values):
    """Runs that start at 0 and end at the values."""
    return [[0.0, value] for value in values]


STEPS = np.arange(1.0, 9.0) / 100


class TestVerdicts:
    def test_better(self):
        worse = ends([5.0] * 8)
        assert verdict_of(Relation.BETTER, {"a": ends(7.0 + STEPS), "b": worse}).verdict is HOLDS
        assert verdict_of(Relation.BETTER, {"a": worse, "b": ends(7.0 + STEPS)}).verdict is FAILS

    def test_what_is_claimed_to_be_better_and_is_similar_does_not_hold(self):
        mixed = 5.0 + STEPS * np.tile([1, -1], 4)
        judged = verdict_of(Relation.BETTER, {"a": ends(mixed), "b": ends([5.0] * 8)})
        assert judged.verdict is FAILS
        assert "small difference" in judged.numbers

    @pytest.mark.parametrize("n", [1, 3, 5])
    def test_few_seeds_decide_no_test_and_the_report_says_so(self, n):
        judged = verdict_of(Relation.BETTER, {"a": ends(7.0 + STEPS[:n]), "b": ends([5.0] * n)})
        assert judged.verdict is OPEN
        assert judged.seeds == n
        assert "no test can decide with fewer than 6 seeds" in judged.numbers

    def test_similar(self):
        # 5 per cent of the gain of 10 is 0.5.
        base = ends([5.0] * 4)
        assert verdict_of(Relation.SIMILAR, {"a": ends(5.0 + STEPS[:4]), "b": base}).verdict is HOLDS
        assert verdict_of(Relation.SIMILAR, {"a": ends(7.0 + STEPS[:4]), "b": base}).verdict is FAILS
        assert verdict_of(Relation.SIMILAR, {"a": ends([3.0, 5.0, 7.0, 5.0]), "b": base}).verdict is OPEN

    def test_steadier(self):
        wild, calm = ends(np.linspace(2.0, 9.0, 8)), ends(5.0 + STEPS)
        assert verdict_of(Relation.STEADIER, {"a": calm, "b": wild}).verdict is HOLDS
        assert verdict_of(Relation.STEADIER, {"a": wild, "b": calm}).verdict is FAILS

    def test_faster_counts_evaluations_to_the_rivals_last_value(self):
        quick = [[0.0, 6.0, 6.0, 6.0]] * 8
        slow = [[0.0, 1.0, 2.0, 5.0 + step] for step in STEPS]
        judged = verdict_of(Relation.FASTER, {"a": quick, "b": slow})
        assert judged.verdict is HOLDS
        assert "difference 2" in judged.numbers  # 2 evaluations instead of 4
        never = [[0.0, 1.0, 1.0, 1.0]] * 8
        assert verdict_of(Relation.FASTER, {"a": never, "b": slow}).verdict is FAILS

    def test_near_the_optimum(self):
        near, far = [[0.0, 9.8 + step, 10.0] for step in STEPS], [[0.0, 5.0 + step, 10.0] for step in STEPS]
        for curves, verdict in ((near, HOLDS), (far, FAILS)):
            assert verdict_of(Relation.NEAR, {"a": curves}, second="", evaluations=2).verdict is verdict

    def test_only_common_seeds_are_paired(self):
        found = outcome({"a": ends(7.0 + STEPS)})
        problem = found["e"].problems["p"]
        base = replace(problem.runs["a"], seeds=tuple(range(6, 14)))
        problem.runs["b"] = base
        part = Part(Relation.SIMILAR, "e", "p", "a", "b")
        (judged,) = judge_claims(found, {}, [Claim(1, "", (part,))])
        assert judged.judgement.seeds == 2

    def test_missing_runs_and_short_runs_decide_nothing(self):
        assert verdict_of(Relation.BETTER, {"a": ends([1.0])}).verdict is OPEN
        short = {"a": ends([1.0] * 8), "b": [[1.0]] * 8}
        assert verdict_of(Relation.SIMILAR, short).verdict is OPEN
        (judged,) = judge_claims({}, {}, [Claim(1, "", (Part(Relation.BETTER, "none", "p", "a", "b"),))])
        assert judged.judgement.verdict is OPEN

    def test_holm_counts_all_tests_of_the_experiment_also_those_that_cannot_be_made(self):
        claim = Claim(1, "", tuple(Part(Relation.BETTER, "e", "p", "a", other) for other in ("b", *map(str, range(9)))))
        (judged,) = judge_claims(outcome({"a": ends(7.0 + STEPS), "b": ends([5.0] * 8)}), {}, [claim])
        _, first = judged.parts[0]
        assert "p = 0.078" in first.numbers  # 10 times 2 / 2^8
        assert first.verdict is OPEN
        assert seeds_needed(10) == 9
        assert "fewer than 9 seeds" in first.numbers

    def test_measured_claims_take_what_was_measured(self):
        claims = [Claim(1, "", measured="landscapes"), Claim(17, "", measured="costs")]
        judged = judge_claims({}, {"costs": Judgement(HOLDS, "cheap")}, claims)
        assert [one.judgement.verdict for one in judged] == [OPEN, HOLDS]


def test_made_up_runs_give_the_verdicts_they_were_made_for():
    experiment = EXPERIMENTS["ablation"]
    results = made_up_results([experiment], range(12))
    judged = {one.claim.number: one for one in judge_claims({"ablation": gather(results, experiment)}, {})}
    assert judged[9].judgement.verdict is HOLDS
    assert judged[9].judgement.seeds == 12
    assert judged[11].judgement.verdict is HOLDS
    assert judged[2].judgement.verdict is OPEN


class TestLandscapes:
    def test_designs_do_not_show_the_narrow_peak(self):
        assert designs()[0] == 2

    def test_ei_sits_at_the_incumbent(self):
        found = measure("EI", designs()[0], resolution=401)
        assert found.nearly_zero > 0.8
        assert found.regions == (1, 1, 1)
        assert found.distance < 0.1

    @pytest.mark.parametrize(("several", "verdict"), [(12, HOLDS), (6, OPEN), (1, FAILS)])
    def test_the_claim_is_about_most_designs(self, several, verdict):
        ei = [Landscape(0.9, (1, 1, 1), 0.02)] * 12
        ei_gn = [Landscape(0.2, (3, 3, 2), 0.02)] * several + [Landscape(0.2, (1, 1, 1), 0.02)] * (12 - several)
        judged = judge_measured({"EI": ei, "EI-GN": ei_gn})
        assert judged.verdict is verdict
        assert f"{several} above 25%, {several} above 50%" in judged.numbers

    def test_what_depends_on_the_meaning_of_high_is_not_decided(self):
        ei = [Landscape(0.9, (1, 1, 1), 0.02)] * 12
        assert judge_measured({"EI": ei, "EI-GN": [Landscape(0.2, (5, 1, 1), 0.02)] * 12}).verdict is OPEN

    def test_ei_away_from_the_incumbent_contradicts_the_claim(self):
        ei = [Landscape(0.9, (1, 1, 1), 0.5)] * 12
        assert judge_measured({"EI": ei, "EI-GN": [Landscape(0.2, (3, 3, 3), 0.02)] * 12}).verdict is FAILS


class TestCosts:
    @pytest.mark.parametrize(("formula", "verdict"), [(0.5, HOLDS), (1.5, OPEN), (5.0, FAILS)])
    def test_negligible_is_a_tenth_and_not_a_fifth(self, formula, verdict):
        costs = [AcquisitionCost(4, 100, 256, 10.0, 0.1), AcquisitionCost(6, 100, 256, 10.0, formula)]
        assert judge_costs(costs).verdict is verdict

    def test_is_measured(self):
        cost = measure_acquisition_cost(2, 10, 16, seconds=0.0)
        assert cost.formula > 0
        assert cost.posterior > 0


def test_runs_are_gathered_as_far_as_they_have_come():
    experiment = small_experiment(EXPERIMENTS["synthetic"])
    keep = {("EI", 0): 0.5, ("EI", 1): 0.4, ("UCB", 2): 0.6, ("Sobol", 1): 0.0}
    results = made_up_results([experiment], range(3), keep=lambda _, method, seed: keep.get((method, seed), 1.0))
    results = type(results)({key: run for key, run in results.by_key.items() if run.spec.method != "cma-es"})
    found = gather(results, experiment)
    runs = found.problems["shekel-4"].runs
    assert runs["EI-GN"].best.shape == (3, 125)
    assert (runs["EI"].seeds, runs["EI"].evaluations) == ((2,), 125)
    assert runs["UCB"].seeds == (0, 1)
    assert "CMA-ES" not in runs
    assert found.missing == (
        "shekel-4, EI: 2 of 3 runs not finished, the furthest at 62 of 125 evaluations",
        "shekel-4, UCB: 1 of 3 runs not finished, the furthest at 75 of 125 evaluations",
        "shekel-4, CMA-ES: 3 of 3 runs not begun",
        "shekel-4, Sobol: 1 of 3 runs not begun",
    )
    assert found.problems["shekel-4"].initial.shape == (3,)


def test_a_problem_has_the_seeds_that_all_its_runs_have():
    experiment = replace(EXPERIMENTS["ablation"], problems=EXPERIMENTS["ablation"].problems[:2])
    keep = {("shekel-4", "dEI", 0): 0.0, ("hartmann-6", "EI", 4): 0.5}
    results = made_up_results([experiment], range(5), keep=lambda *run: keep.get(run, 1.0))
    whole = gather(made_up_results([experiment], range(5)), experiment)
    found = gather(results, experiment)
    expected = {"shekel-4": (1, 2, 3, 4), "hartmann-6": (0, 1, 2, 3)}
    for label, problem in found.problems.items():
        for method, runs in problem.runs.items():
            assert runs.seeds == expected[label]
            np.testing.assert_array_equal(runs.best, whole.problems[label].runs[method].best[list(expected[label])])
    assert found.missing == (
        "shekel-4: left out, for not all methods have them: seeds 0",
        "hartmann-6, EI: 1 of 5 runs not finished, the furthest at 75 of 150 evaluations",
        "hartmann-6: left out, for not all methods have them: seeds 4",
    )
    assert not whole.missing
