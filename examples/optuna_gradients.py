"""Optuna with gradients: find the damped oscillation behind some measurements.

    python examples/optuna_gradients.py

The misfit has a local optimum for nearly every frequency, and its gradient comes from torch. The parameters are
suggested as always; one line more reports the gradient.
"""

import optuna
import torch

from eign.integrations.autodiff import from_torch
from eign.integrations.optuna import GradientSampler, set_gradient

TIMES = torch.linspace(0.0, 6.0, 60, dtype=torch.float64)
TRUTH = {"frequency": 3.7, "damping": 0.25, "amplitude": 1.3}


def oscillation(p: dict[str, float | torch.Tensor]) -> torch.Tensor:
    """What the instrument sees, at `TIMES`."""
    return p["amplitude"] * torch.exp(-p["damping"] * TIMES) * torch.cos(p["frequency"] * TIMES)


MEASURED = oscillation(TRUTH)
misfit = from_torch(lambda p: ((oscillation(p) - MEASURED) ** 2).mean())


def objective(trial: optuna.Trial) -> float:
    """Mean squared error, with its gradient reported on the way."""
    parameters = {
        "frequency": trial.suggest_float("frequency", 0.5, 9.0),
        "damping": trial.suggest_float("damping", 0.01, 3.0, log=True),
        "amplitude": trial.suggest_float("amplitude", 0.1, 4.0),
    }
    value, gradient = misfit(parameters)
    set_gradient(trial, gradient)
    return value


def main() -> None:
    """Fifty trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=GradientSampler(seed=0))
    study.optimize(objective, n_trials=50)
    print(f"misfit {study.best_value:.2e} after {len(study.trials)} trials")
    for name, truth in TRUTH.items():
        print(f"{name:9} {study.best_params[name]:.3f}, truth {truth}")


if __name__ == "__main__":
    main()
