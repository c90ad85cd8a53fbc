"""One evaluation: the user's function behind one signature, and its answer as plain numbers.

A worker process imports this module and no other room of eign but `arrays`: it starts without torch and SciPy, unless
the user's function needs them.
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, final

import numpy as np

from eign.arrays import Array, as_floats

Jacobian = bool | Callable[..., Any] | None
"""True: the function returns (value, gradient). A function of its own. None or False: no gradients."""


@final
@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a function may return instead of (value, gradient), if it knows more.

    >>> def measured(x):
    ...     return Evaluation(value=float(x @ x), gradient=2 * x, value_variance=0.01)

    Attributes:
        value: The value; None or NaN: the evaluation failed.
        gradient: Its gradient (d,), or a dict by name; None or NaN where it is missing.
        value_variance: Variance of the noise on the value; None: not known.
        gradient_variance: Variances of the noise on the gradient (d,), one for all, or a dict by name.
        constraints: Values of the constraints (m,), or a dict by name; None or NaN where one is missing.
        constraint_gradients: Their gradients (m, d), or a dict by name; None where one is missing.
        constraint_variances: Variances of the noise on the values of the constraints, as those.
        constraint_gradient_variances: Variances of the noise on their gradients, as those.
    """

    value: Any
    gradient: Any = None
    value_variance: Any = None
    gradient_variance: Any = None
    constraints: Any = None
    constraint_gradients: Any = None
    constraint_variances: Any = None
    constraint_gradient_variances: Any = None


_CONSTRAINT_PARTS: Final = (
    "constraints",
    "constraint_gradients",
    "constraint_variances",
    "constraint_gradient_variances",
)


@final
@dataclass(frozen=True, slots=True)
class ConstraintFunction:
    """Constraints that have a function of their own, as in SciPy; it is called where the objective is, after it.

    Attributes:
        fun: Takes a point and returns the values (k,), or one number.
        jac: As that of the objective: a function for the gradients (k, d), True if `fun` returns both, or None.
        args: Further arguments of both.
        names: What the constraints are called (k,).
    """

    fun: Callable[..., Any]
    jac: Jacobian
    args: tuple[Any, ...]
    names: tuple[str, ...]

    def values_and_gradients(self, point: Any) -> tuple[Array, list[Any] | None]:
        """The values (k,) and the gradients (k, d), None if there are none; what the functions raise goes up.

        Raises:
            AnswerError: They return something else.
        """
        answer = self.fun(point, *self.args)
        gradient = self.jac(point, *self.args) if callable(self.jac) else None
        what = f"the constraint {self.names[0]!r}" if len(self.names) == 1 else f"the constraints {list(self.names)}"
        try:
            if self.jac is True:
                answer, gradient = _pair(answer)
            values = np.atleast_1d(as_floats(answer, "value"))
            slopes = None if gradient is None else _rows(gradient)
        except (TypeError, ValueError) as error:
            raise AnswerError(f"{what}: {error}") from None
        count = len(self.names)
        if values.shape != (count,):
            expected = "1 number" if count == 1 else f"{count} numbers"
            advice = f"give {expected}, or limits for each: NonlinearConstraint(fun, [lower, ...], [upper, ...])"
            raise AnswerError(f"{what}: the function returned values of shape {values.shape}; {advice}")
        if slopes is not None and len(slopes) != count:
            expected = f"({count}, d)" if count > 1 else "(d,)"
            raise AnswerError(f"{what}: the Jacobian has {len(slopes)} rows, expected shape {expected}")
        return values, slopes


class AnswerError(ValueError):
    """A function that ran well and answered something else than was agreed; it ends a run whatever `on_error` says."""


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """What the user's function raised, as a value: anything that a future itself raises is not the function's.

    Attributes:
        error: The exception. From another process it has the traceback there as a note.
    """

    error: Exception

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (_packed(self.error),)


@final
class Task:
    """The user's function with its gradient and constraints: called with a point, in whatever thread or process.

    Pickled, it becomes a `Parcel`, so that lambdas and functions of a notebook travel by any executor.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        jac: Jacobian = True,
        args: tuple[Any, ...] = (),
        constraints: tuple[ConstraintFunction, ...] = (),
        outputs: tuple[str, ...] = (),
    ) -> None:
        """The functions as the user gave them.

        Args:
            fun: The objective.
            jac: Where its gradient comes from.
            args: Further arguments of both.
            constraints: Those that have functions of their own.
            outputs: The names of those that `fun` itself returns, in the order of an `Evaluation`.
        """
        if not callable(fun):
            raise TypeError(f"fun: expected a function, got {fun!r}")
        if not (jac is None or isinstance(jac, bool) or callable(jac)):
            raise TypeError(f"jac={jac!r}, expected True, None, or a function that returns the gradient")
        self.fun, self.jac, self.args = fun, jac, args
        self.constraints, self.outputs = constraints, outputs
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)  # what Dask's dashboard shows
        self._parcel: Parcel | None = None

    def __call__(self, point: Any) -> Evaluation | Raised:
        """The answer at a point as plain numbers, or what the function raised.

        Raises:
            TypeError: There is a value alone where value and gradient were promised, or no number.
            ValueError: There is no single value, or the function itself says that its answer is wrong.
        """
        try:
            answer = self.fun(point, *self.args)
            failed = _is_failed(answer)
            gradient = self.jac(point, *self.args) if callable(self.jac) and not failed else None
            constraints = [self._of_constraint(each, point, failed=failed) for each in self.constraints]
        except AnswerError:
            raise
        except SystemExit as error:
            # Of a solver's wrapper script, say: it ends the evaluation and not the run.
            code = "" if error.code is None else repr(error.code)
            return Raised(RuntimeError(f"the function called sys.exit({code})"))
        except Exception as error:
            return Raised(error)
        return self._with_constraints(self._read(answer, gradient), constraints)

    def _of_constraint(self, each: ConstraintFunction, point: Any, *, failed: bool) -> tuple[Array, list[Any] | None]:
        """Its values and gradients; NaN if it raises where the simulation has failed, whose result it may need."""
        try:
            return each.values_and_gradients(point)
        except Exception as error:
            if not failed or isinstance(error, AnswerError):
                raise
            return np.full(len(each.names), np.nan), None

    def _with_constraints(self, given: Evaluation, found: list[tuple[Array, list[Any] | None]]) -> Evaluation:
        """The answer with what the functions of the constraints have returned, by name."""
        parts = {part: getattr(given, part) for part in _CONSTRAINT_PARTS}
        if not self.constraints:
            return replace(given, **{part: _numbers_each(value, part) for part, value in parts.items()})
        named = {part: _by_name(value, self.outputs, part) for part, value in parts.items()}
        for each, (values, slopes) in zip(self.constraints, found, strict=True):
            named["constraints"] |= dict(zip(each.names, values.tolist(), strict=True))
            if slopes is not None:
                named["constraint_gradients"] |= dict(zip(each.names, slopes, strict=True))
        return replace(given, **named)

    def _read(self, answer: Any, gradient: Any) -> Evaluation:
        """The answer with numbers for what the user returned; `jac` says where the gradient comes from."""
        if isinstance(answer, Evaluation):
            given = answer
        else:
            given = Evaluation(*_pair(answer, outputs=self.outputs)) if self.jac is True else Evaluation(answer)
        if callable(self.jac):
            given = replace(given, gradient=gradient)
        if self.outputs and not isinstance(answer, Evaluation) and np.isfinite(_number(given.value, "value")):
            limited = ", ".join(f"{name!r}: ..." for name in self.outputs[:3])
            raise AnswerError(
                "the limits in constraints= are of what the function returns, and it returned none: return "
                f"eign.Evaluation(value, gradient, constraints={{{limited}}})"
            )
        # Who has a gradient and no value says so by an `Evaluation`; zeros beside NaN are what a solver leaves behind.
        failed = not isinstance(answer, Evaluation) and not np.isfinite(_number(given.value, "value"))
        if not self.jac or failed:
            given = replace(given, gradient=None, gradient_variance=None)
        return Evaluation(
            _number(given.value, "value"),
            _numbers(given.gradient, "gradient"),
            None if given.value_variance is None else _number(given.value_variance, "value_variance"),
            _numbers(given.gradient_variance, "gradient_variance"),
            *(getattr(given, part) for part in _CONSTRAINT_PARTS),
        )

    def pack(self) -> "Parcel":
        """The functions and their arguments, by value where they cannot be imported elsewhere; packed once.

        Raises:
            TypeError: They cannot be pickled.
        """
        import cloudpickle

        if self._parcel is None:
            try:
                parts = (self.fun, self.jac, self.args, self.constraints, self.outputs)
                self._parcel = Parcel(cloudpickle.dumps(parts))
            except Exception as error:
                advice = "leave out what belongs to this process, such as locks and open files, or use threads"
                raise TypeError(f"the function cannot be sent to another process: {error}; {advice}") from error
        return self._parcel

    def __reduce__(self) -> tuple[Any, ...]:
        return Parcel, (self.pack().pickled,)


@final
@dataclass(frozen=True, slots=True)
class Parcel:
    """A `Task` on its way. It is opened when it is called, so that a missing module is an error of that call alone."""

    pickled: bytes

    def __call__(self, point: Any) -> Evaluation | Raised:
        """As `Task`. Ctrl-C never reaches a worker, so that a KeyboardInterrupt here is the function's own."""
        try:
            return _opened(self.pickled)(point)
        except KeyboardInterrupt:
            return Raised(RuntimeError("the function raised KeyboardInterrupt"))


def unpack(call: object) -> None:
    """Make a call ready that has come to this process: its modules are imported."""
    if isinstance(call, Parcel):
        _opened(call.pickled)


@lru_cache(maxsize=1)
def _opened(pickled: bytes) -> Task:
    """The task, once in a process: what its function keeps, such as a mesh that it has read, is there the next time."""
    import cloudpickle

    return Task(*cloudpickle.loads(pickled))


def _packed(error: Exception) -> bytes:
    """The error with its traceback as a note; in words, if it would not arrive."""
    import cloudpickle

    error.add_note("in the worker: " + "".join(traceback.format_exception(error)).rstrip())
    try:
        packed = cloudpickle.dumps(error)
        cloudpickle.loads(packed)
    except Exception:
        packed = cloudpickle.dumps(RuntimeError("".join(traceback.format_exception_only(error)).rstrip()))
    return bytes(packed)


def _unpacked(packed: bytes) -> Raised:
    import cloudpickle

    return Raised(cloudpickle.loads(packed))


def _pair(answer: Any, *, outputs: tuple[str, ...] = ()) -> tuple[Any, Any]:
    if isinstance(answer, tuple | list) and len(answer) == 2:
        return answer[0], answer[1]
    if outputs and isinstance(answer, tuple | list):
        raise TypeError(f"return eign.Evaluation(value, gradient, constraints=...), got {len(answer)} objects")
    raise TypeError(
        f"return (value, gradient) or pass jac=None: with jac=True the function returned {type(answer).__name__}"
    )


def _is_failed(answer: Any) -> bool:
    """Whether a function returned None, NaN or an infinite value; an `Evaluation` says itself what it has."""
    return answer is None or (isinstance(answer, float | np.floating) and not bool(np.isfinite(answer)))


def _number(value: Any, what: str) -> float:
    """One number as a float, NaN for None."""
    array = np.asarray(as_floats(value, what))
    if array.size != 1:
        raise ValueError(f"the function returned a {what} of shape {array.shape}, expected one number")
    return float(array.reshape(()))


def _numbers(values: Any, what: str) -> Any:
    """An array, or a dict by name as it is; None stays None."""
    if values is None:
        return None
    return dict(values) if isinstance(values, Mapping) else as_floats(values, what)


def _rows(gradient: Any) -> list[Any]:
    """The rows of a Jacobian, also of a sparse one; the gradient of a single constraint may be a dict by name."""
    if isinstance(gradient, Mapping):
        return [dict(gradient)]
    dense = gradient.toarray() if hasattr(gradient, "toarray") else gradient
    return list(np.atleast_2d(as_floats(dense, "gradient")))


def _numbers_each(values: Any, what: str) -> Any:
    """For each constraint: an array, a list with None or dicts in it, or a dict by name; numbers throughout."""
    if values is None or isinstance(values, Mapping):
        return None if values is None else {name: _numbers(value, what) for name, value in values.items()}
    if isinstance(values, list | tuple) and any(value is None or isinstance(value, Mapping) for value in values):
        return [_numbers(value, what) for value in values]
    return as_floats(values, what)


def _by_name(values: Any, names: tuple[str, ...], what: str) -> dict[str, Any]:
    """What the objective returned of its own constraints, by name.

    Raises:
        AnswerError: it is of another length.
    """
    given = _numbers_each(values, what)
    if given is None or isinstance(given, dict):
        return given or {}
    if np.ndim(given) == 0:
        return dict.fromkeys(names, given)
    if len(given) != len(names):
        raise AnswerError(f"{what}: the function returned {len(given)}, expected {len(names)}: {list(names)}")
    return dict(zip(names, given, strict=True))
