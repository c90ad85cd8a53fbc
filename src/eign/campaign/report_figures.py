"""The figures of a report: one panel for each problem of an experiment, as PNG and SVG."""

from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eign.campaign.outcomes import ExperimentOutcome, ProblemOutcome
from eign.campaign.spec import Experiment
from eign.plot import compare
from eign.plot.style import Line, lines, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = 3
_SWEPT: Final = "alpha = "


def method_styles(experiment: Experiment) -> dict[str, Line]:
    """One style for each method, the same in all figures of the experiment; values of a parameter go by shades."""
    labels = [method.label for method in experiment.methods]
    swept = [label for label in labels if label.startswith(_SWEPT)]
    others = [label for label in labels if label not in swept]
    # The first colours of the house are near those of the shades.
    rest = (look for look in lines() if not swept or look.dash != "solid")
    return dict(zip(swept, shades(len(swept)), strict=True)) | dict(zip(others, rest, strict=False))


def problem_styles(outcome: ExperimentOutcome, problem: ProblemOutcome) -> list[Line]:
    """The styles of the methods that have runs on a problem, in their order."""
    styles = method_styles(outcome.experiment)
    return [styles[method] for method in problem.runs]


def draw_curves(outcome: ExperimentOutcome, *, regret: bool = False) -> "Figure | None":
    """Mean and one standard error against evaluations from the initial design on; None if nothing can be drawn."""
    import matplotlib.pyplot as plt

    drawable = [
        problem for problem in outcome.problems.values() if problem.runs and not (regret and problem.optimum is None)
    ]
    if not drawable:
        return None
    columns = min(_COLUMNS, len(drawable)) if len(drawable) != 4 else 2
    rows = ceil(len(drawable) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(4.4 * columns, 3.4 * rows + 0.5), layout="constrained", squeeze=False
    )
    for axes, problem in zip(grid.flat, drawable, strict=False):
        _draw_panel(axes, outcome, problem, regret=regret)
    for unused in list(grid.flat)[len(drawable) :]:
        unused.set_visible(False)
    handles = {
        label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=min(len(handles), 2 * columns),
        frameon=False,
    )
    return figure


def _draw_panel(axes: "Axes", outcome: ExperimentOutcome, problem: ProblemOutcome, *, regret: bool) -> None:
    start = drawn_from(problem)
    curves = {method: runs.best for method, runs in problem.runs.items()}
    styles = problem_styles(outcome, problem)
    compare(curves, maximize=True, optimum=problem.optimum, regret=regret, start=start, styles=styles, axes=axes)
    if (legend := axes.get_legend()) is not None:
        legend.remove()
    counts = sorted({len(runs.seeds) for runs in problem.runs.values()})
    seeds = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    axes.set_title(f"{problem.spec.label} ({seeds})", loc="left", fontsize=10)


def drawn_from(problem: ProblemOutcome) -> int:
    """The evaluation at which curves begin: the last of the initial design, or the last there is."""
    return min([problem.spec.initial, *(runs.evaluations for runs in problem.runs.values())])


def save(figure: "Figure", directory: Path, name: str, kinds: Iterable[str] = ("png", "svg")) -> list[Path]:
    """Write a figure in each kind and close it; the same figure gives the same bytes."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.{kind}" for kind in kinds]
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=150, metadata=metadata)
    plt.close(figure)
    return paths
