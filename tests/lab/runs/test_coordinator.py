"""The coordinator: what is saved, what is given again, what is told."""

from concurrent.futures import Future
from dataclasses import replace

import pytest
from rich.console import Console
from rich.progress import Progress

from campaign_cases import SMALL, InThisProcess, Watcher
from eign_lab.runs.coordinator import run_planned
from eign_lab.runs.display import Bars, PlainLines, shown_progress
from eign_lab.runs.experiment import RunSpec
from eign_lab.runs.plan import plan_runs
from eign_lab.runs.run_log import Goal, RunLog
from eign_lab.runs.store import Results


@pytest.fixture
def results(tmp_path):
    with Results(tmp_path / "results.sqlite") as opened:
        yield opened


def progress(results, planned):
    found = results.record(planned.run.key)
    return len(found), found.error


def test_all_runs_are_finished_piece_by_piece_and_once(results):
    planned, watcher = plan_runs([SMALL], range(2)), Watcher()
    summary = run_planned(planned, results, InThisProcess(), watcher)
    assert (summary.finished, summary.already, summary.failed) == (4, 0, {})
    assert (watcher.begun, watcher.advanced, watcher.ended) == (4, 4 * 8, 4)
    assert {len(record) for record in results.records()} == {9}
    again = run_planned(planned, results, InThisProcess(), Watcher())
    assert (again.finished, again.already) == (0, 4)


def test_a_run_that_raises_does_not_stop_the_others_and_is_tried_again(results, monkeypatch):
    planned = plan_runs([SMALL], range(1))

    def fail(*arguments, **keywords):
        raise FloatingPointError("no factor")

    with monkeypatch.context() as patch:
        patch.setattr("eign.strategies.surrogate_steps.fitted_surrogate", fail)
        summary = run_planned(planned, results, InThisProcess(), Watcher())
    (title,) = summary.failed
    assert summary.finished == 1
    assert title == "small  branin-2  EI-GN  seed 0"
    assert progress(results, planned[0]) == (4, summary.failed[title])
    assert run_planned(planned, results, InThisProcess(), Watcher()).finished == 1
    assert progress(results, planned[0]) == (9, None)


def test_a_run_that_reaches_its_target_is_finished_until_somebody_asks_for_more(results):
    (problem,) = SMALL.problems
    easy = replace(SMALL, problems=(replace(problem, target=-1e6),), methods=SMALL.methods[1:])
    assert run_planned(plan_runs([easy], [0]), results, InThisProcess(), Watcher()).finished == 1
    (planned,) = plan_runs([easy], [0])
    assert progress(results, planned) == (1, None)
    assert run_planned([planned], results, InThisProcess(), Watcher()).already == 1
    (both,) = plan_runs([easy, replace(easy, problems=SMALL.problems)], [0])
    assert both.goal == Goal(9)
    assert run_planned([both], results, InThisProcess(), Watcher()).finished == 1
    assert progress(results, both) == (9, None)


class Unreliable(InThisProcess):
    """Loses its worker so many times before it does a task."""

    def __init__(self, losses: int) -> None:
        self.losses = losses

    def submit(self, run: RunSpec, log: RunLog | None, goal: Goal) -> "Future[RunLog]":
        if not self.losses:
            return super().submit(run, log, goal)
        self.losses -= 1
        future: Future[RunLog] = Future()
        future.set_exception(ConnectionError("the worker is gone"))
        return future

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionError)


def test_a_task_whose_worker_is_lost_is_given_again_but_not_for_ever(results):
    planned = plan_runs([SMALL], range(1))
    summary = run_planned(planned[1:], results, Unreliable(3), Watcher())
    assert (summary.finished, summary.failed) == (1, {})
    summary = run_planned(planned, results, Unreliable(4), Watcher())
    assert summary.failed == {planned[0].title: "ConnectionError: the worker is gone"}
    assert progress(results, planned[0]) == (0, "ConnectionError: the worker is gone")


def test_an_interruption_saves_what_is_handed_back(results):
    class Interrupted(Watcher):
        def advance(self, *_: object) -> None:
            raise KeyboardInterrupt

    planned = plan_runs([SMALL], range(1))
    with pytest.raises(KeyboardInterrupt):
        run_planned(planned, results, InThisProcess(), Interrupted())
    assert len(results) == 1
    assert progress(results, planned[0]) == (1, None)


def test_without_a_terminal_there_is_a_line_for_each_run_that_ends(results, capsys):
    planned = plan_runs([SMALL], range(1))
    with shown_progress(2, Console(width=40)) as display:
        assert isinstance(display, PlainLines)
        run_planned(planned, results, InThisProcess(), display)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[1/2] small  branin-2  EI-GN  seed 0: best -")
    assert "after 9 evaluations" in first
    assert second.endswith("left")


def test_in_a_terminal_there_is_a_line_for_each_run_under_way_and_a_bar(results):
    planned = plan_runs([SMALL], range(1))
    console = Console(force_terminal=True, width=200)
    with shown_progress(2, console) as display:
        assert isinstance(display, Bars)
    progress = Progress(console=console, disable=True)
    bars = Bars(2, progress)
    seen = []

    class Noted(Watcher):
        def begin(self, planned, evaluations):
            bars.begin(planned, evaluations)

        def advance(self, *shown):
            bars.advance(*shown)
            seen.append([(task.description, task.fields["note"]) for task in progress.tasks])

        def end(self, *shown):
            bars.end(*shown)

    run_planned(planned, results, InThisProcess(), Noted())
    overall, line = seen[0]
    assert overall[0] == "0 of 2 runs"
    assert line[0] == "small  branin-2  EI-GN  seed 0"
    assert line[1].startswith("1 of 9 evaluations, best -")
    assert all(len(lines) == 2 for lines in seen)
    (final,) = progress.tasks
    assert (final.description, final.completed) == ("2 of 2 runs", pytest.approx(1.0))
