"""Multipliers and KKT residuals of points whose multipliers are known."""

import logging

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import eign
from eign import Optimizer
from eign.study.feasibility import constraint_fields
from eign.study.handle import handle
from eign.study.optimality import steepness

ROOT = np.sqrt(0.5)


def told(x, *, maximize=False, upper=1.0, **more):
    """The lowest or highest point of the plane x + y in the disk, in a box that is not the unit cube, or another."""
    limits = {"disk": (None, upper)} if upper > 0 else {"disk": (upper, None)}
    opt = Optimizer([(-2.0, 2.0), (-3.0, 5.0)], method="sobol", constraints=limits, maximize=maximize)
    sign = 1.0 if upper > 0 else -1.0
    for point in ([1.5, 1.5], [-1.0, 1.0], [0.2, 0.1], x):
        point = np.array(point)
        values = {"constraints": [sign * point @ point], "constraint_grads": [sign * 2 * point]} | more
        opt.tell(point, float(point.sum()), np.ones(2), **values)
    return opt


@pytest.mark.parametrize(
    ("x", "maximize", "upper", "expected"),
    [
        ([-ROOT, -ROOT], False, 1.0, ROOT),
        ([ROOT, ROOT], True, 1.0, -ROOT),
        ([-ROOT, -ROOT], False, -1.0, -ROOT),  # the same disk, as -x^2 - y^2 >= -1
    ],
)
def test_at_an_optimum_gradient_and_weighted_gradients_cancel(x, maximize, upper, expected):
    opt = told(x, maximize=maximize, upper=upper)
    fields = constraint_fields(opt)
    # A linear problem of numbers of size 1.
    assert fields["multipliers"] == pytest.approx([expected], abs=1e-12)
    np.testing.assert_allclose(opt.best.grad + fields["multipliers"] @ fields["constr_jac"], 0.0, atol=1e-12)
    assert steepness(handle(opt)) < 1e-12


def test_a_point_on_the_border_that_is_no_optimum():
    opt = told([-1.0, 0.0])
    # The gradient (4, 8) of the cube and the normal (-8, 0): nothing bars the way down along y.
    assert steepness(handle(opt)) == pytest.approx(8.0)


def test_an_inactive_constraint_has_no_multiplier():
    opt = told([-0.5, -0.5])
    assert constraint_fields(opt)["multipliers"].tolist() == [0.0]
    assert steepness(handle(opt)) == pytest.approx(np.hypot(4.0, 8.0))


def test_what_is_short_of_the_limit_counts():
    near = 1.0 - 1e-4
    opt = told([-near * ROOT, -near * ROOT])
    # Multiplier times distance: about 0.7 * 2e-4.
    assert steepness(handle(opt)) == pytest.approx(ROOT * 2e-4, rel=1e-2)


def test_without_gradients_nothing_is_known():
    opt = told([-ROOT, -ROOT], constraint_grads=None)
    assert np.isnan(constraint_fields(opt)["multipliers"]).all()
    opt = Optimizer([(0.0, 1.0)], method="sobol", constraints=1)
    assert np.isnan(constraint_fields(opt)["multipliers"]).all()
    opt.tell([0.5], 1.0, constraints=[0.0], constraint_grads=[[1.0]])
    assert np.isnan(constraint_fields(opt)["multipliers"]).all()
    assert np.isnan(steepness(handle(opt)))


def test_unconstrained_results_have_no_fields_of_constraints():
    assert constraint_fields(Optimizer([(0.0, 1.0)], method="sobol")) == {}


def test_a_run_stops_at_a_kkt_point(caplog):
    """`random` expects nothing, so that the residual and the stall decide."""
    disk = NonlinearConstraint(lambda x: x @ x, [-np.inf], [1.0], jac=lambda x: 2 * x)
    with caplog.at_level(logging.INFO, "eign"):
        result = eign.minimize(
            lambda x: (float(x.sum()), np.ones(2)),
            [(-2.0, 2.0)] * 2,
            constraints=disk,
            x0=[[2.0, 2.0], [-ROOT, -ROOT]],
            method="random",
            budget=60,
            seed=0,
            tol=1e-4,
        )
    assert result.message.startswith("converged to a KKT point: KKT residual ")
    assert result.success
    assert result.nfev < 60
    assert result.multipliers == pytest.approx([ROOT])
    assert "evaluation 1 (told): 4, best 4, infeasible by 7" in caplog.text
    assert "best -1.414213562\n" in caplog.text


def test_an_infeasible_point_has_not_converged():
    result = eign.minimize(
        lambda x: (0.0, np.zeros(2)),
        [(0.0, 1.0)] * 2,
        constraints={"type": "ineq", "fun": lambda x: x[0] - 2.0, "jac": lambda x: [1.0, 0.0]},
        method="random",
        budget=40,
        seed=0,
        tol=1.0,
    )
    assert result.nfev == 40
    assert not result.success
