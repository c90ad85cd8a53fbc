"""Shekel and Hartmann at the paper's budgets: mean and standard error of the best value, beside the paper's numbers.

    python benchmarks/paper_budgets.py [--workers 2] [--seeds 20]

Writes one line a run to results/paper_budgets.jsonl as it goes, and skips what is there already.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "paper_budgets.jsonl"
PROBLEMS = {"shekel-4": (125, (40, 80, 125)), "hartmann-6": (150, (50, 100, 150))}
METHODS = ("ei", "log-ei", "ei-gn", "l-bfgs", "d-ei", "d-ei-gn")
PUBLISHED = {
    ("shekel-4", "d-ei-gn"): "4.98±.52  5.01±.58  5.03±.57",
    ("shekel-4", "d-ei"): "4.18±.47  4.42±.46  4.53±.48",
    ("shekel-4", "ei-gn"): "3.05±.38  3.88±.47  4.03±.42",
    ("shekel-4", "ei"): "0.82±.09  0.93±.08  1.02±.08",
    ("hartmann-6", "ei-gn"): "3.20±.02  3.20±.02  3.20±.02",
}


def run(problem_name: str, method: str, seed: int) -> dict[str, object]:
    """One run on one thread."""
    import torch

    import eign

    torch.set_num_threads(1)
    problem = eign.problems.get(problem_name)
    budget, _ = PROBLEMS[problem_name]
    start = time.perf_counter()
    result = eign.maximize(problem, problem.bounds, method=method, budget=budget, seed=seed)
    best = np.maximum.accumulate(result.history.y)
    seconds = time.perf_counter() - start
    return {"problem": problem_name, "method": method, "seed": seed, "best": best.tolist(), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["problem"], r["method"], r["seed"]) for r in _stored()}
    todo = [(p, m, s) for s in range(arguments.seeds) for p in PROBLEMS for m in METHODS if (p, m, s) not in done]
    with ProcessPoolExecutor(arguments.workers) as pool, RESULTS.open("a") as file:
        for future in as_completed([pool.submit(run, *key) for key in todo]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()
    show()


def show() -> None:
    """The table: mean and standard error at the paper's checkpoints."""
    runs = _stored()
    for problem, (_, checkpoints) in PROBLEMS.items():
        print(f"\n{problem} at {checkpoints}")
        for method in METHODS:
            best = [r["best"] for r in runs if r["problem"] == problem and r["method"] == method]
            if not best:
                continue
            at = np.array(best)[:, np.array(checkpoints) - 1]
            error = at.std(axis=0, ddof=1) / np.sqrt(len(at))
            cells = "  ".join(f"{m:.3f}±{e:.3f}" for m, e in zip(at.mean(axis=0), error, strict=True))
            seconds = np.median([r["seconds"] for r in runs if r["problem"] == problem and r["method"] == method])
            published = PUBLISHED.get((problem, method), "-")
            print(f"{method:8} {cells}   {len(at)} seeds, {seconds:.0f} s a run   paper: {published}")


def _stored() -> list[dict[str, object]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


if __name__ == "__main__":
    main()
