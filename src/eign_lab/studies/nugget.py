"""What does a small variance on the diagonal do to whole runs? The paper's functions and methods, against its size.

    python -m eign_lab.studies.nugget [--problems shekel-4 ...] [--seeds 10]     run what is missing
    python -m eign_lab.studies.nugget --figure                                   table and figure of what there is

Each run is a line of results/nugget.jsonl, written when it ends, so that the command can be stopped and called again. A
suggestion counts as *at the incumbent* if it is within 2 per cent of each coordinate's range of the best point so far.
It is counted once the incumbent has *converged*: L-BFGS-B on the function itself, from there, gains less than 1e-3 of
what the design's best point is below the optimum.
"""

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

import eign
from eign.models.independent import fitting
from eign.models.independent import model as independent
from eign.problems import Problem

RESULTS: Final = Path("results/nugget.jsonl")
PROBLEMS: Final = {
    "shekel-4": (12, 125),
    "hartmann-6": (18, 150),
    "cosine-8": (24, 200),
    "griewank-10": (30, 300),
    "ackley-14": (42, 500),
}
"""Points of the design, and evaluations in all: the paper's."""
METHODS: Final = {"ei": "EI", "log-ei": "LogEI", "ei-gn": "EI-GN", "ucb": "UCB"}
NUGGETS: Final = (1e-6, 1e-9, 1e-12, 0.0, None)
"""The least variance on the diagonal; None is the model's rule: it begins with 1e-9 and follows the evidence."""
_RULE: Final = (fitting.LEAST_JITTER, fitting.FIRST_JITTER)
CLOSE: Final = 0.02
CONVERGED: Final = 1e-3
Run = dict[str, Any]


def run(name: str, method: str, nugget: float | None, seed: int) -> Run:
    """One study, and how many of its suggestions went to a converged incumbent."""
    problem, (count, budget) = eign.problems.get(name), PROBLEMS[name]
    # What is a constant for users is what this study varies. Of 1e-6 they are warned.
    least, first = _RULE if nugget is None else (nugget, nugget)
    independent.LEAST_JITTER, fitting.FIRST_JITTER = least, first  # type: ignore[attr-defined, misc]
    warnings.simplefilter("ignore", RuntimeWarning)
    optimizer = eign.Optimizer(
        problem.bounds, method=method, seed=seed, maximize=True, check_gradients=False, options={"n_init": count}
    )
    best, top, converged, near = -np.inf, 0, 0, 0
    left, needed = np.inf, 0.0
    trace: list[float] = []
    while len(trace) < budget:
        x = optimizer.ask()
        seen = optimizer.history
        if len(trace) >= count and left < needed:
            distance = np.abs(problem.bounds.to_unit(x[None]) - problem.bounds.to_unit(seen.x[top][None])).max()
            converged, near = converged + 1, near + int(distance < CLOSE)
        value, gradient = problem(x)
        optimizer.tell(x, value, gradient)
        if value > best:
            best, top, left = float(value), len(trace), np.inf
        trace.append(best)
        if len(trace) == count:
            needed = CONVERGED * (float(problem.optimum or 0.0) - best)
        if len(trace) >= count and not np.isfinite(left):
            left = _still_to_gain(problem, optimizer.history.x[top], best)
    points = np.unique(np.linspace(count, budget, 20).astype(int))
    return {
        "problem": name,
        "method": method,
        "nugget": nugget,
        "seed": seed,
        "converged": converged,
        "near": near,
        "evaluations": points.tolist(),
        "best": [float(f"{trace[n - 1]:.7g}") for n in points],
    }


def _still_to_gain(problem: Problem, x: np.ndarray, value: float) -> float:
    """What L-BFGS-B on the function finds above an incumbent."""
    box, start = problem.bounds, problem.bounds.to_unit(x[None])[0]

    def descent(u: np.ndarray) -> tuple[float, np.ndarray]:
        at = box.from_unit(u[None])
        found, gradient = problem.evaluate(at)
        return -float(found[0]), -np.asarray(gradient[0] * box.unit_scale(at)[0])

    end = minimize(descent, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(start))
    return float(-end.fun - value)


def read(file: Path) -> list[Run]:
    """The runs of earlier calls."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_missing(file: Path, problems: Iterable[str], seeds: int) -> None:
    """All combinations that the file does not have, seed by seed, so that what there is can be compared."""
    known = {(one["problem"], one["method"], one["nugget"], one["seed"]) for one in read(file)}
    for name in problems:
        for seed in range(seeds):
            for method in METHODS:
                for nugget in NUGGETS:
                    if (name, method, nugget, seed) in known:
                        continue
                    one = run(name, method, nugget, seed)
                    with file.open("a") as lines:
                        lines.write(json.dumps(one) + "\n")
                        lines.flush()
                        os.fsync(lines.fileno())
                    print(
                        name,
                        method,
                        nugget,
                        seed,
                        f"best {one['best'][-1]:.4g}",
                        one["near"],
                        one["converged"],
                        flush=True,
                    )


def summaries(runs: list[Run]) -> Iterator[tuple[str, str, float | None, int, tuple[float, float], float]]:
    """For each problem, method and nugget: seeds, best value with its standard error, and the share at the incumbent.

    Only seeds that all methods and nuggets of a problem have, and problems with two of them. The share is of all
    suggestions after convergence, of all seeds together; NaN if no incumbent converged.
    """
    found: dict[tuple[str, str, float | None], dict[int, Run]] = defaultdict(dict)
    for one in runs:
        found[one["problem"], one["method"], one["nugget"]][one["seed"]] = one
    for name in PROBLEMS:
        seeds = set.intersection(*(set(found[name, method, nugget]) for method in METHODS for nugget in NUGGETS))
        for method, nugget in product(METHODS, NUGGETS if len(seeds) > 1 else ()):
            mine = [found[name, method, nugget][seed] for seed in sorted(seeds)]
            best = np.array([one["best"][-1] for one in mine])
            after = sum(one["converged"] for one in mine)
            share = sum(one["near"] for one in mine) / after if after else np.nan
            error = float(best.std(ddof=1) / np.sqrt(len(best)))
            yield name, method, nugget, len(seeds), (float(best.mean()), error), share


def label(nugget: float | None) -> str:
    """As it stands in table and figure."""
    if nugget is None:
        return "fitted"
    return f"{nugget:.0e}".replace("e-0", "e-") if nugget else "none"


def draw(runs: list[Run], file: Path) -> None:
    """One column a function: above where the suggestions go, below what the run finds."""
    import matplotlib.pyplot as plt

    rows = list(summaries(runs))
    names = [name for name in PROBLEMS if any(row[0] == name for row in rows)]
    figure, axes = plt.subplots(
        2, len(names), figsize=(2.6 * len(names) + 1.6, 5.8), squeeze=False, sharex=True, layout="constrained"
    )
    positions = np.arange(len(NUGGETS))
    for (share, value), name in zip(axes.T, names, strict=True):
        mine = {row[1:3]: row for row in rows if row[0] == name}
        share.set_title(
            f"{name}\n{PROBLEMS[name][1]} evaluations, {max(row[3] for row in mine.values())} seeds", fontsize=9
        )
        for number, (method, title) in enumerate(METHODS.items()):
            aside, chosen = positions + 0.06 * (number - 1.5), [mine[method, nugget] for nugget in NUGGETS]
            share.plot(aside, [100 * row[5] for row in chosen], "o-", markersize=4, label=title)
            means, errors = zip(*(row[4] for row in chosen), strict=True)
            value.errorbar(aside, means, yerr=errors, fmt="o-", markersize=4, capsize=2)
        share.set_ylim(-3, 103)
        optimum = float(eign.problems.get(name).optimum or 0.0)
        value.axhline(optimum, color="0.6", linewidth=0.8, linestyle=":")
        # What is 1e-4 below the optimum is there: no axis that makes much of it.
        low = min(optimum - 0.02 * max(1.0, abs(optimum)), *(row[4][0] - row[4][1] for row in mine.values()))
        value.set_ylim(low - 0.05 * (optimum - low), optimum + 0.05 * (optimum - low))
        value.ticklabel_format(axis="y", useOffset=False)
        value.set_xticks(positions, [label(nugget) for nugget in NUGGETS])
        value.set_xlabel("variance on the diagonal", fontsize=9)
    axes[0, 0].set_ylabel("suggestions at the incumbent\nonce it has converged, per cent", fontsize=9)
    axes[1, 0].set_ylabel("best value at the end\n(dotted: optimum)", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(METHODS), fontsize=9)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
    figure.savefig(file)


def main() -> None:
    """Run, or draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--figure", action="store_true")
    arguments = parser.parse_args()
    if not arguments.figure:
        run_missing(arguments.results, arguments.problems, arguments.seeds)
        return
    runs = read(arguments.results)
    for name, method, nugget, seeds, (mean, error), share in summaries(runs):
        found = f"{seeds:2} seeds  {mean:8.4f} +- {error:.4f}  {share:4.0%} at the incumbent"
        print(f"{name:12} {METHODS[method]:6} {label(nugget):>6}  {found}")
    draw(runs, arguments.results.with_suffix(".svg"))


if __name__ == "__main__":
    main()
