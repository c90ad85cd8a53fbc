"""The examples of the integrations run as they stand, and find what they look for."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_optuna(capsys):
    printed = output("optuna_gradients.py", capsys)
    assert float(re.search(r"misfit (\S+) after 50 trials", printed)[1]) < 1e-3
    assert "frequency 3.7" in printed


def test_bo_with_gradients_in_thirty_lines(capsys):
    assert len((EXAMPLES / "botorch_1626.py").read_text().splitlines()) == 30
    assert float(re.search(r"best of 16: (\S+) at", output("botorch_1626.py", capsys))[1]) > 2.99


# BoTorch tries again where SciPy's line search ends at rounding errors.
@pytest.mark.filterwarnings("ignore:Optimization failed in `gen_candidates_scipy`:RuntimeWarning")
def test_acquisitions_of_both_sides(capsys):
    printed = output("botorch_acquisitions.py", capsys)
    optimum = float(re.search(r"optimum (\S+)", printed)[1])
    rows = re.findall(r"(\w+)GradientGP .*: (\S+) to (\S+)", printed)
    assert [kind for kind, *_ in rows] == ["Joint", "Joint", "Independent", "Joint"]
    for kind, first, last in rows:
        # With gradients in the surrogate eight evaluations are enough; without they find the way.
        left = (optimum - float(last)) / (optimum - float(first))
        assert left < (0.01 if kind == "Joint" else 0.5)


def test_ax(capsys):
    loss, optimum = map(
        float,
        re.search(r"loss (\S+) after 18 trials; the optimum is (\S+)", output("ax_gradients.py", capsys)).groups(),
    )
    assert loss == pytest.approx(optimum, abs=1e-2)
