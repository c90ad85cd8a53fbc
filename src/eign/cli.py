"""The terminal: parses, calls, prints. Each command's work is done in the room it belongs to.

Errors go to stderr with exit code 1 (2 for wrong usage); `--debug` shows the traceback instead.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    from eign.exchange.printing import listed, terminal_width
    from eign.strategies import methods as registered

    typer.echo("\n".join(listed(registered(), width=terminal_width())))


@app.command()
def problems() -> None:
    """List the test problems, with one line each."""
    from eign.exchange.printing import listed, terminal_width
    from eign.problems import summaries

    typer.echo("\n".join(listed(summaries(), width=terminal_width())))


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
    from eign.exchange.printing import counted
    from eign.exchange.spec import read_spec
    from eign.study.optimizer import Optimizer

    described = read_spec(spec)
    if study.exists():
        raise FileExistsError(f"{study} exists; `eign status {study}` shows it, for a new study give another name")
    settings = {**described.study, "budget": described.settings.get("budget")}
    with Optimizer(described.box, storage=study, maximize=described.maximize, **settings) as made:
        parts = [counted(made.box.dim, "coordinate")]
        if limited := len(made.constraints) + len(made.linear):
            parts.append(counted(limited, "constraint"))
        typer.echo(f"{study}: {', '.join(parts)}, method {made.method}, seed {made.seed}")


@app.command()
def ask(
    study: StudyArgument,
    number: Annotated[int, typer.Option("-n", "--n", "--number", min=1, help="How many points.")] = 1,
    as_format: Annotated[PointFormat, typer.Option("--format", help="JSON lines, or a CSV to fill in.")] = (
        PointFormat.JSON
    ),
    pending: Annotated[bool, typer.Option("--pending", help="The points that were asked and not told, again.")] = False,
    wait: WaitOption = 30.0,
) -> None:
    """Print the next points to evaluate; they are pending until they are told."""
    from eign.exchange.printing import printable
    from eign.exchange.text import points_as_text
    from eign.study.handle import handle
    from eign.study.optimizer import Optimizer

    _check_exists(study)
    if pending:
        view = Optimizer.view(study)
        points, reasons = view.pending, handle(view).pending.reasons
    else:
        with Optimizer.resume(study, reissue=False, wait=wait) as view:
            points, reasons = view.ask(number), handle(view).pending.reasons[-number:]
    is_csv, names = as_format is PointFormat.CSV, view.constraints.names
    text = points_as_text(points, reasons, view.box, as_csv=is_csv, constraints=names)
    # A file gets every byte; a terminal would obey escapes that a study's file may hold.
    lines = [printable(line) for line in text.splitlines()] if sys.stdout.isatty() else text.splitlines()
    typer.echo("".join(f"{line}\n" for line in lines), nl=False)


@app.command()
def tell(
    study: StudyArgument,
    source: Annotated[
        Path, typer.Argument(metavar="FILE", allow_dash=True, help="Evaluations, JSON or CSV; - is stdin.")
    ] = Path("-"),
    point: Annotated[Path | None, typer.Option(help="File with the point, if the evaluation does not say it.")] = None,
    x: Annotated[str | None, typer.Option("--x", help="The point, 0.5,2 or a=0.5,b=2, instead of a file.")] = None,
    y: Annotated[float | None, typer.Option("--y", "--value", help="Its value; nan if the evaluation failed.")] = None,
    gradient: Annotated[str | None, typer.Option(help="Its gradient, written as the point.")] = None,
    constraint: Annotated[
        list[str] | None, typer.Option(help="The value of a constraint, stress=231; once for each.")
    ] = None,
    wait: WaitOption = 30.0,
) -> None:
    """Report evaluations: from a file, from stdin, or one by --x, --y, --gradient and --constraint."""
    from eign.exchange.tables import read_utf8
    from eign.exchange.text import evaluation_by_hand, evaluations_from_text, tell_new
    from eign.study.optimizer import Optimizer
    from eign.study.storage.study_file import StorageError

    if (x is None) != (y is None) or (x is None and (gradient is not None or constraint)):
        raise typer.BadParameter("give --x and --y together, with or without --gradient and --constraint")
    asked = None if point is None else read_utf8(point)
    text = "" if x is not None else _stdin() if str(source) == "-" else read_utf8(source)
    name = "stdin" if str(source) == "-" else str(source)
    _check_exists(study)
    try:
        with Optimizer.resume(study, reissue=False, wait=wait) as opened:
            if x is not None and y is not None:
                rows = evaluation_by_hand(
                    x, y, gradient, opened.box, constraint=constraint or [], constraints=opened.constraints
                )
            else:
                rows = evaluations_from_text(text, opened.box, name, point=asked, constraints=opened.constraints)
            typer.echo(tell_new(opened, rows))
    except StorageError as error:
        # The study would keep it in memory for the next call; here the process ends.
        reason = error.__cause__ if isinstance(error.__cause__, StorageError) else error
        raise StorageError(f"{reason}. Nothing was recorded: tell it again") from error


@app.command()
def retract(
    study: StudyArgument,
    x: Annotated[str, typer.Option("--x", help="The point, 0.5,2 or a=0.5,b=2, with all its digits.")],
    wait: WaitOption = 30.0,
) -> None:
    """Take back what was told at a point, as if it had never been; to correct a value, tell it anew."""
    from eign.exchange.printing import counted
    from eign.exchange.text import numbers_from_text
    from eign.study.optimizer import Optimizer

    _check_exists(study)
    with Optimizer.resume(study, reissue=False, wait=wait) as opened:
        taken = opened.retract(numbers_from_text(x, opened.box, "x"))
        left = len(opened.history)
    typer.echo(f"retracted {counted(taken, 'evaluation')}; {counted(left, 'evaluation')} left")


@app.command()
def status(
    study: StudyArgument,
    as_json: Annotated[bool, typer.Option("--json", help="All of it, for programs.")] = False,
) -> None:
    """Show best value, gradient, convergence and what is pending; also while the study is in use."""
    from eign.exchange.printing import terminal_width
    from eign.exchange.status import describe, summarize

    _check_exists(study)
    summary = summarize(study)
    shown = json.dumps(summary, indent=1, allow_nan=False) if as_json else describe(summary, width=terminal_width())
    typer.echo(shown)


@app.command()
def plot(
    study: StudyArgument,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a picture, .png, .pdf or .svg, or a page, .html.")
    ] = None,
) -> None:
    """Plot the values and the best so far: in the terminal, or with the gradient norms to a file."""
    from eign.exchange.printing import plot_lines, terminal_width
    from eign.study.handle import handle
    from eign.study.optimizer import Optimizer

    _check_exists(study)
    view = Optimizer.view(study)
    if to is not None:
        from eign.plot.pictures import save_study

        save_study(view, to)
        typer.echo(f"a picture of {len(view.history)} evaluations to {to}")
        return
    inside = handle(view)
    lines = plot_lines(
        view.history.y.tolist(),
        maximize=inside.definition.maximize,
        feasible=inside.is_feasible().tolist(),
        width=terminal_width(),
        height=18,
    )
    typer.echo("\n".join(lines[1:]) if lines else f"{study}: nothing to plot, fewer than two values are told")


@app.command()
def export(
    study: StudyArgument,
    to: Annotated[
        Path, typer.Argument(metavar="OUT", help="A file ending in .csv, .parquet or .json; it is replaced.")
    ],
) -> None:
    """Write all evaluations to a table; also while the study is in use."""
    from eign.exchange.printing import counted
    from eign.exchange.tables import write_table
    from eign.study.optimizer import Optimizer

    _check_exists(study)
    view = Optimizer.view(study)
    names = view.constraints.names
    write_table(to, view.history, names=view.box.names, reasons=view.reasons, constraints=names)
    typer.echo(f"{counted(len(view.history), 'evaluation')} to {to}")


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
        with _plain_warnings():
            code = typer.main.get_command(app).main(arguments, prog_name="eign", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        if "--debug" in arguments:
            raise
        # Wrong usage carries its own exit code and message; everything else is an error of the command.
        message = error.format_message() if hasattr(error, "format_message") else _text(error)
        notes = [note for note in getattr(error, "__notes__", ()) if not note.startswith("in the worker: ")]
        return _report("\n".join([message or type(error).__name__, *notes]), code=getattr(error, "exit_code", 1))
    return _report("interrupted", code=130) if code == 130 else code or 0


def _text(error: Exception) -> str:
    """What an error says; of the system's errors the file and the reason, without a number and quotes."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror and len(error.args) == 2:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        from eign.exchange.tables import SAVE_AS_UTF8

        raise ValueError(f"stdin: expected {error.encoding.upper()}; {SAVE_AS_UTF8}") from None


def _check_exists(study: Path) -> None:
    if not study.exists():
        raise FileNotFoundError(f"there is no study {study}; to begin one: eign init {study} SPEC.toml")


def _report(message: str, *, code: int) -> int:
    """The error on stderr: its first line after our name, further ones, such as a program's last words, below it."""
    _say("error", message)
    return code


def _say(kind: str, message: str) -> None:
    from eign.exchange.printing import printable, terminal_width, wrapped

    first, *rest = [printable(line.expandtabs()) for line in message.splitlines()] or [""]
    lines = [f"eign: {kind}: {first}"]
    if sys.stderr.isatty():  # another program gets the message as one line; further lines are not ours to break
        lines = wrapped(lines[0], width=terminal_width(), indent="  ", first="")
    typer.echo("\n".join([*lines, *(f"  {line}" for line in rest)]), err=True)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings without the line of Python that gave them."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        _say("warning", str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
