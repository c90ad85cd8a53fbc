"""The terminal: parses, calls, prints. Each command's work is done in the room it belongs to.

Errors take one line and exit code 1 (2 for wrong usage); `--debug` shows the traceback instead.
"""

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eign._version import __version__

app = typer.Typer(
    name="eign",
    help="Bayesian optimization for expensive functions that also give a gradient.",
    pretty_exceptions_enable=False,
)


StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file.")]
WaitOption = Annotated[float, typer.Option(min=0, help="Seconds to wait for another process that holds the study.")]


class PointFormat(StrEnum):
    """How points are printed."""

    JSON = "json"
    CSV = "csv"


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"eign {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options that come before the command."""


@app.command()
def demo() -> None:
    """Optimise a hard function with the default method and its rivals, in a minute or two."""
    from eign.campaign.demo import show_demo

    show_demo()


@app.command()
def methods() -> None:
    """List the methods, with one line each."""
    from eign.strategies import methods as registered

    for name, summary in registered().items():
        typer.echo(f"{name:<12} {summary}")


@app.command()
def problems() -> None:
    """List the test problems, with one line each."""
    from eign.problems import summaries

    for name, summary in summaries().items():
        typer.echo(f"{name:<18} {summary}")


@app.command()
def speed(
    fit: Annotated[bool, typer.Option("--fit", help="Refits of the surrogates instead of whole suggestions.")] = False,
    growth: Annotated[bool, typer.Option("--growth", help="Time and memory as points and dimensions grow.")] = False,
    formulas: Annotated[bool, typer.Option("--formulas", help="Cost per point of each acquisition formula.")] = False,
    steps: Annotated[int, typer.Option(min=1, help="Consecutive suggestions or refits.")] = 10,
    peer_steps: Annotated[int | None, typer.Option(min=1, help="How many of them BoTorch takes too.")] = None,
    largest: Annotated[int, typer.Option(min=10, help="Leave out sizes with more points.")] = 500,
) -> None:
    """Measure speed beside plain BoTorch, in this process: whole EI-GN suggestions unless another option is given."""
    if formulas:
        from eign.campaign.formula_costs import show_formula_costs

        show_formula_costs()
    elif fit or growth:
        from rich.console import Console

        from eign.campaign.speed import FIT_SIZES
        from eign.campaign.speed_tables import report_fits, report_growth

        if growth:
            report_growth(Console())
        else:
            sizes = [(d, n) for d, n in FIT_SIZES if n <= largest]
            report_fits(Console(), sizes=sizes, steps=steps, peer_steps=peer_steps)
    else:
        from eign.campaign.suggestion_speed import show_suggestion_speed

        show_suggestion_speed(steps=steps, peer_steps=peer_steps, largest=largest)


@app.command()
def optimize(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to optimize, and how.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the study in `storage`, if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run the optimization that a TOML file describes."""
    from eign.integrations.spec_run import describe_result, run_spec
    from eign.study.run import Status
    from eign.study.spec import read_spec

    described = read_spec(spec)
    result = run_spec(described, resume=resume, progress=sys.stderr.isatty())
    typer.echo(describe_result(result, described, as_json=as_json))
    if not result.success:
        raise typer.Exit(130 if result.status == Status.INTERRUPTED else 1)


@app.command()
def init(
    study: StudyArgument,
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="Bounds, method, seed, maximize, options.")],
) -> None:
    """Begin a study for `ask` and `tell`, where no process stays alive."""
    from eign.study.optimizer import Optimizer
    from eign.study.spec import read_spec

    described = read_spec(spec)
    with Optimizer(described.box, storage=study, maximize=described.maximize, **described.study) as made:
        typer.echo(f"{study}: {made.box.dim} coordinates, method {made.method}, seed {made.seed}")


@app.command()
def ask(
    study: StudyArgument,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="How many points.")] = 1,
    as_format: Annotated[PointFormat, typer.Option("--format", help="JSON lines, or a CSV to fill in.")] = (
        PointFormat.JSON
    ),
    pending: Annotated[bool, typer.Option("--pending", help="The points that were asked and not told, again.")] = False,
    wait: WaitOption = 30.0,
) -> None:
    """Print the next points to evaluate; they are pending until they are told."""
    from eign.study.exchange import points_as_text
    from eign.study.optimizer import Optimizer

    if pending:
        view = Optimizer.view(study)
        points, reasons = view.pending, view.pending_reasons
    else:
        with Optimizer.resume(study, reissue=False, wait=wait) as view:
            points, reasons = view.ask(number), view.pending_reasons[-number:]
    typer.echo(points_as_text(points, reasons, view.box, as_csv=as_format is PointFormat.CSV), nl=False)


@app.command()
def tell(
    study: StudyArgument,
    source: Annotated[
        Path, typer.Argument(metavar="FILE", allow_dash=True, help="Evaluations, JSON or CSV; - is stdin.")
    ] = Path("-"),
    point: Annotated[Path | None, typer.Option(help="File with the point, if the evaluation does not say it.")] = None,
    x: Annotated[str | None, typer.Option("--x", help="The point, 0.5,2 or a=0.5,b=2, instead of a file.")] = None,
    y: Annotated[float | None, typer.Option("--y", help="Its value; nan if the evaluation failed.")] = None,
    gradient: Annotated[str | None, typer.Option(help="Its gradient, written as the point.")] = None,
    wait: WaitOption = 30.0,
) -> None:
    """Report evaluations: from a file, from stdin, or one by --x, --y and --gradient."""
    from eign.study.exchange import evaluation_by_hand, evaluations_from_text, tell_new
    from eign.study.optimizer import Optimizer

    if (x is None) != (y is None) or (x is None and gradient is not None):
        raise typer.BadParameter("give --x and --y together, with or without --gradient")
    asked = None if point is None else point.read_text()
    text = "" if x is not None else sys.stdin.read() if str(source) == "-" else source.read_text()
    with Optimizer.resume(study, reissue=False, wait=wait) as opened:
        if x is not None and y is not None:
            rows = evaluation_by_hand(x, y, gradient, opened.box)
        else:
            rows = evaluations_from_text(text, opened.box, str(source), point=asked)
        typer.echo(tell_new(opened, rows))


@app.command()
def status(
    study: StudyArgument,
    as_json: Annotated[bool, typer.Option("--json", help="All of it, for programs.")] = False,
) -> None:
    """Show best value, gradient, convergence and what is pending; also while the study is in use."""
    from eign.study.status import describe, summarize

    summary = summarize(study)
    typer.echo(json.dumps(summary, indent=1, allow_nan=False) if as_json else describe(summary))


@app.command()
def export(
    study: StudyArgument,
    to: Annotated[
        Path, typer.Argument(metavar="OUT", help="A file ending in .csv, .parquet or .json; it is replaced.")
    ],
) -> None:
    """Write all evaluations to a table; also while the study is in use."""
    from eign.study.optimizer import Optimizer
    from eign.study.tables import study_columns, write_columns

    view = Optimizer.view(study)
    write_columns(to, study_columns(view.history, view.box.names, view.reasons))
    typer.echo(f"{len(view.history)} evaluations to {to}")


@app.command()
def paper(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Ids of experiments, or all; none is those of the paper.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each experiment: 20, with --quick 2.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine, one thread each.")] = 2,
    results: Annotated[
        Path | None, typer.Option(help="Where results are kept, and where to go on: eign-paper.sqlite.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Try everything with hardly any work.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="Send the work to this Dask cluster: tcp://...")] = None,
    export: Annotated[Path | None, typer.Option(help="Write Parquet and CSV into this directory at the end.")] = None,
    spec: Annotated[Path | None, typer.Option(help="A TOML file with experiments of your own.")] = None,
    task_seconds: Annotated[float, typer.Option(min=0.0, max=120.0, help="Work between two savings of a run.")] = 30.0,
) -> None:
    """Run the experiments of the paper; the same command again goes on where it was stopped."""
    from eign.campaign.paper import PaperCommand, run_paper

    ids = tuple(experiments or ())
    if not run_paper(PaperCommand(ids, seeds, workers, results, quick, scheduler, export, spec, task_seconds)):
        raise typer.Exit(1)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="A results file of eign paper, or the directory of an export.")],
    out: Annotated[Path, typer.Option(help="Directory for the report.")] = Path("eign-report"),
    spec: Annotated[Path | None, typer.Option(help="A TOML file with experiments of your own.")] = None,
    svg: Annotated[bool, typer.Option(help="Whether figures are SVG files too, beside PNG.")] = True,
) -> None:
    """Make figures, tables and the verdict on every claim from the results, as a page and as Markdown."""
    from eign.campaign.report import write_report

    page, text, *figures = write_report(results, out, spec=spec, svg=svg)
    typer.echo(f"{page}\n{text}\n{len(figures)} figures in {out / 'figures'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    try:
        code = typer.main.get_command(app).main(arguments, prog_name="eign", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        if "--debug" in arguments:
            raise
        # Wrong usage carries its own exit code and message; everything else is an error of the command.
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        return _report(message or type(error).__name__, code=getattr(error, "exit_code", 1))
    return _report("interrupted", code=130) if code == 130 else code or 0


def _report(message: str, *, code: int) -> int:
    typer.echo(f"eign: error: {' '.join(message.split())}", err=True)
    return code
