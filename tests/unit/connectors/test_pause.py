"""The gap that is reported for the time between two processes of an ingester."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_runtime.connectors import kept as kept_module, pause as module
from pipeline_runtime.connectors.kept import Beginning, KeptBeginnings
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
        (LastRow(4_900), nobody_knows, None, None),  # the earlier process has not ended yet
        (LastRow(9_000), int, "this node's clock has not reached", None),
        (LastRow(is_deleted=True), nobody_knows, "Kafka has deleted it", None),
    ],
)
def test_a_gap_lasts_from_the_last_row_to_the_first_answer(
    last: LastRow, missed_in: Callable[[float], int | None], said: str | None, rows: int | None
) -> None:
    found = gap_of(last, 4_500, 5_000, missed_in)
    if said is None:
        assert found is None
    else:
        assert isinstance(found, Told)
        assert said in found.why
        assert found.rows == rows


class Kafka:
    """Says when its newest row came, as soon as it answers. Each question takes until then."""

    def __init__(self, at_ms: int, *, answers: bool = True) -> None:
        self.at_ms = at_ms
        self.answers = threading.Event()
        if answers:
            self.answers.set()
        self.asked = 0

    def look(self) -> LastRow:
        self.asked += 1
        assert self.answers.wait(60)
        return LastRow(self.at_ms)


class Process:
    """A process of an element whose system answers when it is told to."""

    def __init__(
        self,
        kafka: Kafka,
        path: Path,
        left_ms: int | None = None,
        missed_in: Callable[[float], int | None] | None = nobody_knows,
    ) -> None:
        self.notes: list[str] = []
        self.report = Report("e", lambda status, note: self.notes.append(note) if note else None)
        self.pause = Pause(kafka.look, self.report, KeptBeginnings(path), left_ms, missed_in)
        self.pause.start()

    def opened(self) -> None:
        wait_until(lambda: self.pause.opens(True), "the gap to be told")


def test_rows_go_to_kafka_when_the_gap_is_told_once(tmp_path: Path) -> None:
    kafka = Kafka(1, answers=False)
    process = Process(kafka, tmp_path / "begun.json", missed_in=lambda pause_s: 7)
    assert not process.pause.opens(True)
    wait_until(lambda: kafka.asked == 1, "the question")
    assert process.notes == []
    kafka.answers.set()
    process.opened()
    assert process.report.status.gap_rows_total == 7
    process.report.connected()
    assert process.pause.opens(True)
    assert len(process.notes) == 1
    assert not (tmp_path / "begun.json").exists()


def test_the_last_row_is_looked_for_when_the_system_has_answered(tmp_path: Path) -> None:
    kafka = Kafka(1)
    process = Process(kafka, tmp_path / "begun.json", missed_in=int)
    # The process before it goes on meanwhile.
    kafka.at_ms = module._now_ms() + 500
    process.report.connected()
    process.opened()
    assert (kafka.asked, process.notes) == (1, [])


def test_it_is_told_without_a_row_and_kafka_is_asked_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    report = Report("e", lambda status, note: None)
    answers = iter([OSError("Kafka is away"), OSError("Kafka is away"), LastRow(1)])

    def look() -> LastRow:
        found = next(answers)
        if isinstance(found, OSError):
            raise found
        return found

    Pause(look, report, KeptBeginnings(tmp_path / "begun.json"), None, nobody_knows).start()
    report.connected()
    wait_until(lambda: report.status.gaps_total == 1, "the gap")


def test_a_process_that_is_killed_with_rows_on_the_disk_leaves_its_gap_to_the_next(tmp_path: Path) -> None:
    def hours_in(pause_s: float) -> int:
        return int(pause_s // 3600)

    path, away = tmp_path / "begun.json", Kafka(1_000_000, answers=False)
    first = Process(away, path, missed_in=hours_in)
    assert not first.pause.opens(True)
    [begun] = KeptBeginnings(path).read()
    # The first one is killed. The row that it had put on the disk is newer than its beginning.
    second = Process(Kafka(1_000_000), path, begun.answered_ms + 1, missed_in=hours_in)
    wait_until(lambda: second.pause.opens(False), "the first gap to be told")
    [note] = second.notes
    assert f"came {(begun.answered_ms - 1_000_000) / 1000:.1f} s before the first answer" in note
    assert not path.exists()
    second.report.connected()
    wait_until(lambda: second.pause.opens(True), "the second gap to be told")
    # Between the two processes no hour has passed.
    assert second.report.status.gap_rows_total == (begun.answered_ms - 1_000_000) // 3_600_000
    away.answers.set()


def test_what_earlier_processes_have_left_is_told_where_the_system_waits(tmp_path: Path) -> None:
    path = tmp_path / "begun.json"
    KeptBeginnings(path).write([Beginning(5_000, 1_000), Beginning(9_000, 6_000)])
    process = Process(Kafka(500), path, missed_in=None)
    process.opened()
    assert [note.split("came ")[1].split(" before")[0] for note in process.notes] == ["4.0 s", "3.0 s"]


def test_the_beginnings_of_very_many_processes_are_joined_and_a_broken_file_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_module, "BEGINNINGS_MAX", 2)
    kept = KeptBeginnings(tmp_path / "begun.json")
    kept.write([Beginning(20, 10), Beginning(40, 30), Beginning(60, 50)])
    assert kept.read() == (Beginning(20, 10), Beginning(60, 30))
    (tmp_path / "begun.json").write_text("[[1]]")
    assert kept.read() == ()


def test_a_gap_whose_rows_a_connector_cannot_count_is_told_without_them(tmp_path: Path) -> None:
    def broken(pause_s: float) -> int:
        raise KeyError("bug")

    process = Process(Kafka(1), tmp_path / "begun.json", missed_in=broken)
    process.opened()
    [note] = process.notes
    assert "s before the first answer" in note
    assert "rows)" not in note
