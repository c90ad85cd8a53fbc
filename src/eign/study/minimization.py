"""One call for the whole search, with SciPy's signature and result."""

import inspect
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, Final, TypeVar, cast

import numpy as np
from scipy.optimize import OptimizeResult

from eign.arrays import Array, whole_number
from eign.constraints import FEASIBILITY_TOL, Limits, LinearRows
from eign.evaluation import Jacobian, Task
from eign.interrupts import orderly_end
from eign.space import Box
from eign.strategies import strategy
from eign.study.constraint_forms import Constraints, read_constraints
from eign.study.definition import Seed, checked_budget, checked_seed
from eign.study.gradient_check.check import GradientCheck
from eign.study.habits import ARGUMENTS, explaining
from eign.study.handle import handle
from eign.study.optimizer import Optimizer
from eign.study.progress import Progress
from eign.study.run import Run
from eign.study.storage.study_file import as_path
from eign.study.workers import hire

# What options of SciPy's are called here.
_SCIPY_OPTIONS: Final = {
    "maxfun": "budget={!r}",
    "maxfev": "budget={!r}",
    "maxiter": "budget=, a number of evaluations,",
    "disp": "progress=True",
}
Search = TypeVar("Search", bound=Callable[..., OptimizeResult])


def _explaining_order(search: Search) -> Search:
    """Who calls `minimize(f, x0, bounds=B)`, as in SciPy, is told how to."""

    @wraps(search)
    def explained(*arguments: Any, **named: Any) -> OptimizeResult:
        if len(arguments) > 1 and "bounds" in named:
            call = f"eign.{search.__name__}(fun, bounds, x0=x0, ...)"
            raise TypeError(f"the bounds come second, a starting point by name: {call}")
        return search(*arguments, **named)

    return cast(Search, explained)


@_explaining_order
@explaining(ARGUMENTS)
def minimize(
    fun: Callable[..., Any],
    bounds: Any,
    *,
    jac: Jacobian = True,
    budget: float | None = None,
    method: str = "auto",
    seed: Seed = None,
    x0: Any = None,
    args: Any = (),
    callback: Callable[..., object] | None = None,
    workers: Any = None,
    storage: Any = None,
    tol: float | None = None,
    on_error: str = "raise",
    progress: bool = False,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    check_gradients: GradientCheck = "probe",
    timeout: float | None = None,
    polish: bool | int = False,
    constraints: Any = None,
    feasibility_tol: float = FEASIBILITY_TOL,
) -> OptimizeResult:
    """The global minimum of an expensive function in a box.

    >>> result = minimize(lambda x: (float(x @ x), 2 * x), [(-1, 2)] * 2, method="l-bfgs", budget=12, seed=0)
    >>> bool(result.fun < 1e-9), result.nfev
    (True, 12)

    Args:
        fun: Takes an array (d,), or a dict if `bounds` is one, and returns (value, gradient); see `jac`. A value
            that is None or NaN is a failed evaluation; gradients may be missing in part. It may also return an
            `eign.Evaluation`, which has room for variances.
        bounds: (low, high) pairs, `scipy.optimize.Bounds`, a dict name -> pair, or an `eign.Box` for log scales.
        jac: True: `fun` returns (value, gradient). A function: returns the gradient. None or False: no gradients.
        budget: Evaluations in all; None is 20 + 20 d.
        method: One of `eign.methods()`.
        seed: The same seed gives the same run; None draws one.
        x0: A point or points to evaluate first; they count.
        args: Further arguments of `fun` and `jac`; what is no tuple is the only one.
        callback: Called after each evaluation; may raise StopIteration. It gets an `OptimizeResult` or, if its only
            parameter is called `x` or `xk`, the best point so far.
        workers: Evaluate several points at once: a number of processes, a `concurrent.futures.Executor`, a
            `dask.distributed.Client`, or one of these two with a number, `(client, 8)`. A free worker gets the next
            point at once. One worker, which is the default, is this process; a seed then gives the same run again,
            while with several the order of the answers decides.
        storage: A file to keep the study in: each point and each answer is on the disk before the run goes on.
        tol: Stop when the projected gradient at the best point (unit cube) and what the method expects of its last
            d + 1 points are at most `tol` times the spread of the values, and the last 5 (d + 1) evaluations gained
            no more than that; 1e-6 is a good start. It is no proof: a basin of which the method knows nothing is no
            reason to go on. A few huge values do not count for the spread. A method that expects no improvement is
            judged by the others alone, and so is a function without gradients. With constraints the KKT residual takes
            the place of the projected gradient, and x has to be feasible.
        on_error: What to do when `fun` raises: "raise", with the result so far as the exception's `partial_result`,
            or "fail" to record a failed evaluation and go on.
        progress: Show a bar with best value, gradient norm, evaluations, how many are running, and time left.
        options: Settings of the method.
        resume: Go on with the study in `storage`, if the file is there, else start it: the same call again after any
            crash. Points that were asked and never told come first, and `budget` counts all evaluations.
        check_gradients: "probe", "passive" or False: whether to warn if gradients contradict the values, and whether
            one evaluation or two may be spent on it; see `Optimizer`. A study that goes on keeps what it began with.
        timeout: Seconds after which an evaluation is ended; it then has raised TimeoutError. It runs in a process of
            its own for that, also with one worker.
        polish: Keep the last evaluations for L-BFGS-B from the best point, which finds digits that no model resolves:
            a number of them, or True for a fifth of the budget. The run ends when nothing more is to be gained.
        constraints: As in SciPy: `NonlinearConstraint`, `LinearConstraint`, SLSQP's dicts, or a list of these; their
            functions are called where `fun` is and count as one evaluation with it. Or limits of what `fun` itself
            returns in an `eign.Evaluation`: {"stress": (None, 250.0)} by name, pairs (lower, upper), or a number of
            constraints that are each to be at most 0. Every suggestion satisfies linear constraints; a black-box
            constraint is learned like the objective, with its gradient where there is one.
        feasibility_tol: By how much of its scale a constraint may be violated at a point that counts as feasible.

    Returns:
        With x, fun, jac, nfev, njev, nit, success, status, message, history (`eign.Observations`), reasons and maximize
        (whether it did). Ctrl-C returns the best so far and ends the workers. `success`: converged, or the budget used
        as asked, and x feasible. With constraints x is the best feasible point, else the least violated one, and there
        are constr (values), constr_jac, constr_names, constr_violation and maxcv (both the largest violation),
        multipliers and linear_multipliers, and feasible: for each evaluation whether it was.
    """
    return _run(**locals(), maximizing=False)  # the signature is spelt out twice for editors, and forwarded once


@_explaining_order
@explaining(ARGUMENTS)
def maximize(
    fun: Callable[..., Any],
    bounds: Any,
    *,
    jac: Jacobian = True,
    budget: float | None = None,
    method: str = "auto",
    seed: Seed = None,
    x0: Any = None,
    args: Any = (),
    callback: Callable[..., object] | None = None,
    workers: Any = None,
    storage: Any = None,
    tol: float | None = None,
    on_error: str = "raise",
    progress: bool = False,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
    check_gradients: GradientCheck = "probe",
    timeout: float | None = None,
    polish: bool | int = False,
    constraints: Any = None,
    feasibility_tol: float = FEASIBILITY_TOL,
) -> OptimizeResult:
    """The global maximum of an expensive function in a box; all else is as for `minimize`."""
    return _run(**locals(), maximizing=True)


def _run(
    fun: Callable[..., Any],
    bounds: Any,
    *,
    jac: Jacobian,
    budget: float | None,
    method: str,
    seed: Seed,
    x0: Any,
    args: Any,
    callback: Callable[..., object] | None,
    workers: Any,
    storage: Any,
    tol: Any,
    on_error: str,
    progress: bool,
    options: Mapping[str, Any] | None,
    resume: bool,
    check_gradients: GradientCheck,
    timeout: Any,
    polish: bool | int,
    constraints: Any,
    feasibility_tol: float,
    maximizing: bool,
) -> OptimizeResult:
    """Check everything, then evaluate until there is a reason to stop."""
    if on_error not in ("raise", "fail"):
        raise ValueError(f"on_error={on_error!r}, expected 'raise' or 'fail'")
    if tol is not None and not (_is_number(tol) and 0.0 < tol < np.inf):
        raise ValueError(f"tol={tol!r}, expected a positive number or None")
    if timeout is not None and not (_is_number(timeout) and 0.0 < timeout < np.inf):
        raise ValueError(f"timeout={timeout!r}, expected a positive number of seconds for one evaluation, or None")
    for name in _SCIPY_OPTIONS.keys() & set(options or ()):
        raise ValueError(f"options: SciPy's {name} is {_SCIPY_OPTIONS[name].format((options or {})[name])} here")
    if resume and storage is None:
        raise ValueError("resume=True: expected storage=, the file of the study to go on with")
    box = _box(bounds)
    evaluations, first = checked_budget(budget) or 20 + 20 * box.dim, _first_points(x0, box)
    allowed = _constraints(constraints, box, first, named=isinstance(bounds, Mapping))
    _check_inside(first, allowed.linear)
    further = args if isinstance(args, tuple) else (args,)
    task = Task(fun, jac, further, allowed.functions, allowed.outputs)
    reserved = _reserved(polish, evaluations)
    if reserved and (len(allowed.limits) or len(allowed.linear)):
        raise ValueError("polish: L-BFGS-B knows no constraints; leave it out, method 'auto' finds the last digits")
    study = _begun_or_resumed if resume else Optimizer
    with (
        orderly_end(),
        hire(workers, task, timeout=timeout) as hired,
        _used_here(
            study,
            box,
            method=method,
            seed=seed,
            maximize=maximizing,
            storage=storage,
            options=options,
            check_gradients=check_gradients,
            budget=evaluations,
            constraints=allowed.limits if len(allowed.limits) else None,
            linear=allowed.linear if len(allowed.linear) else None,
            feasibility_tol=feasibility_tol,
        ) as optimizer,
        Progress(evaluations, maximize=maximizing) if progress else nullcontext() as bar,
    ):
        told = {tuple(x) for x in optimizer.history.x}
        run = Run(
            optimizer,
            task,
            named=isinstance(bounds, Mapping),
            workers=hired,
            budget=evaluations,
            first=[x for x in first if tuple(x) not in told],
            tol=tol,
            on_error=on_error,
            callback=None if callback is None else _reporting(callback),
            bar=bar,
            polish=reserved,
        )
        return run.evaluate_all()


@contextmanager
def _used_here(study: Callable[..., Optimizer], box: Box, **settings: Any) -> Iterator[Optimizer]:
    """The study for as long as the run takes; afterwards nobody has it who could close it, whatever went wrong."""
    optimizer = study(box, **settings)
    try:
        with optimizer:
            yield optimizer
    finally:
        handle(optimizer).abandon()


def _is_number(given: Any) -> bool:
    """A real number of Python's or NumPy's; True is none."""
    return isinstance(given, numbers.Real) and not isinstance(given, bool)


def _box(bounds: Any) -> Box:
    """The bounds; where they look like a point, the error says where a point goes."""
    try:
        return Box(bounds)
    except (TypeError, ValueError) as error:
        if np.ndim(bounds) == 1 and not isinstance(bounds, Mapping):
            message = f"{error}; a starting point is given by name, x0=..."
            raise type(error)(message) from None
        raise


def _constraints(given: Any, box: Box, first: list[Array], *, named: bool) -> Constraints:
    """The constraints; a function of which nobody says how many values it returns is called once to find out."""
    if given is None:
        return read_constraints(None, box)
    x = first[0] if first else box.from_unit(np.full(box.free_dim, 0.5))
    return read_constraints(given, box, point=box.as_dict(x) if named else x.copy())


def _check_inside(first: list[Array], rows: LinearRows) -> None:
    """Refuse first points outside the linear constraints: nothing is evaluated there.

    Raises:
        ValueError: there is one.
    """
    for x in first if len(rows) else ():
        outside = rows.violation(x)
        allowed = np.where(rows.is_equality, 1e-9 * (np.abs(rows.A) @ np.abs(x)), 0.0)
        if (outside > allowed).any():
            row = int(np.argmax(outside - allowed))
            raise ValueError(
                f"x0 = {x.tolist()} violates the linear constraint {rows.labels[row]!r} by {outside[row]:.3g}; "
                "nothing is evaluated outside linear constraints"
            )


def _reporting(callback: Callable[..., object]) -> Callable[[OptimizeResult], object]:
    """The callback, called as its author expects: SciPy's are called with a point or by the name of the result."""
    if not callable(callback):
        raise TypeError(f"callback={callback!r}, expected a function")
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # of a builtin
        return callback
    names = list(signature.parameters)
    if names == ["intermediate_result"]:
        return lambda result: callback(intermediate_result=result)
    try:
        signature.bind(None)
    except TypeError:
        message = f"callback{signature} is called with one argument, the result so far: callback(result)"
        raise TypeError(message) from None
    return (lambda result: callback(np.copy(result.x))) if names in (["x"], ["xk"]) else callback


def _begun_or_resumed(box: Box, *, storage: Any, seed: Seed, **settings: Any) -> Optimizer:
    """The study in the file, or a new one; whoever begins it at the same moment and is second goes on with the first's.

    Raises:
        ValueError: The file holds another study.
        StorageError: Another process has it.
    """
    drawn = None if seed is None else checked_seed(seed)  # of a generator: once
    if not as_path(storage).exists():
        try:
            return Optimizer(box, storage=storage, seed=drawn, **settings)
        except FileExistsError:
            pass
    return _resumed(box, storage=storage, seed=drawn, **settings)


def _resumed(
    box: Box,
    *,
    method: str,
    seed: int | None,
    maximize: bool,
    storage: Any,
    options: Mapping[str, Any] | None,
    check_gradients: GradientCheck,  # noqa: ARG001  # what the study began with holds
    budget: int,  # noqa: ARG001  # a run may go on for longer than was planned
    constraints: Limits | None,
    linear: LinearRows | None,
    feasibility_tol: float,
) -> Optimizer:
    """The study in the file, if it is the one that is asked for.

    Raises:
        ValueError: It is another one.
    """
    checked = strategy(method).checked_options(box.free_dim, options, method=method)
    study = Optimizer.resume(storage)
    definition = handle(study).definition
    asked_for = {
        "bounds": box,
        "method": method,
        "maximize": maximize,
        "options": checked,
        "seed": seed,
        "constraints": constraints or Limits(),
        "linear constraints": linear or LinearRows(),
        "feasibility_tol": feasibility_tol,
    }
    stored = (
        study.box,
        study.method,
        definition.maximize,
        handle(study).state.options,
        study.seed if seed is not None else None,
        definition.constraints,
        definition.linear,
        definition.feasibility_tol,
    )
    for (name, asked), there in zip(asked_for.items(), stored, strict=True):
        if asked != there:
            study.close()
            raise ValueError(f"{storage} holds another study: {name} = {there!r}, asked for {asked!r}; take a new file")
    return study


def _reserved(polish: bool | int, budget: int) -> int:
    """How many evaluations are kept for the last digits."""
    if isinstance(polish, bool):
        return budget // 5 if polish else 0
    if (count := whole_number(polish, least=0)) is None or count > budget:
        raise ValueError(f"polish={polish!r}, expected True, False or a number of evaluations, at most {budget}")
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
