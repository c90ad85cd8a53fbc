"""The figures of a report: one panel for each problem of an experiment, as PNG and SVG."""

from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eign.arrays import Array
from eign.plot import compare
from eign.plot.style import COLOURS, Line, lines, shades
from eign_lab.runs.experiment import Experiment
from eign_lab.runs.outcomes import ExperimentOutcome, ProblemOutcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = 3
_PANEL: Final = 4.4
_SWEPT: Final = "alpha = "

# What most experiments have looks the same in all of them; black is for the rival that has no surrogate.
_HOUSE: Final = {"EI-GN": COLOURS[0], "EI": COLOURS[1], "LogEI": COLOURS[2], "L-BFGS-B": COLOURS[-1]}


def method_styles(experiment: Experiment) -> dict[str, Line]:
    """One style for each method, the same in all figures of the experiment; values of a parameter go by shades."""
    labels = [method.label for method in experiment.methods]
    swept = [label for label in labels if label.startswith(_SWEPT)]
    known = [label for label in labels if label in _HOUSE]
    others = [label for label in labels if label not in swept and label not in known]
    # Solid lines are near the shades.
    dash = "dashed" if swept else "solid"
    house = {label: Line(_HOUSE[label], dash) for label in known}
    rest = (look for look in lines() if not (swept and look.dash == "solid") and look not in house.values())
    return dict(zip(swept, shades(len(swept)), strict=True)) | house | dict(zip(others, rest, strict=False))


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
    figure, grid = plt.subplots(rows, columns, layout="constrained", squeeze=False)
    for axes, problem in zip(grid.flat, drawable, strict=False):
        _draw_panel(axes, outcome, problem, regret=regret)
    for unused in list(grid.flat)[len(drawable) :]:
        unused.set_visible(False)
    found = {
        label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    methods = [method.label for method in outcome.experiment.methods if method.label in found]
    handles = {label: found[label] for label in dict.fromkeys([*methods, *found])}
    # In inches: a handle with its margin, and a letter of the font.
    fitting = int(_PANEL * columns / (0.6 + 0.08 * max(map(len, handles))))
    rows_of_legend = ceil(len(handles) / min(2 * columns, max(1, fitting)))
    figure.set_size_inches(_PANEL * columns, 3.4 * rows + 0.25 * (1 + rows_of_legend))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=ceil(len(handles) / rows_of_legend),
        frameon=False,
    )
    return figure


def _draw_panel(axes: "Axes", outcome: ExperimentOutcome, problem: ProblemOutcome, *, regret: bool) -> None:
    start = drawn_from(problem)
    curves = curves_of(problem)
    styles = problem_styles(outcome, problem)
    compare(curves, maximize=True, optimum=problem.optimum, regret=regret, start=start, styles=styles, axes=axes)
    if (legend := axes.get_legend()) is not None:
        legend.remove()
    count = min(len(curve) for curve in curves.values())
    axes.set_title(f"{problem.spec.label} ({count} {'seed' if count == 1 else 'seeds'})", loc="left", fontsize=10)


def curves_of(problem: ProblemOutcome) -> dict[str, Array]:
    """The best value so far of each method, `runs x evaluations`."""
    return {method: runs.best for method, runs in problem.runs.items()}


def drawn_from(problem: ProblemOutcome) -> int:
    """The evaluation at which curves begin: the last of the initial design, or the last there is."""
    return min([problem.spec.initial or 1, *(runs.evaluations for runs in problem.runs.values())])


def save(figure: "Figure", directory: Path, name: str, kinds: Iterable[str] = ("png", "svg")) -> list[Path]:
    """Write a figure in each kind and close it; the same figure gives the same bytes."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.{kind}" for kind in kinds]
    # The layout is most of the work, and the same for all kinds.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=150, metadata=metadata)
    plt.close(figure)
    return paths
