"""One run: its values and the norms of its gradients against evaluations."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eign.arrays import Array
from eign.plot.bands import regrets
from eign.plot.runs import Trajectory, read_run
from eign.plot.style import BEST, EVALUATIONS, MODEL, TRUTH, legend, new_axes, tidy
from eign.study import Optimizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A value is cut off if it is so many times the height of the better three quarters away from them.
_FAR: Final = 3.0
# Fewer feasible values say nothing about what is far.
_FEW: Final = 5


def convergence(
    run: Any,
    *,
    maximize: bool | None = None,
    optimum: float | None = None,
    regret: bool = False,
    axes: "Axes | None" = None,
) -> "Axes":
    """Every value, and the best so far, against evaluations; values of infeasible points are crosses.

    Values that are far off all others are cut, with an arrow at the border; `regret=True` shows them.

    Args:
        run: A result of `minimize` or `maximize`, an `Optimizer`, `Observations`, or the values in their order.
        maximize: Whether larger values are better; None is what the run says, and minimising if it does not.
        optimum: Drawn as a dashed line, if known.
        regret: Draw the distance to the optimum on a log scale instead.
        axes: Where to draw; None makes a new figure.
    """
    axes = new_axes() if axes is None else axes
    seen = read_run(run, maximize=maximize)
    values, best = seen.values, seen.best
    if regret:
        level = _required(optimum)
        # In one go, so that values beyond the optimum are pointed out once.
        distances, best = regrets(np.stack([values, best]), level, maximize=seen.maximize)
        values = np.where(np.isfinite(values), distances, np.nan)
    evaluations = np.arange(1, len(values) + 1)
    inside, outside = np.where(seen.feasible, values, np.nan), np.where(seen.feasible, np.nan, values)
    axes.plot(evaluations, inside, "o", color=TRUTH, markersize=3.5, alpha=0.6, markeredgewidth=0, label="value")
    if not seen.feasible.all():
        axes.plot(evaluations, outside, "x", color=BEST, markersize=4, alpha=0.6, label="infeasible")
    axes.step(evaluations, best, where="post", color=MODEL, linewidth=2, label="best so far")
    if regret:
        axes.set_yscale("log")
    else:
        if optimum is not None:
            axes.axhline(optimum, color=TRUTH, linestyle="--", linewidth=1, label="optimum")
        _show_the_better(axes, seen, optimum)
    tidy(axes, x=EVALUATIONS, y="distance to the optimum" if regret else "value")
    legend(axes)
    return axes


def gradient_norm(run: Any, *, maximize: bool | None = None, axes: "Axes | None" = None) -> "Axes":
    """The norm of every gradient, and of the gradient at the best point so far, on a log scale.

    Of an `Optimizer` the norms are with respect to the unit cube, so that coordinates with different units can be
    compared; a result does not know its box, and its norms are in user units.

    Args:
        run: As for `convergence`.
        maximize: As for `convergence`.
        axes: Where to draw; None makes a new figure.
    """
    axes = new_axes() if axes is None else axes
    seen = read_run(run, maximize=maximize)
    gradients = seen.gradients
    label = "gradient norm"
    if isinstance(run, Optimizer):
        box = run.box
        gradients = box.times_unit_scale(gradients[:, box.free], run.history.x)
        label += " (unit cube)"
    norms = np.linalg.norm(gradients, axis=1)
    # A logarithm has no place for zero; a gradient that is missing in part has no norm.
    norms[~(norms > 0)] = np.nan
    evaluations = np.arange(1, len(norms) + 1)
    axes.plot(evaluations, norms, "o", color=TRUTH, markersize=3.5, alpha=0.6, markeredgewidth=0, label="evaluated")
    at_best = _at_best(seen.allowed, norms, maximize=seen.maximize)
    axes.step(evaluations, at_best, where="post", color=BEST, linewidth=2, label="at the best so far")
    axes.set_yscale("log")
    tidy(axes, x=EVALUATIONS, y=label)
    legend(axes)
    return axes


def _at_best(values: Array, norms: Array, *, maximize: bool) -> Array:
    """The norm at the best value so far, `n`; NaN before the first value."""
    heights = np.where(np.isnan(values), -np.inf, values if maximize else -values)
    rows = np.maximum.accumulate(np.where(heights > _before(heights), np.arange(len(heights)), -1))
    return np.where(rows >= 0, norms[rows], np.nan)


def _before(heights: Array) -> Array:
    """The best of the heights before each one."""
    return np.concatenate([[-np.inf], np.maximum.accumulate(heights)[:-1]])


def _show_the_better(axes: "Axes", run: Trajectory, optimum: float | None) -> None:
    """Limits that show every value but the far ones, which would flatten all; arrows at the border stand for those."""
    shown = _near(run, optimum)
    if not len(shown):
        return
    low, high = float(shown.min()), float(shown.max())
    margin = 0.05 * (high - low) or 0.05 * abs(low) or 1.0
    axes.set_ylim(low - margin, high + margin)
    evaluations, at_border = np.arange(1, len(run.values) + 1), axes.get_xaxis_transform()
    for outside, marker, height, where in (
        (run.values < low, "v", 0.0, "below"),
        (run.values > high, "^", 1.0, "above"),
    ):
        if outside.any():
            style: dict[str, Any] = {"color": BEST, "markersize": 5, "clip_on": False, "label": f"{where} the picture"}
            heights = np.full(outside.sum(), height)
            axes.plot(evaluations[outside], heights, marker, transform=at_border, **style)


def _near(run: Trajectory, optimum: float | None) -> Array:
    """The optimum and all values, also of infeasible points, but those far from where most of the search was."""
    values, drawn = run.values[np.isfinite(run.allowed)], run.values[np.isfinite(run.values)]
    known = [] if optimum is None else [optimum]
    if len(values) < _FEW:
        return np.append(drawn, known)
    # The better three quarters of the values and of the steps down.
    quartile = 0.25 if run.maximize else 0.75
    ends = [float(np.quantile(some, quartile)) for some in (values, np.unique(values[np.isin(values, run.best)]))]
    ends += [float(values.max() if run.maximize else values.min()), *known]
    reach = _FAR * (max(ends) - min(ends)) or np.inf
    return np.append(drawn[(drawn >= min(ends) - reach) & (drawn <= max(ends) + reach)], known)


def _required(optimum: float | None) -> float:
    if optimum is None:
        raise ValueError("regret=True needs the optimum: the regret is the distance to it")
    return optimum
