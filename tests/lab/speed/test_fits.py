from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from eign_lab.speed import fits
from eign_lab.speed.fits import ALLOWED_GAP, dgemm_rate, samples
from eign_lab.speed.growth import Growth, StepCosts
from eign_lab.speed.many_dimensions import IterativeCosts, ManyCosts
from eign_lab.speed.printed import report_fits, report_growth, report_many


def test_fit_is_measured_beside_botorch_and_printed() -> None:
    out = StringIO()
    (row,) = report_fits(Console(file=out, width=80), sizes=[(2, 6)], steps=1)
    assert row.seconds > 0
    assert row.gap <= ALLOWED_GAP
    assert (row.cold.start, row.warm.start) == ("cold", "warm")
    assert row.evaluations >= 3
    assert "2, 6" in out.getvalue()
    assert f"{row.seconds:.4f}" in out.getvalue()
    assert "…" not in out.getvalue()
    assert f"{row.cold.seconds / row.seconds:.0f}" in out.getvalue()


def test_growth_of_both_models_is_measured_and_printed() -> None:
    out = StringIO()
    rows = report_growth(Console(file=out, width=80), sizes=[(2, 5), (2, 60), (2, 90)], most_rows=180)
    assert [(row.model, row.n) for row in rows] == [
        (model, n) for model in ("independent", "joint") for n in (5, 60, 90)
    ]
    assert [type(row) for row in rows] == [*[Growth] * 5, StepCosts]
    assert 0 < rows[0].megabytes < rows[2].megabytes
    assert out.getvalue().count("independent") == 3
    assert max(map(len, out.getvalue().splitlines())) <= 80
    # Beyond the limit there are single steps, and it says that there is no refit.
    steps = rows[-1]
    assert min(steps.evaluation_seconds, steps.factor_seconds, steps.posterior_seconds, steps.append_seconds) > 0
    assert 0.05 < steps.gigabytes < 8  # Python with PyTorch, and next to nothing for 270 rows
    assert "no refit, 270 rows:\n  one MAP evaluation" in out.getvalue()


def test_many_dimensions_are_measured_beside_the_peers() -> None:
    out = StringIO()
    rows = report_many(Console(file=out, width=400), sizes=[(20, 4), (2000, 3)], iterative_sizes=[(12, 16)])
    costs = [row for row in rows if isinstance(row, ManyCosts)]
    # The dense model and GPyTorch's are left out where they would have too many rows.
    assert [(row.model, row.dim, row.rows) for row in costs] == [
        ("spanned", 20, 16),
        ("joint", 20, 84),
        ("gpytorch", 20, 84),
        ("spanned", 2000, 9),
    ]
    assert all(row.evaluation_seconds > 0 and row.posterior_seconds > 0 for row in costs)
    (iterative,) = (row for row in rows if isinstance(row, IterativeCosts))
    assert iterative.converged
    assert max(iterative.mean_error, iterative.deviation_error) < 1e-5
    assert out.getvalue().count("MAP objective with gradient") == 4


def test_samples_are_reproducible() -> None:
    first, second = samples(3, 8), samples(3, 8)
    assert (first.x == second.x).all()
    assert first.first(5).standardized().shape == (5, 4)
    assert first.standardized().mean(dim=0).abs().max() < 1e-12


def test_dgemm_rate_is_that_of_the_fastest_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten products of 1000 x 1000 matrices, by a clock on which one of them takes 0.25 seconds and the others more."""
    seconds = [1.0, 0.5, 0.75, 0.25, *[2.0] * 6]
    ticks = iter(np.cumsum([part for duration in seconds for part in (100.0, duration)]))
    monkeypatch.setattr(fits, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert dgemm_rate(1) == pytest.approx(2 * 1000**3 / 0.25)
    assert next(ticks, None) is None
