"""Laws of the CSV replay: a row's content and time depend on its index alone."""

import gzip
import itertools
import subprocess
import sys
import zlib

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators import recording
from pipeline_runtime.operators.csv_replay import CsvReplay, CsvReplayParams, CsvReplayReader
from pipeline_runtime.operators.recording import DEMOS, Layout, infer_columns, load_recording

TEXT = """at,n,x
2024-01-01T00:00:00.0Z,1,0.5
2024-01-01T00:00:00.1Z,2,1.5
2024-01-01T00:00:00.3Z,3,2.5
"""


@pytest.fixture
def replay(tmp_path, operator, context):
    """A factory of readers over a file with this text."""

    def make(text=TEXT, **params):
        data = text.encode() if isinstance(text, str) else text
        (tmp_path / "upload:f").write_bytes(data)
        params = {"path": "upload:f", "rate": 10, **params}
        source = operator("csv-replay", params, describe_file=lambda reference: data[:65536])
        return source.open(context(CsvReplay(source.resolve({}))))

    return make


def rows(reader, start, end):
    return [row for batch in reader.read(start, end) for row in batch.to_pylist()]


def everything(reader, now_ms=10**9):
    start = reader.initial(0)
    return rows(reader, start, reader.advance(start, now_ms, 10**6))


def milliseconds(found):
    return [round(row["_time"].timestamp() * 1000) for row in found]


def test_rows_are_released_at_the_rate(replay):
    reader = replay(rate=10, loops=0)
    position = reader.initial(1000)
    assert [reader.advance(position, now, 100)["row"] for now in (999, 1000, 1099, 1100, 2000)] == [
        0,
        1,
        1,
        2,
        11,
    ]
    assert reader.advance(position, 2000, 3)["row"] == 3


def test_rows_are_released_at_the_recorded_pace(replay):
    reader = replay(rate=None, time_column="at", speed=2, loops=0)
    position = reader.initial(0)
    # Due after 0, 50 and 150 ms at double speed; the next loop begins a typical step (150 ms) later.
    assert [reader.advance(position, now, 100)["row"] for now in (0, 49, 50, 150, 224, 225, 275)] == [
        1,
        1,
        2,
        3,
        3,
        4,
        5,
    ]


def test_a_finite_replay_ends_and_an_endless_one_does_not(replay):
    twice = replay(loops=2)
    end = twice.advance(twice.initial(0), 10**9, 10**6)
    assert (end["row"], twice.ended(end), twice.advance(end, 10**10, 5)) == (6, True, end)
    endless = replay(loops=0)
    assert not endless.ended(endless.advance(endless.initial(0), 10**9, 10**6))


def test_time_rises_from_loop_to_loop_and_begins_at_the_start(replay):
    reader = replay(time_column="at", loops=3)
    start = reader.initial(5000)
    found = rows(reader, start, reader.advance(start, 10**9, 100))
    assert milliseconds(found) == [5000, 5100, 5300, 5450, 5550, 5750, 5900, 6000, 6200]
    assert [row["n"] for row in found] == [1, 2, 3] * 3
    assert [row["_offset"] for row in found] == list(range(9))


def test_without_restamp_time_is_as_recorded(replay):
    found = everything(replay(time_column="at", restamp=False))
    assert [row["_time"] for row in found] == [row["at"] for row in found]


def test_without_a_time_column_time_follows_from_the_rate(replay):
    assert milliseconds(everything(replay(rate=4))) == [0, 250, 500]


def test_a_pause_moves_the_clock_for_the_rows_behind_it(replay):
    reader = replay(rate=10, loops=0)
    first = reader.advance(reader.initial(0), 100, 100)
    paused = reader.pause_shift(first, 60_000)
    assert reader.advance(paused, 60_199, 100) == paused
    second = reader.advance(paused, 60_200, 100)
    assert milliseconds(rows(reader, reader.initial(0), second)) == [0, 100, 60_200]


def test_after_a_long_stop_it_catches_up_only_when_asked(replay):
    assert replay(loops=0).advance(replay(loops=0).initial(0), 60_000, 1000)["row"] == 601
    reader = replay(loops=0, catch_up=False)
    late = reader.advance(reader.initial(0), 60_000, 1000)
    assert (late["row"], milliseconds(rows(reader, reader.initial(0), late))) == (1, [60_000])
    assert reader.advance(late, 60_100, 1000)["row"] == 2


@settings(max_examples=40)
@given(
    cuts=st.lists(st.tuples(st.integers(1, 4000), st.integers(0, 3)), min_size=1, max_size=15),
    data=st.data(),
)
def test_however_it_is_cut_the_rows_are_the_same(cuts, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("replay") / "f.csv"
    path.write_text(TEXT)
    params = CsvReplayParams(
        path="upload:f", rate=5, loops=0, time_column="at", columns=COLUMNS, catch_up=False
    )
    reader = CsvReplayReader(load_recording(path, CsvReplay(params).layout), params, ("at", "n", "x"))
    now, positions = 0, [reader.initial(0)]
    for wait_ms, pauses in cuts:
        now += wait_ms
        position = positions[-1]
        if pauses == 3:
            position = reader.pause_shift(position, wait_ms)
        positions.append(reader.advance(position, now, 50))
    one_by_one = [row for a, b in itertools.pairwise(positions) for row in rows(reader, a, b)]
    first = data.draw(st.integers(0, len(positions) - 1))
    coalesced = rows(reader, positions[0], positions[first]) + rows(reader, positions[first], positions[-1])
    assert coalesced == one_by_one
    assert [row["_offset"] for row in one_by_one] == list(range(len(one_by_one)))
    times = [row["_time"] for row in one_by_one]
    assert times == sorted(times)


COLUMNS = (
    {"name": "at", "type": "timestamp"},
    {"name": "n", "type": "integer"},
    {"name": "x", "type": "number"},
)


def test_malformed_rows_are_rejected_in_their_place(replay):
    text = "n,x,ok,s\n1,0.5,true,a\nno,1,true,b\n3\n4,1,perhaps,d,e\n5,,no,\n6,1e400,yes,f\n"
    columns = [
        {"name": "n", "type": "integer"},
        {"name": "x", "type": "number"},
        {"name": "ok", "type": "boolean"},
        {"name": "s", "type": "string"},
    ]
    found = everything(replay(text, columns=columns))
    assert [row["_offset"] for row in found] == list(range(6))
    assert [row["_reject"] for row in found] == [
        None,
        "column \"n\": 'no' is not a whole number",
        "has 1 cell instead of 4",
        "has 5 cells instead of 4",
        None,
        "column \"x\": '1e400' is not a number",
    ]
    assert [row["_raw"] for row in found][1:4] == ["no,1,true,b", "3", "4,1,perhaps,d,e"]
    good = [{name: row[name] for name in ("n", "x", "ok", "s")} for row in found if row["_reject"] is None]
    assert good == [{"n": 1, "x": 0.5, "ok": True, "s": "a"}, {"n": 5, "x": None, "ok": False, "s": ""}]


def test_a_row_without_a_time_is_rejected_and_takes_its_turn(replay):
    text = "at,n\n2024-01-01,1\n,2\n2024-13-01,3\n2024-01-02,4\n"
    columns = [{"name": "at", "type": "timestamp"}, {"name": "n", "type": "integer"}]
    found = everything(replay(text, columns=columns, time_column="at", rate=None))
    assert [row["_reject"] is None for row in found] == [True, False, False, True]
    assert [row["n"] for row in found] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("time_format", "values"),
    [
        ("epoch_s", ["100", "100.5"]),
        ("epoch_ms", ["100000", "100500"]),
        ("epoch_us", ["100000000", "100500000"]),
        ("epoch_ns", ["100000000000", "100500000000"]),
        ("%d.%m.%y %H:%M:%S.%f", ["01.01.70 00:01:40.0", "01.01.70 00:01:40.5"]),
    ],
)
def test_times_are_read_in_other_formats(replay, time_format, values):
    reader = replay("t\n" + "\n".join(values) + "\n", time_column="t", time_format=time_format, restamp=False)
    assert milliseconds(everything(reader)) == [100_000, 100_500]


def test_a_decimal_comma_is_read(replay):
    assert [row["a"] for row in everything(replay("a;b\n1,5;x\n-2;y\n", delimiter=";", decimal=","))] == [
        1.5,
        -2,
    ]


def test_a_number_beyond_the_calendar_is_no_time(replay):
    found = everything(
        replay("t\n100\n1e300\n-1e15\n", time_column="t", time_format="epoch_s", restamp=False)
    )
    assert [row["_reject"] for row in found] == [None, *['column "t" holds no time'] * 2]
    assert milliseconds(found) == [100_000] * 3


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "UNPACKED_BYTES_MAX", 10_000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"n\n" + b"1\n" * 10_000))
    with pytest.raises(ValueError, match="larger than 10,000 bytes when it is unpacked"):
        load_recording(path, Layout(infer_columns(path.read_bytes())))


READ = """
import os, resource, sys
from pathlib import Path
from pipeline_runtime.operators.recording import Layout, infer_columns, load_recording
path = Path(sys.argv[1])
columns = infer_columns(path.read_bytes()[:65536])
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = used()
resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))  # the machine is not the test's alone
try:
    load_recording(path, Layout(columns))
    print("read")
except ValueError as error:
    print(error)
print(used() - before, flush=True)
os._exit(0)  # a thread of Arrow's may still let go of the file: Python's end would end it in the midst
"""


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (b"n\n", b"1\n"),
        (b"n\n1\n2\n", b"x\n"),  # each is refused with a reason
        (b"a,b\n", b"1\n"),
        (b"n\n", b"\n"),
        (b'n\n1\n"', b"x" * 100),
        (b'"', b"x" * 100),
    ],
    ids=["rows", "wrong rows", "malformed rows", "no rows", "one row", "one header"],
)
def test_a_bomb_takes_little_memory(tmp_path, head, row):
    """100 MB of rows in a gzip of 100 KB; before, that took 1.8 GB."""
    path = tmp_path / "bomb.csv.gz"
    packer, piece = zlib.compressobj(9, wbits=31), row * (1_000_000 // len(row))
    path.write_bytes(
        packer.compress(head) + b"".join(packer.compress(piece) for _ in range(100)) + packer.flush()
    )
    assert path.stat().st_size < 200_000
    found = subprocess.run(
        [sys.executable, "-c", READ, path], capture_output=True, text=True, timeout=150, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    said, used = found.stdout.splitlines()
    assert said.startswith("the recording ")
    assert int(used) < 700e6


@pytest.mark.parametrize("line", ["x", "1,2"], ids=["wrong", "malformed"])
def test_refused_rows_take_no_more_memory_than_is_allowed(replay, monkeypatch, line):
    monkeypatch.setattr(recording, "MEMORY_BYTES_MAX", 1_000_000)
    numbers = [{"name": "n", "type": "integer"}]
    with pytest.raises(ValueError, match="more than 1,000,000 bytes of memory"):
        replay("n\n" + f"{line}\n" * 100_000, columns=numbers)
    assert len(everything(replay("n\n" + f"{line}\n" * 1000, columns=numbers))) == 1000


def test_a_long_file_is_read_in_blocks_and_each_row_keeps_its_place(replay, monkeypatch):
    monkeypatch.setattr(recording, "ROW_BYTES_MAX", 1000)  # a block
    lines = [f"{number},{'é' * (number % 7)}" for number in range(3000)]
    lines[1234], lines[2000], lines[2999] = "1,2,3", "x,y", "only"
    columns = [{"name": "n", "type": "integer"}, {"name": "text", "type": "string"}]
    reader = replay("n,text\n" + "\n".join(lines) + "\n", columns=columns)
    found = everything(reader)
    assert len(found) == 3000
    for number, row in enumerate(found):
        if number in (1234, 2000, 2999):
            assert (row["n"], row["_raw"]) == (None, lines[number])
            assert row["_reject"]
        else:
            assert (row["n"], row["text"], row["_reject"]) == (number, "é" * (number % 7), None)


def test_a_row_that_is_longer_than_any_should_be_is_refused(replay):
    with pytest.raises(ValueError, match="row of more than 1,048,576 bytes"):
        replay('n\n1\n"' + "2\n" * (recording.ROW_BYTES_MAX * 2))


def test_a_head_of_very_many_columns_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="at most 2,000"):
        infer_columns(b"," * 60_000)
    assert len(infer_columns(b"a," * 1999 + b"a")) == 2000


@pytest.mark.parametrize("cell", ["1" * 30_000 + "x", '"' + "1," * 15_000])
def test_no_cell_makes_looking_at_a_file_long(cell):
    """With patterns of quadratic time this takes minutes, and no other thread runs meanwhile."""
    assert [field.type.value for field in infer_columns(f"n\n{cell}\n".encode())] == ["string"]


def test_gzip_other_delimiters_quotes_and_broken_utf8_are_read(replay):
    found = everything(replay(gzip.compress(b'a;b\n1;"x;\ny"\n'), delimiter=";"))
    assert [(row["a"], row["b"]) for row in found] == [(1, "x;\ny")]
    assert everything(replay(b"a,b\n1,\xff\n"))[0]["b"] == "�"


@pytest.mark.parametrize("text", ["a,b\n", "a,b"])
def test_a_file_without_rows_ends_at_once(replay, text):
    reader = replay(text, loops=0)
    assert reader.ended(reader.initial(0))


def test_only_kept_columns_are_sent(replay):
    assert set(everything(replay(keep=["x"]))[0]) == {"x", "_reject", "_raw", "_time", "_offset"}


def test_columns_are_inferred_from_the_head():
    def types(text, **options):
        return [(field.name, field.type.value) for field in infer_columns(text.encode(), **options)]

    assert types("a,a,_b,\n1,2.5,x,\n2,3,,\n") == [
        ("a", "integer"),
        ("a_2", "number"),
        ("b", "string"),
        ("c4", "string"),
    ]
    assert types("1;true\n", delimiter=";", header=False) == [("c1", "integer"), ("c2", "boolean")]
    with pytest.raises(ValueError, match="empty"):
        infer_columns(b"")


def test_the_demo_recording_is_as_its_documentation_says(operator, context):
    source = operator("csv-replay", {"path": "demo:debs2012", "rate": 100})
    assert len(DEMOS["demo:debs2012"].layout.columns) == 56
    reader = source.open(context(source))
    assert reader.recording.rows == 17_000
    first = rows(reader, reader.initial(0), {"row": 1, "t0": 0, "shifts": []})[0]
    assert (first["index"], first["mf01"], first["mf02"], first["mf03"]) == (2556001, 13056, 14406, 8119)
    assert first["ts"].isoformat() == "2012-02-22T16:46:28.967032+00:00"
    assert reader.table["_reject"].null_count == 17_000


def test_wrong_parameters_are_told(operator, mismatch):
    file = {"path": "upload:f", "columns": [{"name": "n", "type": "integer"}]}
    assert mismatch(operator("csv-replay", file)) == ["params.rate"]
    assert operator("csv-replay", {**file, "time_column": "n"}).output_schema({}).names == ("n",)
    with pytest.raises(ValueError, match="delimiter"):
        operator("csv-replay", {"path": "upload:f", "rate": 1, "delimiter": ";;"})
    assert mismatch(operator("csv-replay", {"path": "demo:debs2013", "rate": 1})) == ["params.path"]
    params = {"path": "demo:debs2012", "keep": ["mf01", "mf99"], "key": "mf02"}
    assert mismatch(operator("csv-replay", params)) == ["params.keep[1]", "params.key"]
