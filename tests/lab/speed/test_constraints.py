"""The table of what constraints cost."""

from io import StringIO

from rich.console import Console

from eign_lab.speed.constraints import measure_constraints, report_constraints


def test_suggestions_with_and_without_constraints_are_measured_and_printed() -> None:
    out = StringIO()
    rows = report_constraints(Console(file=out, width=80), counts=(0, 2), dim=2, told=6, steps=2)
    assert [row.constraints for row in rows] == [0, 2]
    assert all(len(row.seconds) == 2 and min(row.seconds) > 0 for row in rows)
    assert f"{1000 * rows[1].median:.0f}" in out.getvalue()
    assert f"{rows[1].median / rows[0].median:.1f}" in out.getvalue()
    assert "2 dimensions after 6 evaluations" in " ".join(out.getvalue().split())


def test_the_median_is_that_of_the_suggestions() -> None:
    row = measure_constraints(1, dim=2, told=5, steps=3)
    assert sorted(row.seconds)[1] == row.median
