"""The model of `auto`: kernel, shape of the output and noise are those under which the data are most likely.

| choice | candidates | how |
|---|---|---|
| kernel | full; slow additive + fast additive + full; Matern-5/2 or RBF | each is fitted, the most likely one wins |
| output | linear; compressed from top or bottom, three scales each | profile likelihood, with one factorisation |
| noise | none; learned for values and gradients | the winner is fitted with the other, and must lose clearly |
| coordinates | the cube's; logarithms of positive ones | under one kernel, and logarithms must win clearly |

The density is that of the values and gradients as they were told: what a compression does to it is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from eign.arrays import Array
from eign.data import Observations, Standardization
from eign.models import JointGradientGP
from eign.models.derivative_kernels import SELECTABLE
from eign.models.incumbent import Incumbent, incumbent
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.surrogates import Kind, rows_of, with_stand_ins, within_row_budget
from eign.models.transforms.coordinates import Coordinates
from eign.models.transforms.output import Output, outputs

Noise = float | Literal["learn"]
"""A variance in the model's units, or to be learned."""

KERNELS: Final = SELECTABLE

# So much more likely, in natural logarithms, the data must be with noise or in logarithms before these are believed: so
# much and, for each number observed, so much. Functions without noise gain up to 7 by it, as small noise has a large
# prior density, and up to 50 where the kernels do not fit them, which does not grow with the data. Noise of 1 per cent
# of the spread gains 90 from 28 values and gradients in six dimensions, noise of 10 per cent 70 from 16 and over 1,000
# from 40. Of d + 3 points in two to six dimensions logarithms gain 20 to 130 where they are right, and up to 15 where
# they are not.
_MARGIN: Final = (10.0, 0.1)
# What a hyperparameter costs beside its prior density, in natural logarithms: by Laplace's approximation half of
# log(c / 2 pi) for a curvature of c, about 20 where the data determine it. The half of log N of the Bayesian
# information criterion counts the prior twice, and finds additive functions late.
_PRICE: Final = 0.5
# So much more likely an RBF must be, in natural logarithms, before it is believed: it knows a smooth function from far
# fewer points, and is sure of itself where it is wrong. Of seven points it gains up to 5 where it is, of twelve 10 to
# 30 where it is not.
_SMOOTHNESS_MARGIN: Final = 4.0
# A refit starts from the last one, and need not end: the next goes on from there.
_EVALUATIONS: Final = 12
_FIRST_EVALUATIONS: Final = 36
# Kernel and noise are chosen after so many refits, five fits instead of one; with each refit up to so many numbers:
# fits are short then, and what was chosen by the first points would stay for too long.
_CHOICES: Final = 3.0
_FEW_NUMBERS: Final = 150
# With more numbers than this a choice would take seconds. Fits are shorter then, for the next goes on from there, and
# most so those of kernels that were not the last choice and of noise that was not, which only have to be compared.
_MANY_NUMBERS: Final = 300
_FEWER_EVALUATIONS: Final = 7
_EVALUATIONS_OF_OTHERS: Final = 4
# Hyperparameters are learned from so many points, whatever the number of values.
_SAMPLE: Final = 200
_SMALLEST_ROW_BUDGET: Final = 600
_GRADIENTS: Final = 20


@final
@dataclass(frozen=True)
class Selection:
    """What was chosen, and for how many observations.

    Attributes:
        count: Observations it was fitted to.
        chosen: Observations when kernel and noise were chosen.
        kernel: Name.
        output: The map of values.
        noisy: Whether noise is learned.
        hyperparameters: Of each kernel, the last that were found.
    """

    count: int
    chosen: int
    kernel: str
    output: Output
    noisy: bool
    hyperparameters: Mapping[str, JointHyperparameters]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        hyper = {kernel: found.to_json() for kernel, found in self.hyperparameters.items()}
        return {
            "count": self.count,
            "chosen": self.chosen,
            "kernel": self.kernel,
            "output": self.output.to_json(),
            "noisy": self.noisy,
            "hyperparameters": hyper,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Selection":
        """What `to_json` described."""
        hyper = {kernel: JointHyperparameters.from_json(one) for kernel, one in stored["hyperparameters"].items()}
        output = Output.from_json(stored["output"])
        return cls(stored["count"], stored["chosen"], stored["kernel"], output, stored["noisy"], hyper)


@final
@dataclass(frozen=True)
class SelectedModel:
    """The model in its own units, and how it was chosen.

    Attributes:
        model: Of what `fit.output` makes of the data.
        fit: The choices.
        noisy: Whether values scatter: noise was told, or learned.
    """

    model: JointGradientGP
    fit: Selection
    noisy: bool

    def moments(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of f in the units of y, `m x d -> m, m`."""
        mean, variance = (part.numpy() for part in self.model.moments(X))
        first, second = self.fit.output.undo_moments(mean, variance)
        return torch.from_numpy(first), torch.from_numpy(second)

    def given(self, data: Observations, pending: Array) -> "SelectedModel":
        """With stand-ins for the points that failed and those that are pending."""
        kind = Kind(joint=True, with_gradient=bool(data.has_grad.any()))
        model = with_stand_ins(kind, self.model, self.fit.output.apply(data), pending)
        assert isinstance(model, JointGradientGP), "what is appended to a joint model is one"
        return self if model is self.model else replace(self, model=model)

    @cached_property
    def incumbent(self) -> Incumbent:
        """The best of the values, in the model's units; of posterior means where values scatter."""
        return incumbent(self.model, is_noisy=self.noisy)


def row_budget(dim: int) -> int:
    """Rows of the covariance matrix: 600, or twenty gradients in many dimensions.

    A factorisation of 600 rows takes ten milliseconds, and its share of a refit ten times that.

    >>> row_budget(14), row_budget(50)
    (600, 1020)
    """
    return max(_SMALLEST_ROW_BUDGET, _GRADIENTS * (dim + 1))


def fitted(data: Observations, last: Selection | None, options: Mapping[str, Any]) -> SelectedModel:
    """The model of the data: fitted anew after growth by the share `refit`, and chosen anew with it or each third."""
    seen = _seen(data, options)
    level = 0.0 if options["noise"] in (None, "learn") else float(options["noise"])
    known_noise = level > 0 or bool((data.y_var > 0).any())
    fit = last
    if last is None or is_chosen_anew(seen, last, options):
        fit = _chosen(seen, last, options, level=level, known_noise=known_noise)
    elif _has_grown(data, last.count, options["refit"]):
        fit = _refitted(seen, last, options, level=level)
    assert fit is not None, "without a last one it is chosen"
    start = fit.hyperparameters[fit.kernel]
    model = _model(seen, fit.output, fit.kernel, noise=_noise(level, learn=fit.noisy), start=start)
    return SelectedModel(model, fit, fit.noisy or known_noise)


def are_likelier(data: Observations, logs: Coordinates, options: Mapping[str, Any]) -> bool:
    """Whether the data are so much likelier in logarithms that these are believed, see `_MARGIN`."""
    told = sample(_seen(data, options), _SAMPLE).usable
    own = Coordinates([], logs=False)
    return evidence(told, logs, options) > evidence(told, own, options) + _margin(told)


def evidence(data: Observations, coordinates: Coordinates, options: Mapping[str, Any]) -> float:
    """How likely the data are if they are seen in these coordinates, in natural logarithms.

    Under one model, with the first kernel and learned noise: what it finds likelier by far is so under the others.
    """
    seen = coordinates.seen(data)
    shapes = outputs(seen, compressed=options["compress"])
    evaluations = _EVALUATIONS_OF_OTHERS if are_many(seen) else _EVALUATIONS
    found = _candidate(seen, shapes, KERNELS[0], None, noise="learn", evaluations=evaluations)
    return found.evidence + coordinates.log_jacobian(data)


def is_chosen_anew(data: Observations, last: Selection, options: Mapping[str, Any]) -> bool:
    """Whether the data have grown so much since the last choice of kernel and noise that they are chosen again."""
    choices = 1.0 if _numbers(data) <= _FEW_NUMBERS else _CHOICES
    return _has_grown(data, last.chosen, choices * options["refit"])


def are_many(data: Observations) -> bool:
    """Whether a choice of kernel and noise takes so long that its fits are cut short."""
    return _numbers(data) > _MANY_NUMBERS


def _numbers(data: Observations) -> int:
    return int(data.has_y.sum() + data.has_grad.sum())


def _margin(data: Observations) -> float:
    return _MARGIN[0] + _MARGIN[1] * _numbers(data)


def sample(data: Observations, count: int) -> Observations:
    """All points with a gradient, and evenly through time as many of the others as make `count` points.

    >>> data = Observations(np.linspace(0, 1, 6)[:, None], np.arange(6.0), [[0], [1], [np.nan], *[[np.nan]] * 3])
    >>> sample(data, 4).y.tolist()
    [0.0, 1.0, 2.0, 5.0]
    """
    if len(data) <= count:
        return data
    has_gradient: NDArray[np.bool_] = np.asarray(data.has_grad.any(axis=1))
    others = np.flatnonzero(~has_gradient)
    room = min(max(count - int(has_gradient.sum()), 0), len(others))
    kept = has_gradient.copy()
    kept[others[np.linspace(0, len(others) - 1, room).round().astype(np.intp)]] = True
    return data[np.flatnonzero(kept)]


def _seen(data: Observations, options: Mapping[str, Any]) -> Observations:
    """The part of the data that the model can afford, or may see."""
    seen = within_row_budget(data, options["rows"] or row_budget(data.dim))
    return seen if options["gradients"] else Observations(seen.x, seen.y, None, seen.y_var)


def _has_grown(data: Observations, count: int, share: float) -> bool:
    return len(data) > count and len(data) >= count * (1.0 + share)


class _Candidate(NamedTuple):
    """A model with all its choices, and how likely they are.

    Attributes:
        evidence: Log posterior density of data and hyperparameters, less what each hyperparameter of the terms beyond
            the first, and smoothness, cost.
    """

    evidence: float
    kernel: str
    output: Output
    noisy: bool
    model: JointGradientGP


def _noise(level: float, *, learn: bool) -> Noise:
    return "learn" if learn else level


def _refitted(seen: Observations, last: Selection, options: Mapping[str, Any], *, level: float) -> Selection:
    """The last choices but for the output, with hyperparameters for what was seen since."""
    shapes, noise = outputs(seen, compressed=options["compress"]), _noise(level, learn=last.noisy)
    start = last.hyperparameters[last.kernel]
    best = _candidate(sample(seen, _SAMPLE), shapes, last.kernel, start, noise=noise)
    found = {**last.hyperparameters, last.kernel: best.model.hyperparameters}
    return replace(last, count=len(seen), output=best.output, hyperparameters=found)


def _chosen(
    seen: Observations, last: Selection | None, options: Mapping[str, Any], *, level: float, known_noise: bool
) -> Selection:
    """Kernel, output and noise anew, with their hyperparameters."""
    data, shapes = sample(seen, _SAMPLE), outputs(seen, compressed=options["compress"])
    kernels = _kernels(data.dim) if options["kernel"] == "choose" else (options["kernel"],)
    known = {} if last is None else dict(last.hyperparameters)
    noisy = options["noise"] == "learn" or (last is not None and last.noisy and not known_noise)
    noise = _noise(level, learn=noisy)
    is_long = are_many(data)
    limit = _FEWER_EVALUATIONS if is_long else _EVALUATIONS

    def candidate(kernel: str) -> _Candidate:
        is_other = is_long and last is not None and kernel != last.kernel
        count = _FIRST_EVALUATIONS if kernel not in known else _EVALUATIONS_OF_OTHERS if is_other else limit
        return _candidate(data, shapes, kernel, known.get(kernel), noise=noise, evaluations=count)

    candidates = [candidate(kernel) for kernel in kernels]
    best = max(candidates, key=lambda one: one.evidence)
    if options["noise"] is None and not known_noise:
        start, count = best.model.hyperparameters, _EVALUATIONS_OF_OTHERS if is_long else limit
        other = _candidate(
            data, [best.output], best.kernel, start, noise=_noise(0.0, learn=not noisy), evaluations=count
        )
        if other.evidence > best.evidence + (_margin(data) if other.noisy else -_margin(data)):
            candidates, best = [*candidates, other], other
    known.update({one.kernel: one.model.hyperparameters for one in candidates})
    return Selection(len(seen), len(seen), best.kernel, best.output, best.noisy, known)


def _kernels(dim: int) -> tuple[str, ...]:
    """Those to choose from: in more than 29 dimensions, where already the design fills the rows, without RBF."""
    return KERNELS if row_budget(dim) == _SMALLEST_ROW_BUDGET else KERNELS[:2]


def _candidate(
    data: Observations,
    shapes: list[Output],
    kernel: str,
    start: JointHyperparameters | None,
    *,
    noise: Noise,
    evaluations: int = _EVALUATIONS,
) -> _Candidate:
    """The most likely of the shapes under the start, and then the best hyperparameters for it."""
    output = shapes[0]
    if len(shapes) > 1:
        model = _model(data, output, kernel, noise=noise, start=start)
        likelihoods = model.profile_log_likelihoods([shape.apply(data) for shape in shapes])
        jacobians = [shape.log_jacobian(data) for shape in shapes]
        output = shapes[int(np.argmax(likelihoods + jacobians))]
    model = _model(data, output, kernel, noise=noise, start=start)
    end = model.fit_hyperparameters(evaluations=evaluations)
    terms = model.hyperparameters.terms
    penalty = _PRICE * (len(terms) - 1) * (data.dim + 1) + _SMOOTHNESS_MARGIN * (terms[0].profile == "rbf")
    return _Candidate(
        output.log_jacobian(data) - float(end.value[0]) - penalty, kernel, output, noise == "learn", model
    )


def _model(
    data: Observations, output: Output, kernel: str, *, noise: Noise, start: JointHyperparameters | None
) -> JointGradientGP:
    own_units = Standardization(0.0, 1.0, np.zeros(data.dim), np.ones(data.dim))
    rows = rows_of(output.apply(data), with_gradient=bool(data.has_grad.any()))
    model = JointGradientGP(
        rows.X,
        rows.Y,
        rows.G,
        Yvar=rows.Yvar,
        Gvar=rows.Gvar,
        kernel=kernel,
        noise=noise,
        standardization=own_units,
    )
    if start is None:
        return model
    # A start that was found without noise begins to learn it at the level of the prior, and the other way round.
    own = model.hyperparameters
    return model.with_hyperparameters(
        start if start.learned == own.learned else replace(start, noise=own.noise, learned=own.learned)
    )
