"""What each part of `auto` is good for: the method without it on tuning seeds, paired by problem and seed."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from eign.arrays import Array
from eign_lab.judge.cases import CASES
from eign_lab.judge.contestants import VARIANTS, judge_experiment
from eign_lab.judge.scores import AT_OPTIMUM, third
from eign_lab.report.summaries import Table
from eign_lab.runs.store import Records, RunRecord, collect
from eign_lab.statistics import paired_wilcoxon

PROBLEMS: Final = (
    *("shekel-4-shifted", "hartmann-6-rotated", "cosine-8-shifted", "cosine-8-rotated", "michalewicz-5-coupled"),
    *("gp-sample-4", "griewank-10-shifted", "rosenbrock-6"),
)
SEEDS: Final = range(100, 106)
_RESOLUTION: Final = 1e-6
_HEADS: Final = (
    *("variant", "runs", "at 1/3", "`auto`", "p", "at the end", "`auto`", "p", "at the optimum", "`auto`"),
)

Runs = Mapping[tuple[str, int], RunRecord]
"""Finished runs of one variant by problem and seed."""


def ablation_table(results: Records, seeds: Sequence[int] = SEEDS) -> Table:
    """A row for each variant: mean regrets at a third and at the end, runs at the optimum, and how they differ."""
    found = collect(results, judge_experiment(VARIANTS, problems=PROBLEMS), seeds)
    variants: dict[str, dict[tuple[str, int], RunRecord]] = {method.label: {} for method in VARIANTS}
    for (problem, label), records in found.items():
        variants[label] |= {(problem, record.spec.seed): record for record in records if record.finished}
    rows = tuple(_row(label, runs, variants["auto"]) for label, runs in variants.items() if runs)
    note = (
        f"Means over {len(PROBLEMS)} problems and seeds {min(seeds)} to {max(seeds)}; regrets as shares of the scale."
    )
    return Table("Parts of auto", _HEADS, rows, note)


def _row(label: str, runs: Runs, full: Runs) -> tuple[str, ...]:
    common = sorted(runs.keys() & full.keys())
    cells = [label, str(len(common))]
    for is_early in (True, False):
        ours, theirs = (_regrets(found, common, is_early=is_early) for found in (runs, full))
        cells += [f"{ours.mean():.3f}", f"{theirs.mean():.3f}", _significance(ours, theirs)]
    cells += [str(int((_regrets(found, common, is_early=False) < AT_OPTIMUM).sum())) for found in (runs, full)]
    return tuple(cells)


def _regrets(runs: Runs, keys: Sequence[tuple[str, int]], *, is_early: bool) -> Array:
    """As shares of the scale."""
    found = []
    for key in keys:
        case = CASES[key[0]]
        best = runs[key].trace.first(third(case.budget) if is_early else case.budget).last
        found.append((case.optimum - best) / case.scale)
    return np.array(found)


def _significance(ours: Array, theirs: Array) -> str:
    # Regrets below the judge's resolution are equal.
    difference = np.where(np.abs(ours - theirs) < _RESOLUTION, 0.0, ours - theirs)
    return f"{paired_wilcoxon(difference, np.zeros(len(difference))):.2g}" if difference.any() else "-"
