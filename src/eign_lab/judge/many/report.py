"""The judge's report in many dimensions: a line for each problem and budget, and the bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, final

import numpy as np

from eign_lab.judge.many.cases import CASES, CONVERGED, GROUPS, SEEDS, Case, instance_of
from eign_lab.judge.many.contestants import RIVALS
from eign_lab.judge.scores import strongest
from eign_lab.judge.verdicts import Comparison, as_word, bar, compare_regrets, not_worse_bar
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.experiment import Experiment, MethodSpec
from eign_lab.runs.outcomes import MethodRuns
from eign_lab.runs.store import Records, collect
from eign_lab.statistics import LEAST_SEEDS

EARLY_SHARE: Final = 0.5
"""The bar: problems on which half of the budget is enough for what the best rival reaches with all of it."""
_TUNING_SEEDS: Final = 2


@final
@dataclass(frozen=True)
class Sheet:
    """What is known about one problem with one budget.

    Attributes:
        case: The problem.
        budget: One of its budgets, the end of what is compared.
        label: The method that is judged.
        runs: On the seeds that are scored, by method; those without runs of this length are left out.
        tuning: On the tuning seeds.
    """

    case: Case
    budget: int
    label: str
    runs: Mapping[str, MethodRuns]
    tuning: Mapping[str, MethodRuns]

    def regrets(self, runs: MethodRuns, evaluation: int | None = None) -> dict[int, float]:
        """By seed, in the units of the problem."""
        found = runs.at(self.budget if evaluation is None else evaluation)
        return {
            seed: float(np.maximum(0.0, self.case.optimum(instance_of(seed)) - value)) for seed, value in found.items()
        }

    @property
    def scale(self) -> float:
        """Of the instance that is scored."""
        return self.case.scales[instance_of(self.runs[self.label].seeds[0])]

    @cached_property
    def rival(self) -> str | None:
        """The smallest mean regret at the end on the tuning seeds."""
        enough = {name: runs for name, runs in self.tuning.items() if name != self.label and name in self.runs}
        enough = {name: runs for name, runs in enough.items() if len(runs.seeds) >= _TUNING_SEEDS}
        return strongest({name: self.regrets(runs).values() for name, runs in enough.items()})

    def compare(self, evaluation: int | None = None) -> Comparison:
        """The method after so many evaluations with the rival at the end."""
        if self.rival is None or self.label not in self.runs:
            return compare_regrets({}, {})
        ours, theirs = self.regrets(self.runs[self.label], evaluation), self.regrets(self.runs[self.rival])
        return compare_regrets(ours, theirs, self.scale)

    @property
    def is_early(self) -> bool:
        """Whether the mean regret at half of the budget is at most the rival's at the end."""
        return self.compare(self.budget // 2).interval.mean <= 0.0

    def mean(self, label: str | None, evaluation: int | None = None) -> str:
        """The mean regret of a method, in words."""
        if label is None or label not in self.runs:
            return "-"
        return f"{np.mean(list(self.regrets(self.runs[label], evaluation).values())):.3g}"


def make_sheets(results: Records, method: MethodSpec, seeds: str) -> list[Sheet]:
    """One sheet for each problem and budget; a run counts at the budgets that it has reached."""
    known = {method.label: method} | {rival.label: rival for rival in RIVALS if rival.label != method.label}
    problems = tuple(case.spec for case in CASES.values())
    experiment = Experiment("many", "Many dimensions", problems, tuple(known.values()))
    found = {name: collect(results, experiment, wanted) for name, wanted in SEEDS.items()}

    def runs(case: Case, budget: int, name: str) -> dict[str, MethodRuns]:
        goal = case.spec.goal._replace(budget=budget)
        cut = {label: [record.up_to(goal) for record in found[name][case.name, label]] for label in known}
        finished = {label: [record for record in records if record.finished] for label, records in cut.items()}
        return {label: MethodRuns.of(records, budget) for label, records in finished.items() if records}

    return [
        Sheet(case, budget, method.label, runs(case, budget, seeds), runs(case, budget, "tuning"))
        for case in CASES.values()
        for budget in case.budgets
    ]


def write_report(results: Records, method: MethodSpec, seeds: str, directory: Path) -> str:
    """The report, written into the directory."""
    sheets, label = make_sheets(results, method, seeds), method.label
    blocks = [f"# {label} in many dimensions, {seeds} seeds", "\n".join(_LEGEND)]
    for group, title in GROUPS.items():
        blocks += [f"## {title}", as_markdown_table(_table([s for s in sheets if s.case.group == group]))]
    blocks += ["## Rivals", "Mean regrets at the last budget.", as_markdown_table(_rivals_table(sheets))]
    blocks += ["## Bars", "\n".join(bars(sheets))]
    text = "\n\n".join(blocks) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{label.replace(' ', '-')}-{seeds}.md").write_text(text, encoding="utf-8")
    return text


_LEGEND: Final = (
    "Regrets are means over the seeds, in the units of the problem; below the maximum, or below the best of long",
    "runs where that is not known. The scale is the regret of the median best of ten Sobol points. One run is read at",
    "all budgets of its problem; seconds are of the whole run. The rival has the smallest mean regret on the tuning",
    "instance at that budget. Not worse: the upper end of the 90 per cent interval (bootstrap over the seeds) of the",
    "paired difference to the rival's regret at the end is below 2 per cent of the scale.",
)
_HEADS: Final = (
    *("problem", "d", "budget", "scale", "rival", "rival's regret", "at half", "at the end", "seeds"),
    *("not worse", "rival's end at half", "median ms", "longest s"),
)


def _table(of_group: Sequence[Sheet]) -> Table:
    rows = []
    for sheet in of_group:
        case, ours = sheet.case, sheet.runs.get(sheet.label)
        published = f"published {case.published:g}" if case.published is not None else None
        rows.append(
            (
                case.name,
                str(case.dim),
                str(sheet.budget),
                "-" if ours is None else f"{sheet.scale:.3g}",
                published or sheet.rival or "-",
                "-" if published else sheet.mean(sheet.rival),
                sheet.mean(sheet.label, sheet.budget // 2),
                sheet.mean(sheet.label),
                "-" if ours is None else str(len(ours.seeds)),
                as_word(sheet.compare().not_worse),
                "yes" if sheet.is_early else "no",
                "-" if ours is None else f"{1000 * ours.median_seconds:.0f}",
                "-" if ours is None else f"{max(timing.longest for timing in ours.timings):.2f}",
            )
        )
    return Table("", _HEADS, tuple(rows))


def _rivals_table(sheets: Sequence[Sheet]) -> Table:
    labels = list(dict.fromkeys([sheets[0].label, *(rival.label for rival in RIVALS)]))
    there = [sheet for sheet in sheets if sheet.runs and sheet.budget == sheet.case.budgets[-1]]
    rows = [(sheet.case.name, *(sheet.mean(label) for label in labels)) for sheet in there]
    return Table("", ("problem", *labels), tuple(rows))


def bars(sheets: Sequence[Sheet]) -> list[str]:
    """What is asked of a default method in many dimensions: met or missed."""
    label, by_length = sheets[0].label, dict[str, list[Sheet]]()
    for sheet in sheets:
        if sheet.case.published is None:
            length = "" if sheet.budget == sheet.case.budgets[0] else f"with {sheet.budget} evaluations: "
            by_length.setdefault(length, []).append(sheet)
    lines = [line for length, wanted in by_length.items() for line in _rival_bars(wanted, length)]
    for sheet in sheets:
        if sheet.case.published is not None and label in sheet.runs:
            reached = float(np.mean(list(sheet.regrets(sheet.runs[label]).values())))
            enough = len(sheet.runs[label].seeds) >= LEAST_SEEDS
            words = f"{sheet.case.name}: {reached:.3g}, published {sheet.case.published:g}"
            lines.append(bar(reached < sheet.case.published, enough, words))
    return [*lines, *_beaten(sheets)] or ["- no runs to compare"]


def _beaten(sheets: Sequence[Sheet]) -> list[str]:
    """Problems whose best known value a run is above: its regret counts as 0, and those of all others are too small."""
    lines = []
    for sheet in sheets:
        for runs in sheet.runs.values() if sheet.budget == sheet.case.budgets[-1] else ():
            best, optimum = float(runs.best[:, -1].max()), sheet.case.optimum(instance_of(runs.seeds[0]))
            if best > optimum + CONVERGED * sheet.scale:
                lines.append(f"- the best value known of {sheet.case.name} is {optimum!r}, a run has {best!r}")
    return lines


def _rival_bars(wanted: Sequence[Sheet], length: str) -> list[str]:
    judged = [sheet for sheet in wanted if sheet.label in sheet.runs and sheet.rival]
    if not judged:
        return []
    seeds = min(len(sheet.runs[sheet.label].seeds) for sheet in judged)
    complete = len(judged) == len(wanted) and seeds >= LEAST_SEEDS
    early = sum(sheet.is_early for sheet in judged)
    half = f"at half of the budget the rival's final regret on {early} of {len(judged)}"
    return [
        not_worse_bar({sheet.case.name: sheet.compare().not_worse for sheet in judged}, complete, length),
        bar(early >= EARLY_SHARE * len(judged), complete, length + half),
    ]
