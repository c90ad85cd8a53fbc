r"""Policy search: the parameters of a policy are the point, its mean return over M rollouts is the value.

With return :math:`R_i` and score :math:`S_i = \sum_t \nabla_w \log \pi_w(a_t \mid o_t)` of rollout i,

.. math:: J \approx \bar R = \frac1M \sum_i R_i, \qquad
          \nabla J \approx \frac1M \sum_i (R_i - \bar R)\, S_i

The baseline contains the rollout's own return, which makes the expected gradient (M - 1)/M of the true one: 3 per cent
less for 32 rollouts. The variances are those of the two means, from the spread over the rollouts.

First states and action noise are drawn once for a seed and are the same at every point, so that comparisons between
points are sharper than the variances say, and an evaluation can be repeated.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from eign.arrays import Array
from eign.problems.dynamics import ACROBOT, CARTPOLE, System
from eign.problems.policies import LINEAR, RELU, Policy
from eign.problems.problem import Family, Measurement, Problem
from eign.space import Box

NOISE_STD = 0.05
# Rollouts that run side by side: beyond, arrays leave the cache.
_COLUMNS = 2048
_LOWEST, _HIGHEST = np.array(-1.0), np.array(1.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeanReturn:
    """Mean return and its score-function gradient, with variances; a problem's noisy formula.

    Attributes:
        system: What is controlled.
        policy: By what.
        starts: First states of the rollouts, `4 x M`.
        noise: What is added to the mean actions, `t x M`; an action beyond [-1, 1] is clipped before it acts.
        ends: Whether Gymnasium's rules end an episode early; what would follow counts as 0.
    """

    system: System
    policy: Policy
    starts: Array
    noise: Array
    ends: bool

    def __call__(self, X: Array) -> Measurement:
        """The measurement at parameters `n x p`, as many at once as fit into the cache."""
        together = max(1, _COLUMNS // self.starts.shape[1])
        blocks = [self._measure(X[first : first + together]) for first in range(0, max(1, len(X)), together)]
        return Measurement(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _measure(self, w: Array) -> Measurement:
        observations, actions, alive = self.roll_out(w)
        steps, rollouts = len(actions), self.starts.shape[1]
        returns = (self.system.reward(observations, actions) * alive).sum(axis=0)
        factors = alive * (self.noise[:steps, np.newaxis] / NOISE_STD**2)
        scores = self.policy.pullback(w, observations, factors)
        products = (returns - returns.mean(axis=1, keepdims=True))[:, np.newaxis] * scores
        return Measurement(
            returns.mean(axis=1),
            products.mean(axis=2),
            returns.var(axis=1, ddof=1) / rollouts,
            products.var(axis=2, ddof=1) / rollouts,
        )

    def roll_out(self, w: Array) -> tuple[Array, Array, Array]:
        """Observations `t x k x n x M`, actions `t x n x M`, and 1.0 until the episode has ended, `t x n x M`."""
        horizon, rollouts = self.noise.shape
        columns = (len(w), rollouts)
        state = np.empty((len(self.starts), *columns))
        state[:] = self.starts[:, np.newaxis]
        observations = np.empty((horizon, self.system.observed, *columns))
        actions, alive = np.empty((horizon, *columns)), np.ones((horizon, *columns))
        ended = np.zeros(columns, dtype=np.bool_)
        for t in range(horizon):
            observations[t] = self.system.observe(state)
            wanted = self.policy.mean(w, observations[t]) + self.noise[t]
            np.minimum(np.maximum(wanted, _LOWEST), _HIGHEST, out=actions[t])
            state = self.system.step(state, actions[t])
            if self.ends:
                alive[t] = ~ended
                ended |= self.system.ended(state)
                if ended.all():
                    return observations[: t + 1], actions[: t + 1], alive[: t + 1]
        return observations, actions, alive


def mean_return(
    system: System, policy: Policy, *, horizon: int, rollouts: int, ends: bool = False, seed: int = 0
) -> MeanReturn:
    """The mean return of policies of one kind; first states and noise come from the seed."""
    rng = np.random.default_rng([seed, horizon, rollouts])
    starts = rng.uniform(-system.start_width, system.start_width, (4, rollouts))
    return MeanReturn(system, policy, starts, NOISE_STD * rng.standard_normal((horizon, rollouts)), ends)


def _values_and_gradients(measure: MeanReturn, X: Array) -> tuple[Array, Array]:
    measured = measure(X)
    return measured.y, measured.grad


@final
@dataclass(frozen=True, slots=True)
class _Task:
    """The paper's settings of one problem; a policy has parameters between minus and plus `reach`."""

    name: str
    system: System
    policy: Policy
    horizon: int
    rollouts: int
    reach: float
    ends: bool
    summary: str

    def family(self) -> Family:
        d = self.policy.parameters(self.system.observed)
        return Family(self.name, self.build, dims=(d,), standard=(d,), summary=self.summary, seeded=True)

    def build(self, d: int, *, seed: int) -> Problem:
        measure = mean_return(
            self.system, self.policy, horizon=self.horizon, rollouts=self.rollouts, ends=self.ends, seed=seed
        )
        return Problem(
            f"{self.name}-{d}",
            Box([(-self.reach, self.reach)] * d),
            formula=partial(_values_and_gradients, measure),
            noisy_formula=measure,
            y_var=np.nan,
            grad_var=np.nan,
            summary=self.summary,
        )


_ACROBOT = _Task(
    "acrobot",
    ACROBOT,
    LINEAR,
    horizon=500,
    rollouts=32,
    reach=1.0,
    ends=False,
    summary="Acrobot: swing two links up with a linear policy",
)
_CARTPOLE = _Task(
    "cartpole",
    CARTPOLE,
    RELU,
    horizon=200,
    rollouts=48,
    reach=2.0,
    ends=True,
    summary="CartPole: balance a pole with two hidden units, until it falls",
)
_TASKS = (
    _ACROBOT,
    replace(_ACROBOT, name="acrobot-ending", ends=True, summary="Acrobot, until it is up"),
    _CARTPOLE,
    replace(_CARTPOLE, name="cartpole-fixed", ends=False, summary="CartPole over all 200 steps, fallen or not"),
)
CONTROL = tuple(task.family() for task in _TASKS)
