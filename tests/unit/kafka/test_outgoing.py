"""Batches that are encoded at once are, byte for byte, those that kafka-python makes record by record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kafka.partitioner import murmur2
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from pipeline_runtime.kafka import outgoing
from pipeline_runtime.kafka.outgoing import (
    FEW,
    Outgoing,
    OutgoingRecord,
    OutgoingRows,
    bodies_by_partition,
    columns_of,
    record_batch,
)
from pipeline_runtime.kafka.record_batches import Body, Columns, bodies, bodies_of_few
from pipeline_runtime.kafka.transactions import END_HEADER
from tests.chosen import examples
from tests.unit.kafka.test_arrow_batches import written_as

Row = tuple[Any, ...]
Encode = Callable[[Columns, int], Iterator[Body]]
BATCH_BYTES = 4096
NOW_MS = 1_700_000_000_000

records = st.lists(
    st.builds(
        OutgoingRecord,
        topic=st.just("t"),
        value=st.binary(max_size=300) | st.integers(0, 1024).map(bytes),
        key=st.none() | st.binary(max_size=20) | st.integers(60, 200).map(bytes),
        timestamp_ms=st.integers(-(2**43), 2**43) | st.integers(NOW_MS, NOW_MS + 200_000),
        partition=st.none(),
        headers=st.just(()),
    ).filter(lambda record: len(record.value) + len(record.key or b"") <= BATCH_BYTES // 4),
    min_size=1,
    max_size=60,
)


def one_by_one(run: list[OutgoingRecord], bytes_max: int) -> bytes:
    builder = MemoryRecordsBuilder(2, 0, bytes_max)
    for record in run:
        assert builder.append(record.timestamp_ms, record.key, record.value, []) is not None
    return closed(builder)


def closed(builder: MemoryRecordsBuilder) -> bytes:
    builder.set_producer_state(7, 3, 11, True)
    builder.close()
    return bytes(builder.buffer())


def at_once(run: list[OutgoingRecord], bytes_max: int, encode: Encode = bodies) -> list[tuple[int, bytes]]:
    """The number of records of each batch, and its bytes."""
    return [(body.count, bytes(written_as(body, zstd=0))) for body in encode(columns_of(run), bytes_max)]


@pytest.mark.parametrize("encode", [bodies, bodies_of_few])
@settings(max_examples=examples(200))
@given(run=records)
def test_the_bytes_are_kafka_pythons_own(encode: Encode, run: list[OutgoingRecord]) -> None:
    position = 0
    for count, made in at_once(run, BATCH_BYTES, encode):
        assert made == one_by_one(run[position : position + count], 2 * BATCH_BYTES)
        assert len(made) <= BATCH_BYTES or count == 1
        position += count
    assert position == len(run)


class Written:
    """What is written to each partition. None is where any may be chosen."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def chosen(self, record: OutgoingRecord) -> int | None:
        if record.partition is not None or self._partitions == 1:
            return record.partition or 0
        return None if record.key is None else (murmur2(record.key) & 0x7FFFFFFF) % self._partitions

    def rows(self, outgoing: list[Outgoing]) -> dict[int, list[Row]]:
        found = bodies_by_partition(outgoing, lambda _: range(self._partitions))
        return {
            partition.partition: [
                (record.key, record.value, record.timestamp, record.headers)
                for body in made
                for record in DefaultRecordBatch(record_batch(body, 7, 3, 11))
            ]
            for partition, made in found.items()
        }


many = st.lists(
    st.builds(
        OutgoingRecord,
        topic=st.just("t"),
        value=st.binary(max_size=4) | st.sampled_from([0, 1000, 1024, 1025, 5000]).map(bytes),
        key=st.none() | st.binary(max_size=2),
        partition=st.none() | st.just(0),
        headers=st.just(()) | st.just((END_HEADER,)),
    ),
    max_size=40,
)


@settings(max_examples=examples(200), deadline=None)
@given(many, st.integers(1, 3), st.sampled_from([0, 3, FEW]), st.booleans())
def test_each_partition_gets_its_records_in_their_order(
    sent: list[OutgoingRecord], partitions: int, few: int, as_columns: bool
) -> None:
    sent = [record._replace(timestamp_ms=number) for number, record in enumerate(sent)]
    written = Written(partitions)
    given: list[Outgoing] = list(sent)
    if as_columns:
        runs = [(plain, list(run)) for plain, run in groupby(sent, lambda record: record.is_plain)]
        given = [
            each for plain, run in runs for each in ([OutgoingRows("t", columns_of(run))] if plain else run)
        ]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(outgoing, "FEW", few)
        found = written.rows(given)
    left = {partition: deque(rows) for partition, rows in found.items()}
    for record in sent:
        row = (record.key, record.value, record.timestamp_ms, list(record.headers))
        chosen = written.chosen(record)
        places = left if chosen is None else [chosen]
        place = next(place for place in places if left[place] and left[place][0] == row)
        left[place].popleft()
    assert not any(left.values())


def test_a_batch_takes_more_records_than_small_varints_reach() -> None:
    run = [OutgoingRecord("t", b"x", timestamp_ms=NOW_MS + n) for n in range(20_000)]

    assert at_once(run, 1 << 20) == [(20_000, one_by_one(run, 1 << 20))]


def test_batches_are_nearly_full() -> None:
    run = [OutgoingRecord("t", b"value" * 10, b"key", NOW_MS + n) for n in range(20_000)]
    *full, _ = at_once(run, 1 << 16)

    assert all(len(made) > 0.9 * (1 << 16) for _, made in full)
