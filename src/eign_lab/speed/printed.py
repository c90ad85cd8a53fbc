"""The measurements of `speed` and `growth`, as tables for the terminal."""

from collections.abc import Sequence
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


def show_status(status: Status, size: str, what: str) -> None:
    """Beside the spinner: what is measured, and what is being done."""
    status.update(f"{size}: {what}")


def fit_table(rows: Sequence[FitSpeed]) -> Table:
    """Refits beside BoTorch's and the arithmetic limit, and posteriors with gradient."""
    table = Table(title="One more point, all processes refitted: seconds a step")
    for name in (
        *("d, n", "eign", "threads", "first fit", "BoTorch cold", "ratio", "BoTorch warm", "ratio", "evaluations"),
        *("x limit, 1 and 2 threads", "MAP gap / n", "posterior 20", "BoTorch", "ratio"),
    ):
        table.add_column(name, justify="right")
    for row in rows:
        cold, warm = (f"{peer.seconds:.3f} ({peer.form}, {peer.threads})" for peer in (row.cold, row.warm))
        verdict = "ok" if row.gap <= ALLOWED_GAP else "worse"
        table.add_row(
            f"{row.dim}, {row.n}",
            f"{row.seconds:.4f}",
            f"{row.threads}",
            f"{row.first_seconds:.3f}",
            cold,
            f"{row.cold.seconds / row.seconds:.0f}",
            warm,
            f"{row.warm.seconds / row.seconds:.0f}",
            f"{row.evaluations:.0f}",
            f"{row.limits[0]:.1f}, {row.limits[1]:.1f}",
            f"{row.gap:.1e} {verdict}",
            f"{row.posterior_seconds:.4f}",
            f"{row.peer_posterior_seconds:.4f}",
            f"{row.peer_posterior_seconds / row.posterior_seconds:.0f}",
        )
    return table
