"""First-order optimality inside the unit cube in NumPy; `optimality` has the form in torch, for any box."""

import numpy as np

from eign.arrays import Array


def projected_gradient(x: Array, grad: Array) -> Array:
    r"""The gradient without the components that point out of the unit cube, for maximisation, `... x d`.

    .. math:: (P\nabla f)_i = 0 \text{ if } x_i = 1 \text{ and } \partial_i f > 0,
              \text{ or if } x_i = 0 \text{ and } \partial_i f < 0; \quad \partial_i f \text{ otherwise}

    >>> projected_gradient(np.array([0.0, 1.0, 0.5]), np.array([-2.0, 3.0, 4.0])).tolist()
    [0.0, 0.0, 4.0]
    """
    is_outward = ((x >= 1.0) & (grad > 0)) | ((x <= 0.0) & (grad < 0))
    return np.where(is_outward, 0.0, grad)
