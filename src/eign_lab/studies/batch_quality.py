"""What does it cost to evaluate four points at a time? Regret after the same number of evaluations, against one.

    python -m eign_lab.studies.batch_quality [--seeds 10] [--workers 1]

Workers are simulated: durations are drawn log-uniformly over a decade, and events are played in order of time, so that
points are asked exactly as on real asynchronous workers and the result is the same on every machine. One worker is the
same program with one. Both start from the same initial design. Runs are kept in results/batch_quality.
"""

import heapq
from pathlib import Path
from typing import Final

import numpy as np

from eign import Optimizer
from eign.arrays import Array
from eign_lab.report.summaries import Table
from eign_lab.rivals import CountedProblem
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec
from eign_lab.runs.outcomes import MethodRuns
from eign_lab.statistics import paired_wilcoxon
from eign_lab.studies.question import Outcomes, answer

RESULTS: Final = Path("results/batch_quality")
METHODS: Final = ("auto", "ei-gn")
BUDGETS: Final = {"branin-2": 30, "shekel-4": 60, "hartmann-6": 70, "levy-6": 70, "griewank-10": 80}
EXPERIMENT: Final = Experiment(
    "batch-quality",
    "One and four points at a time",
    tuple(ProblemSpec(name, None, budget) for name, budget in BUDGETS.items()),
    tuple(
        MethodSpec(f"{method}, {count}", f"{__spec__.name}:simulate_workers", {"method": method, "workers": count})
        for method in METHODS
        for count in (1, 4)
    ),
)


def simulate_workers(problem: CountedProblem) -> None:
    """A run with `workers` of the options, each busy for a random time with its point."""
    workers, seed = problem.options["workers"], problem.seed
    optimizer = Optimizer(problem.box, method=problem.options["method"], seed=seed, maximize=True)
    rng = np.random.default_rng([seed, workers])
    running: list[tuple[float, int, Array]] = []
    now, asked = 0.0, 0
    while not problem.is_over:
        while len(running) < workers and asked < problem.budget:
            heapq.heappush(running, (now + 10.0 ** rng.uniform(), asked, optimizer.ask()))
            asked += 1
        now, _, x = heapq.heappop(running)
        optimizer.tell(x, *problem.observe(x))


def batch_table(outcomes: Outcomes) -> Table:
    """Median regret at the end and half-way, and in how many seeds one at a time was better."""
    headings = ("problem", "evaluations", "method", "one", "four", "better: one / equal / four", "p", "seeds")
    rows = []
    for name, outcome in outcomes.items():
        for method in METHODS:
            pair = [outcome.runs.get(f"{method}, {count}") for count in (1, 4)]
            for count in (outcome.spec.budget // 2, outcome.spec.budget):
                if pair[0] is not None and pair[1] is not None:
                    cells = _compared(outcome.reference, pair[0], pair[1], count)
                    rows.append((name, str(count), f"`{method}`", *cells))
    return Table("Points at a time", headings, tuple(rows))


def _compared(optimum: float, first: MethodRuns, second: MethodRuns, count: int) -> tuple[str, ...]:
    """Medians, and the paired comparison: regrets within a thousandth of the larger median count as equal."""
    found = first.at(count), second.at(count)
    seeds = sorted(found[0].keys() & found[1].keys())
    one, four = (optimum - np.array([values[seed] for seed in seeds]) for values in found)
    equal = np.abs(one - four) <= 1e-3 * max(np.median(one), np.median(four), 1e-9)
    better = f"{(~equal & (one < four)).sum()} / {equal.sum()} / {(~equal & (four < one)).sum()}"
    p = paired_wilcoxon(one, four)
    medians = f"{np.median(one):.2g}", f"{np.median(four):.2g}"
    return (*medians, better, "< 0.01" if p < 0.01 else f"{p:.2f}", str(len(seeds)))


if __name__ == "__main__":
    answer(EXPERIMENT, batch_table, export=RESULTS)
