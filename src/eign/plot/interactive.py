"""The same curves as `compare` and `convergence`, to be looked at in a browser: plotly figures."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eign.arrays import Array, Mask
from eign.plot.comparison import best_curves, curve
from eign.plot.runs import read_run
from eign.plot.style import BEST, EVALUATIONS, MODEL, TRUTH, Line, lines
from eign.study import Optimizer

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# So many coordinates are shown under the mouse.
_COORDINATES: Final = 20
_DASHES: Final = {"solid": "solid", "dashed": "dash", "dotted": "dot"}


def compare_interactive(
    runs: Mapping[str, Any],
    *,
    maximize: bool | None = None,
    optimum: float | None = None,
    start: int = 1,
    styles: Iterable[Line] | None = None,
) -> "Figure":
    """Mean and one standard error of the best value so far; if the optimum is known, a button shows the regret.

    The arguments are those of `compare`.
    """
    from plotly.graph_objects import Figure

    bests = best_curves(runs, maximize=maximize)
    looks = list(zip(bests.items(), lines() if styles is None else styles, strict=False))
    values = [t for (name, best), look in looks for t in _traces(name, best, look, None, start, is_shown=True)]
    regrets: list[dict[str, Any]] = []
    if optimum is not None:
        regrets = [t for (name, best), look in looks for t in _traces(name, best, look, optimum, start, is_shown=False)]
    figure = Figure([*values, *regrets])
    figure.update_layout(
        template="plotly_white",
        height=430,
        margin={"l": 60, "r": 12, "t": 44, "b": 40},
        legend={"orientation": "h", "y": -0.16, "yanchor": "top", "itemwidth": 30},
        hovermode="closest",
        xaxis={"title": {"text": EVALUATIONS, "standoff": 4}},
        yaxis={"title": {"text": "best value so far"}},
    )
    if optimum is not None:
        figure.update_layout(shapes=[_level(optimum)], updatemenus=[_switch(len(values), len(regrets), optimum)])
    return figure


def convergence_interactive(study: Optimizer) -> "Figure":
    """Every value, and the best so far; infeasible values are crosses. Under the mouse a value says where it was."""
    from plotly.graph_objects import Figure

    run, history = read_run(study), study.history
    names = [f"x{i}" for i in range(history.dim)] if study.box.names is None else study.box.names
    evaluations = np.arange(1, len(history) + 1)
    figure = Figure()
    kinds = [("value", run.feasible, TRUTH, "circle"), ("infeasible", ~run.feasible, BEST, "x")]
    for label, rows, colour, symbol in kinds:
        if not rows.any() and label != "value":
            continue
        figure.add_scatter(
            x=evaluations[rows],
            y=run.values[rows],
            name=label,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.7},
            text=[
                _place(names, x, reason)
                for x, reason in zip(history.x[rows], _chosen(study.reasons, rows), strict=True)
            ],
            hovertemplate="evaluation %{x}: %{y:.6g}<br>%{text}<extra></extra>",
        )
    figure.add_scatter(
        x=evaluations,
        y=run.best,
        name="best so far",
        mode="lines",
        line={"color": MODEL, "width": 2, "shape": "hv"},
        hoverinfo="skip",
    )
    figure.update_layout(
        template="plotly_white",
        title={"text": html.escape(f"{study.method}, seed {study.seed}"), "font": {"size": 14}},
        hovermode="closest",
        xaxis={"title": {"text": EVALUATIONS}},
        yaxis={"title": {"text": "value"}},
    )
    return figure


def _place(names: Sequence[str], x: Array, reason: str) -> str:
    """A point and what it was for, as plain text: names may be anything, and the page is one."""
    shown = [f"{html.escape(name)} = {value:.6g}" for name, value in zip(names, x.tolist(), strict=True)]
    return "<br>".join(
        [f"({html.escape(reason)})", *shown[:_COORDINATES], *(["..."] if len(shown) > _COORDINATES else [])]
    )


def _chosen(texts: Sequence[str], rows: Mask) -> list[str]:
    return [texts[row] for row in np.flatnonzero(rows).tolist()]


def _traces(
    name: str, best: Array, look: Line, optimum: float | None, start: int, *, is_shown: bool
) -> list[dict[str, Any]]:
    """Band and curve of one label; of the regret if an optimum is given."""
    evaluations, band = curve(best, optimum=optimum, regret=optimum is not None, start=start)
    # Single precision halves the page, and nobody sees the difference.
    x, middle, low, high = (np.asarray(part, dtype=np.float32) for part in (evaluations, *band))
    red, green, blue = (int(look.colour[k : k + 2], 16) for k in (1, 3, 5))
    group = {"legendgroup": name, "visible": is_shown, "type": "scatter", "mode": "lines"}
    outline = {
        **group,
        "x": np.concatenate([x, x[::-1]]),
        "y": np.concatenate([high, low[::-1]]),
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},0.15)",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    line = {
        **group,
        "x": x,
        "y": middle,
        "name": name,
        "line": {"color": look.colour, "dash": _DASHES[look.dash], "width": 2},
        "hovertemplate": f"{name}<br>%{{x}} evaluations: %{{y:.4g}}<extra></extra>",
    }
    return [outline, line] if len(best) > 1 else [line]


def _level(optimum: float) -> dict[str, Any]:
    line = {"color": TRUTH, "dash": "dash", "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": optimum, "y1": optimum, "line": line}


def _switch(values: int, regrets: int, optimum: float) -> dict[str, Any]:
    """Two buttons: values with the optimum, regrets on a log scale."""
    shown = ([True] * values + [False] * regrets, [False] * values + [True] * regrets)
    value_axis: dict[str, Any] = {
        "yaxis.type": "linear",
        "yaxis.title.text": "best value so far",
        "shapes": [_level(optimum)],
    }
    regret_axis: dict[str, Any] = {"yaxis.type": "log", "yaxis.title.text": "distance to the optimum", "shapes": []}
    buttons = [
        {"label": label, "method": "update", "args": [{"visible": visible}, {**axis, "yaxis.autorange": True}]}
        for label, visible, axis in zip(("value", "regret"), shown, (value_axis, regret_axis), strict=True)
    ]
    place = {"x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom", "pad": {"t": 0, "b": 0}}
    return {"type": "buttons", "direction": "left", "buttons": buttons, "showactive": True, **place}
