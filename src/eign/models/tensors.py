"""The tensors that users of BoTorch pass, as checked observations."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eign.data import Observations


def as_array(X: Tensor) -> NDArray[np.float64]:
    """The numbers of a tensor in float64, without its graph."""
    return np.asarray(X.detach().to(torch.float64).numpy())


def as_observations(
    X: Tensor, Y: Tensor, G: Tensor | None, *, Yvar: Tensor | None = None, Gvar: Tensor | None = None
) -> Observations:
    """X `n x d`, Y `n x 1`, G `n x d` and their variances as observations.

    Raises:
        ValueError: a shape is wrong.
    """
    if X.ndim != 2 or Y.shape != (X.shape[0], 1):
        raise ValueError(
            f"X has shape {tuple(X.shape)} and Y {tuple(Y.shape)}, expected (n, d) and (n, 1); one point is X[None]"
        )
    grad, grad_var = (None if part is None else as_array(part) for part in (G, Gvar))
    y_var = None if Yvar is None else as_array(Yvar)[:, 0]
    return Observations(as_array(X), as_array(Y)[:, 0], grad, y_var, grad_var)
