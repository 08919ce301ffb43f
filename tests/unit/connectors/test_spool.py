"""Records on a node's disk while Kafka is away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.connectors.sdk import Record
from pipeline_runtime.connectors.spool import _FRAME, Spool

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


def test_an_empty_file_that_a_full_disk_has_left_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / "00000003.spool").touch()
    assert Spool(tmp_path, 1 << 20).is_empty
    assert not list(tmp_path.glob("*.spool"))


def test_a_frame_that_broke_is_passed_with_the_rest_of_its_file_and_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20, segment_bytes=80)
    for value in (b"first" * 3, b"behind" * 2, b"next file" * 3):
        assert spool.append([Record(value)])
    oldest, _ = sorted(tmp_path.glob("*.spool"))
    size = oldest.stat().st_size
    with open(oldest, "r+b") as file:
        file.seek(_FRAME.size)
        file.write(b"x")
    assert [record.value for record in emptied(spool)] == [b"next file" * 3]
    assert spool.broken_bytes == size


def test_what_broke_before_a_restart_is_counted_too(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20, segment_bytes=20)
    assert all(spool.append([Record(value)]) for value in (b"older", b"newer"))
    spool.close()
    oldest, _ = sorted(tmp_path.glob("*.spool"))
    os.truncate(oldest, oldest.stat().st_size - 1)
    again = Spool(tmp_path, 1 << 20)
    assert again.broken_bytes == _FRAME.size + len(b"older") - 1
    assert [record.value for record in emptied(again)] == [b"newer"]


def test_a_mark_that_cannot_be_written_does_not_keep_the_spool_from_becoming_empty(tmp_path: Path) -> None:
    (tmp_path / "mark.new").mkdir()  # so that writing the mark raises OSError, as a full disk does
    spool = Spool(tmp_path, 1 << 20)
    spool.append([Record(b"%d" % number) for number in range(10)])
    assert [record.value for record in emptied(spool, 60)] == [b"%d" % number for number in range(10)]
    assert not list(tmp_path.glob("*.spool"))


def test_the_mark_of_a_file_that_is_gone_does_not_count_for_a_later_one(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20)
    spool.append([Record(b"%d" % number) for number in range(10)])
    spool.sent(spool.read(60)[1])
    emptied(spool)
    spool.append([Record(b"later")])
    assert emptied(Spool(tmp_path, 1 << 20)) == [Record(b"later")]
