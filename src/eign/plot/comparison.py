"""Many runs of several methods: mean and standard error of the best value so far."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eign.arrays import Array
from eign.plot.bands import Band, mean_band, regret_band
from eign.plot.runs import best_so_far, read_run
from eign.plot.style import EVALUATIONS, TRUTH, Line, legend, lines, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def compare(
    runs: Mapping[str, Any] | Sequence[Any],
    *,
    labels: Sequence[str] | None = None,
    maximize: bool | None = None,
    optimum: float | None = None,
    regret: bool = False,
    start: int = 1,
    styles: Iterable[Line] | None = None,
    axes: "Axes | None" = None,
) -> "Axes":
    """Mean and one standard error of the best feasible value so far, one curve for each label.

    Args:
        runs: For each label one run or several, each as `convergence` takes it; or an array of values
            `runs x evaluations`. A sequence of runs has its labels in `labels`, and equal labels make one curve.
        labels: Of a sequence of runs, one a run.
        maximize: Whether larger values are better; None is what the runs say, and minimising if they do not.
        optimum: Drawn as a dashed line, if known.
        regret: Draw the geometric mean of the distance to the optimum on a log scale instead.
        start: The first evaluation that is drawn, for instance the last one of the initial designs.
        styles: Of the curves, in their order; None takes the house's.
        axes: Where to draw; None makes a new figure.
    """
    axes = new_axes() if axes is None else axes
    bests = best_curves(_by_label(runs, labels), maximize=maximize)
    for (name, best), style in zip(bests.items(), lines() if styles is None else styles, strict=False):
        evaluations, band = curve(best, optimum=optimum, regret=regret, start=start)
        axes.plot(evaluations, band.middle, color=style.colour, linestyle=style.dash, label=name, linewidth=1.8)
        if len(best) > 1:
            axes.fill_between(evaluations, band.low, band.high, color=style.colour, alpha=0.15, linewidth=0)
    if regret:
        axes.set_yscale("log")
    elif optimum is not None:
        axes.axhline(optimum, color=TRUTH, linestyle="--", linewidth=1, label="optimum")
    tidy(axes, x=EVALUATIONS, y="distance to the optimum" if regret else "best value so far")
    if bests:
        legend(axes)
    return axes


def curve(best: Array, *, optimum: float | None, regret: bool, start: int = 1) -> tuple[Array, Band]:
    """Evaluations `k` from `start` on, and the band of the best values `runs x evaluations`, or of their regrets.

    Raises:
        ValueError: a regret is asked for and no optimum given.
    """
    if regret and optimum is None:
        raise ValueError("regret=True needs the optimum: the regret is the distance to it")
    shown = best[:, start - 1 :]
    evaluations = np.arange(start, start + shown.shape[1], dtype=np.float64)
    return evaluations, regret_band(shown, optimum) if regret and optimum is not None else mean_band(shown)


def best_curves(runs: Mapping[str, Any], *, maximize: bool | None) -> dict[str, Array]:
    """For each label the best feasible values so far, `runs x evaluations`, as long as the shortest of its runs.

    A mean over the runs that got far enough would compare different runs at different evaluations.
    """
    curves = {}
    for label, of_label in runs.items():
        several = list(of_label) if _is_several(of_label) else [of_label]
        read = [read_run(run, maximize=maximize) for run in several]
        if not read:
            continue
        length = min(len(run.values) for run in read)
        curves[label] = np.stack([best_so_far(run.allowed[:length], maximize=run.maximize) for run in read])
    return curves


def _is_several(runs: Any) -> bool:
    """Whether this is a collection of runs: not one run, which may itself be a sequence of numbers."""
    if isinstance(runs, np.ndarray):
        return runs.ndim > 1
    return isinstance(runs, list | tuple) and not all(np.isscalar(value) or value is None for value in runs)


def _by_label(runs: Mapping[str, Any] | Sequence[Any], labels: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(runs, Mapping) and "history" not in runs:
        if labels is not None:
            raise ValueError("labels: a mapping of runs has its own; leave one out")
        return dict(runs)
    several = list(runs) if isinstance(runs, list | tuple | np.ndarray) else [runs]
    names = [f"run {k + 1}" for k in range(len(several))] if labels is None else list(labels)
    if len(names) != len(several):
        raise ValueError(f"{len(names)} labels for {len(several)} runs, expected one a run")
    grouped: dict[str, list[Any]] = {}
    for name, run in zip(names, several, strict=True):
        grouped.setdefault(name, []).append(run)
    return grouped
