"""A study: its log of events, and all that follows from it. `Optimizer` is the face of it that users see.

Inside, everything is in the unit cube and maximised; this is the one place where units and signs turn, both ways.
"""

import operator
import threading
import traceback
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from eign.arrays import Array, Mask, as_floats
from eign.constraints import best_row, relative_excess
from eign.data import Numbers, Observations, constraint_values, to_unit
from eign.interrupts import uninterrupted
from eign.notices import warn_user
from eign.numerics.threads import undisturbed
from eign.region import Region, region_in, user_point
from eign.space import SAME_POINT, Box
from eign.strategies.design import design_point
from eign.strategies.registry import strategy
from eign.strategies.strategy import Belief, Proposal, State, Strategy
from eign.study.definition import Definition
from eign.study.events import Ask, Event, Retract, Tell, event_from_json
from eign.study.gradient_check.check import PROBE, new_faults, probe_point
from eign.study.gradient_check.faults import GradientWarning, message
from eign.study.gradient_check.neighbours import NearPairs
from eign.study.optimality import steepness
from eign.study.pending import Pending
from eign.study.stopping import Convergence, convergence
from eign.study.storage.file_format import StorageError
from eign.study.storage.study_file import StudyFile


class MethodFailedWarning(RuntimeWarning):
    """A method could not propose a point, which is a bug; the study went on without it."""


@final
class Study:
    """The log of a study and what follows from it. Threads may share it."""

    def __init__(self, definition: Definition, state: State, *, gain: float | None = None) -> None:
        """A study without events, in memory; `gain` is what the method expects of the last point it proposed."""
        self.definition = definition
        self.file: StudyFile | None = None
        self.is_view = False
        self.log: list[Event] = []
        count = len(definition.constraints)
        self.history = Observations.empty(self.box.dim, constraints=count)
        self.data = Observations.empty(self.box.free_dim, constraints=count)
        self.reasons: list[str] = []
        self.pending = Pending(self.box)
        self._state, self._gains = state, [] if gain is None else [gain]
        self._before_proposal = (state, list(self._gains))
        self._is_restored = True
        self._best_row: int | None = None
        self._excess: Array | None = None
        # What the gradient check has seen: each tell adds to it, so that none looks at everything again.
        self._near, self._probes = NearPairs(), 0
        self._near_constraints = [NearPairs() for _ in range(count)]
        self._warned_of: set[str] = set()
        self._warned = self._warned_of_contradiction = False
        self._mutex = threading.RLock()

    @classmethod
    def from_json(
        cls, definition: Mapping[str, Any], state: Mapping[str, Any], events: list[dict[str, Any]]
    ) -> "Study":
        """The study that a file or a snapshot describes."""
        # Earlier versions kept the last expected improvement in the state, later ones in the events.
        study = cls(Definition.from_json(definition), State.from_json(state), gain=state.get("expected_improvement"))
        # The strategy, and with it torch, is loaded when something is proposed: a look at a study needs neither.
        study._is_restored = False
        if study._state.dim != study.box.free_dim:
            raise ValueError(f"the state has {study._state.dim} coordinates, and the box {study.box.free_dim}")
        if len(study._state.limits) != len(study.definition.constraints):
            raise ValueError("the state has another number of constraints than the definition")
        for number, event in enumerate(events, start=1):
            try:
                study._fold(event_from_json(event), study._state)
            except (TypeError, ValueError) as error:
                raise ValueError(f"event {number}: {error}") from error
        study.box.to_unit(study.pending.x)  # refuses points outside
        return study

    def to_json(self) -> dict[str, Any]:
        """Plain data, whose entries are the arguments of `from_json`."""
        return {
            "definition": self.definition.to_json(),
            "state": self._state.to_json(),
            "events": [event.to_json() for event in self.log],
        }

    @property
    def box(self) -> Box:
        """The region that is searched."""
        return self.definition.box

    @cached_property
    def region(self) -> Region:
        """The points of the unit cube that satisfy the linear constraints.

        Raises:
            EmptyRegion: there are none.
        """
        return region_in(self.box, self.definition.linear)

    @cached_property
    def strategy(self) -> Strategy:
        """The method; its packages are imported here."""
        return strategy(self.definition.method)

    @property
    def state(self) -> State:
        """What the method carries to its next proposal."""
        if not self._is_restored:
            self._state, self._is_restored = self.strategy.restored(self._state), True
            self._before_proposal = (self._state, list(self._gains))
        return self._state

    def ask(self, count: int) -> Array:
        """The next points (count, d), user units: those that nobody has any more first."""
        with self._mutex:
            self._check_not_a_view()
            again = self.pending.unclaimed(count)
            fresh = np.empty((0, self.box.dim))
            if len(again) < count:
                fresh = self._ask_fresh(count - len(again))
            return np.concatenate([self.pending.claim(again), fresh])

    def request(self, x: Array, reason: str) -> None:
        """Hand out a point (d,), user units, that the method did not propose; it is pending until it is told."""
        with self._mutex:
            self._check_not_a_view()
            self._record(Ask(np.reshape(x, (1, -1)), (reason,)), self._state)

    def propose(self, pending: Numbers, *, number: int) -> Proposal:
        """What `ask` would give after `number` others, of which just the `pending` ones are not told; user units.

        Nothing is recorded but what was learned from the data: this is for studies whose points are kept elsewhere,
        as in a database with several processes.

        Args:
            pending: Points that are being evaluated (m, d), user units; may be empty.
            number: Points handed out before this one by anyone. Randomness comes from the seed and this number.
        """
        with self._mutex:
            self._check_not_a_view()
            points = np.reshape(as_floats(pending, "pending"), (-1, self.box.dim))
            before = self.state
            state = replace(before, asked=operator.index(number))
            [proposal], state = self._proposals(state, self.box.to_unit(points), 1)
            self._before_proposal = (before, list(self._gains))
            self._state = replace(state, asked=before.asked)
            self._gains += [] if proposal.expected_improvement is None else [proposal.expected_improvement]
            return proposal._replace(x=self._user_points(proposal.x[None])[0])

    def withdraw(self) -> None:
        """Undo the last `propose`, right after it: its point will not be evaluated, and is no step of the method."""
        with self._mutex:
            self._check_not_a_view()
            self._state, self._gains = self._before_proposal

    def tell(self, told: Observations) -> None:
        """Record evaluations, user units."""
        with self._mutex:
            self._check_not_a_view()
            before = len(self.data)
            count = len(self.definition.constraints)
            told = told.at(self.pending.as_asked(told.x)).with_missing_constraints(count)
            if len(told.constraints) != count:
                raise ValueError(f"told {len(told.constraints)} constraints, expected {count}")
            self._warn_of_contradictions(told)
            self._record(Tell(told), self._state.after(told))
            self._check_gradients(before)
            self._check_constraints(before)

    def retract(self, x: Array) -> int:
        """Take back all that was told at a point (d,), user units; returns how many evaluations that were.

        The log keeps them. The method learns anew from what is left.

        Raises:
            ValueError: nothing was told there.
        """
        with self._mutex:
            self._check_not_a_view()
            count = int(self._rows_at(x).sum())
            if not count:
                raise ValueError(f"there is nothing to retract at x = {np.asarray(x).tolist()}: it was never told")
            self._record(Retract(np.asarray(x)), self._state.without_memory(len(self.data) - count))
            return count

    def close(self) -> None:
        """Let others have the study's file."""
        if self.file is not None:
            self.file.close()

    def abandon(self) -> None:
        """Let others have the study's file, also where something told could not be written to it."""
        if self.file is not None:
            self.file.abandon()

    def best_row(self) -> int:
        """The row of the best feasible point observed, else of the least violated; with noise, by posterior means.

        Raises:
            ValueError: no value has been told yet.
        """
        if self._best_row is None:
            if not self.data.has_y.any():
                raise ValueError("there is no best point yet: no finite value has been told")
            values = np.where(self.data.has_y, self._estimates(), np.nan)
            self._best_row = best_row(values, self.excess(), self.definition.feasibility_tol)
        return self._best_row

    @property
    def is_constrained(self) -> bool:
        """Whether there are constraints of any kind."""
        return bool(len(self.definition.constraints) or len(self.definition.linear))

    def excess(self) -> Array:
        """By how much each point violates the constraints, the largest in units of its scale `n`; inf if unknown."""
        if self._excess is None:
            self._excess = np.zeros(len(self.history))
            if self.is_constrained:
                _, violations, scales = self.violations()
                self._excess = relative_excess(violations, scales)
        return self._excess

    def violations(self) -> tuple[list[str], Array, Array]:
        """Of all constraints, black-box ones first: names, violations `n x m`, user units, and their scales `m`."""
        limits, rows, box = self.definition.constraints, self.definition.linear, self.box
        values = constraint_values(self.history)
        violations, scales = limits.violation(values), limits.scales(values)
        if not len(rows):
            return list(limits.names), violations, scales
        violations = np.concatenate([violations, rows.violation(self.history.x)], axis=1)
        return [*limits.names, *rows.labels], violations, np.append(scales, rows.scales(box.lower, box.upper))

    def is_feasible(self) -> Mask:
        """Which points satisfy the constraints, up to the tolerance `n`."""
        return np.asarray(self.excess() <= self.definition.feasibility_tol)

    def feasible_data(self) -> Observations:
        """What is known of the objective, in the unit cube, where infeasible points have no value."""
        if not self.is_constrained:
            return self.data
        seen = self.data.objective
        return Observations(seen.x, np.where(self.is_feasible(), seen.y, np.nan), seen.grad, seen.y_var, seen.grad_var)

    def convergence(self) -> Convergence:
        """How near the best point is to an optimum, as far as it is known."""
        if not self.data.has_y.any():
            return Convergence(None, None)
        return convergence(self.feasible_data(), steepness(self), self._gains)

    def belief(self) -> Belief | None:
        """What the method believes of f and looks for next; changes nothing."""
        method, state = self.strategy, self.state
        with undisturbed():
            return method.belief(state, self.data.blank_where_failed, self.pending.units)

    def _estimates(self) -> Array:
        """What f is believed to be at the points told; the values, unless they scatter."""
        if self._state.noisy is False and not (self.data.y_var > 0).any():
            return self.data.y
        method, state = self.strategy, self.state
        with undisturbed():
            return method.estimates(state, self.data.blank_where_failed)

    def _record(self, event: Event, state: State) -> None:
        """The one way in which anything changes: the event is written, and what follows from it is updated.

        An ask that cannot be written did not happen. A tell did: an evaluation may have taken hours. After `close`
        neither does.
        """
        with uninterrupted():
            try:
                if self.file is not None:
                    self.file.append(event.to_json(), state.to_json(), keep=isinstance(event, Tell))
            except StorageError as error:
                if not isinstance(event, Tell) or not (self.file and self.file.is_open):
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
            case Ask(x, reasons, gains):
                self.pending.add(x, reasons)
                self._probes += reasons.count(PROBE)
                self._gains += [gain for gain in gains if gain is not None]
            case Tell(told):
                data = self._inside(told)
                self.data = self.data.followed_by(data)
                self.history = self.history.followed_by(told)
                self.reasons += [self.pending.drop(point) for point in data.x]
            case Retract(x):
                kept = np.flatnonzero(~self._rows_at(x))
                self.data, self.history = self.data[kept], self.history[kept]
                self.reasons = [self.reasons[row] for row in kept]
                self._near = NearPairs()
                self._near_constraints = [NearPairs() for _ in self.data.constraints]
        self.log.append(event)
        self._state = state
        self._before_proposal = (state, list(self._gains))
        self._best_row = self._excess = None

    def _check_not_a_view(self) -> None:
        if self.is_view:
            raise ValueError("this study was opened to look at; continue it with Optimizer.resume")

    def _ask_fresh(self, count: int) -> Array:
        """So many points that nobody has been given: one for the gradient check, if that is due, and the method's."""
        pending, state = self.pending.units, self.state
        with undisturbed():
            probe = self._probe(pending)
        if probe is not None and len(self.definition.linear) and not self.region.contains(probe):
            probe = None
        probes = np.empty((0, self.box.free_dim)) if probe is None else probe[None]
        proposals, state = self._proposals(state, np.concatenate([pending, probes]), count - len(probes))
        points = self._user_points(np.concatenate([probes, *(proposal.x[None] for proposal in proposals)]))
        reasons = (PROBE,) * len(probes) + tuple(proposal.reason for proposal in proposals)
        gains = (None,) * len(probes) + tuple(proposal.expected_improvement for proposal in proposals)
        self._record(Ask(points, reasons, gains), state)
        return points

    def _probe(self, pending: Array) -> Array | None:
        """The point that the gradient check asks for, `d`: for the objective, or else for a constraint."""
        mode, widths = self.definition.check_gradients, self._widths()
        outputs = zip((self.data.objective, *self.data.constraints), (self._near, *self._near_constraints), strict=True)
        probes = (probe_point(mode, seen, widths, pending, self._probes, near) for seen, near in outputs)
        return next((probe for probe in probes if probe is not None), None)

    def _proposals(self, state: State, pending: Array, count: int) -> tuple[list[Proposal], State]:
        """What the method proposes. If it fails, which is a bug, the study goes on with points that fill the space."""
        try:
            with undisturbed():
                return self.strategy.propose(state, self.data.blank_where_failed, pending, count)
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            warn_user(
                f"method {self.definition.method!r} failed, and points that fill the space take the place of its own: "
                f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno}). Please report it",
                MethodFailedWarning,
            )
        numbers = range(state.asked, state.asked + count)
        points = [self._spread_point(state, number) for number in numbers]
        return [Proposal(x, "fallback") for x in points], replace(state, asked=state.asked + count)

    def _spread_point(self, state: State, number: int) -> Array:
        """A point of a sequence that fills what is allowed, in the unit cube."""
        if len(self.definition.linear):
            return self.region.design_point(state.seed, number)
        return design_point(state.seed, state.dim, number)

    def _user_points(self, units: Array) -> Array:
        """Points of the unit cube as they are handed out, `n x d`: linear constraints hold after rounding, too."""
        rows = self.definition.linear
        if not len(rows):
            return self.box.from_unit(units)
        return np.stack([user_point(u, rows, self.box, self.region) for u in units])

    def probes(self) -> int:
        """Points asked for to check the gradient."""
        return self._probes

    def _widths(self) -> Array:
        """What the cube's units are in the user's at each point told, `n x d`."""
        return self.box.unit_scale(self.history.x)

    def _rows_at(self, x: Array) -> Mask:
        """Which rows of the data are at this point."""
        distances = np.abs(self.data.x - self.box.to_unit(x)).max(axis=1, initial=0.0)
        return np.asarray(distances <= SAME_POINT)

    def _warn_of_contradictions(self, told: Observations) -> None:
        """Say once what happens if a point is told again with another value and nobody spoke of noise."""
        is_expected = self._state.noisy or (self.data.y_var > 0).any() or (told.y_var > 0).any()
        if is_expected or self._warned_of_contradiction:
            return
        for row in range(len(told)):
            known = self.history.y[(self.history.x == told.x[row]).all(axis=1) & self.history.has_y]
            if np.isfinite(told.y[row]) and len(known) and told.y[row] not in known:
                self._warned_of_contradiction = True
                warn_user(
                    f"x = {told.x[row].tolist()} was told before with y = {float(known[-1])!r} and now with "
                    f"{float(told.y[row])!r}: both count, as noisy values; if the first was wrong, retract it"
                )

    def _check_gradients(self, before: int) -> None:
        """Warn, once in a study, if gradients and values contradict each other since row `before`."""
        mode = self.definition.check_gradients
        if self._warned or not mode:
            return
        with undisturbed():
            found = new_faults(mode, self.data, self._widths(), before, self._near)
        if found:
            self._warned = True
            warn_user(message(found, self._labels()), GradientWarning)

    def _check_constraints(self, before: int) -> None:
        """The same for each constraint, by neighbours alone: a probe tells of all outputs."""
        if self.definition.check_gradients != "probe":
            return
        names = self.definition.constraints.names
        for name, seen, near in zip(names, self.data.constraints, self._near_constraints, strict=True):
            if name in self._warned_of:
                continue
            with undisturbed():
                found = new_faults("probe", seen, self._widths(), before, near)
            if found:
                self._warned_of.add(name)
                text = f"constraint {name!r}: {message(found, self._labels())}"
                warn_user(text, GradientWarning)

    def _labels(self) -> list[str]:
        """What the free coordinates are called."""
        free = np.flatnonzero(self.box.free).tolist()
        return [f"coordinate {i}" if self.box.names is None else repr(self.box.names[i]) for i in free]

    def _inside(self, told: Observations) -> Observations:
        """In the unit cube, to be maximised: the one place where signs turn, of values and gradients together.

        Those of constraints stay: their limits have the user's sign.
        """
        data = to_unit(told, self.box)
        if self.definition.maximize:
            return data
        return Observations(data.x, -data.y, -data.grad, data.y_var, data.grad_var, constraints=data.constraints)

    def __getstate__(self) -> dict[str, Any]:
        if self.file is not None:
            raise TypeError("a study in a file cannot be copied; look at it elsewhere with Optimizer.view(file)")
        return {name: value for name, value in vars(self).items() if name not in ("_mutex", "strategy", "region")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _mutex=threading.RLock())
