"""A study that a bug has stopped can go on."""

import numpy as np
import pytest

from eign import Optimizer
from eign.strategies.auto.auto import Auto
from eign.study import MethodFailedWarning


def test_a_method_that_fails_is_replaced_by_points_that_fill_the_space(monkeypatch, tmp_path):
    def broken(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    with Optimizer([(0.0, 1.0)] * 2, seed=0, storage=tmp_path / "study.db", check_gradients=False) as opt:
        for _ in range(6):
            x = opt.ask()
            opt.tell(x, float(x @ x), 2 * x)
        with monkeypatch.context() as patched:
            patched.setattr(Auto, "propose_one", broken)
            with pytest.warns(
                MethodFailedWarning, match=r"'auto' failed.*LinAlgError: Singular matrix .*, line"
            ) as caught:
                points = opt.ask(3)
        assert caught[0].filename == __file__
        assert len(np.unique(points, axis=0)) == 3
        opt.tell(points, (points**2).sum(axis=1), 2 * points)
        assert opt.reasons[-3:] == ["fallback"] * 3
        x = opt.ask()
        opt.tell(x, float(x @ x), 2 * x)
        assert opt.reasons[-1] != "fallback"
    assert len(Optimizer.view(tmp_path / "study.db").history) == 10
