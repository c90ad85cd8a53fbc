"""Multi-start L-BFGS-B as a method."""

import pytest

from eign import Optimizer


@pytest.mark.parametrize(
    ("dim", "settings", "count"),
    [
        (2, {"budget": 100}, 6),
        (2, {}, 6),
        (20, {"budget": 150}, 15),
        (20, {"budget": 5}, 1),
        (20, {"budget": 150, "options": {"n_init": 30}}, 30),
    ],
)
def test_the_design_has_at_most_a_tenth_of_a_budget_that_is_known(dim, settings, count):
    opt = Optimizer([(-1.0, 2.0)] * dim, method="l-bfgs", seed=0, check_gradients=False, **settings)
    for _ in range(count + 2):
        x = opt.ask()
        opt.tell(x, float(x @ x), 2 * x)
    assert opt.reasons[:count] == ["initial"] * count
    assert "initial" not in opt.reasons[count:]
