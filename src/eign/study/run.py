"""A run: points go out to workers and answers come back, until there is a reason to stop."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import Final, final

import numpy as np
from scipy.optimize import OptimizeResult

from eign.arrays import Array
from eign.evaluation import Evaluation, Raised, Task
from eign.interrupts import uninterrupted
from eign.notices import warn_user
from eign.space import contains
from eign.study.feasibility import constraint_fields, least_violation
from eign.study.handle import handle
from eign.study.optimizer import Optimizer
from eign.study.pending import TOLD
from eign.study.polish import POLISH, first_step, next_point
from eign.study.progress import Progress
from eign.study.stopping import is_stalled
from eign.study.storage.file_format import StorageError
from eign.study.workers import LostWorkerError, Outcome, Workers

# So often, in seconds, a run looks up from waiting: for workers that have joined the cluster.
_LOOK_UP: Final = 1.0
_FAILED: Final = Evaluation(np.nan)
_LOGGER: Final = logging.getLogger("eign")


class Status(IntEnum):
    """Why a run ended: `status` of the result."""

    BUDGET = 0
    CONVERGED = 1
    CALLBACK = 2
    INTERRUPTED = 3
    NOTHING_KNOWN = 4
    ERROR = 5
    NOTHING_FEASIBLE = 6


class LostWorkerWarning(UserWarning):
    """Workers died over a point, and it was recorded as a failed evaluation."""


@final
@dataclass(slots=True)
class Run:
    """An optimizer, a function, who evaluates it and the rules for stopping.

    Attributes:
        optimizer: Proposes and learns.
        task: The function.
        named: Whether it takes points as dicts.
        workers: Where it runs.
        budget: Evaluations of the study in all.
        first: Points to evaluate before the optimizer is asked.
        tol: See `minimize`, as for all that follows.
        on_error: What to do when the function raises.
        callback: Called after each evaluation.
        bar: Shows how it goes.
        polish: How many of the last evaluations are for the last digits.
    """

    optimizer: Optimizer
    task: Task
    named: bool
    workers: Workers
    budget: int
    first: list[Array]
    tol: float | None
    on_error: str
    callback: Callable[[OptimizeResult], object] | None
    bar: Progress | None
    polish: int = 0
    _running: "dict[Future[Outcome], Array]" = field(default_factory=dict, init=False)

    def evaluate_all(self) -> OptimizeResult:
        """Evaluate until there is a reason to stop."""
        try:
            status, message = self._evaluate_all()
        except KeyboardInterrupt:
            status, message = Status.INTERRUPTED, "interrupted; this is the best so far"
        except Exception as error:
            self._keep_finished()
            # For a study without a file this is all that is left of it.
            error.partial_result = self.result(Status.ERROR, str(error))  # type: ignore[attr-defined]
            raise
        finally:
            self._keep_finished()
        return self.result(status, message)

    def _evaluate_all(self) -> tuple[Status, str]:
        points = self._points()
        self._show()  # what a resumed study has already
        while True:
            for x in islice(points, max(0, self.workers.count() - len(self._running))):
                self._submit(x)
            if not self._running:
                break
            if (stop := self._take_answers()) is not None:
                if stop[0] is Status.CONVERGED and self.polish:
                    break
                return stop
        self._finish_running()
        if not self.optimizer.history.has_y.any():
            return Status.NOTHING_KNOWN, _all_failed(len(self.optimizer.history))
        return self._polished() if self.polish else self._at_the_end()

    def _submit(self, x: Array) -> None:
        """Start an evaluation."""
        point = self.optimizer.box.as_dict(x) if self.named else x.copy()
        self._running[self.workers.submit(self.task, point)] = x
        self._show()

    def _finish_running(self) -> None:
        """Wait for what is being evaluated."""
        while self._running:
            self._take_answers()

    def _at_the_end(self) -> tuple[Status, str]:
        """Why a run ends that has used its budget."""
        used = f"the budget of {self.budget} evaluation{'s' if self.budget > 1 else ''} is used"
        if self.optimizer.best.is_feasible:
            return Status.BUDGET, used
        return Status.NOTHING_FEASIBLE, f"{used}, and nothing feasible was found: {least_violation(self.optimizer)}"

    def _take_answers(self) -> tuple[Status, str] | None:
        """Wait for an answer and record all that have come; a reason to stop, if there is one.

        No future outlives this: Dask would evaluate again what a worker had answered before it died.
        """
        wait(self._running, timeout=_LOOK_UP, return_when=FIRST_COMPLETED)
        for future in [future for future in self._running if future.done()]:
            with uninterrupted():
                self._record(future)
            self._log()
            self._show()
            if self.callback is not None:
                try:
                    self.callback(self.result(Status.BUDGET, "running"))
                except StopIteration:
                    return Status.CALLBACK, "stopped by the callback"
            if (reason := self._converged()) is not None:
                return Status.CONVERGED, reason
        return None

    def result(self, status: Status, message: str) -> OptimizeResult:
        """What SciPy's users expect; x and fun are NaN if nothing is known."""
        history = self.optimizer.history
        dim = history.dim
        x, y, grad, is_feasible = np.full(dim, np.nan), np.nan, np.full(dim, np.nan), False
        if history.has_y.any():
            best = self.optimizer.best
            x, y, grad, is_feasible = best.x, best.y, best.grad, best.is_feasible
        result = OptimizeResult()
        result.update(
            x=x,
            fun=y,
            jac=grad,
            nfev=len(history),
            njev=self._gradients(),
            nit=sum(reason != TOLD for reason in self.optimizer.reasons),
            success=status in (Status.BUDGET, Status.CONVERGED) and is_feasible,
            status=int(status),
            message=message,
            history=history,
            reasons=self.optimizer.reasons,
            maximize=handle(self.optimizer).definition.maximize,
            **constraint_fields(self.optimizer),
        )
        return result

    def _points(self) -> Iterator[Array]:
        """Points that were asked before and never told, the user's, then the method's, up to the budget."""
        left = max(0, self.budget - self.polish - len(self.optimizer.history))
        before = [self.optimizer.ask() for _ in range(min(left, len(self.optimizer.pending)))]
        yield from [*before, *self.first][:left]
        for _ in range(left - len(before) - len(self.first)):
            yield self.optimizer.ask()

    def _record(self, future: "Future[Outcome]") -> None:
        """Tell what came of an evaluation, or raise what the user must know."""
        x = self._running.pop(future)
        try:
            outcome = self.workers.outcome(future)
        except LostWorkerError as death:
            self._tell(x, _FAILED)
            warn_user(f"recorded as failed: x = {x.tolist()}: {death}", LostWorkerWarning)
            return
        if isinstance(outcome, Raised):
            if self.on_error == "raise":
                raise self._explained(outcome.error, x)
            outcome = _FAILED
        self._tell(x, outcome)

    def _tell(self, x: Array, told: Evaluation) -> None:
        self.optimizer.tell(
            x,
            told.value,
            told.gradient,
            told.value_variance,
            told.gradient_variance,
            constraints=told.constraints,
            constraint_grads=told.constraint_gradients,
            constraint_vars=told.constraint_variances,
            constraint_grad_vars=told.constraint_gradient_variances,
        )

    def _explained(self, error: Exception, x: Array) -> Exception:
        point = x.tolist() if self.optimizer.box.names is None else self.optimizer.box.as_dict(x)
        where = f"in evaluation {len(self.optimizer.history) + 1}, at x = {point}"
        error.add_note(where)
        if not isinstance(error, StopIteration):
            return error
        other = RuntimeError(f"the function raised StopIteration {where}")  # which would end a loop somewhere
        other.__cause__ = error
        return other

    def _keep_finished(self) -> None:
        """Cancel what has not begun and tell what has ended meanwhile; the rest is asked and not told."""
        while self._running:
            future, x = self._running.popitem()
            if not future.cancel() and future.done() and future.exception() is None:
                outcome = future.result()
                if isinstance(outcome, Evaluation):
                    # Of a wrong shape, or the disk is full; the reason for the end is the one to tell. What cannot be
                    # written is kept in memory, and part of the result.
                    with suppress(ValueError, StorageError):
                        self._tell(x, outcome)

    def _gradients(self) -> int:
        return int(self.optimizer.history.has_grad.any(axis=1).sum())

    def _log(self) -> None:
        """A line for each evaluation, for who configures Python's logging."""
        history, reasons = self.optimizer.history, self.optimizer.reasons
        if _LOGGER.isEnabledFor(logging.INFO) and len(history):
            known = self.optimizer.best if history.has_y.any() else None
            best = "-" if known is None else f"{known.y:.10g}"
            if known is not None and not known.is_feasible:
                is_known = np.isfinite(known.violation)
                best += f", infeasible by {known.violation:.3g}" if is_known else ", a constraint is missing"
            value = f"{history.y[-1]:.10g}" if history.has_y[-1] else "failed"
            _LOGGER.info("evaluation %d (%s): %s, best %s", len(history), reasons[-1], value, best)

    def _show(self) -> None:
        if self.bar is not None:
            self.bar.update(self.optimizer, running=len(self._running))

    def _converged(self) -> str | None:
        """The reason to stop by `tol`, if there is one."""
        if self.tol is None:
            return None
        study = handle(self.optimizer)
        slope, gain = study.convergence()
        if not self.optimizer.history.has_y.any() or not self.optimizer.best.is_feasible:
            return None
        steepness = "KKT residual" if study.is_constrained else "projected gradient"
        measured = {steepness: slope, "expected improvement": gain}
        known = {name: value for name, value in measured.items() if value is not None}
        if not known or any(value > self.tol for value in known.values()):
            return None
        if (slope is None and self._gradients()) or (gain is None and study.strategy.expects_improvement):
            return None
        if not is_stalled(study.feasible_data(), self.tol):
            return None
        listed = " and ".join(f"{name} {value:.1e}" for name, value in known.items())
        to_where = " to a KKT point" if study.is_constrained and slope is not None else ""
        return f"converged{to_where}: {listed} at most tol = {self.tol:g}"

    def _polished(self) -> tuple[Status, str]:
        """Go on with L-BFGS-B from the best point, one evaluation after the other, until it or the budget ends."""
        study = handle(self.optimizer)
        # Without its own points, so that a resumed run starts where the first one did.
        searched = study.data[[row for row, reason in enumerate(study.reasons) if reason != POLISH]]
        if not searched.has_y.any():
            return self._at_the_end()
        start = np.array(searched.x[np.where(searched.has_y, searched.y, -np.inf).argmax()])
        step = first_step(searched, start)
        while len(self.optimizer.history) < self.budget:
            unit = next_point(study.data, start, step)
            if unit is None:
                return Status.CONVERGED, "converged: the last digits are polished"
            x = np.array(study.box.from_unit(unit))
            if not contains(study.pending.units, unit):  # a run that was interrupted had asked for it
                study.request(x, POLISH)
            self._submit(x)
            while self._running:
                if (stop := self._take_answers()) is not None and stop[0] is not Status.CONVERGED:
                    return stop
        return self._at_the_end()


def _all_failed(count: int) -> str:
    return "the only evaluation failed" if count == 1 else f"all {count} evaluations failed"
