"""Do `ei` and `log-ei` do as well as a published EI from the same designs? Ten functions, 250 evaluations.

    python -m eign_lab.studies.published_runs [--designs 15] [--methods ei log-ei] [--problems ...] [--workers 1]

The published runs are those of De Ath, Everson, Rahat and Fieldsend (2021), from github.com/georgedeath/egreedy:
Matern-5/2 with a lengthscale for each coordinate, fitted by maximum likelihood, and EI. `results/egreedy` holds 51
designs of each function, the best values of their EI, and our runs. A design's number is the seed of our run.
`auto` and `l-bfgs`, which are run when they are asked for, show what gradients add.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from eign.arrays import Array
from eign_lab.report.head_to_head import Duel, duel_table, pair
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.campaign import Workplace, run_campaign
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec
from eign_lab.runs.export import open_results
from eign_lab.runs.outcomes import ProblemOutcome, gather

RESULTS: Final = Path("results/egreedy")
PUBLISHED: Final = RESULTS / "published.npz"
FUNCTIONS: Final = {
    "wang-freitas-1": "WangFreitas",
    "branin-2": "Branin",
    "branin-forrester-2": "BraninForrester",
    "cosine-waves-2": "Cosines",
    "goldstein-price-2": "GoldsteinPrice",
    "six-hump-camel-2": "SixHumpCamel",
    "hartmann-6": "Hartmann6",
    "g-sobol-10": "GSobol",
    "rosenbrock-10": "Rosenbrock",
    "styblinski-tang-10": "StyblinskiTang",
}
"""Our names and theirs."""
BUDGET, CHECKPOINTS = 250, (50, 100, 250)
METHODS: Final = {
    "ei": "EI",
    "log-ei": "LogEI",
    "l-bfgs": "L-BFGS-B, with gradients",
    "auto": "auto, with gradients",
}


def experiment(problems: Sequence[str] = tuple(FUNCTIONS), methods: Sequence[str] = tuple(METHODS)) -> Experiment:
    """Some of the functions and methods; designs have two points for each coordinate."""
    specs = tuple(
        ProblemSpec(
            name, 2 * int(name.rpartition("-")[2]), BUDGET, design=f"{__spec__.name}:design", checkpoints=CHECKPOINTS
        )
        for name in problems
    )
    return Experiment(
        "egreedy", "Published runs of EI", specs, tuple(MethodSpec(METHODS[name], name) for name in methods), version=4
    )


def design(name: str, seed: int) -> Array:
    """The published design of a number, `n x d` in user units."""
    return np.asarray(_published()[f"{FUNCTIONS[name]}_x0"][seed])


def published_best(name: str) -> Array:
    """Their best values so far, to be maximised, `51 x 250`."""
    return np.asarray(-_published()[f"{FUNCTIONS[name]}_ei_best"])


@cache
def _published() -> Mapping[str, Array]:
    with np.load(PUBLISHED) as file:
        return {name: file[name] for name in file.files}


def published_table(outcomes: Mapping[str, ProblemOutcome]) -> Table:
    """Every function and method that has runs, at each checkpoint."""
    duels = [
        duel
        for name, outcome in outcomes.items()
        for label in outcome.runs
        for evaluations in CHECKPOINTS
        for duel in [_duel(name, outcome, label, evaluations)]
    ]
    return duel_table("Our runs beside the published EI", duels)


def _duel(name: str, outcome: ProblemOutcome, label: str, evaluations: int) -> Duel:
    best, optimum = published_best(name), outcome.reference
    theirs = dict(enumerate((optimum - best[:, evaluations - 1]).tolist()))
    ours = {seed: optimum - value for seed, value in outcome.runs[label].at(evaluations).items()}
    scale = optimum - float(np.median(best[:, outcome.spec.initial - 1 if outcome.spec.initial else 0]))
    return Duel(name, label, evaluations, *pair(ours, theirs), scale)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description="Our runs beside published runs of EI")
    parser.add_argument("--designs", type=int, default=15, help="how many, at most 51")
    parser.add_argument("--methods", nargs="*", default=["ei", "log-ei"], choices=METHODS)
    parser.add_argument("--problems", nargs="*", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    place = Workplace(Path("eign-egreedy.sqlite"), arguments.workers, export=RESULTS)
    if arguments.methods:
        run_campaign([experiment(arguments.problems, arguments.methods)], range(arguments.designs), place)
    table = published_table(gather(open_results(RESULTS), experiment(), every_seed=True).problems)
    print(f"{table.note}\n\n{as_markdown_table(table)}")


if __name__ == "__main__":
    main()
