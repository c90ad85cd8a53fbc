"""The measurements of `speed`, as tables for the terminal."""

from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.status import Status
from rich.table import Table

from eign.campaign.speed import (
    ALLOWED_GAP,
    FIT_SIZES,
    GROWTH_SIZES,
    FitSpeed,
    Growth,
    measure_fit,
    measure_growth,
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
    console: Console, *, sizes: Sequence[tuple[int, int]] = GROWTH_SIZES, most_rows: int = 12000
) -> list[Growth]:
    """Measure both models at all sizes, the joint one up to `most_rows` rows of its matrix, n (d + 1).

    Prints as it goes: seconds of a refit after one more point, and the peak of allocated memory.
    """
    rows = []
    for model in ("independent", "joint"):
        for dim, n in sizes:
            if model == "independent" or n * (dim + 1) <= most_rows:
                with console.status(f"{model}: d = {dim}, n = {n}"):
                    row = measure_growth(model, dim, n)
                rows.append(row)
                console.print(f"{model:<12} d {dim:>3}  n {n:>5}  {row.seconds:9.3f} s  {row.megabytes:7.0f} MB")
    return rows


def show_status(status: Status, size: str, what: str) -> None:
    """Beside the spinner: what is measured, and what is being done."""
    status.update(f"{size}: {what}")


def fit_table(rows: Sequence[FitSpeed]) -> Table:
    """Refits beside BoTorch's and the arithmetic limit, and posteriors with gradient."""
    table = Table(title="One more point, all processes refitted: seconds a step")
    for name in (
        *("d, n", "eign", "threads", "first fit", "BoTorch cold", "ratio", "BoTorch warm", "ratio", "evaluations"),
        *("x limit", "MAP gap / n", "posterior 20", "BoTorch", "ratio"),
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
            f"{row.seconds / row.limit:.1f}",
            f"{row.gap:.1e} {verdict}",
            f"{row.posterior_seconds:.4f}",
            f"{row.peer_posterior_seconds:.4f}",
            f"{row.peer_posterior_seconds / row.posterior_seconds:.0f}",
        )
    return table
