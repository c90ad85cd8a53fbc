"""EI, LogEI and EI-GN under constraints: their gradients, what they find, and the Lagrangian they may look at."""

import numpy as np
import pytest
import torch

from constrained_cases import CURVE, DISK, SIMPLEX, WEDGE, ConstrainedCase
from eign.acquisition import EI, EIGN, LogEI
from eign.acquisition.feasibility import LogFeasibility
from eign.models import IndependentGradientGP, JointGradientGP, fit
from eign.strategies.constrained.rules import Feasible, _lagrangian
from eign.strategies.constrained.standing import Standing
from eign.study.handle import handle

METHODS = ["ei", "log-ei", "ei-gn", "ei-g", "d-ei", "d-log-ei", "d-ei-gn"]


@pytest.mark.parametrize("method", METHODS)
def test_suggestions_gather_at_the_constrained_optimum(method: str) -> None:
    """After 16 points the best feasible value is within 5 per cent of the range, which 10 of the design are not."""
    opt = DISK.run(method, 16, options={"n_init": 6, "restarts": 2, "raw_samples": 64})
    feasible = opt.history.constraints[0].y <= 1.0
    assert opt.history.y[feasible].min() < 0.85 * DISK.best


@pytest.mark.parametrize("case", [SIMPLEX, WEDGE])
def test_linear_rows_hold(case: ConstrainedCase) -> None:
    """Also for two points at once."""
    opt = case.optimizer("log-ei", options={"n_init": 4, "restarts": 2, "raw_samples": 32})
    assert case.linear is not None
    for _ in range(4):
        for x in opt.ask(2):
            assert (case.linear.violation(x) <= 1e-15).all()
            opt.tell(case.told(x))


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("rule", [EI, LogEI, EIGN, None])
def test_gradients_are_those_of_the_values(rule: type[EI] | type[LogEI] | type[EIGN] | None, joint: bool) -> None:
    """Against central differences."""
    rng = np.random.default_rng(3)
    x = rng.random((9, 2))
    y, slope = np.sin(3 * x).sum(axis=1), 3 * np.cos(3 * x)
    c, normal = (x**2).sum(axis=1), 2 * x
    kind = JointGradientGP if joint else IndependentGradientGP
    objective, constraint = (
        fit(kind(torch.tensor(x), torch.tensor(v)[:, None], torch.tensor(g))) for v, g in ((y, slope), (c, normal))
    )
    best = int(np.where(c <= 1.0, y, -np.inf).argmax())
    base = None
    if rule is EIGN:
        base = EIGN(objective, y[best], torch.tensor(slope[best])).weighted(1.0, 0.3)
    elif rule is not None:
        base = rule(objective, y[best])
    target = Feasible(base, [LogFeasibility(constraint, 0.2, 1.0)])
    points = rng.random((5, 2))
    value, gradient = target.value_and_gradient(points)
    assert np.allclose(value, target.evaluate(points), rtol=1e-6, atol=1e-9)
    step = 1e-6
    for i in range(2):
        ahead, behind = (target.evaluate(points + sign * step * np.eye(2)[i]) for sign in (1.0, -1.0))
        # Values of size up to 30 have 14 digits, which the step divides by 1e-6.
        assert np.allclose(gradient[:, i], (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", [DISK, CURVE, WEDGE])
def test_the_lagrangian_is_stationary_at_the_constrained_optimum(case: ConstrainedCase) -> None:
    """Where SLSQP has converged the gradient of f is not zero, and that of f - lambda'c - nu'x is."""
    study = handle(case.run("slsqp", 24))
    standing = Standing.of(study.state, study.data)
    best = standing.best
    assert best is not None
    seen = _lagrangian(standing, best)
    assert np.abs(study.data.grad[best]).max() > 0.1
    assert np.abs(seen.grad[best]).max() < 1e-3
    # The same function: its change between two points is that of its parts.
    pushes = (study.data.grad[best] - seen.grad[best]) if case is WEDGE else None
    if pushes is not None:
        assert np.allclose(seen.y, study.data.y - study.data.x @ pushes)


def test_the_lagrangian_is_an_option() -> None:
    """It changes what ei-gn proposes, once something is feasible."""
    settings = {"n_init": 8, "restarts": 2, "raw_samples": 64}
    plain, other = (DISK.run("d-ei-gn", 12, options={**settings, "lagrangian": on}) for on in (False, True))
    assert (plain.history.x[:8] == other.history.x[:8]).all()
    assert not (plain.history.x[8:] == other.history.x[8:]).all()
