"""Files that somebody else has written, with checksums that are right: refused by name, whatever is in them."""

import contextlib
import json
import random
import sqlite3
import time

import pytest

from eign import Optimizer, minimize
from eign.cli import main
from eign.study.storage.file_format import append_event, digest_of, replace_state
from eign.study.storage.study_file import StorageError, read_study

SQUARE = [(-1.0, 2.0), (0.5, 4.0)]
HOLDER = {"pid": 1, "host": "h", "user": "u", "since": "2026-01-01", "command": "c"}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
EVENTS = f"""DROP TABLE events;
CREATE VIEW events AS {ENDLESS} SELECT i AS number, '' AS at, '' AS event, '' AS digest FROM n"""
STATE = f"""DROP TABLE state;
CREATE VIEW state AS {ENDLESS} SELECT 1 AS id, i AS after, '' AS state, '' AS digest FROM n"""


@pytest.fixture
def path(tmp_path):
    """A study of three evaluations and one point pending."""
    with Optimizer(SQUARE, method="sobol", seed=0, storage=tmp_path / "study.db") as opt:
        for _ in range(3):
            x = opt.ask()
            opt.tell(x, float(x @ x), 2 * x)
        opt.ask()
    return tmp_path / "study.db"


def rewritten(path, definition, events, state, holder=None):
    """The same file with other contents, and all checksums as they should be."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for table in ("study", "events", "state", "holder"):
            connection.execute(f"DELETE FROM {table}")
        text = json.dumps(definition)
        digest = digest_of(text)
        connection.execute("INSERT INTO study VALUES (1, ?, ?)", (text, digest))
        for number, event in enumerate(events, start=1):
            digest = append_event(connection, number, event, digest)
        replace_state(connection, len(events), state, digest)
        if holder is not None:
            connection.execute("INSERT INTO holder VALUES (1, ?)", (json.dumps(holder),))
        connection.execute("COMMIT")


def refused(path, message):
    before = path.read_bytes()
    for open_it in (Optimizer.view, Optimizer.resume):
        with pytest.raises(StorageError, match=message) as caught:
            open_it(path)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("definition",), [1], "the definition is no table"),
        (("definition",), {}, "expected a definition stored as box"),
        (("definition", "box"), 3, "damaged"),
        (("definition", "box"), {"bounds": [[0, 1]], "log": 7, "names": None}, "damaged"),
        (("definition", "method"), [], "define no study"),
        (("definition", "seed"), "x", "define no study"),
        (("definition", "maximize"), "yes", "define no study"),
        (("definition", "check_gradients"), {}, "check_gradients"),
        (("definition", "budget"), "many", "budget"),
        (("definition", "versions"), [], "versions"),
        (("definition", "constraints"), [], "expected constraints stored as"),
        (("definition", "constraints"), {"names": ["c"], "lower": ["x"], "upper": [1.0]}, "damaged"),
        (("definition", "constraints"), {"names": ["c"], "lower": [0.0], "upper": [1.0]}, "number of constraints"),
        (("definition", "linear"), {"A": [[1.0]], "lower": [0.0], "upper": [1.0], "labels": ["r"]}, "and the box 2"),
        (("state",), 7, "the state is no table"),
        (("state", "dim"), 5, "the state has 5 coordinates, and the box 2"),
        (("state", "asked"), None, "make no state"),
        (("state", "options"), None, "the options, the memory"),
        (("state", "decades"), 4, "damaged"),
        (("state", "limits"), [3], "expected pairs for limits"),
        (("state", "limits"), [[None, "x"]], "damaged"),
        (("state", "rows"), {"A": [[1.0]], "lower": [0.0], "upper": [1.0]}, "rows of 2 coordinates"),
        (("state", "rows"), [], "the rows of a state"),
        (("events", 0), "ask", "event 1 is no table"),
        (("events", 0), {}, "event 1: expected a stored ask"),
        (("events", 0, "x"), [[1.0]], "event 1: "),
        (("events", 6, "x"), [[100.0, 1.0]], "damaged"),
        (("events", 6, "x"), [[None, 1.0]], "damaged"),
        (("events", 0, "reasons"), [3], "event 1: "),
        (("events", 0, "expected_improvements"), [{}], "event 1: "),
        (("events", 1, "observations"), 3, "event 2: "),
        (("events", 1, "observations", "y"), [[0.0]], "event 2: "),
        (("events", 1, "observations", "x"), [[9.0, 9.0]], "event 2: "),
        (("events", 1, "observations", "constraints"), 3, "event 2: "),
        (("holder",), {}, "expected a holder"),
        (("holder", "pid"), "x", "expected a holder"),
        (("holder", "pid"), 10**30, "expected a holder"),
    ],
)
def test_contents_that_are_no_study(path, where, value, message):
    found = read_study(path)
    contents = {"definition": found.definition, "events": found.events, "state": found.state, "holder": dict(HOLDER)}
    place = contents
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    rewritten(path, **contents)
    refused(path, message)


def test_any_entry_replaced_by_any_other_is_refused_by_name_or_works(path, capsys):
    """What is not refused can be looked at and goes on."""
    whole, rng, noticed = path.read_bytes(), random.Random(0), 0
    original = read_study(path)
    text = json.dumps([original.definition, original.events, original.state, HOLDER])
    values = [None, -1, 10**30, 0.5, "x", "\x1b[2J", [], [[]], {}, {"a": []}, [[1.0, 1.0]], True, float("inf")]
    for _ in range(100):
        contents = json.loads(text)
        place = contents
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = rng.choice(keys)
            if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.15:
                break
            place = place[key]
        place[key] = rng.choice(values)
        path.write_bytes(whole)
        try:
            rewritten(path, *contents)
        except (AttributeError, TypeError, ValueError, StorageError):
            continue  # a list of events that is none cannot be written
        code = main(["status", str(path)])
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err
        assert code == 0 or str(path) in err.replace("\n", ""), err
        noticed += code != 0
        with contextlib.suppress(StorageError), Optimizer.resume(path) as opt:
            assert len(opt.history) <= 3
    assert noticed > 30


def test_json_without_end(path):
    deep = "[" * 100_000 + "]" * 100_000
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE study SET definition = ?, digest = ?", (deep, digest_of(deep)))
        connection.commit()
    refused(path, "damaged")


@pytest.mark.parametrize(
    "statement",
    [
        EVENTS,
        STATE,
        f"CREATE VIEW more AS {ENDLESS} SELECT i FROM n",
        "CREATE TRIGGER t AFTER INSERT ON holder BEGIN DELETE FROM events; END",
        "ALTER TABLE events ADD COLUMN more TEXT",
        "CREATE VIRTUAL TABLE more USING fts5(text)",
    ],
)
def test_what_is_no_table_of_ours_is_refused_at_once(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement)
    began = time.monotonic()
    refused(path, "damaged")
    assert time.monotonic() - began < 5.0


def test_reading_has_a_limit(path, monkeypatch):
    """Should a query without end ever pass the look at the tables, it is given up."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(EVENTS)
    monkeypatch.setattr("eign.study.storage.file_format._check_schema", lambda connection, path: None)
    refused(path, "does not come to an end")


def test_a_long_study_is_within_the_limit(tmp_path):
    with Optimizer([(0.0, 1.0)], method="sobol", seed=0, storage=tmp_path / "long.db") as opt:
        opt.ask()
        found = read_study(tmp_path / "long.db")
    events = [found.events[0]] * 60_000
    rewritten(tmp_path / "long.db", found.definition, events, found.state)
    assert len(read_study(tmp_path / "long.db").events) == 60_000


def test_a_study_that_appears_in_between_is_continued(tmp_path, monkeypatch):
    """The race, with its outcome forced: the file is not there at the first look."""
    path = tmp_path / "study.db"
    arguments = {"method": "sobol", "seed": 0, "storage": path}
    minimize(lambda x: (float(x @ x), 2 * x), [(-1, 1)], budget=2, **arguments)
    looks = iter([False])
    exists = type(path).exists
    monkeypatch.setattr(type(path), "exists", lambda self: next(looks, None) is None and exists(self))
    result = minimize(lambda x: (float(x @ x), 2 * x), [(-1, 1)], budget=5, resume=True, **arguments)
    assert result.nfev == 5
    with pytest.raises(FileExistsError):
        minimize(lambda x: (float(x @ x), 2 * x), [(-1, 1)], budget=5, **arguments)
