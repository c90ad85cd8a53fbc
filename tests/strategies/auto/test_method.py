"""The decisions of `auto`: what it remembers, why it proposes what it does, and what it does with hard data."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group

from auto_cases import coupled, design, observe, options
from cases import cube
from eign import problems
from eign.data import Observations
from eign.models.selection import fitted
from eign.strategies import State, strategy
from eign.strategies.auto import method
from eign.strategies.auto.jumps import is_worth_drawing
from eign.strategies.auto.memory import VERSION, Memory, Promise
from eign.strategies.auto.settings import SETTINGS
from eign.strategies.local_search import advance, begin
from eign.study import Optimizer
from eign.study.handle import handle

REASONS = {"initial", "global", "local", "restart"}
Answer = tuple[object, ...]


def wave(x: np.ndarray) -> tuple[float, np.ndarray]:
    """To be minimised, with several basins."""
    data = observe(coupled, x[None])
    return -float(data.y[0]), -data.grad[0]


def run(function: Callable[[np.ndarray], Answer], count: int, **chosen: object) -> tuple[Optimizer, list[str]]:
    """Ask and tell one by one in the unit square, with each state through JSON; the reasons."""
    opt = Optimizer([(0.0, 1.0)] * 2, seed=2, options=chosen, check_gradients=False)
    reasons = []
    for _ in range(count):
        x = opt.ask()
        reasons.append(handle(opt).pending.reasons[-1])
        stored = json.loads(json.dumps(handle(opt).state.to_json(), allow_nan=False))
        assert State.from_json(stored) == handle(opt).state
        opt.tell(x, *function(x))
    return opt, reasons


def closest_pair(points: np.ndarray) -> float:
    gaps = np.abs(points[:, None] - points[None]).max(axis=-1)
    return float(gaps[np.triu_indices(len(points), 1)].min())


def test_memory_survives_json():
    data = observe(coupled, design(8, 2))
    full = Memory(
        fit=fitted(data, None, [], options(), SETTINGS.model).fit,
        search=advance(begin(data.x[3]), data),
        optima=([0.5, 0.6],),
        is_restart=True,
        idle=3,
        doubt={"global": 1.3, "local": 0.1},
        open=(Promise("local", [0.1, 0.2], 1.0, 1e-5),),
    )
    for memory in (Memory(), full):
        restored = Memory.from_json(json.loads(json.dumps(memory.to_json(), allow_nan=False)))
        assert restored.to_json() == memory.to_json()
        assert replace(restored, fit=None) == replace(memory, fit=None)
    assert Memory.from_json({}) == Memory()


def test_a_memory_of_another_version_is_forgotten_and_the_run_goes_on():
    opt, _ = run(wave, 9)
    stored = handle(opt).state.to_json()
    stored["memory"] = {"version": 2, "descents": 3, "fit": {"kernel": "unheard of"}}
    stored["options"] = {"climbs": 0.33, "local": False}
    old = strategy("auto").restored(State.from_json(stored))
    assert old.options["local"] is False
    data = Observations(opt.history.x, -opt.history.y, -opt.history.grad)
    proposal, state = strategy("auto").propose_one(old, data, np.empty((0, 2)))
    assert np.all((proposal.x >= 0) & (proposal.x <= 1))
    assert state.memory["version"] == VERSION


def told(x: list[float], y: float) -> Observations:
    return Observations(np.array([x]), np.array([y]))


@pytest.mark.parametrize(("y", "kept"), [(3.0, 1.0), (1.5, 0.25), (0.5, 0.0), (np.nan, 0.0)])
def test_a_source_whose_promises_are_broken_rests_while_others_have_their_turn(y, kept):
    memory = Memory(
        doubt={"local": 1.0, "restart": 2.0},
        rest={"restart": 3.0},
        open=(Promise("local", [0.2], 1.0, 2.0), Promise("global", [0.8], 1.0, 2.0)),
    )
    pending = np.array([[0.8]])
    after = memory.settled(told([0.2], y), pending)
    doubt = (1.0 - kept) * 2.0
    assert after.doubt == {"local": pytest.approx(doubt), "restart": 2.0}
    assert after.rest == {"local": pytest.approx(2.0**doubt - 1.0), "restart": 2.0}
    assert after.is_resting("restart")
    assert not after.is_resting("global")
    assert after.open == memory.open[1:]
    # What was given up is forgotten.
    assert memory.settled(told([0.2], y), np.empty((0, 1))).open == ()


def rested(kept: float, evaluations: int) -> list[bool]:
    """Of a source that keeps this share of every promise: whether it rests before each evaluation."""
    memory, found = Memory(), []
    for _ in range(evaluations):
        found.append(memory.is_resting("global"))
        reason, came = ("local", 2.0) if found[-1] else ("global", 2.0 * kept)
        memory = replace(memory, open=(Promise(reason, [0.2], 1.0, 2.0),))
        memory = memory.settled(told([0.2], 1.0 + came), np.empty((0, 1)))
    return found


def test_a_source_that_always_fails_takes_the_logarithm_of_the_budget_and_one_that_keeps_more_than_half_never_rests():
    assert rested(0.0, 127).count(False) == 7
    assert not any(rested(0.6, 100))


def test_design_is_longer_without_gradients():
    _, reasons = run(wave, 4)
    assert [reason == "initial" for reason in reasons] == [True, False, False, False]
    _, blind = run(lambda x: (wave(x)[0], None), 8)
    assert [reason == "initial" for reason in blind] == [True] * 6 + [False] * 2


@pytest.fixture(scope="module")
def long_run() -> tuple[Optimizer, list[str]]:
    return run(wave, 60)


def past_the_first(kind: str, run_of_all_kinds: tuple[Optimizer, list[str]]) -> int:
    """So many evaluations that the run with all kinds of steps has had one of this kind, with some room."""
    return run_of_all_kinds[1].index(kind) + 6


def test_every_kind_of_step_has_its_turn(long_run):
    _, reasons = long_run
    assert set(reasons) == REASONS
    # Global steps come first, as many as the policy says.
    assert reasons[: reasons.index("restart")].count("global") >= 2 + SETTINGS.model.fewest
    assert reasons[:2] == ["initial", "local"]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda y, g: (y, None), id="no gradients"),
        pytest.param(lambda y, g: (y, [g[0], None]), id="one coordinate missing"),
        pytest.param(lambda y, g: (y, g, 1e-4, 1e-4), id="noise that is told"),
        pytest.param(lambda y, g: (y, g, None, 1e-4), id="noise of the gradient alone"),
    ],
)
def test_searches_need_exact_and_complete_gradients(spoil, long_run):
    _, reasons = run(lambda x: spoil(*wave(x)), past_the_first("restart", long_run))
    assert set(reasons) == {"initial", "global"}


def ripples(x: np.ndarray) -> tuple[float, np.ndarray]:
    """To be minimised: a bowl whose ripples make hundreds of basins, and its optimum the lowest of them."""
    away = x - np.array([0.37, 0.58, 0.44, 0.61])[: len(x)]
    value = (2.0 * away**2 + 0.1 * (1.0 - np.cos(30.0 * away))).sum()
    return float(value), 4.0 * away + 3.0 * np.sin(30.0 * away)


def test_a_restart_begins_at_the_top_of_a_bowl_as_soon_as_nothing_else_is_expected():
    """Turned, so that no additive model sees the basins in a row."""
    turn = ortho_group.rvs(4, random_state=3)

    def turned(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = ripples(0.5 + turn @ (x - 0.5))
        return value, turn.T @ slope

    top = 0.5 + turn.T @ (np.array([0.37, 0.58, 0.44, 0.61]) - 0.5)

    def first_restart(seed: int, *, bowl: bool) -> tuple[int, float]:
        """After how many evaluations, and how far from the top."""
        opt = Optimizer([(0.0, 1.0)] * 4, seed=seed, options={"bowl": bowl}, check_gradients=False)
        while "restart" not in opt.reasons:
            x = opt.ask()
            opt.tell(x, *turned(x))
        return len(opt.history), float(np.abs(opt.history.x[-1] - top).max())

    # Rounding decides where a run looks, and a few points may lie in no bowl: the median of five runs.
    with_bowl, without = (np.array([first_restart(seed, bowl=bowl) for seed in range(4, 9)]) for bowl in (True, False))
    assert (with_bowl[:, 0] <= without[:, 0]).all()
    assert (with_bowl[:, 0] < without[:, 0]).any()
    assert np.median(with_bowl[:, 1]) < 0.25 < np.median(without[:, 1])


def test_along_few_directions_of_many_the_model_finds_what_a_search_does_not():
    """A wave with six basins along two directions of forty."""
    axes = ortho_group.rvs(40, random_state=2)[:2]

    def along(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = wave(0.5 + axes @ (x - 0.5))
        return value, slope @ axes

    opt = Optimizer([(0.0, 1.0)] * 40, seed=0, check_gradients=False)
    for _ in range(30):
        x = opt.ask()
        opt.tell(x, *along(x))
    assert handle(opt).state.memory["rank"] == 2
    plane = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 201)] * 2), axis=-1).reshape(-1, 2)
    lowest = -observe(coupled, plane).y.max()
    assert opt.best.y < lowest + 1e-3 * abs(lowest)
    # Estimates and pictures are of all coordinates.
    state, data = handle(opt).state, handle(opt).data
    chosen = strategy("auto")
    assert np.array_equal(chosen.estimates(state, data), data.y)
    assert chosen.belief(state, data, np.empty((0, 40))).x.shape == (40,)


def test_the_cube_of_directions_reaches_as_far_as_the_box():
    """The best corner is four sides of the box away from the centre along the only direction."""
    axis = np.full(64, 0.125)
    opt = Optimizer([(0.0, 1.0)] * 64, seed=0, check_gradients=False)
    for _ in range(12):
        x = opt.ask()
        opt.tell(x, -float(axis @ x), -axis)
    assert opt.best.y == pytest.approx(-8.0)
    assert handle(opt).state.memory["rank"] == 1


@pytest.mark.parametrize(("rank", "distance"), [(2, 0.1), (4, 0.45)])
def test_few_directions_with_ripples_are_solved_and_no_point_is_repeated(rank, distance):
    """The optimum is in the box, and out of a cube of side 1 along the directions."""
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((40, rank)))[0].T
    weight = np.arange(1, rank + 1)

    def rippled(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = turn @ (x - 0.5) - distance
        value = (weight * z**2).sum() + 0.3 * (1.0 - np.cos(8.0 * z)).sum()
        return float(value), turn.T @ (2.0 * weight * z + 2.4 * np.sin(8.0 * z))

    opt = Optimizer([(0.0, 1.0)] * 40, seed=0, check_gradients=False)
    for _ in range(70):
        x = opt.ask()
        opt.tell(x, *rippled(x))
    assert opt.best.y < 1e-9
    apart = np.abs(opt.history.x[:, None] - opt.history.x[None]).max(axis=2)
    assert apart[np.triu_indices(70, 1)].min() > 0.0


def test_a_jump_does_not_repeat_a_point_that_failed():
    def walled(x: np.ndarray) -> Answer:
        away = x - 0.3
        return (np.nan, None) if x.mean() < 0.35 else (float(3.0 * away @ away), 6.0 * away)

    opt = Optimizer([(0.0, 1.0)] * 30, seed=1, check_gradients=False)
    for _ in range(40):
        x = opt.ask()
        opt.tell(x, *walled(x))
    assert len(np.unique(opt.history.x, axis=0)) == 40


@pytest.mark.parametrize("dim", [5, 30])
def test_one_missing_component_does_not_end_the_searches(dim):
    curvature, count = np.geomspace(1.0, 100.0, dim), 0

    def once_without(x: np.ndarray) -> Answer:
        nonlocal count
        count += 1
        slope = curvature * (x - 0.3)
        return float(0.5 * (x - 0.3) @ slope), np.where((np.arange(dim) == 0) & (count == 3), np.nan, slope)

    opt = Optimizer([(0.0, 1.0)] * dim, seed=0, check_gradients=False)
    for _ in range(60):
        x = opt.ask()
        opt.tell(x, *once_without(x))
    assert opt.best.y < 1e-14


def test_in_many_dimensions_a_restart_is_a_hop_from_the_best_point():
    dim = 30
    data = Observations(design(4, dim), np.array([0.0, 3.0, 1.0, 2.0]), np.ones((4, dim)))
    hops = [method._new_start(data, Memory(), np.random.default_rng(seed)) for seed in range(20)]
    away = [hop for hop in hops if np.abs(data.x - hop).max(axis=1).min() > 0.0]
    assert 0 < len(away) < 20
    assert all(0.0 < np.abs(hop - data.x[1]).max() <= 0.25 and ((hop >= 0) & (hop <= 1)).all() for hop in away)


def test_in_many_dimensions_a_sum_is_solved_from_points_drawn_after_the_first_search():
    """Quartic wells along 30 turned-up axes, 2^30 optima: no search from one of them finds the best."""
    dim = 30
    shifts = np.random.default_rng(3).uniform(-0.1, 0.1, dim)

    def wells(x):
        z = 10.0 * (x - shifts) - 5.0
        return float((z**4 - 16.0 * z**2 + 5.0 * z).sum()), 10.0 * (4.0 * z**3 - 32.0 * z + 5.0)

    opt = Optimizer([(0.0, 1.0)] * dim, seed=0, check_gradients=False)
    while len(opt.history.y) < 90:
        x = opt.ask()
        opt.tell(x, *wells(x))
    drawn = [number for number, reason in enumerate(opt.reasons) if reason == "initial"]
    assert 8 <= len(drawn) - 1 <= 16
    assert opt.best.y <= dim * -78.3323 + 1e-2


def test_in_many_dimensions_a_product_is_worth_half_as_many_draws():
    """Slopes along each coordinate that depend on all the others: after eight points nothing looks like a sum."""
    rng = np.random.default_rng(0)
    points = rng.random((16, 30))
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    coupled = Observations(points, np.cos(9.0 * points @ turn).sum(1), -9.0 * np.sin(9.0 * points @ turn) @ turn.T)
    summed = Observations(points, np.cos(9.0 * points).sum(1), -9.0 * np.sin(9.0 * points))
    assert [is_worth_drawing(coupled[:n], rng) for n in (7, 8, 12, 16)] == [True, False, False, False]
    assert [is_worth_drawing(summed[:n], rng) for n in (7, 8, 12, 16)] == [True, True, True, False]


def test_in_many_dimensions_further_workers_take_other_steps_on_the_way_of_the_first():
    opt = Optimizer([(0.0, 1.0)] * 30, seed=1, check_gradients=False)
    turn = ortho_group.rvs(30, random_state=0)
    curvature, values = turn @ np.diag(np.linspace(1.0, 50.0, 30)) @ turn.T, []
    for _ in range(12):
        points = [opt.ask() for _ in range(4)]
        for x in points:
            opt.tell(x, float((x - 0.4) @ curvature @ (x - 0.4)), 2.0 * curvature @ (x - 0.4))
        values.append(opt.best.y)
    assert opt.reasons.count("initial") <= 12
    assert opt.reasons.count("local") >= 30
    assert len(np.unique(opt.history.x.round(9), axis=0)) == 48
    assert values[-1] < 1e-2 * values[0]


@pytest.mark.parametrize(
    ("chosen", "kind"), [({"elsewhere": False}, "restart"), ({"local": False, "elsewhere": False}, "local")]
)
def test_steps_that_are_switched_off_do_not_come(chosen, kind, long_run):
    assert kind not in run(wave, past_the_first(kind, long_run), **chosen)[1]


def test_a_source_that_breaks_its_promises_makes_room_for_the_others():
    """Gradients that are a hundred times too long make every step look better than it is."""
    opt, reasons = run(lambda x: (np.round(wave(x)[0], 1), 100.0 * wave(x)[1]), 30)
    assert {"local", "global"} <= set(reasons)
    assert handle(opt).state.memory["doubt"]["local"] > 1.0


@pytest.mark.parametrize(("resting", "taken"), [("global", "local"), ("local", "global")])
def test_a_source_that_rests_is_not_taken_while_the_other_promises_something(resting, taken):
    opt, _ = run(wave, 4)
    state = handle(opt).state
    memory = {**state.memory, "rest": {resting: 1e3}, "open": []}
    data = handle(opt).data
    proposal, _ = strategy("auto").propose_one(replace(state, memory=memory), data, np.empty((0, 2)))
    assert proposal.reason == taken


def test_while_global_steps_rest_their_model_is_not_fitted(monkeypatch):
    opt, _ = run(wave, 4)
    state, data = handle(opt).state, handle(opt).data
    memory = {**state.memory, "rest": {"global": 1e3}, "open": []}

    def refuse(*_):
        raise AssertionError("nobody asked")

    monkeypatch.setattr(method, "fitted", refuse)
    proposal, _ = strategy("auto").propose_one(replace(state, memory=memory), data, np.empty((0, 2)))
    assert proposal.reason == "local"
    assert proposal.expected_improvement is None
    with pytest.raises(AssertionError, match="nobody asked"):
        strategy("auto").propose_one(replace(state, memory={**memory, "rest": {}}), data, np.empty((0, 2)))


def test_in_many_dimensions_the_step_after_one_point_is_local():
    opt = Optimizer([(0.0, 1.0)] * 30, seed=1, check_gradients=False)
    x = opt.ask()
    opt.tell(x, float(x @ x), 2.0 * x)
    opt.ask()
    assert handle(opt).pending.reasons[-1] == "local"


def test_places_where_searches_ended_are_told_points_apart_from_each_other(long_run):
    opt, _ = long_run
    optima = np.array(handle(opt).state.memory["optima"])
    assert len(optima) >= 2
    assert closest_pair(optima) > 1e-9
    assert all(np.abs(opt.history.x - x).max(axis=1).min() <= 1e-9 for x in optima)


def test_a_point_that_is_pending_is_not_proposed_again():
    """A corner is where steps of every kind end up."""
    chosen = strategy("auto")
    for dim in (1, 2):
        x = design(dim + 6, dim)
        data = Observations(x, x.sum(axis=1), np.ones_like(x))
        corner = np.ones((1, dim))
        proposals, _ = chosen.propose(chosen.start(cube(dim), {}, 5).after(data), data, corner, 3)
        points = [proposal.x for proposal in proposals]
        assert closest_pair(np.concatenate([points, corner, x])) > 1e-9


def test_a_local_step_that_is_pending_is_left_to_its_process():
    opt = Optimizer([(0.0, 1.0)] * 2, seed=2, check_gradients=False)
    seen = 0
    for number in range(20):
        x, reason, _ = handle(opt).propose([], number=number)
        if reason == "local":
            seen += 1
            handle(opt).withdraw()
            other = handle(opt).propose([x], number=number)
            assert other.reason != "local"
            assert np.abs(other.x - x).max() > 1e-9
            handle(opt).withdraw()
            assert np.array_equal(handle(opt).propose([], number=number).x, x)
        opt.tell(x, *wave(x))
    assert seen > 0


def test_a_local_step_that_was_given_up_is_proposed_again():
    """As by a caller that keeps the points elsewhere, and proposes again."""
    opt, _ = run(wave, 1)
    first = handle(opt).propose([], number=1)
    again = handle(opt).propose([], number=101)
    assert first.reason == again.reason == "local"
    assert np.array_equal(first.x, again.x)


def test_an_optimum_is_not_evaluated_over_and_over():
    """What the nugget lets pass between value and mean is no gain."""
    problem = problems.shifted(problems.get("ackley-5"), seed=103)
    opt = Optimizer(problem.bounds, maximize=True, seed=103, check_gradients=False)
    steps = []
    for _ in range(36):
        x = opt.ask()
        if handle(opt).pending.reasons[-1] == "local":
            steps.append(closest_pair(problem.bounds.to_unit(np.vstack([opt.history.x, x]))))
        opt.tell(x, *problem(x))
    assert len(steps) > 4
    assert min(steps) > 1e-9


def test_a_batch_spreads():
    """Global steps look beyond what the model expects of pending points, and keep away from them."""
    opt, _ = run(wave, 5)
    points = opt.ask(5)
    assert closest_pair(points) > 1e-4
    assert closest_pair(points[np.array(handle(opt).pending.reasons) == "global"]) > 0.99 * SETTINGS.model.resolution


@pytest.mark.filterwarnings("ignore:x = .* was told before:UserWarning")
def test_points_that_are_told_twice_do_no_harm():
    opt = Optimizer([(0.0, 1.0)] * 2, seed=2, check_gradients=False)
    for step in range(9):
        x = opt.ask()
        value, gradient = wave(x)
        opt.tell(x, value, gradient)
        if step == 3:
            with pytest.warns(UserWarning, match="was told before"):
                opt.tell(x, value + 0.1, gradient)
        else:
            opt.tell(x, value, gradient)
    assert closest_pair(np.unique(opt.history.x, axis=0)) > 1e-9


@pytest.mark.parametrize("scale", [1e-300, 1e12, 1e300])
def test_size_of_y_does_not_matter(scale, long_run):
    """Up to rounding: the scales are no powers of two."""
    scaled, reasons = run(lambda x: (scale * wave(x)[0], scale * wave(x)[1]), 10)
    assert reasons == long_run[1][:10]
    np.testing.assert_allclose(scaled.history.x, long_run[0].history.x[:10], atol=1e-5)


@pytest.mark.parametrize("gradients", [True, False])
def test_on_a_plateau_the_design_goes_on_until_something_changes(gradients):
    """To a model of equal values the corners are least known; a well in the middle is found by even points."""
    centre = np.array([0.4, 0.45, 0.6])

    def well(x):
        depth = max(0.0, 0.3 - np.linalg.norm(x - centre))
        slope = -2.0 * depth * (x - centre) / max(1e-300, np.linalg.norm(x - centre))
        return depth**2, slope if gradients else None

    found = []
    for seed in range(6):
        opt = Optimizer([(0.0, 1.0)] * 3, seed=seed, maximize=True, check_gradients=False)
        while not len(opt.history.y) or opt.history.y.max() == 0.0:
            x = opt.ask()
            value, slope = well(x)
            opt.tell(x, value, slope)
        found.append(len(opt.history.y))
        assert set(opt.reasons) == {"initial"}
        for _ in range(3 * 3):
            x = opt.ask()
            value, slope = well(x)
            opt.tell(x, value, slope)
        assert opt.reasons[-1] != "initial"
    assert np.median(found) <= 15  # a share of .11 of the box: 9 random points in the mean


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda x: (3.0, np.zeros(2)), id="constant"),
        pytest.param(lambda x: (3.0, None), id="constant without gradients"),
        pytest.param(lambda x: (3.0, np.full(2, 1e200)), id="constant with steep gradients"),
        pytest.param(lambda x: (float(np.sign(np.sin(50 * x[0]))) * 1.7e308, None), id="the ends of the numbers"),
        pytest.param(lambda x: (1e300 if x[0] > 0.8 else wave(x)[0], wave(x)[1]), id="far out"),
        pytest.param(lambda x: (1.0 + np.spacing(1.0) * (x[0] > 0.5), np.array([1e-3, 1.0])), id="rounding"),
        pytest.param(lambda x: (np.inf if x[1] > 0.6 else wave(x)[0], None), id="infinite"),
        pytest.param(lambda x: (None if x[1] > 0.6 else wave(x)[0], wave(x)[1]), id="gradient without value"),
        pytest.param(lambda x: (*wave(x), 1e200, 1e200), id="nothing but noise"),
        pytest.param(lambda x: (float(x.sum()), np.ones(2)), id="linear"),
    ],
)
def test_hard_data(answer):
    opt, reasons = run(answer, 12)
    assert set(reasons) <= REASONS
    assert opt.box.contains(opt.history.x).all()
    assert closest_pair(opt.history.x) > 1e-9
    chosen = strategy("auto")
    belief = chosen.belief(handle(opt).state, handle(opt).data, np.empty((0, 2)))
    assert all(torch.isfinite(part).all() for part in belief.model.moments(torch.tensor(handle(opt).data.x)))
