"""What all acquisitions have in common: BoTorch's face for researchers, and a path without a graph for our search."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from eign.acquisition.standardized_moments import shift_and_scale
from eign.arrays import Array
from eign.models import IndependentGradientGP
from eign.models.independent.processes import Processes
from eign.models.independent.pullback import ProcessStack
from eign.models.surrogates import Surrogate, with_predictions
from eign.models.tensors import as_double, as_rows


class ValueAndGradient(NamedTuple):
    """An acquisition at m points, `m`, and its derivative by the point, `m x d`."""

    value: Array
    gradient: Array


def checked_best(best_f: float | Tensor) -> float:
    """The incumbent's value.

    Raises:
        ValueError: it is not one finite number.
    """
    given: object = best_f
    try:
        value = math.nan if isinstance(given, str) else float(best_f)
    except (RuntimeError, TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"best_f={best_f!r}, expected one finite number: the incumbent's value, in the units of y")
    return value


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
        # Not as a module of this one: it is the same as `model`, until points are pending.
        vars(self)["_without_pending"] = model
        self.X_pending = None  # type: ignore[assignment]  # BoTorch says Tensor, and reads None

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802  # the name is BoTorch's
        """Take points that are being evaluated, `n x d`, as `optimize_acqf(..., q=n, sequential=True)` does; or none.

        The model is then given its own predictions there, and the incumbent is the best with them, so that the next
        point is looked for elsewhere.

        Raises:
            UnsupportedError: The model is not one of eign's.
        """
        told: Model = vars(self)["_without_pending"]
        if X_pending is None:
            self.model = told
            self.X_pending = None  # type: ignore[assignment]
            self._expect(None)
            return
        if not isinstance(told, Surrogate):
            raise UnsupportedError(
                f"{type(self).__name__} takes X_pending on the models of eign, and this is a {type(told).__name__}; "
                "use a Monte Carlo acquisition of BoTorch, such as qLogExpectedImprovement"
            )
        points = as_rows(X_pending, told.dim, "X_pending")
        self.model = with_predictions(told, points, seen=np.asarray(told.observations.has_grad.any(axis=0)))
        self.X_pending = X_pending.detach().clone()
        self._expect(torch.from_numpy(points))

    def _expect(self, pending: Tensor | None) -> None:
        """Let the incumbent be the best with what the model predicts at pending points, `n x d`; here there is none."""

    def _predicted(self, pending: Tensor) -> Array:
        """The values that the model without pending points predicts at them, standardised, `n`."""
        told: Surrogate = vars(self)["_without_pending"]
        with torch.no_grad():
            return np.asarray((told.moments(pending)[0].numpy() - self.y_shift) / self.y_scale)

    def forward(self, X: Tensor) -> Tensor:
        """`batch x 1 x d -> batch`, differentiable."""
        value: Tensor = self._of_batches(as_double(X))
        return value

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]  # it is annotated for the abstract class alone
    def _of_batches(self, X: Tensor) -> Tensor:
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
