"""The numbers of the README are those of the results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REPORT = (ROOT / "results/auto/auto-report.md").read_text()
METHODS = ("auto", "l-bfgs", "basin-hopping", "cma-es")  # the columns of the table
ROWS = re.findall(r"^\| ([\w-]+) \| (\d+) \| ((?:\d+/\d+ \| ?)+)$", README, re.MULTILINE)
SCALES = {
    name: (int(budget), float(scale))
    for name, budget, scale in re.findall(r"^\| ([\w-]+) \| (\d+) \| ([\d.e+-]+) \|", REPORT, re.MULTILINE)
}


def final_regrets(method: str, problem: str) -> list[float]:
    """Of the report's seeds, which are below 100."""
    runs = map(json.loads, (ROOT / f"results/auto/{method}.jsonl").read_text().splitlines())
    return [run["regrets"][-1][1] for run in runs if run["problem"] == problem and run["seed"] < 100]


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


def test_goals_that_are_missed():
    bars = re.findall(r"^- \*\*(missed|met)\*\*(.*)$", REPORT, re.MULTILINE)
    assert [verdict for verdict, _ in bars].count("missed") == 2
    assert len(bars) == 5
    assert re.search(r"at a third of the budget on 14 of 20$", REPORT, re.MULTILINE)
    waits = [json.loads(line)["max_wait"] for line in (ROOT / "results/auto/auto.jsonl").read_text().splitlines()]
    assert f"took {max(waits):.2f} s" in README
