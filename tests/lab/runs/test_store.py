"""The results file, its records and its export."""

from dataclasses import replace

import numpy as np
import pytest

from campaign_cases import PROBLEM, SMALL
from eign_lab.runs.experiment import Experiment, RunSpec
from eign_lab.runs.export import ExportedResults, export_results, open_results
from eign_lab.runs.store import Results, RunRecord, best_so_far, record_of
from eign_lab.runs.tasks import continue_run, failed

SEEDS = (0, 1)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Two seeds of two methods; one run has failed in the middle."""
    path = tmp_path_factory.mktemp("results") / "results.sqlite"
    with Results(path) as results:
        for seed in SEEDS:
            for problem, method in SMALL.pairs():
                run = SMALL.run(problem, method, seed)
                log = continue_run(run, None, budget=problem.budget if seed else 6, seconds=np.inf)
                results.save(run, failed(log, "it broke") if (seed, method.method) == (0, "ei-gn") else log)
    return path


def equal(first: RunRecord, second: RunRecord) -> bool:
    arrays = all(
        np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
        for name in ("y", "x", "seconds", "stationarity")
    )
    names = ("key", "problem", "method", "options", "seed", "finished", "error")
    return arrays and all(getattr(first, name) == getattr(second, name) for name in names)


def test_records_come_by_label_and_seed(filled):
    with Results(filled) as results:
        records = results.records(SMALL, SEEDS)
        assert len(results) == 4
    assert set(records) == {("branin-2", "EI-GN"), ("branin-2", "L-BFGS-B")}
    first, second = records["branin-2", "EI-GN"]
    assert (first.seed, len(first), first.finished, first.error) == (0, 6, False, "it broke")
    assert (second.seed, len(second), second.finished, second.error) == (1, 9, True, None)


def test_a_record_is_what_the_run_did(filled):
    run = SMALL.run(PROBLEM, SMALL.methods[1], 1)
    log = continue_run(run, None, budget=9, seconds=np.inf)
    with Results(filled) as results:
        record, stored = results.record(run.key), results.log(run.key)
    assert stored.observations == log.observations
    assert stored.state == log.state
    assert equal(record, replace(record_of(run, log), seconds=record.seconds))
    assert np.array_equal(best_so_far(record), np.maximum.accumulate(log.observations.y))


def test_an_experiment_with_less_budget_gets_the_beginning(filled):
    shorter = Experiment("shorter", "", (replace(PROBLEM, budget=5, checkpoints=()),), SMALL.methods)
    with Results(filled) as results:
        for records in results.records(shorter, SEEDS).values():
            assert [(len(record), record.finished) for record in records] == [(5, True), (5, True)]


def test_runs_that_have_not_begun_are_left_out(filled):
    with Results(filled) as results:
        assert results.record("0" * 16) is None
        assert results.log("0" * 16) is None
        assert [record.seed for record in results.records(SMALL, (1, 7))["branin-2", "L-BFGS-B"]] == [1]


def test_an_export_comes_back_as_it_was(filled, tmp_path):
    with Results(filled) as results:
        parquet, csv = export_results(results, tmp_path / "made")
        expected = results.records(SMALL, SEEDS)
    read = open_results(tmp_path / "made")
    assert isinstance(read, ExportedResults)
    found = read.records(SMALL, SEEDS)
    assert {name: len(records) for name, records in found.items()} == dict.fromkeys(expected, 2)
    assert all(equal(a, b) for name in expected for a, b in zip(found[name], expected[name], strict=True))
    assert parquet.suffix == ".parquet"
    header, *rows = csv.read_text().splitlines()
    assert header == "key,problem,method,options,seed,quick,evaluation,y,best,stationarity,seconds,error"
    assert len(rows) == sum(len(record) for records in expected.values() for record in records)


def test_an_empty_file_exports_an_empty_table(tmp_path):
    with Results(tmp_path / "none.sqlite") as results:
        export_results(results, tmp_path)
    assert open_results(tmp_path).records(SMALL, SEEDS) == {("branin-2", "EI-GN"): [], ("branin-2", "L-BFGS-B"): []}


def test_a_run_is_replaced_by_its_longer_self(tmp_path):
    run = RunSpec("branin-2", {}, False, "sobol", {}, 0)
    with Results(tmp_path / "one.sqlite") as results:
        for budget in (2, 5):
            results.save(run, continue_run(run, results.log(run.key), budget=budget))
        assert results.progress() == {run.key: (5, None)}
        assert list(results.specs()) == [run]


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "other.sqlite"
    other.write_text("this is no database, however long it may be " * 30)
    with pytest.raises(ValueError, match="is not a results file"):
        Results(other)
    with pytest.raises(ValueError, match="there is no results file"):
        open_results(tmp_path / "missing.sqlite")
