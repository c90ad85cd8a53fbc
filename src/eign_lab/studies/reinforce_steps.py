"""Which step REINFORCE should take by default: mean best return after 100 evaluations, on seeds that no study uses.

Run: python -m eign_lab.studies.reinforce_steps [seeds]
"""

import sys

import numpy as np

from eign import Optimizer, problems

PROBLEMS = ("acrobot-6", "cartpole-13", "cartpole-fixed-13")
STEPS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
BUDGET = 100
FIRST_SEED = 1000


def best_return(name: str, step: float, seed: int) -> tuple[float, float]:
    """Best of the initial design and best of all; the method alone, without the checks of a study."""
    problem = problems.get(name, seed=seed)
    options = {"method": "reinforce", "options": {"step": step}, "check_gradients": False}
    optimizer = Optimizer(problem.bounds, seed=seed, maximize=True, **options)
    for _ in range(BUDGET):
        x = optimizer.ask()
        optimizer.tell(x, *problem(x))
    values = optimizer.history.y
    return float(values[: 3 * problem.dim].max()), float(values.max())


def main() -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + (int(sys.argv[1]) if len(sys.argv) > 1 else 10))
    print("| problem | step | best of the design | best of all | +- |\n|---|---|---|---|---|")
    for name in PROBLEMS:
        for step in STEPS:
            design, best = np.array([best_return(name, step, seed) for seed in seeds]).T
            error = best.std(ddof=1) / np.sqrt(len(best))
            print(f"| {name} | {step:g} | {design.mean():.4g} | {best.mean():.4g} | {error:.2g} |", flush=True)


if __name__ == "__main__":
    main()
