"""Which step REINFORCE should take by default: mean best return after 100 evaluations, on seeds that no study uses.

    python -m eign_lab.studies.reinforce_steps [--seeds 10] [--workers 2]

Runs are kept in eign-reinforce-steps.sqlite.
"""

import argparse
from pathlib import Path
from typing import Final

from eign_lab.report.summaries import Table, as_markdown_table, plus_minus
from eign_lab.runs.campaign import Workplace, run_campaign
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec
from eign_lab.runs.outcomes import gather
from eign_lab.runs.store import Results

RESULTS: Final = Path("eign-reinforce-steps.sqlite")
FIRST_SEED: Final = 1000
EXPERIMENT: Final = Experiment(
    "reinforce-steps",
    "Steps of REINFORCE",
    tuple(
        ProblemSpec(name, initial, 100, seeded=True)
        for name, initial in {"acrobot-6": 18, "cartpole-13": 39, "cartpole-fixed-13": 39}.items()
    ),
    tuple(MethodSpec(f"{step:g}", "reinforce", {"step": step}) for step in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)),
)


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    run_campaign([EXPERIMENT], seeds, Workplace(RESULTS, arguments.workers))
    with Results(RESULTS) as results:
        outcomes = gather(results, EXPERIMENT).problems
    rows = tuple(
        (name, step, plus_minus(runs.best[:, (outcome.spec.initial or 1) - 1]), plus_minus(runs.best[:, -1]))
        for name, outcome in outcomes.items()
        for step, runs in outcome.runs.items()
    )
    print(as_markdown_table(Table("", ("problem", "step", "best of the design", "best of all"), rows)))


if __name__ == "__main__":
    main()
