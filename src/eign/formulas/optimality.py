r"""First-order optimality inside a box, for maximisation.

At the border a component of the gradient that points out of the box does not count: the point cannot move there.
A boundary maximum is therefore stationary, which the plain gradient norm of the paper misses.
"""

from torch import Tensor


def projected_gradient(
    x: Tensor, grad: Tensor, *, lower: Tensor | float = 0.0, upper: Tensor | float = 1.0, border: float = 0.0
) -> Tensor:
    r"""The gradient without the components that point out of the box.

    .. math:: (P\nabla f)_i = 0 \text{ if } x_i = u_i \text{ and } \partial_i f > 0,
              \text{ or if } x_i = l_i \text{ and } \partial_i f < 0; \quad \partial_i f \text{ otherwise}

    `border` widens the border by a distance in the units of x. Shapes: `... x d -> ... x d`, bounds broadcast.

    >>> import torch
    >>> projected_gradient(torch.tensor([0.0, 1.0, 0.5]), torch.tensor([-2.0, 3.0, 4.0]))
    tensor([0., 0., 4.])
    """
    outward = ((x >= upper - border) & (grad > 0)) | ((x <= lower + border) & (grad < 0))
    return grad.masked_fill(outward, 0.0)


def stationarity(
    x: Tensor, grad: Tensor, *, lower: Tensor | float = 0.0, upper: Tensor | float = 1.0, border: float = 0.0
) -> Tensor:
    r"""Squared norm of the projected gradient; zero exactly at the first-order (KKT) points of the box.

    .. math:: \|P\nabla f(x)\|_2^2

    Takes the place of :math:`\|\nabla f\|^2` in the paper's g where boundary optima matter. Shapes: `... x d -> ...`.
    """
    return projected_gradient(x, grad, lower=lower, upper=upper, border=border).square().sum(-1)
