"""The numbers of `auto`: few, in one place, each with its unit and reason."""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import eign
from eign.models.selection import ModelSettings
from eign.strategies.auto.settings import Settings

SOURCE = Path(eign.__file__).parent
FILES = sorted([*(SOURCE / "strategies" / "auto").glob("*.py"), *(SOURCE / "models" / "selection").glob("*.py")])
MOST = 20
# Of what is stored, and a guard: 2 to the power of a thousand is no number.
NAMED = {"VERSION", "_LONGEST"}


def literals(path: Path) -> Iterator[float]:
    """Numbers in the code but for 0, 1 and 2 and those that are named."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in NAMED
    }
    for node in ast.walk(tree):
        is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if is_number and node.value not in (0, 1, 2) and id(node) not in named:
            yield node.value


def test_numbers_are_few_and_in_one_file():
    assert {path.name for path in FILES if list(literals(path))} == {"settings.py"}
    assert len(FILES) >= 7
    count = sum(len(list(literals(path))) for path in FILES)
    assert 0 < count <= MOST
    assert count == 18, "docs/auto.md says how many there are"


def test_every_number_has_its_reason():
    for settings in (Settings, ModelSettings):
        assert settings.__doc__ is not None
        for one in fields(settings):
            assert f"\n        {one.name}: " in settings.__doc__
