"""The examples run and find what they look for."""

import importlib.util
import re
import runpy
import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

EXAMPLES = Path(__file__).parents[2] / "examples"


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: no cc on the PATH")


def load(path):
    """An example as a module, to look at its parts."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def central_differences(value, x, steps):
    """Derivatives of a function by each coordinate."""
    offsets = np.diag(steps)
    return np.array([(value(x + offset) - value(x - offset)) for offset in offsets]) / (2 * steps)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs an example as from the terminal, in this process to spare the start of another; gives what it printed."""

    def run_example(name, *arguments):
        directory = () if name.endswith(".py") else (str(tmp_path / "made"),)
        monkeypatch.setattr("sys.argv", [name, *directory, *arguments])
        runpy.run_path(
            str(EXAMPLES / name if name.endswith(".py") else EXAMPLES / name / "optimize.py"), run_name="__main__"
        )
        return capsys.readouterr().out

    return run_example


@needs_compiler
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


@needs_compiler
def test_the_adjoint_of_the_heat_equation_is_exact(tmp_path):
    """Central differences of 1e-5 have errors of 1e-7 here, by the third derivative."""
    plate = load(EXAMPLES / "heat_adjoint/optimize.py").Plate(tmp_path)
    rng = np.random.default_rng(0)
    low, high = np.array([[0.1, 0.1, 0.2] * 2, [0.9, 0.9, 1.5] * 2])
    for x in rng.uniform(low, high, (4, 6)):
        slopes = central_differences(lambda x: plate.misfit(x).value, x, np.full(6, 1e-5))
        assert np.array(plate.misfit(x).gradient) == pytest.approx(slopes, rel=1e-6, abs=1e-6 * np.abs(slopes).max())


@needs_compiler
def test_heaters_are_found_by_their_heat(run, tmp_path):
    """Of 64 local searches from Sobol points, 16 ended at the right place, and the best of the others at 5e-5."""
    printed = run("heat_adjoint")
    assert float(re.search(r"misfit (\S+) after 50", printed)[1]) < 1e-5
    example = load(EXAMPLES / "heat_adjoint/optimize.py")
    plate = example.Plate(tmp_path / "made")
    result = example.search(plate, method="sobol")
    example.draw(plate, result, {"sobol": [result]}, tmp_path / "heat.png")
    assert (tmp_path / "heat.png").stat().st_size > 10_000


def test_both_adjoints_of_the_heated_room_are_exact():
    """Central differences of 1e-6 have errors of 1e-7 of the largest slope here, by rounding."""
    example = load(EXAMPLES / "heat_design.py")
    names, (low, high) = list(example.BOUNDS), np.transpose(list(example.BOUNDS.values()))
    rng = np.random.default_rng(0)
    for x in rng.uniform(low, high, (3, 6)):
        found = example.simulate(dict(zip(names, x, strict=True)))
        for gradient, value in (
            (found.gradient, lambda x: example.simulate(dict(zip(names, x, strict=True))).value),
            (
                found.constraint_gradients["hottest spot"],
                lambda x: example.simulate(dict(zip(names, x, strict=True))).constraints["hottest spot"],
            ),
        ):
            slopes = central_differences(value, x, np.full(6, 1e-6))
            assert [gradient[name] for name in names] == pytest.approx(slopes, abs=1e-6 * np.abs(slopes).max())


def test_a_room_without_a_hot_spot(run, tmp_path):
    """Of 64 runs of SLSQP from random starts, 35 ended at 12.592 and the others at 37.6."""
    printed = run("heat_design.py", "--picture", str(tmp_path / "room.png"))
    assert float(re.search(r"discomfort (\S+),", printed)[1]) == pytest.approx(12.592, abs=0.1)
    assert float(re.search(r"hottest spot (\S+) of", printed)[1]) <= 36.0
    assert float(re.search(r"power (\S+) of", printed)[1]) <= 1.35
    assert (tmp_path / "room.png").stat().st_size > 10_000


def test_hypergradients_are_exact():
    """By the logarithm of the penalties, where differences of 1e-4 are accurate to 1e-8 or so."""
    example = load(EXAMPLES / "hypergradients.py")
    rng = np.random.default_rng(0)
    training, validation = example.draw(60, rng), example.draw(60, rng)
    for logs in rng.uniform(np.log(1e-4), np.log(1e2), (4, 8)):
        _, gradient = example.validation_loss(np.exp(logs), training, validation)
        slopes = central_differences(
            lambda logs: example.validation_loss(np.exp(logs), training, validation)[0], logs, np.full(8, 1e-4)
        )
        assert gradient * np.exp(logs) == pytest.approx(slopes, abs=1e-6 * np.abs(slopes).max())


def test_penalties_by_hypergradients(run, tmp_path):
    printed = run("hypergradients.py")
    (common, common_new), (each, each_new) = (
        map(float, pair) for pair in re.findall(r"validation loss (\S+), on new data (\S+)", printed)
    )
    assert each < common - 0.015
    assert each_new < common_new
    example = load(EXAMPLES / "hypergradients.py")
    rng = np.random.default_rng(0)
    result = example.search(example.draw(60, rng), example.draw(60, rng), method="sobol")
    example.draw_picture(result, {"sobol": [result]}, common, tmp_path / "hyper.png")
    assert (tmp_path / "hyper.png").stat().st_size > 10_000


def test_the_score_function_gradient_is_unbiased(monkeypatch):
    """Against differences with common random numbers, within four standard errors of both."""
    example = load(EXAMPLES / "policy_search.py")
    monkeypatch.setattr(example, "HORIZON", 60)
    w, seeds, steps = np.array([0.1, 0.3, 1.5, 1.0]), range(60), np.array([0.05, 0.05, 0.1, 0.1])
    estimates = np.array([example.evaluate(w, seed).gradient for seed in seeds])
    slopes = np.array(
        [central_differences(lambda w, seed=seed: example.evaluate(w, seed).value, w, steps) for seed in seeds]
    )
    errors = np.sqrt((estimates.var(axis=0, ddof=1) + slopes.var(axis=0, ddof=1)) / len(seeds))
    assert (np.abs(estimates.mean(axis=0) - slopes.mean(axis=0)) < 4 * errors).all()
    told = np.mean([example.evaluate(w, seed).gradient_variance for seed in seeds], axis=0)
    # The variance of 60 draws has a relative error of 18 per cent.
    assert told == pytest.approx(estimates.var(axis=0, ddof=1), rel=0.6)


def test_a_pole_is_balanced(run, tmp_path):
    picture = tmp_path / "policy.png"
    printed = run("policy_search.py", "--picture", str(picture))
    first, best = map(float, re.findall(r"policy: +(\S+) of 500 steps", printed))
    assert first < 100
    assert best > 450
    assert picture.stat().st_size > 10_000


def test_conductivities_of_a_plate(run):
    plate = load(EXAMPLES / "conductivities.py").Plate(6)
    x = np.random.default_rng(0).uniform(-1, 1, 36)
    differences = central_differences(lambda logs: plate.misfit(logs)[0], x, np.full(36, 1e-5))
    # Central differences of a misfit of about 1 are good to 1e-9 of the largest derivative.
    np.testing.assert_allclose(plate.misfit(x)[1], differences, atol=1e-8 * np.abs(differences).max())
    printed = run("conductivities.py", "--cells", "6", "--budget", "60")
    misfits = [float(word) for word in re.findall(r"misfit (\S+)", printed)]
    assert misfits[-1] < 0.1 * misfits[0]
