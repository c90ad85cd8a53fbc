"""What a study knows, as plain data and as text for the terminal; the study may be in use meanwhile."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eign.exchange.text import point_as_json
from eign.study.handle import handle
from eign.study.optimizer import Optimizer
from eign.study.storage.study_file import read_study

_WIDTH: Final = 60
_HEIGHT: Final = 8
# So many pending points are shown; all of them are in the data.
_SHOWN: Final = 10


def summarize(path: Path) -> dict[str, Any]:
    """What is known, ready for JSON: infinite and missing numbers are null."""
    contents = read_study(path)
    study = Optimizer.view(path)
    history = study.history
    asked_at = {
        tuple(x): at
        for event, at in zip(contents.events, contents.times, strict=True)
        if event["event"] == "ask"
        for x in event["x"]
    }
    pending = zip(study.pending, handle(study).pending.reasons, strict=True)
    holder = contents.holder
    return {
        "study": str(path),
        "method": study.method,
        "seed": study.seed,
        "maximize": handle(study).definition.maximize,
        "bounds": study.box.to_json(),
        "versions": dict(contents.definition["versions"]),
        "evaluations": len(history),
        "failed": history.n_failed,
        "first_event": contents.times[0] if contents.times else None,
        "last_event": contents.times[-1] if contents.times else None,
        "best": _best(study),
        "values": [value if math.isfinite(value) else None for value in history.y.tolist()],
        "pending": [
            {"x": point_as_json(x, study.box), "reason": reason, "asked": asked_at.get(tuple(x.tolist()))}
            for x, reason in pending
        ],
        "holder": None if holder is None or not holder.is_alive else str(holder),
    }


def _best(study: Optimizer) -> dict[str, Any] | None:
    if not study.history.has_y.any():
        return None
    best = study.best
    known = best.grad[np.isfinite(best.grad)]
    return {
        "value": best.y,
        "x": point_as_json(best.x, study.box),
        "gradient": [component if math.isfinite(component) else None for component in best.grad.tolist()],
        "gradient_norm": float(np.linalg.norm(known)) if len(known) else None,
        "projected_gradient": handle(study).convergence().projected_gradient,
        "evaluation": int(np.flatnonzero((study.history.x == best.x).all(axis=1) & (study.history.y == best.y))[0]) + 1,
    }


def describe(summary: dict[str, Any]) -> str:
    """The summary for a person."""
    goal = "maximizing" if summary["maximize"] else "minimizing"
    failed = f", {summary['failed']} failed" if summary["failed"] else ""
    lines = [
        f"{summary['study']}: {goal} with {summary['method']}, seed {summary['seed']}",
        f"evaluations  {summary['evaluations']}{failed}",
    ]
    if summary["last_event"]:
        lines.append(f"time         {summary['first_event']} to {summary['last_event']}")
    if (best := summary["best"]) is not None:
        lines.append(f"best value   {best['value']:.10g}, evaluation {best['evaluation']}")
        lines.append(f"best point   {_point(best['x'])}")
        if best["gradient_norm"] is not None:
            lines.append(f"|gradient|   {best['gradient_norm']:.3g}")
    lines.append(f"in use by    {summary['holder'] or 'nobody'}")
    lines.append(f"pending      {len(summary['pending'])}")
    for point in summary["pending"][:_SHOWN]:
        lines.append(f"  {_point(point['x'])}  ({point['reason']}, asked {point['asked']})")
    if len(summary["pending"]) > _SHOWN:
        lines.append(f"  and {len(summary['pending']) - _SHOWN} more")
    return "\n".join([*lines, *plot(summary["values"], maximize=summary["maximize"])])


def plot(values: Sequence[float | None], *, maximize: bool) -> list[str]:
    """Lines of a plot in plain characters: each value a dot, the best so far stars; none without two values.

    The range is that of the best so far, with some room beyond its worst; values further away are not shown.
    """
    y = np.array([math.nan if value is None else value for value in values])
    if np.isfinite(y).sum() < 2:
        return []
    best = np.fmax.accumulate(y) if maximize else np.fmin.accumulate(y)
    low, high = float(np.nanmin(best)), float(np.nanmax(best))
    room = 0.15 * (high - low) or abs(high) or 1.0
    low, high = (low - room, high) if maximize else (low, high + room)
    columns = _columns(len(y))
    canvas = [[" "] * (int(columns.max()) + 1) for _ in range(_HEIGHT)]
    for series, mark in ((y, "."), (best, "*")):
        inside = np.isfinite(series) & (series >= low) & (series <= high)
        rows = np.round((high - series[inside]) / (high - low) * (_HEIGHT - 1)).astype(int)
        for row, column in zip(rows, columns[inside], strict=True):
            canvas[row][column] = mark
    labels = [f"{high:.4g}", *[""] * (_HEIGHT - 2), f"{low:.4g}"]
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} |{''.join(row).rstrip()}" for label, row in zip(labels, canvas, strict=True)]
    axis = f"{'':>{margin}} +{'-' * len(canvas[0])}"
    return ["", *lines, axis, f"{'':>{margin}}  evaluations 1 to {len(y)}; * best so far, . each value"]


def _columns(count: int) -> NDArray[np.intp]:
    """The column of each evaluation: one each while there is room."""
    numbers = np.arange(count, dtype=np.intp)
    return numbers if count <= _WIDTH else numbers * _WIDTH // count


def _point(x: dict[str, float] | list[float]) -> str:
    if isinstance(x, dict):
        return ", ".join(f"{name} = {value:.6g}" for name, value in x.items())
    return "(" + ", ".join(f"{value:.6g}" for value in x) + ")"
