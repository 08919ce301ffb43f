"""What is told of the time between two processes of an ingester."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pipeline_runtime.connectors.pause import LastRow, Pause, Told, gap_of
from pipeline_runtime.connectors.report import Report
from tests.waiting import wait_until


def nobody_knows(pause_s: float) -> None:
    return None


@pytest.mark.parametrize(
    ("last", "missed_in", "said", "rows"),
    [
        (LastRow(), nobody_knows, None, None),  # a new element
        (LastRow(1_000), nobody_knows, "3.5 s before the first answer", None),
        (LastRow(1_000), int, "3.5 s before the first answer", 3),
        (LastRow(1_000), lambda pause_s: 0, None, None),  # no poll was due
        (LastRow(9_000), nobody_knows, None, None),  # the earlier process has not ended yet
        (LastRow(is_deleted=True), nobody_knows, "Kafka has deleted it", None),
        (None, nobody_knows, "Kafka does not say", None),
    ],
)
def test_a_gap_lasts_from_the_last_row_to_the_first_answer(
    last: LastRow | None, missed_in: Callable[[float], int | None], said: str | None, rows: int | None
) -> None:
    found = gap_of(last, 4_500, missed_in)
    if said is None:
        assert found is None
    else:
        assert isinstance(found, Told)
        assert said in found.why
        assert found.rows == rows


def test_it_is_told_once_when_the_system_answers_and_before_whoever_waits_for_it() -> None:
    notes: list[str] = []
    report = Report("e", lambda status, note: notes.append(note) if note else None)
    look = threading.Event()

    def looked() -> LastRow:
        assert look.wait(60)
        return LastRow(1)

    pause = Pause(looked, report, lambda pause_s: 7)
    pause.start()
    told = threading.Event()

    def tell() -> None:
        pause.tell()
        told.set()

    threading.Thread(target=tell, daemon=True).start()
    assert not told.is_set()  # a row would wait
    assert notes == []
    look.set()
    assert told.wait(60)
    assert report.status.gap_rows_total == 7
    report.connected()
    pause.tell()
    assert len(notes) == 1


def test_it_is_told_without_a_row_as_soon_as_the_system_is_connected() -> None:
    report = Report("e", lambda status, note: None)

    def failed() -> LastRow:
        raise OSError("Kafka is away")

    pause = Pause(failed, report, nobody_knows)
    pause.start()
    report.connected()
    wait_until(lambda: report.status.gaps_total == 1, "the gap")


def test_a_gap_whose_rows_a_connector_cannot_count_is_told_without_them() -> None:
    notes: list[str] = []

    def broken(pause_s: float) -> int:
        raise KeyError("bug")

    pause = Pause(lambda: LastRow(1), Report("e", lambda status, note: notes.append(note)), broken)
    pause.start()
    pause.tell()
    [note] = notes
    assert "s before the first answer" in note
    assert "rows)" not in note
