"""Eight penalties of a logistic regression, tuned by the gradient of the validation loss.

    python examples/hypergradients.py [--picture FILE]

Every feature has a penalty of its own, on a log scale from 1e-4 to 1e2. The weights w minimise the penalised training
loss, so they depend on the penalties p; the implicit function theorem says how. With H the Hessian of the training
problem and v the gradient of the validation loss by the weights,

    dw/dp_j = -w_j H^-1 e_j        and so        dL/dp_j = -w_j (H^-1 v)_j

One further linear system gives the derivative by all penalties, whether there are eight of them or a thousand.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult
from scipy.special import expit, log_expit

import eign

FEATURES = [f"feature {j}" for j in range(8)]
TRUE_WEIGHTS = np.array([2.5, -2.0, 1.5, 0.8, 0.0, 0.0, 0.0, 0.0])
PENALTIES = eign.Box(dict.fromkeys(FEATURES, (1e-4, 1e2)), log=FEATURES)


class Sample(NamedTuple):
    """Features `n x d` and labels `n`, which are -1 or 1."""

    X: np.ndarray
    y: np.ndarray


def draw(count: int, rng: np.random.Generator) -> Sample:
    """Half of the features say nothing."""
    X = rng.standard_normal((count, len(FEATURES)))
    return Sample(X, np.where(rng.random(count) < expit(X @ TRUE_WEIGHTS), 1.0, -1.0))


def loss(w: np.ndarray, data: Sample) -> tuple[float, np.ndarray]:
    """Mean negative log-likelihood and its gradient by the weights."""
    margins = data.y * (data.X @ w)
    return float(-log_expit(margins).mean()), -data.X.T @ (data.y * expit(-margins)) / len(data.y)


def train(penalties: np.ndarray, data: Sample) -> tuple[np.ndarray, np.ndarray]:
    """The weights that minimise loss + sum p_j w_j^2 / 2, and the Hessian there: Newton's method with halved steps."""

    def objective(w: np.ndarray) -> float:
        return loss(w, data)[0] + 0.5 * float(penalties @ w**2)

    w = np.zeros(len(penalties))
    while True:
        probabilities = expit(data.X @ w)
        curvature = probabilities * (1.0 - probabilities) / len(data.y)
        hessian = data.X.T @ (curvature[:, None] * data.X) + np.diag(penalties)
        step = -np.linalg.solve(hessian, loss(w, data)[1] + penalties * w)
        # The implicit function theorem holds at the minimum: what is left of the way there is an error of the gradient.
        if np.abs(step).max() < 1e-12 * (1.0 + np.abs(w).max()):
            return w, hessian
        while objective(w + step) > objective(w) + 1e-15:
            step /= 2.0
        w = w + step


# --8<-- [start:hypergradient]
def validation_loss(penalties: np.ndarray, training: Sample, validation: Sample) -> tuple[float, np.ndarray]:
    """The loss on data that training has not seen, and its gradient by the penalties."""
    w, hessian = train(penalties, training)
    value, by_weights = loss(w, validation)
    return value, -w * np.linalg.solve(hessian, by_weights)


# --8<-- [end:hypergradient]


def search(
    training: Sample, validation: Sample, *, method: str = "auto", jac: bool = True, seed: int = 0
) -> OptimizeResult:
    """Forty-five evaluations, with gradients or without."""
    objective = partial(validation_loss, training=training, validation=validation)
    fun = objective if jac else lambda penalties: objective(penalties)[0]
    return eign.minimize(fun, PENALTIES, jac=jac, method=method, budget=45, seed=seed)


def best_common(training: Sample, validation: Sample) -> np.ndarray:
    """What a grid over one penalty for all features finds."""
    grid = [np.full(len(FEATURES), penalty) for penalty in np.logspace(-4, 2, 61)]
    return min(grid, key=lambda penalties: validation_loss(penalties, training, validation)[0])


def draw_picture(result: OptimizeResult, runs: dict[str, list[OptimizeResult]], common: float, to: Path) -> None:
    """How methods compare, and the penalties found."""
    import matplotlib.pyplot as plt

    from eign import plot

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    plot.compare(runs, start=3 * len(FEATURES), axes=left)  # from the end of the initial designs
    left.axhline(common, color="#767676", linestyle="--", linewidth=1, label="best common penalty (grid of 61)")
    left.set_ylabel("validation loss, best so far")
    left.legend(edgecolor="none")
    colours = ["#0072B2" if weight else "#E69F00" for weight in TRUE_WEIGHTS]
    right.bar(range(len(FEATURES)), result.x, bottom=0, color=colours)
    right.set(yscale="log", ylim=(0.5e-4, 2e2), xlabel="feature", ylabel="penalty found")
    right.set_title("blue: says something about the label; orange: does not", fontsize="medium")
    figure.savefig(to, dpi=100)
    plt.close(figure)


def main() -> None:
    """Search and print; with --picture compare with other methods over five seeds and draw."""
    parser = argparse.ArgumentParser(description="Tune eight penalties by hypergradients.")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(2)
    training, validation, test = draw(60, rng), draw(300, rng), draw(20000, rng)
    common, result = best_common(training, validation), search(training, validation)
    for name, penalties in (("one penalty for all", common), ("one for each", result.x)):
        seen, unseen = validation_loss(penalties, training, validation)[0], loss(train(penalties, training)[0], test)[0]
        print(f"{name:20} validation loss {seen:.4f}, on new data {unseen:.4f}")
    if given.picture is not None:
        runs = {
            label: [search(training, validation, method=method, jac=jac, seed=seed) for seed in range(5)]
            for label, method, jac in (
                ("auto", "auto", True),
                ("l-bfgs", "l-bfgs", True),
                ("log-ei, no gradients", "log-ei", False),
            )
        }
        draw_picture(result, runs, validation_loss(common, training, validation)[0], given.picture)


if __name__ == "__main__":
    main()
