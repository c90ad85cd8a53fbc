"""Local and global steps on models of all outputs."""

import numpy as np
import pytest

from constrained_cases import CASES, CURVE, DISK, MAGNITUDES, WEDGE, ConstrainedCase
from eign.strategies.constrained.global_step import FeasibleImprovement
from eign.strategies.constrained.local_step import local_step
from eign.strategies.constrained.outputs import Outputs, fit_outputs
from eign.strategies.constrained.standing import Standing
from eign.study.handle import handle


def models(case: ConstrainedCase, count: int = 8) -> Outputs:
    """Of so many points of the design."""
    study = handle(case.run("sobol", count))
    options = {"kernel": "matern52", "compress": False, "noise": 0.0, "gradients": True, "logs": False}
    return fit_outputs(Standing.of(study.state, study.data), (), options)[0]


@pytest.mark.parametrize("name", ["disk", "curve"])
def test_means_are_what_was_told_where_it_was_told(name: str) -> None:
    """Values and gradients in the units of the models, up to what the nugget lets pass."""
    outputs = models(CASES[name])
    for row in range(3):
        value, slope = outputs.means(np.array(outputs.standing.data.x[row]))
        # What the nugget of the joint model lets pass: why local steps are corrected.
        assert np.allclose(value, outputs.told[row], atol=1e-3)
        assert np.allclose(slope, outputs.slopes[row], atol=1e-3)


def test_logarithms_of_coordinates_and_of_constraints_by_the_chain_rule() -> None:
    """Means and moments are by points of the cube, in units in which limits and values told are, too."""
    study = handle(MAGNITUDES.run("sobol", 24))
    options = {"kernel": "rbf", "compress": True, "noise": 0.0, "gradients": True, "logs": True}
    outputs = fit_outputs(Standing.of(study.state, study.data), (), options)[0]
    constraint = outputs.models[1]
    assert constraint is not None
    assert constraint.fit.choice.logs
    assert constraint.fit.output.shape == "bottom"
    assert np.allclose(outputs.seen, study.data.x, atol=1e-12)
    points = np.random.default_rng(0).random((4, 2))
    moments = outputs.moments(points, gradients=True)
    for x, row in zip(points, range(len(points)), strict=True):
        value, slope = outputs.means(x)
        assert np.allclose(moments.mean[row], value, atol=1e-9)
        assert np.allclose(moments.mean_gradient[row], slope, rtol=1e-9, atol=1e-9)
        for i in range(2):
            step = 1e-6 * np.eye(2)[i]
            ahead, behind = (outputs.moments(np.array([x + sign * step]), gradients=False) for sign in (1.0, -1.0))
            # Central differences: curvature of third order times 1e-12, and rounding of values of size 1 over 1e-6.
            assert np.allclose(slope[:, i], (ahead.mean - behind.mean)[0] / 2e-6, rtol=1e-4, atol=1e-6)
            variance = (ahead.variance - behind.variance)[0] / 2e-6
            assert np.allclose(moments.variance_gradient[row, :, i], variance, rtol=1e-3, atol=1e-6)
    is_feasible = outputs.told[:, 1] <= outputs.limits[1][0]
    assert (is_feasible == outputs.standing.feasible).all()
    slope = float(constraint.fit.output.slope(np.array(1.0)))
    assert outputs.tolerances[0] == pytest.approx(slope * outputs.standing.scales[0])


@pytest.mark.parametrize("case", [DISK, CURVE, WEDGE])
def test_a_local_step_is_within_the_trust_region_and_gains(case: ConstrainedCase) -> None:
    """And satisfies the limits of the models, where it has to restore nothing."""
    outputs = models(case)
    for row in range(3):
        for radius in (0.5, 1e-3):
            step = local_step(outputs, row, radius, 10.0)
            assert np.abs(step.x - outputs.standing.data.x[row]).max() <= radius + 1e-12
            assert step.gain(1e3) >= -1e-9
            assert outputs.standing.region.contains(step.x)


def test_a_short_step_follows_the_gradients_that_were_told() -> None:
    """First-order consistent: over 1e-6 the models' merit changes as value and gradient at the center say."""
    outputs = models(DISK)
    step = local_step(outputs, 0, 1e-6, 10.0)
    moved = step.x - outputs.standing.data.x[0]
    # The rest is of second order, curvature times 1e-12; values of size 1 have 16 digits.
    assert step.rise == pytest.approx(float(outputs.slopes[0, 0] @ moved), abs=1e-9)


def test_restoration_comes_first_where_nothing_nearby_is_feasible() -> None:
    """Far outside of the disk a short step reduces the violation, though f falls."""
    outputs = models(DISK)
    row = int(outputs.standing.violations.argmax())
    step = local_step(outputs, row, 0.02, 100.0)
    assert step.relief > 0.0
    assert step.violation > 0.0


@pytest.mark.parametrize("best", [None, 0.1])
@pytest.mark.parametrize("case", [DISK, CURVE])
def test_gradients_of_feasible_improvement(case: ConstrainedCase, best: float | None) -> None:
    """Against central differences, with multipliers of equalities too."""
    target = FeasibleImprovement(models(case), best, 0.3, np.array([0.7]))
    points = np.random.default_rng(0).random((4, 2))
    value, gradient = target.value_and_gradient(points)
    assert np.allclose(value, target.evaluate(points), atol=1e-9)
    for i in range(2):
        ahead, behind = (target.evaluate(points + sign * 1e-4 * np.eye(2)[i]) for sign in (1.0, -1.0))
        # Values of -1e7 nats, far from feasible, have nine digits here.
        assert np.allclose(gradient[:, i], (ahead - behind) / 2e-4, rtol=1e-3, atol=1e-3)


def test_multipliers_of_equalities_take_away_what_infeasibility_gains() -> None:
    """Beside the optimum of the curve f improves on one side; less the multiplier times the constraint it does not."""
    study = handle(CURVE.run("slsqp", 24))
    options = {"kernel": "rbf", "compress": False, "noise": 0.0, "gradients": True, "logs": False}
    outputs = fit_outputs(Standing.of(study.state, study.data), (), options)[0]
    best = outputs.standing.best
    assert best is not None
    multipliers = outputs.multipliers()
    assert abs(multipliers[0]) > 0.1
    goal = float(outputs.told[best, 0]) + 1e-3
    downhill = outputs.slopes[best, 0] / np.linalg.norm(outputs.slopes[best, 0])
    beside = np.array(outputs.standing.data.x[best] + 0.01 * downhill)
    plain = FeasibleImprovement(outputs, goal, 0.3).parts(beside)[0]
    honest = FeasibleImprovement(outputs, goal, 0.3, multipliers).parts(beside)[0]
    assert plain > 1e-3
    assert honest < 0.1 * plain
