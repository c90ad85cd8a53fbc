"""What a method believes and looks for next, in user units and with the user's sign: what pictures are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array
from eign.space import Box
from eign.strategies.strategy import Belief, Surrogate

Points = ArrayLike | Mapping[str, float]
"""Points (n, d) or one point (d,), user units; one may be a dict name -> value if the box has names."""


class Prediction(NamedTuple):
    """The surrogate's mean and standard deviation of f at n points, `n` each; numbers at one."""

    mean: Array
    deviation: Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """A surrogate of f, and where its method wants to evaluate next; made by `Optimizer.outlook`.

    Attributes:
        belief: In the unit cube, where everything is maximised.
        box: The region that is searched.
        sign: 1 if f is maximised, -1 if it is minimised.
    """

    belief: Belief
    box: Box
    sign: float

    @property
    def x(self) -> Array:
        """The point that the method finds most useful `d`, user units."""
        return self.box.from_unit(self.belief.x)

    def predict(self, x: Points) -> Prediction:
        """The surrogate of what was told, at points (n, d) or at one, user units."""
        units, told = self._units(x), self.belief.in_told_units
        mean, deviation = _moments(self.belief.model, units)
        return _shaped_as(units, self.sign * told(mean), told(deviation))

    def predict_constraints(self, x: Points) -> list[Prediction]:
        """The surrogates of the constraints at points (n, d) or at one, in turn; empty if there are none."""
        units = self._units(x)
        return [_shaped_as(units, *_moments(model, units)) for model in self.belief.constraints]

    def acquisition(self, x: Points) -> Array | None:
        """What the next point is to maximise, at points (n, d) or at one; None if the method looks for something else.

        Pending and failed points count, and the terms of `ei-gn` are rescaled as for the next proposal.
        """
        if self.belief.acquisition is None:
            return None
        units = self._units(x)
        return _at_points(units, self.belief.acquisition.evaluate(np.atleast_2d(units)))

    def _units(self, x: Points) -> Array:
        """The points in the unit cube."""
        return self.box.to_unit(self.box.from_dict(x) if isinstance(x, Mapping) else x)


def _moments(model: Surrogate, units: Array) -> tuple[Array, Array]:
    """Mean and standard deviation at points of the unit cube, `n` each; of one point `n` is 1."""
    import torch

    with torch.no_grad():
        mean, variance = model.moments(torch.from_numpy(np.atleast_2d(units)))[:2]
    return mean.numpy(), np.sqrt(variance.numpy())


def _shaped_as(points: Array, mean: Array, deviation: Array) -> Prediction:
    return Prediction(_at_points(points, mean), _at_points(points, deviation))


def _at_points(points: Array, values: Array) -> Array:
    """One value a point: `n` for many, and for a single point (d,) the number."""
    shaped: Array = values.reshape(points.shape[:-1])[()]
    return shaped
