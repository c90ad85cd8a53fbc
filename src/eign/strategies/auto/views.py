"""A model and an acquisition in `auto`'s own coordinates, asked about points of the unit cube."""

from typing import final

import torch

from eign.arrays import Array
from eign.models.transforms.coordinates import Coordinates
from eign.strategies.strategy import Acquisition, Surrogate


@final
class SeenModel:
    """A model in these coordinates, asked about points of the unit cube."""

    def __init__(self, model: Surrogate, coordinates: Coordinates) -> None:
        """Keep them."""
        self._model, self._coordinates = model, coordinates

    def moments(self, X: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Mean and variance of f, `n x d -> n, n`."""
        return self._model.moments(torch.from_numpy(self._coordinates.points(X.numpy())))


@final
class SeenAcquisition:
    """An acquisition in these coordinates, asked about points of the unit cube."""

    def __init__(self, acquisition: Acquisition, coordinates: Coordinates) -> None:
        """Keep them."""
        self._acquisition, self._coordinates = acquisition, coordinates

    def evaluate(self, X: Array) -> Array:
        """Values, `n x d -> n`."""
        return self._acquisition.evaluate(self._coordinates.points(X))
