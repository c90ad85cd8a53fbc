"""The judge's report on BBOB: a table a dimension, the bars, a table of functions, and COCO's picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

import numpy as np

from eign.arrays import Array
from eign_lab.judge.bbob.contestants import DESCENTS, RIVALS
from eign_lab.judge.bbob.ecdf import area_under, runtimes_to_targets, share_reached
from eign_lab.judge.bbob.figure import draw_distributions
from eign_lab.judge.bbob.suite import DIMENSIONS, FUNCTIONS, GROUPS, INSTANCES, TASKS, Task, budget
from eign_lab.judge.verdicts import bar
from eign_lab.report.figures import save
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.experiment import Experiment, MethodSpec
from eign_lab.runs.store import Records, RunRecord, collect

AREA_RATIO: Final = 1.25
"""The bar: area of the judged method over the best rival's."""

_ILL: Final = "ill-conditioned"
FASTEST: Final = "fastest rival each time"

Run = tuple[int, int]
"""Function and instance."""


@final
@dataclass(frozen=True)
class Sheet:
    """What is known in one dimension.

    Attributes:
        d: The dimension.
        label: The method that is judged.
        runtimes: Of each method, by function and instance: evaluations to the 51 targets. Methods that lack a run of
            the judged one are left out, and of the others only these runs are kept.
        seconds: Median of a suggestion, the median over the runs.
    """

    d: int
    label: str
    runtimes: Mapping[str, Mapping[Run, Array]]
    seconds: Mapping[str, float]

    def chosen(self, label: str, functions: Iterable[int] = FUNCTIONS) -> Array:
        """Runtimes of a method on some functions, `runs x targets`."""
        wanted = set(functions)
        return np.array([times for (function, _), times in self.runtimes[label].items() if function in wanted])

    def area(self, label: str, functions: Iterable[int] = FUNCTIONS) -> float:
        """The area under the distribution of a method; NaN without runs."""
        times = self.chosen(label, functions)
        return area_under(times, d=self.d, budget=budget(self.d)) if len(times) else np.nan

    def end(self, label: str, functions: Iterable[int] = FUNCTIONS) -> float:
        """The share of targets at the end of the budget; NaN without runs."""
        times = self.chosen(label, functions)
        return float(share_reached(times, np.array(budget(self.d)))) if len(times) else np.nan

    @property
    def rivals(self) -> list[str]:
        """The methods that the judged one is compared with."""
        return [label for label in self.runtimes if label not in (self.label, FASTEST)]

    def with_fastest(self) -> "Sheet":
        """And as one more method the fastest rival for each run and target, whom nobody knows before."""
        runs = self.runtimes[self.label]
        times = {run: np.min([self.runtimes[rival][run] for rival in self.rivals], axis=0) for run in runs}
        return replace(self, runtimes={**self.runtimes, FASTEST: times}, seconds={**self.seconds, FASTEST: np.nan})

    @property
    def is_complete(self) -> bool:
        """Whether all functions and five instances are there."""
        return len(self.runtimes[self.label]) == len(FUNCTIONS) * len(INSTANCES["report"])


def make_sheets(results: Records, method: MethodSpec, instances: str) -> list[Sheet]:
    """One sheet for each dimension in which the judged method has runs."""
    known = {method.label: method} | {rival.label: rival for rival in RIVALS if rival.label != method.label}
    problems = tuple(task.spec for task in TASKS.values())
    experiment = Experiment("bbob", "All functions in all dimensions", problems, tuple(known.values()))
    found = collect(results, experiment, INSTANCES[instances])
    sheets = [_sheet(found, method.label, list(known), d) for d in DIMENSIONS]
    return [sheet for sheet in sheets if sheet.runtimes[method.label]]


def _sheet(found: Mapping[tuple[str, str], Sequence[RunRecord]], judged: str, labels: Sequence[str], d: int) -> Sheet:
    records = {
        label: {
            (function, record.spec.seed): record
            for function in FUNCTIONS
            for record in found[Task(function, d).name, label]
            if record.finished
        }
        for label in labels
    }
    wanted = records[judged].keys()
    compared = {label: runs for label, runs in records.items() if wanted <= runs.keys()}
    return Sheet(
        d,
        judged,
        {label: {run: _runtimes(runs[run], d) for run in sorted(wanted)} for label, runs in compared.items()},
        {label: _median(runs[run].timing.median for run in wanted) for label, runs in compared.items()},
    )


def _runtimes(record: RunRecord, d: int) -> Array:
    distances = -record.trace.curve(budget(d))
    return np.asarray(runtimes_to_targets(distances[None])[0])


def _median(seconds: Iterable[float]) -> float:
    known = [value for value in seconds if np.isfinite(value)]
    return float(np.median(known)) if known else np.nan


def write_report(results: Records, method: MethodSpec, instances: str, directory: Path) -> str:
    """The report; written with the picture into the directory."""
    sheets = make_sheets(results, method, instances)
    label, numbers = method.label, INSTANCES[instances]
    blocks = [f"# {label} on BBOB, instances {numbers[0]} to {numbers[-1]}", "\n".join(_LEGEND)]
    for sheet in sheets:
        heading = f"## {sheet.d} dimensions, {budget(sheet.d)} evaluations, {len(sheet.runtimes[label])} runs"
        blocks += [heading, as_markdown_table(_methods_table(sheet))]
    blocks += ["## Bars", "\n".join(line for sheet in sheets for line in bars(sheet))]
    blocks += ["## Functions", _FUNCTIONS_LEGEND, as_markdown_table(_functions_table(sheets))]
    text, stem = "\n\n".join(blocks) + "\n", f"{label.replace(' ', '-')}-{instances}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{stem}.md").write_text(text, encoding="utf-8")
    if sheets:
        drawn = {sheet.d: {name: sheet.chosen(name) for name in sheet.runtimes} for sheet in sheets}
        save(draw_distributions(drawn, first=label, budget=budget), directory, stem, ["svg"])
    return text


_LEGEND: Final = (
    "Share of (function, instance, target) that is reached, with COCO's 51 targets f - f_opt from 10^2 to 10^-8.",
    "Area: the mean of that share over log10(evaluations / d), from d evaluations to the budget of 20 + 20 d. End: the",
    "share at the budget. For each group of functions area and end. An evaluation is a value with its gradient, which",
    "is made of differences of 1e-8 that are not counted. The last line takes for each run and target the rival that",
    "was the fastest there: what choosing among them could reach at most.",
)
_FUNCTIONS_LEGEND: Final = (
    "Share of targets at the end: the method, and the best rival's with its name. In bold where the method has less."
)


def _methods_table(sheet: Sheet) -> Table:
    order = [sheet.label, *sorted(sheet.rivals, key=lambda label: -sheet.area(label))]
    if len(sheet.rivals) > 1:
        sheet, order = sheet.with_fastest(), [*order, FASTEST]
    rows = tuple(
        (
            label,
            f"{sheet.area(label):.3f}",
            f"{sheet.end(label):.3f}",
            *(_pair(sheet, label, group) for group in GROUPS.values()),
            "-" if np.isnan(sheet.seconds[label]) else f"{1000 * sheet.seconds[label]:.2g}",
        )
        for label in order
    )
    return Table("", ("method", "area", "end", *GROUPS, "ms a suggestion"), rows)


def _pair(sheet: Sheet, label: str, group: range) -> str:
    area, end = sheet.area(label, group), sheet.end(label, group)
    return "-" if np.isnan(area) else f"{area:.2f} {end:.2f}"


def bars(sheet: Sheet) -> list[str]:
    """What is asked of a default method, in one dimension: met or missed."""
    if not sheet.rivals:
        return [f"- {sheet.d}-d: no rival has these runs"]
    label = sheet.label
    fastest = max(sheet.rivals, key=sheet.area)
    furthest = max(sheet.rivals, key=sheet.end)
    ratio = sheet.area(label) / sheet.area(fastest)
    found = [
        (ratio >= AREA_RATIO, f"area {ratio:.2f} times that of {fastest}, asked {AREA_RATIO}"),
        (
            sheet.end(label) >= sheet.end(furthest),
            f"share at the end {sheet.end(label):.3f}, {furthest} {sheet.end(furthest):.3f}",
        ),
    ]
    own = sheet.end(label, GROUPS[_ILL])
    if (descents := [name for name in DESCENTS if name in sheet.rivals]) and not np.isnan(own):
        best = max(sheet.end(name, GROUPS[_ILL]) for name in descents)
        found.append((own >= best, f"{_ILL} functions at the end {own:.3f}, L-BFGS-B {best:.3f}"))
    return [bar(met, sheet.is_complete, f"{sheet.d}-d, {words}") for met, words in found]


def _functions_table(sheets: Sequence[Sheet]) -> Table:
    rows = tuple((f"f{f}", *(_function_cell(sheet, f) for sheet in sheets)) for f in FUNCTIONS)
    return Table("", ("function", *(f"{sheet.d}-d" for sheet in sheets)), rows)


def _function_cell(sheet: Sheet, function: int) -> str:
    own = sheet.end(sheet.label, [function])
    if np.isnan(own):
        return "-"
    if not sheet.rivals:
        return f"{own:.2f}"
    best = max(sheet.rivals, key=lambda label: sheet.end(label, [function]))
    theirs = sheet.end(best, [function])
    return f"{f'**{own:.2f}**' if own < theirs else f'{own:.2f}'}, {theirs:.2f} {best}"
