"""One style for what is wrong in what a user gives."""

import pytest

from eign import checks
from eign.checks import EntryError, checked_table, nearest_name, not_among


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("ei_gn", ["auto", "ei-gn"], "there is no method 'ei_gn'; did you mean 'ei-gn'? Known: auto, ei-gn"),
        ("SHEKEL", ["shekel", "ei"], "there is no method 'SHEKEL'; did you mean 'shekel'? Known: shekel, ei"),
        ("x", ["auto"], "there is no method 'x'. Known: auto"),
        ([], [], "there is no method []. Known: none"),
        ("y" * 500, ["a"], None),
        ("a", [f"c{i:04d}" for i in range(2000)], None),
    ],
)
def test_a_name_that_does_not_exist(name, known, message):
    found = not_among("there is no method", name, known)
    assert message in (None, found)
    assert len(found) < 500


@pytest.mark.parametrize(
    ("check", "good", "bad", "expected"),
    [
        (checks.whole(least=1), [1, 7], [0, 1.0, True, "1", None], "a whole number, at least 1"),
        (checks.at_least(0.0), [0, 1.5], [-1, "1", True, float("inf"), float("nan")], "a finite number, at least 0"),
        (checks.more_than(0.0), [1], [0, None], "a finite number above 0"),
        (checks.a_number, [-3], ["3", False, float("nan")], "a finite number"),
        (checks.flag, [True], [1, "true"], "true or false"),
        (checks.a_text, ["a"], ["", 1, b"a"], "a text"),
        (checks.a_table, [{"a": 1}], [[], {1: 2}], "a table"),
        (checks.one_of("fail", "raise"), ["fail"], ["skip", ["fail"]], "one of fail, raise"),
        (checks.list_of(checks.a_text, "some texts"), [["a"]], [[], "a", ["a", 1]], "some texts"),
        (checks.table_of(checks.a_text, "a table of texts"), [{"a": "b"}, {}], [{"a": 1}, []], "a table of texts"),
        (checks.or_none(checks.whole(least=0)), [None, 0], [-1, "0"], "a whole number, at least 0"),
    ],
)
def test_checks(check, good, bad, expected):
    assert [check(value) for value in good] == good
    for value in bad:
        with pytest.raises(ValueError, match=expected):
            check(value)


def test_a_misspelt_choice_is_guessed():
    with pytest.raises(ValueError, match=r"one of fail, raise \(did you mean 'raise'\?\)"):
        checks.one_of("fail", "raise")("rise")


def test_tables_name_the_place():
    known = {"budget": checks.whole(least=1), "label": checks.a_text}
    with pytest.raises(EntryError, match=r"^runs\[2\].budget: expected a whole number, at least 1, got 0$") as caught:
        checked_table({"budget": 0}, known, ("runs", 2))
    assert caught.value.place == ("runs", 2, "budget")
    with pytest.raises(EntryError, match=r"^runs: the key 'budget' is missing$"):
        checked_table({}, known, ("runs",), needed=("budget",))
    with pytest.raises(EntryError, match=r"^expected a table, got 3$"):
        checked_table(3, known)


@pytest.mark.parametrize(("given", "meant"), [("ei-gm", "ei-gn"), ("ei_ng", "ei-gn"), ("x", None)])
def test_a_wrong_letter_is_as_likely_as_a_missing_one(given, meant):
    assert nearest_name(given, ["auto", "ei", "ei-g", "ei-gn", "d-ei-gn"]) == meant
