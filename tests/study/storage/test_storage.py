"""Studies in files: what is told is there, what is damaged is refused, and who holds a study is known."""

import contextlib
import json
import os
import pickle
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future
from pathlib import Path

import numpy as np
import pytest

from eign import Box, Optimizer, minimize
from eign.data import Observations
from eign.interrupts import uninterrupted
from eign.study.handle import handle
from eign.study.storage.file_format import FORMAT, dumps, journal_of, loads
from eign.study.storage.lock import Holder, Lock
from eign.study.storage.study_file import StorageError, read_study

SQUARE = [(-1.0, 2.0), (0.5, 4.0)]


@pytest.fixture
def path(tmp_path):
    """A file on a memory disk, where there is one: hundreds of commits are waited for here."""
    directory = Path("/dev/shm") / f"eign-test-{os.getpid()}-{tmp_path.name}"
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path / "study.db"
        return
    directory.mkdir()
    yield directory / "study.db"
    shutil.rmtree(directory)


def step(opt, count=1):
    for _ in range(count):
        x = opt.ask()
        opt.tell(x, float(x @ x), 2 * x)


def files_beside(path):
    return sorted(entry.name for entry in path.parent.iterdir())


class TestResume:
    @pytest.mark.parametrize("method", ["l-bfgs", "cma-es"])
    def test_from_any_moment_the_rest_is_the_same(self, path, method):
        """A copy of the file after each event is what a crash would have left."""
        undisturbed = Optimizer(SQUARE, method=method, seed=3, options={"n_init": 3})
        step(undisturbed, 7)
        copies = []
        with Optimizer(SQUARE, method=method, seed=3, storage=path, options={"n_init": 3}) as opt:
            for _ in range(7):
                copies.append(shutil.copy(path, path.with_name(f"{len(copies)}.db")))
                x = opt.ask()
                copies.append(shutil.copy(path, path.with_name(f"{len(copies)}.db")))
                opt.tell(x, float(x @ x), 2 * x)
        for copy in copies:
            with Optimizer.resume(copy) as resumed:
                step(resumed, 7 - len(resumed.history))
                assert resumed.history == undisturbed.history
                assert resumed.reasons == undisturbed.reasons
                assert handle(resumed).state == handle(undisturbed).state
                assert handle(resumed).log == handle(undisturbed).log

    def test_points_that_were_never_told_come_first(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            asked = opt.ask(3)
            opt.tell(asked[1], 1.0)
        with Optimizer.resume(path) as opt:
            np.testing.assert_array_equal(opt.ask(), asked[0])
            again = opt.ask(2)
            np.testing.assert_array_equal(again[0], asked[2])
            assert not (again[1] == asked).all(axis=1).any()
            assert len(opt.pending) == 3
        with Optimizer.resume(path, reissue=False) as opt:
            assert not (opt.ask() == opt.pending[:3]).all(axis=1).any()

    def test_what_is_told_comes_back_bit_for_bit(self, path):
        x = [[0.1, 1.0], [2.0, 0.5], [-1.0, 4.0], [1 / 3, 1e-9 + 0.5]]
        told = Observations(
            x,
            [0.1 + 0.2, np.nan, -np.inf, -0.0],
            [[5e-324, None], [1.7976931348623157e308, -1e-17], None, [np.inf, -0.0]],
            y_var=[0.25, np.nan, 0.0, 1e-300],
            grad_var=[[1.0, None], None, None, [0.0, 2.0]],
        )
        with Optimizer(SQUARE, method="sobol", maximize=True, seed=1, storage=path) as opt:
            opt.tell(told.x, told.y, told.grad, told.y_var, told.grad_var)
        with Optimizer.resume(path) as opt:
            for mine, theirs in zip(opt.history._arrays(), told._arrays(), strict=True):
                np.testing.assert_array_equal(
                    mine.view(np.int64)[~np.isnan(mine)], theirs.view(np.int64)[~np.isnan(mine)]
                )
                np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
            assert handle(opt).definition.maximize
            assert opt.reasons == ["told"] * 4

    def test_box_method_options_and_seed_are_kept(self, path):
        box = Box({"rate": (1e-6, 1.0), "depth": (3, 3), "width": (0, 1)}, log=["rate"])
        with Optimizer(box, method="ei-gn", storage=path, options={"alpha": 0.3, "noise": "learn"}) as opt:
            seed = opt.seed
            assert handle(opt).file.path == path
        with Optimizer.resume(str(path)) as opt:
            assert (opt.box, opt.method, opt.seed) == (box, "ei-gn", seed)
            assert handle(opt).state.options["alpha"] == 0.3
            assert handle(opt).state.options["noise"] == "learn"
        assert set(read_study(path).definition["versions"]) == {"eign", "python", "torch", "numpy", "scipy", "botorch"}

    def test_reasons(self, path):
        with Optimizer(SQUARE, method="random", seed=0, storage=path, options={"n_init": 2}) as opt:
            step(opt, 3)
            opt.tell([0.0, 1.0], 3.0)
            opt.ask()
        with Optimizer.resume(path) as opt:
            assert opt.reasons == ["initial", "initial", "random", "told"]
            assert handle(opt).pending.reasons == ["random"]


class TestFile:
    def test_an_existing_file_says_how_to_resume(self, path):
        Optimizer(SQUARE, method="sobol", storage=path).close()
        before = path.read_bytes()
        with pytest.raises(FileExistsError, match=r"to continue that study: Optimizer.resume\('.*study.db'\)"):
            Optimizer(SQUARE, method="sobol", storage=path)
        assert path.read_bytes() == before
        assert files_beside(path) == ["study.db"]

    def test_a_missing_file_or_directory(self, path):
        with pytest.raises(FileNotFoundError, match="there is no study"):
            Optimizer.resume(path)
        with pytest.raises(FileNotFoundError, match="there is no study"):
            Optimizer.view(path)
        with pytest.raises(FileNotFoundError, match="make it first"):
            Optimizer(SQUARE, storage=path.parent / "no" / "study.db")
        with pytest.raises(IsADirectoryError, match="is a directory"):
            Optimizer(SQUARE, storage=path.parent)
        with pytest.raises(TypeError, match="expected the name of a file"):
            Optimizer(SQUARE, storage=3)
        assert files_beside(path) == []

    def test_a_name_with_odd_characters(self, path):
        odd = path.with_name("50% done? #1 ü.db")
        with Optimizer(SQUARE, method="sobol", seed=0, storage=odd) as opt:
            step(opt)
        assert files_beside(path) == [odd.name]
        assert len(Optimizer.view(odd).history) == 1

    def test_size_grows_with_the_events_alone(self, path):
        """n events cost n times one event: the state is kept once."""
        sizes = []
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            for _ in range(3):
                step(opt, 60)
                sizes.append(path.stat().st_size)
        assert sizes[2] - sizes[1] <= 1.3 * (sizes[1] - sizes[0])
        assert sizes[2] < 180 * 1000

    def test_it_is_an_sqlite_file_of_json_texts(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA application_id").fetchone() == (0x6569676E,)
            assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
            texts = [text for (text,) in connection.execute("SELECT event FROM events")]
        assert [json.loads(text)["event"] for text in texts] == ["ask", "tell"]

    def test_json_of_numbers_that_json_has_not(self):
        value = {"a": [np.inf, -np.inf, 0.1, {"b": None}], "c": (1, True, "x")}
        assert loads(dumps(value)) == {"a": [np.inf, -np.inf, 0.1, {"b": None}], "c": [1, True, "x"]}
        assert np.isnan(loads(dumps(np.float64(np.nan))))
        json.loads(dumps(value), parse_constant=pytest.fail)  # and standard JSON all the same

    def test_closing(self, path):
        opt = Optimizer(SQUARE, method="sobol", storage=path)
        opt.close()
        opt.close()
        with pytest.raises(StorageError, match="is closed; continue with"):
            opt.ask()
        with pytest.raises(StorageError, match=r"is closed; continue with .*Nothing was recorded$"):
            opt.tell([0.0, 1.0], 1.0)
        assert len(opt.history) == len(Optimizer.view(path).history) == 0
        Optimizer(SQUARE, method="sobol").close()
        forgotten = Optimizer.resume(path)
        del forgotten
        Optimizer.resume(path).close()

    def test_a_study_in_memory_can_be_copied_and_one_in_a_file_cannot(self, path):
        opt = Optimizer(SQUARE, method="sobol", seed=0)
        step(opt, 3)
        copy = pickle.loads(pickle.dumps(opt))
        np.testing.assert_array_equal(copy.ask(), opt.ask())
        with (
            Optimizer(SQUARE, method="sobol", storage=path) as stored,
            pytest.raises(TypeError, match="cannot be copied"),
        ):
            pickle.dumps(stored)


class TestRefused:
    def refused(self, path, message):
        before, beside = path.read_bytes(), files_beside(path)
        for open_it in (Optimizer.resume, Optimizer.view):
            with pytest.raises(StorageError, match=message):
                open_it(path)
            assert path.read_bytes() == before
            assert files_beside(path) == beside

    def test_what_is_no_study(self, path):
        for content in (b"x,y\n1,2\n", os.urandom(5000), b"SQLite format 3\x00", b"SQLite format 3\x00" + bytes(200)):
            path.write_bytes(content)
            self.refused(path, "is not a study")
        path.write_bytes(b"")
        self.refused(path, "is empty")

    @pytest.mark.parametrize("mode", ["delete", "wal"])
    def test_a_database_of_another_program(self, path, mode):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            connection.execute("CREATE TABLE study (a)")
            connection.commit()
        self.refused(path, "an SQLite file of another program")

    def test_a_newer_format(self, path):
        Optimizer(SQUARE, method="sobol", storage=path).close()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
        self.refused(path, rf"format {FORMAT + 1}, .* formats up to {FORMAT}; install a newer eign")

    def test_a_file_cut_short(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt, 20)
        whole = path.read_bytes()
        for size in (90, 100, 4096, 5000, len(whole) - 4096, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.refused(path, "damaged|is not a study")

    def test_a_flipped_bit_is_refused_or_changes_nothing(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt, 12)
            history, state = opt.history, handle(opt).state
        whole, rng, noticed = path.read_bytes(), np.random.default_rng(0), 0
        for where in [*range(16, 100, 3), *rng.integers(100, len(whole), 150).tolist()]:
            damaged = bytearray(whole)
            damaged[where] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            try:
                found = Optimizer.view(path)
            except StorageError:
                noticed += 1
            else:
                assert found.history == history
                assert handle(found).state == state
            assert path.read_bytes() == damaged
            assert files_beside(path) == ["study.db"]
        assert noticed > 30, "much of so small a file is empty space"

    def test_texts_that_were_edited(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt, 3)
        whole = path.read_bytes()
        for change in (
            "UPDATE events SET event = replace(event, '1', '2') WHERE number = 2",
            "UPDATE events SET at = '2020-01-01' WHERE number = 2",
            "DELETE FROM events WHERE number = 6",
            "DELETE FROM events WHERE number = 3",
            "UPDATE state SET state = replace(state, ':3', ':4')",
            "UPDATE study SET definition = replace(definition, 'sobol', 'random')",
            "DELETE FROM state",
            "DROP TABLE events",
        ):
            path.write_bytes(whole)
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute(change)
                connection.commit()
            self.refused(path, "damaged|cannot read")


class TestHolder:
    def test_this_process_holds_it_already(self, path):
        with Optimizer(SQUARE, method="sobol", storage=path) as opt:
            with pytest.raises(StorageError, match=r"in use by this process; close\(\)"):
                Optimizer.resume(path)
            link = path.with_name("link.db")
            link.symlink_to(path)
            with pytest.raises(StorageError, match="in use by this process"):
                Optimizer.resume(link)
            opt.ask()

    def test_another_process_is_named_and_a_dead_one_is_succeeded(self, path):
        Optimizer(SQUARE, method="sobol", seed=0, storage=path).close()
        # The study's lock and name tag alone: a process that imports torch takes seconds to start.
        program = (
            "import sys; from pathlib import Path; from eign.study.storage.study_file import StudyFile;"
            "file = StudyFile.open(Path(sys.argv[1]), len); print('open', flush=True); sys.stdin.read()"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdin, child.stdout:
            assert child.stdout.readline() == b"open\n"
            before = path.read_bytes()
            with pytest.raises(
                StorageError, match=rf"in use by process {child.pid} of \S+ on \S+ since 20\d\d-.* \(-c"
            ):
                Optimizer.resume(path)
            assert path.read_bytes() == before
            assert len(Optimizer.view(path).history) == 0
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert read_study(path).holder is not None, "it had no time to say goodbye"
        with Optimizer.resume(path) as opt:
            step(opt)
            assert read_study(path).holder.pid == os.getpid()
        assert read_study(path).holder is None
        assert files_beside(path) == ["study.db"]

    def test_a_view_reads_and_does_not_write(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt, 4)
            view = Optimizer.view(path)
            assert view.best.y == opt.best.y
            for call in (view.ask, lambda: view.tell([0.0, 1.0], 1.0)):
                with pytest.raises(ValueError, match="opened to look at"):
                    call()
            step(opt)

    def test_threads_share_a_study(self, path):
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path, check_gradients=False) as opt:
            threads = [threading.Thread(target=step, args=(opt, 10)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(opt.history) == 40
            assert len(opt.pending) == 0
        points = Optimizer.view(path).history.x
        expected = Optimizer(SQUARE, method="sobol", seed=0).ask(40)
        np.testing.assert_array_equal(points[np.lexsort(points.T)], expected[np.lexsort(expected.T)])

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    @pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
    def test_a_forked_child_cannot_write_and_does_not_keep_the_lock(self, path):
        opt = Optimizer(SQUARE, method="sobol", seed=0, storage=path)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            told = []
            for call in (opt.ask, lambda: Optimizer.resume(path)):
                try:
                    call()
                    told.append("nothing")
                except StorageError as error:
                    told.append(str(error))
            opt.close()
            os.write(writing, "|".join(told).encode())
            os.close(writing)
            signal.pause()
        os.close(writing)
        with os.fdopen(reading) as pipe:
            own, second = pipe.read().split("|")
        assert f"belongs to process {os.getpid()}, and this one was forked" in own
        assert f"in use by process {os.getpid()} " in second
        step(opt)
        opt.close()
        Optimizer.resume(path).close()  # the child is still alive
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def test_a_lock_file_that_was_left_is_no_lock(self, path):
        Path(f"{path}.lock").write_text("")
        lock = Lock(path)
        with pytest.raises(BlockingIOError):
            Lock(path)
        lock.release()
        lock.release()
        assert files_beside(path) == []

    def test_a_holder_says_who_it_is(self):
        here = Holder.here()
        assert Holder(**json.loads(json.dumps(here.to_json()))) == here
        assert str(here).startswith(f"process {os.getpid()} of {here.user} on {here.host} since ")


@contextlib.contextmanager
def full_disk(path, room=None):
    """No file of this process may grow, or reach beyond `room`: what that meets is what a full disk is to SQLite."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size if room is None else room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class AtOnce(Executor):
    """So many workers, of which each is done before the next begins: all of them have ended when one is looked at."""

    def __init__(self, count):
        self._max_workers = count

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


class TestTrouble:
    def fill(self, opt, path):
        """Tell until there is an error; returns it and the point of which it came."""
        for _ in range(100):
            x = np.random.default_rng(len(opt.history)).random(2) + 0.6
            try:
                opt.tell(x, 1.0 / 3.0, [0.1, 0.2], y_var=0.5)
            except StorageError as error:
                return str(error), x
        raise AssertionError("the disk was never full")

    def test_full_disk(self, path):
        opt = Optimizer(SQUARE, method="sobol", seed=0, storage=path)
        with full_disk(path):
            message, x = self.fill(opt, path)
            count = len(opt.history)
            assert f"cannot write to {path}" in message
            assert f"tell it again: x={[x.tolist()]}, y=[0.3333333333333333], grad=[[0.1, 0.2]], y_var=[0.5]" in message
            assert opt.history.x[-1].tolist() == x.tolist()
            assert len(Optimizer.view(path).history) == count - 1
            with pytest.raises(StorageError, match="tell it again"):
                opt.tell([0.0, 1.0], 2.0)
            with pytest.raises(StorageError, match="cannot write"):
                opt.ask()
            assert len(opt.pending) == 0
            with pytest.raises(StorageError, match="cannot write"):
                opt.close()
        opt.tell([1.0, 1.0], 3.0)
        assert Optimizer.view(path).history == opt.history
        assert len(opt.history) == count + 2
        step(opt)
        opt.close()
        with Optimizer.resume(path) as again:
            assert again.history == opt.history

    @pytest.mark.parametrize("count", [None, 2], ids=["alone", "two at once"])
    def test_of_a_full_disk_minimize_shows_the_first_error_with_all_that_is_known(self, path, count):
        """Neither what ended meanwhile nor closing the study hides the error that has the evaluation and the result."""
        evaluated = []
        with contextlib.ExitStack() as stack:

            def function(x):
                if len(evaluated) == 11:  # of two, the second: the first is told when both have ended
                    stack.enter_context(full_disk(path, room=1))
                evaluated.append(x.tolist())
                return float(x @ x), 2 * x

            workers = None if count is None else AtOnce(count)
            with pytest.raises(StorageError, match="tell it again") as caught:
                minimize(function, SQUARE, method="sobol", seed=0, storage=path, workers=workers, budget=500)
            stored = len(Optimizer.view(path).history)
        (note,) = caught.value.__notes__
        assert note.startswith("and when the study was closed: cannot write")
        known = caught.value.partial_result.history.x.tolist()
        assert sorted(known) == sorted(evaluated)
        assert str([known[stored]]) in str(caught.value)
        assert stored < len(known)
        # Once there is room, the same process goes on: nobody holds the file any more.
        again = minimize(function, SQUARE, method="sobol", seed=0, storage=path, budget=stored + 2, resume=True)
        assert again.nfev == stored + 2

    def test_sqlite_says_full_and_closing_writes_the_rest(self, path):
        opt = Optimizer(SQUARE, method="sobol", seed=0, storage=path)
        connection = handle(opt).file._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        message, _ = self.fill(opt, path)
        assert "the disk is full (database or disk is full)" in message
        connection.execute("PRAGMA max_page_count = 1000000")
        opt.close()
        assert Optimizer.view(path).history == opt.history

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    @pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
    @pytest.mark.parametrize("closed", ["file", "directory"])
    def test_closed_for_writing(self, path, closed):
        """In a child that is not root, for whom nothing is closed."""
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt, 2)
        path.chmod(0o444)
        path.parent.chmod(0o777 if closed == "file" else 0o555)
        before = path.read_bytes()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            if os.getuid() == 0:
                os.setuid(65534)
            try:
                Optimizer.resume(path)
                told = "nothing"
            except StorageError as error:
                told = str(error)
            told += f"|{len(Optimizer.view(path).history)}"
            os.write(writing, told.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            message, count = pipe.read().split("|")
        os.waitpid(child, 0)
        path.parent.chmod(0o755)
        assert "cannot write to" in message
        assert "closed for writing" in message if closed == "file" else "there can be no lock beside it" in message
        assert count == "2"
        assert path.read_bytes() == before
        assert files_beside(path) == ["study.db"]

    def test_two_writers_cannot_overwrite_each_other(self, path):
        """The lock file was removed by hand, say: the second to write event 1 is told."""
        opt = Optimizer(SQUARE, method="sobol", seed=0, storage=path)
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("INSERT INTO events VALUES (1, 'now', '{}', '')")
            other.commit()
        with pytest.raises(StorageError, match="somebody else has written to it"):
            opt.tell([0.0, 1.0], 1.0)
        with contextlib.closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT number, event FROM events").fetchall() == [(1, "{}")]

    def test_a_journal_that_a_deleted_study_left(self, path):
        journal_of(path).write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
        with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
            step(opt)
        assert files_beside(path) == ["study.db"]
        assert len(Optimizer.view(path).history) == 1

    def test_the_file_was_taken_away(self, path):
        opt = Optimizer(SQUARE, method="sobol", seed=0, storage=path)
        x = opt.ask()
        away = path.rename(path.with_name("away.db"))
        with pytest.raises(StorageError, match="deleted, moved or replaced; move it back"):
            opt.tell(x, 1.0)
        away.rename(path)
        opt.close()
        assert Optimizer.view(path).history == opt.history
        assert len(opt.history) == 1

    def test_interruption_waits_for_the_write(self, path):
        opt = Optimizer(SQUARE, method="sobol", seed=0, storage=path)
        x = opt.ask()
        written = handle(opt).file.append

        def interrupted(*arguments, **options):
            signal.raise_signal(signal.SIGINT)
            written(*arguments, **options)

        handle(opt).file.append = interrupted
        with pytest.raises(KeyboardInterrupt):
            opt.tell(x, 1.0)
        handle(opt).file.append = written
        assert len(opt.history) == 1
        opt.close()
        assert Optimizer.view(path).history == opt.history

    def test_in_a_thread_nothing_is_changed(self):
        handlers = []

        def look():
            with uninterrupted():
                handlers.append(signal.getsignal(signal.SIGINT))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert handlers == [signal.getsignal(signal.SIGINT)]


def test_a_point_outside_is_refused_before_anything_is_written(path):
    """Nothing is pending here, so that nothing else looks at where the point is."""
    with Optimizer(SQUARE, method="sobol", seed=0, storage=path) as opt:
        with pytest.raises(ValueError, match="outside the box"):
            opt.tell([9.0, 1.0], 1.0)
        opt.tell([1.0, 1.0], 2.0)
    assert Optimizer.view(path).history.y.tolist() == [2.0]


def test_the_address_of_a_database_is_no_file():
    with pytest.raises(ValueError, match=r"is an address, expected the name of a file: storage='study\.db'"):
        Optimizer(SQUARE, storage="sqlite:///study.db")
