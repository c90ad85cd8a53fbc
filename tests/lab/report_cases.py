"""Made-up runs for the tests of reports: curves of known quality, in the shape of real records."""

import numpy as np

from eign_lab.runs.experiment import Experiment
from eign_lab.runs.export import ExportedResults
from eign_lab.runs.run_log import Goal, Timing, Trace
from eign_lab.runs.store import RunRecord

# How fast a method closes in on the optimum, per evaluation of the budget.
RATES = {"EI-GN": 6.0, "dEI-GN": 9.0, "dEI": 7.0, "UCB": 5.0, "L-BFGS-B": 10.0}


def made_up_results(experiments, seeds, *, rates=RATES, noise=0.3, keep=lambda problem, method, seed: 1.0):
    """Results with a run for each problem, method and seed; `keep` says which share of its evaluations is there."""
    by_key = {}
    for experiment in experiments:
        for problem, method in experiment.pairs():
            for seed in seeds:
                count = round(problem.budget * keep(problem.label, method.label, seed))
                if count:
                    spec = experiment.run(problem, method, seed)
                    rate = rates.get(method.label, 3.0)
                    by_key[spec.key] = _record(spec, problem, method, count, rate, noise)
    return ExportedResults(by_key)


def _record(spec, problem, method, count, rate, noise):
    shared = np.random.default_rng([spec.seed, problem.budget])  # the same initial design for all methods
    own = np.random.default_rng([spec.seed, problem.budget, *method.label.encode()])
    optimum, evaluations = problem.posed(0).true.optimum, np.arange(1, problem.budget + 1)
    progress = np.maximum(0.0, evaluations - problem.initial) / problem.budget
    distance = 4.0 * np.exp(-rate * progress + noise * own.normal(size=problem.budget))
    distance[: problem.initial] = 4.0 + shared.random(problem.initial)
    trace = Trace()
    for value in optimum - distance:
        trace.add(float(value), float(value))
    timing = Timing(0.01 * rate * (problem.budget - problem.initial), 0.01 * rate, 0.02 * rate)
    return RunRecord(spec, trace, timing).up_to(Goal(count))


def small_experiment(experiment: Experiment, *, problems: int = 1) -> Experiment:
    """Its first problems alone."""
    from dataclasses import replace

    return replace(experiment, problems=experiment.problems[:problems])
