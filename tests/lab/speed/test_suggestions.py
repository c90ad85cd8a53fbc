"""The speed comparison runs, and judges all suggestions by one acquisition."""

import io

import pytest
from rich.console import Console

from eign_lab.speed.suggestions import STARTS, measure_suggestion, suggestion_table


@pytest.mark.filterwarnings("ignore")  # the peers warn about their own fits
def test_one_small_comparison():
    row = measure_suggestion("joint", 2, 8, steps=1)
    assert all(seconds > 0 for seconds in (row.seconds, *(row.peers[start].seconds for start in STARTS)))
    assert row.searched == (1, 1)
    assert row.not_lower[1] == 2
    assert row.ratio("cold") == row.peers["cold"].seconds / row.seconds
    out = io.StringIO()
    Console(file=out, width=80).print(suggestion_table([row]))
    assert "dEI-GN" in out.getvalue()
    assert "2, 8" in out.getvalue()
    for number in (f"{row.seconds:.4f}", f"{row.fit_seconds:.4f} + {row.search_seconds:.4f}", f"{row.shortfall:.1e}"):
        assert number in out.getvalue()
    assert "…" not in out.getvalue()
