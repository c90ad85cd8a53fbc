"""What each part of `auto` is good for: the method without it, on the problems it is for, paired by problem and seed.

A run is measured by one number in all judges: the area under its distribution of runtimes, COCO's measure, see
`bbob.ecdf`. It is the share of targets that are reached, averaged over the logarithm of evaluations: but for the steps
between targets, a linear function of the mean of log10 regret over log evaluations. A part stays if the 95 per cent
interval of the difference, by bootstrap over (problem, seed), says that the method is worse without it.

Runs have a directory of their own: a run is known by its settings and not by the method's code, and the whole method is
to be compared with variants of the same day.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from rich.console import Console

from eign_lab.judge.bbob.ecdf import TARGETS, area_under, runtimes_to_targets
from eign_lab.judge.bbob.suite import INSTANCES, TASKS
from eign_lab.judge.cases import CASES
from eign_lab.judge.many import cases as many
from eign_lab.judge.suites import SUITES
from eign_lab.report.summaries import Table, as_markdown_table
from eign_lab.runs.campaign import Workplace, run_campaign
from eign_lab.runs.experiment import Experiment, MethodSpec
from eign_lab.runs.export import open_results
from eign_lab.runs.plan import plan_runs
from eign_lab.runs.store import Records, RunRecord, collect
from eign_lab.statistics import Interval, bootstrap_interval

DIRECTORY: Final = Path("results/auto/ablations")
SEEDS: Final[Mapping[str, Sequence[int]]] = {
    "auto": range(101, 113),
    "bbob": INSTANCES["tuning"],
    "many": range(101, 109),
}
"""Of each judge's runs, all for tuning; families were chosen with seed 100."""
SHARES: Final = 10.0 ** (-np.arange(31) / 5)
"""Targets where there are none of COCO's: shares of the scale, from 1 to 1e-6, where runs end."""
WHOLE: Final = MethodSpec("auto", "auto")
_HEADS: Final = ("part", "without it", "runs", "area", "without", "difference", "95 per cent", "verdict", "by problem")


@final
@dataclass(frozen=True)
class Ablation:
    """A part of `auto`.

    Attributes:
        part: What tables call it.
        without: The options that leave it out.
        family: The problems it is for, by name, of any judge.
        reason: Why these.
    """

    part: str
    without: Mapping[str, Any]
    family: tuple[str, ...]
    reason: str

    def experiment(self, suite: str) -> Experiment | None:
        """The whole method and the variant on what a judge has of the family; None if it has nothing."""
        names = [name for name in self.family if name in SUITES[suite].problems]
        if not names:
            return None
        methods = (WHOLE, MethodSpec(f"without {self.part}", "auto", self.without))
        return replace(SUITES[suite].experiment(methods, names=names), id=re.sub(r"\W+", "-", self.part))


def _bbob(d: int, *functions: int) -> tuple[str, ...]:
    return tuple(f"bbob_f{function:03d}_d{d:02d}" for function in functions)


ABLATIONS: Final = (
    Ablation(
        "additive kernels",
        {"kernel": "rbf"},
        ("cosine-8", "cosine-8-shifted", "corner-6", *_bbob(2, 3, 4), *_bbob(5, 3, 4)),
        "sums over coordinates with many optima; RBF is what the choice would fall back on, for they are smooth",
    ),
    Ablation(
        "RBF",
        {"kernel": "matern52"},
        ("hartmann-6-rotated", "shekel-4-rotated", "cosine-8-rotated", "gp-sample-4", "acrobot-6"),
        "smooth and coupled: the smoother kernel learns from fewer points",
    ),
    Ablation(
        "Matern",
        {"kernel": "rbf"},
        ("michalewicz-5-coupled", "shekel-4-shifted", *_bbob(2, 21, 22), *_bbob(5, 13), "acrobot-6"),
        "coupled, with peaks, steep walls or edges on plains, which RBF takes for ripples",
    ),
    Ablation(
        "compression",
        {"compress": False},
        ("shekel-4-shifted", "shekel-4-rotated", "rosenbrock-6", *_bbob(5, 8, 9, 10)),
        "values over many decades, or peaks on a plain",
    ),
    Ablation(
        "logarithms of coordinates",
        {"logs": False},
        ("magnitudes-4",),
        "the only positive box over decades whose scale is not declared logarithmic",
    ),
    Ablation(
        "gradients in the model",
        {"gradients": False},
        ("hartmann-6-rotated", "shekel-4-rotated", "cosine-8-rotated", "gp-sample-4"),
        "coupled, with several optima: each point says d numbers more of where others are",
    ),
    Ablation(
        "learned noise",
        {"noise": 0.0},
        ("hartmann-6-noise-1", "hartmann-6-noise-10", "cosine-8-noise-10"),
        "noise nobody told of",
    ),
    Ablation(
        "local search",
        {"local": False, "elsewhere": False},
        ("rosenbrock-6", "ridge-8", *_bbob(5, 2, 10, 11, 12), "quadratic-100"),
        "one basin with many digits to gain; without restarts, too, for these are local searches from elsewhere",
    ),
    Ablation(
        "restarts",
        {"elsewhere": False},
        ("gp-sample-4", "gp-sample-12", "michalewicz-5-coupled", *_bbob(2, 20, 21, 22), "ackley-30", "ackley-200"),
        "several basins with no order among them, in few dimensions and in many",
    ),
    Ablation(
        "bowl",
        {"bowl": False},
        ("griewank-10-shifted", "griewank-10-rotated", *_bbob(2, 15, 17), *_bbob(5, 15, 17)),
        "hundreds of basins whose optima lie on a bowl",
    ),
    Ablation(
        "few directions",
        {"directions": False},
        ("rastrigin-5-of-50",),
        "the only function of the judges that changes along a few of many directions",
    ),
    Ablation(
        "jumps",
        {"jumps": False, "draws": False},
        ("levy-200", "ackley-200", "styblinski-tang-100", "ackley-30"),
        "many coordinates that act separately, or ripples on a bowl; without draws, too: they are the jumps' design",
    ),
    Ablation(
        "draws",
        {"draws": False},
        ("levy-200", "ackley-200", "styblinski-tang-100", "ackley-30"),
        "the same",
    ),
)


@final
@dataclass(frozen=True)
class Comparison:
    """The runs of a family that both the method and the variant have, in the same order.

    Attributes:
        problems: Of each pair.
        whole: Areas of the method.
        without: Areas of the variant.
    """

    problems: list[str] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)

    @property
    def interval(self) -> Interval:
        """Of the mean of without - whole."""
        return bootstrap_interval(np.subtract(self.without, self.whole), confidence=0.95)

    @property
    def verdict(self) -> str:
        """Kept, if the method is worse without the part."""
        return "kept" if self.interval.high < 0.0 else "harms" if self.interval.low > 0.0 else "not shown"

    def on(self, problem: str) -> float:
        """The mean difference on one problem."""
        return float(np.subtract(self.without, self.whole)[np.equal(self.problems, problem)].mean())


def area(record: RunRecord) -> float:
    """The area under a run's distribution of runtimes: 1 is all targets at once, 0 is none.

    It begins at d evaluations, as COCO's; in many dimensions, where budgets are smaller than d, at the first.
    """
    name = record.spec.problem
    if name in TASKS:
        d, budget, optimum, targets = TASKS[name].dim, TASKS[name].spec.budget, 0.0, TARGETS
    elif name in CASES:
        case = CASES[name]
        d, budget, optimum, targets = case.dim, case.budget, case.optimum, case.scale * SHARES
    else:
        large, instance = many.CASES[name], many.instance_of(record.spec.seed)
        d, budget, optimum, targets = 1, large.budgets[-1], large.optimum(instance), large.scales[instance] * SHARES
    regrets = optimum - record.trace.curve(budget)
    return area_under(runtimes_to_targets(regrets[None], targets), d=d, budget=budget)


def compare(results: Records, ablation: Ablation) -> Comparison:
    """The paired areas of all judges' runs that are finished."""
    found = Comparison()
    for suite, seeds in SEEDS.items():
        if (experiment := ablation.experiment(suite)) is None:
            continue
        records = collect(results, experiment, seeds)
        for problem in experiment.problems:
            by_method = [
                {each.spec.seed: area(each) for each in records[problem.label, method.label] if each.finished}
                for method in experiment.methods
            ]
            for seed in sorted(by_method[0].keys() & by_method[1].keys()):
                found.problems.append(problem.label)
                found.whole.append(by_method[0][seed])
                found.without.append(by_method[1][seed])
    return found


def ablation_table(results: Records, ablations: Sequence[Ablation]) -> Table:
    """A row for each part that has runs."""
    compared = [(ablation, compare(results, ablation)) for ablation in ablations]
    note = (
        "Area: share of targets that a run has reached, averaged over the logarithm of evaluations, from d to the "
        "budget. Targets: COCO's on BBOB, and shares of the scale from 1 to 1e-6 elsewhere. Difference: without the "
        "part minus with it, on tuning seeds, with its interval by bootstrap over (problem, seed); last for each "
        "problem. A part is kept if the interval is below 0."
    )
    return Table("Parts of auto", _HEADS, tuple(_row(*pair) for pair in compared if pair[1].problems), note)


def _row(ablation: Ablation, found: Comparison) -> tuple[str, ...]:
    mean, low, high = found.interval
    options = ", ".join(f"{name} = {value}" for name, value in ablation.without.items())
    means = [f"{np.mean(found.whole):.3f}", f"{np.mean(found.without):.3f}", f"{mean:+.3f}"]
    each = ", ".join(f"{problem} {found.on(problem):+.3f}" for problem in dict.fromkeys(found.problems))
    return (ablation.part, options, str(len(found.problems)), *means, f"{low:+.3f} to {high:+.3f}", found.verdict, each)


def report_ablations(results: Records) -> str:
    """The table, and why each part has the problems it has."""
    table = ablation_table(results, ABLATIONS)
    reasons = "\n".join(f"- {ablation.part}: {ablation.reason}." for ablation in ABLATIONS)
    return f"# {table.title}\n\n{table.note}\n\n{as_markdown_table(table)}\n\nWhy these problems:\n\n{reasons}\n"


def most_minutes(experiments: Mapping[str, Sequence[Experiment]]) -> float:
    """What all runs of each judge take on one core if none ends before its budget.

    A suggestion takes 20 ms, 3 more for each coordinate, and no more than 80: so measured, with all options.
    """
    seconds = 0.0
    for suite, chosen in experiments.items():
        for run in plan_runs(chosen, SEEDS[suite]):
            seconds += run.goal.budget * min(0.02 + 0.003 * SUITES[suite].problems[run.run.problem].dim, 0.08)
    return seconds / 60.0


def run_ablations(workplace: Workplace, console: Console | None = None) -> bool:
    """Do the runs that are missing, and write the report beside the directory of runs; whether all are finished."""
    assert workplace.export is not None, "the report is made from the export"
    console, is_finished = console or Console(highlight=False), True
    planned = {
        suite: [each for ablation in ABLATIONS if (each := ablation.experiment(suite)) is not None] for suite in SEEDS
    }
    console.print(f"all runs together take at most {most_minutes(planned):.0f} minutes on one core")
    for suite, experiments in planned.items():
        if experiments:
            is_finished &= run_campaign(experiments, SEEDS[suite], workplace, console)
    text = report_ablations(open_results(workplace.export))
    workplace.export.with_suffix(".md").write_text(text, encoding="utf-8")
    console.print(text, markup=False, soft_wrap=True)
    return is_finished
