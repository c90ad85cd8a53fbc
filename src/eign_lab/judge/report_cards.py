"""The judge's tables and bars in Markdown, from the runs of a results file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, final

import numpy as np

from eign.arrays import Array
from eign_lab.judge.cases import CASES, COUNTED, GROUPS, Case
from eign_lab.judge.contestants import RIVALS, judge_experiment
from eign_lab.judge.scores import (
    AT_OPTIMUM,
    EARLY_SHARE,
    MEDIAN_SECONDS,
    MOST_SECONDS,
    Comparison,
    compare_regrets,
    count_at_optimum,
    meets_count_bar,
    meets_early_bar,
    strongest,
    third,
    worse,
)
from eign_lab.report.figures import save
from eign_lab.report.profiles import draw_profiles
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.experiment import MethodSpec
from eign_lab.runs.outcomes import MethodRuns
from eign_lab.runs.store import Records, collect
from eign_lab.statistics import evaluations_to_target

SEEDS: Final = {"report": range(20), "tuning": range(100, 120)}
ALL_SEEDS: Final = 20
LEAST_SEEDS: Final = 3
"""Tuning seeds that make a rival: one lucky run does not."""
_PLAIN: Final = ("l-bfgs", "log-ei")
_RIVALS: Final = tuple(method.label for method in RIVALS)
_MOST: Final = 0.85

Runs = Mapping[str, MethodRuns]
"""Finished runs on one problem by the label of the method; methods without runs are left out."""


@final
@dataclass(frozen=True)
class Sheet:
    """What is known about one problem.

    Attributes:
        case: The problem.
        label: The method that is judged.
        runs: On the seeds that are scored.
        tuning: On the tuning seeds.
    """

    case: Case
    label: str
    runs: Runs
    tuning: Runs

    @cached_property
    def rival(self) -> str | None:
        """Groups 1 and 2: the best on the tuning seeds. Others: the better of l-bfgs and LogEI on the scored seeds."""
        if self.case.group <= 2:
            enough = [name for name in _RIVALS if name in self.tuning and len(self.tuning[name].seeds) >= LEAST_SEEDS]
            return strongest({name: self.regrets(self.tuning[name]) for name in enough})
        return strongest({name: self.regrets(self.runs[name]) for name in _PLAIN if name in self.runs})

    @property
    def ours(self) -> MethodRuns | None:
        """The runs of the method that is judged."""
        return self.runs.get(self.label)

    @cached_property
    def common_seeds(self) -> list[int]:
        """Seeds that the method and the rival both have."""
        pair = [self.runs[name].seeds if name in self.runs else () for name in (self.label, self.rival or "")]
        return sorted(set(pair[0]) & set(pair[1]))

    def regrets(self, runs: MethodRuns, evaluation: int | None = None, seeds: Sequence[int] | None = None) -> Array:
        """Regrets after so many evaluations, or at the end, by seed."""
        found = runs.at(self.case.budget if evaluation is None else evaluation)
        values = np.array([found[seed] for seed in (sorted(found) if seeds is None else seeds)])
        return np.asarray(self.case.optimum - np.where(np.isnan(values), -np.inf, values))

    @property
    def comparison(self) -> Comparison | None:
        """The method against the rival at the full budget; None if they share no seed."""
        if not self.common_seeds:
            return None
        ours, theirs = (self._common(name) for name in (self.label, self.rival or ""))
        return compare_regrets(ours, theirs, self.case.scale)

    @property
    def early(self) -> bool | None:
        """Whether the bar at a third of the budget is met; None if it cannot be said."""
        if not self.common_seeds:
            return None
        early = self._common(self.label, third(self.case.budget))
        return meets_early_bar(early, self._common(self.rival or ""), self.case.scale)

    def _common(self, label: str, evaluation: int | None = None) -> Array:
        return self.regrets(self.runs[label], evaluation, self.common_seeds)

    def share(self, label: str | None, evaluation: int | None = None) -> str:
        """The mean regret of a method after so many evaluations as a share of the scale."""
        if label is None or label not in self.runs:
            return "-"
        return f"{float(self.regrets(self.runs[label], evaluation).mean()) / self.case.scale:.2g}"

    def at_optimum(self) -> int:
        """Runs of the method at the global optimum."""
        return 0 if self.ours is None else count_at_optimum(self.regrets(self.ours), self.case.scale)


def make_sheets(results: Records, method: MethodSpec, seeds: str) -> list[Sheet]:
    """One sheet for each problem."""
    known = {method.label: method} | {rival.label: rival for rival in RIVALS if rival.label != method.label}
    experiment = judge_experiment(list(known.values()), problems=CASES)
    by_seeds = {
        name: {key: [r for r in records if r.finished] for key, records in collect(results, experiment, wanted).items()}
        for name, wanted in SEEDS.items()
    }

    def runs(case: Case, name: str) -> Runs:
        found = {label: by_seeds[name][case.name, label] for label in known}
        return {label: MethodRuns.of(records, case.budget) for label, records in found.items() if records}

    return [Sheet(case, method.label, runs(case, seeds), runs(case, "tuning")) for case in CASES.values()]


def write_report_card(results: Records, method: MethodSpec, seeds: str, directory: Path) -> str:
    """The report; written with the profiles into the directory."""
    sheets, label = make_sheets(results, method, seeds), method.label
    compared = {sheet.case.name: found for sheet in sheets if (found := sheet.comparison) is not None}
    is_worse = worse(compared) if compared else {}
    blocks = [f"# {label} on the {seeds} seeds", "\n".join(_LEGEND)]
    for group, title in GROUPS.items():
        of_group = [sheet for sheet in sheets if sheet.case.group == group]
        blocks += [f"## Group {group}: {title}", as_markdown_table(_table(of_group, is_worse))]
    blocks += ["## Bars", "\n".join(_bars(sheets, is_worse)), _TRIALS]
    text, stem = "\n\n".join(blocks) + "\n", f"{label.replace(' ', '-')}-{seeds}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{stem}.md").write_text(text, encoding="utf-8")
    figure = draw_profiles(_costs(sheets), first=label)
    if figure is not None:
        save(figure, directory, stem, ["svg"])
    return text


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


def _table(of_group: Sequence[Sheet], is_worse: Mapping[str, bool]) -> Table:
    rows = []
    for sheet in of_group:
        case, found, ours = sheet.case, sheet.comparison, sheet.ours
        tested = (f"{found.deficit:+.2g}", f"{found.p:.2g}", _word(is_worse[case.name])) if found else ("-", "-", "-")
        cells = (
            case.name,
            str(case.budget),
            f"{case.scale:.4g}",
            sheet.rival or "-",
            sheet.share(sheet.rival),
            sheet.share("l-bfgs", third(case.budget)),
            sheet.share(sheet.label, third(case.budget)),
            sheet.share(sheet.label),
            _word(sheet.early) if case.group <= 2 else "",
            *tested,
            "-" if ours is None else f"{sheet.at_optimum()}/{len(ours.seeds)}",
            "-" if ours is None else f"{ours.median_seconds:.2g}, {_longest(ours):.2g}",
        )
        rows.append(cells)
    return Table("", _HEADS, tuple(rows))


def _longest(runs: MethodRuns) -> float:
    return max(timing.longest for timing in runs.timings)


def _bars(sheets: Sequence[Sheet], is_worse: Mapping[str, bool]) -> list[str]:
    paper = [sheet for sheet in sheets if sheet.case.group <= 2]
    met = sum(sheet.early is True for sheet in paper)
    counted = [sheet for sheet in sheets if sheet.case.name in COUNTED]
    counts = [sheet.at_optimum() for sheet in counted]
    ours = [sheet.ours for sheet in sheets if sheet.ours is not None]
    slowest = max((runs.median_seconds for runs in ours), default=np.inf)
    longest = max(map(_longest, ours), default=np.inf)
    return [
        _bar(
            met >= EARLY_SHARE * len(paper),
            all(len(sheet.common_seeds) == ALL_SEEDS for sheet in paper),
            f"at a third of the budget on {met} of {len(paper)}",
        ),
        *(_not_worse(sheets, is_worse, groups) for groups in ((1, 2), (3, 4, 5))),
        _bar(
            meets_count_bar(counts),
            all(_is_complete(sheet) for sheet in counted),
            f"global optimum in {sum(counts)} runs, at least {min(counts)} on each of the eight",
        ),
        _bar(
            slowest < MEDIAN_SECONDS and longest < MOST_SECONDS,
            all(_is_complete(sheet) for sheet in sheets),
            f"median suggestion at most {slowest:.2g} s on every problem, longest {longest:.2g} s",
        ),
    ]


def _is_complete(sheet: Sheet) -> bool:
    return sheet.ours is not None and len(sheet.ours.seeds) == ALL_SEEDS


def _not_worse(sheets: Sequence[Sheet], is_worse: Mapping[str, bool], groups: tuple[int, ...]) -> str:
    chosen = [sheet for sheet in sheets if sheet.case.group in groups]
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


def _costs(sheets: Sequence[Sheet]) -> dict[str, Array]:
    """For each method the share of the budget that each run took to 1 per cent of the scale.

    Methods that have most of the runs of the judged method are compared on those that all of them have.
    """
    judged = sheets[0].label
    costs: dict[str, dict[tuple[str, int], float]] = {judged: {}, **{rival: {} for rival in _RIVALS}}
    for sheet in sheets:
        target = sheet.case.optimum - AT_OPTIMUM * sheet.case.scale
        for name, runs in sheet.runs.items():
            shares = evaluations_to_target(runs.best, target) / sheet.case.budget
            costs[name] |= {(sheet.case.name, seed): float(s) for seed, s in zip(runs.seeds, shares, strict=True)}
    wanted = costs[judged].keys()
    shown = {name: own for name, own in costs.items() if len(own.keys() & wanted) >= _MOST * max(1, len(wanted))}
    common = [run for run in wanted if all(run in own for own in shown.values())]
    return {name: np.array([own[run] for run in common]) for name, own in shown.items()}
