"""Rows that are written as columns are what was given, whoever reads them and from wherever."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from kafka import TopicPartition
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from pipeline_runtime.kafka.arrow_batches import BODY_BYTES_MAX, ROWS_MAX, RecordByRecord, Rows, encoded
from pipeline_runtime.kafka.incoming import Polled, Records
from pipeline_runtime.kafka.narrow import packed, unpacked
from pipeline_runtime.kafka.outgoing import record_batch
from pipeline_runtime.kafka.record_batches import Body, bodies
from pipeline_runtime.kafka.whole_batches import WholeBatches
from tests.chosen import examples

OWN, USERS = TopicPartition("fl.d.a.out", 0), TopicPartition("readings", 0)
TIME = pa.timestamp("us", tz="UTC")
NOW_US = 1_700_000_000_000_000

COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300) | st.integers(10**12, 10**12 + 70_000),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-5_000, 5_000).map(lambda n: n / 100)
    | st.sampled_from([0.0, -0.0, 1e300, 5e-324, 2.0**53, 0.1, 1 / 3]),
    pa.string(): st.sampled_from(["pump", "fan", "", "ü", '"'])
    | st.text(st.characters(exclude_categories=("Cs",))),
    pa.bool_(): st.booleans(),
    TIME: st.integers(NOW_US, NOW_US + 10**9) | st.integers(0, 2**50),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 90))
    arrays, fields = [], []
    for place, type_ in enumerate(draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))):
        one = COLUMNS[type_]
        values = st.lists(one, min_size=count, max_size=count) | one.map(lambda v, n=count: [v] * n)
        with_nulls = st.lists(st.none() | one, min_size=count, max_size=count)
        arrays.append(pa.array(draw(values | with_nulls), type_))
        fields.append(pa.field(f"f{place}", type_))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def same(table: pa.Table, other: pa.Table) -> bool:
    """The same to the bit: -0.0 is not 0.0."""
    return table.schema.equals(other.schema) and repr(table.to_pydict()) == repr(other.to_pydict())


@settings(max_examples=examples(200))
@given(tables())
def test_a_table_is_the_same_after_it_was_packed(table: pa.Table) -> None:
    assert same(unpacked(memoryview(packed(table))), table)


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64(), TIME])
def test_a_series_with_gaps_is_the_same_after_it_was_packed(type_: pa.DataType) -> None:
    """A step of a walk must not be hidden by the null that it leads to."""
    for seed in range(50):
        walk = np.random.default_rng(seed).integers(-40, 60, 300).cumsum()
        values: list[int | float | None] = [5, None, 3, *walk.tolist(), None]
        if type_ == pa.float64():
            values = [None if value is None else value / 10 for value in values]
        table = pa.table({"v": pa.array(values, pa.int64() if type_ == TIME else type_).cast(type_)})
        assert same(unpacked(memoryview(packed(table))), table)


def test_a_key_that_is_one_of_the_fields_takes_no_room() -> None:
    machines = pa.array([None if n % 7 == 0 else f"machine {n}" for n in range(300)])
    table = pa.table({"n": pa.array(range(300)), "machine": machines})
    keyed = table.append_column("_key", machines.cast(pa.binary()))
    assert same(unpacked(memoryview(packed(keyed))), keyed)
    assert len(packed(keyed)) < len(packed(table)) + 50 < keyed.nbytes

    other = table.append_column("_key", pa.array([f"machine {n}".encode() for n in range(300)]))
    assert same(unpacked(memoryview(packed(other))), other)


def test_large_rows_are_cut_into_batches_that_kafka_takes() -> None:
    texts = ["small"] * 3_000 + [random_text(12_000) for _ in range(250)] + ["small"] * 3_000
    given = Rows(
        pa.nulls(len(texts), pa.binary()), np.zeros(len(texts), np.int64), pa.table({"text": pa.array(texts)})
    )
    made = encoded(given, 256 * 1024)
    assert max(len(body.data) for body in made) <= BODY_BYTES_MAX
    assert sum(body.count for body in made) == len(texts)
    log = log_of([given], 256 * 1024)
    assert (
        pa.concat_tables([each.rows for each in in_columns(log, 0, len(texts))])["text"].to_pylist() == texts
    )


def random_text(length: int) -> str:
    return "".join(map(chr, np.random.default_rng(length).integers(97, 123, length)))


def test_measured_values_take_few_bytes() -> None:
    count = 1_000
    table = pa.table(
        {
            "n": pa.array(range(10**9, 10**9 + count)),
            "power": pa.array([230 + (n % 97) / 100 for n in range(count)]),
            "machine": pa.array([f"machine {n % 20}" for n in range(count)]),
            "at": pa.array([NOW_US + 1_000 * n for n in range(count)], TIME),
        }
    )
    assert len(packed(table)) < 6 * count < table.nbytes / 6


def rows(count: int, first: int = 0) -> Rows:
    numbers = range(first, first + count)
    fields = pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "text": pa.array([None if n % 7 == 0 else f'say "{n}"' for n in numbers], pa.string()),
            "value": pa.array([n / 8 for n in numbers]),
            "on": pa.array([n % 2 == 0 for n in numbers]),
            "at": pa.array([NOW_US + n for n in numbers], TIME),
        }
    )
    keys = pa.array([None if n % 5 == 0 else b"k%d" % (n % 3) for n in numbers], pa.binary())
    times_ms = np.array([NOW_US // 1000 + (n * 37) % 1_000 for n in numbers], np.int64)
    return Rows(keys, times_ms, fields)


def log_of(several: list[Rows], bytes_max: int, zstd: int = 4) -> bytes:
    """The rows as a broker has them."""
    return _log_of((body for one in several for body in encoded(one, bytes_max)), zstd)


def json_log_of(several: list[Rows], zstd: int = 4) -> bytes:
    """The rows as JSON, as a broker has them, in a batch for each of `several`."""
    return _log_of((body for one in several for body in bodies(one.as_json(), 1 << 20)), zstd)


def written_as(body: Body, zstd: int) -> bytearray:
    """The batch as it is sent. `zstd`: 0 if it is not compressed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(DefaultRecordBatchBuilder, "CODEC_ZSTD", zstd)
        return record_batch(body, 7, 3, 11)


def _log_of(made: Iterable[Body], zstd: int) -> bytes:
    log, offset = b"", 0
    for body in made:
        written = written_as(body, zstd)
        written[:8] = offset.to_bytes(8, "big")
        log, offset = log + bytes(written), offset + body.count
    return log


class Consumer:
    def __init__(self, log: bytes, start: int) -> None:
        self.records = WholeBatches(start, OWN, MemoryRecords(log))

    def poll(self, _: int) -> dict[TopicPartition, list[Any]]:
        return {OWN: self.records.take()}


def in_columns(log: bytes, start: int, end: int) -> list[Records]:
    polled = Polled(may_hold_rows=True)
    polled.poll(Consumer(log, start), 0)  # type: ignore[arg-type]
    found = []
    while polled.next_offset is not None and polled.next_offset < end:
        found.append(polled.take(start, end))
    return found


def record_by_record(log: bytes, start: int, partition: TopicPartition = OWN) -> list[Any]:
    taken: list[Any] = RecordByRecord(start, partition, MemoryRecords(log)).take()
    return taken


@pytest.mark.parametrize(
    ("bytes_max", "counts"), [(1, (25, 100)), (20_000, (2_500, 10_000)), (1 << 18, (2_500, 10_000))]
)
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.0, 0.008), (0.064, 0.4), (0.992, 1.0)])
def test_rows_are_read_as_columns_and_record_by_record(
    bytes_max: int, counts: tuple[int, int], part: tuple[float, float]
) -> None:
    start, end = (round(sum(counts) * at) for at in part)
    log = log_of([rows(counts[0]), rows(counts[1], first=counts[0])], bytes_max)
    expected = rows(sum(counts))

    found = in_columns(log, start, end)

    offsets = np.concatenate([each.offsets for each in found])
    assert offsets.tolist() == list(range(start, end))
    assert same(pa.concat_tables([each.rows for each in found]), expected.fields.slice(start, end - start))
    keys = pa.chunked_array([each.keys for each in found]).to_pylist()
    assert keys == expected.keys.to_pylist()[start:end]
    times_ms = np.concatenate([each.timestamps_ms for each in found])
    assert times_ms.tolist() == expected.times_ms[start:end].tolist()

    records = [each for each in record_by_record(log, start) if each.offset < end]
    assert [each.offset for each in records] == list(range(start, end))
    assert [each.timestamp for each in records] == expected.times_ms[start:end].tolist()
    assert [each.key for each in records] == expected.keys.to_pylist()[start:end]
    assert not any(each.headers for each in records)
    for record, row in zip(records, expected.fields.slice(start, end - start).to_pylist(), strict=True):
        read = json.loads(record.value)
        row["at"] = row["at"].astimezone(UTC)
        assert read | {"at": datetime.fromisoformat(read["at"])} == row


def test_rows_and_records_may_follow_each_other() -> None:
    log = log_of([rows(300)], 1 << 18)
    builder = MemoryRecordsBuilder(2, 0, 1 << 16)
    for n in range(5):
        builder.append(NOW_US // 1000, None, b'{"n": %d}' % n, [])
    builder.close()
    few = bytearray(builder.buffer())
    few[:8] = (300).to_bytes(8, "big")
    found = in_columns(log + bytes(few), 0, 305)
    assert [(len(each), each.rows is None) for each in found] == [(300, False), (5, True)]


def test_only_fogline_is_believed_to_write_columns() -> None:
    log = log_of([rows(300)], 1 << 18)
    records = record_by_record(log, 0, USERS)
    assert len(records) == 300
    assert records[0].headers[0][0] == "fogline-arrow"
    assert {each.value for each in records[1:]} == {None}


def test_a_batch_that_is_not_as_it_says_is_read_as_records() -> None:
    [body] = encoded(rows(300), 1 << 18)
    for damage in (40, 400, 2_000):
        data = bytearray(body.data)
        data[damage : damage + 8] = b"\xff" * 8
        damaged = written_as(replace(body, data=memoryview(bytes(data))), zstd=0)
        found = in_columns(bytes(damaged), 0, 300)
        assert sum(len(each) for each in found) == 300


def test_rows_that_become_small_are_in_few_batches() -> None:
    given = rows(2 * ROWS_MAX)  # as they are, with what is around them, they have 1.2 MB
    assert [body.count for body in encoded(given, BODY_BYTES_MAX)] == [ROWS_MAX, ROWS_MAX]


def test_no_batch_has_more_rows_than_its_readers_expect() -> None:
    fields = pa.table({"n": pa.nulls(25_000, pa.int64())})
    small = Rows(pa.nulls(25_000, pa.binary()), np.zeros(25_000, np.int64), fields)
    assert [body.count for body in encoded(small, 1 << 30)] == [ROWS_MAX, ROWS_MAX, 5_000]
