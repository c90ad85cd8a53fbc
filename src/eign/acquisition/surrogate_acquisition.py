"""What all acquisitions have in common: BoTorch's face for researchers, and a path without a graph for our search."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from eign.acquisition.standardized_moments import shift_and_scale
from eign.arrays import Array
from eign.models import IndependentGradientGP
from eign.models.independent.processes import Processes
from eign.models.independent.pullback import ProcessStack


class ValueAndGradient(NamedTuple):
    """An acquisition at m points, `m`, and its derivative by the point, `m x d`."""

    value: Array
    gradient: Array


class SurrogateAcquisition(AnalyticAcquisitionFunction, ABC):
    """An acquisition on a surrogate, to be maximised, in the units of y.

    `forward` is BoTorch's: `batch x 1 x d -> batch`, differentiable. `evaluate` and `value_and_gradient` give the same
    numbers at `m x d` points as arrays; the gradient is in closed form where there is one.
    """

    def __init__(self, model: Model) -> None:
        """On a fitted model with the one output f."""
        super().__init__(model=model)
        self.y_shift, self.y_scale = shift_and_scale(model)
        self._stack: tuple[Processes, ProcessStack] | None = None

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]  # it is annotated for the abstract class alone
    def forward(self, X: Tensor) -> Tensor:
        """`batch x 1 x d -> batch`, differentiable."""
        return self._at(X.squeeze(-2))

    @abstractmethod
    def _at(self, X: Tensor) -> Tensor:
        """`... x d -> ...`, differentiable."""

    @abstractmethod
    def evaluate(self, X: Array) -> Array:
        """Values, `m x d -> m`."""

    def value_and_gradient(self, X: Array) -> ValueAndGradient:
        """Values and derivatives by the point, `m x d -> m, m x d`; here by autograd."""
        points = torch.from_numpy(np.ascontiguousarray(X)).requires_grad_()
        value = self._at(points)
        (gradient,) = torch.autograd.grad(value.sum(), points)
        return ValueAndGradient(value.detach().numpy(), gradient.numpy())

    @abstractmethod
    def _new_stack(self, processes: Processes) -> ProcessStack:
        """Those processes of an independent model that matter, ready for evaluation, in the units of the formula."""

    def _processes(self) -> ProcessStack | None:
        """The stack of an independent model; else None."""
        model = self.model
        if not isinstance(model, IndependentGradientGP):
            return None
        conditioned = model.conditioned()
        # A fit changes the model in place, and then the processes are another object.
        if self._stack is None or self._stack[0] is not conditioned:
            self._stack = (conditioned, self._new_stack(conditioned))
        return self._stack[1]
