"""Which groups' tasks stay, and what comes of a source's rows there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from kafka import TopicPartition
from kafka.record.memory_records import MemoryRecords

from pipeline_runtime.batch import portions
from pipeline_runtime.batch.decode import TIMESTAMP
from pipeline_runtime.batch.encoded import bodies_in
from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate_messages import (
    GateKeeper,
    GroupDescription,
    KeepStates,
    Payload,
    Request,
    Slice,
    SliceRead,
)
from pipeline_runtime.batch.group import GroupWork, run_batches
from pipeline_runtime.batch.inputs import stream_and_partition
from pipeline_runtime.batch.output import BatchOutput, unpacked
from pipeline_runtime.batch.reader import GroupReader
from pipeline_runtime.formats.schema_registry import SchemaRegistryError
from pipeline_runtime.kafka.ahead import pack
from pipeline_runtime.kafka.arrow_batches import ROWS_MIN, RecordByRecord, Rows, rows_of
from pipeline_runtime.kafka.incoming import Records
from pipeline_runtime.kafka.partition_reader import PartitionReader, fetch_bytes
from pipeline_runtime.kafka.prefetcher import first_offset_of
from pipeline_runtime.kafka.whole_batches import ManyWhole
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import DataFrameOperator, OperatorContext, Params
from pipeline_runtime.planning.plan import plan_groups
from tests.unit.batch.test_encoded import assert_same_rows
from tests.unit.kafka.test_arrow_batches import json_log_of, log_of

_NOW_MS = 2_000_000_000_000  # the rows have come before

COLUMNS = [{"name": "k"}, {"name": "n", "type": "integer"}, {"name": "x", "type": "number"}]
TOPIC = {
    "id": "in",
    "type": "kafka-in",
    "params": {"topic": "t", "columns": COLUMNS, "key": "k", "partitions": 4},
}
GENERATOR = {"id": "in", "type": "generator", "params": {"signals": [{"name": "x"}]}}
STATISTICS = {"id": "work", "type": "running-statistics", "inputs": {"in": "in"}, "params": {"column": "x"}}
FILE = {"id": "file", "type": "csv-sink", "inputs": {"in": "in"}, "params": {"file": "out.csv"}}
FILTER = {"id": "some", "type": "filter", "inputs": {"in": "in"}, "params": {"condition": "x > 0"}}
FILTER_A = {"id": "some", "type": "filter", "inputs": {"in": "in"}, "params": {"condition": "a != 'x'"}}
WINDOWS = {
    "id": "work",
    "type": "window-aggregate",
    "inputs": {"in": "in"},
    "params": {"size_s": 1, "aggregates": [{"function": "avg", "column": "x", "as": "average"}]},
}


PAIRS = {
    "id": "work",
    "type": "join",
    "inputs": {"left": "in", "right": "in"},
    "params": {"left_key": "k", "right_key": "k", "within_s": 1},
}


def spec_of(*elements: dict[str, Any], together: bool = True) -> GroupSpec:
    groups = [{"id": "all", "elements": [element["id"] for element in elements]}] if together else []
    document = parse_document(
        {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "staying"},
            "spec": {"elements": list(elements), "groups": groups},
        }
    )
    return plan_groups(document, "d1", default_registry(), {})[-1]


def keyed_by(column: str) -> dict[str, Any]:
    return {**STATISTICS, "params": {"column": "x", "key": column}}


class Sums(DataFrameOperator):
    type, title, summary, category, icon = "sums", "Sums", "A user's DataFrame", "transform", "sigma"
    Params = Params

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def transform(self, inputs: Any, ctx: OperatorContext) -> Any:
        return inputs["in"]


SUMS = {"id": "sums", "type": "sums", "inputs": {"in": "in"}, "params": {}}


@pytest.mark.parametrize(
    ("elements", "is_planned"),
    [
        ([GENERATOR, FILE, FILTER], False),
        ([TOPIC, STATISTICS], False),
        ([TOPIC, PAIRS], False),
        ([TOPIC, SUMS], True),
        ([TOPIC, STATISTICS, {**SUMS, "inputs": {"in": "work"}}], True),
    ],
)
def test_spark_plans_the_batches_of_a_group_with_a_users_dataframe(
    monkeypatch: pytest.MonkeyPatch, elements: list[dict[str, Any]], is_planned: bool
) -> None:
    monkeypatch.setitem(default_registry()._operators, "sums", Sums)
    group = GroupFacts(spec_of(*elements), {}, Path())
    assert group.is_planned == is_planned
    assert group.is_kept_by_spark == (is_planned and group.processor is None)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([TOPIC, STATISTICS], 4),
        ([TOPIC, keyed_by("k")], 4),
        ([TOPIC, keyed_by("n")], 1),
        ([TOPIC, FILTER, {**STATISTICS, "inputs": {"in": "some"}}], 1),
        ([TOPIC, FILTER], 4),
        ([TOPIC, WINDOWS], 1),
        ([GENERATOR], 1),
    ],
)
def test_partitions_are_shared_where_no_key_can_be_in_two(
    elements: list[dict[str, Any]], expected: int
) -> None:
    assert GroupFacts(spec_of(*elements), {}, Path()).tasks_max == expected


class Gate(GateKeeper):
    """Grants one batch, and takes what comes of it."""

    def __init__(self, spec: GroupSpec, directory: Path) -> None:
        kafka = {"bootstrap": "localhost:0", "security": {}}
        self._description = GroupDescription(spec.model_dump(mode="json"), kafka, {}, str(directory))
        self._granted: list[list[Slice] | None] = [[Slice(0, _NOW_MS, 0, 0, 3)], None]
        self.made: list[BatchOutput] = []
        self.read: list[SliceRead] = []

    def ask(self, request: Request[Any]) -> Any:
        return request.answered_by(self)

    def tell(self, request: Request[Any]) -> None:
        request.answered_by(self)

    def describe(self) -> GroupDescription:
        return self._description

    def slices_of(self, token: int, task: int) -> list[Slice] | None:
        return self._granted.pop(0)

    def part_processed(self, task: int, payload: Payload) -> None:
        self.made.append(unpacked(bytes(payload)))

    def slice_read(self, read: SliceRead) -> None:
        self.read.append(read)

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]:
        return [None for _ in keys]

    def states_between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        return []

    def keys_between(self, first: str, end: str, most: int) -> list[str]:
        return []

    def keep_states(self, kept: KeepStates) -> None: ...


class Three:
    """A source of three rows, one of which has a number that JSON does not have."""

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        times = [datetime(2024, 1, 1, 0, 0, second, 1500, tzinfo=UTC) for second in range(start, end)]
        yield pa.record_batch(
            {
                "key": ["a", "b", "a"],
                "n": [1, 2, 3],
                "x": [1.5, float("inf"), None],
                "_time": pa.array(times, TIMESTAMP),
                "_offset": pa.array(range(start, end), pa.int64()),
            }
        )


def test_a_sources_rows_leave_as_they_are_and_what_json_cannot_say_is_a_dead_letter(tmp_path: Path) -> None:
    gate: Any = Gate(spec_of(GENERATOR), tmp_path)
    reader = GroupReader(gate)
    sources: Any = {"in.out": Three()}
    reader._sources = sources

    run_batches(gate, GroupWork(gate, reader), 1, 0)

    [made] = gate.made
    records = made.records["in.out"]
    assert [(row["key"], json.loads(row["value"])) for row in records.to_pylist()] == [
        ("a", {"key": "a", "n": 1, "x": 1.5}),
        ("a", {"key": "a", "n": 3, "x": None}),
    ]
    assert records["time_ms"].to_pylist() == [1704067200001 + 1000 * n for n in (0, 2)]
    [letter] = made.letters.to_pylist()
    assert (letter["element"], letter["raw"]) == ("in", '{"key":"b","n":2,"x":Infinity}')
    assert "JSON does not have" in letter["reason"]
    assert (letter["offset"], letter["time_ms"]) == (1, 1704067200001 + 1000)
    assert [told.rows for told in gate.read] == [3]


def record(offset: int, **data: Any) -> list[Any]:
    return [offset, 1_700_000_000_000 + offset, str(data["k"]).encode(), json.dumps(data).encode(), []]


def test_each_row_of_an_array_has_the_key_of_its_own_record(tmp_path: Path) -> None:
    """As many rows as records do not mean one row for each."""
    source = {"topic": "t", "columns": [{"name": "x", "type": "number"}], "rows": "rows"}
    records = [
        [0, 1_700_000_000_000, b"first", b'{"rows": [{"x": 1}, {"x": 2}]}', []],
        [1, 1_700_000_000_001, b"second", b"no", []],
    ]
    made = made_of(spec_of({"id": "in", "type": "kafka-in", "params": source}, FILTER), tmp_path, records)
    assert [key for key, _ in made["some.out"]] == ["first", "first"]


def test_a_refused_row_of_an_array_may_hold_half_a_surrogate_pair(tmp_path: Path) -> None:
    source = {"topic": "t", "columns": [{"name": "a"}], "rows": "rows"}
    spec = spec_of({"id": "in", "type": "kafka-in", "params": source}, FILTER_A)
    rows = json.dumps({"rows": [{"a": "\ud800"}, {"a": "é"}, {"a": 1, "b": "é"}]}).encode()
    gate: Any = Gate(spec, tmp_path)
    gate._granted = [[Slice(0, _NOW_MS, 0, 0, 1, [[0, 1_700_000_000_000, b"k", rows, []]])], None]
    run_batches(gate, GroupWork(gate, GroupReader(gate)), 1, 0)
    [made] = gate.made
    assert [json.loads(row) for row in made.records["some.out"]["value"].to_pylist()] == [{"a": "é"}]
    half, number = gate.read[0].rejects
    assert "half of a character" in half.reason
    assert half.raw == '{"a": "\\ud800"}'
    assert number.raw == '{"a": 1, "b": "é"}'


def test_a_batch_that_is_followed_asks_no_schema_registry(tmp_path: Path) -> None:
    out = {"id": "out", "type": "kafka-out", "inputs": {"in": "in"}}
    spec = spec_of(TOPIC, {**out, "params": {"topic": "u", "format": "avro", "registry": "plant"}})
    part = Slice(0, _NOW_MS, 0, 0, 1, [record(0, k="a", n=1, x=1.0)])
    gate: Any = Gate(spec, tmp_path)
    gate._granted = [[replace(part, followed=True)], None]
    run_batches(gate, GroupWork(gate, GroupReader(gate)), 1, 0)
    assert len(gate.made) == 1
    gate._granted = [[part], None]
    with pytest.raises(SchemaRegistryError):
        run_batches(gate, GroupWork(gate, GroupReader(gate)), 1, 0)


def lies_in(letter: dict[str, Any], spec: GroupSpec) -> tuple[str | None, int, int]:
    return *stream_and_partition(spec, letter["partition"]), letter["offset"]


def test_a_letter_says_from_which_stream_its_row_came_with_the_rows_key_and_time(tmp_path: Path) -> None:
    """Both streams have a row that is late, at offset 1."""
    other = {**TOPIC, "id": "other", "params": {**TOPIC["params"], "topic": "u"}}
    spec = spec_of(TOPIC, other, {**PAIRS, "inputs": {"left": "in", "right": "other"}})
    streams = [[record(0, k="new", n=1, x=1.0), record(1, k=key, n=1, x=1.0)] for key in ("a", "b")]
    for at, rows in enumerate(streams):
        rows[1][1] -= 60_000 + at
    left, right = made_of(spec, tmp_path, *streams)["work.dead"]
    assert (left["key"], left["time_ms"]) == ("a", streams[0][1][1])
    assert (right["key"], right["time_ms"]) == ("b", streams[1][1][1])
    assert [lies_in(letter, spec) for letter in (left, right)] == [("in.out", 0, 1), ("other.out", 0, 1)]


def test_a_letter_has_its_own_rows_key_and_time_whatever_stands_before_its_element(tmp_path: Path) -> None:
    """Behind a window, what a row's place was says nothing of it."""
    count = {"function": "count", "as": "rows"}
    windows = {**WINDOWS, "params": {"size_s": 1, "keys": ["k"], "aggregates": [count]}}
    never = {"columns": [{"name": "r", "expression": "1 / (rows - 1)"}]}
    ratio = {**RATIO, "inputs": {"in": "work"}, "params": never}
    spec = spec_of(TOPIC, windows, ratio)
    records = [record(1000 * n, k="ab"[n > 0], n=n, x=1.0) for n in range(4)]
    found = made_of(spec, tmp_path, records)
    first, *_ = found["ratio.dead"]
    assert first["key"] == "a"
    assert first["time_ms"] == records[1][1]  # when the first window ends
    assert lies_in(first, spec)[0] is None


def made_of(spec: GroupSpec, directory: Path, *inputs: list[list[Any]]) -> dict[str, list[Any]]:
    """What comes of one batch of these records of its inputs, by where it goes: key and row; for a sink the
    row alone; dead letters."""
    gate: Any = Gate(spec, directory)
    ends = [max((offset for offset, *_ in records), default=0) + 1 for records in inputs]
    slices = [
        Slice(index, _NOW_MS, 0, 0, end, records)
        for index, (end, records) in enumerate(zip(ends, inputs, strict=True))
    ]
    gate._granted = [slices, None]
    run_batches(gate, GroupWork(gate, GroupReader(gate)), 1, 0)
    found: dict[str, list[Any]] = {}
    [output] = gate.made
    for source, rows in output.records.items():
        found[source] = [(row["key"], json.loads(row["value"])) for row in rows.to_pylist()]
    for source, rows in output.sinks.items():
        found[f"{source} to sink"] = rows.to_pylist()
    for letter in output.letters.to_pylist():
        found.setdefault(f"{letter['element']}.dead", []).append(letter)
    return found


RECORDS = [
    record(0, k="a", n=1, x=2.5),
    record(1, k="b", n=0, x=1.0),
    record(2, k="a", n=2, x=-1.0),
    record(3, k="c", n=3, x=None),
]
RATIO = {
    "id": "ratio",
    "type": "derive",
    "inputs": {"in": "in"},
    "params": {"columns": [{"name": "r", "expression": "x / n"}, {"name": "twice", "expression": "r * 2"}]},
}
POSITIVE = {
    **FILTER,
    "id": "positive",
    "inputs": {"in": "ratio"},
    "params": {"condition": "r > 0 or r is null"},
}


def test_elements_of_a_group_are_given_what_those_before_have_made(tmp_path: Path) -> None:
    spec = spec_of(TOPIC, RATIO, {**POSITIVE, "params": {"condition": "r > 0"}})
    found = made_of(spec, tmp_path, RECORDS)
    assert found["positive.out"] == [("a", {"k": "a", "n": 1, "x": 2.5, "r": 2.5, "twice": 5.0})]
    [letter] = found["ratio.dead"]
    assert letter["reason"] == 'column "r" has no value for this row'
    assert json.loads(letter["raw"])["k"] == "b"


def test_of_merged_streams_none_makes_rows_of_another_late(tmp_path: Path) -> None:
    """One that has been read for long, and a new one."""
    other = {**TOPIC, "id": "other", "params": {**TOPIC["params"], "topic": "u"}}
    merged = {"id": "merged", "type": "merge", "inputs": {"in1": "in", "in2": "other"}}
    count = {"function": "count", "as": "rows"}
    windows = {**WINDOWS, "inputs": {"in": "merged"}, "params": {"size_s": 1, "aggregates": [count]}}
    rows = [record(1000 * n, k="a", n=n, x=1.0) for n in range(5)]
    long = [[5000 + n, *row[1:]] for n, row in enumerate(rows)]
    new = [[n, *row[1:]] for n, row in enumerate(rows)]
    for streams in ((long, new), (new, long)):
        found = made_of(spec_of(TOPIC, other, merged, windows), tmp_path, *streams)
        assert [row["rows"] for _, row in found["work.out"]] == [2, 2, 2, 2]


def test_only_streams_that_leave_the_group_are_written(tmp_path: Path) -> None:
    found = made_of(spec_of(TOPIC, RATIO, POSITIVE), tmp_path, RECORDS)
    assert set(found) == {"positive.out", "ratio.dead"}
    both = made_of(spec_of(TOPIC, RATIO, POSITIVE, {**FILE, "inputs": {"in": "ratio"}}), tmp_path, RECORDS)
    assert set(both) == {*found, "ratio.out to sink"}
    assert [row["k"] for row in both["ratio.out to sink"]] == ["a", "a", "c"]


TYPES = {"k": "string", "x": "number", "b": "boolean", "t": "timestamp"}


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("k", "a", "a"),
        ("x", 2.0, "2.0"),
        ("b", True, "true"),
        ("t", "2024-05-01T12:00:00Z", "2024-05-01T12:00:00.000000Z"),
    ],
)
def test_a_key_is_the_same_text_whatever_element_makes_it(
    tmp_path: Path, column: str, value: Any, text: str
) -> None:
    columns = [{"name": name, "type": type_} for name, type_ in TYPES.items()]
    source = {**TOPIC, "params": {**TOPIC["params"], "columns": columns, "key": column}}
    by_row = {"id": "work", "type": "deduplicate", "inputs": {"in": "in"}, "params": {}}
    latest = {"function": "last", "column": "x", "as": "latest"}
    by_batch = {**by_row, "type": "keyed-aggregate", "params": {"keys": [column], "aggregates": [latest]}}
    plain = {**by_row, "type": "filter", "params": {"condition": "true"}}
    for element in (by_row, by_batch, plain):
        found = made_of(spec_of(source, element), tmp_path, [record(0, **{"k": "a", column: value})])
        assert [key for key, _ in found["work.out"]] == [text], element


def test_the_key_is_what_the_streams_schema_says(tmp_path: Path) -> None:
    renamed = {
        "id": "renamed",
        "type": "select",
        "inputs": {"in": "in"},
        "params": {"columns": [{"column": "n"}, {"column": "x"}], "key": "n"},
    }
    found = made_of(spec_of(TOPIC, renamed), tmp_path, RECORDS)
    assert [key for key, _ in found["renamed.out"]] == ["1", "0", "2", "3"]


def test_the_key_of_an_aggregate_is_written_as_other_elements_write_it(tmp_path: Path) -> None:
    truth = {
        "id": "truth",
        "type": "derive",
        "inputs": {"in": "in"},
        "params": {"columns": [{"name": "large", "expression": "n > 1"}]},
    }
    counts = {
        "id": "counts",
        "type": "keyed-aggregate",
        "inputs": {"in": "truth"},
        "params": {"keys": ["large"], "aggregates": [{"function": "count", "as": "rows"}]},
    }
    found = made_of(spec_of(TOPIC, truth, counts), tmp_path, RECORDS)
    assert [(key, row) for key, row in found["counts.out"]] == [
        ("false", {"large": False, "rows": 2}),
        ("true", {"large": True, "rows": 2}),
    ]


def test_what_all_partitions_of_a_task_fetch_together_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them holds a fetch while the task is busy with others. The definition says 4 partitions; the
    topic has got more."""
    fetches: list[int] = []

    class Bounded(PartitionReader):
        def read(self, start: int, end: int, topic_id: str = "") -> Iterator[Records]:
            fetches.append(self._fetch_bytes)
            yield from ()

    monkeypatch.setattr(portions, "PartitionReader", Bounded)
    gate: Any = Gate(spec_of(TOPIC, FILTER), tmp_path)
    for count in (4, 100):
        gate._granted = [[Slice(0, _NOW_MS, partition, 0, 9) for partition in range(count)], None]
        fetches.clear()
        run_batches(gate, GroupWork(gate, GroupReader(gate)), 1, 0)
        assert len(fetches) == count
        assert sum(fetches) <= 64 << 20
        assert min(fetches) >= 256 << 10
    assert fetch_bytes(1) == 8 << 20


@pytest.mark.parametrize("as_columns", [True, False])
def test_what_was_read_ahead_whole_gives_what_its_records_give(tmp_path: Path, as_columns: bool) -> None:
    """The slice begins and ends within batches."""
    spec = spec_of(GENERATOR, FILTER, together=False)
    [item] = spec.inputs
    partition = TopicPartition(item.topic, 0)
    several = [generated(100), generated(ROWS_MIN - 1, 100), generated(100, 99 + ROWS_MIN)]
    log = log_of(several, 1 << 18) if as_columns else json_log_of(several)
    start, end = 10, 150 + ROWS_MIN
    made = []
    for taken_by in (RecordByRecord, ManyWhole):
        records = taken_by(start, partition, MemoryRecords(log)).take()
        packed = [pack(each) for each in records if first_offset_of(each) < end]
        gate: Any = Gate(spec, tmp_path)
        slices = [Slice(0, _NOW_MS, 0, start, end, packed)]
        gate._granted = [[replace(each, followed=True) for each in slices], slices, None]
        run_batches(gate, GroupWork(gate, GroupReader(gate)), 1, 0)
        checked, to_commit = gate.made
        assert checked.letters.num_rows == 0
        assert [read.rows for read in gate.read] == [end - start] * 2
        assert (list(checked.rows), list(to_commit.rows)) == (["some.out"], [])
        assert (list(checked.bodies), list(to_commit.bodies)) == ([], ["some.out"])
        rows = checked.rows["some.out"].combine_chunks()
        [body] = bodies_in(to_commit.bodies["some.out"])
        assert_same_rows(rows_of(body), Rows.of(rows, 0))
        made.append(rows)
    by_record, whole = made
    assert whole.num_rows == sum(n % 2 == 0 for n in range(start, end))
    assert whole.equals(by_record)


def generated(count: int, first: int = 0) -> Rows:
    """Rows of the generator's stream."""
    numbers = range(first, first + count)
    fields = pa.table(
        {
            "key": pa.array([f"k{n % 3}" for n in numbers]),
            "n": pa.array(numbers, pa.int64()),
            "x": pa.array([n / 4 if n % 2 == 0 else -1.0 for n in numbers]),
        }
    )
    keys = pa.array([b"k%d" % (n % 3) for n in numbers], pa.binary())
    return Rows(keys, np.array([1_700_000_000_000 + n for n in numbers], np.int64), fields)
