"""Optuna's GPSampler and ours with gradients: trials until the mean best value is GPSampler's final one.

    python -m eign_lab.studies.optuna_comparison [--seeds 10] [--problems branin-2 hartmann-6]

One problem for each dimension from 2 to 6, shifted anew for each seed, 20 + 10 d trials. Both samplers know nothing of
the problem but the ranges of the parameters; GPSampler is told that values have no noise. Writes one line a run to
results/optuna_comparison.jsonl as it goes, prints it, and skips what is there already.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import torch

import eign
from eign.integrations.optuna import GradientSampler, set_gradient

RESULTS = Path(__file__).parents[3] / "results" / "optuna_comparison.jsonl"
PROBLEMS = ("branin-2", "rosenbrock-3", "shekel-4", "ackley-5", "hartmann-6")
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "gradients": lambda seed: GradientSampler(seed=seed),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed, deterministic_objective=True),
}


def budget(problem: str) -> int:
    """Trials of one run.

    >>> budget("branin-2")
    40
    """
    return 20 + 10 * eign.problems.get(problem).dim


def run(name: str, sampler: str, seed: int) -> dict[str, object]:
    """One study on one thread: the best value after each trial."""
    torch.set_num_threads(1)
    problem = eign.problems.shifted(eign.problems.get(name), seed=seed)
    ranges = {f"x{i}": pair for i, pair in enumerate(zip(problem.bounds.lower, problem.bounds.upper, strict=True))}

    def objective(trial: optuna.Trial) -> float:
        value, gradient = problem([trial.suggest_float(key, low, high) for key, (low, high) in ranges.items()])
        if sampler == "gradients":
            set_gradient(trial, dict(zip(ranges, gradient, strict=True)))
        return value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(direction="maximize", sampler=SAMPLERS[sampler](seed))
    start = time.perf_counter()
    study.optimize(objective, n_trials=budget(name))
    best = np.maximum.accumulate([trial.value for trial in study.trials]).tolist()
    return {
        "problem": name,
        "sampler": sampler,
        "seed": seed,
        "optimum": problem.optimum,
        "best": best,
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, choices=PROBLEMS)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["problem"], r["sampler"], r["seed"]) for r in stored()}
    todo = [(p, s, seed) for seed in range(arguments.seeds) for p in arguments.problems for s in SAMPLERS]
    with RESULTS.open("a") as file:
        for key in (key for key in todo if key not in done):
            result = run(*key)
            file.write(json.dumps(result) + "\n")
            file.flush()
            print(
                f"{key[0]:13} {key[1]:10} seed {key[2]}: {result['best'][-1]:9.4f}, {result['seconds']:.0f} s",
                flush=True,
            )
    show()


def show() -> None:
    """The table: GPSampler's final mean, and when ours reaches it."""
    runs = stored()
    print(
        "\n| problem | optimum | trials | seeds | GPSampler, mean at the end | ours, mean at a third | reached after |"
    )
    print("|---|---|---|---|---|---|---|")
    for problem in PROBLEMS:
        best = {
            sampler: {r["seed"]: r["best"] for r in runs if r["problem"] == problem and r["sampler"] == sampler}
            for sampler in SAMPLERS
        }
        seeds = sorted(best["gp"].keys() & best["gradients"].keys())
        if not seeds:
            continue
        ours, theirs = (np.array([best[sampler][seed] for seed in seeds]) for sampler in ("gradients", "gp"))
        trials, goal = ours.shape[1], float(theirs[:, -1].mean())
        reached = np.flatnonzero(ours.mean(axis=0) >= goal)
        after = f"{reached[0] + 1} ({trials / (reached[0] + 1):.1f} times fewer)" if len(reached) else "not reached"
        optimum = next(r["optimum"] for r in runs if r["problem"] == problem)
        third = float(ours[:, trials // 3 - 1].mean())
        print(f"| {problem} | {optimum:.4f} | {trials} | {len(seeds)} | {goal:.4f} | {third:.4f} | {after} |")


def stored() -> list[dict[str, object]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


if __name__ == "__main__":
    main()
