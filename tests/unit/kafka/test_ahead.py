"""What was read ahead reaches the task as it was."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given, strategies as st
from msgspec import msgpack

from pipeline_runtime.kafka.ahead import pack, unpack

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2)
RECORDS = st.builds(
    SimpleNamespace,
    timestamp=st.integers(0, 2**62),
    key=st.none() | st.binary(),
    value=st.none() | st.binary(),
    headers=HEADERS,
)


@given(st.integers(0, 2**62), st.lists(RECORDS, min_size=1, max_size=5))
def test_any_bytes_survive_the_way_through_the_gate(first: int, records: list[SimpleNamespace]) -> None:
    for place, record in enumerate(records):
        record.offset = first + place
    found = unpack(msgpack.decode(msgpack.encode([pack(record) for record in records])))
    assert found.offsets.tolist() == [record.offset for record in records]
    assert found.timestamps_ms.tolist() == [record.timestamp for record in records]
    assert found.keys.to_pylist() == [record.key for record in records]
    assert found.values.to_pylist() == [record.value for record in records]
    assert [list(found.headers.get(place, ())) for place in range(len(records))] == [
        record.headers for record in records
    ]
