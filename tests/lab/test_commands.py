"""The laboratory's commands join the terminal, and say what they lack."""

import tomllib
from pathlib import Path

import pytest
import typer

from eign_lab import commands
from eign_lab.runs.plugins import load_function

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_every_command_is_an_entry_point():
    entries = PROJECT["entry-points"]["eign.commands"]
    assert sorted(entries) == sorted(commands.__all__)
    for name, where in entries.items():
        assert load_function(where).__name__ == name


def test_the_packages_are_those_of_the_extra():
    listed = [name.partition(">")[0] for name in PROJECT["optional-dependencies"]["bench"]]
    assert sorted(listed) == sorted(commands._PACKAGES)


@pytest.mark.parametrize("name", commands.__all__)
def test_what_is_missing_is_told_in_one_line_before_anything_is_done(name, monkeypatch):
    monkeypatch.setattr(commands, "_PACKAGES", ("json", "nowhere_to_be_found"))
    with pytest.raises(ImportError, match=f"eign {name} needs nowhere_to_be_found: pip install 'eign\\[bench\\]'"):
        getattr(commands, name)()


def test_options_need_one_method_and_a_label():
    with pytest.raises(typer.BadParameter, match="one --method and a --label"):
        commands.judge("run", options='{"bowl": false}')
    with pytest.raises(typer.BadParameter, match="expected numbers and ranges"):
        commands.read_seeds("1-x")
