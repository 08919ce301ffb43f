"""Laws of the CSV sink: each row once, whatever happens in between."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.csv_sink import CsvSinkDamaged, CsvSinkParams, CsvSinkWriter
from tests.chosen import examples
from tests.unit.operators.conftest import at, schema_of

SCHEMA = schema_of(n="integer", s="string")


def table(*rows):
    return pa.table(
        {
            "n": pa.array([row[0] for row in rows], pa.int64()),
            "s": pa.array([row[1] for row in rows], pa.string()),
            "_time": pa.array([at(0) for _ in rows], pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture
def sink(operator, context):
    def make(**params):
        csv_sink = operator("csv-sink", {"file": "out.csv", **params})
        return csv_sink.open(context(csv_sink, **{"in": SCHEMA}))

    return make


@pytest.fixture
def content(tmp_path):
    return lambda: (tmp_path / "out.csv").read_bytes().decode()


def test_rows_are_appended_under_one_header(sink, content):
    writer = sink()
    writer.restore(None)
    assert writer.write(table((1, "a")), 1) == {"length": len("n,s\r\n1,a\r\n"), "rows": 1}
    mark = writer.write(table((2, None), (None, "x")), 2)
    assert content() == "n,s\r\n1,a\r\n2,\r\n,x\r\n"
    assert mark == {"length": len(content()), "rows": 3}


def test_quotes_commas_and_line_breaks_are_quoted(sink, content):
    writer = sink()
    writer.restore(None)
    texts = ['say "a"', "a,b", "a\r\nb", "ä", " "]
    writer.write(table(*((n, text) for n, text in enumerate(texts))), 1)
    assert [row[1] for row in csv.reader(io.StringIO(content(), newline=""))] == ["s", *texts]


def test_what_was_not_committed_is_cut_off(sink, content):
    first = sink()
    first.restore(None)
    mark = first.write(table((1, "a")), 1)
    first.write(table((2, "b")), 2)
    first.close()
    second = sink()
    second.restore(mark)
    second.write(table((2, "B")), 2)
    assert content() == "n,s\r\n1,a\r\n2,B\r\n"


def test_a_start_without_a_commit_begins_with_an_empty_file(sink, content):
    writer = sink()
    writer.restore(None)
    writer.write(table((1, "a")), 1)
    writer.restore(None)
    assert content() == ""
    assert writer.write(table(), 1) == {"length": 0, "rows": 0}
    writer.write(table((3, "c")), 2)
    assert content() == "n,s\r\n3,c\r\n"


def test_a_file_that_lacks_what_was_committed_is_reported_and_left_alone(sink, content, tmp_path):
    (tmp_path / "out.csv").write_text("short")
    with pytest.raises(CsvSinkDamaged, match="restore the element from a checkpoint"):
        sink().restore({"length": 100, "rows": 3})
    assert content() == "short"


def test_types_are_written_for_machines(operator, context, content):
    schema = schema_of(t="timestamp", b="boolean", x="number")
    csv_sink = operator("csv-sink", {"file": "out.csv", "time": True, "delimiter": "tab"})
    writer = csv_sink.open(context(csv_sink, **{"in": schema}))
    writer.restore(None)
    times = pa.array([at(0.5)], pa.timestamp("us", "UTC"))
    writer.write(pa.table({"t": times, "b": [True], "x": [0.1], "_time": times}), 1)
    time = "2024-05-01T12:00:00.500000Z"
    assert content() == f"time\tt\tb\tx\r\n{time}\t{time}\ttrue\t0.1\r\n"


def test_only_the_chosen_columns_are_written(sink, content, operator, mismatch):
    writer = sink(columns=["s"], header=False)
    writer.restore(None)
    writer.write(table((1, "a")), 1)
    assert content() == "a\r\n"
    assert mismatch(operator("csv-sink", {"columns": ["zz"]}), **{"in": SCHEMA}) == ["params.columns[0]"]


def test_a_file_for_a_german_excel_has_a_mark_once_and_decimal_commas(operator, context, tmp_path):
    schema = schema_of(**{"Gerät": "string"}, wert="number", n="integer")
    params = {"file": "out.csv", "delimiter": ";", "decimal": ",", "byte_order_mark": True}
    writers = []

    def opened(mark):
        csv_sink = operator("csv-sink", params)
        writers.append(csv_sink.open(context(csv_sink, **{"in": schema})))
        writers[-1].restore(mark)
        return writers[-1]

    rows = pa.table({"Gerät": ["Kühler", "a.b"], "wert": [22.5, None], "n": [1_000, 2]})
    mark = opened(None).write(rows.slice(0, 0), 1)
    mark = opened(mark).write(rows.slice(0, 1), 2)
    opened(mark).write(rows.slice(1), 3)
    expected = "Gerät;wert;n\r\nKühler;22,5;1000\r\na.b;;2\r\n"
    assert (tmp_path / "out.csv").read_bytes() == b"\xef\xbb\xbf" + expected.encode()
    assert mark["length"] == len("Gerät;wert;n\r\nKühler;22,5;1000\r\n".encode()) + 3


@settings(max_examples=examples(60))
@given(
    values=st.lists(
        st.tuples(st.floats(allow_nan=False), st.text(st.characters(codec="utf-8"), max_size=8)), min_size=1
    ),
    delimiter=st.sampled_from([",", ";", "tab", "|"]),
    decimal=st.sampled_from([".", ","]),
    marked=st.booleans(),
    cut=st.integers(0, 5),
)
def test_what_is_written_can_be_read_again_whatever_its_form(
    values, delimiter, decimal, marked, cut, tmp_path_factory
):
    path = tmp_path_factory.mktemp("sink") / "out.csv"
    params = CsvSinkParams(delimiter=delimiter, decimal=decimal, byte_order_mark=marked)
    writer = CsvSinkWriter(path, params, ("x", "s"))
    writer.restore(None)
    rows = pa.table({"x": [x for x, _ in values], "s": [s for _, s in values]})
    writer.write(rows.slice(0, cut), 1)
    writer.write(rows.slice(cut), 2)
    writer.close()
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf") == marked
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    header, *found = csv.reader(text, delimiter={"tab": "\t"}.get(delimiter, delimiter))
    assert header == ["x", "s"]
    assert [(float(x.replace(decimal, ".")), s) for x, s in found] == values
    assert all(decimal in x or "e" in x or "inf" in x for x, _ in found)


@pytest.mark.parametrize("file", ["../x.csv", "/etc/x", ".hidden", "a/b.csv", ""])
def test_the_file_stays_in_the_elements_directory(operator, file):
    with pytest.raises(ValueError, match="file"):
        operator("csv-sink", {"file": file})


@settings(max_examples=examples(40))
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["commit", "crash before", "crash after"])), max_size=12
    )
)
def test_no_row_is_lost_or_doubled_by_crashes(steps, tmp_path_factory):
    path = tmp_path_factory.mktemp("sink") / "out.csv"
    params, mark, expected, number = CsvSinkParams(file="out.csv"), None, [], 0
    writer = CsvSinkWriter(path, params, ("n", "s"))
    writer.restore(mark)
    for seq, (count, fate) in enumerate(steps):
        rows = [(number + i, "x") for i in range(count)]
        written = writer.write(table(*rows), seq)
        if fate != "crash before":  # else written, not committed: the batch runs again some time
            mark, expected, number = written, expected + rows, number + count
        if fate != "commit":
            writer.close()
            writer = CsvSinkWriter(path, params, ("n", "s"))
            writer.restore(mark)
    writer.close()
    found = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    assert [(int(n), s) for n, s in found[1:]] == expected


def test_a_file_keeps_the_columns_with_which_it_began(tmp_path):
    def writer(*columns):
        params = CsvSinkParams(file="a.csv", time=True, byte_order_mark=True, delimiter=";")
        return CsvSinkWriter(tmp_path / "a.csv", params, columns)

    def rows(**columns):
        times = pa.array([0] * len(next(iter(columns.values()))), pa.timestamp("us", tz="UTC"))
        return pa.table({**columns, "_time": times})

    first = writer("a", "b")
    first.restore(None)
    mark = first.write(rows(a=[1], b=["x"]), 1)
    first.close()
    wider = writer("a", "b", "c")
    wider.restore(mark)
    mark = wider.write(rows(a=[2], b=["y"], c=[True]), 2)
    wider.close()
    narrower = writer("b")
    narrower.restore(mark)
    narrower.write(rows(b=["z"]), 3)
    narrower.close()
    lines = (tmp_path / "a.csv").read_text("utf-8-sig").splitlines()
    assert [line.split(";", 1)[1] for line in lines] == ["a;b", "1;x", "2;y", ";z"]
