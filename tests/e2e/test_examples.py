"""The examples run and find what they look for."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs an example as from the terminal, in this process to spare the start of another; gives what it printed."""

    def run_example(name):
        monkeypatch.setattr("sys.argv", ["optimize.py", str(tmp_path / "made")])
        runpy.run_path(str(EXAMPLES / name / "optimize.py"), run_name="__main__")
        return capsys.readouterr().out

    return run_example


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: no cc on the PATH")
def test_a_program_in_c(run, tmp_path):
    found = float(re.search(r"minimum (\S+)", run("program_c"))[1])
    assert found == pytest.approx(-1.0316, abs=0.01)
    assert len(list((tmp_path / "made/evaluations").iterdir())) == 20


def test_without_a_compiler(run, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(SystemExit, match="needs a C compiler: no cc on the PATH"):
        run("program_c")


def test_a_shell_script(run, tmp_path):
    """The best of a grid of steps of 0.01 over the box is 260.74."""
    found = float(re.search(r"^(\S+) cm2", run("program_shell"))[1])
    assert found == pytest.approx(260.74, abs=2.0)
    assert "radius" in (tmp_path / "made/000001/stderr.txt").read_text()
