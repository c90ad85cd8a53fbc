r"""Acrobot and CartPole with continuous actions, for many rollouts at once.

Integrators and constants are those of Gymnasium's `Acrobot-v1` and `CartPole-v1`; the rewards are the paper's. A state
is `4 x n x m`, for m rollouts of each of n policies; an action is `n x m`, between -1 and 1.

All is elementwise, so that a rollout is the same to the last bit whatever runs beside it: Acrobot is chaotic, and
would turn a last bit into another trajectory.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from eign.arrays import Array, Mask


@final
@dataclass(frozen=True, slots=True)
class System:
    """What is to be controlled.

    Attributes:
        observe: What the policy sees of a state, `4 x n x m -> k x n x m`.
        step: The next state, `4 x n x m, n x m -> 4 x n x m`.
        reward: Of actions at observations, over all steps at once,
            `t x k x n x m, t x n x m -> t x n x m`.
        ended: Whether an episode ends in a state under Gymnasium's rules, `4 x n x m -> n x m`.
        start_width: Coordinates of the first state are uniform between minus and plus this.
        observed: The number k.
    """

    observe: Callable[[Array], Array]
    step: Callable[[Array, Array], Array]
    reward: Callable[[Array, Array], Array]
    ended: Callable[[Array], Mask]
    start_width: float
    observed: int


def _constant(value: float) -> Array:
    """As an array: NumPy multiplies small arrays by one in half the time that it takes with a Python number."""
    return np.array(value)


# Acrobot: two links of mass 1, length 1 and inertia 1 with their centres in the middle; seconds, metres, radians.
_STEP, _HALF_STEP, _SIXTH_STEP, _TWO = (_constant(value) for value in (0.2, 0.1, 0.2 / 6, 2.0))
_TURN = _constant(2 * math.pi)
_FASTEST, _WEIGHTS, _INERTIAS, _TORQUES = (
    np.reshape(pair, (2, 1, 1)) for pair in ((4 * math.pi, 9 * math.pi), (-29.4, -9.8), (2.5, 4.5), (-2.0, 2.0))
)
_DETERMINANT = _constant(2.5 * 4.5)


def acrobot_rates(links: Array, torque: Array) -> Array:
    r"""Time derivatives of both links' angles from the vertical :math:`\alpha` and their velocities, `2 x 2 x n x m`.

    These are the equations in the book of Sutton and Barto, which has :math:`\theta_1 = \alpha_1` and
    :math:`\theta_2 = \alpha_2 - \alpha_1`; the two angles from the vertical make them short:

    .. math::
        \begin{pmatrix} 4.5 & \cos\theta_2 \\ \cos\theta_2 & 2.5 \end{pmatrix} \ddot\alpha
        = \begin{pmatrix}
            \dot\alpha_2^2 \sin\theta_2 - 29.4 \sin\alpha_1 - 2\,\text{torque} \\
            -\dot\alpha_1^2 \sin\theta_2 - 9.8 \sin\alpha_2 + 2\,\text{torque}
        \end{pmatrix}
    """
    angles, velocities = links
    bend = angles[1] - angles[0]
    sine, cosine = np.sin(bend), np.cos(bend)
    forces = _WEIGHTS * np.sin(angles)
    forces += _TORQUES * torque
    squares = velocities * velocities
    squares *= sine
    forces[0] += squares[1]
    forces[1] -= squares[0]
    forces /= _DETERMINANT - cosine * cosine
    rates = np.empty_like(links)
    rates[0] = velocities
    np.multiply(_INERTIAS, forces, out=rates[1])
    rates[1] -= cosine * forces[::-1]
    return rates


def acrobot_step(state: Array, torque: Array) -> Array:
    """One step of 0.2 s by the classical Runge-Kutta method; angles within a turn, velocities within their limits."""
    links = np.add.accumulate(state.reshape(2, 2, *state.shape[1:]), axis=1)
    a = acrobot_rates(links, torque)
    b = acrobot_rates(links + _HALF_STEP * a, torque)
    c = acrobot_rates(links + _HALF_STEP * b, torque)
    d = acrobot_rates(links + _STEP * c, torque)
    b += c
    b *= _TWO
    b += a
    b += d
    links += _SIXTH_STEP * b
    links[:, 1] -= links[:, 0]
    angles, velocities = links
    angles -= _TURN * np.rint(angles / _TURN)
    np.minimum(velocities, _FASTEST, out=velocities)
    np.maximum(velocities, -_FASTEST, out=velocities)
    return links.reshape(state.shape)


def acrobot_observation(state: Array) -> Array:
    """Cosine and sine of the inner angle, of the outer one, and both velocities, `4 x n x m -> 6 x n x m`."""
    seen = np.empty((6, *state.shape[1:]))
    np.cos(state[:2], out=seen[0:4:2])
    np.sin(state[:2], out=seen[1:4:2])
    seen[4:] = state[2:]
    return seen


def acrobot_reward(observations: Array, actions: Array) -> Array:  # noqa: ARG001  # actions are free
    r"""The paper's :math:`-0.001\,(\cos\theta_1 + \cos(\theta_1 + \theta_2))`: height, in small units."""
    cos1, sin1, cos2, sin2 = np.moveaxis(observations[:, :4], 1, 0)
    return np.asarray(-0.001 * (cos1 + cos1 * cos2 - sin1 * sin2))


def acrobot_ended(state: Array) -> Mask:
    """Whether the tip is a length above the joint."""
    return np.asarray(-np.cos(state[0]) - np.cos(state[0] + state[1]) > 1.0)


# CartPole: cart of mass 1, pole of mass 0.1 and half length 0.5.
_TIME_STEP, _FORCE, _TOTAL_MASS = _constant(0.02), _constant(10.0), _constant(1.1)
_POLE_MOMENT, _POLE_SHARE = _constant(0.05), _constant(0.05 / 1.1)
_GRAVITY, _FOUR_THIRDS_LENGTH = _constant(9.8), _constant(0.5 * 4 / 3)
_FARTHEST, _STEEPEST = 2.4, 12 * 2 * math.pi / 360


def cartpole_step(state: Array, action: Array) -> Array:
    r"""One Euler step of 0.02 s for state :math:`(x, \dot x, \theta, \dot\theta)` under the force F = 10 action.

    .. math::
        u = \frac{F + 0.05\, \dot\theta^2 \sin\theta}{1.1}, \qquad
        \ddot\theta = \frac{9.8 \sin\theta - u \cos\theta}{0.5\,(4/3 - 0.1 \cos^2\theta / 1.1)}, \qquad
        \ddot x = u - \frac{0.05}{1.1}\, \ddot\theta \cos\theta
    """
    angle, turning = state[2], state[3]
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (_FORCE * action + _POLE_MOMENT * turning * turning * sine) / _TOTAL_MASS
    angular = (_GRAVITY * sine - cosine * push) / (_FOUR_THIRDS_LENGTH - _POLE_SHARE * cosine * cosine)
    rates = np.empty_like(state)
    rates[0], rates[2], rates[3] = state[1], turning, angular
    np.subtract(push, _POLE_SHARE * angular * cosine, out=rates[1])
    rates *= _TIME_STEP
    rates += state
    return rates


def cartpole_observation(state: Array) -> Array:
    """The state itself."""
    return state


def cartpole_reward(observations: Array, actions: Array) -> Array:
    r"""The paper's cost :math:`-(\theta^2 + 0.1 \dot\theta^2 + 0.01 x^2 + 0.001 \dot x^2 + 0.001 a^2)`."""
    place, speed, angle, turning = np.moveaxis(observations, 1, 0)
    cost = angle**2 + 0.1 * turning**2 + 0.01 * place**2 + 0.001 * speed**2 + 0.001 * actions**2
    return np.asarray(-cost)


def cartpole_ended(state: Array) -> Mask:
    """Whether the cart is off the track or the pole is more than 12 degrees from upright."""
    return np.asarray((np.abs(state[0]) > _FARTHEST) | (np.abs(state[2]) > _STEEPEST))


ACROBOT = System(acrobot_observation, acrobot_step, acrobot_reward, acrobot_ended, start_width=0.1, observed=6)
CARTPOLE = System(cartpole_observation, cartpole_step, cartpole_reward, cartpole_ended, start_width=0.05, observed=4)
