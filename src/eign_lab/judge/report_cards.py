"""The judge's tables and bars in Markdown, from the runs of a results file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, final

import numpy as np

from eign.arrays import Array
from eign_lab.judge.cases import CASES, CONVERGED, COUNTED, GROUPS, SHEKELS, Case
from eign_lab.judge.contestants import RIVALS, judge_experiment
from eign_lab.judge.scores import (
    AT_OPTIMUM,
    EARLY_SHARE,
    FEW_DIMENSIONS,
    MEDIAN_SECONDS,
    MEDIAN_SECONDS_BEYOND,
    MOST_SECONDS,
    RUNS_AT_OPTIMUM,
    SHEKEL_EVALUATIONS,
    SHEKEL_RUNS,
    count_at_optimum,
    meets_early_bar,
    strongest,
    third,
)
from eign_lab.judge.verdicts import Comparison, as_word, bar, compare_regrets, not_worse_bar
from eign_lab.report.figures import save
from eign_lab.report.profiles import draw_profiles
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.experiment import MethodSpec
from eign_lab.runs.outcomes import MethodRuns, finished_runs
from eign_lab.runs.store import Records
from eign_lab.statistics import LEAST_SEEDS, Verdict, evaluations_to_target

SEEDS: Final = {"report": range(20), "tuning": range(100, 120)}
ALL_SEEDS: Final = 20
_TUNING_SEEDS: Final = 3
"""Runs that make a rival: one lucky run does not."""
_PLAIN: Final = "l-bfgs"
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

    @property
    def ours(self) -> MethodRuns | None:
        """The runs of the method that is judged."""
        return self.runs.get(self.label)

    def regrets(self, runs: MethodRuns | None, evaluation: int | None = None) -> dict[int, float]:
        """After so many evaluations, or at the end, by seed, as shares of the scale."""
        found = {} if runs is None else runs.at(self.case.budget if evaluation is None else evaluation)
        shares = {seed: (self.case.optimum - value) / self.case.scale for seed, value in found.items()}
        return {seed: np.inf if np.isnan(share) else share for seed, share in shares.items()}

    def _pair(self, label: str | None, evaluation: int | None = None) -> tuple[dict[int, float], dict[int, float]]:
        """Regrets of the judged method after so many evaluations, and of another one at the end, on common seeds."""
        ours, theirs = self.regrets(self.ours, evaluation), self.regrets(self.runs.get(label or ""))
        seeds = sorted(ours.keys() & theirs.keys())
        return {seed: ours[seed] for seed in seeds}, {seed: theirs[seed] for seed in seeds}

    @cached_property
    def _ready(self) -> list[str]:
        """Rivals with enough runs to be chosen, and to be met."""
        enough = [name for name, runs in self.tuning.items() if len(runs.seeds) >= _TUNING_SEEDS]
        return [name for name in enough if name != self.label and len(self._pair(name)[0]) >= LEAST_SEEDS]

    @cached_property
    def rival(self) -> str | None:
        """The smallest mean regret at the end on the tuning seeds; l-bfgs if no rival has enough runs."""
        plain = _PLAIN if _PLAIN in self.runs and self.label != _PLAIN else None
        return strongest({name: self.regrets(self.tuning[name]).values() for name in self._ready}) or plain

    @cached_property
    def unmet(self) -> list[str]:
        """Rivals with too few runs to be chosen and met, ahead of the rival on the seeds that these two have."""

        def known(name: str) -> dict[int, float]:
            return self.regrets(self.tuning.get(name)) | self.regrets(self.runs.get(name))

        others = [name for name in _RIVALS if name not in (self.label, self.rival, *self._ready)]
        leads = {name: compare_regrets(known(self.rival or ""), known(name)).interval.mean for name in others}
        return [name for name, lead in leads.items() if lead > CONVERGED]

    @property
    def is_settled(self) -> bool:
        """Whether the runs are enough for a verdict, and no stronger rival lacks some."""
        return len(self._pair(self.rival)[0]) >= LEAST_SEEDS and not self.unmet

    @cached_property
    def comparison(self) -> Comparison:
        """The method against the rival at the full budget."""
        return compare_regrets(*self._pair(self.rival))

    @property
    def early(self) -> Verdict | None:
        """Whether the bar at a third of the budget is met; None if it cannot be said."""
        ours, theirs = self._pair(self.rival, third(self.case.budget))
        if not ours:
            return None
        return Verdict.HOLDS if meets_early_bar(ours.values(), theirs.values()) else Verdict.FAILS

    def share(self, label: str | None, evaluation: int | None = None) -> str:
        """The mean regret of a method after so many evaluations."""
        found = list(self.regrets(self.runs.get(label or ""), evaluation).values())
        return f"{np.mean(found):.2g}" if found else "-"

    def at_optimum(self, evaluation: int | None = None) -> int:
        """Runs of the method at the global optimum."""
        return count_at_optimum(self.regrets(self.ours, evaluation).values())

    @property
    def is_complete(self) -> bool:
        """Whether the method has all its runs."""
        return self.ours is not None and len(self.ours.seeds) == ALL_SEEDS


def make_sheets(results: Records, method: MethodSpec, seeds: str) -> list[Sheet]:
    """One sheet for each problem."""
    known = {method.label: method} | {rival.label: rival for rival in RIVALS if rival.label != method.label}
    experiment = judge_experiment(list(known.values()), problems=CASES)
    runs = {name: finished_runs(results, experiment, wanted) for name, wanted in SEEDS.items()}
    return [Sheet(case, method.label, runs[seeds][name], runs["tuning"][name]) for name, case in CASES.items()]


def write_report_card(results: Records, method: MethodSpec, seeds: str, directory: Path) -> str:
    """The report; written with the profiles into the directory."""
    sheets, label = make_sheets(results, method, seeds), method.label
    blocks = [f"# {label} on the {seeds} seeds", "\n".join(_LEGEND)]
    for group, title in GROUPS.items():
        of_group = [sheet for sheet in sheets if sheet.case.group == group]
        blocks += [f"## Group {group}: {title}", as_markdown_table(_table(of_group))]
    blocks += ["## Bars", "\n".join(bars(sheets)), _TRIALS]
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
    "of 3 d Sobol points. The rival has the smallest mean regret on the tuning seeds, of those with at least 3 tuning",
    "seeds and 10 of the seeds that are scored; if there is none, it is l-bfgs. Deficit: the method's final mean",
    "regret minus the rival's, paired by seed. Upper end: of its 90 per cent interval (bootstrap over the seeds). Not",
    "worse: the upper end is below 2 per cent, with at least 10 seeds. With noise, the regret is that of the point",
    "whose noisy value was the highest, without the noise. A run ends once its regret is below 1e-6 of the scale:",
    "without noise it cannot rise, so no bar can change. Medians of times are over whole runs: the bar of 40 ms is",
    "for all problems of up to 6 dimensions (100 to 150 evaluations), that of 150 ms for all others (7 to 14",
    "dimensions, up to 500).",
)


_HEADS: Final = (
    *("problem", "budget", "scale", "rival", "rival at the end", "l-bfgs at 1/3", "at 1/3", "at the end"),
    *("early bar", "deficit", "upper end", "not worse", "at optimum", "median, max s"),
)


def _table(of_group: Sequence[Sheet]) -> Table:
    rows = []
    for sheet in of_group:
        case, ours, (interval, not_worse) = sheet.case, sheet.ours, sheet.comparison
        cells = (
            case.name,
            str(case.budget),
            f"{case.scale:.4g}",
            sheet.rival or "-",
            sheet.share(sheet.rival),
            sheet.share("l-bfgs", third(case.budget)),
            sheet.share(sheet.label, third(case.budget)),
            sheet.share(sheet.label),
            as_word(sheet.early) if case.group <= 2 else "",
            *("-" if not_worse is None else f"{end:+.2g}" for end in (interval.mean, interval.high)),
            as_word(not_worse),
            "-" if ours is None else f"{sheet.at_optimum()}/{len(ours.seeds)}",
            "-" if ours is None else f"{ours.median_seconds:.2g}, {_longest(ours):.2g}",
        )
        rows.append(cells)
    return Table("", _HEADS, tuple(rows))


def _longest(runs: MethodRuns) -> float:
    return _most(timing.longest for timing in runs.timings)


def _most(seconds: Iterable[float]) -> float:
    return max((value for value in seconds if not np.isnan(value)), default=np.inf)


def bars(sheets: Sequence[Sheet]) -> list[str]:
    """What is asked of the default method: met or missed."""
    paper = [sheet for sheet in sheets if sheet.case.group <= 2]
    early = sum(sheet.early is Verdict.HOLDS for sheet in paper)
    counted = [sheet for sheet in sheets if sheet.case.name in COUNTED]
    found = sum(sheet.at_optimum() for sheet in counted)
    shekels = [sheet for sheet in sheets if sheet.case.name in SHEKELS]
    soon = {sheet.case.name: sheet.at_optimum(SHEKEL_EVALUATIONS) for sheet in shekels}
    unmet = [f"{', '.join(sheet.unmet)} on {sheet.case.name}" for sheet in sheets if sheet.unmet]
    return [
        bar(
            early >= EARLY_SHARE * len(paper),
            all(sheet.is_settled for sheet in paper),
            f"at a third of the budget on {early} of {len(paper)}",
        ),
        not_worse_bar(
            {sheet.case.name: sheet.comparison.not_worse for sheet in sheets},
            all(sheet.is_settled for sheet in sheets),
        ),
        bar(
            found >= RUNS_AT_OPTIMUM,
            all(sheet.is_complete for sheet in counted),
            f"global optimum in {found} of {ALL_SEEDS * len(counted)} runs",
        ),
        bar(
            min(soon.values(), default=0) >= SHEKEL_RUNS,
            all(sheet.is_complete for sheet in shekels),
            f"optimum after {SHEKEL_EVALUATIONS} evaluations: "
            + ", ".join(f"{name} {count}/{ALL_SEEDS}" for name, count in soon.items()),
        ),
        *_time_bars(sheets),
        *([f"- ahead of the rival, with too few runs to be met: {'; '.join(unmet)}"] if unmet else []),
    ]


def _time_bars(sheets: Sequence[Sheet]) -> list[str]:
    complete, lines = all(sheet.is_complete for sheet in sheets), []
    judged = [(sheet.case, sheet.ours) for sheet in sheets if sheet.ours is not None]
    for few, limit in ((True, MEDIAN_SECONDS), (False, MEDIAN_SECONDS_BEYOND)):
        medians = {case.name: runs.median_seconds for case, runs in judged if (case.dim <= FEW_DIMENSIONS) is few}
        slow = [f"{name} {1000 * median:.0f}" for name, median in medians.items() if median > limit]
        where = f"{'up to' if few else 'beyond'} {FEW_DIMENSIONS} dimensions"
        words = f"median suggestion at most {1000 * limit:.0f} ms {where}"
        lines.append(bar(bool(medians) and not slow, complete, words, except_on=slow))
    longest = _most(_longest(runs) for _, runs in judged)
    return [*lines, bar(longest <= MOST_SECONDS, complete, f"longest suggestion {longest:.2g} s")]


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
