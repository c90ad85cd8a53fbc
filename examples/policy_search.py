"""Policy search with noisy gradients: how long does a cart balance its pole?

    python examples/policy_search.py [--picture FILE]

The value is the mean time until the pole falls, over rollouts with random first states and random actions. Time until a
fall is no smooth function of one rollout, so no automatic differentiation helps; but the probability of each rollout is
smooth in the policy's parameters, and the score function turns that into a gradient of the mean. Value and gradient are
both means over rollouts, so their variances are known too, and the optimizer is told all four.
"""

import argparse
from pathlib import Path

import numpy as np

import eign
from eign.problems.dynamics import CARTPOLE

HORIZON, ROLLOUTS, NOISE = 500, 128, 0.8
BOUNDS = {"position": (-2.0, 2.0), "speed": (-2.0, 2.0), "angle": (-5.0, 5.0), "turning": (-5.0, 5.0)}


def roll_out(w: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whether each rollout still balances `t x m`, and the score of each action `t x d x m`.

    The action is tanh(w'o) + NOISE e, and its score, d log pi / dw, is e / NOISE (1 - tanh^2) o.
    """
    state = rng.uniform(-0.1, 0.1, (4, 1, ROLLOUTS))
    alive, scores = np.ones((HORIZON, ROLLOUTS)), np.zeros((HORIZON, len(w), ROLLOUTS))
    up = np.ones(ROLLOUTS, dtype=bool)
    for t in range(HORIZON):
        seen = CARTPOLE.observe(state)[:, 0]
        mean, noise = np.tanh(w @ seen), rng.standard_normal(ROLLOUTS)
        alive[t], scores[t] = up, up * noise / NOISE * (1 - mean**2) * seen
        state = CARTPOLE.step(state, np.clip(mean + NOISE * noise, -1, 1)[None])
        up = up & ~CARTPOLE.ended(state)[0]
    return alive, scores


# --8<-- [start:gradient]
def evaluate(w: np.ndarray, seed: int) -> eign.Evaluation:
    """Mean number of steps and its gradient by w, with the variances of both.

    Each score is weighed by the steps that follow it, less their mean over the other rollouts: what came before an
    action is not its merit, and a baseline that does not know the rollout leaves the estimate unbiased.
    """
    alive, scores = roll_out(w, np.random.default_rng(seed))
    to_go = alive[::-1].cumsum(axis=0)[::-1] - alive
    merit = (to_go - to_go.mean(axis=1, keepdims=True)) * ROLLOUTS / (ROLLOUTS - 1)
    gradients, steps = np.einsum("tm,tdm->dm", merit, scores), alive.sum(axis=0)
    return eign.Evaluation(
        value=steps.mean(),
        gradient=gradients.mean(axis=1),
        value_variance=steps.var(ddof=1) / ROLLOUTS,
        gradient_variance=gradients.var(axis=1, ddof=1) / ROLLOUTS,
    )


# --8<-- [end:gradient]


def search(evaluations: int) -> eign.Optimizer:
    """Ask, evaluate with new random numbers, tell.

    The check of gradients is off: it compares values at close points, and there is noise on these.
    """
    optimizer = eign.Optimizer(BOUNDS, seed=0, maximize=True, check_gradients=False)
    for number in range(evaluations):
        w = optimizer.ask()
        answer = evaluate(w, seed=number)
        optimizer.tell(w, answer.value, answer.gradient, answer.value_variance, answer.gradient_variance)
    return optimizer


def draw(optimizer: eign.Optimizer, to: Path) -> None:
    """The values with their standard errors, and how many rollouts still balance under three of the policies."""
    import matplotlib.pyplot as plt

    from eign import plot

    history = optimizer.history
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    plot.convergence(optimizer, axes=left)
    numbers = 1 + np.arange(len(history))
    left.errorbar(numbers, history.y, yerr=2 * np.sqrt(history.y_var), fmt="none", ecolor="#767676", zorder=0)
    left.set(ylabel="mean steps until the pole falls")
    median = history.x[np.argsort(history.y)[len(history) // 2]]
    policies = {"best": optimizer.best.x, "first": history.x[0], "median": median}
    for (label, w), colour in zip(policies.items(), ("#0072B2", "#D55E00", "#009E73"), strict=True):
        alive, _ = roll_out(w, np.random.default_rng(10**6))
        right.plot(alive.mean(axis=1), color=colour, label=label)
    right.set(xlabel="steps", ylabel="share of rollouts that still balance", ylim=(-0.02, 1.05))
    right.legend(frameon=False)
    figure.savefig(to, dpi=100)
    plt.close(figure)


def main() -> None:
    """Twenty-five evaluations, judged by rollouts that the search has not seen."""
    parser = argparse.ArgumentParser(description="Balance a pole, with noisy gradients.")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    optimizer = search(25)
    first, best = (evaluate(w, seed=10**6) for w in (optimizer.history.x[0], optimizer.best.x))
    print(f"first policy: {first.value:.0f} of {HORIZON} steps, standard error {first.value_variance**0.5:.1f}")
    print(f"best policy:  {best.value:.0f} of {HORIZON} steps, standard error {best.value_variance**0.5:.1f}")
    if given.picture is not None:
        draw(optimizer, given.picture)


if __name__ == "__main__":
    main()
