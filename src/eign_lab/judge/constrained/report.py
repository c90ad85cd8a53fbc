"""The judge's report under constraints: a line for each problem, and the bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, final

import numpy as np

from eign_lab.judge.constrained.cases import CASES, GROUPS, SEEDS, Case
from eign_lab.judge.constrained.contestants import RIVALS
from eign_lab.judge.scores import strongest, third
from eign_lab.judge.verdicts import as_word, bar, compare_regrets, not_worse_bar
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.experiment import Experiment, MethodSpec
from eign_lab.runs.outcomes import MethodRuns, finished_runs
from eign_lab.runs.store import Records
from eign_lab.statistics import LEAST_SEEDS, NOT_WORSE, Verdict

FEASIBLE_SHARE: Final = 0.95
"""The bar: runs with a feasible point, among those where any rival has one."""
EARLY_SHARE: Final = 0.6
"""The bar: problems on which a third of the budget is not worse than the rival's all."""
_TUNING_SEEDS: Final = 3
"""Runs that make a rival: one lucky run does not."""


@final
@dataclass(frozen=True)
class Sheet:
    """What is known about one problem.

    Attributes:
        case: The problem.
        label: The method that is judged.
        runs: On the seeds that are scored, by method; those without runs are left out.
        tuning: On the tuning seeds.
    """

    case: Case
    label: str
    runs: Mapping[str, MethodRuns]
    tuning: Mapping[str, MethodRuns]

    def regrets(self, runs: MethodRuns, evaluation: int | None = None) -> dict[int, float]:
        """By seed, as shares of the scale between 0 and 1: 1 without a feasible point."""
        found = runs.at(self.case.budget if evaluation is None else evaluation)
        shares = {seed: (-value - self.case.best) / self.case.scale for seed, value in found.items()}
        return {seed: 1.0 if np.isnan(share) else float(np.clip(share, 0.0, 1.0)) for seed, share in shares.items()}

    @cached_property
    def rival(self) -> str | None:
        """The smallest mean regret at the end on the tuning seeds; of those with the same, the better one early.

        Only those that have all the seeds of the method can be it.
        """
        wanted = set(self.runs[self.label].seeds) if self.label in self.runs else set()
        enough = {
            name: runs
            for name, runs in self.tuning.items()
            if name != self.label and len(runs.seeds) >= _TUNING_SEEDS
            if name in self.runs and wanted <= set(self.runs[name].seeds)
        }
        early = third(self.case.budget)

        def score(runs: MethodRuns) -> list[float]:
            # Of rivals that all arrive, the one that was there first: a hundredth of the early regret decides.
            last, first = self.regrets(runs), self.regrets(runs, early)
            return [last[seed] + 0.01 * first[seed] for seed in last]

        return strongest({name: score(runs) for name, runs in enough.items()})

    def not_worse(self, evaluation: int | None = None) -> Verdict | None:
        """The method after so many evaluations against the rival at the end; None if they share no seed."""
        if self.rival is None or self.label not in self.runs:
            return None
        ours, theirs = self.regrets(self.runs[self.label], evaluation), self.regrets(self.runs[self.rival])
        return compare_regrets(ours, theirs).not_worse

    def feasible(self, label: str) -> set[int]:
        """Seeds whose runs have a feasible point at the end."""
        if label not in self.runs:
            return set()
        return {seed for seed, value in self.runs[label].at(self.case.budget).items() if not np.isnan(value)}

    @property
    def feasible_somewhere(self) -> set[int]:
        """Seeds for which any rival has a feasible point."""
        return set[int]().union(*(self.feasible(label) for label in self.runs if label != self.label))

    def mean(self, label: str | None, evaluation: int | None = None) -> str:
        """The mean regret of a method, in words."""
        if label is None or label not in self.runs:
            return "-"
        return f"{np.mean(list(self.regrets(self.runs[label], evaluation).values())):.2g}"


def make_sheets(results: Records, method: MethodSpec, seeds: str) -> list[Sheet]:
    """One sheet for each problem."""
    known = {method.label: method} | {rival.label: rival for rival in RIVALS if rival.label != method.label}
    problems = tuple(case.spec for case in CASES.values())
    experiment = Experiment("constrained", "All constrained problems", problems, tuple(known.values()))
    runs = {name: finished_runs(results, experiment, wanted) for name, wanted in SEEDS.items()}
    return [Sheet(case, method.label, runs[seeds][name], runs["tuning"][name]) for name, case in CASES.items()]


def write_report(results: Records, method: MethodSpec, seeds: str, directory: Path) -> str:
    """The report, written into the directory."""
    sheets, label = make_sheets(results, method, seeds), method.label
    blocks = [f"# {label} under constraints, {seeds} seeds", "\n".join(_LEGEND)]
    for group, title in GROUPS.items():
        of_group = [sheet for sheet in sheets if sheet.case.group == group]
        blocks += [f"## {title}", as_markdown_table(_table(of_group))]
    blocks += ["## Rivals", _RIVALS_LEGEND, as_markdown_table(_rivals_table(sheets))]
    blocks += ["## Bars", "\n".join(bars(sheets))]
    text = "\n\n".join(blocks) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{label.replace(' ', '-')}-{seeds}.md").write_text(text, encoding="utf-8")
    return text


_LEGEND: Final = (
    "Regrets are means over the seeds of the best feasible value minus the best known, as shares of the scale (the",
    "median distance from the best known value to that of the best point of 3 d), at least 0 and at most 1; 1 where a",
    "run has no feasible point. Feasible: each constraint holds up to 1e-6 of its scale. An evaluation is value,",
    "constraints and all gradients. Problems have d coordinates, m constraints and k known linear rows. The rival has",
    "the smallest mean regret on the tuning copies. Not worse: the upper end of the 90 per cent interval (bootstrap",
    "over the seeds) of the paired difference to the rival's regret at the full budget is below 0.02; at 1/3: the",
    "method with a third of the evaluations, the rival with all.",
)
_RIVALS_LEGEND: Final = "Runs with a feasible point, and regrets at a third and at the end, over all problems."
_HEADS: Final = (
    *("problem", "d, m, k", "budget", "best known", "rival", "rival's regret", "at 1/3", "at the end"),
    *("feasible", "not worse", "not worse at 1/3", "median ms"),
)


def _table(of_group: Sequence[Sheet]) -> Table:
    rows = []
    for sheet in of_group:
        case, ours = sheet.case, sheet.runs.get(sheet.label)
        known = case.problem
        rows.append(
            (
                case.name,
                f"{case.dim}, {len(known.limits)}, {len(known.linear)}",
                str(case.budget),
                f"{case.best:.7g}",
                sheet.rival or "-",
                sheet.mean(sheet.rival),
                sheet.mean(sheet.label, third(case.budget)),
                sheet.mean(sheet.label),
                "-" if ours is None else f"{len(sheet.feasible(sheet.label))}/{len(ours.seeds)}",
                as_word(sheet.not_worse()),
                as_word(sheet.not_worse(third(case.budget))),
                "-" if ours is None else f"{1000 * ours.median_seconds:.2g}",
            )
        )
    return Table("", _HEADS, tuple(rows))


def _rivals_table(sheets: Sequence[Sheet]) -> Table:
    rows = []
    for label in dict.fromkeys([sheets[0].label, *(rival.label for rival in RIVALS)]):
        having = [sheet for sheet in sheets if label in sheet.runs]
        if not having:
            continue
        count = sum(len(sheet.runs[label].seeds) for sheet in having)
        early, last = (
            [np.mean(list(sheet.regrets(sheet.runs[label], at(sheet)).values())) for sheet in having]
            for at in (lambda sheet: third(sheet.case.budget), lambda sheet: sheet.case.budget)
        )
        solved = sum(value < NOT_WORSE for value in last)
        feasible = sum(len(sheet.feasible(label)) for sheet in having)
        rows.append(
            (label, f"{feasible}/{count}", f"{np.mean(early):.3f}", f"{np.mean(last):.3f}", f"{solved}/{len(having)}")
        )
    return Table("", ("method", "feasible", "at 1/3", "at the end", "mean below 0.02"), tuple(rows))


def bars(sheets: Sequence[Sheet]) -> list[str]:
    """What is asked of a default method under constraints: met or missed."""
    judged = [sheet for sheet in sheets if sheet.label in sheet.runs and sheet.rival is not None]
    if not judged:
        return ["- no runs to compare"]
    label = judged[0].label
    complete = len(judged) == len(sheets) and all(len(sheet.runs[label].seeds) >= LEAST_SEEDS for sheet in judged)
    somewhere = [sheet.feasible_somewhere & set(sheet.runs[label].seeds) for sheet in judged]
    ours = sum(len(sheet.feasible(label) & seeds) for sheet, seeds in zip(judged, somewhere, strict=True))
    possible = max(1, sum(map(len, somewhere)))
    early = [sheet.not_worse(third(sheet.case.budget)) is Verdict.HOLDS for sheet in judged]
    return [
        bar(ours >= FEASIBLE_SHARE * possible, complete, f"feasible in {ours} of {possible} runs where any rival is"),
        not_worse_bar({sheet.case.name: sheet.not_worse() for sheet in judged}, complete),
        bar(
            sum(early) >= EARLY_SHARE * len(early),
            complete,
            f"with a third of the budget not worse than the rival with all on {sum(early)} of {len(early)}",
        ),
    ]
