"""Evaluations in CSV and Parquet: every bit comes back, and a table that is wrong says where."""

import builtins
import csv
import errno
import io
import json
import os
import stat

import numpy as np
import pytest

import eign
from eign import Box, Observations, Optimizer, read_table, write_table
from eign.exchange.tables import read_csv, write_csv
from eign.exchange.text import evaluations_from_text

BOX = Box({"width": (0.0, 2.0), "rate": (1e-6, 1.0), "depth": (3.0, 3.0)}, log=["rate"])
TOLD = Observations(
    [[0.1, 1 / 3, 3.0], [2.0, 1e-6, 3.0], [1.0, 0.5, 3.0], [0.0, 1.0, 3.0]],
    [0.1 + 0.2, np.nan, np.inf, np.nan],
    [[5e-324, None, None], [1.0, -0.0, 1e300], None, None],
    y_var=[0.25, np.nan, np.nan, np.nan],
    grad_var=[[1.0, None, None], None, None, None],
)


def read(text, box=BOX):
    return read_csv(io.StringIO(text), box, "past.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_bit_comes_back(tmp_path, ending):
    path = tmp_path / f"told.{ending}"
    write_table(path, TOLD, names=BOX.names)
    assert read_table(path, BOX) == TOLD
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    write_table(path, TOLD[:1], names=BOX.names)
    assert read_table(path, BOX) == TOLD[:1]


def test_columns_without_names_and_without_gradients(tmp_path):
    path = tmp_path / "told.csv"
    write_table(path, Observations([[0.5, 0.25]], [1.0]))
    assert path.read_text() == "x0,x1,value\n0.5,0.25,1.0\n"
    opt = Optimizer([(0, 1)] * 2, method="sobol")
    opt.tell(eign.read_table(path, opt.box))
    assert opt.best.y == 1.0


def test_json_has_one_object_a_row_in_the_words_of_tell(tmp_path):
    path = tmp_path / "told.json"
    write_table(path, TOLD, names=BOX.names, reasons=["model"] * 4)
    assert evaluations_from_text(path.read_text(), BOX, "told.json").told == TOLD
    assert json.loads(path.read_text())[2] == {
        "x": {"width": 1.0, "rate": 0.5, "depth": 3.0},
        "value": "inf",
        "reason": "model",
    }


def test_what_is_written_is_called_as_in_json(tmp_path):
    write_table(tmp_path / "told.csv", TOLD, names=BOX.names)
    header = (tmp_path / "told.csv").read_text().splitlines()[0].split(",")
    assert header[3:6] == ["value", "gradient_width", "gradient_rate"]
    assert header[7:9] == ["value_variance", "gradient_variance_width"]


@pytest.mark.parametrize(
    "header",
    [
        "a,b,value,gradient_a,gradient_b,value_variance,gradient_variance_a,gradient_variance_b",
        "a,b,y,d_a,d_b,y_var,d_a_var,d_b_var",
        "a,b,value,d_a,gradient_b,y_var,gradient_variance_a,d_b_var",
    ],
)
def test_both_sets_of_names_are_read(header):
    rows = read(header + "\n0.1,0.2,3,4,5,6,7,8\n", Box({"a": (0, 1), "b": (0, 1)}))
    assert rows.told == Observations([[0.1, 0.2]], [3.0], [[4.0, 5.0]], [6.0], [[7.0, 8.0]])


@pytest.mark.parametrize(
    "names", [["y", "value_variance"], ["value", "gradient_value"], ["a", "d_a"], ["a", "variance_a"]]
)
def test_coordinates_may_have_the_names_of_columns(tmp_path, names):
    box = Box(dict.fromkeys(names, (0, 1)))
    told = Observations([[0.5, 0.25]], [1.0], [[2.0, 3.0]], [0.1], [[0.2, 0.3]])
    write_table(tmp_path / "told.csv", told, names=names)
    assert read_table(tmp_path / "told.csv", box) == told
    with pytest.raises(ValueError, match="a table has no column 'value' beside coordinates called value, y"):
        write_table(tmp_path / "told.csv", told, names=["y", "value"])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,b,Value", "the column 'Value' is unknown; did you mean 'value'"),
        ("a,b,result", "there is no column with the value, expected 'value' or 'y'; the columns are a, b, result"),
        ("a,b,gradient_a,gradient_b", "there is no column with the value"),
        ("a,b", "there is no column with the value"),
        ("a,b,value,y", "the columns 'value' and 'y' mean the same; leave one out"),
        ("a,b,value,value", "the column 'value' is there twice"),
        ("a,a,b,value", "the column 'a' is there twice"),
        ("a,b,value,note,note", "the column 'note' is there twice"),
        ("a,b,value,grad_a,grad_b", "the column 'grad_a' is unknown; did you mean 'gradient_a'"),
        ("a,b,value,gradient", "the column 'gradient' is unknown.* Expected: a for the point, value for the value, gr"),
        ("a,b,value,grad", "the column 'grad' is unknown"),
        ("a,b,value,df/da", "the column 'df/da' is unknown"),
        ("a,b,value,gradient_c", "the column 'gradient_c' is unknown"),
        ("a,b,value,grad_var_a", "the column 'grad_var_a' is unknown"),
        ("a,b,value,variance", "the column 'variance' is unknown"),
        ("a,b,value,value_var", "the column 'value_var' is unknown; did you mean 'value_variance'"),
    ],
)
def test_a_column_that_would_be_lost_is_an_error(header, message):
    for rows in ("", ",".join(["0.5"] * len(header.split(","))) + "\n"):
        with pytest.raises(ValueError, match=message):
            read(f"{header}\n{rows}", Box({"a": (0, 1), "b": (0, 1)}))


def test_gradients_of_coordinates_without_names_are_not_lost_either():
    for header in ("x0,x1,value,g0,g1", "x0,x1,value,dx0,dx1", "x0,x1,value,grad0,grad1", "x0,x1,value,d0,d1"):
        with pytest.raises(ValueError, match=f"the column '{header.split(',')[3]}' is unknown"):
            read(f"{header}\n0,0,1,2,3\n", Box([(0, 1)] * 2))


def test_a_row_with_a_gradient_and_no_value_is_an_error_unless_it_says_so():
    box = Box({"a": (0, 1)})
    with pytest.raises(
        ValueError, match="row 2: there is a gradient and no value; nan as the value says that there is"
    ):
        read("a,value,gradient_a\n0.5,1,1\n0.6,,1\n", box)
    rows = read("a,value,gradient_a\n0.6,nan,1\n", box)
    assert (rows.told.has_y.tolist(), rows.told.has_grad.tolist(), rows.told.n_failed) == ([False], [[True]], 0)


class TestExport:
    """A file is replaced as its owner would replace it."""

    def test_the_mode_stays(self, tmp_path):
        path = tmp_path / "told.csv"
        path.write_text("old")
        path.chmod(0o600)
        write_table(path, TOLD)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        before = os.umask(0o027)
        try:
            write_table(tmp_path / "new.csv", TOLD)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o640

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "there").mkdir()
        (tmp_path / "told.csv").symlink_to(tmp_path / "there" / "real.csv")
        write_table(tmp_path / "told.csv", TOLD)
        assert (tmp_path / "told.csv").is_symlink()
        assert len((tmp_path / "there" / "real.csv").read_text().splitlines()) == 5

    def test_a_planted_link_is_not_followed(self, tmp_path, monkeypatch):
        (tmp_path / "precious").write_text("mine")
        (tmp_path / ".told.csv.new").symlink_to(tmp_path / "precious")
        write_table(tmp_path / "told.csv", TOLD)
        assert (tmp_path / "precious").read_text() == "mine"
        # Even one who guesses the name gets nothing.
        monkeypatch.setattr("eign.exchange.replaced_file.secrets.token_hex", lambda _: "guessed")
        (tmp_path / ".told.csv.guessed.new").symlink_to(tmp_path / "precious")
        with pytest.raises(FileExistsError):
            write_table(tmp_path / "told.csv", TOLD)
        assert (tmp_path / "precious").read_text() == "mine"

    def test_an_error_leaves_the_old_table_and_nothing_else(self, tmp_path):
        path = tmp_path / "told.csv"
        path.write_text("old")
        with pytest.raises(ValueError, match="expected 4 reasons"):
            write_table(path, TOLD, reasons=["model"])
        with pytest.raises(UnicodeEncodeError):
            write_table(path, TOLD, reasons=["\ud800"] * 4)
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["told.csv"]

    @pytest.mark.parametrize("fails", ["open", "replace"])
    def test_an_error_of_the_system_names_the_table(self, tmp_path, monkeypatch, fails):
        def refused(unfinished, *_):
            raise PermissionError(errno.EACCES, "Permission denied", str(unfinished))

        monkeypatch.setattr(f"eign.exchange.replaced_file.os.{fails}", refused)
        with pytest.raises(PermissionError) as caught:
            write_table(tmp_path / "told.csv", TOLD)
        assert caught.value.filename == str(tmp_path / "told.csv")
        assert list(tmp_path.iterdir()) == []

    def test_no_cell_is_a_formula(self, tmp_path):
        names = ["=1+1", "-b", "@c"]
        reasons = ["=cmd|' /C calc'!A0", "+1", "\tx", "model"]
        write_table(tmp_path / "told.csv", TOLD, names=names, reasons=reasons)
        with (tmp_path / "told.csv").open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        formulas = [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t") or cell.startswith("-")]
        assert [float(cell) for cell in formulas] == [-0.0]
        box = Box({"=1+1": (0, 2), "-b": (0, 1), "@c": (3, 3)})
        assert read_table(tmp_path / "told.csv", box) == TOLD


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_named_with_what_to_do(tmp_path, encoding):
    path = tmp_path / "told.csv"
    path.write_bytes("width,rate,value,comment\n0.5,0.25,1.5,\u00e9t\u00e9\n".encode(encoding))
    with pytest.raises(ValueError, match=r"told.csv, line \d: expected UTF-8; .*save it as CSV UTF-8"):
        read_table(path, BOX)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(tmp_path, end):
    text = end.join(["width,rate,value", "0.5,0.25,1.5", "1,0.5,2", ""])
    (tmp_path / "told.csv").write_bytes(text.encode())
    assert len(read_table(tmp_path / "told.csv", BOX)) == 2
    assert len(evaluations_from_text(text, BOX, "past.csv").told) == 2


def test_a_spreadsheet_with_decimal_commas_a_comment_and_open_rows():
    rows = read(
        "\ufeffwidth;rate;comment;y;d_width\n0,5;0,25;good;1,5;\n1;0,5;;;\n2;1;lost;nan;\n;;;;\n".lstrip("\ufeff")
    )
    assert rows.open == 1
    np.testing.assert_array_equal(rows.told.x, [[0.5, 0.25, 3.0], [2.0, 1.0, 3.0]])
    assert rows.told.y[0] == 1.5
    assert rows.told.failed.tolist() == [False, True]
    assert read("width\trate\ty\n1\t0.5\t2\n").told.y.tolist() == [2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width,y\n1,2\n", "past.csv: there is no column 'rate'; the columns are width, y"),
        ("width,rate\n", "there is no column with the value"),
        ("width,y\n", "there is no column 'rate'"),
        ("width,rate,y,d_wdith\n1,1,1,1\n", "the column 'd_wdith' is unknown; did you mean 'd_width'"),
        ("width,rate,y\n1,1,1\n1,1,much\n", "row 2, column y: expected a number, got 'much'"),
        ("width,rate,y\n1,1,1\n9,1,1\n", "row 2: x is outside the box: 9.0 for 'width'"),
        ("width,rate,y\n,1,1\n", "row 1: x is outside the box: nan"),
        ("width,rate,y,y_var\n1,1,1,-1\n", "y_var must be finite and not negative"),
        ("width,rate,y\n1,1\n", "row 1: expected 3 cells"),
        ("width,rate,y\n1,1,1,1\n", "row 1: expected 3 cells"),
    ],
)
def test_what_is_wrong_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_names_that_a_table_cannot_have():
    with pytest.raises(ValueError, match="a table has no column 'gradient_a' beside coordinates called"):
        Observations([[1.0, 2.0, 3.0]]).columns(["a", "d_a", "gradient_a"])
    with pytest.raises(ValueError, match="expected 2 names"):
        Observations([[1.0, 2.0]]).columns(["a"])


def test_endings(tmp_path):
    with pytest.raises(ValueError, match=r"expected the ending .csv or .parquet"):
        read_table(tmp_path / "past.xls", BOX)
    with pytest.raises(ValueError, match="expected one of the endings"):
        write_table(tmp_path / "past.xls", TOLD)


def test_a_frame():
    frame = TOLD.to_frame(BOX.names)
    assert list(frame.columns[:5]) == ["width", "rate", "depth", "value", "gradient_width"]
    assert len(frame) == 4
    assert frame["value"].iloc[0] == 0.1 + 0.2
    opt = Optimizer([(0, 1)], method="sobol")
    opt.tell([0.5], 1.0)
    assert opt.history.to_frame().to_dict("list") == {"x0": [0.5], "value": [1.0]}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_frame_has_the_words_of_a_file(tmp_path, ending):
    """What pandas writes is what `read_table` reads, and its columns are those of `write_table`."""
    limited = TOLD.with_constraints([Observations(TOLD.x, [1.0, 2.0, np.nan, 4.0], TOLD.grad)])
    if ending == "parquet":  # where pandas writes NaN as nothing, and a row without a value is refused
        limited = limited[limited.has_y]
    frame = limited.to_frame(BOX.names, ["stress"])
    file = tmp_path / f"told.{ending}"
    frame.to_csv(file, index=False, na_rep="nan") if ending == "csv" else frame.to_parquet(file)
    write_table(tmp_path / "ours.csv", limited, names=BOX.names, constraints=["stress"])
    assert (tmp_path / "ours.csv").read_text().splitlines()[0].split(",") == list(frame.columns)
    assert read_table(file, BOX, constraints=["stress"]) == limited


def test_missing_packages_are_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest):
        if name.split(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"pip install 'eign\[bench\]' or pip install pandas"):
        TOLD.to_frame()
    with pytest.raises(ImportError, match="pip install pyarrow"):
        write_table(tmp_path / "told.parquet", TOLD)
    write_table(tmp_path / "told.csv", TOLD)


def test_csv_of_texts_and_gaps():
    file = io.StringIO()
    write_csv({"a": [0.1, None], "reason": ["model", 'say "no", please']}, file)
    assert file.getvalue() == 'a,reason\n0.1,model\n,"say ""no"", please"\n'
