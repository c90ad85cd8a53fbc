from io import StringIO

import pytest
from rich.console import Console

from eign.campaign.speed import ALLOWED_GAP, dgemm_rate, measure_fit, measure_growth, samples
from eign.campaign.speed_tables import fit_table, growth_table


def test_fit_is_measured_beside_botorch_and_printed() -> None:
    row = measure_fit(2, 10, steps=2)
    assert row.seconds > 0
    assert row.gap <= ALLOWED_GAP
    assert (row.cold.start, row.warm.start) == ("cold", "warm")
    assert row.evaluations >= 3
    out = StringIO()
    Console(file=out, width=240).print(fit_table([row]))
    assert "2, 10" in out.getvalue()
    assert f"{row.cold.seconds / row.seconds:.0f}" in out.getvalue()


@pytest.mark.parametrize("model", ["independent", "joint"])
def test_growth_is_measured_and_printed(model: str) -> None:
    rows = [measure_growth(model, 2, n) for n in (5, 60)]
    assert rows[1].megabytes > rows[0].megabytes > 0
    out = StringIO()
    Console(file=out, width=120).print(growth_table(rows))
    assert out.getvalue().count(model) == 2


def test_samples_are_reproducible() -> None:
    first, second = samples(3, 8), samples(3, 8)
    assert (first.x == second.x).all()
    assert first.first(5).standardized().shape == (5, 4)
    assert first.standardized().mean(dim=0).abs().max() < 1e-12


def test_dgemm_rate_is_plausible() -> None:
    assert 1e8 < dgemm_rate(1) < 1e13
