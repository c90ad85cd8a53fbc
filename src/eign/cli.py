"""The terminal: parses, calls, prints. Each command's work is done in the room it belongs to.

Errors take one line and exit code 1 (2 for wrong usage); `--debug` shows the traceback instead.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from eign._version import __version__

app = typer.Typer(
    name="eign",
    help="Bayesian optimization for expensive functions that also give a gradient.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
) -> None:
    """Make figures, tables and the verdict on every claim from the results, as a page and as Markdown."""
    from eign.campaign.report import write_report

    page, text, *figures = write_report(results, out, spec=spec)
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
