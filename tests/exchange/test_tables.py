"""Evaluations in CSV and Parquet: every bit comes back, and a table that is wrong says where."""

import builtins
import io

import numpy as np
import pytest

import eign
from eign import Box, Observations, Optimizer, read_table, write_table
from eign.exchange.tables import read_csv, write_csv

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
    assert path.read_text() == "x0,x1,y\n0.5,0.25,1.0\n"
    opt = Optimizer([(0, 1)] * 2, method="sobol")
    opt.tell(eign.read_table(path, opt.box))
    assert opt.best.y == 1.0


def test_json_has_one_object_a_row(tmp_path):
    write_table(tmp_path / "told.json", TOLD[2:], names=BOX.names)
    assert '"y": "inf"' in (tmp_path / "told.json").read_text()


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
        ("width,rate\n", "open"),
        ("width,y\n", "there is no column 'rate'"),
        ("width,rate,y,d_wdith\n1,1,1,1\n", "column 'd_wdith' is unknown; did you mean 'd_width'"),
        ("width,rate,y\n1,1,1\n1,1,much\n", "row 2, column y: expected a number, got 'much'"),
        ("width,rate,y\n1,1,1\n9,1,1\n", "row 2: x is outside the box: 9.0 for 'width'"),
        ("width,rate,y\n,1,1\n", "row 1: x is outside the box: nan"),
        ("width,rate,y,y_var\n1,1,1,-1\n", "y_var must be finite and not negative"),
        ("width,rate,y\n1,1\n", "row 1: expected 3 cells"),
        ("width,rate,y\n1,1,1,1\n", "row 1: expected 3 cells"),
    ],
)
def test_what_is_wrong_is_named(text, message):
    if message == "open":
        assert len(read(text).told) == 0
        return
    with pytest.raises(ValueError, match=message):
        read(text)


def test_names_that_a_table_cannot_have():
    with pytest.raises(ValueError, match="cannot be called 'd_a' in a table"):
        Observations([[1.0, 2.0]]).columns(["a", "d_a"])
    with pytest.raises(ValueError, match="expected 2 names"):
        Observations([[1.0, 2.0]]).columns(["a"])


def test_endings(tmp_path):
    with pytest.raises(ValueError, match=r"expected the ending .csv or .parquet"):
        read_table(tmp_path / "past.xls", BOX)
    with pytest.raises(ValueError, match="expected one of the endings"):
        write_table(tmp_path / "past.xls", TOLD)


def test_a_frame():
    frame = TOLD.to_frame(BOX.names)
    assert list(frame.columns[:5]) == ["width", "rate", "depth", "y", "d_width"]
    assert len(frame) == 4
    assert frame["y"].iloc[0] == 0.1 + 0.2
    opt = Optimizer([(0, 1)], method="sobol")
    opt.tell([0.5], 1.0)
    assert opt.history.to_frame().to_dict("list") == {"x0": [0.5], "y": [1.0]}


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
