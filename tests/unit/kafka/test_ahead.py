"""What was read ahead reaches the task as it was."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from pipeline_runtime.kafka.ahead import ReadAhead, pack, unpack

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2).map(tuple)


@given(st.integers(0), st.integers(0), st.none() | st.binary(), st.none() | st.binary(), HEADERS)
def test_any_bytes_survive_the_way_through_json(
    offset: int, time_ms: int, key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes], ...]
) -> None:
    record = ReadAhead(offset, time_ms, key, value, headers)
    assert unpack(json.loads(json.dumps(pack(record)))) == record
