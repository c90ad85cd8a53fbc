"""The command `eign paper`: from ids and options to a campaign, and what to say at its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from rich.console import Console

from eign.study.storage.lock import Lock
from eign_lab.papers.ei_gn.experiments import select
from eign_lab.runs.coordinator import Summary, run_campaign
from eign_lab.runs.display import shown_progress
from eign_lab.runs.experiment import Experiment, quick_version
from eign_lab.runs.experiment_file import load_experiments
from eign_lab.runs.export import export_results
from eign_lab.runs.plan import plan_runs
from eign_lab.runs.pool import DaskWorkers, LocalWorkers, TaskPool
from eign_lab.runs.store import Results
from eign_lab.runs.tasks import TASK_SECONDS

RESULTS: Final = Path("eign-paper.sqlite")
QUICK_RESULTS: Final = Path("eign-paper-quick.sqlite")
SEEDS: Final = 20
QUICK_SEEDS: Final = 2


@final
@dataclass(frozen=True, slots=True)
class PaperCommand:
    """What the terminal was given.

    Attributes:
        ids: Of experiments; none means those of the paper, all in a quick trial, and with a TOML file those of it.
        seeds: How many; None is 20, or 2 for a quick trial.
        workers: Processes of this machine.
        results: The results file; None is a name in the current directory.
        quick: Whether to try everything with hardly any work.
        scheduler: Address of a Dask cluster in place of processes.
        export: Directory for Parquet and CSV.
        spec: TOML file with the user's experiments.
        task_seconds: Work between two savings of a run.
    """

    ids: tuple[str, ...] = ()
    seeds: int | None = None
    workers: int = 2
    results: Path | None = None
    quick: bool = False
    scheduler: str | None = None
    export: Path | None = None
    spec: Path | None = None
    task_seconds: float = TASK_SECONDS


def run_paper(command: PaperCommand, console: Console | None = None) -> bool:
    """Run what was asked for; whether all runs are finished."""
    console = console or Console(highlight=False)
    experiments = chosen_experiments(command)
    seeds = command.seeds or (QUICK_SEEDS if command.quick else SEEDS)
    path = command.results or (QUICK_RESULTS if command.quick else RESULTS)
    planned = plan_runs(experiments, range(seeds))
    with _sole_coordinator(path), Results(path) as results, _workers(command) as workers:
        counts = results.progress()
        open_runs = sum(counts.get(each.run.key, (0, None))[0] < each.budget for each in planned)
        names = ", ".join(experiment.id for experiment in experiments)
        heading = f"{names}: {len(planned)} runs of {seeds} seeds, {open_runs} to do; results in {path}"
        console.print(heading, soft_wrap=True)
        with shown_progress(open_runs) as display:
            summary = run_campaign(planned, results, workers, display)
        _tell(summary, console)
        if command.export is not None:
            written = export_results(results, command.export)
            console.print(f"exported to {' and '.join(str(file) for file in written)}", soft_wrap=True)
    return not summary.failed


def chosen_experiments(command: PaperCommand) -> list[Experiment]:
    """The experiments that were asked for, quick ones if so.

    Raises:
        ValueError: there is no such experiment.
    """
    if command.spec is None:
        # A trial is of everything, unless something is named.
        experiments = select(command.ids or (("all",) if command.quick else ()))
    else:
        own = {experiment.id: experiment for experiment in load_experiments(command.spec)}
        unknown = [name for name in command.ids if name not in own]
        if unknown:
            raise ValueError(f"{command.spec} has no experiment {unknown[0]!r}; it has {', '.join(own)}")
        experiments = [own[name] for name in command.ids or own]
    return [quick_version(experiment) for experiment in experiments] if command.quick else experiments


@contextmanager
def _sole_coordinator(path: Path) -> Iterator[None]:
    """Two of them would do the same runs twice; whoever only reads the file is free to."""
    try:
        lock = Lock(path)
    except BlockingIOError as error:
        raise ValueError(f"{path} is in use by another eign paper; wait for it, or give other --results") from error
    try:
        yield
    finally:
        lock.release()


def _workers(command: PaperCommand) -> TaskPool:
    if command.scheduler is not None:
        return DaskWorkers(command.scheduler, task_seconds=command.task_seconds)
    return LocalWorkers(command.workers, task_seconds=command.task_seconds)


def _tell(summary: Summary, console: Console) -> None:
    minutes = summary.seconds / 60.0
    console.print(
        f"{summary.finished} runs finished in {minutes:.1f} min, {summary.already} were finished before, "
        f"{len(summary.failed)} failed"
    )
    for title, error in summary.failed.items():
        console.print(f"failed: {title}: {error}", markup=False, soft_wrap=True)
