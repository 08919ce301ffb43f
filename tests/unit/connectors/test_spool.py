"""Records on a node's disk while Kafka is away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.connectors.sdk import Record
from pipeline_runtime.connectors.spool import Spool

RECORD = st.builds(
    Record, st.binary(max_size=300), st.none() | st.integers(0, 2**41), st.none() | st.binary(max_size=20)
)


def emptied(spool: Spool, piece: int = 200) -> list[Record]:
    found: list[Record] = []
    while not spool.is_empty:
        records, mark = spool.read(piece)
        found += records
        spool.sent(mark)
    return found


@settings(max_examples=25)
@given(st.lists(st.lists(RECORD, max_size=5), max_size=12), st.integers(1, 500))
def test_what_was_appended_comes_back_in_order_whole_and_once(
    tmp_path_factory: pytest.TempPathFactory, appends: list[list[Record]], piece: int
) -> None:
    directory = tmp_path_factory.mktemp("spool")
    spool = Spool(directory, 1 << 20, segment_bytes=400)
    for records in appends:
        assert spool.append(records)
    spool.close()
    again = Spool(directory, 1 << 20, segment_bytes=400)
    assert emptied(again, piece) == [record for records in appends for record in records]
    assert again.bytes == 0


def test_a_restart_goes_on_behind_the_mark(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20)
    spool.append([Record(b"%d" % number) for number in range(10)])
    first, mark = spool.read(60)
    spool.sent(mark)
    assert 0 < len(first) < 10
    assert first + emptied(Spool(tmp_path, 1 << 20)) == [Record(b"%d" % number) for number in range(10)]


def test_what_does_not_fit_is_refused_as_a_whole_and_room_comes_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 300, segment_bytes=100)
    assert all(spool.append([Record(b"a" * 60)]) for _ in range(3))
    assert not spool.append([Record(b"b" * 60)])
    assert spool.bytes <= 300
    _, mark = spool.read(1)
    spool.sent(mark)
    assert spool.append([Record(b"c" * 60)])
    assert [record.value[:1] for record in emptied(spool)] == [b"a", b"a", b"c"]


def test_a_frame_that_a_kill_has_cut_is_dropped_and_the_others_stay(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20)
    spool.append([Record(b"whole"), Record(b"cut in two")])
    spool.close()
    [path] = tmp_path.glob("*.spool")
    os.truncate(path, path.stat().st_size - 3)
    again = Spool(tmp_path, 1 << 20)
    again.append([Record(b"next")])
    assert [record.value for record in emptied(again)] == [b"whole", b"next"]
