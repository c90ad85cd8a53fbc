"""The tables of a report, as rows of text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from eign.arrays import Array
from eign.plot.bands import MeanAndError, mean_and_error, regret_band
from eign_lab.runs.outcomes import MethodRuns, ProblemOutcome
from eign_lab.statistics import (
    evaluations_to_target,
    holm,
    paired_interval,
    paired_wilcoxon,
    share_at_optimum,
)

NOTHING: Final = "–"
FOUND: Final = 0.01
"""The optimum is found if the last best value is as near to it as this share of what there was to gain."""

TARGETS: Final = (0.5, 0.9, 0.99)
"""Shares of what there was to gain."""

REFERENCES: Final = ("EI-GN", "alpha = 0.6")
"""The method that the others are compared with, the first that is there."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of text; the first column is the name of the row."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def as_markdown_table(table: Table) -> str:
    r"""A table with the first column to the left and the others to the right.

    >>> print(as_markdown_table(Table("t", ("a", "b"), (("x|y", "1"),))))
    | a | b |
    |---|---:|
    | x\|y | 1 |
    """
    rule = "|---|" + "---:|" * (len(table.headings) - 1)
    rows = [_row(row) for row in table.rows]
    return "\n".join([_row(table.headings), rule, *rows])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(without_tags(cell).replace("|", "\\|") for cell in cells) + " |"


def without_tags(text: str) -> str:
    """Text for Markdown, in one line, whose tags are shown and not obeyed; Markdown lets HTML through.

    >>> without_tags("p < 0.05 <script>")
    'p < 0.05 &lt;script>'
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.splitlines()))


Published = Mapping[tuple[str, str], Mapping[int, MeanAndError]]
"""What a paper states: for a problem and a method, by their labels, at some numbers of evaluations."""


def checkpoint_table(problem: ProblemOutcome, published: Published) -> Table:
    """Mean and standard error of the best value at the paper's numbers of evaluations, beside the paper's."""
    spec = problem.spec
    stated = {method: published[spec.label, method] for method in problem.runs if (spec.label, method) in published}
    headings = ["method", "seeds"]
    for count in spec.checkpoints:
        headings.append(f"at {count}")
        headings += [f"paper at {count}"] * any(count in row for row in stated.values())
    rows = []
    for method, runs in problem.runs.items():
        row = [method, str(len(runs.seeds))]
        for count in spec.checkpoints:
            row.append(plus_minus(np.array(list(runs.at(count).values()))))
            if f"paper at {count}" in headings:
                known = stated.get(method, {}).get(count)
                row.append(NOTHING if known is None else f"{known.mean:g} ± {known.error:g}")
        rows.append(tuple(row))
    note = "Mean and one standard error of the best value over seeds."
    if len({runs.seeds for runs in problem.runs.values()}) > 1:
        note += " Methods have different seeds here: compare them by the paired columns below."
    return Table("Best value", tuple(headings), tuple(rows), note)


def ending_table(problem: ProblemOutcome) -> Table:
    """What the runs came to: regret, share at the optimum, evaluations to targets, time, and paired tests."""
    spec, optimum, reference = problem.spec, problem.optimum, reference_method(problem)
    gain = problem.reference - float(np.median(problem.initial))
    tests = _tests(problem, reference)
    headings = ("method", "regret", "optimum found", *(f"to {share:.0%}" for share in TARGETS), "s per suggestion")
    rows = []
    for method, runs in problem.runs.items():
        last = runs.best[:, -1]
        regret = NOTHING if optimum is None else f"{regret_band(last[:, None], optimum, maximize=True).middle[0]:.2g}"
        found = NOTHING
        if optimum is not None:
            found = f"{round(len(last) * share_at_optimum(last, optimum, margin=FOUND * gain))} of {len(last)}"
        targets = [_median_count(runs, problem.reference - (1.0 - share) * gain) for share in TARGETS]
        seconds = NOTHING if np.isnan(runs.median_seconds) else f"{runs.median_seconds:.2g}"
        rows.append((method, regret, found, *targets, seconds, *tests.get(method, (NOTHING,) * 3)))
    compared = (f"minus {reference}", "p", "p (Holm)") if reference else ()
    width = len(headings) + len(compared)
    best = "the optimum" if optimum is not None else f"the best value seen, {problem.reference:.4g}"
    note = (
        f"After {spec.budget} evaluations, or as many as there are. Regret: geometric mean. Found: within "
        f"{FOUND:.0%} of the gain, which is from the median of the initial designs' best to {best}. To a share of "
        "the gain: median of evaluations, and how many runs got there. Suggestion: median of the "
        "runs' medians. Last columns: mean paired difference with its "
        "90 % interval, Wilcoxon's p, and the same after Holm over this table."
    )
    return Table("At the end", (*headings, *compared), tuple(row[:width] for row in rows), note)


def reference_method(problem: ProblemOutcome) -> str:
    """The method that the others are compared with; empty if there is none."""
    return next((name for name in REFERENCES if name in problem.runs), "")


def plus_minus(values: Array) -> str:
    """Mean and standard error as text.

    >>> plus_minus(np.array([1.0, 2.0, 3.0])), plus_minus(np.array([1.5])), plus_minus(np.array([]))
    ('2 ± 0.58', '1.5', '–')
    """
    if not len(values):
        return NOTHING
    mean, error = mean_and_error(values)
    return f"{float(mean):.4g} ± {float(error):.2g}" if len(values) > 1 else f"{float(mean):.4g}"


def _median_count(runs: MethodRuns, target: float) -> str:
    counts = evaluations_to_target(runs.best, target)
    reached = int(np.isfinite(counts).sum())
    # The larger of the middle two: an average with infinity would be none.
    median = float(np.sort(counts)[len(counts) // 2])
    return f"{median:.0f} ({reached}/{len(counts)})" if np.isfinite(median) else f"{NOTHING} ({reached}/{len(counts)})"


def _tests(problem: ProblemOutcome, reference: str) -> dict[str, tuple[str, str, str]]:
    """Difference, p and adjusted p against the reference, at the last evaluation that both have come to."""
    if not reference:
        return {}
    differences, p_values = {}, []
    base = problem.runs[reference]
    for method, runs in problem.runs.items():
        last = min(runs.evaluations, base.evaluations)
        mine, theirs = runs.at(last), base.at(last)
        common = [seed for seed in mine if seed in theirs]
        if method == reference or not common:
            continue
        first, second = (np.array([found[seed] for seed in common]) for found in (mine, theirs))
        mean, low, high = paired_interval(first, second)
        differences[method] = f"{mean:.3g}" + (f" ({low:.2g} to {high:.2g})" if len(common) > 1 else "")
        p_values.append(paired_wilcoxon(first, second))
    adjusted = holm(p_values)
    return {
        method: (text, f"{p:.2g}", f"{after:.2g}")
        for (method, text), p, after in zip(differences.items(), p_values, adjusted, strict=True)
    }
