import warnings

import numpy as np
import pytest

from eign import Box, problems
from eign.data import Observations
from eign.strategies.design import design_point
from eign.study import GradientWarning, Optimizer, minimize
from eign.study.events import Ask
from eign.study.gradient_check.check import PROBE, new_faults
from eign.study.gradient_check.faults import Fault, common_faults, hidden_changes, message, repaired_bounds
from eign.study.gradient_check.neighbours import NEAR, NearPairs, judge
from eign.study.gradient_check.probe import propose_probe
from eign.study.handle import handle

BOUNDS = [(0.0, 1.0), (-2.0, 6.0), (0.0, 0.5)]
BOX = Box(BOUNDS)


def wavy(x):
    """Smooth and coupled, over coordinates of different width."""
    value = (x[0] - 0.2) ** 2 + 0.1 * (x[1] - 1.0) ** 2 + x[0] * x[2] + np.sin(4 * x[2]) + np.sin(x[1])
    first = 2 * (x[0] - 0.2) + x[2]
    return value, np.array([first, 0.2 * (x[1] - 1.0) + np.cos(x[1]), x[0] + 4 * np.cos(4 * x[2])])


def kinked(x):
    value = abs(x[0] - 0.5) + abs(x[1] - 2.0) + 3 * abs(x[2] - 0.25)
    return value, np.array([1.0, 1.0, 3.0]) * np.sign(x - [0.5, 2.0, 0.25])


def times(i, factor):
    return lambda grad: np.where(np.arange(len(grad)) == i, factor * grad, grad)


FAULTS = {
    "sign of 0": (times(0, -1.0), "the partial derivative by coordinate 0 seems to have the wrong sign:"),
    "sign of 2": (times(2, -1.0), "the partial derivative by coordinate 2 seems to have the wrong sign:"),
    "sign of all": (lambda grad: -grad, "the gradient seems to have the wrong sign:"),
    "1 doubled": (
        times(1, 2.0),
        "the partial derivative by coordinate 1 seems to be too large by a factor of about 2:",
    ),
    "2 halved": (times(2, 0.5), "the partial derivative by coordinate 2 seems to be too small by a factor of about 2:"),
    "all doubled": (lambda grad: 2 * grad, "the gradient seems to be too large by a factor of about 2:"),
    "0 times 5": (
        times(0, 5.0),
        "the partial derivative by coordinate 0 seems to be too large by a factor of about 5:",
    ),
    "swap": (
        lambda grad: grad[[1, 0, 2]],
        "the partial derivatives by coordinate 0 and by coordinate 1 seem to be swap",
    ),
}


def study(change=lambda grad: grad, *, count=15, function=wavy, noise=0.0, variance=None, seed=0, **more):
    """A study of `count` evaluations, and the warnings it gave."""
    opt = Optimizer(BOUNDS, method="sobol", seed=seed, **more)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(count):
            x = opt.ask()
            value, grad = function(x)
            opt.tell(x, value + noise * rng.standard_normal(), change(grad), y_var=variance)
    return opt, [str(warning.message) for warning in caught]


def probes(opt):
    """The points that were asked for and are not the method's."""
    return [x for x, reason in zip(opt.history.x, opt.reasons, strict=True) if reason == PROBE]


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_formulas_of_the_faults_are_those_of_their_maps(dim):
    rng = np.random.default_rng(dim)
    step, slope, bend = rng.normal(size=(3, 5, dim))
    bend = np.abs(bend)
    faults = common_faults(dim)
    hidden = [(step * (fault.repaired(slope) - slope)).sum(axis=1) for fault in faults]
    bounds = [(np.abs(step) * np.abs(fault.repaired(bend))).sum(axis=1) for fault in faults]
    # A few roundings of sums of up to four numbers of size one.
    np.testing.assert_allclose(hidden_changes(step, slope), np.transpose(hidden), atol=1e-13)
    np.testing.assert_allclose(repaired_bounds(step, bend), np.transpose(bounds), atol=1e-13)


@pytest.mark.parametrize(("change", "text"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_found_within_5d_evaluations_and_named_once(change, text):
    _, messages = study(change, count=30)
    assert len(messages) == 1
    assert messages[0].startswith(text)
    assert study(change, count=15)[1] == messages


def test_several_explanations_are_all_told():
    text = message([Fault("sign", (0,), -1.0), Fault("swap", (0, 1), 1.0)], ["'a'", "'b'"])
    assert text.startswith(
        "the partial derivative by 'a' seems to have the wrong sign, or the partial derivatives by 'a'"
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda grad: grad,
        lambda grad: 1.1 * grad,
        lambda grad: grad * [1.05, 0.97, 1.04],
        lambda grad: (1 + 1e-6) * grad,
    ],
    ids=["correct", "all times 1.1", "within 5 per cent", "to 1e-6"],
)
@pytest.mark.parametrize("function", [wavy, kinked])
def test_no_fault_no_alarm(change, function):
    for seed in range(5):
        assert study(change, function=function, count=18, seed=seed)[1] == []


@pytest.mark.parametrize("noise", [1e-4, 1e-3, 1e-2, 0.3])
def test_noise_that_nobody_told_raises_no_alarm(noise):
    for seed in range(5):
        assert study(noise=noise, count=18, seed=seed)[1] == []


def test_known_noise_that_would_drown_a_probe_saves_it():
    opt, messages = study(noise=0.1, variance=0.01, count=18)
    assert (len(probes(opt)), messages) == (0, [])


def test_a_pair_across_a_kink_is_explained():
    """Without the bound by the change of the slope, half of such pairs would reject correct gradients."""
    x = np.array([[0.5 - 1e-4, 0.3, 0.2], [0.5 + 3e-4, 0.3, 0.2]])
    answers = [kinked(BOX.from_unit(point)) for point in x]
    grad = BOX.times_unit_scale([grad for _, grad in answers], BOX.from_unit(x))
    verdict = judge(Observations(x, [value for value, _ in answers], grad), BOX.unit_scale(BOX.from_unit(x)))
    assert verdict.rejections == 0


def test_one_probe_is_enough_for_correct_gradients():
    opt, _ = study(count=40)
    (probe,) = probes(opt)
    assert np.array_equal(opt.history.x[9], probe)
    distance = np.abs(BOX.to_unit(opt.history.x[:9]) - BOX.to_unit(probe)).max(axis=1)
    assert distance.min() <= NEAR


def test_a_probe_stays_in_the_cube_and_goes_uphill():
    x = np.array([[1.0, 1.0], [0.0, 1.0], [0.5, 0.0], [1.0, 0.5], [0.0, 0.0], [1.0, 0.0]])
    data = Observations(x, x.sum(axis=1), np.ones_like(x))
    probe = propose_probe(data, np.ones_like(x), data.x, 0)
    assert ((probe >= 0) & (probe <= 1)).all()
    assert np.abs(data.x - probe).max(axis=1).min() <= NEAR
    inner = Observations(0.25 + 0.5 * x, x.sum(axis=1), np.ones_like(x))
    probe = propose_probe(inner, np.ones_like(x), inner.x, 0)
    assert probe.sum() > inner.x[np.abs(inner.x - probe).sum(axis=1).argmin()].sum()


def test_slopes_that_vanish_everywhere_need_no_probe():
    opt, messages = study(function=lambda x: (1.0, np.zeros(3)), count=20)
    assert (probes(opt), messages) == ([], [])


def test_no_probe_where_it_is_switched_off_or_there_are_no_gradients():
    own = BOX.from_unit([design_point(0, 3, index) for index in range(20)])
    for mode in ("passive", False):
        np.testing.assert_array_equal(study(count=20, check_gradients=mode)[0].history.x, own)
    np.testing.assert_array_equal(study(lambda _: None, count=20)[0].history.x, own)
    assert study(lambda grad: -grad, count=20, check_gradients=False)[1] == []


@pytest.mark.parametrize("mode", [True, None, 0, "yes"])
def test_bad_modes(mode):
    with pytest.raises(ValueError, match="expected 'probe', 'passive' or False"):
        Optimizer(BOUNDS, check_gradients=mode)


def test_probes_leave_the_points_of_the_method_as_they_are():
    opt, _ = study(count=20)
    assert handle(opt).state.asked == 19
    np.testing.assert_array_equal(
        [x for x in opt.history.x if not any(x is probe or (x == probe).all() for probe in probes(opt))],
        BOX.from_unit([design_point(0, 3, index) for index in range(19)]),
    )


def test_failed_probes_are_not_repeated_for_ever():
    opt = Optimizer(BOUNDS, method="sobol", seed=0)
    own = {tuple(BOX.from_unit(design_point(0, 3, index))) for index in range(40)}
    for _ in range(40):
        x = opt.ask()
        opt.tell(x, *(wavy(x) if tuple(x) in own else (None, None)))
    assert opt.history.n_failed == 2
    assert handle(opt).state.asked == 38


def test_a_slope_that_is_never_told_is_no_obstacle():
    opt, messages = study(lambda grad: [grad[0], None, -grad[2]], count=15)
    assert len(messages) == 1
    assert messages[0].startswith("the partial derivative by coordinate 2 seems to have the wrong sign")
    moved = [len(np.unique(opt.history.x[:, i])) == 15 for i in range(3)]
    assert moved == [True, False, True]


def test_batches_and_late_answers():
    opt = Optimizer(BOUNDS, method="sobol", seed=0)
    first = opt.ask(9)
    opt.tell(first, *map(list, zip(*(wavy(x) for x in first), strict=True)))
    batch = opt.ask(4)
    more = opt.ask(4)
    distance = np.abs(BOX.to_unit(np.vstack([batch, more]))[:, None] - BOX.to_unit(first)).max(axis=2).min(axis=1)
    # The first of a batch is the probe; while it is pending there is no other.
    assert (distance <= NEAR).tolist() == [True] + 7 * [False]
    for x in np.vstack([more, batch[::-1]]):
        opt.tell(x, *wavy(x))
    assert len(opt.pending) == 0
    assert handle(opt).probes() == 1


@pytest.mark.parametrize("factor", [1.0, -1.0])
@pytest.mark.parametrize("count", [10, 11, 12, 13])
def test_a_study_that_goes_on_from_its_file_asks_for_the_same_and_warns_once(tmp_path, factor, count):
    change = times(1, factor)
    whole, messages = study(change, count=count + 8)
    stored, before = study(change, count=count, storage=tmp_path / "study.db")
    stored.close()
    with Optimizer.resume(tmp_path / "study.db") as again, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(8):
            x = again.ask()
            value, grad = wavy(x)
            again.tell(x, value, change(grad))
        assert again.history == whole.history
        assert again.reasons.count(PROBE) == handle(again).probes()
    assert before + [str(warning.message) for warning in caught] == messages
    assert len(messages) == (factor < 0)


@pytest.mark.parametrize("name", ["rastrigin-6", "michalewicz-5", "holder-table-2", "mixture-1"])
def test_rough_problems_raise_no_alarm_and_hide_no_sign(name):
    problem = problems.get(name)
    for factor in (1.0, -1.0):
        opt = Optimizer(problem.bounds, method="sobol", seed=3, maximize=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(5 * problem.dim):
                x = opt.ask()
                value, grad = problem(x)
                opt.tell(x, value, np.where(np.arange(problem.dim) == 0, factor * grad, grad))
        assert len(caught) == (factor < 0)


def test_minimize_warns_at_the_call_of_tell_and_can_be_told_not_to():
    def wrong(x):
        value, grad = wavy(x)
        return value, -grad

    with pytest.warns(GradientWarning, match="the gradient seems to have the wrong sign"):
        minimize(wrong, BOUNDS, method="l-bfgs", budget=15, seed=0)
    minimize(wrong, BOUNDS, method="l-bfgs", budget=15, seed=0, check_gradients=False)


def test_names_and_fixed_coordinates():
    opt = Optimizer({"a": (0, 1), "fixed": (2, 2), "b": (-2, 6), "c": (0, 0.5)}, method="sobol", seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            x = opt.ask()
            value, grad = wavy(x[[0, 2, 3]])
            opt.tell(x, value, [grad[0], 0.0, -grad[1], grad[2]])
    assert [warning.category for warning in caught] == [GradientWarning]
    assert "the partial derivative by 'b' seems to have the wrong sign" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("mode", ["probe", "passive"])
def test_what_was_known_before_is_not_new(mode):
    opt, _ = study(lambda grad: -grad, count=16, check_gradients=mode)
    seen = [n for n in range(1, 17) if new_faults(mode, handle(opt).data[:n], handle(opt)._widths()[:n], n - 1)]
    assert len(seen) == 1


def test_the_passive_mode_looks_at_many_points_told_at_once():
    opt = Optimizer(BOUNDS, method="sobol", seed=0, check_gradients="passive")
    x = BOX.from_unit([design_point(0, 3, index) for index in range(40)])
    answers = [wavy(point) for point in x]
    with pytest.warns(GradientWarning, match="the gradient seems"):
        opt.tell(x, [value for value, _ in answers], [-grad for _, grad in answers])


def with_neighbours(count, dim=3):
    """Points of which the second half is next to the first, some too far to be neighbours."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(count, dim))
    x[count // 2 :] = x[: count - count // 2] + rng.uniform(-2 * NEAR, 2 * NEAR, (count - count // 2, dim))
    return x


def test_pairs_are_each_point_with_the_nearest_before_it_however_they_are_told():
    x = with_neighbours(150)
    distance = np.abs(x[:, None] - x[None]).max(axis=-1)
    nearest = [(int(distance[row, :row].argmin()), row) for row in range(1, len(x))]
    expected = [pair for pair in nearest if distance[pair] <= NEAR]
    assert 5 < len(expected) < 40
    one_by_one = NearPairs()
    for count in range(1, len(x) + 1):
        found = one_by_one.among(x[:count]).tolist()
        assert found == [list(pair) for pair in expected if pair[1] < count]
    assert NearPairs().among(x).tolist() == found
    assert one_by_one.among(x[:80]).tolist() == NearPairs().among(x[:80]).tolist(), "the first of them again"


def test_a_point_is_looked_at_once():
    x, known = with_neighbours(60), NearPairs()
    before = known.among(x).tolist()
    assert before
    elsewhere = np.concatenate([np.linspace(0.0, 1.0, 60)[:, None] * np.ones(3), [[0.5, 0.0, 0.5]]])
    assert known.among(elsewhere).tolist() == before


def test_pairs_are_enough_at_some_point():
    x = 0.5 + 1e-5 * np.random.default_rng(0).normal(size=(500, 1))
    assert NearPairs().among(x).tolist() == NearPairs().among(x[:21]).tolist()
    assert len(NearPairs().among(x)) == 20


def test_what_the_check_remembers_follows_from_the_log(tmp_path):
    """After telling, retracting and resuming: the same as from all the data at once."""
    with Optimizer(BOUNDS, method="sobol", seed=0, storage=tmp_path / "study.db") as opt:
        for _ in range(15):
            x = opt.ask()
            opt.tell(x, *wavy(x))
        opt.retract(opt.history.x[3])
        resumed = Optimizer.view(tmp_path / "study.db")
        for study in (handle(opt), handle(resumed)):
            asks = [event for event in study.log if isinstance(event, Ask)]
            assert study.probes() == sum(event.reasons.count(PROBE) for event in asks) > 0
            x = study.data.x
            assert study._near.among(x).tolist() == NearPairs().among(x).tolist() != []
