"""Tests how far an exactly-once ingester may be ahead of its group."""

from __future__ import annotations

import pytest

from pipeline_runtime.connectors import once
from pipeline_runtime.connectors.once import MARK_BYTES, UNREAD_BYTES_MAX, Unread


@pytest.fixture(autouse=True)
def _asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "LOOK_S", 0.0)


def test_nothing_more_is_written_while_the_group_is_far_behind() -> None:
    unread, read_up_to = Unread(), 0
    asked: list[int | None] = []

    def is_behind(offset: int | None) -> bool:
        asked.append(offset)
        return offset is None or read_up_to < offset

    written = 0
    while unread.has_room(is_behind):
        written += 1
        if unread.wrote(MARK_BYTES):
            unread.mark(written)
    assert written == UNREAD_BYTES_MAX // MARK_BYTES
    assert asked == [1]
    read_up_to = 3
    assert unread.has_room(is_behind)
    assert asked == [1, 1, 2, 3, 4]


def test_what_an_earlier_process_wrote_is_read_first() -> None:
    unread, behind = Unread(behind=True), True
    assert not unread.has_room(lambda offset: behind)
    behind = False
    assert unread.has_room(lambda offset: behind)
    behind = True
    assert unread.has_room(lambda offset: behind)
