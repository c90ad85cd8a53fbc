"""`import eign` is light, and what it promises is reachable."""

import ast
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [("*[!y].py", {"torch"}), ("*_numpy.py", {"numpy", "scipy", "eign"})],
    ids=["torch", "numpy"],
)
def test_forms_in_torch_and_in_numpy_keep_apart(pattern, allowed):
    folder = Path(eign.__file__).parent / "formulas"
    sources = [path for path in folder.glob(pattern) if path.name != "__init__.py"]
    assert sources
    trees = [ast.parse(path.read_text()) for path in sources]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in names if not name.startswith("eign.formulas")}
    assert roots - sys.stdlib_module_names == allowed
