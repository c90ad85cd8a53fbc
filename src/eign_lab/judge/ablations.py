"""What each part of `auto` is good for: the method without it, on tuning seeds.

    python -m eign_lab.judge.ablations --seeds 100-105 --workers 2

Runs what is missing, prints the table and writes it to results/auto/ablations.md. Every variant is compared with `auto`
on the runs that both have, paired by problem and seed.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from scipy.stats import wilcoxon

from eign_lab.judge.cases import CASES
from eign_lab.judge.command import RESULTS, Job, seeds_of, stored, work
from eign_lab.judge.scores import AT_OPTIMUM, regret_at, third

PROBLEMS: Final = (
    *("shekel-4-shifted", "hartmann-6-rotated", "cosine-8-shifted", "cosine-8-rotated", "michalewicz-5-coupled"),
    *("gp-sample-4", "griewank-10-shifted", "rosenbrock-6"),
)
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "auto": {},
    "auto, full kernel only": {"kernel": "matern52"},
    "auto, additive terms always": {"kernel": "two-additive+full"},
    "auto, model without gradients": {"gradients": False},
    "auto, values as they are": {"compress": False},
    "auto, no trust region": {"local": False},
    "auto, no bowl": {"bowl": False},
    "auto, no restarts": {"climbs": False},
    "auto, with stationarity": {"alpha": 0.6},
    "auto, refit at 50 per cent": {"refit": 0.5},
}

Key = tuple[str, int]
Records = Mapping[Key, Mapping[str, Any]]
"""Runs of one variant by problem and seed."""


def table(records: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[str]:
    """A line for each variant: mean regrets at a third and at the end, runs at the optimum, and how they differ."""
    by_label: dict[str, dict[Key, Mapping[str, Any]]] = {label: {} for label in VARIANTS}
    for record in records:
        key = (record["problem"], record["seed"])
        if record["label"] in by_label and key[0] in PROBLEMS and key[1] in seeds:
            by_label[record["label"]][key] = record
    lines = [
        "| variant | runs | at 1/3 | `auto` | p | at the end | `auto` | p | at the optimum | `auto` |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    return lines + [_line(label, runs, by_label["auto"]) for label, runs in by_label.items() if runs]


def _line(label: str, runs: Records, full: Records) -> str:
    common = sorted(runs.keys() & full.keys())
    cells = [label, str(len(common))]
    for is_early in (True, False):
        ours, theirs = (_regrets(found, common, is_early=is_early) for found in (runs, full))
        cells += [f"{ours.mean():.3f}", f"{theirs.mean():.3f}", _significance(ours, theirs)]
    cells += [str(int((_regrets(found, common, is_early=False) < AT_OPTIMUM).sum())) for found in (runs, full)]
    return f"| {' | '.join(cells)} |"


def _regrets(runs: Records, keys: Sequence[Key], *, is_early: bool) -> np.ndarray:
    """As shares of the scale."""
    found = []
    for key in keys:
        case = CASES[key[0]]
        found.append(regret_at(runs[key]["regrets"], third(case.budget) if is_early else case.budget) / case.scale)
    return np.array(found)


def _significance(ours: np.ndarray, theirs: np.ndarray) -> str:
    # Regrets below the judge's resolution are equal.
    difference = np.where(np.abs(ours - theirs) < 1e-6, 0.0, ours - theirs)
    return f"{wilcoxon(difference, zero_method='zsplit').pvalue:.2g}" if difference.any() else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", default=["100-105"], help="numbers and ranges")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    seeds = seeds_of(arguments.seeds)
    jobs = [
        Job(problem, "auto", label, json.dumps(options, sort_keys=True), seed)
        for seed in seeds
        for label, options in VARIANTS.items()
        for problem in PROBLEMS
    ]
    work(jobs, workers=arguments.workers)
    lines = table(list(stored()), seeds)
    print("\n".join(lines))
    head = f"Means over {len(PROBLEMS)} problems and seeds {seeds[0]} to {seeds[-1]}; regrets as shares of the scale."
    (RESULTS / "ablations.md").write_text("\n".join(["# Parts of auto", "", head, "", *lines, ""]))


if __name__ == "__main__":
    main()
