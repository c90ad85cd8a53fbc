"""What a method believes and looks for next, in user units and with the user's sign: what pictures are made of."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array
from eign.space import Box
from eign.strategies.strategy import Belief, Surrogate


class Prediction(NamedTuple):
    """The surrogate's mean and standard deviation of f at n points, `n` each."""

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

    def predict(self, x: ArrayLike) -> Prediction:
        """The surrogate of what was told at the points (n, d), user units."""
        (mean, deviation), told = self._moments(self.belief.model, x), self.belief.in_told_units
        return Prediction(self.sign * told(mean), told(deviation))

    def predict_constraints(self, x: ArrayLike) -> list[Prediction]:
        """The surrogates of the constraints at the points (n, d), one after the other; empty if there are none."""
        return [self._moments(model, x) for model in self.belief.constraints]

    def acquisition(self, x: ArrayLike) -> Array | None:
        """What the next point is to maximise, at the points (n, d); None if the method looks for something else.

        Pending and failed points count, and the terms of `ei-gn` are rescaled as for the next proposal.
        """
        if self.belief.acquisition is None:
            return None
        return self.belief.acquisition.evaluate(self.box.to_unit(x))

    def _moments(self, model: Surrogate, x: ArrayLike) -> Prediction:
        import torch

        points = torch.from_numpy(self.box.to_unit(x))
        with torch.no_grad():
            mean, variance = model.moments(points)[:2]
        return Prediction(mean.numpy(), np.sqrt(variance.numpy()))
