"""Optuna: a sampler that uses the gradients which trials report.

Finished trials in the storage are data, running ones are pending points. What a method remembers besides, such as its
hyperparameters, can be learned from them again. So a study may be resumed, and several threads and processes may work
on it.
"""

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, final

import numpy as np

try:
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.samplers._base import _process_constraints_after_trial
    from optuna.search_space import intersection_search_space
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState
except ImportError as error:
    raise ImportError("eign.integrations.optuna needs Optuna 5: pip install 'eign[optuna]'") from error

from eign.arrays import Array
from eign.integrations.mirror import Mirror, Numbers, ReportedTrial
from eign.notices import warn_user
from eign.space import Box
from eign.strategies import strategy
from eign.study import Optimizer
from eign.study.habits import explaining

GRADIENT: Final = "gradient"
GRADIENT_VARIANCE: Final = "gradient_variance"
VALUE_VARIANCE: Final = "value_variance"
"""User attributes of a trial; the first two are dicts from the names of parameters to numbers."""
CONSTRAINT_GRADIENTS: Final = "constraint_gradients"
"""User attribute of a trial: for names of constraints a dict from the names of parameters to numbers."""

# What arguments of Optuna's samplers, and words of a study, are called here.
_ARGUMENTS_ELSEWHERE: Final = {
    "n_startup_trials": 'options={"n_init": 8}, how many points are evaluated before there is a model',
    "deterministic_objective": 'the default; options={"noise": "learn"} is for values that scatter',
    **dict.fromkeys(("multivariate", "group"), "nothing: all float parameters are always modelled together"),
    "direction": 'said to the study, optuna.create_study(direction="maximize")',
    "n_trials": "said to the study, study.optimize(objective, n_trials=50)",
    "warn_independent_sampling": "nothing: there is one warning for a study",
}

_POINT: Final = "eign:point"
"""System attribute of a running trial: its point, before the objective has asked for all parameters."""

# A trial that is running and has no point yet is most likely being proposed by another process; one that much older
# was more likely left behind by a process that died.
_OLDEST_SILENT: Final = 8

# Points of two trials that did not know of each other are the same idea twice if they are closer than this, in every
# coordinate and in parts of its range; then one of them is proposed again, so often at most.
_SAME_IDEA: Final = 1e-2
_ATTEMPTS: Final = 6


def set_gradient(
    trial: Trial,
    gradient: Mapping[str, float | None],
    *,
    variances: Mapping[str, float | None] | None = None,
    value_variance: float | None = None,
) -> None:
    """Report the gradient of the objective at the trial's point, before the objective returns its value.

    The same as `trial.set_user_attr("gradient", {name: value})`, with checks.

    Args:
        trial: The running trial.
        gradient: Partial derivatives by the name of the parameter, in the units of the parameter also where it is
            suggested on a log scale. Parameters that are missing, None or NaN have no known derivative.
        variances: Variances of the noise on the partial derivatives, where they are known.
        value_variance: Variance of the noise on the value, if it is known.

    Raises:
        ValueError: a name is not a parameter of the trial, or a variance is negative.
    """
    trial.set_user_attr(GRADIENT, _checked(trial, gradient, "gradient"))
    if variances is not None:
        trial.set_user_attr(GRADIENT_VARIANCE, _checked(trial, variances, "variances", least=0.0))
    if value_variance is not None:
        trial.set_user_attr(VALUE_VARIANCE, _checked_number(value_variance, "value_variance", least=0.0))


def set_constraint(trial: Trial, name: str, value: float, gradient: Mapping[str, float | None] | None = None) -> None:
    """Report a constraint, which is satisfied if its value is at most 0, with its gradient where there is one.

    The same as `trial.set_constraint(name, value)` and the user attribute "constraint_gradients", {name: gradient},
    with checks.

    Args:
        trial: The running trial.
        name: What the constraint is called.
        value: Its value; nothing is set if it is NaN, which Optuna refuses: it is missing then.
        gradient: Partial derivatives by the name of the parameter, as for `set_gradient`.

    Raises:
        ValueError: a name is not a parameter of the trial.
    """
    slopes = None if gradient is None else _checked(trial, gradient, f"gradient of {name!r}")
    if not np.isnan(value):
        trial.set_constraint(name, value)
    if slopes is not None:
        known = trial.user_attrs.get(CONSTRAINT_GRADIENTS, {})
        trial.set_user_attr(CONSTRAINT_GRADIENTS, {**known, name: slopes})


@final
class GradientSampler(BaseSampler):
    """Samples by a method of `eign`, with the gradients that `set_gradient` reported.

    Constraints are those of Optuna, each to be at most 0: `trial.set_constraint`, `set_constraint` here, which takes
    its gradient too, or a `constraints_func`.

    Float parameters, linear or log, that every trial has are proposed by the method. All others (integers, stepped and
    categorical ones, parameters of some trials only) are left to the independent sampler, with one warning; the method
    then learns how much they make values scatter. The first trial of a study, before the parameters are known, is left
    to it too.

    | trial | what the method is told |
    |---|---|
    | complete | value, gradient and variances, where they are set |
    | pruned | the same with the last value that was reported; without one, a failure |
    | failed | a failure: the surroundings are avoided, unless another trial has the same point |
    | running | a pending point |
    """

    @explaining(_ARGUMENTS_ELSEWHERE, name="GradientSampler")
    def __init__(
        self,
        method: str = "auto",
        *,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        """Choose the method.

        Args:
            method: One of `eign.methods()`.
            seed: The same seed and trials give the same points; None draws one. Processes may share a seed.
            options: Settings of the method.
            independent_sampler: For parameters that are not proposed by the method; None is random.
            constraints_func: As for Optuna's own samplers: takes a finished trial and returns values, feasible where
                all are at most 0.

        Raises:
            TypeError: the sampler or the function is none.
            ValueError: there is no such method or option.
        """
        given: object = independent_sampler
        if not isinstance(given, BaseSampler | None):
            raise TypeError(f"independent_sampler={given!r}, expected a sampler, as optuna.samplers.RandomSampler()")
        if constraints_func is not None and not callable(constraints_func):
            raise TypeError(f"constraints_func={constraints_func!r}, expected a function of a trial")
        self._seed = Optimizer([(0.0, 1.0)], method=method, seed=seed, options=options).seed
        self._method = method
        self._options = dict(options or {})
        self._independent = independent_sampler
        self._constraints_func = constraints_func
        self._warned: set[str] = set()
        self._start()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """The float parameters that every completed trial has, with the same range."""
        _check_study(study)
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        shared = intersection_search_space(trials)
        space = {name: distribution for name, distribution in shared.items() if _is_continuous(distribution)}
        others = _others(trials, space)
        if others:
            listed = ", ".join(f"{name!r} ({_reason(distribution)})" for name, distribution in others.items())
            self._warn_once(
                "independent",
                f"{type(self).__name__} proposes float parameters that every trial has. Left to "
                f"{type(self._independent or RandomSampler()).__name__}, independently of all others: {listed}",
            )
        return space

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, float]:
        """A point proposed by the method, for the whole search space."""
        _check_study(study)
        if not search_space:
            return {}
        box = _box(search_space)
        with self._lock:
            return self._proposal(study, trial, box)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value by the independent sampler."""
        _check_study(study)
        # By the trial's number: processes that share a seed must not begin with the same point.
        words = [self._seed, trial.number, *param_name.encode()]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        sampler = self._independent or RandomSampler(seed=seed)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Tell early that a study is none for this sampler."""
        _check_study(study)
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Constraints that a function computes go to the storage, which has everything else."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Draw another seed; trials of one study have different points even without, by their numbers."""
        with self._lock:
            self._seed = secrets.randbits(32)
        if self._independent is not None:
            self._independent.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be rebuilt from the study."""
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_mirrored")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._mirrored: tuple[str, Mirror] | None = None

    def _proposal(self, study: Study, trial: FrozenTrial, box: Box) -> dict[str, float]:
        """The trial's point, known to all and no other trial's idea."""
        for left in reversed(range(_ATTEMPTS)):
            began = time.monotonic()
            trials = _without(trial, study)
            known = _points(trials, box)
            mirror = self._following(study, trials, box)
            point = box.as_dict(_proposed(mirror, trial, trials, box))
            # Others see the parameters of a trial only when its objective asks for them, one by one.
            study._storage.set_trial_system_attr(trial._trial_id, _POINT, point)
            # Looked at after the point was written: of two processes at least one sees the other's.
            same = _same_idea(point, _points(_without(trial, study), box), known, box)
            if same and min(same) > trial.number:
                # If both moved at once, they would move to the same place: the later trial does it first.
                time.sleep(2.0 * (time.monotonic() - began))
                same = _same_idea(point, _points(_without(trial, study), box), known, box)
            if not same or not left:
                break
            mirror.withdraw()
        return point

    def _following(self, study: Study, trials: Sequence[FrozenTrial], box: Box) -> Mirror:
        """The study's mirror, which knows what the trials found."""
        # In the order in which they were first seen; a trial may lack some.
        constraints = tuple(dict.fromkeys(name for other in trials for name in other.constraints))
        scattered = bool(_others(trials, box.names or ()))
        mirror = self._mirror(study, box, scattered=scattered, constraints=constraints)
        mirror.follow(self._evaluations(trials, box, constraints))
        return mirror

    def _mirror(self, study: Study, box: Box, *, scattered: bool, constraints: tuple[str, ...]) -> Mirror:
        """The mirror of this study, kept from the last call where nothing but trials has come in."""
        maximize = study.direction == StudyDirection.MAXIMIZE
        options = self._options
        if scattered and "noise" in strategy(self._method).options:
            options = {"noise": "learn", **options}
        settings: dict[str, Any] = {
            "method": self._method,
            "seed": self._seed,
            "maximize": maximize,
            "constraints": constraints,
        }
        if self._mirrored is not None:
            name, mirror = self._mirrored
            if name == study.study_name and mirror.matches(box, options=options, **settings):
                return mirror
        mirror = Mirror(box, options=options, **settings)
        self._mirrored = (study.study_name, mirror)
        return mirror

    def _evaluations(
        self, trials: Iterable[FrozenTrial], box: Box, constraints: Sequence[str]
    ) -> dict[Any, ReportedTrial]:
        """What finished trials found; a failed one does not count where another trial has the same point."""
        points = {trial.number: _point(trial, box) for trial in trials}
        alive = {points[trial.number] for trial in trials if trial.state != TrialState.FAIL}
        found = {}
        for trial in trials:
            point = points[trial.number]
            if point is None or not trial.state.is_finished():
                continue
            value = _value(trial)
            if value is not None:
                complete = self._complete(trial, point, value, box)
                found[trial.number] = self._with_constraints(complete, trial, constraints, box)
            elif trial.state != TrialState.FAIL or point not in alive:
                found[trial.number] = ReportedTrial.failed(point)
        return found

    def _complete(self, trial: FrozenTrial, point: tuple[float, ...], value: float, box: Box) -> ReportedTrial:
        names = box.names or ()
        for attribute in (GRADIENT, GRADIENT_VARIANCE):
            self._check_names(trial, trial.user_attrs.get(attribute), attribute)
        try:
            gradient = _read(trial, GRADIENT, names)
            variances = _read(trial, GRADIENT_VARIANCE, names, least=0.0)
            variance = trial.user_attrs.get(VALUE_VARIANCE)
            variance = None if variance is None else _checked_number(variance, VALUE_VARIANCE, least=0.0)
        except (TypeError, ValueError) as error:
            self._warn_once("attributes", f"trial {trial.number}: {error}. Its gradient is ignored; see set_gradient")
            missing = (None,) * len(point)
            return ReportedTrial(point, value, missing, None, missing)
        return ReportedTrial(point, value, gradient, variance, variances)

    def _with_constraints(
        self, reported: ReportedTrial, trial: FrozenTrial, constraints: Sequence[str], box: Box
    ) -> ReportedTrial:
        """With the constraints of a trial."""
        names, given = box.names or (), trial.user_attrs.get(CONSTRAINT_GRADIENTS, {})
        values = tuple(_checked_number(trial.constraints.get(name), name) for name in constraints)
        try:
            if not isinstance(given, Mapping):
                raise TypeError(f"the user attribute {CONSTRAINT_GRADIENTS!r} is {given!r}, expected a dict of dicts")
            for name in given:
                self._check_names(trial, given[name], f"{CONSTRAINT_GRADIENTS} of {name!r}")
            slopes = tuple(
                _numbers(given.get(name, {}), f"{CONSTRAINT_GRADIENTS} of {name!r}", names) for name in constraints
            )
        except (TypeError, ValueError) as error:
            advice = "The gradients of its constraints are ignored; see set_constraint"
            self._warn_once("constraints", f"trial {trial.number}: {error}. {advice}")
            slopes = ((None,) * len(names),) * len(constraints)
        return reported._replace(constraints=values, constraint_grads=slopes)

    def _check_names(self, trial: FrozenTrial, given: Any, what: str) -> None:
        """Say which names of an attribute are no parameters: without a word it would be a run without gradients."""
        unknown = [name for name in given if name not in trial.params] if isinstance(given, Mapping) else []
        if unknown:
            self._warn_once(
                "names",
                f"trial {trial.number}: the user attribute {what} has unknown names {unknown}, which are ignored; "
                f"the trial's parameters are {list(trial.params)}; see set_gradient",
            )

    def _warn_once(self, about: str, message: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warn_user(message)


def _check_study(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"GradientSampler optimizes one objective, and the study {study.study_name!r} has "
            f"{len(study.directions)}; take one of them, or a sum, or another sampler such as optuna.samplers.GPSampler"
        )


def _is_continuous(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, FloatDistribution) and distribution.step is None and not distribution.single()


def _proposed(mirror: Mirror, trial: FrozenTrial, trials: Iterable[FrozenTrial], box: Box) -> Array:
    """What the method proposes for the trial while the other ones run."""
    points = {other.number: _point(other, box) for other in trials if other.state == TrialState.RUNNING}
    pending = [point for point in points.values() if point is not None]
    for number in sorted(number for number, point in points.items() if point is None):
        # Whoever proposes a point for an earlier trial right now would come to much the same as this process.
        if trial.number - _OLDEST_SILENT <= number < trial.number:
            pending.append(tuple(mirror.propose(pending, number=number).tolist()))
            mirror.withdraw()
    return mirror.propose(pending, number=trial.number)


def _without(trial: FrozenTrial, study: Study) -> list[FrozenTrial]:
    """All other trials, as the storage has them now."""
    return [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]


def _points(trials: Iterable[FrozenTrial], box: Box) -> dict[int, tuple[float, ...]]:
    """The points that are known, by the number of the trial."""
    points = {trial.number: _point(trial, box) for trial in trials}
    return {number: point for number, point in points.items() if point is not None}


def _same_idea(
    point: Mapping[str, float],
    points: Mapping[int, tuple[float, ...]],
    known: Mapping[int, tuple[float, ...]],
    box: Box,
) -> list[int]:
    """The trials next to the point that were not known to have the points they have: these may change, too."""
    others = {number: other for number, other in points.items() if known.get(number) != other}
    apart = box.to_unit(np.reshape(list(others.values()), (-1, box.dim))) - box.to_unit(box.from_dict(point))
    near = np.abs(apart).max(axis=1) < _SAME_IDEA
    return [number for number, is_near in zip(others, near, strict=True) if is_near]


def _others(trials: Iterable[FrozenTrial], space: Collection[str]) -> dict[str, BaseDistribution]:
    """Parameters of completed trials that vary and are not in the space."""
    return {
        name: distribution
        for trial in trials
        if trial.state == TrialState.COMPLETE
        for name, distribution in trial.distributions.items()
        if name not in space and not distribution.single()
    }


def _reason(distribution: BaseDistribution) -> str:
    if _is_continuous(distribution):
        return "not in every trial, or its range changes"
    if isinstance(distribution, CategoricalDistribution):
        return "categorical"
    return "stepped" if isinstance(distribution, FloatDistribution) else "integer"


def _box(space: Mapping[str, Any]) -> Box:
    bounds = {name: (distribution.low, distribution.high) for name, distribution in space.items()}
    return Box(bounds, log=[name for name, distribution in space.items() if distribution.log])


def _point(trial: FrozenTrial, box: Box) -> tuple[float, ...] | None:
    """The trial's coordinates, as far as they are known already; None if one is missing or out of range."""
    known = {**trial.system_attrs.get("fixed_params", {}), **trial.system_attrs.get(_POINT, {}), **trial.params}
    names = box.names or ()
    if trial.state == TrialState.WAITING or any(not isinstance(known.get(name), int | float) for name in names):
        return None
    point = tuple(float(known[name]) for name in names)
    return point if bool(box.contains(point)) else None


def _value(trial: FrozenTrial) -> float | None:
    """The finite value of a finished trial; of a pruned one, the last that was reported."""
    value = None
    if trial.state == TrialState.COMPLETE:
        value = trial.value
    elif trial.state == TrialState.PRUNED and trial.last_step is not None:
        value = trial.intermediate_values[trial.last_step]
    return float(value) if value is not None and np.isfinite(value) else None


def _read(trial: FrozenTrial, attribute: str, names: Sequence[str], *, least: float | None = None) -> Numbers:
    """One number for each name from a user attribute, None where it is missing."""
    return _numbers(trial.user_attrs.get(attribute, {}), attribute, names, least=least)


def _numbers(given: Any, what: str, names: Sequence[str], *, least: float | None = None) -> Numbers:
    if not isinstance(given, Mapping):
        raise TypeError(f"the user attribute {what!r} is {given!r}, expected a dict name -> number")
    return tuple(_checked_number(given.get(name), f"{what} of {name!r}", least=least) for name in names)


def _checked(
    trial: Trial, numbers: Mapping[str, float | None], what: str, *, least: float | None = None
) -> dict[str, float]:
    """Plain numbers by name, without those that are missing."""
    if not isinstance(numbers, Mapping):
        raise TypeError(
            f"{what}: expected a dict from the names of parameters to numbers, "
            f"{dict.fromkeys(trial.params, 0.5) or {'x': 0.5}}, got {numbers!r}"
        )
    unknown = [name for name in numbers if name not in trial.params]
    if unknown:
        known = f"the trial's parameters are {list(trial.params)}" if trial.params else "suggest the parameters first"
        raise ValueError(f"{what} has unknown names {unknown}; {known}")
    checked = {name: _checked_number(value, f"{what} of {name!r}", least=least) for name, value in numbers.items()}
    return {name: value for name, value in checked.items() if value is not None}


def _checked_number(value: Any, what: str, *, least: float | None = None) -> float | None:
    """A float, or None for what is missing."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: expected a number or None, got {value!r}") from None
    if least is not None and number < least:
        raise ValueError(f"{what}: expected at least {least:g}, got {number!r}")
    return number if np.isfinite(number) else None
