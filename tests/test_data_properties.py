"""The chain rule, the standardisation and appending, on observations with anything missing."""

import json

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eign.data import Observations, to_unit, to_user
from eign.space import Box
from eign.standardization import standardize_independent, standardize_joint

EPS = np.finfo(np.float64).eps
STANDARDIZE = st.sampled_from([standardize_independent, standardize_joint])
# Not below 1e-100: the ratio of two values, and its square, then is a float. Unit tests go to the limits.
POSITIVE = st.floats(1e-100, 1e6)
VALUES = POSITIVE | POSITIVE.map(lambda value: -value) | st.sampled_from([0.0, np.nan, np.inf, -np.inf])
THOUSANDTHS = st.integers(-(10**6), 10**6).map(lambda k: k / 1000)
VARIANCES = st.floats(1e-60, 1e6) | st.sampled_from([0.0, np.nan])


@st.composite
def observations(draw, *, values=VALUES, dim=None, least=0):
    """Points in the unit cube with whatever may be missing or failed."""
    n, d = draw(st.integers(least, 6)), dim or draw(st.integers(1, 3))
    return Observations(
        draw(arrays(np.float64, (n, d), elements=st.floats(0, 1))),
        draw(arrays(np.float64, n, elements=values)),
        draw(arrays(np.float64, (n, d), elements=values)),
        draw(arrays(np.float64, n, elements=VARIANCES)),
        draw(arrays(np.float64, (n, d), elements=VARIANCES)),
    )


@st.composite
def boxes(draw, dim):
    """Boxes of everyday magnitudes, in which the rounding of x does not hide that of the gradient."""
    pairs, log = [], []
    for i in range(dim):
        if draw(st.booleans()):
            low = draw(st.floats(1e-6, 1e3))
            pairs.append((low, low * draw(st.floats(1.5, 1e6))))
            log.append(i)
        else:
            width = draw(st.floats(1e-3, 1e3))
            low = width * draw(st.floats(-10, 10))
            pairs.append((low, low + width))
    fixed = draw(st.integers(0, dim))
    return Box([*pairs[:fixed], (2.0, 2.0), *pairs[fixed:]], log=[i + (i >= fixed) for i in log])


@given(st.data(), st.integers(1, 3))
def test_chain_rule_is_the_slope_of_the_composed_function(data, dim):
    box = data.draw(boxes(dim))
    a = data.draw(arrays(np.float64, box.dim, elements=st.floats(0.1, 3)))
    span = box.upper - box.lower + (~box.free)
    centre, scaled = (box.lower + box.upper) / 2, a / span

    def f(x):
        return np.sin((x - centre) @ scaled)

    h = 1e-5
    u = h + (1 - 2 * h) * data.draw(arrays(np.float64, dim, elements=st.floats(0, 1)))
    x = box.from_unit(u)
    grad = np.cos((x - centre) @ scaled) * scaled
    made = to_unit(Observations([x], [f(x)], [grad]), box)
    steps = h * np.eye(dim)
    slope = (f(box.from_unit(u + steps)) - f(box.from_unit(u - steps))) / (2 * h)
    # |d^3 f / du^3| is at most (A + L)^3 with A = 3 L the largest df/du and L <= 14 the log ratio: h^2 / 6 of it, and
    # the rounding of x, some 10 spans from zero, and of f.
    bound = (4 * np.log(1e6)) ** 3 * h**2 / 6 + 200 * EPS / h
    np.testing.assert_allclose(made.grad[0], slope, rtol=0, atol=bound)


@given(st.data(), st.integers(1, 3))
def test_the_chain_rule_undoes_itself(data, dim):
    box, obs = data.draw(boxes(dim)), data.draw(observations(dim=dim))
    user = to_user(obs, box)
    assert np.isnan(user.grad[:, ~box.free]).all()
    back = to_unit(user, box)
    np.testing.assert_allclose(back.x, obs.x, atol=1e-12)
    np.testing.assert_array_equal(back.y, obs.y)
    np.testing.assert_array_equal(back.y_var, obs.y_var)
    np.testing.assert_allclose(back.grad, obs.grad, rtol=8 * EPS)
    np.testing.assert_allclose(back.grad_var, obs.grad_var, rtol=16 * EPS)


@given(st.data(), st.integers(1, 3))
def test_variances_scale_by_the_square(data, dim):
    box = data.draw(boxes(dim))
    x = box.from_unit(data.draw(arrays(np.float64, (2, dim), elements=st.floats(0, 1))))
    sigma = data.draw(arrays(np.float64, (2, box.dim), elements=st.floats(1e-3, 1e3)))
    made = to_unit(Observations(x, [0.0, 0.0], sigma, grad_var=sigma**2), box)
    np.testing.assert_allclose(made.grad_var, made.grad**2, rtol=8 * EPS)


@given(observations(), STANDARDIZE)
def test_standardising_undoes_itself(obs, standardize):
    std = standardize(obs)
    assert 0 < std.y_scale < np.inf
    assert ((std.grad_scale > 0) & (std.grad_scale < np.inf)).all()
    made = std.apply(obs)
    np.testing.assert_array_equal(made.x, obs.x)
    np.testing.assert_array_equal(made.failed, obs.failed)
    np.testing.assert_array_equal(made.has_grad, obs.has_grad)
    back = std.undo(made)
    np.testing.assert_allclose(back.y, obs.y, rtol=4 * EPS, atol=4 * EPS * abs(std.y_shift))
    np.testing.assert_allclose(back.grad, obs.grad, rtol=4 * EPS, atol=4 * EPS * np.abs(std.grad_shift).max())
    np.testing.assert_allclose(back.y_var, obs.y_var, rtol=16 * EPS)
    np.testing.assert_allclose(back.grad_var, obs.grad_var, rtol=16 * EPS)


@given(observations(values=st.floats(-1e3, 1e3), least=2), STANDARDIZE)
def test_standardised_values_have_mean_zero_and_deviation_one(obs, standardize):
    std = standardize(obs)
    assume(np.ptp(obs.y) > 1e-6)
    made = std.apply(obs)
    rounding = 8 * EPS * np.abs(obs.y).max() / std.y_scale
    np.testing.assert_allclose(made.y.mean(), 0, atol=rounding)
    np.testing.assert_allclose(made.y.std(ddof=1), 1, atol=rounding + 8 * EPS)


@given(
    observations(values=THOUSANDTHS | st.sampled_from([np.nan, np.inf]), least=1),
    STANDARDIZE,
    THOUSANDTHS,
    st.integers(-40, 40).map(lambda power: 2.0**power),
    st.sampled_from([-1.0, 1.0]),
)
def test_a_change_of_units_changes_nothing_in_the_model(obs, standardize, shift, factor, sign):
    """The model sees the same of factor * (f + shift) as of f, and of -f the same with the other sign."""
    known = obs.usable
    assume(np.ptp(known.y[known.has_y]) > 0 if known.has_y.any() else known.grad[known.has_grad].any() and not shift)
    moved = Observations(obs.x, sign * factor * (obs.y + shift), sign * factor * obs.grad)
    plain, std = standardize(obs), standardize(moved)
    # The shift rounds y at 2000, where one rounding is 5e-10 of the smallest spread, 0.001 over the root of six points.
    np.testing.assert_allclose(std.y_scale, factor * plain.y_scale, rtol=2e-9)
    if known.has_y.any():
        np.testing.assert_allclose(std.y_shift, sign * factor * (plain.y_shift + shift), atol=factor * 1e4 * EPS)
    np.testing.assert_allclose(std.common_grad_scale, plain.common_grad_scale, rtol=4e-9)
    slack = 1e4 * EPS / plain.y_scale
    np.testing.assert_allclose(std.common_grad_shift, sign * plain.common_grad_shift, rtol=4e-9, atol=slack)
    made, expected = std.apply(moved).usable.y, plain.apply(obs).usable.y
    np.testing.assert_allclose(made, sign * expected, rtol=4e-9, atol=slack)


@given(observations(values=st.integers(-1000, 1000).map(float), least=1), st.integers(-900, 900), STANDARDIZE)
def test_a_power_of_two_in_the_units_is_exact(obs, power, standardize):
    assume(np.ptp(obs.y) > 0)
    moved = Observations(obs.x, np.ldexp(obs.y, power), np.ldexp(obs.grad, power))
    made, expected = standardize(moved).apply(moved), standardize(obs).apply(obs)
    np.testing.assert_array_equal(made.y, expected.y)
    np.testing.assert_array_equal(made.grad, expected.grad)


@given(observations())
def test_one_by_one_is_the_same_as_all_at_once(obs):
    grown = Observations.empty(obs.dim)
    for row in obs:
        grown = grown.append(row.x[0], row.y[0], row.grad[0], row.y_var[0], row.grad_var[0])
    assert grown == obs
    assert Observations.empty(obs.dim).append(obs.x, obs.y, obs.grad, obs.y_var, obs.grad_var) == obs


@given(observations())
def test_usable_and_failed_share_out_the_rows(obs):
    usable = obs.usable
    assert len(usable) + obs.n_failed == len(obs)
    assert usable.n_failed == 0
    assert not np.isinf(usable.y).any()
    assert not np.isinf(usable.grad).any()
    assert (usable.has_y | usable.has_grad.any(axis=1)).all()


@given(observations())
def test_stored_observations_are_equal(obs):
    assert Observations.from_json(json.loads(json.dumps(obs.to_json(), allow_nan=False))) == obs
