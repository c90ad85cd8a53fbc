"""The terminal: parses, calls, prints. Each command's work is done in the room it belongs to.

Errors take one line and exit code 1 (2 for wrong usage); `--debug` shows the traceback instead.
"""

import sys
from collections.abc import Sequence
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
    """Show what eign computes that others call intractable, in a few seconds."""
    from eign.campaign.demo import show_demo

    show_demo()


@app.command()
def speed(
    formulas: Annotated[bool, typer.Option("--formulas", help="Cost per point of each acquisition formula.")] = False,
) -> None:
    """Measure speed on this machine."""
    if not formulas:
        raise typer.BadParameter("say what to measure, for example eign speed --formulas")
    from eign.campaign.formula_costs import show_formula_costs

    show_formula_costs()


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
