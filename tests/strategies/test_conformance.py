"""What every method must do, whatever it is: one suite over the registry."""

import json
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch

from eign.strategies import State, methods, strategy
from eign.study import Optimizer
from eign.study.handle import handle

DIM = 2
DESIGN = 3 * DIM
BOUNDS = [(-1.0, 2.0), (0.0, 5.0)]
# Little effort in the search: these tests are about what a method does, not how well.
SMALL_SEARCH = {"restarts": 2, "raw_samples": 32}

METHODS = sorted(methods())


def options(method: str) -> dict[str, int]:
    return {name: value for name, value in SMALL_SEARCH.items() if name in strategy(method).options}


def optimizer(method: str, *, seed: int = 3, **more: object) -> Optimizer:
    # Points are the method's own here: the check of the gradients asks for none.
    return Optimizer(BOUNDS, method=method, seed=seed, options=options(method), check_gradients=False, **more)


def hill(x: np.ndarray) -> tuple[float, np.ndarray]:
    """A smooth function to minimise, with two basins."""
    value = (x[0] - 0.5) ** 2 + 0.2 * (x[1] - 2.0) ** 2 + 0.4 * np.sin(3 * x[0])
    return float(value), np.array([2 * (x[0] - 0.5) + 1.2 * np.cos(3 * x[0]), 0.4 * (x[1] - 2.0)])


def run(opt: Optimizer, count: int, function: Callable[..., tuple[object, object]] = hill) -> np.ndarray:
    """Ask and tell one by one; the points asked."""
    points = []
    for _ in range(count):
        x = opt.ask()
        points.append(x)
        opt.tell(x, *function(x))
    return np.array(points)


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@cache
def plain_run(method: str) -> np.ndarray:
    """The points of one and the same run, for whatever is compared with it."""
    return run(optimizer(method), DESIGN + 3)


def test_same_seed_same_points_bitwise(method):
    np.testing.assert_array_equal(run(optimizer(method), DESIGN + 3), plain_run(method))


def eventful(method: str) -> Optimizer:
    """A study with a point nobody asked for, batches told out of order, a failure, half a gradient, points pending."""
    opt = optimizer(method)
    opt.tell([0.4, 1.0], *hill(np.array([0.4, 1.0])))
    run(opt, DESIGN - 2)
    first, second, third = opt.ask(3)
    opt.tell(second, *hill(second))
    opt.tell(first, None)
    value, (slope, _) = hill(third)
    opt.tell(third, value, [slope, None])
    waiting = opt.ask()
    run(opt, 1)
    opt.tell(waiting, *hill(waiting))
    opt.ask(2)
    return opt


def test_the_same_study_twice_in_one_process_is_the_same_bitwise(method):
    once, again = eventful(method), eventful(method)
    assert again.history == once.history
    assert again.reasons == once.reasons
    np.testing.assert_array_equal(again.pending, once.pending)
    assert handle(again).log == handle(once).log
    assert handle(again).state == handle(once).state


def test_another_seed_other_points(method):
    assert not np.array_equal(run(optimizer(method), 2), run(optimizer(method, seed=4), 2))


def test_all_methods_of_a_seed_share_the_initial_design(method):
    # The default method begins with a point of its own, unless the length of its design is set.
    chosen = {"n_init": DESIGN} if method == "auto" else options(method)
    own = Optimizer(BOUNDS, method=method, seed=3, options=chosen, check_gradients=False)
    np.testing.assert_array_equal(run(own, DESIGN), run(optimizer("sobol"), DESIGN))


def test_state_survives_json_at_every_moment(method):
    opt = optimizer(method)
    method_strategy = strategy(method)
    for _ in range(DESIGN + 4):
        stored = json.dumps(handle(opt).state.to_json(), allow_nan=False)
        state = State.from_json(json.loads(stored))
        assert state == handle(opt).state
        (again,), _ = method_strategy.propose(state, handle(opt).data, handle(opt).pending.units, 1)
        x = opt.ask()
        np.testing.assert_array_equal(opt.box.from_unit(again.x[None])[0], x)
        opt.tell(x, *hill(x))


def test_n_points_at_once_are_n_times_one_and_distinct(method):
    together, one_by_one = optimizer(method), optimizer(method)
    for opt in (together, one_by_one):
        run(opt, DESIGN + 1)
    batch = together.ask(3)
    assert batch.shape == (3, DIM)
    # Not bitwise: a pending point that went to user units and back differs in its last bits.
    np.testing.assert_allclose(batch, [one_by_one.ask() for _ in range(3)], atol=1e-6)
    assert _closest_pair(together.box.to_unit(np.vstack([batch, together.history.x]))) > 1e-9


def test_pending_points_are_remembered_until_told(method):
    opt = optimizer(method)
    batch = opt.ask(DESIGN + 2)
    np.testing.assert_array_equal(opt.pending, batch)
    for x in batch[::-1]:
        opt.tell(x, *hill(x))
    assert len(opt.pending) == 0
    np.testing.assert_array_equal(opt.history.x, batch[::-1])
    opt.tell(opt.ask(), *hill(batch[0]))


def test_asking_again_while_a_point_is_pending_explores_elsewhere(method):
    opt = optimizer(method)
    run(opt, DESIGN)
    points = opt.box.to_unit(np.array([opt.ask() for _ in range(3)]))
    # A thousandth of the box: nearer points would tell the same.
    assert _closest_pair(points) > 1e-3


def test_points_never_asked_for_are_learned_from(method):
    opt = optimizer(method)
    rng = np.random.default_rng(0)
    x = rng.uniform([-1, 0], [2, 5], size=(DESIGN + 2, DIM))
    answers = [hill(point) for point in x]
    opt.tell(x, [y for y, _ in answers], [grad for _, grad in answers])
    later = run(opt, 2)
    assert opt.box.contains(later).all()
    assert opt.best.y == opt.history.y.min()


def test_failed_evaluations_are_not_fatal(method):
    opt = optimizer(method)
    run(opt, DESIGN + 4, lambda x: hill(x) if x[0] < 0.8 else (None, None))
    assert opt.history.n_failed > 0
    assert opt.best.x[0] < 0.8


def test_nothing_but_failures_is_not_fatal(method):
    opt = optimizer(method)
    points = run(opt, DESIGN + 3, lambda _: (np.nan, None))
    assert _closest_pair(opt.box.to_unit(points)) > 1e-9
    with pytest.raises(ValueError, match="no best point yet"):
        _ = opt.best


@pytest.mark.parametrize(
    "drop",
    [
        lambda g, _: None,
        lambda g, n: g if n % 2 else None,
        lambda g, _: [g[0], None],
        lambda g, n: [None, g[1]][:: 1 - 2 * (n % 2)],
    ],
    ids=["none at all", "every other", "one coordinate never", "in part"],
)
def test_missing_gradients(method, drop):
    opt = optimizer(method)

    def partial(x):
        value, gradient = hill(x)
        return value, drop(gradient, len(opt.history))

    points = run(opt, DESIGN + 3, partial)
    assert opt.box.contains(points).all()
    assert _closest_pair(opt.box.to_unit(points)) > 1e-9


def test_gradients_without_a_value_are_accepted(method):
    opt = optimizer(method)
    run(opt, DESIGN + 3, lambda x: (None if len(opt.history) % 3 == 1 else hill(x)[0], hill(x)[1]))
    assert opt.history.n_failed == 0


def test_maximising_the_negative_is_the_same_bitwise(method):
    maximised = run(optimizer(method, maximize=True), DESIGN + 3, lambda x: (-hill(x)[0], -hill(x)[1]))
    np.testing.assert_array_equal(maximised, plain_run(method))


def test_units_of_y_do_not_matter(method):
    """A power of two, so that scaling itself is exact."""
    scaled = run(optimizer(method), DESIGN + 2, lambda x: (1024 * hill(x)[0], 1024 * hill(x)[1]))
    np.testing.assert_allclose(scaled, plain_run(method)[: DESIGN + 2], atol=1e-6)


def test_one_dimension(method):
    opt = Optimizer([(-1.0, 2.0)], method=method, seed=0, options=options(method))
    points = run(opt, 6, lambda x: (float(x[0] ** 2), 2 * x))
    assert _closest_pair(points) > 1e-9


def test_threads_are_restored(method):
    torch.set_num_threads(2)
    try:
        run(optimizer(method), DESIGN + 1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_unknown_options_are_named(method):
    with pytest.raises(ValueError, match=f"method '{method}' has no option 'nonsense'[.;].* Known: "):
        Optimizer(BOUNDS, method=method, options={"nonsense": 1})


def _closest_pair(points: np.ndarray) -> float:
    gaps = np.abs(points[:, None] - points[None]).max(axis=-1)
    return float(gaps[np.triu_indices(len(points), 1)].min())
