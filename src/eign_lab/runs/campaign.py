"""A campaign from the first run to the export: what `eign paper`, `eign judge` and the studies call."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from rich.console import Console

from eign.study.storage.lock import Lock
from eign_lab.runs.coordinator import Summary, finished_evaluations, run_planned
from eign_lab.runs.display import shown_progress
from eign_lab.runs.experiment import Experiment
from eign_lab.runs.export import PARQUET, ExportedResults, export_records
from eign_lab.runs.plan import plan_runs
from eign_lab.runs.pool import DaskWorkers, LocalWorkers, TaskPool
from eign_lab.runs.store import Results
from eign_lab.runs.tasks import TASK_SECONDS


@final
@dataclass(frozen=True, slots=True)
class Workplace:
    """Where runs are done and kept.

    Attributes:
        results: The results file, of this campaign alone while it runs.
        workers: Processes of this machine.
        scheduler: Address of a Dask cluster in place of processes.
        export: Directory for a Parquet file, written at the end; runs that it has already are not repeated.
        csv: Whether the export is written as CSV too.
        task_seconds: Work between two savings of a run.
    """

    results: Path
    workers: int = 2
    scheduler: str | None = None
    export: Path | None = None
    csv: bool = False
    task_seconds: float = TASK_SECONDS


def run_campaign(
    experiments: Sequence[Experiment], seeds: Sequence[int], workplace: Workplace, console: Console | None = None
) -> bool:
    """Do all runs of the experiments that are not there; whether all of them are finished."""
    console = console or Console(highlight=False)
    planned, path, export = plan_runs(experiments, seeds), workplace.results, workplace.export
    with _sole_coordinator(path), Results(path) as results, _workers(workplace) as workers:
        if export is not None and (export / PARQUET).exists():
            results.add(ExportedResults.read(export / PARQUET).by_key.values())
        done = finished_evaluations(planned, results)
        to_do = sum(done[each.run.key] < each.goal.budget for each in planned)
        names = ", ".join(experiment.id for experiment in experiments)
        heading = f"{names}: {len(planned)} runs of {len(seeds)} seeds, {to_do} to do; results in {path}"
        console.print(heading, soft_wrap=True)
        with shown_progress(to_do) as display:
            summary = run_planned(planned, results, workers, display)
        _tell(summary, console)
        if export is not None:
            written = export_records(results.records(), export, csv=workplace.csv)
            console.print(f"exported to {' and '.join(str(file) for file in written)}", soft_wrap=True)
    return not summary.failed


@contextmanager
def _sole_coordinator(path: Path) -> Iterator[None]:
    """Two of them would do the same runs twice; whoever only reads the file is free to."""
    try:
        lock = Lock(path)
    except BlockingIOError as error:
        raise ValueError(f"{path} is in use by another campaign; wait for it, or give other --results") from error
    try:
        yield
    finally:
        lock.release()


def _workers(workplace: Workplace) -> TaskPool:
    if workplace.scheduler is not None:
        return DaskWorkers(workplace.scheduler, task_seconds=workplace.task_seconds)
    return LocalWorkers(workplace.workers, task_seconds=workplace.task_seconds)


def _tell(summary: Summary, console: Console) -> None:
    minutes = summary.seconds / 60.0
    console.print(
        f"{summary.finished} runs finished in {minutes:.1f} min, {summary.already} were finished before, "
        f"{len(summary.failed)} failed"
    )
    for title, error in summary.failed.items():
        console.print(f"failed: {title}: {error}", markup=False, soft_wrap=True)
