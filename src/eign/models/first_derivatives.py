"""Functions with a derivative in closed form, and no second one: asking for it is an error, not a wrong number."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor


def first_derivatives_only(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For `backward` of an autograd function: it is called without a graph, or not at all.

    Torch's `once_differentiable` raises only where the incoming derivative has a graph. That of a posterior mean has
    none, as the mean is linear, and the second derivative would be 0 without a word.
    """

    @wraps(backward)
    def wrapper(ctx: Any, *cotangents: Tensor) -> Any:
        if torch.is_grad_enabled():  # only with `create_graph`
            raise RuntimeError(
                "the models have first derivatives only: differentiate without create_graph, and for a Hessian take "
                "central differences of torch.autograd.grad"
            )
        return backward(ctx, *cotangents)

    return wrapper
