"""What a problem is: a function to maximise, with gradient, bounds and what is known of its maximum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array, as_floats, read_only
from eign.space import Box

Formula = Callable[[Array], tuple[Array, Array]]
"""Points `n x d` to values `n` and gradients `n x d`; defined beyond the bounds too, and unchecked."""


class Measurement(NamedTuple):
    """Values and gradients, with the variances of the noise on them; for n points, or without the n for one.

    Attributes:
        y: Values `n`.
        grad: Gradients `n x d`.
        y_var: Variances of the values `n`.
        grad_var: Variances of the gradient components `n x d`.
    """

    y: Any
    grad: Array
    y_var: Any
    grad_var: Array


NoisyFormula = Callable[[Array], Measurement]
"""Points `n x d` to a `Measurement` of each, for noise that differs from point to point."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Problem:
    """A function to maximise over a box, with its gradient.

    >>> from eign.problems import get
    >>> problem = get("cosine", d=2)
    >>> problem
    Problem('cosine-2', dim=2, optimum=0.2)
    >>> value, gradient = problem([0.2, 0.6])
    >>> round(value, 9), gradient.round(9).tolist()
    (-0.6, [-0.4, -1.2])

    Attributes:
        name: what reports call it; `eign.problems.get` finds the registered ones by it.
        bounds: the region that is searched.
        formula: the function itself, `n x d -> n, n x d`, for every point of the space.
        optimum: the maximum over the bounds, or None where it is not known.
        optimizers: the known maximisers (k, d), or None.
        optimum_region: the corners (2, d), possibly infinite, of a box over which no value exceeds `optimum`. The
            wrappers that move the function ask it whether the maximum is still known. The bounds, unless given.
        y_var: the variance of the noise on values; 0 = no noise.
        grad_var: the variance of the noise on each gradient component (d,).
        noisy_formula: `formula` with variances, where they differ from point to point; `y_var` and `grad_var` are NaN
            then, and `observe` has them for each point.
        summary: one line for lists.
    """

    name: str
    bounds: Box
    formula: Formula
    optimum: float | None
    optimizers: Array | None
    optimum_region: Array
    y_var: float
    grad_var: Array
    noisy_formula: NoisyFormula | None
    summary: str

    def __init__(
        self,
        name: str,
        bounds: Box,
        *,
        formula: Formula,
        optimum: float | None = None,
        optimizers: ArrayLike | None = None,
        optimum_region: ArrayLike | None = None,
        y_var: float = 0.0,
        grad_var: ArrayLike = 0.0,
        noisy_formula: NoisyFormula | None = None,
        summary: str = "",
    ) -> None:
        """Check the statement and keep copies; `grad_var` may be one number for all components."""
        if optimum is None and optimizers is not None:
            raise ValueError(f"{name}: optimizers without an optimum; give both, or no optimizers")
        region = [bounds.lower, bounds.upper] if optimum_region is None else optimum_region
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "formula", formula)
        object.__setattr__(self, "noisy_formula", noisy_formula)
        object.__setattr__(self, "summary", summary)
        object.__setattr__(self, "optimum", None if optimum is None else float(optimum) + 0.0)
        object.__setattr__(self, "optimizers", None if optimizers is None else self._points(optimizers, "optimizers"))
        object.__setattr__(self, "optimum_region", self._points(region, "optimum_region"))
        object.__setattr__(self, "y_var", float(y_var))
        object.__setattr__(self, "grad_var", self._points(np.broadcast_to(grad_var, (1, self.dim)), "grad_var")[0])
        if self.optimizers is not None:
            bounds.to_unit(self.optimizers)

    @property
    def dim(self) -> int:
        """Number of coordinates of a point."""
        return self.bounds.dim

    @property
    def noisy(self) -> bool:
        """Whether values or gradients carry noise."""
        return self.noisy_formula is not None or self.y_var > 0 or bool((self.grad_var > 0).any())

    def __call__(self, x: ArrayLike) -> tuple[float, Array]:
        """Value and gradient at one point (d,) in user units.

        Raises:
            ValueError: x has another shape, or is outside the bounds by more than rounding.
        """
        values, gradients = self.formula(self._checked_point(x))
        return float(values[0]), gradients[0]

    def observe(self, x: ArrayLike) -> Measurement:
        """Value and gradient at one point (d,), with the variances of the noise on them, as `Optimizer.tell` takes it.

        >>> from eign.problems import get, noisy
        >>> noisy(get("cosine", d=2), value_std=0.5, seed=1).observe([0.2, 0.6]).y_var
        0.25

        Raises:
            ValueError: x has another shape, or is outside the bounds by more than rounding.
        """
        points = self._checked_point(x)
        if self.noisy_formula is not None:
            y, grad, y_var, grad_var = self.noisy_formula(points)
            return Measurement(float(y[0]), grad[0], float(y_var[0]), grad_var[0])
        values, gradients = self.formula(points)
        return Measurement(float(values[0]), gradients[0], self.y_var, self.grad_var)

    def evaluate(self, X: ArrayLike) -> tuple[Array, Array]:
        """Values (n,) and gradients (n, d) at the points (n, d) in user units.

        Raises:
            ValueError: X has another shape, or a point is outside the bounds by more than rounding.
        """
        return self.formula(self._inside(self._points(X, "X")))

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, dim={self.dim}, optimum={self.optimum!r})"

    def _checked_point(self, x: ArrayLike) -> Array:
        point = as_floats(x, "x")
        if point.shape != (self.dim,):
            advice = f"; many points at once: evaluate(X) with X of shape (n, {self.dim})" if point.ndim == 2 else ""
            raise ValueError(f"{self.name}: x has shape {point.shape}, expected ({self.dim},){advice}")
        return self._inside(point[np.newaxis])

    def _inside(self, points: Array) -> Array:
        self.bounds.to_unit(points)
        return points

    def _points(self, values: ArrayLike, what: str) -> Array:
        points = as_floats(values, what)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"{self.name}: {what} has shape {points.shape}, expected (n, {self.dim})")
        return read_only(points)


@final
@dataclass(frozen=True)
class Family:
    """Problems of one name, one for each allowed dimension.

    Attributes:
        name: the problem of dimension d is called name-d.
        build: the problem of a given dimension; where `seeded`, it takes a keyword `seed` too.
        dims: the allowed dimensions; a `range` where there is no end to them.
        standard: the dimensions that are listed; the first is taken where none is asked for.
        summary: one line for lists.
        seeded: whether the problem is drawn at random.
    """

    name: str
    build: Callable[..., Problem]
    dims: Sequence[int]
    standard: tuple[int, ...]
    summary: str
    seeded: bool = False

    @property
    def allowed(self) -> str:
        """The allowed dimensions in words.

        >>> Family("powell", build=..., dims=range(4, 10**6, 4), standard=(8,), summary="valley").allowed
        'd = 4, 8, 12, ...'
        """
        first = ", ".join(str(d) for d in self.dims[:3])
        return f"d = {first}, ..." if len(self.dims) > 3 else f"d = {first}"
