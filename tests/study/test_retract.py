"""What was told can be taken back: the log keeps it, and nothing is learned from it any more."""

import numpy as np
import pytest

from eign import Optimizer
from eign.study.events import Retract
from eign.study.handle import handle, restore, snapshot

BOUNDS = [(-1.0, 2.0), (0.0, 4.0)]


def bowl(x):
    return float((x**2).sum()), 2.0 * x


def told(count, *, method="auto", storage=None):
    opt = Optimizer(BOUNDS, method=method, seed=0, storage=storage)
    for _ in range(count):
        x = opt.ask()
        opt.tell(x, *bowl(x))
    return opt


@pytest.mark.parametrize("method", ["auto", "ei", "d-ei", "l-bfgs", "cma-es", "sobol", "reinforce"])
def test_a_wrong_value_does_no_harm_once_it_is_taken_back(method):
    opt = told(9, method=method)
    wrong = np.array([1.5, 3.0])
    opt.tell(wrong, -1e6, [0.0, 0.0])
    assert opt.best.y == -1e6
    assert opt.retract(wrong) == 1
    assert opt.best.y >= 0.0
    assert len(opt.history) == len(opt.reasons) == 9
    for _ in range(4):
        x = opt.ask()
        opt.tell(x, *bowl(x))
    assert not (opt.history.x == wrong).all(axis=1).any()


def test_the_log_keeps_it_and_a_resumed_study_knows(tmp_path):
    with told(5, storage=tmp_path / "study.db") as opt:
        first = opt.history.x[0].copy()
        opt.retract(first)
        expected = opt.history
    with Optimizer.resume(tmp_path / "study.db") as again:
        assert again.history == expected
        assert isinstance(handle(again).log[-1], Retract)
        assert len(handle(again).log) == 11  # five asks, five tells
        x = again.ask()
        again.tell(x, *bowl(x))
    assert len(Optimizer.view(tmp_path / "study.db").history) == 5


def test_a_value_is_corrected_by_telling_it_again():
    opt = told(3)
    x = opt.history.x[1].copy()
    opt.retract(x)
    opt.tell(x, -5.0)
    assert opt.best.y == -5.0
    assert np.array_equal(opt.best.x, x)


def test_there_must_be_something_to_take_back():
    opt = told(2)
    with pytest.raises(ValueError, match="nothing to retract at x = "):
        opt.retract([0.123, 0.456])
    assert len(opt.history) == 2


def test_a_point_told_again_with_another_value_is_spoken_of_once():
    opt = told(2)
    x = opt.history.x[0].copy()
    with pytest.warns(UserWarning, match="both count, as noisy values; if the first was wrong, retract it") as caught:
        opt.tell(x, 17.0)
    assert caught[0].filename == __file__
    opt.tell(x, 18.0)
    assert len(opt.history) == 4


def test_the_same_value_again_or_a_known_variance_is_no_contradiction():
    opt = told(2)
    x, y = opt.history.x[0].copy(), float(opt.history.y[0])
    opt.tell(x, y)
    opt.tell(x, y + 1.0, y_var=1.0)


@pytest.mark.parametrize("method", ["auto", "ei-gn", "l-bfgs"])
def test_a_snapshot_goes_on_bit_for_bit(method):
    opt = told(8, method=method)
    copy = restore(snapshot(opt))
    assert copy.history == opt.history
    for _ in range(3):
        mine, theirs = opt.ask(), copy.ask()
        assert np.array_equal(mine, theirs)
        opt.tell(mine, *bowl(mine))
        copy.tell(theirs, *bowl(theirs))
    assert handle(copy).convergence() == handle(opt).convergence()
