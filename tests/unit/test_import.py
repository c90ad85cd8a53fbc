"""`import eign` is light, and what it promises is reachable."""

import subprocess
import sys

import pytest

import eign

HEAVY = ["torch", "botorch", "scipy", "matplotlib", "plotly", "optuna", "ax", "distributed", "gymnasium", "cma", "jax"]


def test_import_loads_nothing_heavy():
    program = f"import sys, eign; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("name", eign.__all__)
def test_public_names_are_reachable(name):
    assert getattr(eign, name) is not None
    assert name in dir(eign)


def test_an_unknown_name_is_told_apart_from_the_known():
    with pytest.raises(AttributeError, match=r"no attribute 'Boxx'; it has .*Box"):
        eign.Boxx  # noqa: B018
