"""The measurements of `speed` and `growth`, as tables for the terminal."""

from collections.abc import Mapping, Sequence
from functools import partial

from rich.console import Console
from rich.status import Status
from rich.table import Table

from eign_lab.speed.fits import (
    ALLOWED_GAP,
    FIT_SIZES,
    FitSpeed,
    measure_fit,
)
from eign_lab.speed.growth import (
    GROWTH_SIZES,
    MOST_ROWS,
    Growth,
    ModelName,
    StepCosts,
    measure_growth,
    measure_steps,
)
from eign_lab.speed.many_dimensions import (
    ITERATIVE_SIZES,
    MANY_SIZES,
    IterativeCosts,
    ManyCosts,
    ManyModel,
    measure_iterative,
    measure_many,
    rows_of_model,
)
from eign_lab.speed.many_dimensions import MOST_ROWS as MOST_ROWS_OF_MANY


def report_fits(
    console: Console, *, sizes: Sequence[tuple[int, int]] = FIT_SIZES, steps: int = 10, peer_steps: int | None = None
) -> list[FitSpeed]:
    """Measure refits at all sizes and return the rows; each is printed when it is there, for some take minutes."""
    rows = []
    for dim, n in sizes:
        with console.status(f"d = {dim}, n = {n}") as status:
            show = partial(show_status, status, f"d = {dim}, n = {n}")
            rows.append(measure_fit(dim, n, steps=steps, peer_steps=peer_steps, show=show))
        console.print(fit_table(rows[-1:]))
    return rows


def report_growth(
    console: Console, *, sizes: Sequence[tuple[int, int]] = GROWTH_SIZES, most_rows: int = MOST_ROWS
) -> list[Growth | StepCosts]:
    """Measure both models at all sizes and print as it goes: a refit after one more point, and its peak of memory.

    Beyond `most_rows` rows of the joint model's matrix, n (d + 1), its single steps are measured instead.
    """
    rows: list[Growth | StepCosts] = []
    models: tuple[ModelName, ...] = ("independent", "joint")
    for model in models:
        for dim, n in sizes:
            with console.status(f"{model}: d = {dim}, n = {n}"):
                is_large = model == "joint" and n * (dim + 1) > most_rows
                rows.append(measure_steps(dim, n) if is_large else measure_growth(model, dim, n))
            console.print(str(rows[-1]), highlight=False)
    return rows


def report_many(
    console: Console,
    *,
    sizes: Sequence[tuple[int, int]] = MANY_SIZES,
    iterative_sizes: Sequence[tuple[int, int]] = ITERATIVE_SIZES,
) -> list[ManyCosts | IterativeCosts]:
    """Measure the split model in many dimensions, beside the dense one and GPyTorch's where these can be measured."""
    rows: list[ManyCosts | IterativeCosts] = []
    models: tuple[ManyModel, ...] = ("spanned", "joint", "gpytorch")
    for dim, n in sizes:
        for model in models:
            if rows_of_model(model, dim, n) <= MOST_ROWS_OF_MANY[model]:
                with console.status(f"{model}: d = {dim}, n = {n}"):
                    rows.append(measure_many(model, dim, n))
                console.print(str(rows[-1]), highlight=False)
    for dim, n in iterative_sizes:
        with console.status(f"iterative: d = {dim}, n = {n}"):
            rows.append(measure_iterative(dim, n))
        console.print(str(rows[-1]), highlight=False)
    return rows


def show_status(status: Status, size: str, what: str) -> None:
    """Beside the spinner: what is measured, and what is being done."""
    status.update(f"{size}: {what}")


def fit_table(rows: Sequence[FitSpeed]) -> Table:
    """Refits beside BoTorch's and the arithmetic limit, and posteriors with gradient; a column each."""
    columns = [
        {
            "seconds a refit": f"{row.seconds:.4f}, {row.threads} thread{'s' * (row.threads > 1)}",
            "first fit": f"{row.first_seconds:.3f} s",
            **{
                f"BoTorch {peer.start}": f"{peer.seconds:.3f} s, {peer.form}, {peer.threads} "
                f"thread{'s' * (peer.threads > 1)}: {peer.seconds / row.seconds:.0f} times"
                for peer in (row.cold, row.warm)
            },
            "evaluations": f"{row.evaluations:.0f}",
            "times the limit, 1 and 2 threads": f"{row.limits[0]:.1f}, {row.limits[1]:.1f}",
            "MAP gap / n": f"{row.gap:.1e} {'ok' if row.gap <= ALLOWED_GAP else 'worse'}",
            "posterior of 20 points": f"{row.posterior_seconds:.4f} s",
            "BoTorch's posterior": f"{row.peer_posterior_seconds:.4f} s: "
            f"{row.peer_posterior_seconds / row.posterior_seconds:.0f} times",
        }
        for row in rows
    ]
    title = "One more point, all processes refitted: d, n"
    return transposed(title, [f"{row.dim}, {row.n}" for row in rows], columns)


def transposed(title: str, headings: Sequence[str], columns: Sequence[Mapping[str, str]]) -> Table:
    """What was measured in a line each, so that one measurement fits into a terminal of 80 columns."""
    table = Table(title=title)
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    for name in columns[0] if columns else ():
        table.add_row(name, *(column[name] for column in columns))
    return table
