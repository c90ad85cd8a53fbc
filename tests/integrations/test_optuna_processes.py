"""Several processes on one study: SQLite, a journal, and a PostgreSQL server that is started for it."""

import itertools
import multiprocessing

import numpy as np
import optuna
import pytest

from . import optuna_worker as worker
from . import postgres

PROCESSES = 2


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Where the studies are, after all processes have worked on all of them."""
    folder = tmp_path_factory.mktemp("studies")
    here = {"sqlite": f"sqlite:///{folder / 'study.db'}", "journal": str(folder / "journal.log")}
    if (reason := postgres.missing()) is not None:
        run(here)
        yield here | {"postgresql": reason}
        return
    with postgres.server() as url:
        here["postgresql"] = url
        run(here)
        yield here


def run(places):
    for place in places.values():
        with worker.storage(place) as storage:
            optuna.create_study(study_name=worker.NAME, storage=storage, direction="maximize")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=worker.work, args=(list(places.values()),)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    assert [process.exitcode for process in processes] == [0] * PROCESSES


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgresql"])
def test_processes_share_a_study(places, kind):
    if kind == "postgresql" and (reason := postgres.missing()) is not None:
        pytest.skip(reason)
    with worker.storage(places[kind]) as storage:
        trials = optuna.load_study(study_name=worker.NAME, storage=storage).trials
    assert [trial.number for trial in trials] == list(range(PROCESSES * worker.TRIALS))
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in trials)
    assert len({trial.user_attrs["process"] for trial in trials}) == PROCESSES
    # The optimum is 1/3; what a study of this size without gradients reaches is around 0.3.
    assert max(trial.value for trial in trials) > 0.333
    assert sum("eign:point" in trial.system_attrs for trial in trials) >= len(trials) - PROCESSES
    # Near the optimum points are close because they are good; elsewhere, because a process did not know of the other.
    together = [
        np.abs(np.subtract(list(one.params.values()), list(other.params.values()))).max()
        for one, other in itertools.combinations(trials, 2)
        if one.user_attrs["process"] != other.user_attrs["process"]
        and one.datetime_start < other.datetime_complete
        and other.datetime_start < one.datetime_complete
        and min(np.abs(np.subtract(list(trial.params.values()), 0.3)).max() for trial in (one, other)) > 0.05
    ]
    assert min(together, default=1.0) > 1e-3
