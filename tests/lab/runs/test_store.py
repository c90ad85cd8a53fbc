"""The results file, its records and its export."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from campaign_cases import PROBLEM, SMALL, InThisProcess, Watcher
from eign_lab.runs.coordinator import run_planned
from eign_lab.runs.experiment import Experiment, RunSpec
from eign_lab.runs.export import ExportedResults, export_records, open_results
from eign_lab.runs.plan import plan_runs
from eign_lab.runs.run_log import Goal, RunLog, Timing, Trace
from eign_lab.runs.store import Results, RunRecord, collect
from eign_lab.runs.tasks import continue_run

SEEDS = (0, 1)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Two seeds of two methods; one run has failed in the middle."""
    path = tmp_path_factory.mktemp("results") / "results.sqlite"
    with Results(path) as results:
        for seed in SEEDS:
            for problem, method in SMALL.pairs():
                run = SMALL.run(problem, method, seed)
                log = continue_run(run, None, Goal(problem.budget if seed else 6), seconds=np.inf)
                log.error = "it broke" if (seed, method.method) == (0, "ei-gn") else None
                results.save(run, log)
    return path


def test_records_come_by_label_and_seed(filled):
    with Results(filled) as results:
        records = collect(results, SMALL, SEEDS)
        assert len(results) == 4
        assert results.seeds() == [0, 1]
    assert set(records) == {("branin-2", "EI-GN"), ("branin-2", "L-BFGS-B")}
    first, second = records["branin-2", "EI-GN"]
    assert (first.spec.seed, len(first), first.finished, first.error) == (0, 6, False, "it broke")
    assert (second.spec.seed, len(second), second.finished, second.error) == (1, 9, True, None)


def test_a_record_is_what_the_run_did(filled):
    run = SMALL.run(PROBLEM, SMALL.methods[1], 1)
    log = continue_run(run, None, Goal(9), seconds=np.inf)
    with Results(filled) as results:
        record, stored = results.record(run.key), results.log(run.key)
    assert record.spec == run
    assert record.trace == stored.trace == log.trace
    assert stored.study == json.loads(json.dumps(log.study))
    assert record.timing == Timing.of(stored.seconds)
    assert record.timing.longest >= record.timing.median > 0


def test_a_trace_has_the_improvements_and_their_curve():
    trace = Trace()
    for value in (np.nan, 2.0, 1.0, -np.inf, 3.0, 3.0):
        trace.add(value, value)
    assert (trace.evaluations, trace.improved_at, trace.best) == (6, [2, 5], [2.0, 3.0])
    np.testing.assert_array_equal(trace.curve(7), [np.nan, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0])
    assert (trace.first(4).evaluations, trace.first(4).last) == (4, 2.0)
    assert np.isnan(trace.first(1).last)


def test_an_experiment_with_less_budget_gets_the_beginning(filled):
    shorter = Experiment("shorter", "", (replace(PROBLEM, budget=5, checkpoints=()),), SMALL.methods)
    with Results(filled) as results:
        for records in collect(results, shorter, SEEDS).values():
            assert [(len(record), record.finished) for record in records] == [(5, True), (5, True)]


def test_runs_that_have_not_begun_are_left_out(filled):
    with Results(filled) as results:
        assert results.record("0" * 16) is None
        assert results.log("0" * 16) is None
        found = collect(results, SMALL, (1, 7))["branin-2", "L-BFGS-B"]
    assert [record.spec.seed for record in found] == [1]


def test_an_export_comes_back_as_it_was(filled, tmp_path):
    with Results(filled) as results:
        parquet, csv = export_records(results.records(), tmp_path / "made", csv=True)
        expected = collect(results, SMALL, SEEDS)
    read = open_results(tmp_path / "made")
    assert isinstance(read, ExportedResults)
    assert read.seeds() == [0, 1]
    assert collect(read, SMALL, SEEDS) == expected
    table = pd.read_parquet(parquet)
    assert {"problem", "method", "seed", "evaluation", "best"} <= set(table.columns)
    assert len(table) == sum(len(record.trace.best) for records in expected.values() for record in records)
    assert len(csv.read_text().splitlines()) == len(table) + 1


def test_noise_errors_and_runs_without_a_value_survive_an_export(tmp_path):
    nothing = Timing(1.0, 2.0, 3.0)
    runs = [
        RunRecord(RunSpec("branin-2", "sobol", 0), Trace(9, [1, 4], [2.0, 1.0], [3.0, 4.0]), nothing),
        RunRecord(RunSpec("branin-2", "sobol", 1), Trace(2), nothing, "no value"),
    ]
    export_records(runs, tmp_path)
    assert list(ExportedResults.read(tmp_path / "runs.parquet").by_key.values()) == runs
    assert not (tmp_path / "runs.csv").exists()


def test_runs_of_an_export_are_not_repeated_and_longer_ones_begin_anew(filled, tmp_path):
    with Results(filled) as done:
        export_records((record for record in done.records() if record.spec.seed == 1), tmp_path)
    read = ExportedResults.read(tmp_path / "runs.parquet")
    with Results(tmp_path / "other.sqlite") as results:
        assert (results.add(read.by_key.values()), results.add(read.by_key.values())) == (2, 0)
        summary = run_planned(plan_runs([SMALL], [1]), results, InThisProcess(), Watcher())
        assert (summary.finished, summary.already) == (0, 2)
        longer = replace(SMALL, problems=(replace(PROBLEM, budget=11, checkpoints=()),))
        assert run_planned(plan_runs([longer], [1]), results, InThisProcess(), Watcher()).finished == 2
        for records in collect(results, SMALL, [1]).values():
            assert records[0].trace == read.record(records[0].spec.key).trace


def test_an_empty_file_exports_an_empty_table(tmp_path):
    with Results(tmp_path / "none.sqlite") as results:
        export_records(results.records(), tmp_path)
    assert collect(open_results(tmp_path), SMALL, SEEDS) == {("branin-2", "EI-GN"): [], ("branin-2", "L-BFGS-B"): []}


def test_a_run_is_replaced_by_its_longer_self(tmp_path):
    run = RunSpec("branin-2", "sobol", 0)
    with Results(tmp_path / "one.sqlite") as results:
        for budget in (2, 5):
            results.save(run, continue_run(run, results.log(run.key), Goal(budget)))
        assert len(results.record(run.key)) == 5
        assert [record.spec for record in results.records()] == [run]


def test_a_log_that_is_copied_stays_what_it_was():
    log = RunLog()
    log.copy().trace.add(1.0, 1.0)
    assert len(log) == 0


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "other.sqlite"
    other.write_text("this is no database, however long it may be " * 30)
    with pytest.raises(ValueError, match="is not a results file"):
        Results(other)
    with pytest.raises(ValueError, match="there is no results file"):
        open_results(tmp_path / "missing.sqlite")


@pytest.mark.parametrize("kind", ["another program", "empty", "a view", "other columns"])
def test_a_reader_never_writes_its_input(kind, tmp_path):
    path = tmp_path / "given.sqlite"
    statement = {
        "another program": "CREATE TABLE orders (id INTEGER)",
        "a view": "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "other columns": "CREATE TABLE runs (key TEXT, distance REAL)",
    }.get(kind)
    path.touch()
    if statement is not None:
        with closing(sqlite3.connect(path)) as database:
            database.execute(statement)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"given.sqlite is not a results file of this version: .*left as it is"):
        open_results(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    if kind != "empty":
        with pytest.raises(ValueError, match="is not a results file of this version"):
            Results(path)
        assert path.read_bytes() == before


def test_a_results_file_is_read_where_it_cannot_be_written(filled):
    before = filled.read_bytes()
    with open_results(filled) as results:
        assert results.seeds()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            results.save(RunSpec("branin-2", "sobol", 0), RunLog())
    assert filled.read_bytes() == before


def test_other_parquet_files_are_refused(tmp_path):
    path = tmp_path / "runs.parquet"
    path.write_bytes(b"no such thing")
    with pytest.raises(ValueError, match=r"runs.parquet is not an export of results"):
        open_results(path)
    pd.DataFrame({"distance": [1.0]}).to_parquet(path)
    with pytest.raises(ValueError, match=r"runs.parquet is not an export of results: it has no column 'key'"):
        open_results(path)
