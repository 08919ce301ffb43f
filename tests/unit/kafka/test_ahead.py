"""Tests that records that were read ahead reach the task unchanged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from kafka import TopicPartition
from kafka.record.memory_records import MemoryRecords
from msgspec import msgpack

from pipeline_runtime.kafka.ahead import pack, unpack
from pipeline_runtime.kafka.arrow_batches import ROWS_MIN, Rows
from pipeline_runtime.kafka.incoming import Records
from pipeline_runtime.kafka.whole_batches import ManyWhole
from tests.unit.kafka.test_arrow_batches import OWN, USERS, in_columns, json_log_of, log_of, rows, same

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2)
RECORDS = st.builds(
    SimpleNamespace,
    timestamp=st.integers(0, 2**62),
    key=st.none() | st.binary(),
    value=st.none() | st.binary(),
    headers=HEADERS,
)


def passed_on(records: list[Any], topic: str) -> list[Records]:
    return list(unpack(msgpack.decode(msgpack.encode([pack(record) for record in records])), topic))


@given(st.integers(0, 2**62), st.lists(RECORDS, min_size=1, max_size=5))
def test_any_bytes_survive_the_way_through_the_gate(first: int, records: list[SimpleNamespace]) -> None:
    for place, record in enumerate(records):
        record.offset = first + place
    [found] = passed_on(records, "readings")
    assert found.offsets.tolist() == [record.offset for record in records]
    assert found.timestamps_ms.tolist() == [record.timestamp for record in records]
    assert found.keys.to_pylist() == [record.key for record in records]
    assert found.values.to_pylist() == [record.value for record in records]
    assert [list(found.headers.get(place, ())) for place in range(len(records))] == [
        record.headers for record in records
    ]


def read_ahead(log: bytes, partition: TopicPartition = OWN, start: int = 0) -> list[Any]:
    found: list[Any] = ManyWhole(start, partition, MemoryRecords(log), check_crcs=False).take()
    return found


@pytest.mark.parametrize("count", [1, ROWS_MIN - 1, ROWS_MIN, 3_000])
def test_rows_as_columns_stay_columns_on_the_way_through_the_gate(count: int) -> None:
    log = log_of([rows(count), rows(400, first=count)], 1 << 18)
    [*_, last] = found = passed_on(read_ahead(log), OWN.topic)
    assert sum(map(len, found)) == count + 400
    assert last.rows is not None
    if count >= ROWS_MIN:
        [expected] = in_columns(log, 0, count + 400)
        [got] = found
        assert got.rows is not None
        assert expected.rows is not None
        assert same(got.rows, expected.rows)
        assert got.offsets.tolist() == expected.offsets.tolist()
        assert got.keys.equals(expected.keys)
        assert got.timestamps_ms.tolist() == expected.timestamps_ms.tolist()


@pytest.mark.parametrize("zstd", [0, 4])
def test_many_json_records_are_passed_on_whole_and_few_one_by_one(zstd: int) -> None:
    many, few = rows(ROWS_MIN), rows(3, first=ROWS_MIN)
    log = json_log_of([many, few], zstd)
    records = read_ahead(log)
    assert len(records) == 1 + len(few)
    found = passed_on(records, OWN.topic)
    texts = pa.chunked_array([each.values for each in found]).to_pylist()
    assert texts == [*many.as_json().values.to_pylist(), *few.as_json().values.to_pylist()]
    assert [offset for each in found for offset in each.offsets.tolist()] == list(range(ROWS_MIN + 3))


def test_a_users_topic_is_read_ahead_record_by_record() -> None:
    assert len(read_ahead(json_log_of([rows(2 * ROWS_MIN)]), USERS)) == 2 * ROWS_MIN


def test_a_batch_whose_rows_are_large_is_read_ahead_record_by_record() -> None:
    texts = pa.table({"text": pa.array(["x" * 12_000] * ROWS_MIN)})
    large = Rows(pa.nulls(ROWS_MIN, pa.binary()), rows(ROWS_MIN).times_ms, texts)
    assert len(read_ahead(json_log_of([large]))) == ROWS_MIN


def test_a_damaged_batch_is_passed_on_with_a_reason_for_each_record() -> None:
    log = bytearray(json_log_of([rows(ROWS_MIN)], zstd=4))
    log[80:120] = bytes(40)
    found = passed_on(read_ahead(bytes(log)), OWN.topic)
    assert sum(map(len, found)) == ROWS_MIN
    assert sum(len(each.unread) for each in found) == ROWS_MIN
