"""What does it cost to evaluate four points at a time? Regret after the same number of evaluations, against one.

    python -m eign_lab.studies.batch_quality [--seeds 10] [--processes 1] [--show]

Workers are simulated: durations are drawn log-uniformly over a decade, and events are played in order of time, so that
points are asked exactly as on real asynchronous workers and the result is the same on every machine. One worker is the
same program with one. Both start from the same initial design. Writes one line a run to results/batch_quality.jsonl as
it goes, and skips what is there already.
"""

import argparse
import heapq
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[3] / "results" / "batch_quality.jsonl"
PROBLEMS = {"branin-2": 30, "shekel-4": 60, "hartmann-6": 70, "levy-6": 70, "griewank-10": 80}
METHODS = ("auto", "ei-gn")
WORKERS = (1, 4)


def run(problem_name: str, method: str, workers: int, seed: int) -> dict[str, Any]:
    """One simulated run on one thread: the best value after each evaluation that came back."""
    import torch

    import eign

    torch.set_num_threads(1)
    problem = eign.problems.get(problem_name)
    budget = PROBLEMS[problem_name]
    optimizer = eign.Optimizer(problem.bounds, method=method, seed=seed, maximize=True)
    rng = np.random.default_rng([seed, workers])
    running: list[tuple[float, int, np.ndarray]] = []
    now, asked = 0.0, 0
    while len(optimizer.history) < budget:
        while len(running) < workers and asked < budget:
            heapq.heappush(running, (now + 10.0 ** rng.uniform(), asked, optimizer.ask()))
            asked += 1
        now, _, x = heapq.heappop(running)
        optimizer.tell(x, *problem(x))
    best = np.maximum.accumulate(optimizer.history.y)
    return {"problem": problem_name, "method": method, "workers": workers, "seed": seed, "best": best.tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the table of what is there")
    arguments = parser.parse_args()
    if not arguments.show:
        _run_missing(arguments.seeds, arguments.processes)
    show()


def _run_missing(seeds: int, processes: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["problem"], r["method"], r["workers"], r["seed"]) for r in _stored()}
    keys = [(p, m, w, s) for s in range(seeds) for p in PROBLEMS for m in METHODS for w in WORKERS]
    with ProcessPoolExecutor(processes, initializer=os.nice, initargs=(5,)) as pool, RESULTS.open("a") as file:
        for future in as_completed([pool.submit(run, *key) for key in keys if key not in done]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()


def show() -> None:
    """The table: median regret at the end and half-way, and in how many seeds one at a time was better."""
    from eign import problems

    runs = {(r["problem"], r["method"], r["workers"], r["seed"]): np.array(r["best"]) for r in _stored()}
    print(
        "| problem | evaluations | method | one at a time | four at a time | better: one / equal / four | p | seeds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for problem, budget in PROBLEMS.items():
        optimum = problems.get(problem).optimum
        for method in METHODS:
            seeds = [s for p, m, w, s in runs if (p, m, w) == (problem, method, 1) and (p, m, 4, s) in runs]
            for count in (budget // 2, budget):
                pair = [[optimum - runs[problem, method, w, s][count - 1] for s in seeds] for w in WORKERS]
                if seeds:
                    print(_row(problem, count, method, *map(np.array, pair)))


def _row(problem: str, count: int, method: str, one: np.ndarray, four: np.ndarray) -> str:
    """Medians, and the paired comparison: regrets within a thousandth of the larger median count as equal."""
    from scipy.stats import wilcoxon

    equal = np.abs(one - four) <= 1e-3 * max(np.median(one), np.median(four), 1e-9)
    better = f"{(~equal & (one < four)).sum()} / {equal.sum()} / {(~equal & (four < one)).sum()}"
    p = wilcoxon(one, four).pvalue if np.any(one != four) else 1.0
    chance = "< 0.01" if p < 0.01 else f"{p:.2f}"
    medians = f"{np.median(one):.2g} | {np.median(four):.2g}"
    return f"| {problem} | {count} | `{method}` | {medians} | {better} | {chance} | {len(one)} |"


def _stored() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


if __name__ == "__main__":
    main()
