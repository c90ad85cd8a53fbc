"""`auto` and `slsqp` under constraints: optima of small problems, what is missing or fails, batches, resuming."""

import numpy as np
import pytest

from constrained_cases import CASES, DISK, MAGNITUDES, WEDGE, ConstrainedCase
from eign import Optimizer
from eign.arrays import Array
from eign.constraints import Limits
from eign.data import Observations
from eign.strategies.constrained.memory import Memory, Run
from eign.strategies.constrained.method import _continued
from eign.strategies.constrained.outputs import fit_outputs
from eign.strategies.constrained.standing import Standing
from eign.study.handle import handle, restore, snapshot


def best_feasible(case: ConstrainedCase, opt: Optimizer) -> float:
    """The best value told within 1e-6 of the constraints."""
    history = opt.history
    feasible = np.isfinite(history.y)
    if case.limits is not None:
        values = np.column_stack([each.y for each in history.constraints])
        feasible &= (case.limits.violation(values) <= 1e-6).all(axis=1)
    return float(history.y[feasible].min(initial=np.inf))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["auto", "slsqp"])
def test_optima_of_small_problems(method: str, name: str) -> None:
    """Convex, so that one run of either finds them; digits are those of the tolerance of feasibility, 1e-6."""
    case = CASES[name]
    budget = {"auto": 14, "slsqp": 24}[method]
    assert best_feasible(case, case.run(method, budget)) == pytest.approx(case.best, abs=5e-6)


def test_a_constraint_over_eight_decades() -> None:
    """Its model sees logarithms of values and coordinates: without them nothing is feasible after as many."""
    assert best_feasible(MAGNITUDES, MAGNITUDES.run("auto", 16)) == pytest.approx(MAGNITUDES.best, abs=5e-6)


def test_a_run_at_the_best_point_goes_on_until_it_has_converged() -> None:
    """The best point is within the tolerance of feasibility and a little too good: nothing in sight is better."""
    opt = DISK.optimizer("sobol")
    best = -np.array([1.0, 2.0]) / 5**0.5
    for x in ([0.5, 0.5], [-1.5, 0.3], [1.2, -1.0], [-0.2, -0.4], [-0.9, -1.1], (1 + 3e-7) * best):
        opt.tell(DISK.told(np.array(x)))
    study = handle(opt)
    options = {"kernel": "rbf", "compress": False, "noise": 0.0, "gradients": True, "logs": False}
    outputs = fit_outputs(Standing.of(study.state, study.data), (), options)[0]
    start = study.data.x[5].tolist()
    memory = Memory(run=Run(start, "global", path=(start,)), spent={"global": 1})
    goes_on, step = _continued(memory, outputs, np.empty((0, 2)))
    assert goes_on.run is not None
    assert step is not None
    nearer = opt.box.from_unit(step.x)
    # Steps aim inside by 1e-9 of the scale; the models of f and the disk are exact to 1e-8 this close to a point told.
    assert float(nearer @ nearer) <= 1.0 + 1e-8


@pytest.mark.parametrize("method", ["auto", "slsqp", "sobol", "random"])
def test_every_suggestion_satisfies_linear_rows(method: str) -> None:
    """Also while points are pending."""
    opt = WEDGE.optimizer(method)
    for _ in range(4):
        points = opt.ask(3)
        assert WEDGE.linear is not None
        assert (WEDGE.linear.violation(points) == 0.0).all()
        for x in points:
            opt.tell(WEDGE.told(x))


def test_missing_parts_and_failures_are_lived_with() -> None:
    """Values, gradients, constraints and all of an evaluation are left out in turn."""
    opt = DISK.optimizer("auto")
    for i in range(14):
        x = opt.ask()
        (value, slope), (disk, normal) = DISK.outputs(x)
        if i % 6 == 1:
            opt.tell(x, None)
            continue
        constraint = Observations(x[None], [np.nan if i % 6 == 2 else disk], [normal if i % 6 != 3 else [np.nan] * 2])
        told = Observations(x[None], [np.nan if i % 6 == 4 else value], [slope if i % 6 != 5 else [np.nan] * 2])
        opt.tell(told.with_constraints([constraint]))
    assert best_feasible(DISK, opt) == pytest.approx(DISK.best, abs=1e-3)


def test_a_constraint_that_was_never_seen_does_not_stop_the_search() -> None:
    """Its value is missing from all evaluations."""
    opt = Optimizer([(0, 1)] * 2, seed=0, constraints=Limits(["lost"], [0.0], [np.inf]), check_gradients=False)
    for _ in range(9):
        x = opt.ask()
        opt.tell(Observations(x[None], [float(x @ x)], [2 * x], constraints=[Observations(x[None])]))
    assert len(opt.history) == 9


@pytest.mark.parametrize("method", ["auto", "slsqp"])
def test_a_study_that_is_restored_goes_on_as_if_nothing_had_happened(method: str) -> None:
    """After the design, in the middle of a run: bit for bit."""
    opt = DISK.run(method, 9)
    again = restore(snapshot(opt))
    for _ in range(3):
        x, other = opt.ask(), again.ask()
        assert (x == other).all()
        opt.tell(DISK.told(x))
        again.tell(DISK.told(other))


def test_feasibility_comes_first() -> None:
    """A feasible disk of one 2,500th of the cube, and the objective pulls away from it."""

    def outputs(x: Array) -> list[tuple[float, Array]]:
        away = x - np.array([0.8, 0.3])
        return [(float(x[0]), np.array([1.0, 0.0])), (float(away @ away), 2 * away)]

    case = ConstrainedCase([(0, 1)] * 2, outputs, Limits(["island"], [-np.inf], [1e-4]), None, 0.79)
    opt = case.run("auto", 12)
    assert best_feasible(case, opt) == pytest.approx(0.79, abs=1e-5)


def test_units_do_not_matter() -> None:
    """Objective and constraint in units of 1e6 and 1e-6, coordinates of 1e6 and 1e-6: the same points in the cube."""
    units = np.array([1e6, 1e-6])

    def outputs(x: Array) -> list[tuple[float, Array]]:
        (value, slope), (disk, normal) = DISK.outputs(x / units)
        return [(1e6 * value, 1e6 * slope / units), (1e-6 * disk, 1e-6 * normal / units)]

    scaled = ConstrainedCase(
        [(-2e6, 2e6), (-2e-6, 2e-6)], outputs, Limits(["disk"], [-np.inf], [1e-6]), None, 1e6 * DISK.best
    )
    plain, other = DISK.run("auto", 10), scaled.run("auto", 10)
    # Rounding grows through fits and searches, but not to other places.
    assert np.abs(handle(plain).data.x - handle(other).data.x).max() < 1e-3


def test_many_parameters_are_left_to_slsqp() -> None:
    """Without models, which would take minutes: a bowl cut by a sphere in 80 dimensions."""

    def outputs(x: Array) -> list[tuple[float, Array]]:
        return [(float(((x - 1.0) ** 2).sum()), 2 * (x - 1.0)), (float(x @ x), 2 * x)]

    case = ConstrainedCase([(-1, 1)] * 80, outputs, Limits(["sphere"], [-np.inf], [20.0]), None, 20.0)
    opt = case.run("auto", 20, options={"n_init": 3})
    assert best_feasible(case, opt) == pytest.approx(case.best, abs=1e-4)
