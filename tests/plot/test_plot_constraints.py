"""Pictures of studies with constraints: infeasible points are crosses and never the best."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import eign
from eign import Optimizer, plot
from eign.plot.comparison import best_curves
from eign.plot.interactive import convergence_interactive
from eign.plot.limits import draw_limits
from eign.plot.pictures import save_study
from eign.plot.runs import read_run
from eign.study.outlook import Prediction


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def told(**more):
    """Values 4, 1, 3, 2, of which those of the second and last point are infeasible."""
    opt = Optimizer([(0.0, 1.0)] * 2, method="sobol", seed=0, constraints={"c": (None, 0.0)}, **more)
    for value, constraint in ((4.0, -1.0), (1.0, 1.0), (3.0, -1.0), (2.0, np.nan)):
        opt.tell(opt.ask(), value, [value, 0.0], constraints=[constraint])
    return opt


def marks(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_the_best_so_far_is_feasible():
    opt = told()
    for run in (opt, {"history": opt.history, "maximize": False, "feasible": [True, False, True, False]}):
        assert read_run(run).best.tolist() == [4.0, 4.0, 3.0, 3.0]
        axes = plot.convergence(run)
        np.testing.assert_array_equal(marks(axes, "infeasible").get_ydata(), [np.nan, 1.0, np.nan, 2.0])
        np.testing.assert_array_equal(marks(axes, "value").get_ydata(), [4.0, np.nan, 3.0, np.nan])
        np.testing.assert_array_equal(marks(plot.gradient_norm(run), "at the best so far").get_ydata(), [4, 4, 3, 3])
    assert best_curves({"a": opt}, maximize=None)["a"].tolist() == [[4.0, 4.0, 3.0, 3.0]]


def test_a_result_says_what_was_feasible():
    result = eign.minimize(
        lambda x: (float(x[0]), [1.0]),
        [(0.0, 1.0)],
        constraints={"type": "ineq", "fun": lambda x: x[0] - 0.5},
        method="sobol",
        budget=8,
        seed=0,
    )
    np.testing.assert_array_equal(result.feasible, result.history.x[:, 0] >= 0.5)
    best = read_run(result).best
    assert best[np.isfinite(best)].min() >= 0.5


def test_without_constraints_there_are_no_crosses():
    axes = plot.convergence([3.0, 1.0])
    assert "infeasible" not in [line.get_label() for line in axes.lines]


@pytest.mark.parametrize("limit", [(None, 0.0), (None, -9.0)])
def test_a_picture_of_a_study(tmp_path, limit):
    opt = Optimizer([(0.0, 1.0)], method="sobol", seed=0, constraints={"c": limit})
    for value in (400.0, 1.0, 3.0):
        opt.tell(opt.ask(), value, [value], constraints=[-value])
    save_study(opt, tmp_path / "study.png")
    assert (tmp_path / "study.png").stat().st_size > 0


class _Outlook:
    def predict_constraints(self, x):
        return [Prediction(x[:, 0], np.ones(len(x)))]


def test_borders_of_constraints():
    """A vertical line where the surrogate is at its limit, and a hatched corner beyond a row."""
    opt = told()
    rows = eign.Optimizer([(0.0, 1.0)] * 2, method="sobol").linear
    assert not len(rows)
    x = np.linspace(0.0, 1.0, 5)
    points = np.column_stack([axis.ravel() for axis in np.meshgrid(x, x)])
    axes = plt.subplots()[1]
    draw_limits(axes, opt, _Outlook(), points - 0.4, (x - 0.4, x))
    [line] = axes.collections
    [path] = line.get_paths()
    np.testing.assert_allclose(path.vertices[:, 0], 0.0, atol=1e-12)


def traces(figure):
    return {trace.name: trace for trace in figure.data}


def test_the_interactive_picture_marks_what_is_infeasible():
    shown = traces(convergence_interactive(told()))
    assert (shown["infeasible"].x.tolist(), shown["infeasible"].y.tolist()) == ([2, 4], [1.0, 2.0])
    assert shown["infeasible"].marker.symbol == "x"
    assert (shown["value"].x.tolist(), shown["value"].y.tolist()) == ([1, 3], [4.0, 3.0])
    assert shown["best so far"].y.tolist() == [4.0, 4.0, 3.0, 3.0]
    free = Optimizer([(0.0, 1.0)], method="sobol", seed=0)
    free.tell([0.5], 1.0)
    assert "infeasible" not in traces(convergence_interactive(free))


def test_names_are_plain_text_on_the_page(tmp_path):
    opt = Optimizer({"<script>alert(1)</script>": (0.0, 1.0)}, method="sobol", seed=0)
    opt.tell({"<script>alert(1)</script>": 0.5}, 1.0)
    save_study(opt, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "alert(1)" in page
    [text] = traces(convergence_interactive(opt))["value"].text
    assert "&lt;script&gt;" in text
