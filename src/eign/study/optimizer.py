"""Ask and tell: the border between a user, with units and a sign, and methods that maximise in the unit cube."""

import operator
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch

from eign.arrays import Array, as_floats
from eign.data import Numbers, Observations, to_unit
from eign.formulas import stationarity
from eign.space import Box
from eign.strategies import State, strategy
from eign.strategies.strategy import SAME_POINT, nearest
from eign.study.events import Ask, Event, Tell
from eign.study.gradient_check import GradientWarning, check_gradients, is_due


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

    def __init__(
        self,
        bounds: Any,
        *,
        method: str = "auto",
        seed: int | None = None,
        maximize: bool = False,
        storage: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Start a study.

        Args:
            bounds: (low, high) pairs, `scipy.optimize.Bounds`, a dict name -> pair, or an `eign.Box` for log scales.
            method: One of `eign.methods()`.
            seed: The same seed and answers give the same points; None draws one, see `seed`.
            maximize: Whether larger values are better.
            storage: Not available yet.
            options: Settings of the method.
        """
        if storage is not None:
            raise ValueError(f"storage={storage!r}: studies in files are not available yet; leave it None")
        self._box = bounds if isinstance(bounds, Box) else Box(bounds)
        self._method = method
        self._maximize = bool(maximize)
        self._seed = _checked_seed(seed)
        self._strategy = strategy(method)
        self._state = self._strategy.start(self._box.free_dim, options, self._seed, method=method)
        self._log: list[Event] = []
        self._history = Observations.empty(self._box.dim)
        self._data = Observations.empty(self._box.free_dim)
        self._pending = np.empty((0, self._box.dim))
        self._warned = False

    def ask(self, n: int | None = None) -> Array:
        """The next point (d,), or n points (n, d), in user units.

        They are pending until they are told: asking again gives other points.
        """
        count = 1 if n is None else _checked_count(n)
        with pinned_threads():
            points, state = self._strategy.propose(self._state, self._data, self._pending_units(), count)
        event = Ask(self._box.from_unit(points))
        self._record(event, state)
        return np.array(event.x[0] if n is None else event.x)

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
        self._state = replace(state, asked=self._state.asked)
        return np.array(self._box.from_unit(proposed)[0])

    def tell(
        self,
        x: Numbers | Mapping[str, float],
        y: Numbers | None,
        grad: Numbers | Mapping[str, float] | None = None,
        y_var: Numbers | None = None,
        grad_var: Numbers | None = None,
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
        """
        point = self._box.from_dict(x) if isinstance(x, Mapping) else x
        slope = self._gradient_from_dict(grad) if isinstance(grad, Mapping) else grad
        told = Observations.empty(self._box.dim).append(point, y, slope, y_var, grad_var)
        before = len(self._data)
        self._record(Tell(told), self._strategy.update(self._state, self._inside(told)))
        if not self._warned and any(is_due(n, self._box.free_dim) for n in range(before + 1, len(self._data) + 1)):
            self._check_gradients()

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
        return self._pending.copy()

    @property
    def box(self) -> Box:
        """The region that is searched."""
        return self._box

    @property
    def seed(self) -> int:
        """The seed given or drawn."""
        return self._seed

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

    def _record(self, event: Event, state: State) -> None:
        """The one way in which anything changes: the event enters the log, and what follows from it is updated."""
        match event:
            case Ask(x):
                self._pending = np.concatenate([self._pending, x])
            case Tell(told):
                data = self._inside(told)
                self._data = self._data.append(data.x, data.y, data.grad, data.y_var, data.grad_var)
                self._history = self._history.append(told.x, told.y, told.grad, told.y_var, told.grad_var)
                self._drop_pending(data.x)
        self._log.append(event)
        self._state = state

    def _check_gradients(self) -> None:
        """Warn, once in a study, if gradients and values contradict each other."""
        with pinned_threads():
            finding = check_gradients(self._data)
        if finding is not None:
            self._warned = True
            free = np.flatnonzero(self._box.free).tolist()
            labels = [f"coordinate {i}" if self._box.names is None else repr(self._box.names[i]) for i in free]
            warnings.warn(finding.message(labels), GradientWarning, stacklevel=3)

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
        if self._maximize:
            return data
        return Observations(data.x, -data.y, -data.grad, data.y_var, data.grad_var)

    def _pending_units(self) -> Array:
        return self._box.to_unit(self._pending)

    def _drop_pending(self, points: Array) -> None:
        for point in points:
            row, distance = nearest(self._pending_units(), point)
            if distance <= SAME_POINT:
                self._pending = np.delete(self._pending, row, axis=0)

    def _gradient_from_dict(self, grad: Mapping[str, float]) -> list[float | None]:
        names = self._box.names or ()
        unknown = [name for name in grad if name not in names]
        if unknown:
            raise ValueError(f"grad has unknown names {unknown}, expected some of {list(names)}")
        return [grad.get(name) for name in names]


@contextmanager
def pinned_threads() -> Iterator[None]:
    """One torch thread inside the block: sums in another order give other bits, and small problems are faster so."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(32)
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or number < 0:
        raise ValueError(f"seed={seed!r}, expected a whole number, at least 0, or None to draw one")
    return number


def _checked_count(n: int) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        count = 0
    if isinstance(n, bool) or count < 1:
        raise ValueError(f"n={n!r}, expected how many points: a whole number, at least 1; None gives one point (d,)")
    return count
