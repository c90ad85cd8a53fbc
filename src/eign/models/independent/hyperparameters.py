"""What a fit finds, for all processes of a model, in standardised units."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """Of B independent processes on d inputs; here the first is f and the others its partial derivatives, B = d + 1.

    Attributes:
        lengthscale: In the unit cube, `B x d`.
        outputscale: Prior variance in standardised units, `B`.
        mean: Constant prior mean in standardised units, `B`.
        noise: Learned noise variance in standardised units, added to what is known; 0 if none was learned, `B`.
        jitter: What the fit had on the diagonals beside noise, in standardised units; a model adds no less than its
            own first jitter, `B`.

    >>> Hyperparameters.default(2).lengthscale
    array([[0.4, 0.4],
           [0.4, 0.4],
           [0.4, 0.4]])
    """

    lengthscale: Array
    outputscale: Array
    mean: Array
    noise: Array
    jitter: Array = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        lengthscale = np.array(self.lengthscale, dtype=np.float64, ndmin=2)
        object.__setattr__(self, "lengthscale", lengthscale)
        for name in ("outputscale", "mean", "noise", "jitter"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim > 1 or values.size not in (1, len(lengthscale)):
                raise ValueError(f"{name} has shape {values.shape}, expected one number or {len(lengthscale)}")
            object.__setattr__(self, name, np.broadcast_to(values.reshape(-1), len(lengthscale)).copy())
        if not ((self.lengthscale > 0).all() and (self.outputscale > 0).all() and (self.noise >= 0).all()):
            raise ValueError("lengthscales and outputscales must be positive and noise variances not negative")

    @classmethod
    def default(cls, dim: int) -> "Hyperparameters":
        """The medians of the lengthscale priors, unit outputscales, zero means."""
        return cls.shared(dim, lengthscale=0.4)

    @classmethod
    def shared(
        cls, dim: int, *, lengthscale: ArrayLike, outputscale: float = 1.0, mean: float = 0.0
    ) -> "Hyperparameters":
        """The same for all d + 1 processes; `lengthscale` is one number or d of them."""
        lengths = np.broadcast_to(np.asarray(lengthscale, dtype=np.float64), (dim + 1, dim))
        return cls(lengths, np.full(dim + 1, outputscale), np.full(dim + 1, mean), np.zeros(dim + 1))

    @classmethod
    def from_theta(cls, theta: Array, mean: Array, jitter: ArrayLike = 0.0) -> "Hyperparameters":
        """From the logarithms that are fitted, `B x (d + 1)`, or `B x (d + 2)` with a noise variance."""
        dim = len(theta) - 1
        noise = np.exp(theta[:, dim + 1]) if theta.shape[1] > dim + 1 else np.zeros(len(theta))
        return cls(np.exp(theta[:, :dim]), np.exp(theta[:, dim]), mean, noise, np.asarray(jitter, dtype=np.float64))

    def theta(self, *, learn_noise: bool) -> Array:
        """The inverse of `from_theta`; a noise that was never learned starts at 1e-4."""
        columns = [np.log(self.lengthscale), np.log(self.outputscale)[:, None]]
        if learn_noise:
            columns.append(np.log(np.where(self.noise > 0, self.noise, 1e-4))[:, None])
        return np.concatenate(columns, axis=1)

    def to_json(self) -> dict[str, Any]:
        """Plain lists, from which `from_json` builds an equal object."""
        return {name: getattr(self, name).tolist() for name in self.__slots__}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Hyperparameters":
        """The hyperparameters that `to_json` described; of an earlier version they have no jitter."""
        return cls(**{name: np.asarray(stored[name], dtype=np.float64) for name in cls.__slots__ if name in stored})
