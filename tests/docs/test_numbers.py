"""The numbers of the README are those of the results."""

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from eign_lab.judge.cases import CASES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REPORT = (ROOT / "results/auto/auto-report.md").read_text()
METHODS = ("auto", "scipy/l-bfgs-b", "scipy/basin-hopping", "pycma/cma-es")  # the columns of the table
ROWS = re.findall(r"^\| ([\w-]+) \| (\d+) \| ((?:\d+/\d+ \| ?)+)$", README, re.MULTILINE)
SCALES = {
    name: (int(budget), float(scale))
    for name, budget, scale in re.findall(r"^\| ([\w-]+) \| (\d+) \| ([\d.e+-]+) \|", REPORT, re.MULTILINE)
}


@cache
def report_runs() -> pd.DataFrame:
    """One row a run: its last improvement. Seeds of the report are below 100; variants of `auto` have options."""
    rows = pd.read_parquet(ROOT / "results/auto/runs.parquet")
    rows = rows[(rows["seed"] < 100) & (rows["options"] == "{}")]
    return rows.sort_values("evaluation").groupby(["problem", "method", "seed"]).last().reset_index()


def final_regrets(method: str, problem: str) -> list[float]:
    runs = report_runs()
    best = runs.loc[(runs["method"] == method) & (runs["problem"] == problem), "best"]
    return (CASES[problem].optimum - best).tolist()


def test_the_table_is_found():
    assert len(ROWS) == 9
    assert len(SCALES) == 45


@pytest.mark.parametrize(("problem", "budget", "counts"), ROWS, ids=[problem for problem, _, _ in ROWS])
def test_success_counts(problem, budget, counts):
    stated_budget, scale = SCALES[problem]
    assert int(budget) == stated_budget
    for method, count in zip(METHODS, re.findall(r"\d+/\d+", counts), strict=True):
        regrets = final_regrets(method, problem)
        assert count == f"{sum(regret < 0.01 * scale for regret in regrets)}/{len(regrets)}", method


def test_what_is_said_of_the_goals():
    early = re.search(r"at a third of the budget on (\d+) of 20$", REPORT, re.MULTILINE)[1]
    found = re.search(r"global optimum in (\d+) of 160 runs", REPORT)[1]
    judged = [line.split(" | ")[11] for line in REPORT.splitlines() if re.match(r"\| [\w-]+ \| \d+ \|", line)]
    assert len(judged) == 45
    said = " ".join(README.split())
    assert f"on {early} of 20 problems, where the goal is 16" in said
    assert f"in {found} of 160 runs" in said
    assert f"On {judged.count('yes')} of them `auto` is not worse than the best rival" in said
    assert (judged.count("no"), judged.count("not decided")) == (1, 5)
    assert "in 12 dimensions it is worse, and five are not decided" in said
