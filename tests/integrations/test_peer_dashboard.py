"""optuna-dashboard shows a study of ours, gradients and all, also while a trial is running."""

import io
import json
import sys

import optuna
import optuna_dashboard
import pytest

from eign.integrations.optuna import GradientSampler, set_gradient


def objective(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_float("y", 1e-3, 1.0, log=True)
    set_gradient(trial, {"x": 2.0 * (x - 1.0), "y": 1.0}, variances={"x": 0.1})
    return (x - 1.0) ** 2 + y


@pytest.fixture
def get(tmp_path):
    """Answers of the dashboard's own server as parsed JSON, by path."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    study = optuna.create_study(study_name="ours", storage=storage, sampler=GradientSampler(seed=0))
    study.optimize(objective, n_trials=6)
    study.ask().suggest_float("x", -5.0, 5.0)
    server = optuna_dashboard.wsgi(storage)

    def ask(path):
        status = []
        request = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path,
            "QUERY_STRING": "",
            "SERVER_NAME": "here",
            "SERVER_PORT": "80",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
            "wsgi.url_scheme": "http",
        }
        body = b"".join(server(request, lambda code, *_: status.append(code)))
        assert status == ["200 OK"], (path, status)
        return json.loads(body)

    yield ask
    storage.engine.dispose()


def test_it_shows_values_gradients_and_the_trial_that_runs(get):
    (study,) = get("/api/studies")["study_summaries"]
    shown = get(f"/api/studies/{study['study_id']}")
    assert [trial["state"] for trial in shown["trials"]] == ["Complete"] * 6 + ["Running"]
    attributes = {one["key"]: json.loads(one["value"]) for one in shown["trials"][0]["user_attrs"]}
    values = {one["name"]: float(one["param_internal_value"]) for one in shown["trials"][0]["params"]}
    assert attributes["gradient"] == {"x": pytest.approx(2.0 * (values["x"] - 1.0)), "y": 1.0}
    assert attributes["gradient_variance"] == {"x": 0.1}
    assert get(f"/api/studies/{study['study_id']}/param_importances")
