"""Policy search: scores, gradients against finite differences of the smoothed objective, standard errors, seeds."""

import numpy as np
import pytest

from eign import problems
from eign.problems.control import mean_return
from eign.problems.dynamics import ACROBOT, CARTPOLE
from eign.problems.policies import LINEAR, RELU

SETTINGS = [
    pytest.param(ACROBOT, LINEAR, False, id="acrobot"),
    pytest.param(ACROBOT, LINEAR, True, id="acrobot ending"),
    pytest.param(CARTPOLE, RELU, True, id="cartpole"),
    pytest.param(CARTPOLE, RELU, False, id="cartpole fixed"),
]


@pytest.mark.parametrize(("policy", "k"), [(LINEAR, 6), (RELU, 4)])
def test_the_pullback_is_the_derivative_of_the_mean_action(policy, k):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, policy.parameters(k)))
    observations, factors = rng.normal(size=(7, k, 3, 5)), rng.normal(size=(7, 3, 5))
    pulled = policy.pullback(w, observations, factors)
    assert pulled.shape == (3, w.shape[1], 5)
    step = 1e-6
    for j in range(w.shape[1]):
        shift = step * np.eye(w.shape[1])[j]
        change = policy.mean(w + shift, observations) - policy.mean(w - shift, observations)
        np.testing.assert_allclose(pulled[:, j], (factors * change).sum(axis=0) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("system", "policy", "ends", "start", "spread"),
    [
        pytest.param(ACROBOT, LINEAR, False, [0.3, 0.2, 0.5, -0.5], 0.0, id="acrobot"),
        pytest.param(CARTPOLE, RELU, False, [0.5, 0.3, 0.05, 0.1], 0.0, id="cartpole fixed"),
        # Near the end of the track at various distances, so that the policy decides how long an episode lasts.
        pytest.param(CARTPOLE, RELU, True, [2.3, 0.3, 0.05, 0.1], 0.1, id="cartpole"),
    ],
)
def test_the_gradient_is_the_slope_of_the_expected_return(system, policy, ends, start, spread):
    """Many short rollouts. Both sides of a difference share their random numbers, so that its error is small."""
    measure = mean_return(system, policy, horizon=10, rollouts=20_000, ends=ends, seed=1)
    measure.starts[:] = np.array(start)[:, None]
    measure.starts[0] += spread * np.random.default_rng(0).uniform(-1, 1, measure.starts.shape[1])
    d, step = policy.parameters(system.observed), 0.05
    w = np.random.default_rng(4).uniform(-0.5, 0.5, d)
    w[8:10] = 0.8  # CartPole: both hidden units active, away from their kinks; Acrobot has no such parameters
    estimate = measure(w[None])
    slopes, slope_errors = np.empty(d), np.empty(d)
    for j, shift in enumerate(step * np.eye(d)):
        below, above = returns(measure, np.stack([w - shift, w + shift]))
        difference = (above - below) / (2 * step)
        slopes[j], slope_errors[j] = difference.mean(), difference.std() / np.sqrt(len(difference))
    errors = np.sqrt(estimate.grad_var[0] + slope_errors**2)
    assert (np.abs(estimate.grad[0] - slopes) <= 4 * errors).all()
    # The test can fail: some components are many errors away from zero.
    assert (np.abs(slopes / errors) > 5).sum() >= 3


def returns(measure, w):
    observations, actions, alive = measure.roll_out(w)
    return (measure.system.reward(observations, actions) * alive).sum(axis=0)


@pytest.mark.parametrize(("system", "policy", "ends"), SETTINGS)
def test_the_standard_errors_are_those_over_seeds(system, policy, ends):
    d, rollouts, seeds = policy.parameters(system.observed), 32, 400
    w = np.random.default_rng(4).uniform(-0.5, 0.5, (1, d))
    measured = [
        mean_return(system, policy, horizon=10, rollouts=rollouts, ends=ends, seed=seed)(w) for seed in range(seeds)
    ]
    y, grad, y_var, grad_var = (np.concatenate(part) for part in zip(*measured, strict=True))
    # A variance from 400 draws is known to 7 per cent, and heavier tails than normal double that; four times this. The
    # baseline adds 1/M.
    assert y.var(ddof=1) == pytest.approx(y_var.mean(), rel=0.3)
    active = grad_var.mean(axis=0) > 0
    np.testing.assert_allclose(grad.var(axis=0, ddof=1)[active], grad_var.mean(axis=0)[active], rtol=0.5)


def test_the_baseline_shrinks_the_gradient_by_one_rollout():
    """A baseline from the other rollouts is independent of the score, hence unbiased: M / (M - 1) times the paper's."""
    w, m = np.full((1, 6), 0.3), 5
    measure = mean_return(ACROBOT, LINEAR, horizon=50, rollouts=m)
    observations, _, _ = measure.roll_out(w)
    scores = LINEAR.pullback(w, observations, measure.noise[:, None] / 0.05**2)[0]
    (R,) = returns(measure, w)
    others = (R.sum() - R) / (m - 1)
    np.testing.assert_allclose(measure(w).grad[0] * m / (m - 1), ((R - others) * scores).mean(axis=1), rtol=1e-10)


@pytest.mark.parametrize("name", ["acrobot-6", "cartpole-13", "cartpole-fixed-13"])
def test_a_seed_is_a_function(name):
    problem = problems.get(name, seed=5)
    x = 0.3 * problem.bounds.upper
    assert problem(x)[0] == problems.get(name, seed=5)(x)[0]
    assert problem(x)[0] != problems.get(name)(x)[0]
    assert np.isnan(problem.y_var)


@pytest.mark.parametrize(
    ("name", "reach", "horizon", "rollouts", "ends"),
    [("acrobot-6", 1, 500, 32, False), ("cartpole-13", 2, 200, 48, True), ("cartpole-fixed-13", 2, 200, 48, False)],
)
def test_the_settings_of_the_paper(name, reach, horizon, rollouts, ends):
    problem = problems.get(name)
    measure = problem.noisy_formula
    assert (problem.bounds.upper == reach).all()
    assert (problem.bounds.lower == -reach).all()
    assert measure.noise.shape == (horizon, rollouts)
    assert measure.noise.std() == pytest.approx(0.05, rel=0.03)
    assert measure.ends == ends


def test_points_side_by_side_do_not_touch_each_other():
    """To the last bit, also beyond one block: a chaotic system shows any difference."""
    problem = problems.get("acrobot-6")
    X = problem.bounds.from_unit(np.random.default_rng(0).random((66, 6)))
    values, gradients = problem.evaluate(X)
    for n in (0, 63, 64):
        value, gradient = problem(X[n])
        assert value == values[n]
        np.testing.assert_array_equal(gradient, gradients[n])


def test_what_follows_the_end_does_not_count():
    """A cart that is driven off the track: a cost that stops, against one that goes on."""
    w = np.zeros(13)
    w[12] = 2.0
    short, full = problems.get("cartpole-13"), problems.get("cartpole-fixed-13")
    assert short(w)[0] > full(w)[0]
    observations, _, alive = short.noisy_formula.roll_out(w[None])
    assert len(observations) < 200
    assert (np.diff(alive, axis=0) <= 0).all()
    still = np.abs(observations[:, 2])[alive == 1]
    assert still.max() <= 12 * np.pi / 180


MIRROR = np.where(np.isin(np.arange(13), [0, 2]), -1.0, 1.0)
HIDE = np.where(np.arange(13) == 3, np.nan, 1.0)


@pytest.mark.parametrize(
    ("wrap", "x_factor", "y_factor", "grad_factor"),
    [
        pytest.param(lambda p: problems.mirrored(p, [0, 2]), MIRROR, 1.0, MIRROR, id="mirrored"),
        pytest.param(lambda p: problems.scaled(p, 0.5, output=3.0), 2.0, 3.0, 6.0, id="scaled"),
        pytest.param(lambda p: problems.shifted(p, np.zeros(13)), 1.0, 1.0, 1.0, id="shifted"),
        pytest.param(lambda p: problems.without_gradients(p, [3]), 1.0, 1.0, HIDE, id="without_gradients"),
    ],
)
def test_variances_follow_the_wrappers(wrap, x_factor, y_factor, grad_factor):
    inner = problems.get("cartpole-13")
    problem = wrap(inner)
    x = np.random.default_rng(0).uniform(-1, 1, 13)
    measured, inside = problem.observe(x), inner.observe(x_factor * x)
    assert measured.y == pytest.approx(y_factor * inside.y)
    assert measured.y_var == pytest.approx(y_factor**2 * inside.y_var)
    np.testing.assert_allclose(measured.grad, grad_factor * inside.grad)
    np.testing.assert_allclose(measured.grad_var, grad_factor**2 * inside.grad_var)
    np.testing.assert_array_equal(problem(x)[1], measured.grad)


def test_variances_follow_rotation_and_dropping():
    inner = problems.get("cartpole-13")
    x = np.random.default_rng(0).uniform(-0.3, 0.3, 13)
    turned = problems.rotated(inner, seed=1)
    measured = turned.observe(x)
    np.testing.assert_array_equal(turned(x)[1], measured.grad)
    dropped = problems.dropped_gradients(inner, 0.5, seed=1).observe(x)
    np.testing.assert_array_equal(np.isnan(dropped.grad), np.isnan(dropped.grad_var))
    assert 0 < np.isnan(dropped.grad).sum() < 13
    # A rotation keeps the sum of the variances.
    turn = turned.noisy_formula.args[1]
    inside = inner.observe(turn @ x)
    assert measured.grad_var.sum() == pytest.approx(inside.grad_var.sum())


def test_noise_on_noise_is_refused():
    with pytest.raises(ValueError, match="acrobot-6 is noisy already"):
        problems.noisy(problems.get("acrobot"), value_std=0.1, seed=0)
