"""Experiments as data: keys of runs, files, and the paper's settings."""

import json
from dataclasses import asdict, replace

import pytest

from campaign_cases import PROBLEM, SMALL
from eign.strategies import strategy
from eign_lab.papers.ei_gn.experiments import EXPERIMENTS, select
from eign_lab.runs.experiment import (
    Experiment,
    MethodSpec,
    ProblemSpec,
    RunSpec,
    quick_version,
    run_options,
)
from eign_lab.runs.experiment_file import load_experiments, read_experiment
from eign_lab.runs.posed_problem import pose

PAPER = ("fig1", "synthetic", "within", "out", "ablation", "policy", "truncation", "alpha")
RUN = RunSpec("hartmann-6", "ei-gn", 3, options={"alpha": 0.6, "n_init": 18}, problem_options={"mirrored": {}})


def keys(experiment: Experiment, seed: int = 0) -> set[str]:
    return {experiment.run(problem, method, seed).key for problem, method in experiment.pairs()}


def test_a_key_does_not_depend_on_the_order_of_settings_and_survives_json():
    assert RUN.key == replace(RUN, options={"n_init": 18, "alpha": 0.6}).key
    stored = RunSpec(**json.loads(json.dumps(asdict(RUN))))
    assert stored == RUN
    assert stored.key == RUN.key


@pytest.mark.parametrize(
    "change",
    [
        {"problem": "hartmann-3"},
        {"problem_options": {}},
        {"problem_options": {"mirrored": {"coordinates": [1]}}},
        {"seeded": True},
        {"source": "campaign_cases:moved_bowl"},
        {"design": "campaign_cases:corners"},
        {"method": "ei-g"},
        {"options": {"alpha": 0.5, "n_init": 18}},
        {"options": {"alpha": 0.6, "n_init": 12}},
        {"seed": 4},
        {"quick": True},
        {"version": 3},
    ],
)
def test_every_changed_setting_is_another_run(change):
    assert replace(RUN, **change).key != RUN.key


def test_a_run_without_a_version_is_of_the_first():
    """Stored runs of before there were versions keep their keys."""
    stored = {name: value for name, value in asdict(RUN).items() if name != "version"}
    assert RunSpec(**stored).key == RUN.key == "246d8508a4f8139b"


def test_the_paper_is_not_answered_by_runs_of_the_earlier_surrogate():
    for experiment in EXPERIMENTS.values():
        assert not keys(experiment) & keys(replace(experiment, version=2))


def test_the_defaults_that_keys_do_not_contain():
    """A key holds what was set. If a default changes here, raise the version of experiments that leave it out."""
    surrogate = {"kernel": "matern52", "noise": 0.0, "n_init": None}
    search = {"restarts": None, "raw_samples": None}
    expected = {
        "ei": {**surrogate, **search, "refit": 0.0},
        "ei-gn": {**surrogate, **search, "refit": 0.0, "alpha": 0.6, "rescale": True},
        "d-ei": {**surrogate, **search, "refit": 0.1, "rows": 1000},
        "cma-es": {"n_init": None, "sigma0": 0.25, "popsize": None},
        "l-bfgs": {"n_init": None, "first_step": 0.25, "ftol": 1e-9, "gtol": 1e-6},
    }
    for method, defaults in expected.items():
        known = {name: option.default for name, option in strategy(method).options.items()}
        assert {name: known[name] for name in defaults} == defaults


def test_experiments_share_runs_whatever_their_budgets():
    longer = Experiment("longer", "", (ProblemSpec("branin-2", 4, 90, restarts=2, raw_samples=32),), SMALL.methods)
    assert keys(longer) == keys(SMALL)
    assert keys(EXPERIMENTS["alpha"]) & keys(EXPERIMENTS["synthetic"])
    assert keys(EXPERIMENTS["truncation"]) & keys(EXPERIMENTS["mirrored"])


def test_a_trial_shares_nothing_with_results():
    for experiment in EXPERIMENTS.values():
        assert not keys(quick_version(experiment)) & keys(experiment)


def test_a_method_gets_the_settings_that_it_knows():
    problem = ProblemSpec("branin-2", 4, 9, restarts=2, raw_samples=32, surrogate={"kernel": "rbf"})
    assert run_options(problem, MethodSpec("", "ei", {"restarts": 5})) == {
        "n_init": 4,
        "restarts": 5,
        "raw_samples": 32,
        "kernel": "rbf",
    }
    assert run_options(problem, MethodSpec("", "sobol")) == {}
    assert run_options(problem, MethodSpec("", "botorch/ei")) == {"restarts": 2, "raw_samples": 32}
    assert run_options(problem, MethodSpec("", "scipy/basin-hopping")) == {}


def test_settings_of_the_surrogate_are_taken_together_or_not_at_all():
    matched = {"kernel": "rbf", "hyperparameters": {"lengthscale": 0.3, "outputscale": 1.0}}
    problem = ProblemSpec("branin-2", 4, 9, surrogate=matched)
    assert run_options(problem, MethodSpec("", "d-log-ei")) == {"n_init": 4, **matched}
    assert "kernel" not in run_options(problem, MethodSpec("", "auto"))


def test_wrappers_apply_in_their_own_order():
    options = {"noisy": {"value_std": 0.1, "seed": 1}, "shifted": {"seed": 2}}
    assert pose("ackley", {"d": 3, **options}).seen.name == "noisy(shifted(ackley-3))"
    assert ProblemSpec("ackley-3", 4, 9, options=options).label == "noisy(shifted(ackley-3))"


def test_the_experiments_of_the_paper_come_first_and_extra_ones_by_name():
    assert tuple(experiment.id for experiment in select([])) == PAPER
    assert [experiment.id for experiment in select(["mirrored", "fig1", "mirrored"])] == ["mirrored", "fig1"]
    assert len(select(["all"])) == len(EXPERIMENTS) > len(PAPER)
    with pytest.raises(ValueError, match="no experiment 'fig2'; expected some of fig1, synthetic"):
        select(["fig2"])


def test_the_settings_are_those_of_the_paper():
    stated = {
        "shekel-4": (12, 125, 8, 256),
        "hartmann-6": (18, 150, 10, 512),
        "cosine-8": (24, 200, 20, 1024),
        "griewank-10": (30, 300, 20, 1024),
        "ackley-14": (42, 500, 20, 1024),
        "gp-sample-7": (21, 175, 10, 512),
        "gp-sample-8": (24, 200, 20, 1024),
        "gp-sample-9": (27, 250, 20, 1024),
        "acrobot-6": (18, 100, 32, 512),
        "cartpole-13": (39, 100, 32, 512),
        "cartpole-fixed-13": (39, 100, 32, 512),
    }
    for experiment in EXPERIMENTS.values():
        for problem in experiment.problems:
            if problem.name in stated:
                settings = (problem.initial, problem.budget, problem.restarts, problem.raw_samples)
                assert settings == stated[problem.name]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.id)
def test_every_experiment_has_the_rival_with_the_same_gradients_and_comes_back_from_json(experiment):
    assert "l-bfgs" in {method.method for method in experiment.methods}
    assert read_experiment(json.loads(json.dumps(asdict(experiment)))) == experiment


def test_two_of_a_label_are_refused():
    with pytest.raises(ValueError, match="two problems have the label 'branin-2'"):
        Experiment("twice", "", (PROBLEM, PROBLEM), SMALL.methods)
    with pytest.raises(ValueError, match="no method"):
        Experiment("none", "", (PROBLEM,), ())


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/b", "..", "", "a b", "<b>"])
def test_an_id_that_is_no_name_of_a_file_is_refused(name):
    with pytest.raises(ValueError, match=r"id = .*expected letters, digits"):
        Experiment(name, "", (PROBLEM,), SMALL.methods)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"initial": 10}, "initial = 10 is not between 1 and budget = 9"), ({"checkpoints": (3, 10)}, r"\[10\]")],
)
def test_impossible_numbers_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ProblemSpec(**{"name": "branin-2", "initial": 4, "budget": 9, **change})


OWN = """
[[experiment]]
id = "mine"
{experiment}
[[experiment.problem]]
name = "ackley-3"
initial = 4
budget = 9
{problem}
[[experiment.method]]
method = "ei-gn"
{method}
"""


def write(tmp_path, **parts: str):
    path = tmp_path / "own.toml"
    path.write_text(OWN.format(**{"experiment": "", "problem": "", "method": "", **parts}))
    return path


def test_experiments_come_from_a_toml_file(tmp_path):
    path = write(tmp_path, problem="options = {shifted = {seed = 1}}\ncheckpoints = [5, 9]", method='label = "ours"')
    (experiment,) = load_experiments(path)
    assert experiment.title == "mine"
    assert experiment.problems[0].label == "shifted(ackley-3)"
    assert experiment.problems[0].checkpoints == (5, 9)
    assert experiment.methods[0] == MethodSpec("ours", "ei-gn")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"experiment": "colour = 1"}, r"line 4: experiment\[0\].colour: there is no key 'colour'. Known: id, title"),
        ({"experiment": "title = 1"}, r"experiment\[0\].title: expected a text, got 1"),
        ({"problem": "restarts = true"}, r"problem\[0\].restarts: expected a whole number, at least 0, got True"),
        ({"problem": "checkpoints = [1.5]"}, r"problem\[0\].checkpoints: expected whole numbers"),
        ({"problem": "checkpoints = [10]"}, r"problem\[0\]: ackley-3: checkpoints \[10\]"),
        ({"problem": "options = {shifted = {}}"}, r"problem\[0\]: shifted: give either"),
        ({"problem": "options = {colour = 1}"}, r"problem\[0\]: .*colour"),
        ({"method": "options = {alhpa = 0.3}"}, r"method\[0\]: .*no option 'alhpa'; did you mean 'alpha'"),
        ({"method": "options = 3"}, r"method\[0\].options: expected a table"),
        ({"method": "= 3"}, r"own.toml: .*line"),
        ({"problem": "budgte = 3"}, r"line 9: experiment\[0\].problem\[0\].budgte: .*did you mean 'budget'"),
    ],
)
def test_an_error_in_a_file_names_the_key(tmp_path, parts, message):
    with pytest.raises(ValueError, match=message):
        load_experiments(write(tmp_path, **parts))


def test_missing_keys_files_and_methods_are_told(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere.toml"):
        load_experiments(tmp_path / "nowhere.toml")
    with pytest.raises(ValueError, match="the key 'problems' is missing"):
        read_experiment({"id": "a", "methods": []})
    with pytest.raises(ValueError, match="expected a table, got 3"):
        read_experiment({**asdict(SMALL), "methods": [3]})
    path = write(tmp_path)
    path.write_text(path.read_text().replace("ei-gn", "ei-ng"))
    with pytest.raises(ValueError, match=r"method\[0\]: there is no method 'ei-ng'; did you mean"):
        load_experiments(path)
