"""Ask and tell: what a user sees of a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from eign.arrays import Array, whole_number
from eign.constraints import FEASIBILITY_TOL, Limits, LinearRows
from eign.data import Numbers, Observations, constraint_gradients, constraint_values
from eign.region import region_in
from eign.space import SAME_POINT, Box
from eign.strategies.registry import check_handled, strategy
from eign.study.constraint_forms import read_constraints
from eign.study.definition import Definition, Seed, checked_budget, checked_feasibility_tol, checked_seed
from eign.study.gradient_check.check import GradientCheck, checked_mode
from eign.study.habits import OPTIMIZER_ARGUMENTS, OPTIMIZER_MEMBERS, explaining
from eign.study.outlook import Outlook
from eign.study.storage.file_format import Contents, StorageError, damaged
from eign.study.storage.study_file import StudyFile, as_path, read_study
from eign.study.study import Study
from eign.study.told import by_coordinate, with_told_constraints


@final
@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best point so far.

    Attributes:
        x: In user units `d`.
        y: The value observed there.
        grad: The gradient observed there `d`, NaN where it is missing.
        constraints: The values of the constraints observed there `m`.
        constraint_grads: Their gradients `m x d`.
        violation: By how much the most violated constraint is violated, in its units; NaN if one is not known.
        is_feasible: Whether all constraints hold, up to `feasibility_tol` of their scales.
    """

    x: Array
    y: float
    grad: Array
    constraints: Array
    constraint_grads: Array
    violation: float
    is_feasible: bool


@final
class Optimizer:
    """Proposes where to evaluate an expensive function next, and learns from what it is told.

    >>> opt = Optimizer([(-1.0, 2.0)], method="sobol", seed=1)
    >>> for _ in range(8):
    ...     x = opt.ask()
    ...     opt.tell(x, float(x[0] ** 2), 2 * x)
    >>> bool(abs(opt.best.x[0]) < 0.3)
    True
    """

    _study: Study

    @explaining(OPTIMIZER_ARGUMENTS, name="Optimizer")
    def __init__(
        self,
        bounds: Any,
        *,
        method: str = "auto",
        seed: Seed = None,
        maximize: bool = False,
        storage: Any = None,
        options: Mapping[str, Any] | None = None,
        check_gradients: GradientCheck = "probe",
        budget: float | None = None,
        constraints: Any = None,
        linear: Any = None,
        feasibility_tol: float = FEASIBILITY_TOL,
    ) -> None:
        """Start a study.

        Args:
            bounds: (low, high) pairs, `scipy.optimize.Bounds`, a dict name -> pair, or an `eign.Box` for log scales.
            method: One of `eign.methods()`.
            seed: The same seed and answers give the same points; None draws one, see `seed`, as does a NumPy generator.
            maximize: Whether larger values are better.
            storage: A file to keep the study in, made here: each ask and tell is on the disk before it returns, and
                `Optimizer.resume` continues after any crash. None keeps it in memory.
            options: Settings of the method.
            check_gradients: Whether to warn, once, if gradients contradict the values. "probe" asks for a point or two
                next to one that was told, after three evaluations per coordinate: cheap beside a search that a wrong
                gradient ruins. "passive" looks at the method's own points alone and misses more. False: no check.
            budget: Evaluations in all that are planned, as a hint; None if that is open.
            constraints: Limits of what is told beside the value: {"stress": (None, 250.0)} by name, pairs (lower,
                upper) without names, or a number of constraints that are each to be at most 0. An equality has lower
                == upper; None is an open side. LinearConstraint of SciPy may be among them, as for `linear`.
            linear: Known linear constraints, which every suggestion satisfies: `scipy.optimize.LinearConstraint`,
                (A, lower, upper), or a list of these.
            feasibility_tol: By how much of its scale a constraint may be violated at a point that counts as feasible;
                the scale is the median distance of its first values from the limit.

        Raises:
            FileExistsError: there is such a file already; see `resume`.
            ValueError: an argument is wrong, the method takes no such constraints, or the linear ones leave no point.
        """
        box = bounds if isinstance(bounds, Box) else Box(bounds)
        _check_resolution(box)
        mode, count = checked_mode(check_gradients), checked_budget(budget)
        limits, rows, *_ = read_constraints(constraints, box, linear=linear)
        tol = checked_feasibility_tol(feasibility_tol)
        region_in(box, rows)  # raises where they leave nothing
        check_handled(method, constraints=len(limits) > 0, linear=len(rows) > 0)
        definition = Definition(
            box,
            method,
            checked_seed(seed),
            bool(maximize),
            mode,
            count,
            constraints=limits,
            linear=rows,
            feasibility_tol=tol,
        )
        state = strategy(method).start(
            box, options, definition.seed, method=method, limits=limits, linear=rows, budget=count
        )
        self._study = Study(definition, state)
        if storage is not None:
            self._study.file = StudyFile.create(as_path(storage), definition.to_json(), state.to_json())

    @classmethod
    def resume(cls, storage: Any, *, reissue: bool = True, wait: float = 0.0) -> "Optimizer":
        """Continue a study from its file, as if its process had never ended.

        Args:
            storage: The file.
            reissue: Whether `ask` first gives the points again that were asked and never told. False if somebody is
                still evaluating them, as in a batch queue.
            wait: Seconds to wait for another process that holds the study, before that is an error.

        Raises:
            FileNotFoundError: there is no such file.
            StorageError: another process holds the study, or the file is no study, damaged or of a newer format.
        """
        path = as_path(storage)
        file, study = StudyFile.open(path, lambda contents: _study_of(contents, path), wait=wait)
        study.file = file
        if reissue:
            study.pending.unclaim()
        return cls._of(study)

    @classmethod
    def view(cls, storage: Any) -> "Optimizer":
        """A study as its file is now, to look at: also while another process holds it. `ask` and `tell` are errors."""
        path = as_path(storage)
        study = _study_of(read_study(path), path)
        study.is_view = True
        return cls._of(study)

    @classmethod
    def _of(cls, study: Study) -> "Optimizer":
        optimizer = cls.__new__(cls)
        optimizer._study = study
        return optimizer

    def ask(self, n: int | None = None) -> Array:
        """The next point (d,), or n points (n, d), in user units.

        They are pending until they are told: asking again gives other points. After `resume`, points that were asked
        and never told come first.

        Raises:
            StorageError: the file cannot be written; nothing was asked then.
        """
        points = self._study.ask(1 if n is None else _checked_count(n))
        return np.array(points[0] if n is None else points)

    def tell(
        self,
        x: Numbers | Mapping[str, float] | Observations,
        y: Numbers | None = None,
        grad: Numbers | Mapping[str, float] | None = None,
        y_var: Numbers | None = None,
        grad_var: Numbers | Mapping[str, float] | None = None,
        *,
        constraints: Any = None,
        constraint_grads: Any = None,
        constraint_vars: Any = None,
        constraint_grad_vars: Any = None,
    ) -> None:
        """Report evaluations, in any order, also of points that were never asked for.

        Args:
            x: One point (d,) or many (n, d), user units; a dict for one point if the bounds have names. Or
                `Observations`, as `history` and `eign.read_table` give them, and nothing else.
            y: Its value, or (n,) values. None, NaN or infinite without a gradient: the evaluation failed.
            grad: Its gradient (d,), or (n, d); None or NaN where it is missing.
            y_var: Variance of the noise on y, if known.
            grad_var: Variance of the noise on the gradient, if known.
            constraints: Values of the constraints, (m,) for one point or (n, m), or a dict by name; None or NaN where
                one is missing.
            constraint_grads: Their gradients, (m, d) or (n, m, d), or a dict by name; None where one is missing.
            constraint_vars: Variances of the noise on their values, as those or one number.
            constraint_grad_vars: Variances of the noise on their gradients, as those or one number.

        Raises:
            ValueError: a point is outside the box or a shape is wrong; nothing is recorded then.
            StorageError: the file cannot be written. What was told is kept in memory, is part of the message, and is
                written by the next call that can: `ask`, `tell` or `close`.
        """
        if isinstance(x, Observations):
            others = (constraints, constraint_grads, constraint_vars, constraint_grad_vars)
            if any(part is not None for part in (y, grad, y_var, grad_var, *others)):
                raise TypeError("Observations have their values and gradients with them: tell(observations)")
            self._study.tell(x)
            return
        slope, spread = by_coordinate(grad, self.box, "grad"), by_coordinate(grad_var, self.box, "grad_var")
        point = self._point(x)
        told = with_told_constraints(
            Observations.empty(self.box.dim).append(point, y, slope, y_var, spread),
            self.box,
            self.constraints,
            values=constraints,
            gradients=constraint_grads,
            variances=constraint_vars,
            gradient_variances=constraint_grad_vars,
            single=np.ndim(point) < 2,
        )
        self._study.tell(told)

    def retract(self, x: Numbers | Mapping[str, float]) -> int:
        """Take back what was told at a point, as if it had never been; returns how many evaluations that were.

        The log of the study keeps it, and the method learns anew from what is left. To correct a value, retract the
        point and tell it again.

        Raises:
            ValueError: nothing was told there.
        """
        return self._study.retract(np.asarray(self._point(x), dtype=np.float64))

    def close(self) -> None:
        """Let others have the study's file; also the end of a `with` block. Without a file this does nothing.

        Raises:
            StorageError: something told could not be written, and still cannot.
        """
        self._study.close()

    @property
    def best(self) -> Best:
        """The best feasible point observed, else the least violated; with noise, the best by posterior mean.

        Raises:
            ValueError: no value has been told yet.
        """
        row = self._study.best_row()
        seen = self._study.history[row]
        values = constraint_values(seen)[0]
        violations = self._study.violations()[1][row]
        return Best(
            np.array(seen.x[0]),
            float(seen.y[0]),
            np.array(seen.grad[0]),
            values,
            constraint_gradients(seen)[0],
            float(np.max(violations, initial=0.0)),
            bool(self._study.is_feasible()[row]),
        )

    @property
    def constraints(self) -> Limits:
        """Names and limits of the constraints that are told."""
        return self._study.definition.constraints

    @property
    def linear(self) -> LinearRows:
        """The known linear constraints."""
        return self._study.definition.linear

    @property
    def history(self) -> Observations:
        """All that was told and not retracted, in user units and in the order it came in."""
        return self._study.history

    @property
    def reasons(self) -> list[str]:
        """Why each point of the history was proposed, in one word; "told" if it never was."""
        return list(self._study.reasons)

    @property
    def pending(self) -> Array:
        """Points that were asked and not told (m, d), user units."""
        return self._study.pending.x

    @property
    def box(self) -> Box:
        """The region that is searched."""
        return self._study.box

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._study.definition.method

    @property
    def seed(self) -> int:
        """The seed given or drawn."""
        return self._study.definition.seed

    def outlook(self) -> Outlook:
        """What the method believes of f and looks for next; changes nothing.

        Raises:
            ValueError: the method has no surrogate, or no value has been told yet.
        """
        belief = self._study.belief()
        if belief is None:
            told = self._study.data.has_y.any()
            reason = f"method {self.method!r} has no surrogate" if told else "no value is told yet"
            raise ValueError(f"there is no outlook: {reason}")
        return Outlook(belief, self.box, 1.0 if self._study.definition.maximize else -1.0)

    def _point(self, x: Any) -> Any:
        """The point of a dict, or as it was given; on the border where single precision has rounded it across."""
        if isinstance(x, Mapping) and hasattr(x, "history"):
            raise TypeError("a result was told; to go on from a run tell its evaluations: tell(result.history)")
        if isinstance(x, Mapping):
            return self.box.from_dict(x)
        is_single = str(getattr(x, "dtype", "")).endswith("float32")  # of NumPy, or of torch
        return self.box.within_single_precision(x) if is_single else x

    if not TYPE_CHECKING:  # an editor should know what there is not

        def __getattr__(self, name: str) -> object:
            """What is here for a member of another package's optimizer; there is no such member."""
            complaint = f"'Optimizer' object has no attribute {name!r}"
            hint = f"; here it is {OPTIMIZER_MEMBERS[name]}" if name in OPTIMIZER_MEMBERS else ""
            raise AttributeError(f"{complaint}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        study = self._study
        goal = "maximize" if study.definition.maximize else "minimize"
        infeasible = "" if not study.history.has_y.any() or self.best.is_feasible else " (infeasible)"
        best = f", best {self.best.y:.6g}{infeasible}" if study.history.has_y.any() else ""
        where = "" if study.file is None else f", storage {str(study.file.path)!r}"
        counts = f"{len(study.history)} told, {len(study.pending.reasons)} pending"
        return f"<Optimizer {goal} {self.box.dim}-d, method {self.method!r}, {counts}{best}{where}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except StorageError as second:
            # The first error has the evaluation that could not be written, and must not be hidden.
            if error is None:
                raise
            error.add_note(f"and when the study was closed: {second}")


def _study_of(contents: Contents, path: Path) -> Study:
    """The study that a file describes.

    Raises:
        StorageError: it describes none, though its checksums are right: somebody else has written it.
    """
    try:
        return Study.from_json(contents.definition, contents.state, contents.events)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def _check_resolution(box: Box) -> None:
    """Points must be told apart in user units: a search that cannot see its own steps repeats them."""
    coarse = np.flatnonzero(box.resolution > SAME_POINT / 4)
    if len(coarse):
        i = int(np.flatnonzero(box.free)[coarse[0]])
        label = f"coordinate {i}" if box.names is None else repr(box.names[i])
        low, high = float(box.lower[i]), float(box.upper[i])
        raise ValueError(
            f"the range ({low!r}, {high!r}) of {label} is too narrow for numbers of that size: floating point has "
            f"about {1 / box.resolution[coarse[0]]:.0f} numbers in it; search for the distance from {low!r} instead"
        )


def _checked_count(n: int) -> int:
    if (count := whole_number(n, least=1)) is None:
        raise ValueError(f"n={n!r}, expected how many points: a whole number, at least 1; None gives one point (d,)")
    return count
