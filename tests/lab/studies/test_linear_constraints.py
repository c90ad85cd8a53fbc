"""A small part of the random studies with linear constraints."""

import json

import numpy as np
import pytest

from eign.constraints import LinearRows
from eign.region import region_in
from eign.space import Box
from eign_lab.studies import linear_constraints
from eign_lab.studies.linear_constraints import fault, run_study


@pytest.mark.parametrize("first", [0, 10, 20])
def test_no_suggestion_violates_a_row(first: int) -> None:
    """The same studies as the first of the ten thousand."""
    assert [run_study(first + i)[2] for i in range(10)] == [None] * 10


def test_a_violation_by_one_rounding_is_found() -> None:
    """What the study looks for."""
    box, rows = Box([(0, 1)] * 3), LinearRows(np.ones((1, 3)), [-np.inf], [0.3])
    region = region_in(box, rows)
    assert fault(np.full(3, 0.1), rows, box, region) is not None
    assert fault(np.full(3, 0.0999), rows, box, region) is None


def test_several_processes_share_the_numbers_and_each_goes_on_where_it_stopped(monkeypatch, tmp_path, capsys):
    run = []
    monkeypatch.setattr(linear_constraints, "BLOCK", 2)
    monkeypatch.setattr(linear_constraints, "run_study", lambda number: (run.append(number), ("sobol", 3, None))[1])
    results = tmp_path / "results.jsonl"
    for count in ("6", "8"):
        monkeypatch.setattr("sys.argv", ["", "--first", "4", "--count", count, "--results", str(results)])
        linear_constraints.main()
    assert run == [4, 5, 6, 7]
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(line["block"], line["studies"], line["points"]) for line in lines] == [
        (2, {"sobol": 2}, 6),
        (3, {"sobol": 2}, 6),
    ]
    assert len(capsys.readouterr().out.splitlines()) == 2
