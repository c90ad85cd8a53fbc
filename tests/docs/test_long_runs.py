"""The page on long runs, followed as a newcomer would: files are written, Python runs, commands are entered."""

import re
import shlex
import sys
from pathlib import Path

from eign import Optimizer, cli

PAGE = Path(__file__).parents[2] / "docs/long_runs.md"


def entered(line, capsys):
    """A line of a shell block: an `eign` command, perhaps with its output in a file."""
    command, _, target = line.partition(" > ")
    program, *arguments = shlex.split(command)
    assert program == "eign"
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    if target:
        Path(target).write_text(out)
    return code, out, err


def test_the_page_can_be_followed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    namespace, printed = {}, []
    for language, block in re.findall(r"^```(toml|python|sh)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if named := re.match(r"# (\S+\.(?:toml|py))\n", block):
            # A quick method: the page is about files.
            Path(named[1]).write_text(block.replace('method = "auto"', 'method = "l-bfgs"'))
        if language == "python":
            exec(compile(block, PAGE.name, "exec"), namespace)
            printed.append(capsys.readouterr().out)
        if language == "sh":
            for line in block.splitlines():
                code, out, err = entered(line, capsys)
                assert code == 0, (line, err)
                printed.append(out)
    sys.modules.pop("bowl", None)
    text = "".join(printed)
    assert text.startswith("6 evaluations\n9 evaluations\nTrue ['initial', 'initial']\n")
    assert "8 evaluations to bowl.csv" in text
    assert "told 0; 3 rows without a value left out" in text
    assert "told 1; 1 evaluation in all, 3 pending; best 2.75" in text
    assert len(Optimizer.view("run.db").history) == 9
