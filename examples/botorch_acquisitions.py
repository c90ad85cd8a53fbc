"""eign's models in BoTorch's hands: its acquisitions and ours, one point and batches, by `optimize_acqf`.

    python examples/botorch_acquisitions.py

The function is Hartmann's in three dimensions, moved so that nothing is in the middle; a fifth of the partial
derivatives is missing. Every row of the table is one model, one acquisition and the same twelve points at the start.
"""

from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction, LogExpectedImprovement, qLogExpectedImprovement
from botorch.optim import optimize_acqf
from torch import Tensor

import eign
from eign.acquisition import EIGN, EIg, incumbent, stationary_incumbent
from eign.models import IndependentGradientGP, JointGradientGP

Model = IndependentGradientGP | JointGradientGP
PROBLEM = eign.problems.dropped_gradients(
    eign.problems.shifted(eign.problems.get("hartmann-3"), seed=4), share=0.2, seed=0
)
CUBE = torch.stack([torch.zeros(3), torch.ones(3)]).double()


def evaluate(X: Tensor) -> tuple[Tensor, Tensor]:
    """Values `n x 1` and gradients `n x d` with respect to the unit cube, NaN where they are missing."""
    x = PROBLEM.bounds.from_unit(X.numpy())
    y, grad = PROBLEM.evaluate(x)
    return torch.tensor(y)[:, None], torch.tensor(PROBLEM.bounds.times_unit_scale(grad, x))


def log_ei(model: Model) -> AcquisitionFunction:
    """BoTorch's, for one point."""
    return LogExpectedImprovement(model, best_f=torch.tensor(incumbent(model).best_f, dtype=torch.float64))


def q_log_ei(model: Model) -> AcquisitionFunction:
    """BoTorch's, for several points at once, by Monte Carlo."""
    return qLogExpectedImprovement(model, best_f=torch.tensor(incumbent(model).best_f, dtype=torch.float64))


def ei_gn(model: Model) -> AcquisitionFunction:
    """Ours: expected improvement less the expected growth of the gradient."""
    _, best_f, best_grad = incumbent(model)
    return EIGN(model, best_f, best_grad, alpha=0.01)


def ei_g(model: Model) -> AcquisitionFunction:
    """Ours: exact expected improvement of f - alpha |grad f|^2."""
    _, best_f, best_grad = stationary_incumbent(model, alpha=0.01)
    return EIg(model, best_f, best_grad, alpha=0.01)


def search(kind: type[Model], acquisition: Callable[[Model], AcquisitionFunction], *, q: int, rounds: int) -> Tensor:
    """Best value after each round."""
    torch.manual_seed(0)
    X = torch.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(12, dtype=torch.float64)
    Y, G = evaluate(X)
    model, best = kind(X, Y, G), [Y.max()]
    for _ in range(rounds):
        model = eign.models.fit(model)  # starts from the last hyperparameters
        x, _ = optimize_acqf(acquisition(model), bounds=CUBE, q=q, num_restarts=4, raw_samples=64)
        y, g = evaluate(x)
        model = model.append(x, y, g)
        best.append(torch.maximum(best[-1], y.max()))
    return torch.stack(best)


def main() -> None:
    """Four ways, eight further evaluations each."""
    print(f"optimum {PROBLEM.optimum:.4f}")
    for kind, acquisition, q in (
        (JointGradientGP, log_ei, 1),
        (JointGradientGP, q_log_ei, 2),
        (IndependentGradientGP, ei_gn, 1),
        (JointGradientGP, ei_g, 1),
    ):
        best = search(kind, acquisition, q=q, rounds=8 // q)
        print(f"{kind.__name__:22} {acquisition.__name__:9} q = {q}: {best[0]:.4f} to {best[-1]:.4f}")


if __name__ == "__main__":
    main()
