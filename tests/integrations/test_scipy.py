"""`scipy.optimize.minimize(..., method=eign.scipy_method)`, and the habits of those who come from SciPy."""

import inspect
import re

import numpy as np
import pytest
import scipy.optimize

import eign

BOUNDS = [(-1.0, 2.0)] * 2
QUICK = {"method": "l-bfgs", "seed": 0}


def bowl(x, offset=0.0):
    return float(x @ x) + offset, 2.0 * x


@pytest.mark.parametrize("bounds", [BOUNDS, scipy.optimize.Bounds([-1, -1], [2, 2])], ids=["pairs", "Bounds"])
def test_scipy_calls_it(bounds):
    seen = []
    options = {**QUICK, "budget": 14}
    found = scipy.optimize.minimize(
        bowl,
        [1.0, 1.5],
        args=(3.0,),
        jac=True,
        method=eign.scipy_method,
        bounds=bounds,
        options=options,
        callback=lambda xk: seen.append(xk),
    )
    assert found.fun == pytest.approx(3.0, abs=1e-9)
    assert found.nfev == 14 == len(seen)
    np.testing.assert_array_equal(found.history.x[0], [1.0, 1.5])
    np.testing.assert_array_equal(seen[-1], found.x)


def test_a_gradient_of_its_own_or_none():
    for jac in (lambda x: 2.0 * x, None):
        found = scipy.optimize.minimize(
            lambda x: float(x @ x), [1.0, 1.0], jac=jac, method=eign.scipy_method, bounds=BOUNDS, options={"maxfun": 8}
        )
        assert found.nfev == 8
        assert found.njev == (0 if jac is None else 8)


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match=r"eign searches a box: give bounds="):
        scipy.optimize.minimize(bowl, [1.0, 1.0], jac=True, method=eign.scipy_method)


def test_constraints_reach_it_as_scipy_passes_them_on():
    line = {"type": "ineq", "fun": lambda x: x[0] - 0.5, "jac": lambda x: [1.0, 0.0]}
    disk = scipy.optimize.NonlinearConstraint(lambda x: x @ x, -np.inf, 2.0, jac=lambda x: 2 * x)
    found = scipy.optimize.minimize(
        bowl,
        [1.0, 1.0],
        jac=True,
        method=eign.scipy_method,
        bounds=BOUNDS,
        constraints=[line, disk],
        options={"method": "sobol", "budget": 20, "seed": 0},
    )
    assert found.success
    assert (found.constr[0], found.constr[1]) == (found.x[0] - 0.5, found.x @ found.x)
    assert found.constr[0] >= 0.0


class TestHabits:
    def test_a_start_in_second_place(self):
        with pytest.raises(TypeError, match=r"the bounds come second, .*eign.minimize\(fun, bounds, x0=x0"):
            eign.minimize(bowl, np.zeros(2), jac=True, bounds=BOUNDS)
        with pytest.raises(ValueError, match="a starting point is given by name, x0="):
            eign.minimize(bowl, np.zeros(2))

    def test_numbers_that_are_not_quite_of_the_kind(self):
        found = eign.minimize(bowl, BOUNDS, budget=1e1, args=2.0, seed=np.random.default_rng(3), method="l-bfgs")
        again = eign.minimize(bowl, BOUNDS, budget=10, args=(2.0,), seed=np.random.default_rng(3), method="l-bfgs")
        assert found.nfev == 10
        assert found.history == again.history
        with pytest.raises(ValueError, match=r"budget=10\.5, expected the number of evaluations"):
            eign.minimize(bowl, BOUNDS, budget=10.5)

    @pytest.mark.parametrize(
        ("callback", "kind"),
        [
            (lambda xk: xk, np.ndarray),
            (lambda x: x, np.ndarray),
            (lambda intermediate_result: intermediate_result, scipy.optimize.OptimizeResult),
            (lambda result: result, scipy.optimize.OptimizeResult),
        ],
    )
    def test_callbacks_get_what_their_parameter_says(self, callback, kind):
        seen = []
        name = next(iter(inspect.signature(callback).parameters))
        wrapped = eval(f"lambda {name}: seen.append({name})", {"seen": seen})
        eign.minimize(bowl, BOUNDS, budget=3, method="sobol", callback=wrapped)
        assert [type(one) for one in seen] == [kind] * 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"method": "L-BFGS-B"}, "there is no method 'L-BFGS-B'; did you mean 'l-bfgs'?"),
            ({"method": []}, r"there is no method \[\]. Known: "),
            ({"tol": "a"}, "tol='a', expected a positive number"),
            ({"tol": True}, "tol=True, expected a positive number"),
            ({"options": {"maxfun": 100}}, "SciPy's maxfun is budget=100"),
        ],
    )
    def test_errors_say_what_to_write(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            eign.minimize(bowl, BOUNDS, **arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"rng": 0}, "has no argument 'rng'; here it is seed="),
            ({"maxiter": 10}, "has no argument 'maxiter'; here it is budget="),
            ({"direction": "maximize"}, "here it is eign.minimize or eign.maximize"),
            ({"n_startup_trials": 5}, 'here it is options={"n_init": 8}'),
            ({"sampler": None}, "here it is method="),
            ({"verbose": 2}, "it is progress=True, or Python's logging"),
            ({"hess": None}, "no second derivatives are used"),
            ({"integrality": [1, 0]}, "rounding inside the function"),
            ({"bugdet": 10}, "has no argument 'bugdet'; did you mean 'budget'?"),
        ],
    )
    def test_words_of_other_packages(self, arguments, message):
        with pytest.raises(TypeError, match=re.escape(message)):
            eign.minimize(bowl, BOUNDS, **arguments)

    @pytest.mark.parametrize("timeout", ["3", True, 0, -1.0, np.nan, np.inf])
    def test_a_timeout_that_is_none(self, timeout):
        with pytest.raises(ValueError, match="expected a positive number of seconds for one evaluation"):
            eign.minimize(bowl, BOUNDS, timeout=timeout)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"direction": "maximize"}, "Optimizer() has no argument 'direction'; here it is maximize=True or False"),
            ({"n_startup_trials": 5}, 'here it is options={"n_init": 8}'),
            ({"study_name": "a"}, "here it is storage="),
            ({"metod": "ei"}, "did you mean 'method'?"),
        ],
    )
    def test_words_of_other_packages_for_an_optimizer(self, arguments, message):
        with pytest.raises(TypeError, match=re.escape(message)):
            eign.Optimizer(BOUNDS, **arguments)

    @pytest.mark.parametrize(
        ("name", "here"), [("best_params", "opt.best.x"), ("best_value", "opt.best.y"), ("suggest", "opt.ask()")]
    )
    def test_members_of_other_packages_optimizers(self, name, here):
        opt = eign.Optimizer(BOUNDS, method="sobol")
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}; here it is {here}")):
            getattr(opt, name)
        assert not hasattr(opt, "no_such_member")

    def test_numbers_of_numpy(self):
        settings = {"tol": np.float32(1e-3), "budget": np.int64(3), "method": "sobol"}
        assert eign.minimize(bowl, BOUNDS, **settings).nfev == 3

    def test_options_of_scipys_minimize(self, capsys):
        def call(**options):
            settings = {"method": eign.scipy_method, "jac": True, "bounds": BOUNDS}
            return scipy.optimize.minimize(bowl, BOUNDS[0], **settings, options={**options, "method": "sobol"})

        assert call(maxfun=3, disp=True).nfev == 3
        assert "best" in capsys.readouterr().err
        with pytest.raises(TypeError, match=r"maxiter counts iterations; write options=\{'budget': 8\}"):
            call(maxiter=8)

    def test_what_is_not_at_the_front_door(self):
        with pytest.raises(AttributeError, match=r"write from eign\.integrations\.optuna import GradientSampler"):
            _ = eign.GradientSampler

    def test_a_callback_that_is_none(self):
        with pytest.raises(TypeError, match="callback='x', expected a function"):
            eign.minimize(bowl, BOUNDS, callback="x")

    def test_all_cores(self):
        found = eign.minimize(bowl, BOUNDS, budget=4, method="sobol", workers=-1)
        assert found.nfev == 4
