"""The terminal: parses, calls, prints. Each command's work is done in the room it belongs to.

Errors take one line and exit code 1 (2 for wrong usage); `--debug` shows the traceback instead.
"""

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib.metadata import entry_points
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
    from eign.demo import show_demo

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
def optimize(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to optimize, and how.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the study in `storage`, if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run the optimization that a TOML file describes."""
    from eign.exchange.spec import read_spec
    from eign.integrations.spec_run import describe_result, run_spec
    from eign.study.run import Status

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
    from eign.exchange.spec import read_spec
    from eign.study.optimizer import Optimizer

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
    from eign.exchange.text import points_as_text
    from eign.study.handle import handle
    from eign.study.optimizer import Optimizer

    if pending:
        view = Optimizer.view(study)
        points, reasons = view.pending, handle(view).pending.reasons
    else:
        with Optimizer.resume(study, reissue=False, wait=wait) as view:
            points, reasons = view.ask(number), handle(view).pending.reasons[-number:]
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
    from eign.exchange.text import evaluation_by_hand, evaluations_from_text, tell_new
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
    from eign.exchange.status import describe, summarize

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
    from eign.exchange.tables import write_table
    from eign.study.optimizer import Optimizer

    view = Optimizer.view(study)
    write_table(to, view.history, names=view.box.names, reasons=view.reasons)
    count = len(view.history)
    typer.echo(f"{count} evaluation{'s' * (count != 1)} to {to}")


def add_installed_commands() -> None:
    """The commands of other packages, such as the laboratory's: entry points of the group `eign.commands`."""
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    for entry in sorted(entry_points(group="eign.commands"), key=lambda entry: entry.name):
        if entry.name not in known:
            app.command(entry.name)(entry.load())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    add_installed_commands()
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
