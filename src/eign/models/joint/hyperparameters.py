"""What a fit of the joint model decides: kernel and noise, as numbers, with their priors, bounds and starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from eign.arrays import Array
from eign.models.derivative_kernels import Term, with_hyperparameters
from eign.models.independent.map_objective import LENGTHSCALE_PRIOR, NOISE_PRIOR, OUTPUTSCALE_PRIOR

LENGTHSCALE_BOUNDS: Final = (1e-2, 2e1)
OUTPUTSCALE_BOUNDS: Final = (1e-4, 1e3)
NOISE_BOUNDS: Final = (1e-8, 1e1)
# Multiples of the prior medians at which a first fit looks before it descends.
_START_FACTORS: Final = (1.0, 0.35, 2.5)


@final
@dataclass(frozen=True)
class JointHyperparameters:
    """Kernel and noise in standardised units.

    Attributes:
        terms: The kernel with its lengthscales and outputscales.
        noise: Variance of the noise on values and on partial derivatives, beside what is known of each observation.
        learned: Whether `noise` is fitted too.
    """

    terms: tuple[Term, ...]
    noise: tuple[float, float] = (0.0, 0.0)
    learned: bool = False

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.terms[0].lengthscale)

    @property
    def outputscale_entries(self) -> slice:
        """Where the outputscales are in theta."""
        step = self.dimension + 1
        return slice(self.dimension, len(self.terms) * step, step)

    @property
    def theta(self) -> Array:
        """Logarithms: lengthscales and outputscale of each term; then, if learned, noise of values and derivatives."""
        parts = [np.append(term.lengthscale, term.outputscale) for term in self.terms]
        return np.asarray(np.log(np.concatenate([*parts, self.noise if self.learned else ()])))

    def at(self, theta: Array) -> JointHyperparameters:
        """The same kernel and kind of noise at other values."""
        count, values = len(self.terms), np.exp(theta)
        parts = values[: count * (self.dimension + 1)].reshape(count, self.dimension + 1)
        terms = with_hyperparameters(self.terms, parts[:, :-1], parts[:, -1])
        noise = (float(values[-2]), float(values[-1])) if self.learned else self.noise
        return JointHyperparameters(terms, noise, self.learned)

    def rescaled(self, old: float, new: float) -> JointHyperparameters:
        """The same prior in the units given, when values are divided by `new` instead of `old`."""
        factor = (old / new) ** 2
        terms = tuple(replace(term, outputscale=term.outputscale * factor) for term in self.terms)
        noise = (self.noise[0] * factor, self.noise[1] * factor) if self.learned else self.noise
        return JointHyperparameters(terms, noise, self.learned)

    def row_noise(self, row_component: NDArray[np.intp]) -> Array:
        """The noise of each row, by its component."""
        return np.where(row_component == 0, *self.noise)

    def to_arrays(self) -> dict[str, Array]:
        """What a fit finds, by name: lengthscales `terms x d`, outputscales `terms` and, if learned, both noises."""
        arrays = {
            "lengthscale": np.stack([term.lengthscale for term in self.terms]),
            "outputscale": np.array([term.outputscale for term in self.terms]),
        }
        return arrays | ({"noise": np.array(self.noise)} if self.learned else {})

    def with_arrays(self, arrays: Mapping[str, Array]) -> JointHyperparameters:
        """The same kernel and kind of noise at what `to_arrays` gave.

        Raises:
            ValueError: One is not positive.
        """
        lengthscales, outputscales = arrays["lengthscale"], arrays["outputscale"]
        noise = arrays["noise"] if self.learned else np.array(self.noise)
        if not (lengthscales > 0).all() or not (outputscales > 0).all() or (self.learned and not (noise > 0).all()):
            raise ValueError("lengthscales, outputscales and learned noise variances must be positive")
        terms = with_hyperparameters(self.terms, lengthscales, outputscales)
        return JointHyperparameters(terms, (float(noise[0]), float(noise[1])), self.learned)

    def to_json(self) -> dict[str, Any]:
        """Plain lists, from which `from_json` builds an equal object."""
        terms = [asdict(term) | {"lengthscale": term.lengthscale.tolist()} for term in self.terms]
        return {"terms": terms, "noise": list(self.noise), "learned": self.learned}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> JointHyperparameters:
        """The hyperparameters that `to_json` described."""
        terms = tuple(Term(**term | {"lengthscale": np.array(term["lengthscale"])}) for term in stored["terms"])
        values, slopes = stored["noise"]
        return cls(terms, (values, slopes), stored["learned"])


def negative_log_prior(theta: Array, hyper: JointHyperparameters) -> tuple[float, Array, Array]:
    r"""-log p(l, s, noise) of all terms, with its first and second derivatives by theta, element by element.

    .. math::
        -\log p(l_k) = \log l_k + \tfrac12 z_k^2 + \log(\sigma\sqrt{2\pi}), \quad z_k = (\log l_k - \mu)/\sigma, \qquad
        -\log p(s) = \beta s - (a-1)\log s - a\log\beta + \log\Gamma(a)

    with mu the log of the term's median. These are densities of l, s and the noise, not of their logarithms.
    """
    kernel = len(hyper.terms) * (hyper.dimension + 1)
    is_scale = np.zeros(len(theta), bool)
    is_scale[hyper.outputscale_entries] = True
    medians = np.repeat(np.log([term.median for term in hyper.terms]), hyper.dimension + 1)
    location = np.append(medians, np.full(2 * hyper.learned, NOISE_PRIOR[0]))
    width = np.append(np.full(kernel, LENGTHSCALE_PRIOR[1]), np.full(2 * hyper.learned, NOISE_PRIOR[1]))
    z = (theta - location) / width
    log_normal = theta + 0.5 * z * z + np.log(width * np.sqrt(2.0 * np.pi))
    concentration, rate = OUTPUTSCALE_PRIOR
    pull = rate * np.exp(theta)
    # log Gamma(2) = 0
    gamma = pull - (concentration - 1.0) * theta - concentration * np.log(rate)
    value = float(np.where(is_scale, gamma, log_normal).sum())
    slopes = np.where(is_scale, pull - (concentration - 1.0), 1.0 + z / width)
    return value, slopes, np.where(is_scale, pull, width**-2.0)


def bounds(hyper: JointHyperparameters) -> tuple[Array, Array]:
    """Lower and upper bounds of theta: wide enough that the priors, not they, decide."""
    term = [LENGTHSCALE_BOUNDS] * hyper.dimension + [OUTPUTSCALE_BOUNDS]
    pairs = np.log(term * len(hyper.terms) + [NOISE_BOUNDS] * (2 * hyper.learned))
    return pairs[:, 0], pairs[:, 1]


def starts(hyper: JointHyperparameters) -> list[Array]:
    """Where a first fit looks: lengthscales of each term at multiples of their medians, in all combinations."""
    noise = np.full(2 * hyper.learned, NOISE_PRIOR[0])
    level = np.log(1.0 / len(hyper.terms))

    def theta(factors: tuple[float, ...]) -> Array:
        lengths = [np.full(hyper.dimension, np.log(f * t.median)) for f, t in zip(factors, hyper.terms, strict=True)]
        return np.concatenate([*(np.append(length, level) for length in lengths), noise])

    return [theta(factors) for factors in product(_START_FACTORS, repeat=len(hyper.terms))]
