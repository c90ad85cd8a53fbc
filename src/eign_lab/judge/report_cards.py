"""The judge's tables and bars in Markdown, from stored runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from eign.arrays import Array
from eign_lab.judge.cases import CASES, COUNTED, GROUPS, Case
from eign_lab.judge.profiles import draw_profiles
from eign_lab.judge.rivals import RIVALS
from eign_lab.judge.scores import (
    AT_OPTIMUM,
    EARLY_SHARE,
    MEDIAN_SECONDS,
    MOST_SECONDS,
    Comparison,
    compare,
    count_at_optimum,
    evaluations_to,
    meets_count_bar,
    meets_early_bar,
    regret_at,
    strongest,
    third,
    worse,
)

SEEDS: Final = {"report": range(20), "tuning": range(100, 120)}
ALL_SEEDS: Final = 20
LEAST_SEEDS: Final = 3
"""Tuning seeds that make a rival: one lucky run does not."""
_PLAIN: Final = ("l-bfgs", "log-ei")
_MOST: Final = 0.85

Runs = Mapping[int, Mapping[str, Any]]
"""Stored runs of one method on one problem by seed."""


@final
@dataclass(frozen=True)
class Sheet:
    """What is known about one problem.

    Attributes:
        case: The problem.
        label: The method that is judged.
        runs: On the seeds that are scored, by label.
        tuning: On the tuning seeds, by label.
    """

    case: Case
    label: str
    runs: Mapping[str, Runs]
    tuning: Mapping[str, Runs]

    @cached_property
    def rival(self) -> str | None:
        """Groups 1 and 2: the best on the tuning seeds. Others: the better of l-bfgs and LogEI on the scored seeds."""
        if self.case.group <= 2:
            enough = {name: runs for name, runs in self.tuning.items() if name in RIVALS and len(runs) >= LEAST_SEEDS}
            return strongest({name: self.final(runs) for name, runs in enough.items()})
        return strongest({name: self.final(self.runs[name]) for name in _PLAIN if name in self.runs})

    @property
    def common_seeds(self) -> list[int]:
        """Seeds that the method and the rival both have."""
        return sorted(set(self.runs.get(self.label, {})) & set(self.runs.get(self.rival or "", {})))

    def final(self, runs: Runs, seeds: Sequence[int] | None = None) -> Array:
        """Regrets at the end, by seed."""
        return self.at(self.case.budget, runs, seeds)

    def at(self, evaluation: int, runs: Runs, seeds: Sequence[int] | None = None) -> Array:
        """Regrets after so many evaluations, by seed."""
        wanted = sorted(runs) if seeds is None else seeds
        return np.array([regret_at(runs[seed]["regrets"], evaluation) for seed in wanted])

    @property
    def comparison(self) -> Comparison | None:
        """The method against the rival at the full budget; None if they share no seed."""
        seeds = self.common_seeds
        if not seeds or self.rival is None:
            return None
        ours, theirs = self.runs[self.label], self.runs[self.rival]
        return compare(self.final(ours, seeds), self.final(theirs, seeds), self.case.scale)

    @property
    def early(self) -> bool | None:
        """Whether the bar at a third of the budget is met; None if it cannot be said."""
        seeds = self.common_seeds
        if not seeds or self.rival is None:
            return None
        early = self.at(third(self.case.budget), self.runs[self.label], seeds)
        return meets_early_bar(early, self.final(self.runs[self.rival], seeds), self.case.scale)

    def share(self, label: str | None, evaluation: int) -> str:
        """The mean regret of a method after so many evaluations as a share of the scale."""
        runs = self.runs.get(label or "", {})
        return f"{float(self.at(evaluation, runs).mean()) / self.case.scale:.2g}" if runs else "-"


def sheets(records: Sequence[Mapping[str, Any]], *, label: str, seeds: str) -> list[Sheet]:
    """One sheet for each problem."""
    scored: dict[str, dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    tuning: dict[str, dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        for wanted, store in ((SEEDS[seeds], scored), (SEEDS["tuning"], tuning)):
            if record["seed"] in wanted:
                store[record["problem"]][record["label"]][record["seed"]] = record
    return [Sheet(case, label, dict(scored[name]), dict(tuning[name])) for name, case in CASES.items()]


def report(records: Sequence[Mapping[str, Any]], *, label: str, seeds: str, directory: Path) -> None:
    """Print the report, and write it with the profiles beside the results."""
    all_sheets = sheets(records, label=label, seeds=seeds)
    compared = {sheet.case.name: found for sheet in all_sheets if (found := sheet.comparison) is not None}
    is_worse = worse(compared) if compared else {}
    lines = [f"# {label} on the {seeds} seeds", "", *_LEGEND, ""]
    for group, title in GROUPS.items():
        of_group = [sheet for sheet in all_sheets if sheet.case.group == group]
        lines += [f"## Group {group}: {title}", "", *_table(of_group, is_worse), ""]
    if cut := sorted({f"{record['label']} on {record['problem']}" for record in records if record.get("cut")}):
        lines += [f"Cut by time before the budget, so that regrets are too large: {', '.join(cut)}.", ""]
    lines += ["## Bars", "", *_bars(all_sheets, is_worse), "", _TRIALS, ""]
    print("\n".join(lines))
    stem = f"{label.replace(' ', '-')}-{seeds}"
    (directory / f"{stem}.md").write_text("\n".join(lines))
    figure = draw_profiles(_costs(all_sheets), first=label)
    if figure is not None:
        figure.savefig(directory / f"{stem}.svg")


_TRIALS: Final = "What was tried where a bar is missed, and why: [notes/auto_trials.md](../../notes/auto_trials.md)."

_LEGEND: Final = (
    "Regrets are means over the seeds as shares of the scale: the optimum minus the median over 20 seeds of the best",
    "of 3 d Sobol points. The rival has the smallest mean regret on the tuning seeds (groups 1 and 2), or is the",
    "better of l-bfgs and LogEI (groups 3 to 5). Deficit: the method's final mean regret minus the rival's, paired by",
    "seed. With noise, the regret is that of the point whose noisy value was the highest, without the noise. A run",
    "ends once its regret is below 1e-6 of the scale: without noise it cannot rise, so no bar can change.",
)


_HEADS: Final = (
    *("problem", "budget", "scale", "rival", "rival at the end", "l-bfgs at 1/3", "at 1/3", "at the end"),
    *("early bar", "deficit", "p", "worse", "at optimum", "median, max s"),
)


def _table(of_group: Sequence[Sheet], is_worse: Mapping[str, bool]) -> list[str]:
    lines = [f"| {' | '.join(_HEADS)} |", "|" + "---|" * len(_HEADS)]
    for sheet in of_group:
        case, found, ours = sheet.case, sheet.comparison, sheet.runs.get(sheet.label, {})
        tested = (f"{found.deficit:+.2g}", f"{found.p:.2g}", _word(is_worse[case.name])) if found else ("-", "-", "-")
        cells = [
            case.name,
            case.budget,
            f"{case.scale:.4g}",
            sheet.rival or "-",
            sheet.share(sheet.rival, case.budget),
            sheet.share("l-bfgs", third(case.budget)),
            sheet.share(sheet.label, third(case.budget)),
            sheet.share(sheet.label, case.budget),
            _word(sheet.early) if case.group <= 2 else "",
            *tested,
            f"{count_at_optimum(sheet.final(ours), case.scale)}/{len(ours)}" if ours else "-",
            _seconds(ours),
        ]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines


def _bars(all_sheets: Sequence[Sheet], is_worse: Mapping[str, bool]) -> list[str]:
    early = [sheet.early for sheet in all_sheets if sheet.case.group <= 2]
    met = sum(bar is True for bar in early)
    ours = {sheet.case.name: sheet.runs.get(sheet.label, {}) for sheet in all_sheets}
    counts = [count_at_optimum(s.final(ours[s.case.name]), s.case.scale) for s in all_sheets if s.case.name in COUNTED]
    medians = [float(np.median([r["median_wait"] for r in runs.values()])) for runs in ours.values() if runs]
    longest = max((r["max_wait"] for runs in ours.values() for r in runs.values()), default=np.inf)
    lines = [
        _bar(
            met >= EARLY_SHARE * len(early),
            all(len(sheet.common_seeds) == ALL_SEEDS for sheet in all_sheets if sheet.case.group <= 2),
            f"at a third of the budget on {met} of {len(early)}",
        ),
        *(_not_worse(all_sheets, is_worse, groups) for groups in ((1, 2), (3, 4, 5))),
        _bar(
            meets_count_bar(counts),
            all(len(ours[name]) == ALL_SEEDS for name in COUNTED),
            f"global optimum in {sum(counts)} runs, at least {min(counts)} on each of the eight",
        ),
    ]
    slowest = max(medians, default=np.inf)
    words = f"median suggestion at most {slowest:.2g} s on every problem, longest {longest:.2g} s"
    return [
        *lines,
        _bar(
            slowest < MEDIAN_SECONDS and longest < MOST_SECONDS,
            all(len(runs) == ALL_SEEDS for runs in ours.values()),
            words,
        ),
    ]


def _not_worse(all_sheets: Sequence[Sheet], is_worse: Mapping[str, bool], groups: tuple[int, ...]) -> str:
    chosen = [sheet for sheet in all_sheets if sheet.case.group in groups]
    names = [sheet.case.name for sheet in chosen]
    bad = [name for name in names if is_worse.get(name)]
    whose = "the rival" if 1 in groups else "the better of l-bfgs and LogEI"
    words = f"groups {groups[0]} to {groups[-1]}: worse than {whose} on {len(bad)} of {len(names)}"
    # Few seeds cannot show that a method is worse.
    complete = all(len(sheet.common_seeds) == ALL_SEEDS for sheet in chosen)
    return _bar(not bad, complete, words + (f" ({', '.join(bad)})" if bad else ""))


def _bar(met: bool, complete: bool, words: str) -> str:
    return f"- **{'met' if met else 'missed'}**{'' if complete else ' so far, runs are missing'}: {words}"


def _word(truth: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[truth]


def _seconds(runs: Runs) -> str:
    if not runs:
        return "-"
    median = float(np.median([run["median_wait"] for run in runs.values()]))
    return f"{median:.2g}, {max(run['max_wait'] for run in runs.values()):.2g}"


def _costs(all_sheets: Sequence[Sheet]) -> dict[str, Array]:
    """For each method the share of the budget that each run took to 1 per cent of the scale.

    Methods that have most of the runs of the judged method are compared on those that all of them have.
    """
    judged = all_sheets[0].label
    instances = [(sheet, seed) for sheet in all_sheets for seed in sheet.runs.get(judged, {})]
    owned = {
        name: [seed in sheet.runs.get(name, {}) for sheet, seed in instances]
        for name in (judged, *(rival for rival in RIVALS if rival != judged))
    }
    shown = {name: has for name, has in owned.items() if sum(has) >= _MOST * max(1, len(instances))}
    common = [instance for instance, *has in zip(instances, *shown.values(), strict=True) if all(has)]
    return {name: np.array([_cost(sheet, sheet.runs[name][seed]) for sheet, seed in common]) for name in shown}


def _cost(sheet: Sheet, run: Mapping[str, Any]) -> float:
    return evaluations_to(run["regrets"], AT_OPTIMUM * sheet.case.scale) / sheet.case.budget
