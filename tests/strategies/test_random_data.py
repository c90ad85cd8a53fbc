"""Methods meet whatever users tell: any mixture of values, gradients, gaps, failures and pending points."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cases import cube
from eign.data import Observations
from eign.models.surrogates import within_row_budget
from eign.strategies import State, strategy
from eign.strategies.design import design_point
from eign.strategies.multistart import replay
from example_counts import examples

CHEAP = ["sobol", "random", "l-bfgs", "reinforce", "cma-es"]
MODELLED = ["auto", "ei-gn", "d-log-ei", "thompson"]
SMALL = {"ei-gn": {"restarts": 2, "raw_samples": 16}, "d-log-ei": {"restarts": 2, "raw_samples": 16}}


@st.composite
def studies(draw):
    """Observations in the unit cube with gaps and failures, and pending points."""
    dim, count, waiting = draw(st.integers(1, 3)), draw(st.integers(0, 9)), draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** draw(st.integers(-6, 6))
    x = rng.random((count, dim))
    y = scale * np.sin(3 * x).sum(axis=1)
    grad = 3 * scale * np.cos(3 * x)
    y[rng.random(count) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = draw(st.sampled_from([np.nan, -np.inf, np.inf]))
    grad[rng.random((count, dim)) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = np.nan
    return Observations(x, y, grad) if count else Observations.empty(dim), rng.random((waiting, dim))


def check(method: str, data: Observations, pending: np.ndarray) -> None:
    chosen = strategy(method)
    options = {"n_init": 2, **SMALL.get(method, {})} if method != "sobol" else {}
    state = chosen.start(cube(data.dim), options, 7).after(data)
    proposals, after = chosen.propose(state, data, pending, 2)
    points = np.array([proposal.x for proposal in proposals])
    assert points.shape == (2, data.dim)
    assert ((points >= 0) & (points <= 1)).all()
    assert np.abs(points[0] - points[1]).max() > 1e-9
    restored = State.from_json(json.loads(json.dumps(after.to_json(), allow_nan=False)))
    assert restored == after
    assert after.asked == 2
    again, _ = chosen.propose(state, data, pending, 2)
    np.testing.assert_array_equal(points, [proposal.x for proposal in again])


@pytest.mark.parametrize("method", CHEAP)
@given(studies())
def test_cheap_methods(method, study):
    check(method, *study)


@pytest.mark.parametrize("method", MODELLED)
@examples(15)
@given(studies())
def test_modelled_methods(method, study):
    check(method, *study)


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_replay_walks_where_scipy_walks(dim, seed):
    """Point by point the same as SciPy's L-BFGS-B on the scaled function."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((dim, dim))
    hessian, center, start = root @ root.T + 0.1 * np.eye(dim), rng.random(dim) * 1.4 - 0.2, rng.random(dim)

    def value(x):
        return -0.5 * (x - center) @ hessian @ (x - center), -hessian @ (x - center)

    options = {"first_step": 0.25, "ftol": 1e-9, "gtol": 1e-6}
    offset, slope = value(start)
    scale = 0.25 / math.hypot(*slope)
    walked = []

    def scaled(x):
        walked.append(x.copy())
        return -scale * (value(x)[0] - offset), -scale * value(x)[1]

    tolerances = {"ftol": 1e-9, "gtol": 1e-6 * 0.25}
    minimize(scaled, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * dim, options=tolerances)
    data, asked = Observations.empty(dim), []
    while (needed := replay(start, data, options).needed) is not None:
        asked.append(needed)
        data = data.append(needed, *value(needed))
    # Where SciPy comes back to a point up to rounding, the bits of f decide how it goes on.
    again = [i for i, x in enumerate(walked) if any(np.abs(x - y).max() <= 1e-9 for y in walked[:i])]
    common = again[0] if again else len(walked)
    np.testing.assert_array_equal(asked[:common], walked[:common])
    assert again or len(asked) == len(walked)


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 100), st.integers(0, 10**6))
def test_row_budget_keeps_values_and_the_best_gradient(count, dim, rows, seed):
    rng = np.random.default_rng(seed)
    data = Observations(rng.random((count, dim)), rng.standard_normal(count), rng.standard_normal((count, dim)))
    kept = within_row_budget(data, rows)
    np.testing.assert_array_equal(kept.y, data.y)
    gradients = kept.has_grad.all(axis=1)
    assert count + dim * gradients.sum() <= max(rows, count)
    if gradients.any():
        assert gradients[data.y.argmax()]
    if count * (dim + 1) <= rows:
        assert gradients.all()


@given(st.integers(1, 8), st.integers(0, 2**40))
def test_the_design_is_a_sequence(dim, seed):
    points = np.array([design_point(seed, dim, index) for index in range(40)])
    assert ((points >= 0) & (points < 1)).all()
    # Sixteen points of a Sobol sequence have one in each sixteenth of every coordinate.
    assert (np.sort((16 * points[:16]).astype(int), axis=0) == np.arange(16)[:, None]).all()
