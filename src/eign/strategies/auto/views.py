"""An acquisition in the model's own coordinates, asked about points of the unit cube."""

from typing import final

from eign.arrays import Array
from eign.models.transforms.coordinates import Coordinates
from eign.strategies.strategy import Acquisition


@final
class SeenAcquisition:
    """An acquisition in these coordinates, asked about points of the unit cube."""

    def __init__(self, acquisition: Acquisition, coordinates: Coordinates) -> None:
        """Keep them."""
        self._acquisition, self._coordinates = acquisition, coordinates

    def evaluate(self, X: Array) -> Array:
        """Values, `n x d -> n`."""
        return self._acquisition.evaluate(self._coordinates.points(X))
