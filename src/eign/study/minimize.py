"""One call for the whole search, with SciPy's signature and result."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, final

import numpy as np
from scipy.optimize import OptimizeResult

from eign.arrays import Array
from eign.space import Box
from eign.study.objective import Jacobian, Objective
from eign.study.optimizer import Optimizer
from eign.study.progress import Progress


class Status(IntEnum):
    """Why a run ended: `status` of the result."""

    BUDGET = 0
    CONVERGED = 1
    CALLBACK = 2
    INTERRUPTED = 3
    NOTHING_KNOWN = 4


def minimize(
    fun: Callable[..., Any],
    bounds: Any,
    *,
    jac: Jacobian = True,
    budget: int | None = None,
    method: str = "auto",
    seed: int | None = None,
    x0: Any = None,
    args: tuple[Any, ...] = (),
    callback: Callable[[OptimizeResult], object] | None = None,
    workers: Any = None,
    storage: Any = None,
    tol: float | None = None,
    on_error: str = "raise",
    progress: bool = False,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResult:
    """The global minimum of an expensive function in a box.

    >>> result = minimize(lambda x: (float(x @ x), 2 * x), [(-1, 2)] * 2, method="l-bfgs", budget=12, seed=0)
    >>> bool(result.fun < 1e-9), result.nfev
    (True, 12)

    Args:
        fun: Takes an array (d,), or a dict if `bounds` is one, and returns (value, gradient); see `jac`. A value
            that is None or NaN is a failed evaluation; gradients may be missing in part.
        bounds: (low, high) pairs, `scipy.optimize.Bounds`, a dict name -> pair, or an `eign.Box` for log scales.
        jac: True: `fun` returns (value, gradient). A function: returns the gradient. None or False: no gradients.
        budget: Evaluations in all; None is 20 + 20 d.
        method: One of `eign.methods()`.
        seed: The same seed gives the same run; None draws one.
        x0: A point or points to evaluate first; they count.
        args: Further arguments of `fun` and `jac`.
        callback: Called with an `OptimizeResult` after each evaluation; may raise StopIteration.
        workers: Not available yet.
        storage: Not available yet.
        tol: Stop when the projected gradient at the best point (unit cube) and the improvement expected of the next
            point are both at most `tol` times the standard deviation of the values seen. A method that expects no
            improvement is judged by the gradient alone, and without gradients the improvement decides.
        on_error: What to do when `fun` raises: "raise", or "fail" to record a failed evaluation and go on.
        progress: Show a bar with best value, gradient norm, evaluations and time left.
        options: Settings of the method.

    Returns:
        With x, fun, jac, nfev, njev, nit, success, status, message, history (`eign.Observations`) and maximize
        (whether it did). Ctrl-C returns the best so far. `success`: converged, or the budget used as asked.
    """
    return _run(**locals(), maximizing=False)  # the signature is spelt out twice for editors, and forwarded once


def maximize(
    fun: Callable[..., Any],
    bounds: Any,
    *,
    jac: Jacobian = True,
    budget: int | None = None,
    method: str = "auto",
    seed: int | None = None,
    x0: Any = None,
    args: tuple[Any, ...] = (),
    callback: Callable[[OptimizeResult], object] | None = None,
    workers: Any = None,
    storage: Any = None,
    tol: float | None = None,
    on_error: str = "raise",
    progress: bool = False,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResult:
    """The global maximum of an expensive function in a box; all else is as for `minimize`."""
    return _run(**locals(), maximizing=True)


def _run(
    fun: Callable[..., Any],
    bounds: Any,
    *,
    jac: Jacobian,
    budget: int | None,
    method: str,
    seed: int | None,
    x0: Any,
    args: tuple[Any, ...],
    callback: Callable[[OptimizeResult], object] | None,
    workers: Any,
    storage: Any,
    tol: float | None,
    on_error: str,
    progress: bool,
    options: Mapping[str, Any] | None,
    maximizing: bool,
) -> OptimizeResult:
    """Check everything, then evaluate until there is a reason to stop."""
    if workers is not None and workers != 1:
        raise ValueError(f"workers={workers!r}: parallel evaluation is not available yet; leave it None")
    if on_error not in ("raise", "fail"):
        raise ValueError(f"on_error={on_error!r}, expected 'raise' or 'fail'")
    if tol is not None and not 0.0 < tol < np.inf:
        raise ValueError(f"tol={tol!r}, expected a positive number or None")
    optimizer = Optimizer(bounds, method=method, seed=seed, maximize=maximizing, storage=storage, options=options)
    box = optimizer.box
    run = Run(
        optimizer,
        Objective(fun, jac, args, box, isinstance(bounds, Mapping)),
        budget=_checked_budget(budget, box.dim),
        first=_first_points(x0, box),
        tol=tol,
        on_error=on_error,
        callback=callback,
    )
    with Progress(run.budget, maximize=maximizing) if progress else nullcontext() as bar:
        return run.result(*run.evaluate_all(bar))


@final
@dataclass(slots=True)
class Run:
    """One sequential run: an optimizer, a function and the rules for stopping."""

    optimizer: Optimizer
    objective: Objective
    budget: int
    first: list[Array]
    tol: float | None
    on_error: str
    callback: Callable[[OptimizeResult], object] | None
    proposals: int = field(default=0, init=False)
    gradients: int = field(default=0, init=False)

    def evaluate_all(self, bar: Progress | None) -> tuple[Status, str]:
        """Evaluate until there is a reason to stop, and say which."""
        try:
            for x in self._points():
                self._evaluate(x)
                if bar is not None:
                    bar.update(self.optimizer)
                if self.callback is not None:
                    self.callback(self.result(Status.BUDGET, "running"))
                if (reason := self._converged()) is not None:
                    return Status.CONVERGED, reason
        except StopIteration:
            return Status.CALLBACK, "stopped by the callback"
        except KeyboardInterrupt:
            return Status.INTERRUPTED, "interrupted; this is the best so far"
        if not self.optimizer.history.has_y.any():
            return Status.NOTHING_KNOWN, f"all {len(self.optimizer.history)} evaluations failed"
        return Status.BUDGET, f"the budget of {self.budget} evaluations is used"

    def result(self, status: Status, message: str) -> OptimizeResult:
        """What SciPy's users expect; x and fun are NaN if nothing is known."""
        history = self.optimizer.history
        dim = history.dim
        x, y, grad = np.full(dim, np.nan), np.nan, np.full(dim, np.nan)
        if history.has_y.any():
            best = self.optimizer.best
            x, y, grad = best.x, best.y, best.grad
        result = OptimizeResult()
        result.update(
            x=x,
            fun=y,
            jac=grad,
            nfev=len(history),
            njev=self.gradients,
            nit=self.proposals,
            success=status in (Status.BUDGET, Status.CONVERGED),
            status=int(status),
            message=message,
            history=history,
            maximize=self.optimizer.maximize,
        )
        return result

    def _points(self) -> Iterator[Array]:
        """The user's points, then the method's, up to the budget."""
        yield from self.first[: self.budget]
        for _ in range(self.budget - len(self.first)):
            x = self.optimizer.ask()
            self.proposals += 1
            yield x

    def _evaluate(self, x: Array) -> None:
        value, gradient = np.nan, None
        try:
            answer = self.objective.call(x.copy())
        except StopIteration as error:  # would otherwise look like the callback's
            raise RuntimeError(f"the function raised StopIteration at x = {x.tolist()}") from error
        except Exception as error:
            if self.on_error == "raise":
                error.add_note(f"in evaluation {len(self.optimizer.history) + 1}, at x = {x.tolist()}")
                raise
        else:
            value, gradient = self.objective.read(*answer)
        self.gradients += gradient is not None
        self.optimizer.tell(x, value, gradient)

    def _converged(self) -> str | None:
        """The reason to stop by `tol`, if there is one."""
        if self.tol is None:
            return None
        slope, gain = self.optimizer.stationarity, self.optimizer.expected_improvement
        measured = {"projected gradient": slope, "expected improvement": gain}
        known = {name: value for name, value in measured.items() if value is not None}
        if not known or any(value > self.tol for value in known.values()):
            return None
        if (slope is None and self.gradients) or (gain is None and self.optimizer.expects_improvement):
            return None
        listed = " and ".join(f"{name} {value:.1e}" for name, value in known.items())
        return f"converged: {listed} at most tol = {self.tol:g}"


def _checked_budget(budget: int | None, dim: int) -> int:
    if budget is None:
        return 20 + 20 * dim
    try:
        count = operator.index(budget)
    except TypeError:
        count = 0
    if isinstance(budget, bool) or count < 1:
        raise ValueError(f"budget={budget!r}, expected the number of evaluations: a whole number, at least 1")
    return count


def _first_points(x0: Any, box: Box) -> list[Array]:
    """The user's first points, checked before anything is evaluated."""
    if x0 is None:
        return []
    if isinstance(x0, Mapping):
        x0 = [box.from_dict(x0)]
    elif isinstance(x0, Sequence) and len(x0) and isinstance(x0[0], Mapping):
        x0 = [box.from_dict(point) for point in x0]
    points = np.atleast_2d(np.asarray(x0, dtype=np.float64))
    if points.ndim != 2:
        raise ValueError(f"x0 has shape {points.shape}, expected ({box.dim},) for one point or (n, {box.dim}) for many")
    try:
        box.to_unit(points)
    except ValueError as error:
        raise ValueError(f"x0: {error}") from None
    return list(points)
