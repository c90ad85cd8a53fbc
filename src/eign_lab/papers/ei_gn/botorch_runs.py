"""Do `ei` and `log-ei` do as well as plain BoTorch from the same designs? Whole runs at the paper's settings.

    python -m eign_lab.papers.ei_gn.botorch_runs [--seeds 10] [--problems shekel-4 ...] [--workers 1]

The runs are those of `eign paper botorch` and go where the paper's go: `results/paper`. BoTorch takes a quarter of a
second for a suggestion on Shekel and several on Griewank.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.report.head_to_head import Duel, duel_table, pair
from eign_lab.report.summaries import as_markdown_table
from eign_lab.runs.campaign import Workplace, run_campaign
from eign_lab.runs.experiment import without_methods
from eign_lab.runs.export import open_results
from eign_lab.runs.outcomes import ProblemOutcome, gather

RESULTS: Final = Path("results/paper")
EXPERIMENT: Final = without_methods(EXPERIMENTS["botorch"], ("dLogEI", "auto"))
PAIRS: Final = {"EI": "BoTorch EI", "LogEI": "BoTorch LogEI"}


def duels(outcome: ProblemOutcome) -> Iterator[Duel]:
    """Ours against BoTorch's, as far as there are runs of both."""
    optimum = outcome.reference
    for ours, theirs in PAIRS.items():
        if ours in outcome.runs and theirs in outcome.runs:
            for evaluations in outcome.spec.checkpoints:
                values = pair(*(outcome.runs[label].at(evaluations) for label in (ours, theirs)))
                regrets = (optimum - values[0], optimum - values[1])
                scale = optimum - float(np.median(outcome.initial))
                yield Duel(outcome.spec.label, ours, evaluations, *regrets, scale)


def main() -> None:
    """Run what is missing, and print the table."""
    names = [problem.label for problem in EXPERIMENT.problems]
    parser = argparse.ArgumentParser(description=EXPERIMENT.title)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problems", nargs="*", default=names, choices=names)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.problems:
        chosen = tuple(problem for problem in EXPERIMENT.problems if problem.label in arguments.problems)
        place = Workplace(Path("eign-paper.sqlite"), arguments.workers, export=RESULTS)
        run_campaign([replace(EXPERIMENT, problems=chosen)], range(arguments.seeds), place)
    outcomes = gather(open_results(RESULTS), EXPERIMENT, every_seed=True).problems.values()
    table = duel_table(EXPERIMENT.title, [duel for outcome in outcomes for duel in duels(outcome)])
    print(f"{table.note}\n\n{as_markdown_table(table)}")


if __name__ == "__main__":
    main()
