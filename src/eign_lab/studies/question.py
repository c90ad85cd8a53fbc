"""A question that is answered by one experiment: run what is missing, print the table."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.campaign import Workplace, run_campaign
from eign_lab.runs.experiment import Experiment
from eign_lab.runs.export import open_results
from eign_lab.runs.outcomes import ProblemOutcome, gather

Outcomes = Mapping[str, ProblemOutcome]


def answer(
    experiment: Experiment, table: Callable[[Outcomes], Table], *, export: Path | None = None, first_seed: int = 0
) -> None:
    """What the script of such a question does; finished runs are kept in `export`, if there is such a directory."""
    parser = argparse.ArgumentParser(description=experiment.title)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    place = Workplace(Path(f"eign-{experiment.id}.sqlite"), arguments.workers, export=export)
    run_campaign([experiment], range(first_seed, first_seed + arguments.seeds), place)
    print(as_markdown_table(table(gather(open_results(export or place.results), experiment).problems)))
