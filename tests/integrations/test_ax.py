"""The Ax node: what it takes from an experiment, what it refuses, and that it finds the optimum."""

import logging
import warnings

import numpy as np
import pytest
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.parameter import FixedParameter, ParameterType
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.utils.common.logger import set_ax_logger_levels

import eign
from eign.integrations.ax import GradientNode, gradient_metric, raw_data

set_ax_logger_levels(logging.ERROR)
FAST = {"n_init": 3}
RANGES = (
    RangeParameterConfig(name="a", parameter_type="float", bounds=(-2.0, 3.0)),
    RangeParameterConfig(name="b", parameter_type="float", bounds=(1e-3, 1e1), scaling="log"),
)
CHOICE = ChoiceParameterConfig("c", ["x", "y", "z"], parameter_type="str", is_ordered=False)


def bowl(a, b):
    """Least at a = 1, b = 0.1, with its gradient in user units."""
    depth = np.log10(b) + 1.0
    return (a - 1.0) ** 2 + depth**2, {"a": 2 * (a - 1.0), "b": 2 * depth / (b * np.log(10.0))}


def client_of(node, *, parameters=RANGES, objective="-loss", **configuration):
    client = Client()
    client.configure_experiment(parameters)
    client.configure_optimization(objective, **configuration)
    client.configure_tracking_metrics([gradient_metric(name) for name in "ab"])
    client.set_generation_strategy(GenerationStrategy(name="eign", nodes=[node]))
    return client


def finish(client, index, parameters, *, sign=1.0, sem=0.0):
    value, gradient = bowl(parameters["a"], parameters["b"])
    slopes = {name: (sign * slope, sem) for name, slope in gradient.items()}
    client.complete_trial(index, raw_data("loss", (sign * value, sem), slopes))


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


@pytest.mark.parametrize(("objective", "sign"), [("-loss", 1.0), ("loss", -1.0)])
def test_it_finds_the_optimum_with_gradients(objective, sign):
    client = client_of(GradientNode(seed=0), objective=objective)
    for _ in range(8):
        for index, parameters in client.get_next_trials(max_trials=2).items():
            finish(client, index, parameters, sign=sign)
    losses = client.summarize()["loss"].abs()
    assert losses.min() < 1e-3
    assert len(losses) == 16


def test_each_trial_is_told_once_with_its_errors(told):
    client = client_of(GradientNode(seed=0, options=FAST))
    points = []
    for _ in range(3):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            points.append(parameters)
            finish(client, index, parameters, sem=0.5)
    client.get_next_trials(max_trials=1)
    assert [len(call) for call in told] == [1, 1, 1]
    x, y, grad, y_var, grad_var = told[0][0]
    value, gradient = bowl(**points[0])
    assert x == (points[0]["a"], points[0]["b"])
    assert y == pytest.approx(value)
    assert grad == pytest.approx((gradient["a"], gradient["b"]))
    assert (y_var, grad_var) == (0.25, (0.25, 0.25))


def test_what_is_missing_stays_missing(told):
    client = client_of(GradientNode(seed=0, options=FAST))
    known = client.attach_trial({"a": 0.0, "b": 1.0})
    client.complete_trial(known, raw_data("loss", 2.0, {"a": None, "b": 0.5}))
    client.mark_trial_failed(client.attach_trial({"a": 1.0, "b": 1.0}))
    client.mark_trial_abandoned(client.attach_trial({"a": 2.0, "b": 1.0}))
    client.get_next_trials(max_trials=1)
    missing = (None, None)
    assert told == [[((0.0, 1.0), 2.0, (None, 0.5), None, missing), ((1.0, 1.0), None, missing, None, missing)]]


def test_new_data_of_an_old_trial_replaces_the_old(told):
    client = client_of(GradientNode("sobol", seed=0))
    index = client.attach_trial({"a": 0.0, "b": 1.0})
    client.complete_trial(index, {"loss": 2.0})
    client.get_next_trials(max_trials=1)
    client.attach_data(index, {"loss": 1.5})
    client.get_next_trials(max_trials=1)
    assert [[y for _, y, *_ in call] for call in told] == [[2.0], [1.5]]


def test_pending_candidates_are_avoided():
    client = client_of(GradientNode(seed=0, options={"n_init": 2}))
    for a, b in [(-1.0, 0.01), (0.0, 1.0), (2.0, 5.0)]:
        finish(client, client.attach_trial({"a": a, "b": b}), {"a": a, "b": b})
    rounds = [client.get_next_trials(max_trials=3), client.get_next_trials(max_trials=2)]
    points = np.array([[p["a"], np.log10(p["b"])] for some in rounds for p in some.values()])
    assert len(points) == 5
    assert np.abs(points[:, None] - points[None]).max(axis=-1)[np.triu_indices(5, 1)].min() > 1e-2


def test_the_same_seed_gives_the_same_candidates():
    clients = [client_of(GradientNode("sobol", seed=5)) for _ in range(2)]
    first, second = (client.get_next_trials(max_trials=4) for client in clients)
    assert first == second


def test_fixed_parameters_are_kept():
    client = client_of(GradientNode(seed=0))
    client._experiment.search_space.add_parameter(FixedParameter("depth", ParameterType.INT, 3))
    (parameters,) = client.get_next_trials(max_trials=1).values()
    assert parameters["depth"] == 3
    assert set(parameters) == {"a", "b", "depth"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "-loss, -time"}, "one objective"),
        ({"objective": "-loss - time"}, "one objective"),
        ({"outcome_constraints": ["time <= 1"]}, "no outcome constraints"),
        ({"parameters": (*RANGES, CHOICE)}, "float ranges, got"),
        ({"parameters": (*RANGES, RangeParameterConfig("n", (1, 5), parameter_type="int"))}, "float ranges, got"),
    ],
)
def test_what_eign_does_not_do_is_refused(settings, message):
    client = client_of(GradientNode(seed=0), **settings)
    with pytest.raises(ValueError, match=message):
        client.get_next_trials(max_trials=1)


def test_settings_are_checked_at_once():
    with pytest.raises(ValueError, match="did you mean 'n_init'"):
        GradientNode(options={"n_inti": 3})
    with pytest.raises(RuntimeError, match="knows no experiment yet"):
        GradientNode().get_next_candidate([])


def test_metrics_of_unknown_parameters_are_told_once():
    client = client_of(GradientNode("sobol", seed=0))
    client.configure_tracking_metrics([gradient_metric("A")])
    index = client.attach_trial({"a": 0.0, "b": 1.0})
    client.complete_trial(index, raw_data("loss", 2.0, {"A": 1.0, "b": 0.5}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            client.get_next_trials(max_trials=1)
    (only,) = [str(each.message) for each in caught if "by no parameter" in str(each.message)]
    assert "['gradient_A']" in only
    assert "the derivatives are ['gradient_a', 'gradient_b']" in only


def test_another_metric_beside_all_derivatives_is_none_of_them():
    client = client_of(GradientNode("sobol", seed=0))
    client.configure_tracking_metrics(["gradient_norm"])
    index = client.attach_trial({"a": 0.0, "b": 1.0})
    client.complete_trial(index, {**raw_data("loss", 2.0, {"a": 1.0, "b": 0.5}), "gradient_norm": 1.1})
    client.get_next_trials(max_trials=1)  # a warning would be an error here


def test_a_gradient_without_names_is_refused():
    with pytest.raises(TypeError, match=r"gradient: expected a dict from the names of parameters.*got \[1, 2\]"):
        raw_data("loss", 1.0, [1, 2])
