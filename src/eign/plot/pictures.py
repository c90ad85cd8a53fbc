"""The picture of a study that the terminal writes."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eign.plot.convergence import convergence, gradient_norm
from eign.plot.runs import read_run

if TYPE_CHECKING:
    from eign.study.optimizer import Optimizer

ENDINGS = (".png", ".pdf", ".svg")


def save_study(study: "Optimizer", file: Path) -> None:
    """Values and best so far, and below them the norms of the gradients where there are any.

    The scale of the values is logarithmic where the best so far spans two powers of ten or more and keeps its sign.

    Raises:
        ValueError: the file has another ending, or no value has been told.
        ImportError: matplotlib is not installed.
    """
    if file.suffix.lower() not in ENDINGS:
        raise ValueError(f"{file}: expected one of the endings {', '.join(ENDINGS)}")
    if not study.history.has_y.any():
        raise ValueError("there is nothing to plot: no value has been told")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a picture needs matplotlib: pip install 'eign[bench]' or pip install matplotlib") from error
    has_gradients = bool(study.history.has_grad.all(axis=1).any())
    figure = Figure(figsize=(6.4, 6.4 if has_gradients else 4.0), layout="constrained")
    axes = figure.subplots(1 + has_gradients, 1, squeeze=False)[:, 0]
    convergence(study, axes=axes[0])
    best = read_run(study).best
    best = best[np.isfinite(best)] if np.isfinite(best).any() else np.zeros(1)
    smallest, largest = np.sort(np.abs(best[[0, -1]]))
    if best[0] * best[-1] > 0 and largest >= 100 * smallest:
        axes[0].autoscale()
        axes[0].set_yscale("log" if best[0] > 0 else "symlog", **({} if best[0] > 0 else {"linthresh": smallest}))
    axes[0].set_title(f"{study.method}, seed {study.seed}", loc="left", fontsize=10)
    if has_gradients:
        gradient_norm(study, axes=axes[1])
    figure.savefig(file, dpi=150)
