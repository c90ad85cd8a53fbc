"""Which model the data speak for: kernel, output, noise and coordinates, by how likely they make what was observed.

| choice | alternatives |
|---|---|
| kernel | `KERNELS` |
| output | the values, or logarithms of them from either end, see `transforms.output` |
| noise | none, or learned for values and for derivatives |
| coordinates | those of the unit cube, or logarithms, see `transforms.coordinates` |
| slopes | gradients belong to f, or are taken for numbers that have nothing to do with it |

Evidences are log posterior densities of what was observed, in nats, so that what a map of values or coordinates does to
a density is counted. The reigning choice is challenged by those that differ in one property: by all of them at first,
and then by one at each refit, in turn, so that a refit is two fits, however many alternatives there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree

from eign.arrays import Array
from eign.data import Observations
from eign.models import JointGradientGP
from eign.models.derivative_kernels import SELECTABLE
from eign.models.incumbent import Incumbent, incumbent
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.selection.settings import ModelSettings
from eign.models.surrogates import Kind, rows_of, with_stand_ins, within_row_budget
from eign.models.transforms.coordinates import Coordinates
from eign.models.transforms.output import Output, outputs
from eign.standardization import Standardization

Noise = float | Literal["learn"]
"""A variance in the model's units, or to be learned."""

KERNELS: Final = SELECTABLE


class Choice(NamedTuple):
    """What is chosen beside the output, which is chosen anew with every fit."""

    kernel: str = KERNELS[0]
    noisy: bool = False
    logs: bool = False
    slopes: bool = True


@final
@dataclass(frozen=True)
class Selection:
    """What was chosen, and for how many observations.

    Attributes:
        count: Observations it was fitted to.
        turn: Refits so far; says whose turn it is to challenge.
        choice: Kernel, noise and coordinates.
        output: The map of values.
        hyperparameters: Of each choice that was fitted, the last that were found.
    """

    count: int
    turn: int
    choice: Choice
    output: Output
    hyperparameters: Mapping[Choice, JointHyperparameters]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        hyper = [[list(choice), found.to_json()] for choice, found in self.hyperparameters.items()]
        return {
            "count": self.count,
            "turn": self.turn,
            "choice": list(self.choice),
            "output": self.output.to_json(),
            "hyperparameters": hyper,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Selection":
        """What `to_json` described."""
        hyper = {Choice(*choice): JointHyperparameters.from_json(one) for choice, one in stored["hyperparameters"]}
        output = Output.from_json(stored["output"])
        return cls(stored["count"], stored["turn"], Choice(*stored["choice"]), output, hyper)


@final
@dataclass(frozen=True)
class SelectedModel:
    """The model in its own units and coordinates, and how it was chosen.

    Attributes:
        model: Of what `fit.output` and `coordinates` make of the data.
        fit: The choices.
        coordinates: Those of the model.
        noisy: Whether values scatter: noise was told, or learned and not disproved by points next to each other.
    """

    model: JointGradientGP
    fit: Selection
    coordinates: Coordinates
    noisy: bool

    def moments(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of f in the units of y at points of the unit cube, `m x d -> m, m`."""
        own = torch.from_numpy(self.coordinates.points(X.numpy()))
        mean, variance = (part.numpy() for part in self.model.moments(own))
        first, second = self.fit.output.undo_moments(mean, variance)
        return torch.from_numpy(first), torch.from_numpy(second)

    def given(self, data: Observations, pending: Array) -> "SelectedModel":
        """With stand-ins for the points that failed and those that are pending."""
        kind = Kind(joint=True, with_gradient=bool(data.has_grad.any()))
        seen = self.fit.output.apply(self.coordinates.seen(data))
        model = with_stand_ins(kind, self.model, seen, self.coordinates.points(pending))
        assert isinstance(model, JointGradientGP), "what is appended to a joint model is one"
        return self if model is self.model else replace(self, model=model)

    @cached_property
    def incumbent(self) -> Incumbent:
        """The best of the values, in the model's units; of posterior means where values scatter."""
        return incumbent(self.model, is_noisy=self.noisy)


def fitted(
    data: Observations,
    last: Selection | None,
    decades: Sequence[float],
    options: Mapping[str, Any],
    settings: ModelSettings,
) -> SelectedModel:
    """The model of the data: chosen at first, and fitted and challenged again when the data have grown.

    Args:
        data: What was told, in the unit cube.
        last: What was chosen before.
        decades: Of each coordinate, see `Coordinates`.
        options: `kernel`, `compress`, `logs`, `gradients` and `noise` of the method.
        settings: When, how far and against which odds.
    """
    kept = apart(data, decades, settings.resolution) if settings.thinned else data
    candidates = _Candidates(_seen(kept, options, settings), decades, options, settings)
    fit = last
    if last is None or len(data) >= last.count * (1.0 + settings.growth):
        fit = candidates.challenged(last, count=len(data))
    assert fit is not None, "without a last one it is chosen"
    if fit.choice.noisy or candidates.noise_is_known:
        candidates = _Candidates(_seen(data, options, settings), decades, options, settings)
    model = candidates.model(fit.choice, fit.output, fit.hyperparameters[fit.choice])
    asked = candidates.noise_is_known or options["noise"] == "learn"
    noisy = asked or (fit.choice.noisy and not _is_steady(data, model, fit.output, settings))
    return SelectedModel(model, fit, candidates.coordinates(fit.choice), noisy)


class _Fit(NamedTuple):
    """How likely the best hyperparameters of a choice are, in nats, and the output they are for."""

    evidence: float
    output: Output


class _Candidates:
    """The choices there are for the data, and the models that they make."""

    def __init__(
        self, data: Observations, decades: Sequence[float], options: Mapping[str, Any], settings: ModelSettings
    ) -> None:
        self.data, self.decades, self.options, self.settings = data, decades, options, settings
        self.level = 0.0 if options["noise"] in (None, "learn") else float(options["noise"])
        self.noise_is_known = self.level > 0 or bool((data.y_var > 0).any())

    def coordinates(self, choice: Choice) -> Coordinates:
        return Coordinates(self.decades, logs=choice.logs)

    def seen(self, choice: Choice) -> Observations:
        """The data in the coordinates of a choice, with gradients if it believes them."""
        return self.coordinates(choice).seen(self.data if choice.slopes else _without_slopes(self.data))

    def challenged(self, last: Selection | None, *, count: int) -> Selection:
        """The best of the reigning choice and its next challengers; of all challengers if there was no choice yet."""
        winner = self._allowed(Choice() if last is None else last.choice)
        known = {} if last is None else dict(last.hyperparameters)
        due = 0 if last is None else self._due(last.count, count)
        turn = 0 if last is None else last.turn + due
        challenges = self._challenges(winner)
        if len(self.data) < self.settings.fewest + self.data.dim:
            challenges = []
        elif known and challenges:
            challenges = [challenges[number % len(challenges)] for number in range(turn, turn - due, -1)]
        best = self._fit(winner, known)
        for change in challenges:
            rival = winner._replace(**change)
            found = self._fit(rival, known)
            if found.evidence > best.evidence:
                winner, best = rival, found
        return Selection(count, turn, winner, best.output, known)

    def _due(self, before: int, now: int) -> int:
        """How many refits, and so challengers, there would have been if somebody had asked at every growth."""
        return max(1, int(np.log(now / max(before, 1)) / np.log1p(self.settings.growth)))

    def model(self, choice: Choice, output: Output, start: JointHyperparameters | None) -> JointGradientGP:
        """The model with these hyperparameters, or with the prior's."""
        own_units = Standardization(0.0, 1.0, np.zeros(self.data.dim), np.ones(self.data.dim))
        seen = self.seen(choice)
        rows = rows_of(output.apply(seen), with_gradient=bool(seen.has_grad.any()))
        noise: Noise = "learn" if choice.noisy else self.level
        model = JointGradientGP(
            rows.X,
            rows.Y,
            rows.G,
            Yvar=rows.Yvar,
            Gvar=rows.Gvar,
            kernel=choice.kernel,
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

    def _allowed(self, choice: Choice) -> Choice:
        """The choice with what was given by options or told."""
        kernel = self.options["kernel"]
        return choice._replace(
            kernel=choice.kernel if kernel == "choose" else kernel,
            noisy=self.options["noise"] == "learn" or (choice.noisy and not self.noise_is_known),
            slopes=choice.slopes or not self.settings.doubts_slopes,
        )

    def _challenges(self, choice: Choice) -> list[dict[str, Any]]:
        """What can be changed, one property each."""
        changes: list[dict[str, Any]] = []
        if self.options["kernel"] == "choose":
            changes += [{"kernel": kernel} for kernel in KERNELS if kernel != choice.kernel]
        if self.options["noise"] is None and not self.noise_is_known:
            changes.append({"noisy": not choice.noisy})
        if self.options["logs"] and not Coordinates(self.decades, logs=True).are_own:
            changes.append({"logs": not choice.logs})
        if self.settings.doubts_slopes and self.data.has_grad.any():
            changes.append({"slopes": not choice.slopes})
        return changes

    def _fit(self, choice: Choice, known: dict[Choice, JointHyperparameters]) -> _Fit:
        """The most likely output under the start, and then the best hyperparameters for it, which are then known."""
        coordinates = self.coordinates(choice)
        start = known.get(choice) or known.get(choice._replace(noisy=not choice.noisy))
        seen = self.seen(choice)
        shapes = outputs(seen, compressed=self.options["compress"])
        output = shapes[0]
        if len(shapes) > 1:
            likelihoods = self.model(choice, output, start).profile_log_likelihoods([s.apply(seen) for s in shapes])
            output = shapes[int(np.argmax(likelihoods + [shape.log_jacobian(seen) for shape in shapes]))]
        model = self.model(choice, output, start)
        model.fit_hyperparameters(evaluations=self.settings.evaluations)
        known[choice] = model.hyperparameters
        told = self.data if choice.slopes else _without_slopes(self.data)
        density = output.log_jacobian(seen) + coordinates.log_jacobian(told) + log_evidence(model)
        if not choice.slopes:
            density += _log_density_of_any(self.data.grad[self.data.has_grad])
        numbers = int(self.data.has_y.sum() + self.data.has_grad.sum())
        return _Fit(density - self.settings.doubt * numbers * (choice.noisy + choice.logs), output)


def _is_steady(data: Observations, model: JointGradientGP, output: Output, settings: ModelSettings) -> bool:
    r"""Whether values next to each other agree, so that what the model takes for noise is a structure it does not see.

    Between neighbours whose gradients are known, :math:`y_i - y_j - (g_i + g_j)^\top (x_i - x_j) / 2` is of third order
    in their distance, and with noise as large as that of two values. Three pairs are the fewest that say something.
    """
    whole = data[np.flatnonzero(data.has_y & data.has_grad.all(axis=1))]
    if len(whole) <= settings.fewest:
        return False
    found = KDTree(whole.x).query(whole.x, k=[2], p=np.inf)
    distance, nearest = np.ravel(found[0]), np.ravel(found[1])
    one = np.flatnonzero(distance < settings.resolution)
    if len(one) < settings.fewest:
        return False
    other = nearest[one]
    slope = np.vecdot(whole.grad[one] + whole.grad[other], whole.x[one] - whole.x[other]) / 2
    scatter = float(np.median(np.abs(whole.y[one] - whole.y[other] - slope)))
    claimed = np.sqrt(model.hyperparameters.noise[0]) / float(output.slope(np.array(whole.y.max())))
    return bool(scatter < settings.doubt * claimed)


def log_evidence(model: JointGradientGP) -> float:
    r"""Log density of what the model has observed under all hyperparameters, about their best, in nats.

    Laplace's approximation in their logarithms theta, p of them, with J the negative log posterior density of the
    hyperparameters themselves and H its curvature by theta:

    .. math:: -J + \sum_i \theta_i + \tfrac p2 \log 2\pi - \tfrac12 \log|H|.

    It charges each hyperparameter what it costs to have chosen it, so that kernels of many terms, and noise, pay.
    """
    theta, (value, _, curvature) = model.hyperparameters.theta, model.negative_log_posterior()
    spread = len(theta) * np.log(2.0 * np.pi) - np.linalg.slogdet(curvature)[1]
    return float(theta.sum() - value + spread / 2)


def _log_density_of_any(numbers: Array) -> float:
    """Log density of numbers under the normal distribution around zero that suits them best."""
    size = max(float(np.abs(numbers).max()), np.finfo(np.float64).tiny)
    variance = max(float(np.mean((numbers / size) ** 2)), np.finfo(np.float64).tiny)
    return float(-len(numbers) * (np.log(2.0 * np.pi * variance) + 2.0 * np.log(size) + 1.0) / 2)


def apart(data: Observations, decades: Sequence[float], resolution: float) -> Observations:
    """The best points first, those that are farther than this, in some coordinate, from all that were taken before.

    Or in its logarithm where it has one: a hundredth of a box of four decades is half of its logarithm.
    """
    order = np.argsort(np.where(data.has_y, -data.y, np.inf), kind="stable")
    points = np.hstack([data.x, Coordinates(decades, logs=True).points(data.x)])[order]
    kept = np.ones(len(data), dtype=np.bool_)
    for rank, other in sorted(KDTree(points).query_pairs(resolution, p=np.inf)):
        if kept[rank]:
            kept[other] = False
    return data[np.sort(order[kept])]


def _without_slopes(data: Observations) -> Observations:
    return Observations(data.x, data.y, None, data.y_var)


def _seen(data: Observations, options: Mapping[str, Any], settings: ModelSettings) -> Observations:
    """The part of the data that the model can afford, or may see: half of the rows for values, what is left for slopes.

    A few hundred points have all their values seen; of more, those with a gradient and others evenly through time.
    """
    half = settings.rows // 2
    seen = sample(within_row_budget(data, max(settings.rows, len(data) + half)), half)
    return seen if options["gradients"] else _without_slopes(seen)


def sample(data: Observations, count: int) -> Observations:
    """The best point, all with a gradient, and evenly through time as many of the others as make `count` points.

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
    kept[np.where(data.has_y, data.y, -np.inf).argmax()] = True
    return data[np.flatnonzero(kept)]
