"""Commands that only read or extend a study load no more than they need: modules are counted, not seconds."""

import json
import subprocess
import sys

import pytest

from eign import Optimizer

HEAVY = {
    *("torch", "botorch", "gpytorch", "linear_operator", "jax", "scipy", "matplotlib", "pandas", "pyarrow", "sympy"),
    *("loky", "cloudpickle", "optuna", "ax", "distributed", "eign_lab.papers", "eign_lab.runs", "eign.models"),
}
# Some 420 today, most of them NumPy's; torch alone brings 1,500.
MOST_MODULES = 600

PROGRAM = """
import json, sys
from eign.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of the default method, which proposes with torch, and with points told and pending."""
    path = tmp_path_factory.mktemp("study") / "study.db"
    with Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)}, seed=0, storage=path) as opt:
        for x in opt.ask(12):
            opt.tell(x, float(x @ x), 2 * x)
        x = opt.ask()  # of the model
        opt.tell(x, float(x @ x), 2 * x)
        opt.tell([0.75, 0.5], 0.8125)
        opt.ask(2)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["methods"],
        ["problems"],
        ["paper", "--help"],
        ["status", "STUDY"],
        ["status", "STUDY", "--json"],
        ["plot", "STUDY"],
        ["export", "STUDY", "OUT.csv"],
        ["export", "STUDY", "OUT.json"],
        ["ask", "STUDY", "--pending"],
        ["tell", "STUDY", "--x", "0.25,0.5", "--y", "2", "--gradient", "0.5,1"],
        ["retract", "STUDY", "--x", "0.75,0.5"],
    ],
    ids=" ".join,
)
def test_no_command_loads_what_it_does_not_need(study, tmp_path, arguments):
    words = [word.replace("STUDY", str(study)).replace("OUT", str(tmp_path / "out")) for word in arguments]
    result = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=120)
    code, modules = json.loads(result.stderr.splitlines()[-1])
    assert code == 0, result.stderr
    assert not HEAVY & set(modules)
    assert len(modules) < MOST_MODULES


BEGINNING = """
import sys, eign
for method in eign.methods():
    opt = eign.Optimizer([(0, 1)] * 2, method=method, seed=0, budget=40)
    for point in [opt.ask(), *opt.ask(2)]:
        opt.tell(point, float(point @ point), 2 * point)
    opt.best, repr(opt)
print([name for name in ("torch", "botorch", "gpytorch", "jax") if name in sys.modules])
"""


def test_a_study_begins_without_torch():
    """Neither making an optimizer, with any method, nor its first points and values need a model."""
    result = subprocess.run([sys.executable, "-c", BEGINNING], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout == "[]\n"
