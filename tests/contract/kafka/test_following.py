"""Tests how a replica reads its journal while a real broker hides a part of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.journal.positions import read_positions
from pipeline_runtime.journal.records import Arm, Boundary, Claim, Commit, Release, encode
from pipeline_runtime.kafka import reading
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.reading import has_unread
from pipeline_runtime.kafka.transactions import Doubtful, OutgoingRecord
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.replica.following import JournalFollower
from pipeline_runtime.replica.state import ReplicaState
from tests.contract.kafka.test_transactions import opened
from tests.open_transactions import leave_open
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

SPEC = GroupSpec(deployment="hidden", pipeline="p", group="g", elements=(ElementSpec(id="g", type="filter"),))
ONE = Epoch(1)


def commit(seq: int, marks: dict[str, Any]) -> OutgoingRecord:
    record = Commit(ONE, Boundary(Seq(seq), {"in/0": seq}, 0), marks=marks)
    return OutgoingRecord(SPEC.journal, encode(record))


def test_a_state_whose_commit_is_still_hidden_is_not_damaged(kafka: str, tmp_path: Path) -> None:
    """A replica starts again while the journal hides what it has committed: a broker that died between its
    answer and its marks does so until it is back, and so does somebody else's open transaction."""
    settings = KafkaSettings(kafka)
    ensure_topics(settings, [Topic(SPEC.journal, "journal")])
    owner, other = opened(kafka, "hidden-owner"), opened(kafka, "hidden-other")
    owner.commit([OutgoingRecord(SPEC.journal, encode(Claim(ONE, "o", "a")))])
    owner.commit([commit(1, {"sink": "first"})])
    leave_open(other, OutgoingRecord(SPEC.journal, encode(Claim(Epoch(2), "p", "b"))))
    owner.commit([commit(2, {"sink": "second"})])

    state = ReplicaState()
    follower = JournalFollower(SPEC, settings, tmp_path, state)

    def followed() -> dict[str, Any]:
        while True:
            with suppress(Doubtful):  # as the replica does: on a slow machine it may stay hidden for long
                return follower.follow(Seq(2))

    with ThreadPoolExecutor(1) as pool:
        marks = pool.submit(followed)
        wait_until(lambda: state.view.last_seq == 1 or marks.done(), "what can be seen to be read")
        other.close()
        opened(kafka, "hidden-other").close()  # which ends what the other one had open

        assert marks.result(PATIENCE_S) == {"sink": "second"}
    assert (state.view.last_seq, state.view.granted) == (2, ONE)
    follower.close()
    owner.close()


def test_a_far_successor_is_told_of_a_release_by_its_own_topic(kafka: str, tmp_path: Path) -> None:
    settings = KafkaSettings(kafka)
    spec = SPEC.model_copy(update={"deployment": "told"})
    follower = JournalFollower(spec, settings, tmp_path, state := ReplicaState())
    ensure_topics(settings, [Topic(spec.journal, "journal"), Topic(spec.released, "released")])
    owner = opened(kafka, "told-owner")
    records = [Claim(ONE, "o", "a"), Arm(Epoch(2), "token", "h", "b")]
    owner.commit([OutgoingRecord(spec.journal, encode(record)) for record in records])
    follower.follow(Seq(0))
    assert not follower.listen(1.0), "it is near"
    assert follower.listen(100.0)

    last = [Commit(ONE, Boundary(Seq(1), {}, 1)), Release(ONE, Seq(1), "token", "h", "b")]
    owner.commit([OutgoingRecord(spec.released, encode(record)) for record in last])
    wait_until(lambda: state.view.granted == 2, "the successor to be told")
    assert follower._trailing.read_to == 2, "the journal has said nothing"
    owner.commit([OutgoingRecord(spec.journal, encode(record)) for record in last])
    wait_until(lambda: follower._trailing.read_to == 5, "the journal to be read, with a marker at 2")
    assert (state.view.last_seq, state.view.granted) == (1, 2)
    follower.close()
    owner.close()


def test_where_a_group_stands_and_what_it_has_not_read_count_what_is_still_hidden(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = KafkaSettings(kafka)
    journal, stream = "positions.journal", "positions.out"
    ensure_topics(settings, [Topic(journal, "journal"), Topic(stream)])
    owner, other = opened(kafka, "positions-owner"), opened(kafka, "positions-other")
    claim = Claim(ONE, "o", "a", {f"{stream}-0": 0})
    owner.commit([OutgoingRecord(journal, encode(claim)), OutgoingRecord(stream, b"a row")])
    assert read_positions(settings, journal) == {f"{stream}-0": 0}
    assert has_unread(settings, stream, 0)
    assert not has_unread(settings, stream, 1), "what is left is the marker of its transaction"

    leave_open(other, *(OutgoingRecord(topic, b"never committed") for topic in (journal, stream)))
    record = Commit(ONE, Boundary(Seq(1), {f"{stream}-0": 1}, 0))
    owner.commit([OutgoingRecord(journal, encode(record))])
    reads: list[str] = []

    def consumer(*given: Any, **options: Any) -> Any:
        reads.append("up to the end that is known now")
        return open_consumer(*given, **options)

    monkeypatch.setattr(reading, "open_consumer", consumer)
    with ThreadPoolExecutor(2) as pool:
        stands = pool.submit(read_positions, settings, journal)
        unread = pool.submit(has_unread, settings, stream, 1)
        wait_until(lambda: len(reads) == 2, "both to read")
        other.close()
        opened(kafka, "positions-other").close()
        assert stands.result(PATIENCE_S) == {f"{stream}-0": 1}
        assert unread.result(PATIENCE_S) is False
    owner.close()
