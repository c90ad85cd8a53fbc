"""Acrobot and CartPole agree with Gymnasium's environments, step by step and as whole rollouts."""

import gymnasium
import numpy as np
import pytest

from eign.problems import control, dynamics
from eign.problems.policies import LINEAR, RELU


def columns(state):
    return np.asarray(state, dtype=float)[:, None, None]


class Acrobot:
    """Gymnasium's Acrobot with a torque in place of one of three."""

    system = dynamics.ACROBOT

    def __init__(self, state):
        self.environment = gymnasium.make("Acrobot-v1").unwrapped
        self.environment.reset(seed=0)
        self.environment.state = np.array(state)

    def step(self, action):
        self.environment.AVAIL_TORQUE = [action]
        return self.environment.step(0)[2]


class CartPole:
    """Gymnasium's CartPole with a force in place of one of two."""

    system = dynamics.CARTPOLE

    def __init__(self, state):
        self.environment = gymnasium.make("CartPole-v1").unwrapped
        self.environment.reset(seed=0)
        self.environment.state = np.array(state)

    def step(self, action):
        self.environment.force_mag = 10.0 * action
        self.environment.steps_beyond_terminated = None  # it warns of steps after the end, which are meant here
        return self.environment.step(1)[2]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("peer", [Acrobot, CartPole])
def test_each_step_of_long_random_trajectories_agrees(peer, seed):
    """From each state that Gymnasium reaches, by up to some roundings of velocities below 30."""
    rng = np.random.default_rng(seed)
    theirs = peer(rng.uniform(-0.1, 0.1, 4))
    ends = 0
    for t in range(1000):
        # With the rotation of the outer link, so that the acrobot swings up and whirls; for the cart anything goes.
        action = np.sign(theirs.environment.state[3]) * rng.uniform(-0.2, 1)
        before = columns(theirs.environment.state)
        terminated = theirs.step(action)
        mine = peer.system.step(before, np.array([[action]]))
        np.testing.assert_allclose(mine, columns(theirs.environment.state), rtol=1e-13, atol=1e-13)
        assert peer.system.ended(mine)[0, 0] == terminated
        ends += terminated
        if peer is CartPole and t % 100 == 99:
            theirs = peer(rng.uniform(-0.05, 0.05, 4))
    assert 0 < ends < 1000


@pytest.mark.parametrize(("peer", "steps", "tolerance"), [(Acrobot, 60, 1e-9), (CartPole, 300, 1e-9)])
def test_trajectories_of_their_own_stay_together(peer, steps, tolerance):
    """Acrobot is chaotic: two roundings that differ are apart by 1e-9 after some dozens of steps."""
    rng = np.random.default_rng(1)
    state = rng.uniform(-0.05, 0.05, 4)
    theirs, mine = peer(state), columns(state)
    for _ in range(steps):
        action = rng.uniform(-1, 1)
        theirs.step(action)
        mine = peer.system.step(mine, np.array([[action]]))
    np.testing.assert_allclose(mine, columns(theirs.environment.state), rtol=0, atol=tolerance)


def reference_rollout(peer, measure, w, i):
    """Return and score of rollout i, in plain words: a list of steps, and the paper's formulas."""
    theirs = peer(measure.starts[:, i])
    total, score = 0.0, np.zeros(len(w))
    for noise in measure.noise[:, i]:
        state = theirs.environment.state
        if peer is Acrobot:
            theta1, theta2, *speeds = state
            o = np.array([np.cos(theta1), np.sin(theta1), np.cos(theta2), np.sin(theta2), *speeds])
            mean = np.tanh(o @ w)
            slope = (1 - mean**2) * o
            reward = -0.001 * (np.cos(theta1) + np.cos(theta1 + theta2))
        else:
            o, w1, b1, w2, b2 = state, w[:8].reshape(4, 2), w[8:10], w[10:12], w[12]
            hidden = np.maximum(o @ w1 + b1, 0.0)
            mean = np.tanh(hidden @ w2 + b2)
            into_hidden = w2 * (hidden > 0)
            slope = (1 - mean**2) * np.concatenate([np.outer(o, into_hidden).ravel(), into_hidden, hidden, [1.0]])
            action = np.clip(mean + noise, -1, 1)
            x, speed, theta, turning = o
            reward = -(theta**2 + 0.1 * turning**2 + 0.01 * x**2 + 0.001 * speed**2 + 0.001 * action**2)
        total += reward
        score += noise / 0.05**2 * slope
        if theirs.step(float(np.clip(mean + noise, -1, 1))) and measure.ends:
            break
    return total, score


@pytest.mark.parametrize(
    ("peer", "policy", "horizon", "ends"),
    [
        (Acrobot, LINEAR, 50, False),
        (Acrobot, LINEAR, 50, True),
        (CartPole, RELU, 200, True),
        (CartPole, RELU, 200, False),
    ],
)
def test_values_and_gradients_are_those_of_rollouts_in_gymnasium(peer, policy, horizon, ends):
    measure = control.mean_return(peer.system, policy, horizon=horizon, rollouts=4, ends=ends, seed=2)
    if peer is Acrobot:
        measure.starts[0] += 1.9  # from halfway up, where torques let some episodes end and others not
    w = np.random.default_rng(3).uniform(-1, 1, (2, policy.parameters(peer.system.observed)))
    measured = measure(w)
    for n in range(2):
        returns, scores = zip(*(reference_rollout(peer, measure, w[n], i) for i in range(4)), strict=True)
        products = (np.array(returns) - np.mean(returns))[:, None] * np.array(scores)
        for mine, theirs in [
            (measured.y[n], np.mean(returns)),
            (measured.grad[n], products.mean(axis=0)),
            (measured.y_var[n], np.var(returns, ddof=1) / 4),
            (measured.grad_var[n], products.var(axis=0, ddof=1) / 4),
        ]:
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max())
