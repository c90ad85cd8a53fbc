"""Ask and tell: the border between a user, with units and a sign, and methods that maximise in the unit cube."""

import operator
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import numpy as np
import torch

from eign.arrays import Array, as_floats, whole_number
from eign.data import Numbers, Observations, to_unit
from eign.formulas import stationarity
from eign.interrupts import uninterrupted
from eign.space import SAME_POINT, Box
from eign.strategies import State, strategy
from eign.study.definition import Definition, checked_seed
from eign.study.events import Ask, Event, Tell, event_from_json
from eign.study.gradient_check.check import (
    PROBE,
    GradientCheck,
    GradientWarning,
    checked_mode,
    message,
    new_faults,
    probe_point,
)
from eign.study.outlook import Outlook
from eign.study.pending import Pending
from eign.study.storage.study_file import Contents, StorageError, StudyFile, as_path, read_study


@final
@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best point so far.

    Attributes:
        x: In user units `d`.
        y: The value observed there.
        grad: The gradient observed there `d`, NaN where it is missing.
    """

    x: Array
    y: float
    grad: Array


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

    _file: StudyFile | None

    def __init__(
        self,
        bounds: Any,
        *,
        method: str = "auto",
        seed: int | None = None,
        maximize: bool = False,
        storage: Any = None,
        options: Mapping[str, Any] | None = None,
        check_gradients: GradientCheck = "probe",
    ) -> None:
        """Start a study.

        Args:
            bounds: (low, high) pairs, `scipy.optimize.Bounds`, a dict name -> pair, or an `eign.Box` for log scales.
            method: One of `eign.methods()`.
            seed: The same seed and answers give the same points; None draws one, see `seed`.
            maximize: Whether larger values are better.
            storage: A file to keep the study in, made here: each ask and tell is on the disk before it returns, and
                `Optimizer.resume` continues after any crash. None keeps it in memory.
            options: Settings of the method.
            check_gradients: Whether to warn, once, if gradients contradict the values. "probe" asks for a point or two
                next to one that was told, after three evaluations for each coordinate: cheap beside a search that a
                wrong gradient ruins. "passive" looks at the method's own points alone and misses more. False: no check.

        Raises:
            FileExistsError: there is such a file already; see `resume`.
        """
        box = bounds if isinstance(bounds, Box) else Box(bounds)
        _check_resolution(box)
        definition = Definition(box, method, checked_seed(seed), bool(maximize), checked_mode(check_gradients))
        decades = box.decades.tolist()
        state = strategy(method).start(box.free_dim, options, definition.seed, method=method, decades=decades)
        self._begin(definition, state)
        if storage is not None:
            self._file = StudyFile.create(as_path(storage), definition.to_json(), state.to_json())

    def _begin(self, definition: Definition, state: State) -> None:
        """A study without events, in memory."""
        self._definition = definition
        self._box = definition.box
        self._strategy = strategy(definition.method)
        self._state = self._before_proposal = state
        self._log: list[Event] = []
        self._history = Observations.empty(self._box.dim)
        self._data = Observations.empty(self._box.free_dim)
        self._reasons: list[str] = []
        self._pending = Pending(self._box)
        self._warned = False
        self._file = None
        self._is_view = False
        self._mutex = threading.RLock()

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
        file = StudyFile.open(as_path(storage), wait=wait)
        try:
            optimizer = cls._restored(file.contents)
        except BaseException:
            file.close()
            raise
        optimizer._file = file
        if reissue:
            optimizer._pending.unclaim()
        return optimizer

    @classmethod
    def view(cls, storage: Any) -> "Optimizer":
        """A study as its file is now, to look at: also while another process holds it. `ask` and `tell` are errors."""
        optimizer = cls._restored(read_study(as_path(storage)))
        optimizer._is_view = True
        return optimizer

    @classmethod
    def _restored(cls, contents: Contents) -> "Optimizer":
        optimizer = cls.__new__(cls)
        definition = Definition.from_json(contents.definition)
        state = strategy(definition.method).restored(State.from_json(contents.state))
        optimizer._begin(definition, state)
        for event in contents.events:
            optimizer._fold(event_from_json(event), state)
        return optimizer

    def ask(self, n: int | None = None) -> Array:
        """The next point (d,), or n points (n, d), in user units.

        They are pending until they are told: asking again gives other points. After `resume`, points that were asked
        and never told come first.

        Raises:
            StorageError: the file cannot be written; nothing was asked then.
        """
        count = 1 if n is None else _checked_count(n)
        with self._mutex:
            self._check_not_a_view()
            again = self._pending.unclaimed(count)
            fresh = np.empty((0, self._box.dim))
            if len(again) < count:
                fresh = self._ask_fresh(count - len(again))
            points = np.concatenate([self._pending.claim(again), fresh])
        return np.array(points[0] if n is None else points)

    def propose(self, pending: Numbers, *, number: int) -> Array:
        """The point (d,) that `ask` would give after `number` others, of which just the `pending` ones are not told.

        Nothing is recorded but what was learned from the data: this is for studies whose points are kept elsewhere,
        as in a database with several processes.

        Args:
            pending: Points that are being evaluated (m, d), user units; may be empty.
            number: Points handed out before this one by anyone. Randomness comes from the seed and this number.
        """
        points = np.reshape(as_floats(pending, "pending"), (-1, self._box.dim))
        state = replace(self._state, asked=operator.index(number))
        with pinned_threads():
            proposed, state = self._strategy.propose(state, self._data, self._box.to_unit(points), 1)
        self._before_proposal = self._state
        self._state = replace(state, asked=self._state.asked)
        return np.array(self._box.from_unit(proposed)[0])

    def withdraw(self) -> None:
        """Undo the last `propose`, right after it: its point will not be evaluated, and is no step of the method."""
        self._state = self._before_proposal

    def tell(
        self,
        x: Numbers | Mapping[str, float],
        y: Numbers | None,
        grad: Numbers | Mapping[str, float] | None = None,
        y_var: Numbers | None = None,
        grad_var: Numbers | Mapping[str, float] | None = None,
    ) -> None:
        """Report evaluations, in any order, also of points that were never asked for.

        Args:
            x: One point (d,) or many (n, d), user units; a dict for one point if the bounds have names.
            y: Its value, or (n,) values. None, NaN or infinite without a gradient: the evaluation failed.
            grad: Its gradient (d,), or (n, d); None or NaN where it is missing.
            y_var: Variance of the noise on y, if known.
            grad_var: Variance of the noise on the gradient, if known.

        Raises:
            ValueError: a point is outside the box or a shape is wrong; nothing is recorded then.
            StorageError: the file cannot be written. What was told is kept in memory, is part of the message, and is
                written by the next call that can: `ask`, `tell` or `close`.
        """
        point = self._box.from_dict(x) if isinstance(x, Mapping) else x
        slope, spread = self._by_coordinate(grad, "grad"), self._by_coordinate(grad_var, "grad_var")
        self._take(Observations.empty(self._box.dim).append(point, y, slope, y_var, spread))

    def tell_observations(self, told: Observations) -> None:
        """Report evaluations that are `Observations` already, as `eign.read_table` gives them; else as `tell`."""
        self._take(told)

    def close(self) -> None:
        """Let others have the study's file; also the end of a `with` block. Without a file this does nothing.

        Raises:
            StorageError: something told could not be written, and still cannot.
        """
        if self._file is not None:
            self._file.close()

    @property
    def best(self) -> Best:
        """The best point observed; with noise, the one with the best posterior mean among those observed.

        Raises:
            ValueError: no value has been told yet.
        """
        row, history = self._best_row(), self._history
        return Best(np.array(history.x[row]), float(history.y[row]), np.array(history.grad[row]))

    @property
    def history(self) -> Observations:
        """All that was told, in user units and in the order it came in."""
        return self._history

    @property
    def pending(self) -> Array:
        """Points that were asked and not told (m, d), user units."""
        return self._pending.x

    @property
    def reasons(self) -> list[str]:
        """Why each point of the history was proposed, in one word; "told" if it never was."""
        return list(self._reasons)

    @property
    def pending_reasons(self) -> list[str]:
        """Why each pending point was proposed."""
        return self._pending.reasons

    @property
    def box(self) -> Box:
        """The region that is searched."""
        return self._box

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._definition.method

    @property
    def maximize(self) -> bool:
        """Whether larger values are better."""
        return self._definition.maximize

    def outlook(self) -> Outlook:
        """What the method believes of f and looks for next; changes nothing.

        Raises:
            ValueError: the method has no surrogate, or no value has been told yet.
        """
        with pinned_threads():
            belief = self._strategy.belief(self._state, self._data, self._pending.units)
        if belief is None:
            reason = f"method {self.method!r} has no surrogate" if self._data.has_y.any() else "no value is told yet"
            raise ValueError(f"there is no outlook: {reason}")
        return Outlook(belief, self._box, -1.0 + 2.0 * self.maximize)

    @property
    def seed(self) -> int:
        """The seed given or drawn."""
        return self._definition.seed

    @property
    def storage(self) -> Path | None:
        """The study's file; None if it is in memory."""
        return None if self._file is None else self._file.path

    @property
    def state(self) -> State:
        """What the method carries to its next proposal."""
        return self._state

    @property
    def stationarity(self) -> float | None:
        """Norm of the projected gradient at the best point, in the unit cube and over the deviation of the values.

        None where it is not known: too few values, or a gradient that is missing in part.
        """
        if (spread := self._spread()) is None:
            return None
        row = self._best_row()
        x, grad = torch.tensor(self._data.x[row]), torch.tensor(self._data.grad[row])
        norm = float(stationarity(x, grad).sqrt())
        return norm / spread if np.isfinite(norm) else None

    @property
    def expected_improvement(self) -> float | None:
        """What the method expects of the last point it proposed, over the deviation of the values; None if unknown."""
        spread, gain = self._spread(), self._state.expected_improvement
        return None if spread is None or gain is None else gain / spread

    @property
    def expects_improvement(self) -> bool:
        """Whether the method says, once its initial design is told, what it expects of a point."""
        return self._strategy.expects_improvement

    def _take(self, told: Observations) -> None:
        with self._mutex:
            self._check_not_a_view()
            before = len(self._data)
            told = replace(told, x=self._pending.as_asked(told.x))
            self._record(Tell(told), self._strategy.update(self._state, self._inside(told)))
            self._check_gradients(before)

    def _record(self, event: Event, state: State) -> None:
        """The one way in which anything changes: the event is written, and what follows from it is updated.

        An ask that cannot be written did not happen. A tell did: an evaluation may have taken hours.
        """
        with uninterrupted():
            try:
                if self._file is not None:
                    self._file.append(event.to_json(), state.to_json(), keep=isinstance(event, Tell))
            except StorageError as error:
                if isinstance(event, Ask):
                    raise
                self._fold(event, state)
                raise StorageError(
                    f"{error}. The evaluation is kept in memory and written by the next ask, tell or close; should "
                    f"this process end before that, tell it again: {event.as_arguments()}"
                ) from error
            self._fold(event, state)

    def _fold(self, event: Event, state: State) -> None:
        """The study after a further event."""
        match event:
            case Ask(x, reasons):
                self._pending.add(x, reasons)
            case Tell(told):
                data = self._inside(told)
                self._data = self._data.append(data.x, data.y, data.grad, data.y_var, data.grad_var)
                self._history = self._history.append(told.x, told.y, told.grad, told.y_var, told.grad_var)
                self._reasons += [self._pending.drop(point) for point in data.x]
        self._log.append(event)
        self._state = self._before_proposal = state

    def _check_not_a_view(self) -> None:
        if self._is_view:
            raise ValueError("this study was opened to look at; continue it with Optimizer.resume")

    def _ask_fresh(self, count: int) -> Array:
        """So many points that nobody has been given: one for the gradient check, if that is due, and the method's."""
        pending = self._pending.units
        with pinned_threads():
            probe = probe_point(self._definition.check_gradients, self._data, self._widths(), pending, self._probes())
            probes = np.empty((0, self._box.free_dim)) if probe is None else probe[None]
            taken = np.concatenate([pending, probes])
            units, state = self._strategy.propose(self._state, self._data, taken, count - len(probes))
        points = self._box.from_unit(np.concatenate([probes, units]))
        self._record(Ask(points, (PROBE,) * len(probes) + tuple(state.reasons)), state)
        return points

    def _probes(self) -> int:
        """Points asked for that the method did not propose."""
        return sum(len(event.x) for event in self._log if isinstance(event, Ask)) - self._state.asked

    def _widths(self) -> Array:
        """What the cube's units are in the user's at each point told, `n x d`."""
        return self._box.unit_scale(self._history.x)

    def _check_gradients(self, before: int) -> None:
        """Warn, once in a study, if gradients and values contradict each other since row `before`."""
        with pinned_threads():
            found = (
                () if self._warned else new_faults(self._definition.check_gradients, self._data, self._widths(), before)
            )
        if found:
            self._warned = True
            free = np.flatnonzero(self._box.free).tolist()
            labels = [f"coordinate {i}" if self._box.names is None else repr(self._box.names[i]) for i in free]
            warnings.warn(message(found, labels), GradientWarning, stacklevel=4)  # at the caller of tell

    def _best_row(self) -> int:
        candidates = np.flatnonzero(self._data.has_y)
        if not len(candidates):
            raise ValueError("there is no best point yet: no finite value has been told")
        with pinned_threads():
            believed = self._strategy.estimates(self._state, self._data)
        return int(candidates[np.argmax(believed[candidates])])

    def _spread(self) -> float | None:
        """Standard deviation of the values; None if there is none."""
        values = self._data.y[self._data.has_y]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return spread if spread > 0.0 else None

    def _inside(self, told: Observations) -> Observations:
        """In the unit cube, to be maximised: the one place where signs turn, of values and gradients together."""
        data = to_unit(told, self._box)
        if self._definition.maximize:
            return data
        return Observations(data.x, -data.y, -data.grad, data.y_var, data.grad_var)

    def _by_coordinate(self, values: Numbers | Mapping[str, float] | None, what: str) -> Numbers | None:
        """What a dict gives by name, in the order of the coordinates; anything else as it is."""
        if not isinstance(values, Mapping):
            return values
        names = self._box.names or ()
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ValueError(f"{what} has unknown names {unknown}, expected some of {list(names)}")
        return [values.get(name) for name in names]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._file is not None:
            raise TypeError("a study in a file cannot be copied; look at it elsewhere with Optimizer.view(file)")
        return {name: value for name, value in vars(self).items() if name != "_mutex"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _mutex=threading.RLock())


@contextmanager
def pinned_threads() -> Iterator[None]:
    """One torch thread inside the block: sums in another order give other bits, and small problems are faster so."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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
