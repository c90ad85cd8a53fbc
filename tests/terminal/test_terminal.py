"""Studies from the terminal: with real processes where these matter, else in this one, as starts cost seconds."""

import fcntl
import io
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from eign import Optimizer, cli, read_table
from eign.study.handle import handle

ROOT = Path(__file__).parents[2]
EIGN = [sys.executable, "-c", "import sys; from eign.cli import main; sys.exit(main())"]
SPEC = """
method = "l-bfgs"
seed = 4
budget = 10
storage = "study.db"

[bounds]
a = [-1.0, 2.0]
b = { low = 0.1, high = 10.0, scale = "log" }

[objective]
python = "terminal_bowl:evaluate"
"""
FUNCTION = """
import os, time
from eign.study.handle import handle
def evaluate(p):
    time.sleep(float(os.environ.get("BOWL_SECONDS", "0")))
    return (p["a"] - 0.3) ** 2 + (p["b"] - 2.0) ** 2, {"a": 2 * (p["a"] - 0.3), "b": 2 * (p["b"] - 2.0)}
"""


def started(*arguments, cwd, **environment):
    return subprocess.Popen(
        [*EIGN, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "terminal_bowl.py").write_text(FUNCTION)
    yield tmp_path
    sys.modules.pop("terminal_bowl", None)


@pytest.fixture
def run(capsys, monkeypatch):
    """A command in this process; gives its exit code, stdout and stderr."""

    def command(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = cli.main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


def test_optimize_killed_and_resumed_is_the_undisturbed_run(here, run):
    """A process of its own, killed in the middle of an evaluation, and everything a neighbour sees of it meanwhile."""
    process = started("optimize", "spec.toml", cwd=here, BOWL_SECONDS="0.3")
    deadline = time.monotonic() + 100
    while not (here / "study.db").exists() or run("status", "study.db", "--json")[1].count('"evaluations": 0'):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    code, out, err = run("ask", "study.db", "--wait", "0")
    assert (code, out) == (1, "")
    assert re.fullmatch(
        rf"eign: error: study.db is in use by process {process.pid} of .* \(-c optimize spec.toml\)\n", err
    )
    assert f"in use by    process {process.pid} of" in run("status", "study.db")[1]
    code, out, _ = run("export", "study.db", "out.csv")
    assert (code, out.split()[0]) == (0, str(len(read_table("out.csv", Optimizer.view("study.db").box))))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = Optimizer.view("study.db").history
    assert 0 < len(before) < 10

    code, _, err = run("optimize", "spec.toml")
    assert (code, err) == (
        1,
        "eign: error: study.db exists; to continue that study give --resume, for a new one a new name\n",
    )
    code, out, err = finished(started("optimize", "spec.toml", "--resume", "--json", cwd=here))
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["evaluations"] == 10
    assert result["success"] is True

    (here / "spec.toml").write_text(SPEC.replace("study.db", "undisturbed.db"))
    assert run("optimize", "spec.toml")[0] == 0
    resumed, undisturbed = Optimizer.view("study.db"), Optimizer.view("undisturbed.db")
    assert resumed.history == undisturbed.history
    assert handle(resumed).state == handle(undisturbed).state
    assert resumed.best.y == result["value"]


def test_interrupting_gives_the_best_so_far_and_exit_code_130(here):
    process = started("optimize", "spec.toml", cwd=here, BOWL_SECONDS="0.2")
    deadline = time.monotonic() + 100
    while not (here / "study.db").exists() or len(Optimizer.view(here / "study.db").history) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    code, out, _ = finished(process)
    assert code == 130
    assert out.startswith("interrupted; this is the best so far\nvalue ")


def test_a_laboratory_with_a_spreadsheet(here, run):
    code, out, _ = run("init", "lab.db", "spec.toml")
    assert (code, out) == (0, "lab.db: 2 coordinates, method l-bfgs, seed 4\n")
    assert run("init", "lab.db", "spec.toml")[0] == 1
    code, table, _ = run("ask", "lab.db", "-n", 3, "--format", "csv")
    lines = table.splitlines()
    assert lines[0] == "a,b,value,gradient_a,gradient_b,reason"
    assert len(lines) == 4
    assert run("ask", "lab.db", "--pending", "--format", "csv")[1] == table
    # Two are measured, one of them fails, and the third waits.
    (here / "filled.csv").write_text(
        "\n".join([lines[0], lines[1].replace(",,,,", ",1.5,0.1,-0.2,"), lines[2].replace(",,,,", ",nan,,,"), lines[3]])
    )
    code, out, _ = run("tell", "lab.db", "filled.csv")
    assert (code, out) == (
        0,
        "told 2 (1 failed); 1 row without a value left out; 2 evaluations in all, 1 pending; best 1.5\n",
    )
    assert run("tell", "lab.db", "filled.csv")[1].startswith("told 0; 2 were known already; ")
    assert run("ask", "lab.db")[1] not in table
    assert run("tell", "lab.db", "--x", "a=0.5,b=3", "--y", "1.25", "--gradient", "0.4,2")[0] == 0
    code, out, _ = run("status", "lab.db")
    assert code == 0
    assert "best value   1.25, evaluation 3" in out
    assert "pending      2" in out
    for name in ("out.csv", "out.parquet", "out.json"):
        assert run("export", "lab.db", name) == (0, f"3 evaluations to {name}\n", "")
    assert read_table("out.csv", Optimizer.view("lab.db").box) == Optimizer.view("lab.db").history
    assert json.loads((here / "out.json").read_text())[2]["reason"] == "told"


def test_a_wrong_entry_is_taken_back(here, run):
    run("init", "lab.db", "spec.toml")
    for x in ("0.5,3", "0.5,4"):
        run("tell", "lab.db", "--x", x, "--y", "-1000")
    assert run("retract", "lab.db", "--x", "a=0.5,b=3") == (0, "retracted 1 evaluation; 1 evaluation left\n", "")
    assert run("tell", "lab.db", "--x", "0.5,3", "--y", "1")[1].startswith("told 1; 2 evaluations in all")
    code, _, err = run("retract", "lab.db", "--x", "0,1")
    assert (code, err) == (1, "eign: error: there is nothing to retract at x = [0.0, 1.0]: it was never told\n")
    assert "evaluations  2 of 10\n" in run("status", "lab.db")[1]


def test_json_in_and_out(here, run):
    run("init", "lab.db", "spec.toml")
    code, out, _ = run("ask", "lab.db", "-n", 2)
    points = [json.loads(line) for line in out.splitlines()]
    answers = "".join(json.dumps({"x": point["x"], "value": 1.0 + i}) + "\n" for i, point in enumerate(points))
    code, out, _ = run("tell", "lab.db", stdin=answers)
    assert (code, out) == (0, "told 2; 2 evaluations in all, 0 pending; best 1\n")
    (here / "point.json").write_text(run("ask", "lab.db")[1])
    code, out, _ = run("tell", "lab.db", "--point", "point.json", stdin='{"value": 0.5, "gradient": [1, 2]}')
    assert (code, out) == (0, "told 1; 3 evaluations in all, 0 pending; best 0.5\n")
    summary = json.loads(run("status", "lab.db", "--json")[1])
    assert summary["best"]["gradient"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["optimize", "none.toml"], 1, "there is no file none.toml"),
        (["optimize", "bad.toml"], 1, "bad.toml, line 1: budget: expected a whole number, at least 1, got 0"),
        (["ask", "none.db"], 1, "there is no study none.db; to begin one: eign init none.db SPEC.toml"),
        (["tell", "none.db", "--x", "1,2", "--y", "1"], 1, "there is no study none.db; to begin one: eign init"),
        (["init", "lab.db", "spec.toml"], 1, "lab.db exists; `eign status lab.db` shows it, for a new study give"),
        (["plot", "lab.db", "--to", "lab.png"], 1, "there is nothing to plot: no value has been told"),
        (["plot", "lab.db", "--to", "lab.xls"], 1, "lab.xls: expected one of the endings .png, .pdf, .svg"),
        (["tell", "lab.db", "bare.csv"], 1, "bare.csv: there is no column with the value, expected 'value' or 'y'"),
        (["tell", "lab.db", "none.csv"], 1, "eign: error: none.csv: No such file or directory"),
        (
            ["tell", "lab.db", "latin.csv"],
            1,
            "latin.csv, line 2: expected UTF-8; if a spreadsheet wrote it, save it as CSV",
        ),
        (["status", "spec.toml"], 1, "spec.toml is not a study: it is no SQLite file"),
        (["tell", "lab.db", "--x", "1,2"], 2, "give --x and --y together"),
        (["tell", "lab.db", "--x", "9,2", "--y", "1"], 1, "x is outside the box: 9.0 for 'a'"),
        (["tell", "lab.db"], 1, "stdin is empty, expected evaluations in JSON or CSV"),
        (["ask", "lab.db", "--format", "xml"], 2, "'xml' is not one of 'json', 'csv'"),
        (["ask", "lab.db", "-n", "0"], 2, "-n"),
        (["export", "lab.db", "out.xls"], 1, "out.xls: expected one of the endings .csv, .parquet, .json"),
        (["export", "lab.db", "lab.db"], 1, "expected one of the endings"),
    ],
)
def test_errors_take_one_line(here, run, arguments, code, message):
    (here / "bad.toml").write_text("budget = 0\n")
    (here / "latin.csv").write_bytes("a,b,value,comment\n0,1,2,\u00e9t\u00e9\n".encode("latin-1"))
    (here / "bare.csv").write_text("a,b,result,gradient_a,gradient_b\n0,1,2,3,4\n")
    Optimizer({"a": (-1, 2), "b": (0.1, 10)}, method="sobol", seed=0, storage="lab.db").close()
    assert run(*arguments)[0] == code
    _, out, err = run(*arguments)
    assert out == ""
    assert err.startswith("eign: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert len(Optimizer.view("lab.db").history) == 0


def test_another_encoding_on_stdin_is_said(here, monkeypatch, capsys):
    Optimizer([(0.0, 1.0)], method="sobol", seed=0, storage="lab.db").close()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x0,value,\xe9\n"), encoding="utf-8"))
    assert cli.main(["tell", "lab.db"]) == 1
    assert "stdin: expected UTF-8; if a spreadsheet wrote it, save it as CSV UTF-8" in capsys.readouterr().err


def test_all_evaluations_failing_is_exit_code_1(here, run):
    (here / "terminal_bowl.py").write_text("def evaluate(p):\n    raise ValueError('no mesh')\n")
    (here / "spec.toml").write_text(SPEC.replace("budget = 10", 'budget = 2\non_error = "fail"'))
    code, out, _ = run("optimize", "spec.toml", "--json")
    assert code == 1
    assert json.loads(out)["value"] is None
    (here / "spec.toml").write_text(SPEC.replace("study.db", "other.db"))
    code, _, err = run("optimize", "spec.toml")
    assert code == 1
    assert re.fullmatch(r"eign: error: no mesh\n  in evaluation 1, at x = \{'a': .*, 'b': .*\}\n", err)


def test_of_a_full_disk_the_evaluations_that_the_file_lacks_are_printed(here, run):
    """For eign tell, as the process is over; then the study goes on."""
    (here / "terminal_bowl.py").write_text(
        "import resource\n"
        "def evaluate(p):\n"
        "    evaluate.count += 1\n"
        "    if evaluate.count == 5:\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))\n"
        "    return p['a'] ** 2 + p['b'], [2 * p['a'], 1.0]\n"
        "evaluate.count = 0\n"
    )
    (here / "spec.toml").write_text(SPEC)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        code, _, err = run("optimize", "spec.toml")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 1
    first, second, lost, last = err.splitlines()
    assert re.fullmatch(r"eign: error: cannot write to .*study.db: the disk .*\.", first)
    assert re.fullmatch(r"  The file lacks 1 evaluation; give this to eign tell .*study.db:", second)
    assert last == "  When that is mended, go on with: eign optimize spec.toml --resume"
    assert len(Optimizer.view("study.db").history) == 4
    (here / "lost.json").write_text(lost)
    assert run("tell", "study.db", "lost.json")[0] == 0
    assert run("optimize", "spec.toml", "--resume")[0] == 0
    assert len(Optimizer.view("study.db").history) == 10


def test_a_failing_program_shows_its_point_and_its_last_lines(here, run):
    (here / "fail.sh").write_text("#!/bin/sh\necho reading mesh >&2\nprintf '\\033[31mno convergence\\n' >&2\nexit 3\n")
    (here / "fail.sh").chmod(0o755)
    (here / "spec.toml").write_text(SPEC.replace('python = "terminal_bowl:evaluate"', 'program = ["./fail.sh"]'))
    code, _, err = run("optimize", "spec.toml")
    assert code == 1
    lines = err.splitlines()
    assert lines[0] == "eign: error: fail.sh ended with exit code 3"
    assert lines[1:4] == ["  the end of its stderr:", "  reading mesh", "  \\x1b[31mno convergence"]
    assert lines[4].startswith("  in evaluation 1, at x = {'a': ")


def test_a_function_without_a_gradient_is_told_what_to_write_in_the_spec(here, run):
    (here / "terminal_bowl.py").write_text("def evaluate(p):\n    return p['a'] ** 2\n")
    code, _, err = run("optimize", "spec.toml")
    assert code == 1
    assert "returned float: return (value, gradient), or write gradient = false under [objective]" in err


def test_one_evaluation_is_one(here, run):
    (here / "spec.toml").write_text(SPEC.replace("budget = 10", "budget = 1"))
    assert run("optimize", "spec.toml")[1].startswith("the budget of 1 evaluation is used\n")


def test_a_picture_and_a_plot_of_a_study(here, run):
    run("optimize", "spec.toml")
    code, out, _ = run("plot", "study.db", "--to", "study.png")
    assert (code, out) == (0, "a picture of 10 evaluations to study.png\n")
    assert (here / "study.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run("plot", "study.db")
    assert code == 0
    assert "evaluations 1 to 10; * best so far" in out
    assert len(out.splitlines()) == 20


def read_all(descriptor):
    """What a program writes to its terminal, to the end."""
    seen = b""
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # the other side has closed
            return seen.decode()
        if not part:
            return seen.decode()
        seen += part


def in_terminal(*arguments, cwd, code=0):
    """Run a command in a terminal of 80 columns; gives what it shows there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*EIGN, *arguments], cwd=cwd, env={**environment, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = read_all(ours)
    os.close(ours)
    assert process.wait(60) == code, shown
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def test_an_error_is_broken_between_words_in_a_terminal_and_nowhere_else(here, run):
    (here / "spec.toml").write_text(SPEC.replace("budget", "budgt"))
    *_, whole = run("optimize", "spec.toml")
    assert whole.count("\n") == 1
    lines = in_terminal("optimize", "spec.toml", cwd=here, code=1).splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == whole.strip()


def test_options_have_the_words_of_the_json(here, run):
    Optimizer({"a": (-1, 2), "b": (0.1, 10)}, method="sobol", seed=0, storage="lab.db").close()
    assert run("ask", "lab.db", "--n", 2)[1].count("\n") == 2
    assert run("tell", "lab.db", "--x", "0.5,3", "--value", "1.25")[0] == 0
    assert Optimizer.view("lab.db").history.y.tolist() == [1.25]


def test_progress_in_a_terminal_of_80_columns_shows_the_best_value(here):
    spec = SPEC.replace("a = [-1.0, 2.0]", "inlet_temperature_of_the_second_stage = [-1.0, 2.0]\na = [-1.0, 2.0]")
    (here / "spec.toml").write_text(spec)
    (here / "terminal_bowl.py").write_text(
        "def evaluate(p):\n    return -1.23457e-300 * (1 + p['a']), {name: -1.2e-300 for name in p}\n"
    )
    shown = in_terminal("optimize", "spec.toml", cwd=here)
    lines = [line for line in re.split(r"[\r\n]+", shown) if line]
    bars = [line for line in lines if "/10" in line]
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(bars)
    assert re.search(r"10/10 best -[\d.]+e-300  \|gradient\| [\d.]+e-300 ", bars[-1])
    # A finished study that is resumed shows what it has.
    again = in_terminal("optimize", "spec.toml", "--resume", cwd=here)
    assert re.search(r"10/10 best -[\d.]+e-300", again)
    assert "the budget of 10 evaluations is used" in again
    assert max(map(len, re.split(r"[\r\n]+", in_terminal("status", "study.db", cwd=here)))) <= 80


def test_a_batch_queue(tmp_path):
    """Two chains of jobs at once, every command a process of its own, and no process in between."""
    shim = tmp_path / "bin" / "eign"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; from eign.cli import main; sys.exit(main())" "$@"\n'
    )
    shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}

    def shell(*arguments):
        command = [str(argument) for argument in arguments]
        return subprocess.run(command, check=True, timeout=240, env=environment, capture_output=True, text=True).stdout

    # The example's own study is begun with the default method, whose packages take longer to load.
    spec, study, table = tmp_path / "tin.toml", tmp_path / "tin.db", tmp_path / "tin.csv"
    spec.write_text((ROOT / "examples/batch_queue/tin.toml").read_text().replace('"auto"', '"sobol"'))
    shell("eign", "init", study, spec)
    shell("sh", ROOT / "examples/batch_queue/submit.sh", study, 2, 1)
    view = Optimizer.view(study)
    assert (len(view.history), len(view.pending), view.reasons) == (2, 0, ["sobol"] * 2)
    assert view.history.has_grad.all()
    assert "evaluations  2\n" in shell("eign", "status", study)
    shell("eign", "export", study, table)
    assert read_table(table, view.box) == view.history


def test_completion_knows_the_commands():
    environment = {**os.environ, "_EIGN_COMPLETE": "complete_bash", "COMP_WORDS": "eign opt", "COMP_CWORD": "1"}
    result = subprocess.run(EIGN, env=environment, capture_output=True, text=True, timeout=60)
    assert result.stdout.split() == ["optimize"]


CONSTRAINED = """
method = "sobol"
seed = 0
budget = 8

[bounds]
a = [0.0, 1.0]
b = [0.0, 1.0]

[constraints]
sum = { lower = 1.0 }

[objective]
program = ["python3", "-c", "import json; x = json.loads(input())['x']; s = x['a'] + x['b']; \\
print(json.dumps({'value': s, 'gradient': [1, 1], \\
'constraints': {'sum': s}, 'constraint_gradients': {'sum': [1, 1]}}))"]
"""


def test_a_program_that_answers_constraints(here, run):
    spec = CONSTRAINED.replace("\\\n", "")
    (here / "spec.toml").write_text(spec)
    code, out, err = run("optimize", "spec.toml", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["value"] == result["constraints"]["sum"] >= 1.0
    assert result["violation"] == 0.0
    (here / "spec.toml").write_text(spec.replace("lower = 1.0", "lower = 3.0"))
    code, out, _ = run("optimize", "spec.toml")
    assert code == 1
    assert "nothing feasible was found: the least violated point is" in out
    assert re.search(r"^violation +\d", out, re.MULTILINE)


def test_a_batch_queue_with_constraints(here, run):
    (here / "spec.toml").write_text(CONSTRAINED.replace("\\\n", ""))
    assert run("init", "study.db", "spec.toml")[1] == "study.db: 2 coordinates, 1 constraint, method sobol, seed 0\n"
    point = json.loads(run("ask", "study.db")[1])
    answer = {**point, "value": 3.0, "constraints": {"sum": 0.5}}
    assert run("tell", "study.db", stdin=json.dumps(answer))[1].endswith("best 3, infeasible by 0.5\n")
    code, out, _ = run("tell", "study.db", "--x", "1,1", "--y", "2", "--constraint", "sum=2")
    assert (code, out) == (0, "told 1; 2 evaluations in all, 0 pending; best 2\n")
    assert "violation    none" in run("status", "study.db")[1]
    assert "x infeasible" in run("plot", "study.db")[1]
    assert "constraint_sum" in run("ask", "study.db", "--format", "csv")[1]
    assert run("export", "study.db", "out.csv")[0] == 0
    assert len(read_table("out.csv", Optimizer.view("study.db").box, constraints=["sum"])) == 2
    assert run("tell", "study.db", "--x", "1,1", "--y", "2", "--constraint", "sun=2")[0] == 1
