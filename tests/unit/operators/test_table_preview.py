"""Laws of looking at a file: what is shown is what a replay would read, and what it would refuse is told."""

import gzip

import pytest

from pipeline_runtime.operators.columns import ColumnType
from pipeline_runtime.operators.csv_replay import CsvReplay
from pipeline_runtime.operators.recording import HEAD_BYTES, Layout, infer_columns, load_recording
from pipeline_runtime.operators.table_preview import (
    COLUMNS_SHOWN,
    columns_found,
    looks_like_header,
    preview,
    preview_demo,
    sniffed_delimiter,
)

TEXT = """time;machine;power
01.02.2024 10:00:00;press;1.5
01.02.2024 10:00:01;press
01.02.2024 10:00:02;"saw;
new";2.5
soon;saw;3.5
"""


def test_the_first_rows_are_shown_with_names_types_and_the_time_column():
    found = preview(TEXT.encode(), len(TEXT))
    assert (found.delimiter, found.header, found.whole, found.rows, found.rows_about) == (
        ";",
        True,
        True,
        4,
        4,
    )
    assert [(column.name, column.type.value) for column in found.columns] == [
        ("time", "string"),
        ("machine", "string"),
        ("power", "number"),
    ]
    assert (found.time_column, found.time_format) == (None, None)  # a third of them is no time
    assert [row.line for row in found.first] == [2, 3, 4, 6]
    assert found.first[2].cells == ("01.02.2024 10:00:02", "saw;\nnew", "2.5")


def test_what_cannot_be_read_is_told_by_its_line():
    found = preview(TEXT.encode(), len(TEXT), time_column="time", time_format="%d.%m.%Y %H:%M:%S")
    assert [(bad.line, bad.reason) for bad in found.bad] == [
        (3, "has 2 cells instead of 3"),
        (6, 'column "time" holds no time'),
    ]
    assert [row.bad for row in found.first] == [False, True, False, True]


def test_rows_are_refused_that_a_replay_refuses(tmp_path):
    """The preview's verdict and the element's are one."""
    columns = [ColumnType(name=name, type=type_) for name, type_ in (("n", "integer"), ("at", "timestamp"))]
    lines = ["1,2024-01-01", "x,2024-01-02", "3,never", "4", "5,2024-01-05", ",2024-01-06"]
    text = "n,at\n" + "\n".join(lines) + "\n"
    found = preview(text.encode(), len(text), columns=columns, time_column="at", time_format="iso")
    path = tmp_path / "f.csv"
    path.write_text(text)
    layout = Layout(tuple(column.field() for column in columns), time_column="at")
    replayed = load_recording(path, layout).table.column("_reject").to_pylist()
    assert {bad.line: bad.reason for bad in found.bad} == {
        row + 2: why for row, why in enumerate(replayed) if why is not None
    }
    assert found.bad_total == 3


def test_a_column_of_numbers_but_for_some_values_says_where():
    rows = "".join(f"{n}.5,a\n" for n in range(20))
    text = f"power,machine\n1.5,a\nn/a,b\n{rows}"
    power, machine = preview(text.encode(), len(text)).columns
    assert power.near is not None
    assert (power.type.value, power.near.type.value) == ("string", "number")
    assert (power.near.line, power.near.text, power.near.others) == (3, "n/a", 1)
    assert machine.near is None
    mostly_text = "v\n" + "a\n1\n" * 10
    assert preview(mostly_text.encode(), len(mostly_text)).columns[0].near is None


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb,c\n1\t2,5\n", "\t"),
        ("1,5;2,5\n1,5;3,5\n", ";"),
        ("a|b\n1|2\n", "|"),
        ("a,b\n1,x;y\n2,z\n", ","),
        ("value\n1\n", ","),
        ('a,b\n"x;y;z",2\n', ","),
        ("a;b;c\n1;2;3\n1;2\n", ";"),
    ],
)
def test_the_delimiter_is_found(text, delimiter):
    assert sniffed_delimiter(text) == delimiter


def test_numbers_with_a_decimal_comma_are_numbers(tmp_path):
    text = "t;power;n\n1;1,5;1\n2;-2,25;2\n3;n/a;3\n" + "4;0,5;4\n" * 20
    found = preview(text.encode(), len(text))
    assert (found.delimiter, found.decimal) == (";", ",")
    power = found.columns[1]
    assert power.near is not None
    assert (power.near.type.value, power.near.line) == ("number", 4)
    assert preview(b"a;b\n1.5;1\n2,5;1\n", 16).decimal == "."
    assert preview(b"a,b\n1,5\n", 8).decimal == "."
    path = tmp_path / "f.csv"
    path.write_text("a;n\n1,5;1\n-2,25;2\n1.5;3\n1,0,1;4\n")
    columns = infer_columns(b"a;n\n1,5;1\n2;2\n", ";", decimal=",")
    table = load_recording(path, Layout(columns, ";", decimal=",")).table
    assert [field.type.value for field in columns] == ["number", "integer"]
    assert table.column("a").to_pylist() == [1.5, -2.25, 1.5, None]
    assert table.column("_reject").to_pylist()[3] is not None


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([["t", "v"], ["2024-01-01", "1"]], True),
        ([["2024-01-01", "1"], ["2024-01-02", "2"]], False),
        ([["a", "1"], ["b", "2"]], False),
        ([["name", "city"], ["Ada", "London"]], True),
        ([["2023", "2024"], ["a", "b"]], False),
        ([["value"]], True),
        ([["1"]], False),
    ],
)
def test_a_first_line_of_names_is_told_from_a_row(rows, header):
    assert looks_like_header(rows) is header


def test_what_is_given_counts_more_than_what_is_found():
    found = preview(b"1,2\n3,4\n", 8, header=True, delimiter=",")
    assert [column.name for column in found.columns] == ["1", "2"]
    assert found.rows == 1


def test_a_packed_or_cut_file_is_looked_at_without_its_last_cut_line():
    text = b"value\n" + b"12345\n" * HEAD_BYTES
    for head, size in ((text[:HEAD_BYTES], len(text)), (gzip.compress(text)[:HEAD_BYTES], None)):
        found = preview(head, size)
        assert (found.columns[0].type.value, found.whole, found.bad_total) == ("integer", False, 0)
        assert found.rows == HEAD_BYTES // 6 - 1
    assert preview(text[:HEAD_BYTES], len(text)).rows_about == 66_000
    assert preview(gzip.compress(text)[:HEAD_BYTES], 500).rows_about is None
    assert infer_columns(gzip.compress(text))[0].type.value == "integer"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"", "empty"),
        (b"\xff\xfea\0,\0b\0", "UTF-8"),
        (b"\x1f\x8bno gzip", "gzip file is damaged"),
        (b"," * 60_000, "at most 2,000"),
    ],
)
def test_what_is_no_table_says_why(head, why):
    with pytest.raises(ValueError, match=why):
        preview(head, len(head))


def test_what_is_shown_is_bounded():
    wide = b"a," * 1999 + b"a\n" + b"x" * 5000 + b"," * 1999 + b"\n"
    found = preview(wide, len(wide))
    assert (len(found.columns), found.columns_total) == (COLUMNS_SHOWN, 2000)
    assert max(len(cell) for cell in found.first[0].cells) == 60
    assert len(found.first[0].cells) == COLUMNS_SHOWN
    assert len(columns_found(wide)) == 2000, "a source has them all"


def test_characters_that_are_no_utf8_are_counted():
    assert preview("Gerät,n\nä,1\n".encode("latin-1"), 12).replaced == 2


def test_a_shipped_recording_is_shown_as_it_is_replayed(operator):
    found = preview_demo("demo:debs2012", None, None)
    layout = CsvReplay(operator("csv-replay", {"path": "demo:debs2012"}).params).layout
    assert [column.name for column in found.columns] == [field.name for field in layout.columns]
    assert (found.time_column, found.bad_total) == ("ts", 0)
