import json

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds

from cases import cube
from eign import Box
from eign.data import Observations
from eign.strategies import State, methods, strategy
from eign.study import Optimizer, minimize
from eign.study.events import Ask, Retract, Tell, event_from_json
from eign.study.handle import handle

SQUARE = [(-1.0, 2.0), (0.0, 4.0)]


def test_ask_gives_one_point_or_many():
    opt = Optimizer(SQUARE, method="sobol", seed=0)
    assert opt.ask().shape == (2,)
    assert opt.ask(1).shape == (1, 2)
    assert opt.ask(n=3).shape == (3, 2)
    assert len(opt.pending) == 5


def test_what_was_asked_belongs_to_the_caller():
    opt = Optimizer(SQUARE, method="sobol", seed=0)
    x = opt.ask()
    x[:] = 99.0
    assert (opt.pending < 5).all()


def test_a_point_in_single_precision_may_be_rounded_across_the_border():
    opt = Optimizer([(0.0, 0.1), (-0.3, 1.0)], method="sobol", seed=0)
    opt.tell(np.array([0.1, -0.3], dtype=np.float32), 1.0)
    np.testing.assert_array_equal(opt.history.x, [[0.1, -0.3]])
    with pytest.raises(ValueError, match="outside the box"):
        opt.tell(np.array([0.1 + 1e-7, 0.0]), 1.0)
    with pytest.raises(ValueError, match="outside the box"):
        opt.tell(np.array([0.11, 0.0], dtype=np.float32), 1.0)


def test_telling_a_result_says_what_to_tell():
    result = minimize(lambda x: (float(x @ x), 2 * x), SQUARE, method="sobol", budget=2)
    opt = Optimizer(SQUARE, method="sobol")
    with pytest.raises(TypeError, match=r"tell\(result.history\)"):
        opt.tell(result)
    opt.tell(result.history)
    assert len(opt.history) == 2


def test_a_dict_of_slopes_needs_names():
    with pytest.raises(ValueError, match="this box has no names; give 2 numbers"):
        Optimizer(SQUARE, method="sobol").tell([0.0, 0.0], 1.0, {"a": 1.0})


@pytest.mark.parametrize("method", ["auto", "d-ei", "ei-gn"])
def test_what_the_process_has_set_does_not_reach_the_models(method):
    """NumPy that raises at every underflow, and torch that makes its tensors elsewhere."""
    runs = []
    for disturbed in (False, True):
        settings = np.seterr(all="raise") if disturbed else np.geterr()
        torch.set_default_device("meta" if disturbed else "cpu")
        try:
            opt = Optimizer(SQUARE, method=method, seed=0, options={"n_init": 3})
            for _ in range(6):
                x = opt.ask()
                opt.tell(x, float(x @ x), 2 * x)
            assert torch.get_default_device().type == ("meta" if disturbed else "cpu")
        finally:
            torch.set_default_device("cpu")
            np.seterr(**settings)
        runs.append(opt.history.x)
        assert "fallback" not in opt.reasons
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "two"])
def test_ask_of_a_bad_number(n):
    with pytest.raises(ValueError, match="expected how many points"):
        Optimizer(SQUARE, method="sobol").ask(n)


def test_fixed_coordinates_stay_and_log_scales_are_searched_in_logarithms():
    box = Box({"rate": (1e-6, 1.0), "depth": (3, 3), "width": (0, 1)}, log=["rate"])
    x = Optimizer(box, method="sobol", seed=0).ask(64)
    assert (x[:, 1] == 3.0).all()
    assert 1e-4 < np.median(x[:, 0]) < 1e-2


@pytest.mark.parametrize("bounds", [SQUARE, Bounds([-1, 0], [2, 4]), {"a": (-1, 2), "b": (0, 4)}, Box(SQUARE)])
def test_every_form_of_bounds_is_the_same_box(bounds):
    np.testing.assert_array_equal(
        Optimizer(bounds, method="random", seed=5).ask(9), Optimizer(SQUARE, method="random", seed=5).ask(9)
    )


def test_dicts_are_told_where_bounds_have_names():
    opt = Optimizer({"a": (-1, 2), "b": (0, 4)}, method="sobol")
    opt.tell({"b": 1.0, "a": 0.0}, 3.0, {"b": 7.0})
    np.testing.assert_array_equal(opt.history.x, [[0.0, 1.0]])
    np.testing.assert_array_equal(opt.history.grad, [[np.nan, 7.0]])
    with pytest.raises(ValueError, match=r"grad has unknown names \['c'\]"):
        opt.tell([0.0, 1.0], 3.0, {"c": 1.0})


def test_best_minimises_or_maximises():
    for maximize, expected in ((False, 1.0), (True, 5.0)):
        opt = Optimizer(SQUARE, method="sobol", maximize=maximize)
        opt.tell([[0, 0], [1, 1], [2, 2]], [3.0, 1.0, 5.0], [[1, 2], [3, 4], [5, 6]])
        assert opt.best.y == expected
        np.testing.assert_array_equal(opt.best.grad, [3, 4] if expected == 1.0 else [5, 6])


def test_signs_turn_for_values_and_gradients_together():
    opt = Optimizer([(0.0, 10.0)], method="sobol")
    opt.tell([5.0], 2.0, [0.3], y_var=0.5, grad_var=[0.1])
    assert handle(opt).data.y[0] == -2.0
    assert handle(opt).data.grad[0, 0] == pytest.approx(-3.0)
    assert handle(opt).data.y_var[0] == 0.5
    assert handle(opt).data.grad_var[0, 0] == pytest.approx(10.0)


@pytest.mark.parametrize("y", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("maximize", [False, True])
def test_failed_evaluations_are_never_the_best(y, maximize):
    opt = Optimizer(SQUARE, method="sobol", maximize=maximize)
    opt.tell([0.0, 0.0], 1.0)
    opt.tell([1.0, 1.0], y)
    assert opt.best.y == 1.0


def test_with_noise_the_best_is_the_best_posterior_mean():
    """The luckiest of many noisy values at a bad place must not win over the plateau that is better on average."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 60)[:, None]
    y = (x[:, 0] - 0.5) ** 2 + 0.3 * rng.standard_normal(60)
    y[0] = y.min() - 0.2
    opt = Optimizer([(0.0, 1.0)], method="ei", seed=0, options={"noise": "learn"})
    opt.tell(x, y)
    opt.ask()
    assert abs(opt.best.x[0] - 0.5) < 0.3
    known = Optimizer([(0.0, 1.0)], method="ei", seed=0)
    known.tell(x, y, y_var=0.09)
    known.ask()
    assert abs(known.best.x[0] - 0.5) < 0.3


def test_bad_tell_changes_nothing():
    opt = Optimizer(SQUARE, method="sobol", seed=0)
    opt.ask()
    before = handle(opt).state
    for x, y, grad in (([9.0, 0.0], 1.0, None), ([0.0, 0.0], [1.0, 2.0], None), ([0.0, 0.0], 1.0, [1.0, 2.0, 3.0])):
        with pytest.raises(ValueError, match=r"outside the box|has shape"):
            opt.tell(x, y, grad)
    assert len(opt.history) == 0
    assert len(opt.pending) == 1
    assert handle(opt).state == before


def test_a_told_point_is_recognised_after_rounding():
    """Who writes points to a file with twelve digits still answers the question that was asked."""
    opt = Optimizer(SQUARE, method="sobol", seed=0)
    x = opt.ask(2)
    opt.tell(np.round(x[1], 12), 1.0)
    np.testing.assert_array_equal(opt.pending, x[:1])


@pytest.mark.parametrize("method", ["l-bfgs", "auto"])
def test_single_precision_on_the_way_does_no_harm(method):
    """A search that needs exactly this point would ask for it again and again."""
    opt = Optimizer(SQUARE, method=method, seed=0, check_gradients=False)
    for _ in range(14):
        x = opt.ask()
        rounded = x.astype(np.float32)
        opt.tell(rounded, float(np.sum((rounded - 0.3) ** 2)), 2 * (rounded - 0.3))
        assert len(opt.pending) == 0
        np.testing.assert_allclose(opt.history.x[-1], x, rtol=0, atol=4e-9)
    # A model tells values apart down to 1e-6 of their spread, single precision down to 1e-7; this is well below both.
    assert opt.best.y < 1e-8 * np.ptp(opt.history.y)


def test_a_point_that_was_moved_is_pointed_out():
    opt = Optimizer(SQUARE, method="sobol", seed=0)
    x = opt.ask()
    with pytest.warns(UserWarning, match="asked and still pending; tell the point as it was asked"):
        opt.tell(np.round(x, 3) + 1e-4, 1.0)
    assert len(opt.pending) == 1
    assert opt.reasons == ["told"]


@pytest.mark.parametrize(
    ("box", "label"),
    [
        (Box([(0.0, 1.0), (4e14, 4e14 + 1e6)]), "coordinate 1"),
        (Box({"time": (1.7e9, 1.7e9 + 1.0)}), "'time'"),
        (Box({"gain": (1.0, 1.0 + 1e-8)}, log=["gain"]), "'gain'"),
    ],
)
def test_a_range_that_floating_point_cannot_resolve_is_refused(box, label):
    with pytest.raises(ValueError, match=f"of {label} is too narrow for numbers of that size.*distance from"):
        Optimizer(box)


def test_seed_is_drawn_and_kept():
    settings = {"method": "random", "options": {"n_init": 0}}
    first, second = (Optimizer(SQUARE, **settings) for _ in range(2))
    assert first.seed != second.seed
    drawn = first.ask(3)
    np.testing.assert_array_equal(Optimizer(SQUARE, seed=first.seed, **settings).ask(3), drawn)
    assert not (second.ask(3) == drawn).any()


@pytest.mark.parametrize("seed", [-1, 0.5, "1", True])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed="):
        Optimizer(SQUARE, method="sobol", seed=seed)


def test_unknown_method_suggests_a_known_one():
    with pytest.raises(ValueError, match="there is no method 'ei_gn'; did you mean 'ei-gn'"):
        Optimizer(SQUARE, method="ei_gn")


def test_methods_of_the_contract():
    surrogates = "auto ei-gn ei log-ei ei-xi ucb ei-g ei-g-bound d-ei d-log-ei d-ei-gn thompson"
    contract = f"{surrogates} cma-es sobol random l-bfgs reinforce"
    assert set(contract.split()) <= set(methods())
    assert all(line and "\n" not in line for line in methods().values())


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("ei-gn", {"alpha": -1}, "option alpha=-1 of method 'ei-gn': expected a finite number, at least 0"),
        ("ei-gn", {"alpha": "much"}, "expected a finite number"),
        ("ei-gn", {"rescale": 1}, "expected true or false"),
        ("ei-gn", {"kernel": "additive"}, "expected one of matern52, rbf"),
        ("ei", {"alpha": 0.6}, "method 'ei' has no option 'alpha'"),
        ("ei", {"n_init": 2.5}, "expected a whole number, at least 0"),
        ("ei", {"noise": "yes"}, 'or "learn"'),
        ("ei", {"restart": 3}, "did you mean 'restarts'"),
        ("cma-es", {"sigma0": 0}, "expected a finite number above 0"),
        ("sobol", {"n_init": 3}, "has no option 'n_init'. Known: none"),
    ],
)
def test_options_are_checked(method, options, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(SQUARE, method=method, options=options)


def test_options_must_be_a_dict():
    with pytest.raises(TypeError, match="expected a dict"):
        Optimizer(SQUARE, method="ei", options=["alpha"])


def test_events_survive_json():
    told = Observations([[0.0, 1.0], [1.0, 2.0]], [1.5, np.inf], [[np.nan, 2.0], None], y_var=[0.1, np.nan])
    asked = Ask(np.array([[0.1, 0.2]] * 2), ("initial", "model"), (None, 0.5))
    for event in (asked, Tell(told), Retract(np.array([0.1, 0.2]))):
        assert event_from_json(json.loads(json.dumps(event.to_json(), allow_nan=False))) == event
    assert Ask(np.zeros((1, 1)), ("model",)) != Tell(told)
    with pytest.raises(ValueError, match="a reason for each of 1 points"):
        Ask(np.zeros((1, 1)), ())
    with pytest.raises(ValueError, match="expected a stored ask, tell or retract"):
        event_from_json({"event": "forget"})


def test_a_study_follows_from_its_log():
    """Folding the events again gives the same data, pending points and state: what a file will rely on."""
    opt = Optimizer(SQUARE, method="l-bfgs", seed=2, check_gradients=False)
    for _ in range(9):
        x = opt.ask(2)
        opt.tell(x[1], float(x[1] @ x[1]), 2 * x[1])
    method = strategy("l-bfgs")
    state = method.start(opt.box, None, 2)
    again = Optimizer(SQUARE, method="l-bfgs", seed=2)
    for event in handle(opt).log:
        match event:
            case Ask(x, _):
                proposals, state = method.propose(state, handle(again).data, handle(again).pending.units, len(x))
                np.testing.assert_array_equal(again.box.from_unit([proposal.x for proposal in proposals]), x)
            case Tell(told):
                state = state.after(told)
        handle(again)._record(event, state)
    assert handle(again).state == handle(opt).state
    assert again.history == opt.history
    np.testing.assert_array_equal(again.pending, opt.pending)


def test_state_of_another_study_is_refused():
    method = strategy("sobol")
    state = method.start(cube(2), None, 0)
    with pytest.raises(ValueError, match="the state has seen 0 observations, the data are 1"):
        method.propose(state, Observations([[0.5, 0.5]], [1.0]), np.empty((0, 2)), 1)
    with pytest.raises(ValueError, match="expected a state stored as"):
        State.from_json({"seed": 0})


def test_stationarity_is_relative_to_the_values_and_projected():
    opt = Optimizer([(0.0, 2.0)], method="sobol")
    assert handle(opt).convergence().projected_gradient is None
    opt.tell([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], [[2.0], [2.0], [2.0]])
    assert handle(opt).convergence().projected_gradient == 0.0  # the best is at the lower bound and f falls towards it
    opt.tell([0.5], 0.0, [1.0])
    spread = 5.0 - 0.0
    assert handle(opt).convergence().projected_gradient == pytest.approx(2.0 / spread)


@pytest.mark.parametrize("method", ["auto", "cma-es", "l-bfgs"])
def test_a_proposal_that_is_withdrawn_leaves_no_trace(method):
    optimizer = Optimizer([(-1.0, 2.0), (1e-3, 1.0)], method=method, seed=4)
    for number in range(8):
        before = handle(optimizer).state
        first = handle(optimizer).propose([], number=number).x
        handle(optimizer).withdraw()
        assert handle(optimizer).state == before
        assert np.array_equal(handle(optimizer).propose([], number=number).x, first)
        optimizer.tell(first, float(np.sum(first**2)), 2.0 * first)
        told = handle(optimizer).state
        handle(optimizer).withdraw()
        assert handle(optimizer).state == told, "there is nothing to withdraw"


@pytest.mark.parametrize("method", ["sobol", "d-log-ei"])
def test_propose_is_ask_for_who_keeps_the_points_elsewhere(method):
    def fresh():
        optimizer = Optimizer([(-1.0, 2.0), (1e-3, 1.0)], method=method, seed=4, options=options)
        optimizer.tell([[0.5, 0.5], [1.5, 0.1], [-0.5, 0.9]], [1.0, 2.0, 3.0], np.ones((3, 2)))
        return optimizer

    options = {} if method == "sobol" else {"n_init": 2, "restarts": 2, "raw_samples": 32}
    asking, proposing = fresh(), fresh()
    pending: list[list[float]] = []
    for number in range(4):
        x = handle(proposing).propose(pending, number=number).x
        assert np.array_equal(x, asking.ask())
        pending.append(x.tolist())
    assert len(proposing.pending) == 0
    assert handle(proposing).state.asked == 0
