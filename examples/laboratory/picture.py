"""Draw what the study believes: python examples/laboratory/picture.py laboratory/lab.db lab.png."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from eign import Optimizer, plot


def draw(study: Path, to: Path) -> None:
    """The posterior mean over both coordinates, and the measurements with two standard errors."""
    optimizer = Optimizer.view(study)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    plot.contour(optimizer, ("temperature", "minutes"), axes=left)
    left.set_title("profit, as the study believes it")
    plot.convergence(optimizer, axes=right)
    history = optimizer.history
    right.errorbar(
        1 + np.arange(len(history)),
        history.y,
        yerr=2 * np.sqrt(history.y_var),
        fmt="none",
        ecolor="#767676",
        zorder=0,
    )
    right.set_ylim(np.nanmin(history.y) - 0.05, np.nanmax(history.y) + 0.1)
    right.set_title("measurements, with two standard errors")
    figure.savefig(to, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
