"""Laws of the CSV replay: a row's content and time depend on its index alone."""

import itertools
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.csv_replay import CsvReplay, CsvReplayParams, CsvReplayReader
from pipeline_runtime.operators.recording import DATA, DEMOS, demo_facts, open_recording
from tests.chosen import examples
from tests.demos import SHIPPED
from tests.tables import as_table
from webapp.imports import convert_write

TEXT = """at,n,x
2024-01-01T00:00:00.0Z,1,0.5
2024-01-01T00:00:00.1Z,2,1.5
2024-01-01T00:00:00.3Z,3,2.5
"""
COLUMNS = {"at": "timestamp", "n": "integer", "x": "number"}


@pytest.fixture
def replay(tmp_path, operator, context):
    """A factory of readers over a table of this text. Without `time`, it has no times."""

    def make(text=TEXT, columns=COLUMNS, time="at", **params):
        facts = as_table(text, tmp_path / "upload:f", columns, time=time)
        params = {"path": "upload:f", "rate": 10, **params}
        source = operator(
            "csv-replay", params, describe_file=lambda reference: facts.model_dump_json().encode()
        )
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
    reader = replay(rate=None, speed=2, loops=0)
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
    reader = replay(loops=3)
    start = reader.initial(5000)
    found = rows(reader, start, reader.advance(start, 10**9, 100))
    assert milliseconds(found) == [5000, 5100, 5300, 5450, 5550, 5750, 5900, 6000, 6200]
    assert [row["n"] for row in found] == [1, 2, 3] * 3
    assert [row["_offset"] for row in found] == list(range(9))


def test_without_restamp_time_is_as_recorded(replay):
    found = everything(replay(restamp=False))
    assert [row["_time"] for row in found] == [row["at"] for row in found]


def test_without_a_time_column_time_follows_from_the_rate(replay):
    assert milliseconds(everything(replay(rate=4, time=None))) == [0, 250, 500]


def test_a_pause_moves_the_clock_for_the_rows_behind_it(replay):
    reader = replay(rate=10, loops=0, time=None)
    first = reader.advance(reader.initial(0), 100, 100)
    paused = reader.pause_shift(first, 60_000)
    assert reader.advance(paused, 60_199, 100) == paused
    second = reader.advance(paused, 60_200, 100)
    assert milliseconds(rows(reader, reader.initial(0), second)) == [0, 100, 60_200]


def test_after_a_long_stop_it_catches_up_only_when_asked(replay):
    assert replay(loops=0).advance(replay(loops=0).initial(0), 60_000, 1000)["row"] == 601
    reader = replay(loops=0, catch_up=False, time=None)
    late = reader.advance(reader.initial(0), 60_000, 1000)
    assert (late["row"], milliseconds(rows(reader, reader.initial(0), late))) == (1, [60_000])
    assert reader.advance(late, 60_100, 1000)["row"] == 2


@settings(max_examples=examples(40))
@given(
    cuts=st.lists(st.tuples(st.integers(1, 4000), st.integers(0, 3)), min_size=1, max_size=15),
    data=st.data(),
)
def test_however_it_is_cut_the_rows_are_the_same(cuts, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("replay") / "f"
    as_table(TEXT, path, COLUMNS, time="at")
    params = CsvReplayParams(path="upload:f", rate=5, loops=0, catch_up=False)
    reader = CsvReplayReader(open_recording(path), params, ("at", "n", "x"))
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


def test_a_row_that_was_refused_has_its_turn_and_its_reason(replay):
    found = everything(replay("at,n,x\n2024-01-01,1,1\nno,2,2\n2024-01-02,3,oops\n", rate=None))
    assert [row["_reject"] for row in found] == [None, 'column "at" holds no time', None]
    assert (found[1]["_raw"], found[2]["x"]) == ("no,2,2", None)


def test_a_row_without_a_key_is_refused(replay):
    found = everything(replay("at,n,x\n2024-01-01,1,1\n2024-01-02,,2\n", key="n"))
    assert [row["_reject"] for row in found] == [None, 'column "n" has no value, and it is the key']


def test_nobody_waits_longer_than_the_longest_pause(replay):
    text = "at,n,x\n1970-01-01,1,1\n2024-05-01 00:00:00,2,2\n2024-05-01 00:00:01,3,3\n"
    reader = replay(text, rate=None, longest_pause_s=5, speed=2, loops=0, restamp=False)
    start = reader.initial(0)
    due = [reader.advance(start, now, 100)["row"] for now in (0, 4999, 5000, 5499, 5500)]
    assert due == [1, 1, 2, 2, 3]
    assert reader.due_ms({**start, "row": 1}, start) == 5000
    first, second, third, again = rows(reader, start, {**start, "row": 4})
    assert [row["_time"] for row in (first, second, third)] == [row["at"] for row in (first, second, third)]
    assert again["_time"] > third["_time"]


def test_rows_of_many_row_groups_are_read_and_due_in_their_order(replay, monkeypatch):
    monkeypatch.setattr(convert_write, "GROUP_ROWS", (7, 7))
    seconds = [n * n % 5 + 3 * n for n in range(100)]
    text = "at,n,x\n" + "".join(
        f"2024-01-01T00:{s // 60:02}:{s % 60:02}Z,{n},0\n" for n, s in enumerate(seconds)
    )
    reader = replay(text, rate=None, loops=2)
    start = reader.initial(0)
    found = rows(reader, start, {**start, "row": 200})
    assert [row["n"] for row in found] == [*range(100)] * 2
    assert milliseconds(found)[:100] == [1000 * s for s in seconds]
    highest = list(itertools.accumulate(seconds, max))
    for at in (0, 1, 50, 151, 298):
        assert reader.advance(start, 1000 * at, 1000)["row"] == sum(s <= at for s in highest)
        assert reader.due_ms({**start, "row": at // 3}, start) == 1000 * highest[at // 3]


def test_a_long_table_is_not_held_in_memory(tmp_path):
    """A million rows of 200 bytes: 200 MB of text, read from their first to their last."""
    made = subprocess.run(
        [sys.executable, "-c", READ, tmp_path], capture_output=True, text=True, timeout=150, check=True
    )
    rows_read, used = made.stdout.split()
    assert int(rows_read) == 1_000_000
    assert int(used) < 120e6


READ = """
import resource, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from pipeline_runtime.model.schema import Field
from pipeline_runtime.operators.csv_replay import CsvReplayParams, CsvReplayReader
from pipeline_runtime.operators.recording import METADATA, Facts, open_recording
path = Path(sys.argv[1]) / "table"
facts = Facts(columns=(Field(name="s", type="string"),), time=False, rows=1_000_000)
schema = pa.schema([("s", pa.string()), ("_reject", pa.string()), ("_raw", pa.string())])
with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
    for n in range(100):
        texts = pa.array([f"{n} {k}".ljust(200, "x") for k in range(10_000)])
        none = pa.nulls(10_000, pa.string())
        writer.write_table(pa.table([texts, none, none], schema=schema))
    writer.add_key_value_metadata({METADATA: facts.model_dump_json()})
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = used()
reader = CsvReplayReader(open_recording(path), CsvReplayParams(path="upload:f", rate=1), ("s",))
start, read = reader.initial(0), 0
for row in range(0, 1_000_000, 5000):
    read += sum(len(b) for b in reader.read({**start, "row": row}, {**start, "row": row + 5000}))
print(read, used() - before)
"""


def test_only_kept_columns_are_sent(replay):
    assert set(everything(replay(keep=["x"]))[0]) == {"x", "_reject", "_raw", "_time", "_offset"}


@pytest.mark.parametrize("reference", DEMOS)
def test_a_shipped_table_is_what_the_import_makes_of_its_original(reference, tmp_path):
    SHIPPED[reference].imported(tmp_path / "table")
    assert (tmp_path / "table").read_bytes() == (DATA / DEMOS[reference]).read_bytes()


WHOLE_DEMO = ({"row": 0, "t0": 0, "shifts": []}, {"row": 17_000, "t0": 0, "shifts": []})


def test_the_demo_recording_is_as_its_documentation_says(operator, context):
    source = operator("csv-replay", {"path": "demo:debs2012", "rate": 100})
    assert len(demo_facts("demo:debs2012").columns) == 56
    reader = source.open(context(source))
    assert reader.recording.rows == 17_000
    first = rows(reader, reader.initial(0), {"row": 1, "t0": 0, "shifts": []})[0]
    assert (first["index"], first["mf01"], first["mf02"], first["mf03"]) == (2556001, 13056, 14406, 8119)
    assert first["ts"].isoformat() == "2012-02-22T16:46:28.967032+00:00"
    assert all(batch["_reject"].null_count == len(batch) for batch in reader.read(*WHOLE_DEMO))


def test_wrong_parameters_are_told(operator, mismatch):
    def table(time=True, rows=1):
        return {"columns": [{"name": "n", "type": "integer"}], "time": time, "rows": rows}

    file = {"path": "upload:f"}
    assert mismatch(operator("csv-replay", {**file, "table": table(time=False)})) == ["params.rate"]
    assert mismatch(operator("csv-replay", {**file, "table": table(rows=0)})) == ["params.path"]
    assert mismatch(operator("csv-replay", file)) == ["params.path"]
    assert operator("csv-replay", {**file, "table": table()}).output_schema({}).names == ("n",)
    assert mismatch(operator("csv-replay", {"path": "demo:debs2013", "rate": 1})) == ["params.path"]
    params = {"path": "demo:debs2012", "keep": ["mf01", "mf99"], "key": "mf02"}
    assert mismatch(operator("csv-replay", params)) == ["params.keep[1]", "params.key"]


def test_why_a_file_is_not_imported_is_told(operator, mismatch):
    def asks(reference):
        raise FileNotFoundError("a question about it is open: is 1.008 a thousand and eight?")

    assert mismatch(operator("csv-replay", {"path": "upload:f", "rate": 1}, describe_file=asks)) == [
        "params.path"
    ]


@pytest.mark.parametrize("restamp", [True, False])
def test_another_pace_goes_on_where_it_stands_and_keeps_the_recorded_distances(replay, restamp):
    fast, slow = (replay(rate=None, speed=speed, loops=0, restamp=restamp) for speed in (2, 0.5))
    stands = fast.advance(fast.initial(0), 60, 100)
    assert stands["row"] == 2
    assert slow.due_ms(stands, stands) == fast.due_ms(stands, stands) == 150, (
        "the next row is due when it was"
    )
    assert slow.advance(stands, 149, 100) is stands
    later = slow.advance(stands, 150, 100)
    assert later["row"] == 3
    assert rows(slow, stands, later) == rows(fast, stands, fast.advance(stands, 150, 100))
    assert slow.due_ms(later, later) == 150 + 4 * 75, "the fourth row comes at the new pace"
