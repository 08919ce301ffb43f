"""The way of a record from an ingester to Kafka, while Kafka comes and goes."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline_runtime.connectors import intake as module
from pipeline_runtime.connectors.intake import RECORD_BYTES_MAX, SendFailed, SpooledIntake
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import Record
from pipeline_runtime.connectors.spool import Spool
from pipeline_runtime.connectors.trial import Taken
from tests.waiting import wait_until


class Topic:
    """Takes what is sent while it is there."""

    def __init__(self) -> None:
        self.there = True
        self.values: list[bytes] = []

    def send(self, records: Sequence[Record]) -> None:
        if not self.there:
            raise SendFailed("away")
        self.values += [record.value for record in records]


class Rig:
    def __init__(
        self, directory: Path, bytes_max: int, opens: Callable[[bool], bool] = lambda own: True
    ) -> None:
        self.topic, self.taken = Topic(), Taken()
        self.report = Report("e", self.taken.told)
        self.spool = Spool(directory, bytes_max)
        self.intake = SpooledIntake(self.topic.send, self.spool, self.report, opens)


@contextmanager
def running(directory: Path, bytes_max: int = 1 << 20) -> Iterator[Rig]:
    rig = Rig(directory, bytes_max)
    rig.intake.start()
    try:
        yield rig
    finally:
        rig.intake.close(5)
        rig.spool.close()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.02)


def test_a_record_is_done_when_kafka_has_it(tmp_path: Path) -> None:
    with running(tmp_path) as rig:
        assert rig.intake.put_durably([Record(b"1"), Record(b"2")], 5)
        assert rig.topic.values == [b"1", b"2"]
        assert rig.report.status.rows_total == 2


def test_while_kafka_is_away_the_disk_counts_and_the_order_stays(tmp_path: Path) -> None:
    with running(tmp_path) as rig:
        rig.topic.there = False
        for number in range(5):
            assert rig.intake.put_durably([Record(b"%d" % number)], 5)
        assert rig.topic.values == []
        assert rig.report.status.spool_bytes > 0
        rig.topic.there = True
        assert rig.intake.put_durably([Record(b"5")], 5)
        wait_until(lambda: len(rig.topic.values) == 6, "all records in the topic")
        assert rig.topic.values == [b"%d" % number for number in range(6)]
        wait_until(lambda: rig.report.status.spool_bytes == 0, "an empty spool")


def test_a_killed_process_loses_nothing_that_it_has_acknowledged(tmp_path: Path) -> None:
    with running(tmp_path / "killed") as killed:
        killed.topic.there = False
        assert killed.intake.put_durably([Record(b"kept")], 5)
        shutil.copytree(tmp_path / "killed", tmp_path / "left")
    with running(tmp_path / "left") as rig:
        wait_until(lambda: rig.topic.values == [b"kept"], "what the first process has left")


def test_a_full_disk_lets_systems_wait_that_can_and_counts_the_rows_of_others(tmp_path: Path) -> None:
    with running(tmp_path, bytes_max=60) as rig:
        rig.topic.there = False
        assert rig.intake.put_durably([Record(b"fits" * 5)], 5)
        durable = threading.Event()
        assert rig.intake.put([Record(b"waits" * 5)], durable.set)
        wait_until(lambda: rig.report.status.state == "failing", "the full disk to be told")
        assert "full" in rig.report.status.why
        assert not durable.is_set()
        rig.intake.put([Record(b"lost" * 5)])
        wait_until(lambda: rig.report.status.gap_rows_total == 1, "the gap to be counted")
        rig.topic.there = True
        assert durable.wait(5)
        wait_until(lambda: rig.report.status.state == "connected", "the end of it")
    assert rig.topic.values == [b"fits" * 5, b"waits" * 5]
    assert len(rig.taken.notes) == 1


def test_a_record_that_no_topic_takes_becomes_a_text_for_the_dead_letters(tmp_path: Path) -> None:
    with running(tmp_path) as rig:
        assert rig.intake.put_durably([Record(b'{"a": "' + b"x" * 10_000_000 + b'"}')], 5)
    [value] = rig.topic.values
    assert value.startswith(b"10000009 bytes are too many")
    assert len(value) < RECORD_BYTES_MAX


def test_an_intake_that_breaks_ends_its_process_and_counts_what_no_system_sends_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(module, "_end_process", ended.set)
    rig = Rig(tmp_path, 1 << 20)

    def broken(records: Sequence[Record]) -> None:
        raise KeyError("bug")

    rig.intake = SpooledIntake(broken, rig.spool, rig.report)
    rig.intake.put([Record(b"comes again")], lambda: None)
    rig.intake.put([Record(b"1"), Record(b"2")])
    rig.intake.start()
    assert ended.wait(5)
    assert rig.report.status.gap_rows_total == 2


def test_a_system_that_cannot_be_told_does_not_end_the_intake(tmp_path: Path) -> None:
    def gone() -> None:
        raise RuntimeError("not connected")

    with running(tmp_path) as rig:
        rig.intake.put([Record(b"1")], gone)
        assert rig.intake.put_durably([Record(b"2")], 5)
    assert rig.topic.values == [b"1", b"2"]


def test_what_an_end_in_the_midst_of_sending_may_lose_is_counted(tmp_path: Path) -> None:
    rig, sending, go_on = Rig(tmp_path, 1 << 20), threading.Event(), threading.Event()

    def slow(records: Sequence[Record]) -> None:
        sending.set()
        assert go_on.wait(10)

    rig.intake = SpooledIntake(slow, rig.spool, rig.report)
    rig.intake.start()
    rig.intake.put([Record(b"in flight")])
    assert sending.wait(5)
    rig.intake.put([Record(b"waits")])
    rig.intake.put([Record(b"comes again")], lambda: None)
    assert not rig.intake.close(0.01)
    go_on.set()
    assert rig.report.status.gap_rows_total == 2


def test_the_end_of_a_full_disk_does_not_hide_that_the_system_fails(tmp_path: Path) -> None:
    with running(tmp_path, bytes_max=60) as rig:
        rig.topic.there = False
        rig.intake.failing("Nobody listens.")
        assert rig.intake.put_durably([Record(b"fits" * 5)], 5)
        rig.intake.put([Record(b"waits" * 5)], lambda: None)
        wait_until(lambda: "full" in rig.report.status.why, "the full disk to be told")
        rig.topic.there = True
        wait_until(lambda: "full" not in rig.report.status.why, "the end of it")
        assert (rig.report.status.state, rig.report.status.why) == ("failing", "Nobody listens.")


@pytest.mark.parametrize("there", [True, False])
def test_rows_that_may_not_go_to_kafka_yet_are_on_the_disk_at_once(tmp_path: Path, there: bool) -> None:
    told, asked = threading.Event(), set[bool]()

    def opens(own: bool) -> bool:
        asked.add(own)
        return told.is_set()

    rig = Rig(tmp_path, 1 << 20, opens)
    rig.topic.there = there
    rig.intake.start()
    assert rig.intake.put_durably([Record(b"first")], 60)
    assert rig.intake.put_durably([Record(b"second")], 60)
    assert (rig.topic.values, asked) == ([], {True})
    told.set()
    rig.topic.there = True
    wait_until(lambda: rig.topic.values == [b"first", b"second"], "both")
    rig.intake.close(60)
    rig.spool.close()


def test_an_intake_that_ends_before_rows_may_go_to_kafka_leaves_all_of_them_on_the_disk(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, 10 << 20, lambda own: False)
    many = [Record(b"%d" % number + bytes(500_000)) for number in range(5)]
    for each in many:
        assert rig.intake.put([each])
    rig.intake.start()
    assert rig.intake.close(60)
    rig.spool.close()
    with running(tmp_path, 10 << 20) as next_rig:
        wait_until(lambda: len(next_rig.topic.values) == len(many), "all rows of the first one")
        assert next_rig.topic.values == [each.value for each in many]
        assert rig.report.status.gaps_total == 0


def test_rows_whose_beginning_the_disk_does_not_note_are_not_taken_for_durable(tmp_path: Path) -> None:
    full = threading.Event()

    def opens(own: bool) -> bool:
        if full.is_set():
            raise OSError("no space left")
        return True

    rig = Rig(tmp_path, 1 << 20, opens)
    full.set()
    rig.intake.start()
    durable = threading.Event()
    assert rig.intake.put([Record(b"1")], durable.set)
    wait_until(lambda: "full" in rig.report.status.why, "the words")
    assert not durable.is_set()
    full.clear()
    assert durable.wait(60)
    rig.intake.close(60)
    rig.spool.close()
