"""The laboratory's commands: parse, call, print. They join the terminal by the entry points `eign.commands`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["paper", "report", "speed"]


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
        from eign_lab.speed.formula_costs import show_formula_costs

        show_formula_costs()
    elif fit or growth:
        from rich.console import Console

        from eign_lab.speed.fits import FIT_SIZES
        from eign_lab.speed.printed import report_fits, report_growth

        if growth:
            report_growth(Console())
        else:
            sizes = [(d, n) for d, n in FIT_SIZES if n <= largest]
            report_fits(Console(), sizes=sizes, steps=steps, peer_steps=peer_steps)
    else:
        from eign_lab.speed.suggestions import show_suggestion_speed

        show_suggestion_speed(steps=steps, peer_steps=peer_steps, largest=largest)


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
    from eign_lab.papers.ei_gn.campaign import PaperCommand, run_paper

    ids = tuple(experiments or ())
    if not run_paper(PaperCommand(ids, seeds, workers, results, quick, scheduler, export, spec, task_seconds)):
        raise typer.Exit(1)


def report(
    results: Annotated[Path, typer.Argument(help="A results file of eign paper, or the directory of an export.")],
    out: Annotated[Path, typer.Option(help="Directory for the report.")] = Path("eign-report"),
    spec: Annotated[Path | None, typer.Option(help="A TOML file with experiments of your own.")] = None,
    svg: Annotated[bool, typer.Option(help="Whether figures are SVG files too, beside PNG.")] = True,
) -> None:
    """Make figures, tables and the verdict on every claim from the results, as a page and as Markdown."""
    from eign_lab.papers.ei_gn.report import write_report

    page, text, *figures = write_report(results, out, spec=spec, svg=svg)
    typer.echo(f"{page}\n{text}\n{len(figures)} figures in {out / 'figures'}")
