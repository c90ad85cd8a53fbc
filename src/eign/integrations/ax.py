"""Ax: a generation node that uses gradients, which travel as tracking metrics with their standard errors."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

try:
    from ax.core.base_trial import BaseTrial
    from ax.core.data import Data
    from ax.core.experiment import Experiment
    from ax.core.parameter import FixedParameter, Parameter, ParameterType, RangeParameter
    from ax.core.trial_status import TrialStatus
    from ax.core.types import TParameterization
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.transition_criterion import TransitionCriterion
except ImportError as error:
    raise ImportError("eign.integrations.ax needs Ax 1.3: pip install 'eign[ax]'") from error

from eign.integrations.mirror import Mirror, ReportedTrial
from eign.notices import warn_user
from eign.space import Box
from eign.study import Optimizer

Estimate = float | tuple[float, float]
"""A mean, or mean and standard error."""

_Estimates = dict[tuple[int, str, str], tuple[float, float]]
"""(trial, arm, metric) to mean and standard error."""


def gradient_metric(parameter: str) -> str:
    """The name of the tracking metric for the partial derivative by a parameter.

    >>> gradient_metric("rate")
    'gradient_rate'
    """
    return f"gradient_{parameter}"


def raw_data(objective: str, value: Estimate, gradient: Mapping[str, Estimate | None]) -> dict[str, Estimate]:
    """What `Client.complete_trial` takes, for a value with its gradient.

    >>> raw_data("loss", (1.5, 0.1), {"rate": 0.25, "width": None})
    {'loss': (1.5, 0.1), 'gradient_rate': 0.25}

    Args:
        objective: The name of the objective's metric.
        value: Its mean, or mean and standard error.
        gradient: The same for the partial derivatives by the name of the parameter, in its own units also where it is
            on a log scale; None where it is missing.

    Raises:
        TypeError: the gradient is no dict.
    """
    given: object = gradient
    if not isinstance(given, Mapping):
        raise TypeError(
            f"gradient: expected a dict from the names of parameters to estimates, {{'rate': 0.25}}, got {given!r}"
        )
    slopes = {gradient_metric(name): slope for name, slope in gradient.items() if slope is not None}
    return {objective: value, **slopes}


@final
class GradientNode(ExternalGenerationNode):
    """Candidates by a method of `eign`, for a generation strategy of its own or after other nodes.

    The search space has float ranges, linear or log, and fixed parameters; there is one objective, and no constraints.
    A trial that failed is a failed evaluation, one that was stopped early counts with its last data, an abandoned one
    not at all. Standard errors are noise: 0 says that there is none, and NaN that it is not known.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        name: str = "eign",
        transition_criteria: Sequence[TransitionCriterion] | None = None,
    ) -> None:
        """Choose the method.

        Args:
            method: One of `eign.methods()`.
            seed: The same seed and data give the same candidates; None draws one.
            options: Settings of the method.
            name: Of the node.
            transition_criteria: When to go on to another node; None is never.

        Raises:
            ValueError: there is no such method or option.
        """
        super().__init__(name=name, transition_criteria=transition_criteria)
        self._seed = Optimizer([(0.0, 1.0)], method=method, seed=seed, options=options).seed
        self._method = method
        self._method_options = dict(options or {})
        self._fixed: dict[str, Any] = {}
        self._box: Box | None = None
        self._mirror: Mirror | None = None
        self._number = 0
        self._has_warned = False

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Take over what the experiment knows.

        Raises:
            ValueError: the experiment has something that eign does not do.
        """
        objective, minimize = _objective(experiment)
        box, self._fixed = _search_space(experiment)
        settings: dict[str, Any] = {
            "method": self._method,
            "seed": self._seed,
            "maximize": not minimize,
            "options": self._method_options,
        }
        if self._mirror is None or not self._mirror.matches(box, **settings):
            self._mirror = Mirror(box, **settings)
        self._box = box
        estimates = _estimates(data)
        self._check_names({metric for *_, metric in estimates} - {objective}, box)
        self._mirror.follow(_evaluations(experiment, estimates, objective, box))
        self._number = len(experiment.trials)

    def _check_names(self, metrics: set[str], box: Box) -> None:
        """Say once which gradient metrics are of no parameter: without a word it would be a run without gradients."""
        searched = [gradient_metric(name) for name in box.names or ()]
        others = metrics.difference(searched, map(gradient_metric, self._fixed))
        unknown = sorted(name for name in others if name.startswith(gradient_metric("")))
        # With all derivatives there, it is something else that is called so, such as gradient_norm.
        if unknown and not self._has_warned and not metrics.issuperset(searched):
            self._has_warned = True
            warn_user(
                f"the metrics {unknown} are derivatives by no parameter, and are ignored; "
                f"the derivatives are {searched}, see gradient_metric"
            )

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """The next candidate, given those that are being evaluated."""
        if self._mirror is None or self._box is None:
            raise RuntimeError("the node knows no experiment yet; Ax calls update_generator_state first")
        points = [_point(parameters, self._box) for parameters in pending_parameters]
        pending = [point for point in points if point is not None]
        candidate = self._mirror.propose(pending, number=self._number)
        self._number += 1
        return {**self._box.as_dict(candidate), **self._fixed}


def _objective(experiment: Experiment) -> tuple[str, bool]:
    """The metric that counts, and whether less of it is better."""
    config = experiment.optimization_config
    if config is None:
        raise ValueError("the experiment has no objective; set one with configure_optimization")
    if not config.objective.is_single_objective:
        raise ValueError(f"eign optimizes one objective, got {config.objective.expression!r}; take one metric")
    if config.all_constraints:
        raise ValueError(f"eign knows no outcome constraints, got {config.all_constraints}")
    return config.objective.metric_names[0], config.objective.minimize


def _search_space(experiment: Experiment) -> tuple[Box, dict[str, Any]]:
    """The box of the ranges, and the fixed parameters."""
    space = experiment.search_space
    if space.parameter_constraints:
        raise ValueError(f"eign searches a box, got the parameter constraints {space.parameter_constraints}")
    ranges: dict[str, RangeParameter] = {}
    fixed: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if isinstance(parameter, FixedParameter):
            fixed[name] = parameter.value
        else:
            ranges[name] = _float_range(name, parameter)
    bounds = {name: (parameter.lower, parameter.upper) for name, parameter in ranges.items()}
    return Box(bounds, log=[name for name, parameter in ranges.items() if parameter.log_scale]), fixed


def _float_range(name: str, parameter: Parameter) -> RangeParameter:
    if isinstance(parameter, RangeParameter) and parameter.parameter_type == ParameterType.FLOAT:
        return parameter
    raise ValueError(f"eign searches float ranges, got {parameter} for {name!r}; fix it, or give it to another node")


def _evaluations(experiment: Experiment, estimates: _Estimates, objective: str, box: Box) -> dict[Any, ReportedTrial]:
    """What finished trials found."""
    found: dict[Any, ReportedTrial] = {}
    for trial in experiment.trials.values():
        for arm in trial.arms:
            point, key = _point(arm.parameters, box), (trial.index, arm.name)
            evaluation = None if point is None else _evaluation(trial, arm.name, point, estimates, objective, box)
            if evaluation is not None:
                found[key] = evaluation
    return found


def _evaluation(
    trial: BaseTrial, arm: str, point: tuple[float, ...], estimates: _Estimates, objective: str, box: Box
) -> ReportedTrial | None:
    """What came of one arm; None if nothing is known yet."""
    if trial.status == TrialStatus.FAILED:
        return ReportedTrial.failed(point)
    if trial.status not in (TrialStatus.COMPLETED, TrialStatus.EARLY_STOPPED):
        return None
    metrics = [objective, *(gradient_metric(name) for name in box.names or ())]
    pairs = [estimates.get((trial.index, arm, metric), (math.nan, math.nan)) for metric in metrics]
    means = tuple(mean if math.isfinite(mean) else None for mean, _ in pairs)
    variances = tuple(sem**2 if math.isfinite(sem) else None for _, sem in pairs)
    if means[0] is None:
        return None
    return ReportedTrial(point, means[0], means[1:], variances[0], variances[1:])


def _estimates(data: Data) -> _Estimates:
    """The last row for each trial, arm and metric; the step of a progression sorts them."""
    rows = data.df.sort_values("step", kind="stable") if "step" in data.df else data.df
    columns = (rows[name] for name in ("trial_index", "arm_name", "metric_name", "mean", "sem"))
    return {
        (int(trial), str(arm), str(metric)): (float(mean), float(sem))
        for trial, arm, metric, mean, sem in zip(*columns, strict=True)
    }


def _point(parameters: Mapping[str, Any], box: Box) -> tuple[float, ...] | None:
    """The coordinates of an arm, or None if it is not in the box."""
    values = [parameters.get(name) for name in box.names or ()]
    if any(not isinstance(value, int | float) for value in values):
        return None
    point = tuple(float(value) for value in values if value is not None)
    return point if bool(box.contains(point)) else None
