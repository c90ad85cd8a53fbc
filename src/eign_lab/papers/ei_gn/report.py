"""`eign report`: what the runs of a results file say, as a page for the browser, as Markdown, and as figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from eign._version import __version__
from eign_lab.papers.ei_gn.acquisition_costs import judge_acquisition_costs
from eign_lab.papers.ei_gn.experiments import EXPERIMENTS
from eign_lab.papers.ei_gn.judgements import JudgedClaim, Judgement, judge_claims
from eign_lab.papers.ei_gn.landscapes import PROBLEM as MIXTURE
from eign_lab.papers.ei_gn.landscapes import draw_landscapes, judge_landscapes
from eign_lab.papers.ei_gn.published import PUBLISHED
from eign_lab.report.figures import draw_curves, save
from eign_lab.report.summaries import Table, checkpoint_table, ending_table
from eign_lab.runs.experiment import Experiment, quick_version
from eign_lab.runs.experiment_file import load_experiments
from eign_lab.runs.export import open_results
from eign_lab.runs.outcomes import ExperimentOutcome, gather
from eign_lab.runs.store import Records

PAGE: Final = "index.html"
TEXT: Final = "report.md"
FIGURES: Final = "figures"


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that was written: its PNG, what it shows, and its SVG if there is one."""

    png: Path
    caption: str
    svg: Path | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """What a report says about an experiment: its outcome, its figures, and the tables of each problem."""

    outcome: ExperimentOutcome
    pictures: tuple[Picture, ...]
    tables: Mapping[str, tuple[Table, ...]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """All that is shown, before it is a page or a text.

    Attributes:
        sections: One for each experiment.
        claims: Decided from all runs.
        is_trial: Whether the runs are those of `--quick`, which decide nothing.
        made: When, in words.
    """

    sections: tuple[Section, ...]
    claims: tuple[JudgedClaim, ...]
    is_trial: bool
    made: str

    @property
    def hours(self) -> float:
        """Spent on proposals, over all runs that are shown; a run that two experiments share counts twice."""
        return sum(section.outcome.hours for section in self.sections)


def write_report(
    results: str | Path,
    out: str | Path,
    *,
    experiments: Iterable[Experiment] = tuple(EXPERIMENTS.values()),
    spec: str | Path | None = None,
    measured: Mapping[str, Judgement] | None = None,
    svg: bool = True,
) -> list[Path]:
    """Write `index.html`, `report.md` and the figures, and return what was written.

    Args:
        results: A results file, SQLite or Parquet, or the directory of an export.
        out: Directory for the report; made if it is missing.
        experiments: What to look for; those of the paper are shown also without runs.
        spec: A TOML file with further experiments.
        measured: Decisions about claims that do not rest on runs; None measures them now, in half a minute.
        svg: Whether figures are written as SVG too.
    """
    from eign_lab.papers.ei_gn.markdown import as_markdown
    from eign_lab.papers.ei_gn.page import as_page

    directory, found = Path(out), open_results(results)
    sought = [*experiments, *([] if spec is None else load_experiments(spec))]
    directory.mkdir(parents=True, exist_ok=True)
    report = make_report(found, directory, sought, measured, svg=svg)
    page, text = directory / PAGE, directory / TEXT
    page.write_text(as_page(report), encoding="utf-8")
    text.write_text(as_markdown(report, directory), encoding="utf-8")
    pictures = [path for section in report.sections for p in section.pictures for path in (p.png, p.svg)]
    return [page, text, *filter(None, pictures)]


def make_report(
    results: Records,
    directory: Path,
    experiments: Sequence[Experiment],
    measured: Mapping[str, Judgement] | None = None,
    *,
    svg: bool = True,
) -> Report:
    """Gather, judge, tabulate and draw; the figures are written into the directory. See `write_report`."""
    outcomes = [gather(results, experiment) for experiment in experiments]
    is_trial = False
    if all(outcome.is_empty for outcome in outcomes):
        trials = [gather(results, quick_version(experiment)) for experiment in experiments]
        is_trial = not all(outcome.is_empty for outcome in trials)
        outcomes = trials if is_trial else outcomes
    if measured is None:
        measured = {"landscapes": judge_landscapes(), "costs": judge_acquisition_costs()}
    # Claims compare two methods seed by seed, and use all the seeds that these two have.
    judged = [] if is_trial else [gather(results, experiment, every_seed=True) for experiment in experiments]
    by_id = {outcome.experiment.id: outcome for outcome in judged}
    # Runs that an extra experiment shares with the paper's do not mean that it was asked for.
    shared = {kind for outcome in outcomes if not outcome.experiment.extra for kind in _kinds_of_runs(outcome)}
    shown = [outcome for outcome in outcomes if not outcome.experiment.extra or _kinds_of_runs(outcome) - shared]
    sections = tuple(_section(outcome, directory / FIGURES, svg=svg) for outcome in shown)
    made = f"eign {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return Report(sections, tuple(judge_claims(by_id, measured)), is_trial, made)


def _kinds_of_runs(outcome: ExperimentOutcome) -> set[str]:
    """What runs there are, whatever their seeds, as the keys that they would have with the first."""
    experiment = outcome.experiment
    return {
        experiment.run(problem, method, 0).key
        for problem, method in experiment.pairs()
        if method.label in outcome.problems[problem.label].runs
    }


def _section(outcome: ExperimentOutcome, figures: Path, *, svg: bool) -> Section:
    name = outcome.experiment.id
    kinds = ("png", "svg") if svg else ("png",)
    pictures = []
    if any(problem.name == MIXTURE for problem in outcome.experiment.problems):
        files = save(draw_landscapes(), figures, f"{name}-landscapes", kinds)
        pictures.append(_picture(files, "Posterior and acquisition from ten points, high regions shaded."))
    for regret, suffix, caption in (
        (False, "", "Mean and one standard error of the best value."),
        (True, "-regret", "Geometric mean and one standard error of the distance to the optimum."),
    ):
        if (figure := draw_curves(outcome, regret=regret)) is not None:
            pictures.append(_picture(save(figure, figures, f"{name}{suffix}", kinds), caption))
    tables = {
        label: (checkpoint_table(problem, PUBLISHED), ending_table(problem))
        for label, problem in outcome.problems.items()
        if problem.runs
    }
    return Section(outcome, tuple(pictures), tables)


def _picture(files: Sequence[Path], caption: str) -> Picture:
    png, *vector = files
    return Picture(png, caption, *vector)
