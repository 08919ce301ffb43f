"""Rows do not depend on what of a topic was read ahead, nor on where the batches are cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch import portions
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.portions import Portion, PortionReader, read_ahead
from pipeline_runtime.formats.schema_registry import SchemaRegistryError
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.incoming import Records
from pipeline_runtime.kafka.transactions import END_HEADER
from pipeline_runtime.kafka.unpacking import UNREAD
from pipeline_runtime.model.dead_letters import FOR_HEADER
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordFormat, RecordReading
from tests.schema_registry import RegistryServer

SCHEMA = StreamSchema(fields=(Field(name="n", type=FieldType.INTEGER),))
INSIDE = GroupInput(index=0, source="a.out", schema=SCHEMA, topic="t")
ARRAYS = RecordReading(columns=(ColumnReading(path=("n",)),), rows=("rows",))
OUTSIDE = GroupInput(index=0, source="a.out", schema=SCHEMA, topic="t", external=True, reading=ARRAYS)

ONE = st.sampled_from([b'{"n":1}', b'{"n":2,"rows":[{"n":3},{"n":"x"},{"n":4}]}', b"no", None])
LOG = st.lists(st.tuples(ONE, st.integers(1, 4), st.sampled_from([None, END_HEADER[0], UNREAD])), max_size=12)


def records_of(log: list[tuple[Any, int, str | None]]) -> Records:
    """Each record with its distance from the one before, and the name of a header."""
    offsets = np.cumsum([0, *(gap for _, gap, _ in log)])[1:] if log else np.array([], np.int64)
    return Records(
        offsets.astype(np.int64),
        1_000 + offsets.astype(np.int64),
        pa.array([b"k%d" % place for place in range(len(log))], pa.binary()),
        pa.array([value for value, *_ in log], pa.binary()),
        {place: ((name, b"why"),) for place, (_, _, name) in enumerate(log) if name is not None},
    )


class Partition:
    """Implements PartitionReader over records that are here. `sizes`: how far it reads ahead each time."""

    def __init__(self, records: Records, sizes: list[int]) -> None:
        self._records = records
        self._sizes = sizes
        self._next = -1

    def read(self, start: int, end: int, topic_id: str) -> Iterator[Records]:
        middle = (start + end) // 2
        for first, last in pairwise([start, middle, end]):
            if len(found := self._records.between(first, last)):
                yield found
        self._next = end

    def is_of(self, topic_id: str) -> bool:
        return True

    def ahead(self, start: int, topic_id: str, wait_ms: int = 0) -> tuple[Records, int] | None:
        if self._next != start or not self._sizes:
            return None
        self._next = start + self._sizes.pop()
        return self._records.between(start, self._next), self._next


def reader_of(monkeypatch: pytest.MonkeyPatch, item: GroupInput, partition: Partition) -> PortionReader:
    monkeypatch.setattr(portions, "PartitionReader", lambda *_: partition)
    return PortionReader(KafkaSettings("nowhere:1"), item, 0)


def what_is_in(found: Iterator[Portion]) -> tuple[list[Any], ...]:
    rows, rejects, ends, unread = [], [], [], []
    for portion in found:
        read, offsets = portion.read, portion.records.offsets
        places = read.places.tolist()
        keys, numbers = portion.records.keys.to_pylist(), read.columns["n"].to_pylist()
        times = read.times_us.tolist()
        for place, number, time_us in zip(places, numbers, times, strict=True):
            rows.append((int(offsets[place]), keys[place], number, time_us))
        rejects += [(int(offsets[reject.index]), reject.reason) for reject in read.rejects]
        ends += portion.ends
        unread += portion.unread.items()
    return rows, rejects, ends, unread


@pytest.mark.parametrize("item", [INSIDE, OUTSIDE], ids=["inside", "outside"])
@given(
    log=LOG,
    cuts=st.lists(st.integers(0, 50), max_size=6),
    sizes=st.lists(st.integers(1, 9), max_size=9),
    beside_from=st.integers(1, 5),
)
def test_what_is_read_ahead_is_cut_where_the_batches_are(
    item: GroupInput,
    log: list[tuple[Any, int, str | None]],
    cuts: list[int],
    sizes: list[int],
    beside_from: int,
) -> None:
    records, ends = records_of(log), [0, *sorted(cuts), 60]
    with pytest.MonkeyPatch.context() as monkeypatch:
        plain = reader_of(monkeypatch, item, Partition(records, []))
        expected = [what_is_in(plain.read(start, end)) for start, end in pairwise(ends)]
        monkeypatch.setattr(portions, "PARSED_BESIDE_MIN", beside_from)
        ahead = reader_of(monkeypatch, item, Partition(records, sizes))
        found = []
        for start, end in pairwise(ends):
            found.append(what_is_in(ahead.read(start, end)))
            read_ahead([ahead], [ahead], after(2))
    assert found == expected


def test_a_row_that_comes_back_to_one_element_is_passed_by_the_others() -> None:
    log = [(b'{"n":1}', 1, None), (b'{"n":2}', 1, FOR_HEADER), (b'{"n":3}', 1, None)]  # for the element "why"
    offsets = {}
    for reader in ("why", "other"):
        portion = Portion.of(records_of(log), replace(INSIDE, consumer=reader))
        offsets[reader] = portion.records.offsets[portion.read.places].tolist()
    assert offsets == {"why": [1, 2, 3], "other": [1, 3]}


def test_a_batch_that_begins_elsewhere_gets_nothing_of_what_was_read_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = records_of([(b'{"n":%d}' % n, 1, None) for n in range(20)])
    reader = reader_of(monkeypatch, INSIDE, Partition(records, [5, 5]))
    list(reader.read(0, 5))
    read_ahead([reader], [reader], after(2))
    rows, *_ = what_is_in(reader.read(2, 9))
    assert [offset for offset, *_ in rows] == list(range(2, 9))
    read_ahead([reader], [reader], after(2))
    rows, *_ = what_is_in(reader.read(9, 12))
    assert [offset for offset, *_ in rows] == [9, 10, 11]


def test_behind_an_empty_range_elsewhere_nothing_is_read_ahead_from_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = records_of([(b'{"n":%d}' % n, 1, None) for n in range(30)])
    reader = reader_of(monkeypatch, INSIDE, Partition(records, [3, 3]))
    list(reader.read(0, 5))
    list(reader.read(20, 20))
    read_ahead([reader], [reader], after(2))
    rows, *_ = what_is_in(reader.read(20, 23))
    assert [offset for offset, *_ in rows] == [20, 21, 22]


def test_a_record_whose_schema_is_not_known_fails_when_it_is_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was read ahead says nothing of a batch before it."""
    reading = RecordReading(
        columns=(ColumnReading(path=("n",)),), format=RecordFormat(kind="avro", registry="plant")
    )
    item = replace(OUTSIDE, reading=reading)
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    with RegistryServer() as server:
        known = b"\0" + server.register("t-value", json.dumps(schema)).to_bytes(4) + b"\x02"
        records = records_of([(known, 1, None), (known, 1, None), (b"\0" + (9).to_bytes(4), 1, None)])
        asker = server.asker()
        monkeypatch.setattr(portions, "PartitionReader", lambda *_: Partition(records, [9]))
        reader = PortionReader(KafkaSettings("nowhere:1"), item, 0, registries=lambda _: asker)
        [rows, *_] = what_is_in(reader.read(0, 2))
        assert rows == [(1, b"k0", 1, 1_001_000)]
        assert reader.read_one_ahead() is not None
        with pytest.raises(SchemaRegistryError, match="The records of the topic t wait: ") as waits:
            reader.held(2, 11)
        assert (waits.value.number, waits.value.place) == (9, 3)


def test_no_more_is_read_ahead_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "AHEAD_ROWS_MAX", 4)
    records = records_of([(b'{"n":1}', 1, None) for _ in range(50)])
    partition = Partition(records, [3] * 10)
    reader = reader_of(monkeypatch, INSIDE, partition)
    list(reader.read(0, 5))
    for _ in range(3):
        read_ahead([reader], [reader], lambda: False)
    assert len(partition._sizes) == 8


def test_all_partitions_of_a_task_are_read_ahead_in_turn_and_have_one_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(portions, "AHEAD_ROWS_MAX", 10)
    records = records_of([(b'{"n":1}', 1, None) for _ in range(50)])
    readers = [reader_of(monkeypatch, INSIDE, Partition(records, [2] * 20)) for _ in range(3)]
    for reader in readers:
        list(reader.read(0, 5))
    read_ahead(readers, readers, lambda: False)
    assert [reader.ahead()[0] for reader in readers] == [4, 4, 2]
    list(readers[0].read(5, 9))
    read_ahead(readers[:1], readers, lambda: False)
    assert [reader.ahead()[0] for reader in readers] == [4, 4, 2], "what the others hold counts"


def after(times: int) -> Callable[[], bool]:
    """Returns a function that says no so many times."""
    left = iter([False] * times)
    return lambda: next(left, True)
