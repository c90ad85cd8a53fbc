r"""Problems made from problems: moved, turned, mirrored, rescaled, disturbed.

Each wrapper takes a problem and returns a new one; they compose, and pickle. Moved functions are looked at through an
affine map :math:`x \mapsto A x + b` from the new box into the space of the old one:

.. math:: f'(x) = f(A x + b), \qquad \nabla f'(x) = A^\top \nabla f(A x + b)

The new box may show parts of the function that the old one did not. The optimum of the new problem is stated only if
one of the known maximisers is still inside, and nothing in view can exceed it; otherwise it is None.

Randomness is a function of (seed, x), so that it depends on neither the order of the evaluations nor the process
that makes them. For another draw at the same point, take another seed; a sequence is a seed too: seed=(run, number).
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eign.arrays import Array, Mask, as_floats
from eign.problems.problem import Formula, Measurement, NoisyFormula, Problem
from eign.space import Box

Seed = int | Sequence[int]

# Transformed points miss the border by some roundings. This share of the box is far above them, and far below what
# any optimizer resolves.
_ROUNDING = 1e-12

# One stream of random numbers a purpose: equal seeds in two wrappers stay independent.
_SHIFT, _ROTATION, _NOISE, _DROPPED = range(4)


def shifted(problem: Problem, shift: ArrayLike | None = None, *, seed: Seed | None = None) -> Problem:
    """The function f(x - shift) over the same box; a maximiser moves by `shift`.

    Args:
        problem: the problem to move.
        shift: the vector (d,) in user units.
        seed: instead of a shift, draws one: uniform up to a quarter of the box each way, as far as the first known
            maximiser stays inside.
    """
    if (shift is None) == (seed is None):
        raise ValueError(f"shifted: give either a shift or a seed, got shift={shift!r} and seed={seed!r}")
    vector = _vector(shift, problem.dim, "shift") if seed is None else _random_shift(problem, seed)
    return _stretched(problem, f"shifted({problem.name})", factor=np.ones(problem.dim), offset=-vector)


def mirrored(problem: Problem, coordinates: Iterable[int] | None = None) -> Problem:
    """The function with low_i + high_i - x_i in place of x_i, for the given coordinates or for all."""
    flip = _mask(range(problem.dim) if coordinates is None else coordinates, problem.dim)
    offset = np.where(flip, problem.bounds.lower + problem.bounds.upper, 0.0)
    return _stretched(problem, f"mirrored({problem.name})", factor=np.where(flip, -1.0, 1.0), offset=offset)


def scaled(problem: Problem, inputs: ArrayLike = 1.0, *, output: float = 1.0, offset: float = 0.0) -> Problem:
    """The function output * f(x / inputs) + offset over the box stretched by `inputs`.

    Args:
        problem: the problem to put into other units.
        inputs: positive factors of the coordinates, one for all or (d,).
        output: positive factor of the values.
        offset: what is added to the values.
    """
    factors = _vector(inputs, problem.dim, "inputs")
    if not (factors > 0).all():
        raise ValueError(f"scaled: inputs must be positive, got {inputs!r}; to turn a coordinate round, use mirrored")
    if not (np.isfinite(output) and output > 0 and np.isfinite(offset)):
        raise ValueError(f"scaled: expected output > 0 and a finite offset, got {output!r} and {offset!r}")
    box = problem.bounds
    pairs = np.column_stack([box.lower * factors, box.upper * factors])
    stretched = _stretched(
        problem,
        f"scaled({problem.name})",
        factor=1 / factors,
        offset=np.zeros(problem.dim),
        bounds=Box(pairs, log=np.flatnonzero(box.log).tolist(), names=box.names),
    )
    return replace(
        stretched,
        formula=partial(_rescaled, stretched.formula, output, offset),
        noisy_formula=_carried(_rescaled_noise, stretched.noisy_formula, output, offset),
        optimum=None if stretched.optimum is None else output * stretched.optimum + offset,
        y_var=output**2 * stretched.y_var,
        grad_var=output**2 * stretched.grad_var,
    )


def rotated(problem: Problem, *, seed: Seed) -> Problem:
    """The function f(c + W Q (x - c) / W) over the same box with centre c and widths W, Q a random rotation.

    Lengths are measured in widths of the box, so that rotation and scaling may come in either order. The box does not
    turn with the function: its old corners go out of view and new ground comes into it. A gradient of which a component
    is missing is missing altogether after rotation; unequal noise on the components is correlated after it, and
    `grad_var` has the diagonal. Fixed coordinates stay as they are.
    """
    box = problem.bounds
    centre, half_width = 0.5 * box.lower + 0.5 * box.upper, 0.5 * box.upper - 0.5 * box.lower
    units = np.where(box.free, half_width, 1.0)
    rotation = np.eye(box.dim)
    rotation[np.ix_(box.free, box.free)] = _random_rotation(box.free_dim, seed)
    turn, back = units[:, np.newaxis] * rotation / units, units[:, np.newaxis] * rotation.T / units
    reach = np.abs(turn) @ half_width
    everywhere = np.isinf(problem.optimum_region).all()
    return _restated(
        problem,
        f"rotated({problem.name})",
        formula=partial(_turned, problem.formula, turn, centre),
        noisy_formula=_carried(_turned_noise, problem.noisy_formula, turn, centre),
        bounds=box,
        view=np.stack([centre - reach, centre + reach]),
        moved=None if problem.optimizers is None else centre + (problem.optimizers - centre) @ back.T,
        region=problem.optimum_region if everywhere else np.stack([box.lower, box.upper]),
        grad_var=problem.grad_var @ turn**2,
    )


def noisy(problem: Problem, *, value_std: float = 0.0, grad_std: ArrayLike = 0.0, seed: Seed) -> Problem:
    """The function and its gradient with independent Gaussian noise; `y_var` and `grad_var` of the result say how much.

    The optimum stays that of the function without noise: observed values may exceed it.

    Args:
        problem: the problem to disturb.
        value_std: standard deviation of the noise on values.
        grad_std: standard deviation of the noise on gradient components, one for all or (d,).
        seed: the noise at x is a function of (seed, x).
    """
    if problem.noisy:
        raise ValueError(f"{problem.name} is noisy already; add up the variances and disturb it once")
    deviations = np.append(_vector(value_std, 1, "value_std"), _vector(grad_std, problem.dim, "grad_std"))
    if not (deviations >= 0).all():
        raise ValueError(f"noisy: standard deviations must be >= 0, got {value_std!r} and {grad_std!r}")
    return replace(
        problem,
        name=f"noisy({problem.name})",
        formula=partial(_disturbed, problem.formula, deviations, _seed_words(seed)),
        y_var=deviations[0] ** 2,
        grad_var=deviations[1:] ** 2,
    )


def without_gradients(problem: Problem, coordinates: Iterable[int] | None = None) -> Problem:
    """The function with the gradient components of the given coordinates, or of all, missing (NaN) at every point."""
    missing = _mask(range(problem.dim) if coordinates is None else coordinates, problem.dim)
    return replace(
        problem,
        name=f"without_gradients({problem.name})",
        formula=partial(_hidden, problem.formula, missing),
        noisy_formula=_carried(_hidden_noise, problem.noisy_formula, missing),
    )


def dropped_gradients(problem: Problem, share: float, *, seed: Seed) -> Problem:
    """The function with each gradient component missing (NaN) with probability `share`, as a function of (seed, x)."""
    if not 0 <= share <= 1:
        raise ValueError(f"dropped_gradients: expected a share between 0 and 1, got {share!r}")
    words = _seed_words(seed)
    return replace(
        problem,
        name=f"dropped_gradients({problem.name})",
        formula=partial(_dropped, problem.formula, share, words),
        noisy_formula=_carried(_dropped_noise, problem.noisy_formula, share, words),
    )


def _stretched(problem: Problem, name: str, *, factor: Array, offset: Array, bounds: Box | None = None) -> Problem:
    """f(factor * x + offset), coordinate by coordinate, so that a missing gradient component spares the others."""
    box = problem.bounds if bounds is None else bounds
    return _restated(
        problem,
        name,
        formula=partial(_through_stretch, problem.formula, factor, offset),
        noisy_formula=_carried(_stretched_noise, problem.noisy_formula, factor, offset),
        bounds=box,
        view=np.sort(factor * np.stack([box.lower, box.upper]) + offset, axis=0),
        moved=None if problem.optimizers is None else (problem.optimizers - offset) / factor,
        region=np.sort((problem.optimum_region - offset) / factor, axis=0),
        grad_var=factor**2 * problem.grad_var,
    )


def _restated(
    problem: Problem,
    name: str,
    *,
    formula: Formula,
    noisy_formula: NoisyFormula | None,
    bounds: Box,
    view: Array,
    moved: Array | None,
    region: Array,
    grad_var: Array,
) -> Problem:
    """The moved problem with what is still known of its optimum.

    Args:
        problem: the problem before.
        name: the name after.
        formula: the function after.
        noisy_formula: the same with variances, if they differ from point to point.
        bounds: the box after.
        view: corners (2, d) of a box, in the old coordinates, that contains all the new box shows.
        moved: the maximisers (k, d) in the new coordinates.
        region: the region (2, d) in the new coordinates in which nothing exceeds the optimum.
        grad_var: the variances of the gradient noise after.
    """
    old = problem.bounds
    slack = _ROUNDING * (old.upper - old.lower)
    lower, upper = problem.optimum_region
    nothing_higher = bool(((view[0] >= lower - slack) & (view[1] <= upper + slack)).all())
    still_attained = bool((np.abs(view - [old.lower, old.upper]) <= slack).all())  # the same ground as before
    optimizers = None
    if moved is not None and nothing_higher:
        border = np.clip(moved, bounds.lower, bounds.upper)
        inside = (np.abs(moved - border) <= _ROUNDING * (bounds.upper - bounds.lower)).all(axis=1)
        optimizers = border[inside] if inside.any() else None
        still_attained |= optimizers is not None
    return replace(
        problem,
        name=name,
        formula=formula,
        noisy_formula=noisy_formula,
        bounds=bounds,
        optimum=problem.optimum if nothing_higher and still_attained else None,
        optimizers=optimizers,
        optimum_region=region,
        grad_var=grad_var,
    )


def _carried(wrapped: Callable[..., Measurement], noisy: NoisyFormula | None, *settings: Any) -> NoisyFormula | None:
    """The wrapper's form with variances, for a problem that has them."""
    return None if noisy is None else partial(wrapped, noisy, *settings)


def _through_stretch(formula: Formula, factor: Array, offset: Array, X: Array) -> tuple[Array, Array]:
    values, gradients = formula(factor * X + offset)
    return values, factor * gradients


def _stretched_noise(noisy: NoisyFormula, factor: Array, offset: Array, X: Array) -> Measurement:
    y, grad, y_var, grad_var = noisy(factor * X + offset)
    return Measurement(y, factor * grad, y_var, factor**2 * grad_var)


def _rescaled(formula: Formula, output: float, offset: float, X: Array) -> tuple[Array, Array]:
    values, gradients = formula(X)
    return output * values + offset, output * gradients


def _rescaled_noise(noisy: NoisyFormula, output: float, offset: float, X: Array) -> Measurement:
    y, grad, y_var, grad_var = noisy(X)
    return Measurement(output * y + offset, output * grad, output**2 * y_var, output**2 * grad_var)


def _turned(formula: Formula, turn: Array, centre: Array, X: Array) -> tuple[Array, Array]:
    # No matrix product: BLAS rounds a row differently among other rows, and noise beneath would be drawn anew for it.
    values, gradients = formula(centre + np.einsum("ij,nj->ni", turn, X - centre))
    return values, np.einsum("ij,ni->nj", turn, gradients)


def _turned_noise(noisy: NoisyFormula, turn: Array, centre: Array, X: Array) -> Measurement:
    y, grad, y_var, grad_var = noisy(centre + np.einsum("ij,nj->ni", turn, X - centre))
    return Measurement(y, np.einsum("ij,ni->nj", turn, grad), y_var, np.einsum("ij,ni->nj", turn**2, grad_var))


def _disturbed(formula: Formula, deviations: Array, seed: tuple[int, ...], X: Array) -> tuple[Array, Array]:
    values, gradients = formula(X)
    noise = [_generator(_NOISE, seed, x).standard_normal(len(deviations)) for x in X]
    errors = deviations * np.reshape(noise, (len(X), len(deviations)))
    return values + errors[:, 0], gradients + errors[:, 1:]


def _hidden(formula: Formula, missing: Mask, X: Array) -> tuple[Array, Array]:
    values, gradients = formula(X)
    return values, np.where(missing, np.nan, gradients)


def _hidden_noise(noisy: NoisyFormula, missing: Mask, X: Array) -> Measurement:
    y, grad, y_var, grad_var = noisy(X)
    return Measurement(y, np.where(missing, np.nan, grad), y_var, np.where(missing, np.nan, grad_var))


def _dropped(formula: Formula, share: float, seed: tuple[int, ...], X: Array) -> tuple[Array, Array]:
    values, gradients = formula(X)
    return values, np.where(_unlucky(share, seed, X), np.nan, gradients)


def _dropped_noise(noisy: NoisyFormula, share: float, seed: tuple[int, ...], X: Array) -> Measurement:
    return _hidden_noise(noisy, _unlucky(share, seed, X), X)


def _unlucky(share: float, seed: tuple[int, ...], X: Array) -> Mask:
    """Which components are missing at the points, `n x d -> n x d`."""
    return np.reshape([_generator(_DROPPED, seed, x).random(len(x)) for x in X], X.shape) < share


def _random_shift(problem: Problem, seed: Seed) -> Array:
    box = problem.bounds
    low, high = 0.25 * (box.lower - box.upper), 0.25 * (box.upper - box.lower)
    if problem.optimizers is not None:
        low = np.maximum(low, box.lower - problem.optimizers[0])
        high = np.minimum(high, box.upper - problem.optimizers[0])
    return low + (high - low) * _generator(_SHIFT, _seed_words(seed)).random(problem.dim)


def _random_rotation(dim: int, seed: Seed) -> Array:
    """Uniform over the rotations: the QR factor of a Gaussian matrix, with the signs that make it unique."""
    q, r = np.linalg.qr(_generator(_ROTATION, _seed_words(seed)).standard_normal((dim, dim)))
    q *= np.sign(np.diag(r))
    q[:, 0] *= np.sign(np.linalg.det(q))
    return q


def _generator(stream: int, seed: tuple[int, ...], x: Array | None = None) -> np.random.Generator:
    """The random numbers of a stream for a seed, at a point; adding zero makes -0.0 the same point as 0.0.

    The length keeps seeds apart that NumPy takes for one: it pads with zeros and splits large numbers into words.
    """
    point = [] if x is None else (x + 0.0).view(np.uint32).tolist()
    return np.random.default_rng([stream, len(seed), *seed, *point])


def _seed_words(seed: Seed) -> tuple[int, ...]:
    words = tuple(operator.index(word) for word in (seed if isinstance(seed, Sequence) else (seed,)))
    if not words or min(words) < 0:
        raise ValueError(f"seed: expected an integer >= 0 or a sequence of them, got {seed!r}")
    return words


def _vector(values: ArrayLike | None, dim: int, what: str) -> Array:
    array = as_floats(values, what)
    if array.shape not in ((), (dim,)):
        raise ValueError(f"{what} has shape {array.shape}, expected ({dim},), or one number for all coordinates")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite, got {values!r}")
    return np.broadcast_to(array, (dim,)).copy()


def _mask(coordinates: Iterable[int], dim: int) -> Mask:
    mask = np.zeros(dim, dtype=np.bool_)
    for i in coordinates:
        if not 0 <= operator.index(i) < dim:
            raise ValueError(f"no coordinate {i!r}; expected an index from 0 to {dim - 1}")
        mask[i] = True
    return mask
