"""What each process of the tests with several processes runs: its share of trials on each of some shared studies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import optuna

from eign.integrations.optuna import GradientSampler, set_gradient

DIM, TRIALS, NAME = 2, 8, "shared"


@contextmanager
def storage(place: str) -> Iterator[optuna.storages.BaseStorage]:
    """Of a database's URL, or of the path of a journal."""
    if "://" not in place:
        yield optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(place))
        return
    # Writers wait for each other.
    arguments = {"connect_args": {"timeout": 60}} if place.startswith("sqlite") else {}
    database = optuna.storages.RDBStorage(place, engine_kwargs=arguments)
    try:
        yield database
    finally:
        database.remove_session()
        database.engine.dispose()


def work(places: list[str]) -> None:
    """`TRIALS` trials on the study in each place; all processes have the same seed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for place in places:
        with storage(place) as shared:
            study = optuna.load_study(study_name=NAME, storage=shared, sampler=GradientSampler(seed=0))
            study.optimize(objective, n_trials=TRIALS)


def objective(trial: optuna.Trial) -> float:
    """A bowl with ripples, largest at 0.3 in each coordinate."""
    x = np.array([trial.suggest_float(f"x{i}", -1.0, 1.0) for i in range(DIM)]) - 0.3
    set_gradient(trial, {f"x{i}": slope for i, slope in enumerate(-2.0 * x - np.sin(6.0 * x))})
    trial.set_user_attr("process", os.getpid())
    return float(np.sum(-(x**2) + np.cos(6.0 * x) / 6.0))
