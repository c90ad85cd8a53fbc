"""The picture of a study that the terminal writes."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eign.plot.convergence import convergence, gradient_norm
from eign.plot.runs import read_run

if TYPE_CHECKING:
    from eign.study.optimizer import Optimizer

ENDINGS = (".png", ".pdf", ".svg", ".html")


def save_study(study: "Optimizer", file: Path) -> None:
    """Values and best so far, and below them the norms of the gradients where there are any.

    The scale of the values is logarithmic where the best so far spans two powers of ten or more and keeps its sign.
    Values of infeasible points are crosses. A page (.html) has the values alone, each with its point under the mouse,
    and needs no network.

    Raises:
        ValueError: the file has another ending, or no value has been told.
        ImportError: matplotlib is not installed, or for a page plotly.
    """
    if file.suffix.lower() not in ENDINGS:
        raise ValueError(f"{file}: expected one of the endings {', '.join(ENDINGS)}")
    if not study.history.has_y.any():
        raise ValueError("there is nothing to plot: no value has been told")
    is_log, linear_up_to = _scale_of(study)
    if file.suffix.lower() == ".html":
        _save_page(study, file, is_log=is_log and linear_up_to is None)
        return
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a picture needs matplotlib: pip install 'eign[bench]' or pip install matplotlib") from error
    has_gradients = bool(study.history.has_grad.all(axis=1).any())
    figure = Figure(figsize=(6.4, 6.4 if has_gradients else 4.0), layout="constrained")
    axes = figure.subplots(1 + has_gradients, 1, squeeze=False)[:, 0]
    convergence(study, axes=axes[0])
    if is_log:
        axes[0].autoscale()
        axes[0].set_yscale(
            "log" if linear_up_to is None else "symlog", **({} if linear_up_to is None else {"linthresh": linear_up_to})
        )
    axes[0].set_title(f"{study.method}, seed {study.seed}", loc="left", fontsize=10)
    if has_gradients:
        gradient_norm(study, axes=axes[1])
    figure.savefig(file, dpi=150)


def _scale_of(study: "Optimizer") -> tuple[bool, float | None]:
    """Whether the scale of the values is logarithmic, and up to which size it is linear where they are negative."""
    best = read_run(study).best
    best = best[np.isfinite(best)] if np.isfinite(best).any() else np.zeros(1)
    smallest, largest = np.sort(np.abs(best[[0, -1]]))
    is_log = bool(best[0] * best[-1] > 0 and largest >= 100 * smallest)
    return is_log, float(smallest) if is_log and best[0] < 0 else None


def _save_page(study: "Optimizer", file: Path, *, is_log: bool) -> None:
    try:
        import plotly  # noqa: F401
    except ImportError as error:
        raise ImportError("a page needs plotly: pip install 'eign[bench]' or pip install plotly") from error
    from eign.plot.interactive import convergence_interactive

    figure = convergence_interactive(study)
    if is_log:
        figure.update_yaxes(type="log")
    file.write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")
