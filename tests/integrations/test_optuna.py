"""The Optuna sampler: what it tells the optimizer, what it leaves to others, and that the storage is all it needs."""

import copy
import pickle
import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

import eign
from eign.integrations.optuna import GradientSampler, set_constraint, set_gradient
from eign.study.handle import handle

from .optuna_worker import storage

optuna.logging.set_verbosity(optuna.logging.WARNING)
SPACE = {"a": FloatDistribution(-2.0, 3.0), "b": FloatDistribution(1e-3, 1e1, log=True)}
FAST = {"kernel": "matern52"}


def bowl(a, b):
    """Least at a = 1, b = 0.1, with its gradient in user units."""
    depth = np.log10(b) + 1.0
    return (a - 1.0) ** 2 + depth**2, {"a": 2 * (a - 1.0), "b": 2 * depth / (b * np.log(10.0))}


def objective(trial, sign=1.0):
    value, gradient = bowl(trial.suggest_float("a", -2.0, 3.0), trial.suggest_float("b", 1e-3, 1e1, log=True))
    set_gradient(trial, {name: sign * slope for name, slope in gradient.items()})
    return sign * value


def finished(a, b, *, gradient=None, state=TrialState.COMPLETE, **others):
    value = bowl(a, b)[0] if state == TrialState.COMPLETE else None
    attributes = {} if gradient is None else {"gradient": gradient}
    return create_trial(
        state=state, value=value, params={"a": a, "b": b}, distributions=SPACE, user_attrs=attributes, **others
    )


def study_of(*trials, sampler=None, direction="minimize"):
    study = optuna.create_study(sampler=sampler or GradientSampler(seed=0, options=FAST), direction=direction)
    study.add_trials(trials)
    return study


@pytest.fixture
def told(monkeypatch):
    """The observations that optimizers are told, one entry a call."""
    calls = []
    tell = eign.Optimizer.tell

    def recorded(self, *columns):
        calls.append(list(zip(*columns, strict=True)))
        tell(self, *columns)

    monkeypatch.setattr(eign.Optimizer, "tell", recorded)
    return calls


@pytest.fixture
def told_by_optimizer(monkeypatch):
    """All that each optimizer is told."""
    told = {}
    tell = eign.Optimizer.tell

    def recorded(self, *columns):
        told.setdefault(self, []).extend(zip(*columns, strict=True))
        tell(self, *columns)

    monkeypatch.setattr(eign.Optimizer, "tell", recorded)
    return told


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_it_finds_the_optimum_with_gradients(direction, sign):
    study = optuna.create_study(direction=direction, sampler=GradientSampler(seed=0))
    study.optimize(lambda trial: objective(trial, sign), n_trials=18)
    assert abs(study.best_value) < 1e-3
    assert study.best_params == pytest.approx({"a": 1.0, "b": 0.1}, rel=0.1)


def test_a_gradient_of_the_wrong_sign_is_told():
    study = optuna.create_study(sampler=GradientSampler(method="sobol", seed=0))

    def wrong(trial):
        value = objective(trial)
        set_gradient(trial, {name: -slope for name, slope in trial.user_attrs["gradient"].items()})
        return value

    with pytest.warns(UserWarning, match="wrong sign"):
        study.optimize(wrong, n_trials=26)


def test_each_trial_is_told_once(told):
    study = optuna.create_study(sampler=GradientSampler(seed=0, options=FAST))
    study.optimize(objective, n_trials=8)
    assert [len(call) for call in told] == [1] * 7
    assert [call[0][1] for call in told] == [trial.value for trial in study.trials[:-1]]
    for call, trial in zip(told, study.trials, strict=False):
        x, _, grad, _, _ = call[0]
        assert x == tuple(trial.params[name] for name in "ab")
        assert grad == tuple(trial.user_attrs["gradient"][name] for name in "ab")


def test_a_point_depends_on_the_storage_and_the_number_alone():
    first = optuna.create_study(sampler=GradientSampler("sobol", seed=3))
    first.optimize(objective, n_trials=9)
    again = optuna.create_study(sampler=GradientSampler("sobol", seed=3))
    again.optimize(objective, n_trials=5)
    again.sampler = GradientSampler("sobol", seed=3)  # a new process has nothing but the storage
    again.optimize(objective, n_trials=4)
    assert [trial.params for trial in first.trials] == [trial.params for trial in again.trials]


def test_a_resumed_study_continues_in_a_file(tmp_path):
    with storage(f"sqlite:///{tmp_path / 'study.db'}") as file:
        begun = optuna.create_study(study_name="s", storage=file, sampler=GradientSampler(seed=0))
        begun.optimize(objective, n_trials=10)
        resumed = optuna.load_study(study_name="s", storage=file, sampler=GradientSampler(seed=0))
        resumed.optimize(objective, n_trials=8)
        assert len(resumed.trials) == 18
        assert resumed.best_value < 1e-3


def test_running_trials_are_pending_points(told):
    study = study_of(*(finished(a, b) for a, b in [(-1, 0.01), (0, 1.0), (2, 5.0)]), sampler=GradientSampler(seed=0))
    trials = [study.ask(SPACE) for _ in range(6)]
    points = np.array([list(trial.params.values()) for trial in trials])
    apart = np.abs(points[:, None] - points[None]).max(axis=-1)[np.triu_indices(6, 1)]
    assert apart.min() > 1e-2
    assert len(told) == 1, "nothing has come in since the first proposal"


def test_a_trial_that_has_no_point_yet_is_not_proposed_twice():
    # Two processes at once: neither has published its point when the other begins.
    design = [finished(a, b, gradient=bowl(a, b)[1]) for a, b in [(-1, 0.01), (0, 1.0), (2, 5.0), (2, 0.5), (0, 0.02)]]
    study, other = study_of(*design), study_of(*design)
    storage = study._storage
    early, late = (storage.get_trial(storage.create_new_trial(study._study_id)) for _ in range(2))
    second = study.sampler.sample_relative(study, late, SPACE)
    first = other.sampler.sample_relative(
        other, other._storage.get_trial(other._storage.create_new_trial(other._study_id)), SPACE
    )
    assert early.number + 1 == late.number
    assert max(abs(first[name] - second[name]) for name in SPACE) > 1e-2


@pytest.mark.parametrize("has_moved", [False, True])
@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.COMPLETE])
def test_a_point_that_another_process_took_meanwhile_is_left_to_it(monkeypatch, state, has_moved):
    design = [finished(a, b, gradient=bowl(a, b)[1]) for a, b in [(-1, 0.01), (0, 1.0), (2, 5.0), (2, 0.5), (0, 0.02)]]
    study = study_of(*design)
    storage = study._storage
    writes, write = [], storage.set_trial_system_attr
    theirs = storage.create_new_trial(study._study_id)
    if has_moved:
        write(theirs, "eign:point", {"a": -1.9, "b": 9.0})
    mine = storage.get_trial(storage.create_new_trial(study._study_id))

    def late(trial_id, key, point):
        if not writes and state == TrialState.RUNNING:
            write(theirs, key, point)
        elif not writes:
            study.add_trial(finished(**point))
        writes.append(point)
        write(trial_id, key, point)

    monkeypatch.setattr(storage, "set_trial_system_attr", late)
    point = study.sampler.sample_relative(study, mine, SPACE)
    assert point == writes[-1] == storage.get_trial(mine._trial_id).system_attrs["eign:point"]
    assert len(writes) == 2
    assert abs(writes[1]["a"] - writes[0]["a"]) > 0.05 or abs(np.log10(writes[1]["b"] / writes[0]["b"])) > 0.04


def test_of_two_trials_with_one_idea_the_later_one_moves(monkeypatch):
    design = [finished(a, b, gradient=bowl(a, b)[1]) for a, b in [(-1, 0.01), (0, 1.0), (2, 5.0), (2, 0.5), (0, 0.02)]]
    study = study_of(*design)
    storage = study._storage
    mine = storage.get_trial(storage.create_new_trial(study._study_id))
    theirs = storage.create_new_trial(study._study_id)
    writes, write = [], storage.set_trial_system_attr

    def at_once(trial_id, key, point):
        writes.append(point)
        write(theirs, key, point)
        write(trial_id, key, point)

    waits = []

    def elsewhere(seconds):
        waits.append(seconds)
        write(theirs, "eign:point", {"a": -1.9, "b": 9.0})

    monkeypatch.setattr(storage, "set_trial_system_attr", at_once)
    monkeypatch.setattr("eign.integrations.optuna.time.sleep", elsewhere)
    assert study.sampler.sample_relative(study, mine, SPACE) == writes[0]
    assert len(writes) == len(waits) == 1


def test_the_first_trials_of_processes_with_one_seed_differ():
    study = optuna.create_study()
    samplers = [GradientSampler(seed=0) for _ in range(2)]
    trials = [study._storage.get_trial(study._storage.create_new_trial(study._study_id)) for _ in range(2)]
    drawn = [
        [sampler.sample_independent(study, trial, name, SPACE["a"]) for trial in trials for name in "ab"]
        for sampler in samplers
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 4


def test_threads_share_a_sampler():
    study = optuna.create_study(sampler=GradientSampler(seed=0, options=FAST))
    study.optimize(objective, n_trials=16, n_jobs=3)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 16
    assert study.best_value < 0.05


def test_failed_and_pruned_trials(told):
    study = study_of(
        finished(0.0, 1.0, gradient={"a": 1.0}),
        finished(1.0, 1.0, state=TrialState.FAIL),
        finished(1.5, 1.0, state=TrialState.PRUNED, intermediate_values={1: 7.0, 3: 5.0}),
        finished(1.6, 1.0, state=TrialState.PRUNED),
        finished(0.0, 1.0, state=TrialState.FAIL),  # the first trial has this point: a worker died, not the point
        create_trial(state=TrialState.FAIL),
    )
    study.ask(SPACE)
    assert [(x[0], y) for x, y, *_ in told[0]] == [(0.0, 2.0), (1.0, None), (1.5, 5.0), (1.6, None)]


def test_a_failure_is_forgotten_when_the_point_is_tried_again(told):
    study = study_of(finished(0.0, 1.0), finished(1.0, 1.0, state=TrialState.FAIL))
    study.ask(SPACE)
    study.add_trial(finished(1.0, 1.0))
    study.ask(SPACE)
    assert [[y for _, y, *_ in call] for call in told] == [[2.0, None], [2.0, 1.0]]


def test_points_out_of_range_and_infinite_values_do_no_harm(told):
    study = study_of(finished(0.0, 1.0), finished(0.5, 1.0))
    study.enqueue_trial({"a": 99.0, "b": 1.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective, n_trials=1)
    study.add_trial(create_trial(value=float("inf"), params={"a": 1.0, "b": 1.0}, distributions=SPACE))
    study.ask(SPACE)
    assert sorted((x[0], y) for call in told for x, y, *_ in call if y is not None) == [(0.0, 2.0), (0.5, 1.25)]
    assert [x[0] for call in told for x, y, *_ in call if y is None] == [1.0]


def test_variances_reach_the_optimizer(told):
    def noisy(trial):
        value = objective(trial)
        set_gradient(
            trial, {"a": 1.0, "b": None}, variances={"a": np.float64(0.25), "b": float("nan")}, value_variance=0.5
        )
        return value

    study = optuna.create_study(sampler=GradientSampler("sobol", seed=0))
    study.optimize(noisy, n_trials=2)
    assert told[0][0][2:] == ((1.0, None), 0.5, (0.25, None))


# Values depend on what the gradient does not know, so that the two do contradict each other.
@pytest.mark.filterwarnings("ignore:the partial derivatives by:eign.study.gradient_check.faults.GradientWarning")
def test_other_parameters_go_to_the_independent_sampler_with_one_warning():
    def mixed(trial):
        shape = trial.suggest_categorical("shape", ["round", "flat"])
        depth, step = trial.suggest_int("depth", 1, 4), trial.suggest_float("step", 0.0, 1.0, step=0.25)
        extra = trial.suggest_float("extra", 0.0, 1.0) if shape == "flat" else 0.0
        trial.suggest_float("fixed", 1.0, 1.0)
        return objective(trial) + depth + step + extra

    study = optuna.create_study(sampler=GradientSampler(seed=0, options=FAST))
    with pytest.warns(UserWarning, match="Left to RandomSampler") as record:
        study.optimize(mixed, n_trials=12)
    ours = [str(warning.message) for warning in record if "Left to" in str(warning.message)]
    assert len(ours) == 1
    for part in ("'shape' (categorical)", "'depth' (integer)", "'step' (stepped)"):
        assert part in ours[0]
    assert "'fixed'" not in ours[0]
    assert set(study.sampler.infer_relative_search_space(study, study.trials[-1])) == {"a", "b"}


def test_a_conditional_parameter_is_no_coordinate():
    def conditional(trial):
        return objective(trial) + (trial.suggest_float("extra", 0.0, 1.0) if trial.number % 2 else 0.0)

    study = optuna.create_study(sampler=GradientSampler(seed=0, options=FAST))
    with pytest.warns(UserWarning, match=r"'extra' \(not in every trial"):
        study.optimize(conditional, n_trials=6)


def test_an_independent_sampler_can_be_chosen():
    sampler = GradientSampler(seed=0, independent_sampler=optuna.samplers.TPESampler(seed=0))
    study = optuna.create_study(sampler=sampler)
    with pytest.warns(UserWarning, match="Left to TPESampler"):
        study.optimize(lambda trial: objective(trial) + trial.suggest_int("n", 0, 3), n_trials=4)


def test_two_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=GradientSampler(seed=0))
    with pytest.raises(ValueError, match=r"one objective, and the study .* has 2"):
        study.optimize(lambda trial: (0.0, 0.0), n_trials=1)


class TestConstraints:
    @pytest.fixture(autouse=True)
    def _experimental(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield

    @staticmethod
    def mirrored(study):
        return handle(study.sampler._mirrored[1]._optimizer)

    def test_values_and_gradients_are_told(self):
        def constrained(trial):
            value = objective(trial)
            a = trial.params["a"]
            set_constraint(trial, "right", 0.5 - a, {"a": -1.0, "b": None})
            set_constraint(trial, "known at times", a if trial.number % 2 else np.nan)
            return value

        study = optuna.create_study(sampler=GradientSampler("sobol", seed=0))
        study.optimize(constrained, n_trials=6)
        inside = self.mirrored(study)
        assert inside.definition.constraints.names == ("right", "known at times")
        assert inside.definition.constraints.upper.tolist() == [0.0, 0.0]
        told = inside.history
        np.testing.assert_array_equal(told.constraints[0].y, 0.5 - told.x[:, 0])
        np.testing.assert_array_equal(told.constraints[0].grad, [[-1.0, np.nan]] * len(told))
        np.testing.assert_array_equal(np.isnan(told.constraints[1].y), [True, False, True, False, True])
        assert study.trials[0].user_attrs["constraint_gradients"] == {"right": {"a": -1.0}}

    def test_a_function_of_the_trial(self):
        def limits(trial):
            return [trial.params["a"] - 1.0]

        study = optuna.create_study(sampler=GradientSampler("sobol", seed=0, constraints_func=limits))
        study.optimize(objective, n_trials=4)
        [seen] = self.mirrored(study).history.constraints
        np.testing.assert_array_equal(seen.y, [trial.params["a"] - 1.0 for trial in study.trials[:3]])

    def test_what_is_wrong_is_told_once_and_ignored(self):
        def constrained(trial):
            value = objective(trial)
            trial.set_constraint("c", 1.0)
            trial.set_user_attr("constraint_gradients", {"c": [1.0, 2.0]})
            return value

        study = optuna.create_study(sampler=GradientSampler("sobol", seed=0))
        with pytest.warns(UserWarning, match="see set_constraint") as caught:
            study.optimize(constrained, n_trials=4)
        assert sum("set_constraint" in str(warning.message) for warning in caught) == 1
        assert np.isnan(self.mirrored(study).history.constraints[0].grad).all()

    def test_names_of_parameters_are_checked(self):
        def wrong(trial):
            trial.suggest_float("a", 0.0, 1.0)
            set_constraint(trial, "c", 1.0, {"b": 1.0})

        with pytest.raises(ValueError, match=r"gradient of 'c' has unknown names \['b'\]"):
            optuna.create_study(sampler=GradientSampler("sobol", seed=0)).optimize(wrong, n_trials=1)

    def test_a_method_that_takes_none_says_so(self):
        def constrained(trial):
            trial.set_constraint("c", 1.0)
            return objective(trial)

        study = optuna.create_study(sampler=GradientSampler("cma-es", seed=0))
        with pytest.raises(ValueError, match="method 'cma-es' takes no constraints"):
            study.optimize(constrained, n_trials=2)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_copies_propose_the_same(duplicate):
    study = optuna.create_study(sampler=GradientSampler(seed=0, options=FAST))
    study.optimize(objective, n_trials=8)
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    samplers = [duplicate(study.sampler), duplicate(study.sampler)]
    points = [sampler.sample_relative(study, trial, SPACE) for sampler in samplers]
    assert points[0] == points[1]


def test_reseeding_gives_other_points():
    study = study_of(finished(0.0, 1.0))
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    before = study.sampler.sample_relative(study, trial, SPACE)
    assert study.sampler.sample_relative(study, trial, SPACE) == before
    study.sampler.reseed_rng()
    assert study.sampler.sample_relative(study, trial, SPACE) != before


def test_brackets_of_hyperband_are_studies_of_their_own(told_by_optimizer):
    def stepwise(trial):
        value = objective(trial)
        for step in range(4):
            trial.report(value + 1.0 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=4, reduction_factor=2)
    study = optuna.create_study(sampler=GradientSampler(seed=0, options=FAST), pruner=pruner)
    study.optimize(stepwise, n_trials=14)
    bracket_of = {
        tuple(trial.params[name] for name in "ab"): pruner._get_bracket_id(study, trial) for trial in study.trials
    }
    brackets = [{bracket_of[x] for x, *_ in told} for told in told_by_optimizer.values()]
    assert all(len(bracket) == 1 for bracket in brackets)
    assert len(set.union(*brackets)) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gradient": {"c": 1.0}}, r"unknown names \['c'\]; the trial's parameters are \['a', 'b'\]"),
        ({"gradient": {"a": "steep"}}, "gradient of 'a': expected a number or None, got 'steep'"),
        ({"gradient": [1.0, 2.0]}, "expected a dict from the names of parameters"),
        ({"gradient": {"a": 1.0}, "variances": {"a": -1.0}}, "variances of 'a': expected at least 0, got -1.0"),
        ({"gradient": {}, "value_variance": -1.0}, "value_variance: expected at least 0"),
    ],
)
def test_mistakes_are_told_where_they_are_made(arguments, message):
    trial = study_of().ask(SPACE)
    with pytest.raises((TypeError, ValueError), match=message):
        set_gradient(trial, **arguments)


def test_foreign_attributes_of_the_same_name_are_ignored_with_one_warning(told):
    study = study_of(finished(0.0, 1.0, gradient="steep"), finished(0.5, 1.0, gradient=[1.0, 2.0]))
    with pytest.warns(UserWarning, match="trial 0: the user attribute 'gradient' is 'steep'") as record:
        study.ask(SPACE)
    assert len(record) == 1
    assert [grad for _, _, grad, *_ in told[0]] == [(None, None)] * 2


@pytest.mark.parametrize("attribute", ["gradient", "gradient_variance"])
def test_unknown_names_in_an_attribute_are_told_once(told, attribute):
    study = study_of()
    for a in (0.0, 0.5):
        attributes = {attribute: {"a": 1.0, "B": 2.0}}
        study.add_trial(create_trial(value=1.0, params={"a": a, "b": 1.0}, distributions=SPACE, user_attrs=attributes))
    with pytest.warns(
        UserWarning, match=rf"trial 0: .*{attribute} has unknown names \['B'\].*are \['a', 'b'\]"
    ) as record:
        study.ask(SPACE)
    study.ask(SPACE)  # a second warning would be an error here
    assert len(record) == 1
    assert [row[2 if attribute == "gradient" else 4] for row in told[0]] == [(1.0, None)] * 2


def test_unknown_names_in_the_gradient_of_a_constraint_are_told():
    def constrained(trial):
        value = objective(trial)
        trial.set_constraint("c", 1.0)
        trial.set_user_attr("constraint_gradients", {"c": {"A": 1.0}})
        return value

    study = optuna.create_study(sampler=GradientSampler("sobol", seed=0))
    with pytest.warns(UserWarning, match=r"constraint_gradients of 'c' has unknown names \['A'\]") as record:
        study.optimize(constrained, n_trials=4)
    assert len(record) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "ei-gm"}, "did you mean 'ei-g"),
        ({"options": {"n_inti": 3}}, "did you mean 'n_init'"),
        ({"seed": -1}, "seed=-1, expected a whole number"),
    ],
)
def test_settings_are_checked_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        GradientSampler(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_startup_trials": 5}, r"here it is options=\{\"n_init\": 8\}"),
        ({"direction": "maximize"}, r"said to the study, optuna.create_study\(direction="),
        ({"multivariate": True}, "always modelled together"),
        ({"sed": 3}, "did you mean 'seed'?"),
        ({"independent_sampler": "random"}, "independent_sampler='random', expected a sampler"),
        ({"constraints_func": 3}, "constraints_func=3, expected a function of a trial"),
    ],
)
def test_words_of_other_samplers(arguments, message):
    with pytest.raises(TypeError, match=message):
        GradientSampler(**arguments)


def test_a_gradient_in_another_form_shows_the_one_to_write():
    trial = optuna.create_study().ask()
    with pytest.raises(ValueError, match="unknown names \\['x'\\]; suggest the parameters first"):
        set_gradient(trial, {"x": 1.0})
    trial.suggest_float("x", 0.0, 1.0)
    with pytest.raises(TypeError, match=r"expected a dict from the names of parameters to numbers, \{'x': 0.5\}, got"):
        set_gradient(trial, [1.0])
