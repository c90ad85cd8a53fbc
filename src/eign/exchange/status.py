"""What a study knows, as plain data and as text for the terminal; the study may be in use meanwhile."""

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from eign.constraints import Limits
from eign.exchange.printing import WIDTH, entries, plot_lines, printable, shortened, wrapped
from eign.exchange.text import point_as_json
from eign.study.handle import handle
from eign.study.optimizer import Optimizer
from eign.study.storage.study_file import read_study

# So many pending points are shown; all of them are in the data.
_SHOWN: Final = 10
# Of a point with hundreds of coordinates so many are shown.
_COORDINATES: Final = 30
_LABEL: Final = 13
_KEPT: Final = "\N{NO-BREAK SPACE}"


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
        "budget": contents.definition.get("budget"),
        "evaluations": len(history),
        "failed": history.n_failed,
        "constraints": study.constraints.to_json(),
        "linear": study.linear.to_json(),
        "feasible": handle(study).is_feasible().tolist() if handle(study).is_constrained else None,
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
    limited: dict[str, Any] = {}
    if handle(study).is_constrained:
        values = zip(study.constraints.names, best.constraints.tolist(), strict=True)
        limited = {
            "constraints": {name: value if math.isfinite(value) else None for name, value in values},
            "violation": best.violation if math.isfinite(best.violation) else None,
            "is_feasible": best.is_feasible,
        }
    return {
        "value": best.y,
        "x": point_as_json(best.x, study.box),
        "gradient": [component if math.isfinite(component) else None for component in best.grad.tolist()],
        "gradient_norm": math.hypot(*known.tolist()) if len(known) else None,
        "projected_gradient": handle(study).convergence().projected_gradient,
        "evaluation": int(np.flatnonzero((study.history.x == best.x).all(axis=1) & (study.history.y == best.y))[0]) + 1,
        **limited,
    }


def describe(summary: dict[str, Any], *, width: int = WIDTH) -> str:
    """The summary for a person, in lines of at most `width` characters as far as names allow."""
    goal = "maximizing" if summary["maximize"] else "minimizing"
    budget = f" of {summary['budget']}" if summary.get("budget") else ""
    failed = f", {summary['failed']} failed" if summary["failed"] else ""
    path, what = printable(summary["study"]), printable(f"{goal} with {summary['method']}, seed {summary['seed']}")
    lines = [f"{path}: {what}"] if len(path) + len(what) + 2 <= width else [f"{path}:", f"    {what}"]
    lines += _labelled("evaluations", f"{summary['evaluations']}{budget}{failed}", width)
    if summary["feasible"] is not None:
        lines += _labelled("feasible", f"{sum(summary['feasible'])} of {summary['evaluations']}", width)
    if summary["last_event"]:
        lines += _labelled("time", f"{summary['first_event']} to {summary['last_event']}", width)
    if (best := summary["best"]) is not None:
        lines += _labelled("best value", f"{best['value']:.10g}, evaluation {best['evaluation']}", width)
        if best["gradient_norm"] is not None:
            lines += _labelled("|gradient|", f"{best['gradient_norm']:.3g}", width)
        if summary["feasible"] is not None:
            lines += _feasibility(summary, width)
        lines += ["best point", *(f"  {line}" for line in _best_point(best))]
    lines += _labelled("in use by", summary["holder"] or "nobody", width)
    lines += _labelled("pending", str(len(summary["pending"])), width)
    for number, point in enumerate(summary["pending"][:_SHOWN], start=1):
        why = f"{printable(point['reason'])}, asked {printable(point['asked'])}"
        lines += [f"  {number}  {why}", *_point(point["x"], width)]
    if len(summary["pending"]) > _SHOWN:
        lines.append(f"  and {len(summary['pending']) - _SHOWN} more")
    picture = plot_lines(summary["values"], maximize=summary["maximize"], feasible=summary["feasible"], width=width)
    return "\n".join([*lines, *picture])


def _feasibility(summary: dict[str, Any], width: int) -> list[str]:
    """Whether the best point is feasible, its constraints, and how far it is from an optimum."""
    best, limits = summary["best"], Limits.from_json(summary["constraints"])
    amount = "not known" if best["violation"] is None else f"{best['violation']:.3g}"
    lines = _labelled("violation", "none" if best["is_feasible"] else amount, width)
    if (residual := best["projected_gradient"]) is not None:
        lines += _labelled("KKT residual", f"{residual:.3g} of the spread of the values", width)
    values = best["constraints"].values()
    cells = [
        (name, f"{'not known' if value is None else format(value, '.10g'):<18}  {limit}")
        for (name, limit), value in zip(limits.texts().items(), values, strict=True)
    ]
    return [*lines, *(["constraints"] if cells else []), *(f"  {line}" for line in entries(cells))]


def _labelled(label: str, text: str, width: int) -> list[str]:
    return wrapped(printable(text), width=width, indent=" " * _LABEL, first=f"{label:<{_LABEL}}")


def _best_point(best: dict[str, Any]) -> list[str]:
    """A line for each coordinate, with the derivative where one is known; of many coordinates the first."""
    x, gradient = best["x"], best["gradient"]
    named = list(x.items()) if isinstance(x, dict) else [(f"x{i}", value) for i, value in enumerate(x)]
    left_out = max(0, len(named) - _COORDINATES)
    more = [f"and {left_out} more coordinates: `eign export` has all"] if left_out else []
    named, gradient = named[: len(named) - left_out], gradient[: len(named) - left_out]
    if best["gradient_norm"] is None:
        return [*entries((name, f"{value:.10g}") for name, value in named), *more]
    cells = [
        (name, f"{value:<18.10g}  {'not known' if slope is None else format(slope, '.4g')}")
        for (name, value), slope in zip(named, gradient, strict=True)
    ]
    return [*entries([("", f"{'value':<18}  gradient"), *cells]), *more]


def _point(x: dict[str, float] | list[float], width: int) -> list[str]:
    """The point in as many lines as it takes; none ends between a name and its value."""
    if not isinstance(x, dict):
        ending = ", ...)" if len(x) > _COORDINATES else ")"
        return wrapped(
            "(" + ", ".join(f"{value:.6g}" for value in x[:_COORDINATES]) + ending, width=width, indent=" " * 5
        )
    parts = [f"{shortened(printable(name))} = {value:.6g}".replace(" ", _KEPT) for name, value in x.items()]
    parts = [*parts[:_COORDINATES], *(["..."] if len(parts) > _COORDINATES else [])]
    return [line.replace(_KEPT, " ") for line in wrapped(", ".join(parts), width=width, indent=" " * 5)]
