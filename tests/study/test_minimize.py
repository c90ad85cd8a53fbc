import io
import threading

import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import OptimizeResult, rosen, rosen_der

from eign import Box
from eign.study import Optimizer, Status, maximize, minimize
from eign.study.progress import Progress

SQUARE = [(-1.0, 2.0)] * 2


def bowl(x):
    return float(((x - 0.3) ** 2).sum()), 2 * (x - 0.3)


def test_result_is_scipys():
    result = minimize(bowl, SQUARE, method="l-bfgs", budget=20, seed=0)
    assert isinstance(result, OptimizeResult)
    assert (result.nfev, result.njev, result.nit, result.status) == (20, 20, 20, Status.BUDGET)
    assert result.success
    assert "budget of 20" in result.message
    np.testing.assert_allclose(result.x, 0.3, atol=1e-6)
    np.testing.assert_allclose(result.jac, 0.0, atol=1e-5)
    assert result.fun == result.history.y.min()


def test_maximize_mirrors_minimize():
    least = minimize(bowl, SQUARE, method="l-bfgs", budget=15, seed=0)
    most = maximize(lambda x: tuple(-part for part in bowl(x)), SQUARE, method="l-bfgs", budget=15, seed=0)
    np.testing.assert_array_equal(least.history.x, most.history.x)
    assert most.fun == -least.fun


def test_default_budget():
    assert minimize(bowl, SQUARE, method="sobol").nfev == 60


def test_jac_as_a_function_and_none():
    given = minimize(rosen, SQUARE, jac=rosen_der, method="l-bfgs", budget=60, seed=0)
    assert given.fun < 1e-6
    assert given.njev == 60
    for jac in (None, False):
        none = minimize(rosen, SQUARE, jac=jac, method="sobol", budget=5)
        assert none.njev == 0
        assert np.isnan(none.jac).all()


@pytest.mark.parametrize("answer", [1.0, np.float64(1.0), np.array([1.0, 2.0, 3.0]), None])
def test_a_value_alone_under_jac_true(answer):
    with pytest.raises(TypeError, match=r"return \(value, gradient\) or pass jac=None"):
        minimize(lambda _: answer, SQUARE, method="sobol", budget=2)


def test_a_wrong_kind_of_answer_is_no_failed_evaluation():
    with pytest.raises(TypeError, match=r"return \(value, gradient\)"):
        minimize(lambda _: 1.0, SQUARE, method="sobol", budget=2, on_error="fail")
    with pytest.raises(ValueError, match="grad has shape"):
        minimize(lambda _: (1.0, [1.0, 2.0, 3.0]), SQUARE, method="sobol", budget=2, on_error="fail")


def test_two_values_without_jac():
    with pytest.raises(ValueError, match="one number"):
        minimize(lambda x: x, SQUARE, jac=None, method="sobol", budget=2)


def test_args_reach_function_and_gradient():
    def value(x, center, *, factor=1.0):
        return factor * float(((x - center) ** 2).sum())

    result = minimize(
        value, SQUARE, jac=lambda x, center: 2 * (x - center), args=(0.7,), method="l-bfgs", budget=20, seed=0
    )
    np.testing.assert_allclose(result.x, 0.7, atol=1e-6)


def test_dict_bounds_give_dicts():
    def loss(point):
        assert list(point) == ["a", "b"]
        return point["a"] ** 2 + point["b"], {"b": 1.0, "a": 2 * point["a"]}

    result = minimize(loss, {"a": (-1, 2), "b": (0, 1)}, method="l-bfgs", budget=20, seed=0)
    np.testing.assert_allclose(result.x, [0, 0], atol=1e-6)


def test_fixed_coordinates_and_log_scales():
    box = Box([(1e-6, 1.0), (3, 3)], log=[0])

    def loss(x):
        assert x[1] == 3
        return np.log(x[0] / 1e-3) ** 2, [2 * np.log(x[0] / 1e-3) / x[0], 5.0]

    result = minimize(loss, box, method="l-bfgs", budget=20, seed=0)
    assert result.x[0] == pytest.approx(1e-3)


def test_x0_comes_first_and_counts():
    x0 = [[0.5, 0.5], [0.25, 0.0]]
    result = minimize(bowl, SQUARE, x0=x0, method="sobol", budget=5, seed=0)
    np.testing.assert_array_equal(result.history.x[:2], x0)
    assert (result.nfev, result.nit) == (5, 3)
    assert minimize(bowl, SQUARE, x0=x0, method="sobol", budget=1).nfev == 1
    named = minimize(lambda p: (p["a"], None), {"a": (0, 1)}, x0={"a": 0.5}, method="sobol", budget=2)
    assert named.history.x[0, 0] == 0.5


def test_x0_outside_is_told_before_anything_runs():
    with pytest.raises(ValueError, match="x0: x is outside the box: 9"):
        minimize(lambda _: pytest.fail("evaluated"), SQUARE, x0=[9, 0])


def test_callback_sees_each_evaluation_and_may_stop():
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nfev, intermediate_result.fun))
        if intermediate_result.nfev == 4:
            raise StopIteration

    result = minimize(bowl, SQUARE, method="sobol", budget=9, callback=callback, seed=0)
    assert [count for count, _ in seen] == [1, 2, 3, 4]
    assert result.fun == seen[-1][1]
    assert (result.status, result.success) == (Status.CALLBACK, False)
    assert "callback" in result.message


def test_interrupt_returns_the_best_so_far():
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return bowl(x)

    result = minimize(interrupted, SQUARE, method="sobol", budget=9, seed=0)
    assert (result.nfev, result.status, result.success) == (3, Status.INTERRUPTED, False)
    assert result.fun == result.history.y.min()


def test_errors_are_raised_with_the_point_or_recorded():
    def fragile(x):
        if x[0] > 0.5:
            raise ZeroDivisionError("no mesh")
        return bowl(x)

    with pytest.raises(ZeroDivisionError, match="no mesh") as caught:
        minimize(fragile, SQUARE, method="sobol", budget=9, seed=0)
    assert any("at x = [" in note for note in caught.value.__notes__)
    result = minimize(fragile, SQUARE, method="sobol", budget=9, seed=0, on_error="fail")
    assert 0 < result.history.n_failed < 9
    assert result.success
    with pytest.raises(ValueError, match="on_error='ignore'"):
        minimize(fragile, SQUARE, on_error="ignore")


def test_a_stop_iteration_of_the_function_is_no_callback():
    with pytest.raises(RuntimeError, match="the function raised StopIteration"):
        minimize(lambda _: next(iter(())), SQUARE, method="sobol", budget=2)


def test_nothing_but_failures():
    result = minimize(lambda _: (None, None), SQUARE, method="sobol", budget=3)
    assert (result.success, result.status) == (False, Status.NOTHING_KNOWN)
    assert np.isnan(result.fun)
    assert "all 3 evaluations failed" in result.message


def test_tol_stops_at_a_stationary_point():
    result = minimize(bowl, SQUARE, method="l-bfgs", budget=60, seed=0, tol=1e-4)
    assert (result.status, result.success) == (Status.CONVERGED, True)
    assert result.nfev < 30
    assert "projected gradient" in result.message
    assert "tol = 0.0001" in result.message


def test_tol_of_a_bayesian_method_asks_for_both():
    result = minimize(bowl, SQUARE, method="d-ei", budget=60, seed=0, tol=1e-3)
    assert result.status == Status.CONVERGED
    assert "projected gradient" in result.message
    assert "expected improvement" in result.message
    np.testing.assert_allclose(result.x, 0.3, atol=1e-2)


def test_tol_waits_for_the_model():
    """A stationary first point, here a maximum of what is to be minimised, says nothing about the rest of the box."""
    result = minimize(
        lambda x: (-bowl(x)[0], -bowl(x)[1]),
        SQUARE,
        x0=[[0.3, 0.3], [0.31, 0.3]],
        method="ei",
        budget=12,
        seed=0,
        tol=0.1,
    )
    assert result.nfev > 6
    assert result.fun < -0.5


def test_tol_without_gradients_goes_by_expected_improvement():
    result = minimize(lambda x: bowl(x)[0], SQUARE, jac=None, method="ei", budget=60, seed=0, tol=1e-3)
    assert result.status == Status.CONVERGED
    assert "expected improvement" in result.message
    assert "gradient" not in result.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget=0"),
        ({"budget": 2.5}, "budget=2.5"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"x0": np.zeros((1, 1, 2))}, "x0 has shape"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        minimize(bowl, SQUARE, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"jac": "2-point"}, "jac='2-point'"), ({"fun": 3}, "fun: expected")]
)
def test_bad_types(arguments, message):
    with pytest.raises(TypeError, match=message):
        minimize(**({"fun": bowl, "bounds": SQUARE} | arguments))


def test_one_worker_is_no_worker():
    """Evaluations in another process or thread would leave no trace here."""
    threads = []

    def noted(x):
        threads.append(threading.current_thread())
        return bowl(x)

    assert minimize(noted, SQUARE, method="sobol", budget=2, workers=1).nfev == 2
    assert threads == [threading.main_thread()] * 2


def test_progress_shows_best_value_gradient_and_count():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    opt = Optimizer(SQUARE, method="sobol")
    with Progress(8, maximize=False, console=console) as bar:
        bar.update(opt)
        opt.tell([0.0, 0.0], 1.25, [3.0, 4.0])
        bar.update(opt, running=3)
    shown = console.file.getvalue()
    for part in ("minimizing", "1/8", "3 running", "best 1.25", "|gradient| 5"):
        assert part in shown


def test_progress_of_a_run_goes_to_stderr(capsys):
    minimize(bowl, SQUARE, method="sobol", budget=3, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "3/3" in captured.err


def test_a_resumed_study_goes_on_bitwise(tmp_path):
    whole = minimize(bowl, SQUARE, method="ei", budget=9, seed=3, x0=[0.5, 0.5])
    calls = []

    def fragile(x):
        calls.append(x)
        if len(calls) == 8:
            raise ZeroDivisionError
        return bowl(x)

    file = tmp_path / "study.db"
    study = {"method": "ei", "budget": 9, "seed": 3, "x0": [0.5, 0.5], "storage": file, "resume": True}
    with pytest.raises(ZeroDivisionError) as caught:
        minimize(fragile, SQUARE, **study)
    assert caught.value.partial_result.nfev == 7
    resumed = minimize(fragile, SQUARE, **study)
    assert resumed.history == whole.history
    assert (resumed.nfev, resumed.njev, resumed.nit) == (9, 9, 8)
    np.testing.assert_array_equal(calls[7], calls[8])  # asked, never told, and so the first
    assert minimize(lambda _: pytest.fail("evaluated"), SQUARE, **study).nfev == 9


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"bounds": [(0, 1)]}, r"bounds = Box\(\[\(-1.0, 2.0\)"),
        ({"method": "random"}, "method = 'sobol', asked for 'random'"),
        ({"seed": 4}, "seed = 3, asked for 4"),
    ],
)
def test_another_study_is_not_resumed(tmp_path, other, message):
    study = {"bounds": SQUARE, "method": "sobol", "budget": 2, "seed": 3, "storage": tmp_path / "study.db"}
    minimize(bowl, **study)
    with pytest.raises(ValueError, match=message):
        minimize(bowl, **(study | other), resume=True)
    with pytest.raises(ValueError, match="maximize = False, asked for True"):
        maximize(bowl, **study, resume=True)
    assert minimize(bowl, **(study | {"budget": 3, "seed": None}), resume=True).nfev == 3


def test_a_budget_that_is_used_evaluates_nothing_more(tmp_path):
    study = {"bounds": SQUARE, "method": "sobol", "seed": 0, "storage": tmp_path / "study.db"}
    minimize(bowl, **study, budget=6)
    assert minimize(bowl, **study, budget=5, x0=np.zeros((3, 2)), resume=True).nfev == 6


def test_resume_needs_a_file():
    with pytest.raises(ValueError, match="resume=True: expected storage="):
        minimize(bowl, SQUARE, resume=True)


def test_a_generator_as_seed_goes_on_with_the_same_call(tmp_path):
    for budget in (3, 5):
        seed, storage = np.random.default_rng(7), tmp_path / "run.db"
        result = minimize(bowl, SQUARE, method="sobol", budget=budget, seed=seed, storage=storage, resume=True)
        assert result.nfev == budget


def test_a_callback_of_another_form_is_an_error_before_the_first_evaluation():
    def evaluated(x):
        pytest.fail("too early")

    with pytest.raises(TypeError, match=r"callback\(xk, convergence\) is called with one argument"):
        minimize(evaluated, SQUARE, callback=lambda xk, convergence: None)


def test_maximize_as_an_argument_is_explained():
    with pytest.raises(TypeError, match=r"eign\.maximize"):
        minimize(bowl, SQUARE, maximize=True)
