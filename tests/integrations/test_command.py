"""Programs as objectives: the two ways in and out, time-outs, retries, directories, and errors that help."""

import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

import eign
from eign.evaluation import AnswerError
from eign.integrations.command import Command, CommandError


@pytest.fixture
def program(tmp_path):
    """Writes a shell script and gives its path; a shell starts in milliseconds."""

    def write(*lines):
        path = tmp_path / "simulate.sh"
        path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        path.chmod(0o755)
        return path

    return write


def answering(answer):
    """A program that gives this answer to every point."""
    return ["echo", answer if isinstance(answer, str) else json.dumps(answer)]


def test_a_point_on_stdin_and_an_answer_on_stdout(program, tmp_path):
    path = program('cat > seen; echo \'{"value": 1.5, "gradient": [1, null], "value_variance": 0.25}\'')
    told = Command([path], directory=tmp_path / "runs")(np.array([0.1, 2.0]))
    assert told == eign.Evaluation(1.5, [1, None], 0.25)
    directory = tmp_path / "runs" / "000001"
    assert sorted(entry.name for entry in directory.iterdir()) == ["input.json", "seen", "stderr.txt", "stdout.txt"]
    assert json.loads((directory / "seen").read_text()) == {"x": [0.1, 2.0]}
    assert (directory / "seen").read_text() == (directory / "input.json").read_text()


def test_files_by_argument(program, tmp_path):
    path = program('grep -q width "$1" && echo \'{"value": 2, "gradient": {"width": 3}}\' > "${2#--out=}"; echo done')
    told = Command([path, "{input}", "--out={output}"], input="file")({"width": 0.5, "length": 1.0})
    assert told == eign.Evaluation(2, {"width": 3})


def test_numbers_arrive_bitwise():
    x = np.random.default_rng(0).standard_normal(5) * 10.0 ** np.arange(-10, 15, 5)
    echo = [sys.executable, "-c", "import json; print(json.dumps({'value': 0, 'gradient': json.loads(input())['x']}))"]
    assert Command(echo)(x).gradient == x.tolist()


def test_names_for_points_that_are_arrays(program):
    path = program("read x; case $x in *width*) echo '{\"value\": 1}';; esac")
    assert Command([path], names=["width", "length"])([0.5, 1.0]).value == 1
    with pytest.raises(ValueError, match="2 names for points of 3 coordinates"):
        Command([path], names=["width", "length"])([0.5, 1.0, 2.0])


def test_the_last_line_is_enough():
    assert Command(answering('reading mesh\n12 iterations\n{"value": null}'))([0.0]).value is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("[1, 2]", r'answered: \[1, 2\], expected an object with a "value"'),
        ({"gradient": [1, 2]}, 'expected an object with a "value"'),
        ({"value": 1, "grad": [1, 2]}, "the key 'grad' is unknown; did you mean 'gradient'. Known: value, gradient"),
        ({"value": "1"}, "value = '1', expected a number or null"),
        ({"value": 1, "value_variance": True}, "value_variance = True, expected a number"),
        ({"value": 1, "gradient": [1, 2, 3]}, "gradient of length 3, expected 2"),
        ({"value": 1, "gradient": [1, "2"]}, "gradient = '2', expected a number or null"),
        ({"value": 1, "gradient": {"a": 1}}, "the points have no names"),
        ({"value": 1, "gradient": 3}, "expected a list of 2 numbers"),
        ({"value": 1, "gradient_variance": [1]}, "gradient_variance of length 1, expected 2"),
    ],
)
def test_answers_that_were_not_agreed(answer, message):
    with pytest.raises(AnswerError, match=message):
        Command(answering(answer))([0.0, 1.0])


def test_an_answer_that_was_not_agreed_ends_the_run():
    with pytest.raises(AnswerError, match="echo answered: there is no key 'vale'; did you mean 'value'"):
        eign.minimize(Command(answering({"vale": 1, "value": 1})), [(0, 1)], method="sobol", on_error="fail")


def test_unknown_names_in_a_gradient():
    with pytest.raises(AnswerError, match=r"gradient has no coordinate 'b'. Known: a"):
        Command(answering({"value": 1, "gradient": {"b": 1}}))({"a": 0.0})


def test_a_failure_shows_the_end_of_stderr(program, tmp_path):
    path = program("seq 1 100 >&2; echo 'no convergence' >&2; exit 3")
    with pytest.raises(CommandError) as caught:
        Command([path], directory=tmp_path / "runs")([0.0])
    assert str(caught.value).startswith(f"simulate.sh ended with exit code 3; see {tmp_path}/runs/000001\n")
    assert str(caught.value).endswith("\n99\n100\nno convergence")
    assert "\n50\n" not in str(caught.value)


def test_a_line_without_an_end_is_cut(program):
    path = program("head -c 30000000 /dev/zero | tr '\\0' x >&2; printf '\\nend\\n' >&2; exit 3")
    with pytest.raises(CommandError) as caught:
        Command([path])([0.0])
    assert len(str(caught.value)) < 1000
    assert str(caught.value).endswith("x\nend")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("true", "wrote nothing on stdout"),
        ("echo 3 iterations", "wrote no JSON on stdout, but '3 iterations'"),
    ],
)
def test_other_failures(program, script, message):
    with pytest.raises(CommandError, match=message):
        Command([program(script)])([0.0])


def test_a_long_argument_does_not_hide_the_failure():
    command = Command([sys.executable, "-c", "#" * 300 + "\nimport sys; sys.exit('no convergence')"])
    with pytest.raises(CommandError, match="no convergence"):
        command([0.5])


def test_no_output_file(program):
    with pytest.raises(CommandError, match="wrote nothing to its output file"):
        Command([program("true"), "{output}"])([0.0])


def test_a_time_out_kills_what_the_program_has_started_too(program, tmp_path):
    path = program(f"sleep 60 & echo $! > {tmp_path}/child; wait")
    begin = time.monotonic()
    with pytest.raises(CommandError, match=r"was killed after 0.3 s \(timeout\)"):
        Command([path], timeout=0.3)([0.0])
    assert time.monotonic() - begin < 20
    child = int((tmp_path / "child").read_text())
    while _is_running(child):
        assert time.monotonic() - begin < 20
        time.sleep(0.01)


def test_an_interrupt_ends_the_program(program, tmp_path):
    """As from the keyboard, while the program runs in this process's care."""
    path = program(f"echo $$ > {tmp_path}/child", "sleep 600")

    def interrupt():
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    result = eign.minimize(Command([path]), [(0, 1)], method="sobol", budget=2)
    assert result.message.startswith("interrupted")
    assert not _is_running(int((tmp_path / "child").read_text()))


def test_retries(program, tmp_path):
    path = program(f"echo try >> {tmp_path}/tries", f"[ $(wc -l < {tmp_path}/tries) -ge 3 ] && echo '{{\"value\": 1}}'")
    assert Command([path], retries=2, directory=tmp_path / "runs", keep="failed")([0.0]).value == 1
    assert sorted(entry.name for entry in (tmp_path / "runs").iterdir()) == ["000001", "000002"]
    (tmp_path / "tries").unlink()
    with pytest.raises(CommandError, match="exit code 1"):
        Command([path], retries=1)([0.0])
    assert (tmp_path / "tries").read_text().count("try") == 2


def test_environment(program):
    path = program('echo "{\\"value\\": $LOAD}"')
    assert Command([path], env={"LOAD": "7"})([0.0]).value == 7


def test_a_program_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="program 'simulat' not found: it is not on the PATH; give its path"):
        Command(["simulat"])
    with pytest.raises(FileNotFoundError, match=r"program './simulate' not found: there is no such file"):
        Command(["./simulate"])
    (tmp_path / "plain").write_text("text")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"./plain is no program: .* chmod \+x"):
        Command(["./plain"])
    (tmp_path / "plain").chmod(0o755)
    with pytest.raises(CommandError, match=r"plain cannot be started: .*Exec format error"):
        Command(["./plain"])([0.0])


def test_paths_are_made_absolute_and_texts_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("answer.json").write_text('{"value": 5}')
    assert Command(["cat", Path("answer.json")])([0.0]).value == 5
    with pytest.raises(
        CommandError, match=r"without answer.json: give its absolute path; in Python Path\('answer.json'\)"
    ):
        Command(["cat", "answer.json"])([0.0])


def test_there_is_no_shell(tmp_path):
    told = Command(["echo", '{"value": 1}', f"; touch {tmp_path}/made $(touch {tmp_path}/made)"])
    with pytest.raises(CommandError, match="wrote no JSON"):
        told([0.0])
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"argv": "echo 1"}, "expected a list"),
        ({"argv": []}, "expected a list"),
        ({"input": "pipe"}, "input='pipe'"),
        ({"input": "file"}, r"expected '\{input\}' among the arguments"),
        ({"argv": ["cat", "{input}"]}, r"expected '\{input\}' among the arguments"),
        ({"timeout": 0.0}, "timeout=0.0"),
        ({"retries": -1}, "retries=-1"),
        ({"keep": "none"}, "keep='none'"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Command(**({"argv": ["echo"]} | arguments))


def test_several_at_once_have_directories_of_their_own(program, tmp_path):
    path = program('read x; echo "$x" > mine; sleep 0.05; echo \'{"value": 1, "gradient": [0, 0]}\'')
    command = Command([path], directory=tmp_path / "runs")
    with ThreadPoolExecutor(4) as threads:
        result = eign.minimize(command, [(0, 1)] * 2, method="sobol", budget=12, seed=0, workers=threads)
    points = [json.loads((tmp_path / f"runs/{i:06d}/mine").read_text())["x"] for i in range(1, 13)]
    assert sorted(points) == sorted(result.history.x.tolist())


def test_programs_of_processes_that_are_ended_are_ended_too(program, tmp_path):
    """An error elsewhere stops the run; the program of the other worker must not go on for hours."""
    script = "read x; case $x in *0.25*) while [ ! -s {0}/child ]; do sleep 0.01; done; exit 1;; esac"
    path = program(script.format(tmp_path), f"echo $$ > {tmp_path}/child; sleep 600")
    with pytest.raises(CommandError, match="exit code 1"):
        eign.minimize(Command([path]), [(0, 1)], method="sobol", budget=2, x0=[[0.25], [0.75]], workers=2)
    begin, child = time.monotonic(), int((tmp_path / "child").read_text())
    while _is_running(child):
        assert time.monotonic() - begin < 20
        time.sleep(0.01)


def _is_running(pid):
    """Not a zombie: where nobody reaps orphans, they stay in the list of processes."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
