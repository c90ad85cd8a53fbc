"""The tutorial, followed from the first function to the resumed study: what it says is what happens."""

import re
import shlex
from pathlib import Path

import matplotlib as mpl

from eign import Optimizer, cli

mpl.use("Agg")

PAGE = Path(__file__).parents[2] / "docs/project.md"


def test_the_project_can_be_followed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace, printed = {}, []
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(block, PAGE.name, "exec"), namespace)
        else:
            for line in block.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "eign"
                assert cli.main(arguments) == 0
        printed.append(capsys.readouterr().out)
    text = "".join(printed)
    assert text.startswith("ratio 1.000000\n")
    assert abs(float(re.search(r"'frequency': ([\d.]+)", text)[1]) - 7.3) < 0.02
    assert "30 evaluations; the budget of 30 evaluations is used" in text
    assert "'initial': 1, " in text
    assert "'gradient check': 1" in text
    assert "12 evaluations; interrupted; this is the best so far" in text
    assert "24 evaluations to spring.csv" in text
    # The noise of the record has a variance of 0.0004.
    assert min(run.fun for run in namespace["runs"]["auto"]) < 0.0005
    study = Optimizer.view("spring.db")
    assert len(study.history) == 24
    assert study.history.n_failed >= 1
    # With two workers the order of the answers is up to the machine; the next basins are 0.6 away.
    assert abs(study.best.x[0] - 7.3) < 0.1
