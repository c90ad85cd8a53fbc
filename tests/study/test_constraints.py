"""Studies with constraints: what is told, stored and found best."""

import numpy as np
import pytest

from eign import Optimizer
from eign.constraints import Limits, LinearRows
from eign.data import Observations
from eign.study.handle import handle, restore, snapshot
from eign.study.storage.study_file import read_study

SQUARE = [(-2.0, 2.0)] * 2
LIMITS = Limits(["disk", "line"], [-np.inf, 0.0], [1.0, 0.0])


def told(x):
    x = np.atleast_2d(x)
    disk = Observations(x, (x**2).sum(axis=1), 2 * x)
    line = Observations(x, x[:, 0] - x[:, 1], np.tile([1.0, -1.0], (len(x), 1)))
    return Observations(x, x.sum(axis=1), np.ones_like(x), constraints=[disk, line])


@pytest.mark.parametrize("maximize", [False, True])
def test_inside_gradients_have_the_units_of_the_cube_and_constraints_keep_their_sign(maximize):
    opt = Optimizer(SQUARE, method="sobol", seed=0, constraints=LIMITS, maximize=maximize)
    opt.tell(told([0.5, 1.0]))
    data = handle(opt).data
    sign = 1.0 if maximize else -1.0
    assert data.y.tolist() == [sign * 1.5]
    disk, line = data.constraints
    assert (disk.y.tolist(), line.y.tolist()) == ([1.25], [-0.5])
    assert (disk.grad.tolist(), line.grad.tolist()) == ([[4.0, 8.0]], [[4.0, -4.0]])
    assert handle(opt).state.limits == [[-np.inf, 1.0], [0.0, 0.0]]


def test_a_study_goes_on_from_plain_data_and_from_its_file(tmp_path):
    path = tmp_path / "study.db"
    with Optimizer(SQUARE, method="sobol", seed=0, constraints=LIMITS, storage=path) as opt:
        for _ in range(4):
            opt.tell(told(opt.ask()))
        opt.tell(opt.ask(), None)  # failed, and so are its constraints
        opt.retract(opt.history.x[2])
        opt.ask()
        history, definition = opt.history, handle(opt).definition
    assert len(history) == 4
    assert np.isnan(history.constraints[1].y).tolist() == [False, False, False, True]
    for again in (Optimizer.view(path), Optimizer.resume(path)):
        assert again.history == history
        assert handle(again).definition == definition
        again.close()
    memory = Optimizer(SQUARE, method="sobol", seed=0, constraints=LIMITS)
    memory.tell(told(memory.ask()))
    assert restore(snapshot(memory)).history == memory.history


def test_methods_that_take_no_constraints_say_which_do():
    with pytest.raises(ValueError, match=r"method 'cma-es' takes no constraints; these do: .*sobol"):
        Optimizer(SQUARE, method="cma-es", constraints=LIMITS)
    with pytest.raises(ValueError, match="method 'cma-es' takes no linear constraints; these do: "):
        Optimizer(SQUARE, method="cma-es", linear=LinearRows([[1.0, 1.0]], [-np.inf], [1.0]))


@pytest.mark.parametrize("limits", [Limits(["a"], [0.0], [1.0]), None])
def test_told_with_another_number_of_constraints(limits, tmp_path):
    path = tmp_path / "study.db"
    with Optimizer(SQUARE, method="sobol", constraints=limits, storage=path) as opt:
        with pytest.raises(ValueError, match=f"told 2 constraints, expected {0 if limits is None else 1}"):
            opt.tell(told([0.0, 0.0]))
        assert len(opt.history) == 0
    assert not read_study(path).events
